"""Tasks of cluster workers: store what is sent to them, compile, and measure.

Each function is a task that runs in a worker's process. Arguments and answers are plain data.
"""

import io
import os
import tarfile
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from secrets import token_hex
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Any, Literal, TypeVar

import policygen
from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.gpu.compiling import ObjectCompiler, ObjectSource, runtime_of
from policygen.gpu.control import controlling, worker_command
from policygen.gpu.device import GpuFacts, LostGpuError, VariantFunction
from policygen.gpu.machine import BusyGpuError, ListedGpu, device_environment, find_gpu
from policygen.gpu.rungs import BaseCase, LocalGpu, RungPoint
from policygen.paths import cache_failure
from policygen.proof.compile import Listings, RefusedError
from policygen.proof.toolchain import find_toolchain
from policygen.untrusted import visible

SAME = "All workers of a search need the same release of policygen and of nvcc as who asks them."


class LackingError(Exception):
    """A worker lacks contents that a task needs."""

    def __init__(self, digests: Sequence[str]) -> None:
        super().__init__(*digests)
        self.digests = tuple(digests)


@dataclass(frozen=True, slots=True)
class WorkerStore:
    """Contents sent to a worker, by digest; the store lives as long as the worker."""

    folder: Path
    there: Listings = field(default_factory=Listings)
    _guard: Lock = field(default_factory=Lock)

    def path(self, name: str) -> Path:
        """Return the path of a content."""
        return self.folder / "contents" / name

    def need(self, names: Collection[str]) -> None:
        """Raise LackingError if contents are missing."""
        if missing := sorted({name for name in names if not self.path(name).is_file()}):
            raise LackingError(missing)

    def keep(self, name: str, sender: str, start: int, part: bytes, size: int) -> None:
        """Store a part of a content; the complete content is renamed if its digest matches."""
        path = self.path(f"{name}.{sender}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if start else "wb") as file:
            file.write(part)
        if start + len(part) < size:
            return
        fits = digest(path.read_bytes()) == name
        path.replace(self.path(name)) if fits else path.unlink()
        if not fits:
            raise InputError("what was sent is not what it is called")

    def tree(self, name: str) -> str:
        """Return the folder of headers that a content contains, unpacking it once."""
        target = self.folder / "trees" / name
        with self._guard:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = Path(mkdtemp(dir=target.parent))
                try:
                    unpack(self.path(name).read_bytes(), temporary / "made")
                    (temporary / "made").rename(target)
                finally:
                    rmtree(temporary, ignore_errors=True)
        return str(target)


def here() -> str:
    """Return the address of the current worker."""
    return str(import_module("distributed").get_worker().address)


def store() -> WorkerStore:
    """Return the store of the current worker; a process may run several workers."""
    return _store(Path(import_module("distributed").get_worker().local_directory))


@cache
def _store(folder: Path) -> WorkerStore:
    return WorkerStore(folder / "policygen")


Terms = tuple[str, str]
"""Versions of policygen and of nvcc, which must match on all machines of a search."""
AnswerKind = Literal["done", "lacks", "refused", "killed", "busy", "lost", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """Answer of a worker."""

    worker: str
    """Address of the worker."""
    kind: AnswerKind
    value: Any = None
    words: str = ""
    remedy: str | None = None
    status: int = 0

    def given(self) -> Any:
        """Return the result or raise the error."""
        match self.kind:
            case "done":
                return self.value
            case "refused":
                raise RefusedError(["nvcc"], self.status, self.words, self.remedy)
            case "killed":
                raise ProcessError(["nvcc"], self.status, self.words, self.remedy)
            case "busy":
                raise BusyGpuError(f"{self.worker}: {self.words}", self.remedy)
            case "lost":
                raise LostGpuError(f"{self.worker}: {self.words}", self.remedy)
            case "missing":
                raise MissingToolError(f"{self.worker}: {self.words}", self.remedy or "")
            case _:
                raise InputError(f"{self.worker}: {self.words}", self.remedy)


def answered(terms: Terms, work: Callable[[], object]) -> WorkerAnswer:
    """Run a task if the terms match; errors become answers."""
    worker = here()
    try:
        check_terms(terms)
        return WorkerAnswer(worker, "done", work())
    except LackingError as error:
        return WorkerAnswer(worker, "lacks", error.digests)
    except PolicygenError as error:
        return error_answer(worker, error)
    except OSError as error:
        return error_answer(worker, cache_failure(error))


def check_terms(terms: Terms) -> None:
    """Raise InputError for a client of another release, whose results would differ."""
    version, nvcc = terms
    if version != policygen.__version__:
        raise InputError(f"has policygen {policygen.__version__}, and not {version}", SAME)
    nvcc_version = find_toolchain().version
    if nvcc_version != nvcc:
        raise InputError(f"has nvcc {nvcc_version}, and not {nvcc}", SAME)


def keep_part(name: str, sender: str, start: int, part: bytes, size: int) -> WorkerAnswer:
    """Store a part of a content that tasks need."""
    try:
        store().keep(name, sender, start, part, size)
        return WorkerAnswer(here(), "done")
    except InputError as error:
        return error_answer(here(), error)
    except OSError as error:
        return error_answer(here(), cache_failure(error))


@dataclass(frozen=True, slots=True)
class UnitAsk:
    """A translation unit to compile."""

    text: str
    trees: tuple[str, ...]
    """Digests of its include folders."""
    arch: str


def compile_unit(terms: Terms, ask: UnitAsk) -> WorkerAnswer:
    """Return the compiled object as bytes."""

    def work() -> bytes:
        contents = store()
        contents.need(ask.trees)
        source = ObjectSource(ask.text, tuple(map(contents.tree, ask.trees)), ask.arch)
        compiler = ObjectCompiler(find_toolchain(), contents.folder / "made", contents.there)
        return compiler.make(source).read_bytes()

    return answered(terms, work)


IDLE = 300.0
"""Seconds without a request after which a GPU is given back."""
PROCESS = token_hex(8)
"""Identifies this process; a restarted worker has lost its state."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """The search that asks for a worker's GPU."""

    owner: str
    """Identifies the search; the same for the same database."""
    runner: str
    """Digest of the object that times calls."""
    process: str = ""
    """Process of the worker that holds the GPU, once known."""


@dataclass(slots=True)
class WorkersGpu:
    """The GPU of a worker."""

    owner: str = ""
    gpu: LocalGpu | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    timer: threading.Timer | None = None
    guard: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def used(self, ask: GpuAsk) -> Iterator[LocalGpu]:
        """Lend the GPU to a search; raise BusyGpuError if another one has it."""
        with self.guard:
            if ask.process not in {"", PROCESS}:
                raise LostGpuError("its process was started anew")
            if self.gpu is not None and self.owner != ask.owner:
                raise BusyGpuError(
                    "another search measures on its GPU",
                    "Wait until it has ended: --wait SECONDS.",
                )
            if self.timer is not None:
                self.timer.cancel()
            try:
                yield self.gpu or self._open(ask)
            except LostGpuError:
                self.close()
                raise
            finally:
                self._watch()

    def close(self) -> None:
        """Give the GPU back."""
        with self.guard:
            self.gpu, self.owner = None, ""
            self.stack.close()

    def _open(self, ask: GpuAsk) -> LocalGpu:
        runner, runtime = store().path(ask.runner), runtime_of(find_toolchain())
        # A batch system assigns a GPU, which is the first visible one.
        command = worker_command(find_gpu().number, runner, runtime)
        controller = self.stack.enter_context(controlling(command, more=device_environment()))
        self.gpu, self.owner = LocalGpu(controller), ask.owner
        return self.gpu

    def _watch(self) -> None:
        if self.gpu is None:
            return
        self.timer = threading.Timer(IDLE, self._close_idle)
        self.timer.daemon = True
        self.timer.start()

    def _close_idle(self) -> None:
        with self.guard:
            if threading.current_thread() is self.timer:  # no request since
                self.close()


_gpus: dict[str, WorkersGpu] = {}
"""GPUs by worker address."""
_guard = threading.Lock()


# GPU tasks; a worker holds its GPU for one search at a time
#
# A search that sends no request for some minutes loses the GPU to the next one that asks. A search
# that continues with the same database has it at once, even if it was killed before.


def _own_gpu() -> WorkersGpu:
    with _guard:
        return _gpus.setdefault(here(), WorkersGpu())


def see_gpu(terms: Terms) -> WorkerAnswer:
    """Return the GPU of this worker."""
    return answered(terms, lambda: SeenByWorker(find_gpu(), PROCESS))


def hold_gpu(terms: Terms, ask: GpuAsk) -> WorkerAnswer:
    """Hold the GPU for a search."""
    return _use_gpu(terms, ask, (), lambda gpu, _: HeldByWorker(gpu.controller.facts, PROCESS))


def look_at_base(terms: Terms, ask: GpuAsk, cases: Sequence[BaseCase], seed: int) -> WorkerAnswer:
    """Run only the baseline on runtime workloads, in a fresh process."""
    needed = [name for case, base in cases for name in (case.inputs, base.library)]

    def work(gpu: LocalGpu, contents: WorkerStore) -> object:
        local_cases = [
            (replace(case, inputs=str(contents.path(case.inputs))), _localized(contents, base))
            for case, base in cases
        ]
        return gpu.look(local_cases, seed)

    return _use_gpu(terms, ask, needed, work)


def measure_point(
    terms: Terms,
    ask: GpuAsk,
    point: RungPoint,
    seed: int,
    fresh: bool,  # noqa: FBT001  task arguments are positional
) -> WorkerAnswer:
    """Check and measure variants on one runtime workload, optionally in a fresh process."""
    functions = point.functions.values()
    needed = [point.case.inputs, point.base.library, *(function.library for function in functions)]

    def work(gpu: LocalGpu, contents: WorkerStore) -> object:
        local_point = RungPoint(
            replace(point.case, inputs=str(contents.path(point.case.inputs))),
            _localized(contents, point.base),
            {label: _localized(contents, function) for label, function in point.functions.items()},
            point.rounds,
        )
        return gpu.point(local_point, seed, fresh=fresh)

    return _use_gpu(terms, ask, needed, work)


def give_back(terms: Terms, owner: str) -> WorkerAnswer:
    """Release the GPU if this search holds it."""

    def work() -> None:
        worker_gpu = _own_gpu()
        if worker_gpu.owner == owner:
            worker_gpu.close()

    return answered(terms, work)


def _use_gpu(
    terms: Terms,
    ask: GpuAsk,
    needed: Sequence[str],
    work: Callable[[LocalGpu, WorkerStore], object],
) -> WorkerAnswer:
    def use() -> object:
        contents = store()
        contents.need([ask.runner, *needed])
        with _own_gpu().used(ask) as gpu:
            return work(gpu, contents)

    return answered(terms, use)


def _localized(contents: WorkerStore, function: VariantFunction) -> VariantFunction:
    """Return the function with the local path of its object."""
    return replace(function, library=str(contents.path(function.library)))


@dataclass(frozen=True, slots=True)
class HeldByWorker:
    """A GPU that a worker holds for a search."""

    facts: GpuFacts
    process: str
    """Process of the worker; it changes with a restart."""


@dataclass(frozen=True, slots=True)
class SeenByWorker:
    """The GPU of a worker that no search holds yet."""

    gpu: ListedGpu
    process: str


# Answers to clients


def error_answer(worker: str, error: PolicygenError) -> WorkerAnswer:
    """Convert an error into an answer."""
    if isinstance(error, ProcessError):
        kind: AnswerKind = "refused" if isinstance(error, RefusedError) else "killed"
        details = (error.stderr, error.remedy, error.status)
        return WorkerAnswer(worker, kind, None, *details)
    if isinstance(error, InputError):
        kind = "failed"
        if isinstance(error, BusyGpuError):
            kind = "busy"
        elif isinstance(error, LostGpuError):
            kind = "lost"
        return WorkerAnswer(worker, kind, None, error.message, error.remedy)
    if isinstance(error, MissingToolError):
        return WorkerAnswer(worker, "missing", None, error.tool, error.remedy)
    return WorkerAnswer(worker, "failed", None, error.in_line)


LARGEST = 512 << 20
"""Maximum size of a folder's files in bytes; CUB's headers have 27 MB."""
LARGEST_PACKED = 64 << 20
"""Maximum size of the compressed archive in bytes."""
_LEVEL = 6


# Archives of include folders, which contain only regular files


def packed(folder: Path) -> bytes:
    """Pack the files of a folder, sorted by name; the same content gives the same bytes.

    Links are followed within the folder only, so that no other files of this machine are sent.
    """
    root, total = folder.resolve(), 0
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(_files(root, root, "")):
            total += path.stat().st_size
            if total > LARGEST:
                raise _too_large(folder, LARGEST)
            data = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    compressed = zlib.compress(stream.getvalue(), _LEVEL)
    if len(compressed) > LARGEST_PACKED:
        raise _too_large(folder, LARGEST_PACKED)
    return compressed


def _files(root: Path, folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            within = f"{name}{entry.name}"
            if entry.is_symlink():
                path = _target(root, path, folder)
            if path.is_dir():
                yield from _files(root, path, f"{within}/")
            elif path.is_file():
                yield within, path


def _target(root: Path, path: Path, folder: Path) -> Path:
    """Return the target of a link within the root; refuse one that contains the link."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a broken or circular link
        return path
    if not target.is_relative_to(root) or folder.resolve().is_relative_to(target):
        raise InputError(
            f"{visible(str(path))} is a link to {visible(str(target))}, which is no file of its"
            " tree: it is not sent to other machines",
            "Replace the link by what it points to.",
        )
    return target


def _too_large(folder: Path, most: int) -> InputError:
    return InputError(
        f"{visible(str(folder))} has more than {most >> 20} MiB, and is not sent to other machines",
        "Name a tree that has CUB's headers alone with --cub: policygen headers fetch VERSION.",
    )


def unpack(data: bytes, target: Path) -> None:
    """Write the files into a new folder; refuse anything but regular files."""
    reader = zlib.decompressobj()
    archive_bytes = reader.decompress(data, 2 * LARGEST)
    if reader.unconsumed_tail or not reader.eof:
        raise InputError("an archive of headers is cut, or too large")
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive_bytes), mode="r:") as archive:
        remaining = len(archive_bytes)
        for member in archive:
            path = target.joinpath(*_parts(member))
            if (remaining := remaining - member.size) < 0:  # two members may share their bytes
                raise InputError("an archive of headers says more than it holds")
            path.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with path.open("xb") as file:  # each name may occur once
                file.write(content.read())


def _parts(member: tarfile.TarInfo) -> tuple[str, ...]:
    parts = PurePosixPath(member.name).parts
    is_inside = parts and ".." not in parts and not member.name.startswith("/")
    is_plain_file = member.isreg() and not member.issparse()
    if not (is_plain_file and is_inside and "\0" not in member.name):
        raise InputError(f"an archive of headers holds {visible(member.name)}, which is no file")
    return parts
