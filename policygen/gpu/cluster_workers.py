"""What the workers of a cluster do: keep what is sent to them, and compile.

Each function is a task. It runs in a worker's process, has plain data, and answers with such.
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
    """A worker has not got all that a task needs."""

    def __init__(self, digests: Sequence[str]) -> None:
        super().__init__(*digests)
        self.digests = tuple(digests)


@dataclass(frozen=True, slots=True)
class WorkerStore:
    """What was sent to a worker, by its content; it goes with the worker."""

    folder: Path
    there: Listings = field(default_factory=Listings)
    _guard: Lock = field(default_factory=Lock)

    def path(self, name: str) -> Path:
        """Where a content lies."""
        return self.folder / "contents" / name

    def need(self, names: Collection[str]) -> None:
        """Refuses a task for which something is missing."""
        if lacking := sorted({name for name in names if not self.path(name).is_file()}):
            raise LackingError(lacking)

    def keep(self, name: str, sender: str, start: int, part: bytes, size: int) -> None:
        """Keeps a part of a content; the whole one gets its name, if that is what it is called."""
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
        """The folder of headers that a content holds."""
        place = self.folder / "trees" / name
        with self._guard:
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                made = Path(mkdtemp(dir=place.parent))
                try:
                    unpack(self.path(name).read_bytes(), made / "made")
                    (made / "made").rename(place)
                finally:
                    rmtree(made, ignore_errors=True)
        return str(place)


def here() -> str:
    """The address of the worker that runs this."""
    return str(import_module("distributed").get_worker().address)


def store() -> WorkerStore:
    """That of the worker that runs this: there may be several in a process."""
    return _store(Path(import_module("distributed").get_worker().local_directory))


@cache
def _store(folder: Path) -> WorkerStore:
    return WorkerStore(folder / "policygen")


Terms = tuple[str, str]
"""The version of policygen, and nvcc's: the same on all machines of a search."""
AnswerKind = Literal["done", "lacks", "refused", "killed", "busy", "lost", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What a worker says."""

    worker: str
    """Its address."""
    kind: AnswerKind
    value: Any = None
    words: str = ""
    remedy: str | None = None
    status: int = 0

    def given(self) -> Any:
        """What was asked for, or why there is none."""
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
    """Does it on terms that hold here; what fails is an answer."""
    worker = here()
    try:
        check_terms(terms)
        return WorkerAnswer(worker, "done", work())
    except LackingError as error:
        return WorkerAnswer(worker, "lacks", error.digests)
    except PolicygenError as error:
        return said_of(worker, error)
    except OSError as error:
        return said_of(worker, cache_failure(error))


def check_terms(terms: Terms) -> None:
    """Refuses another release than that of who asks: what is made here would not be theirs."""
    version, nvcc = terms
    if version != policygen.__version__:
        raise InputError(f"has policygen {policygen.__version__}, and not {version}", SAME)
    own = find_toolchain().version
    if own != nvcc:
        raise InputError(f"has nvcc {own}, and not {nvcc}", SAME)


def keep_part(name: str, sender: str, start: int, part: bytes, size: int) -> WorkerAnswer:
    """Keeps a part of what tasks name."""
    try:
        store().keep(name, sender, start, part, size)
        return WorkerAnswer(here(), "done")
    except InputError as error:
        return said_of(here(), error)
    except OSError as error:
        return said_of(here(), cache_failure(error))


@dataclass(frozen=True, slots=True)
class UnitAsk:
    """A translation unit to compile."""

    text: str
    trees: tuple[str, ...]
    """Its include folders, by what is in them."""
    arch: str


def compile_unit(terms: Terms, ask: UnitAsk) -> WorkerAnswer:
    """An object, as bytes."""

    def work() -> bytes:
        kept = store()
        kept.need(ask.trees)
        source = ObjectSource(ask.text, tuple(map(kept.tree, ask.trees)), ask.arch)
        compiler = ObjectCompiler(find_toolchain(), kept.folder / "made", kept.there)
        return compiler.make(source).read_bytes()

    return answered(terms, work)


IDLE = 300.0
"""Seconds without a question, after which a GPU is given back."""
PROCESS = token_hex(8)
"""Names this process: a worker that was started anew has not what it had."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """Who asks a worker for its GPU."""

    owner: str
    """A search: the same for the same database."""
    runner: str
    """The object that times calls, by its content."""
    process: str = ""
    """That of the worker which has the GPU for the search, once it has."""


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
        """Lets a search have it; refused while it is another's."""
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
        """Gives it back."""
        with self.guard:
            self.gpu, self.owner = None, ""
            self.stack.close()

    def _open(self, ask: GpuAsk) -> LocalGpu:
        runner, runtime = store().path(ask.runner), runtime_of(find_toolchain())
        # A batch system says which GPU is meant; it is the first one that CUDA shows.
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
            if threading.current_thread() is self.timer:  # nobody has asked since
                self.close()


_gpus: dict[str, WorkersGpu] = {}
"""By the worker's address."""
_guard = threading.Lock()


# What the workers of a cluster do with their GPU: they keep it for one search at a time.
#
# A search that says nothing for some minutes has lost it: whoever asks next gets it. One that
# goes on
# with the same database has it at once, also when it was killed before.


def _own() -> WorkersGpu:
    with _guard:
        return _gpus.setdefault(here(), WorkersGpu())


def see_gpu(terms: Terms) -> WorkerAnswer:
    """Says which GPU this worker has."""
    return answered(terms, lambda: SeenByWorker(find_gpu(), PROCESS))


def hold_gpu(terms: Terms, ask: GpuAsk) -> WorkerAnswer:
    """Keeps the GPU for a search."""
    return _using(terms, ask, (), lambda gpu, _: HeldByWorker(gpu.controller.facts, PROCESS))


def look_at_base(terms: Terms, ask: GpuAsk, cases: Sequence[BaseCase], seed: int) -> WorkerAnswer:
    """Runs base alone on runtime workloads, in a fresh process."""
    needed = [name for case, base in cases for name in (case.inputs, base.library)]

    def work(gpu: LocalGpu, kept: WorkerStore) -> object:
        lying = [
            (replace(case, inputs=str(kept.path(case.inputs))), _lying(kept, base))
            for case, base in cases
        ]
        return gpu.look(lying, seed)

    return _using(terms, ask, needed, work)


def measure_point(
    terms: Terms,
    ask: GpuAsk,
    point: RungPoint,
    seed: int,
    fresh: bool,  # noqa: FBT001  it travels
) -> WorkerAnswer:
    """Checks and measures variants on one runtime workload; in a fresh process, or not."""
    functions = point.functions.values()
    needed = [point.case.inputs, point.base.library, *(one.library for one in functions)]

    def work(gpu: LocalGpu, kept: WorkerStore) -> object:
        lying = RungPoint(
            replace(point.case, inputs=str(kept.path(point.case.inputs))),
            _lying(kept, point.base),
            {label: _lying(kept, one) for label, one in point.functions.items()},
            point.rounds,
        )
        return gpu.point(lying, seed, fresh=fresh)

    return _using(terms, ask, needed, work)


def give_back(terms: Terms, owner: str) -> WorkerAnswer:
    """Keeps the GPU no more, where it is this search's."""

    def work() -> None:
        own = _own()
        if own.owner == owner:
            own.close()

    return answered(terms, work)


def _using(
    terms: Terms,
    ask: GpuAsk,
    needed: Sequence[str],
    work: Callable[[LocalGpu, WorkerStore], object],
) -> WorkerAnswer:
    def whole() -> object:
        kept = store()
        kept.need([ask.runner, *needed])
        with _own().used(ask) as gpu:
            return work(gpu, kept)

    return answered(terms, whole)


def _lying(kept: WorkerStore, one: VariantFunction) -> VariantFunction:
    """With the place where its object lies here."""
    return replace(one, library=str(kept.path(one.library)))


@dataclass(frozen=True, slots=True)
class HeldByWorker:
    """A GPU that a worker keeps for a search."""

    facts: GpuFacts
    process: str
    """The worker's, which is another one when it was started anew."""


@dataclass(frozen=True, slots=True)
class SeenByWorker:
    """The GPU of a worker, which nobody holds yet."""

    gpu: ListedGpu
    process: str


# What clients and workers of a cluster tell each other: plain data.


def said_of(worker: str, error: PolicygenError) -> WorkerAnswer:
    """A failure as it travels."""
    if isinstance(error, ProcessError):
        kind: AnswerKind = "refused" if isinstance(error, RefusedError) else "killed"
        told = (error.stderr, error.remedy, error.status)
        return WorkerAnswer(worker, kind, None, *told)
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
"""Bytes of the files of a folder; CUB's headers have 27 MB."""
LARGEST_PACKED = 64 << 20
"""Bytes that travel."""
_LEVEL = 6


# Include folders as bytes: regular files with their names, and nothing else.


def packed(folder: Path) -> bytes:
    """The files of a folder, in the order of their names; the same for the same content.

    A link counts as what it points to, which must lie in the folder: what is elsewhere on this
    machine stays there.
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
    found = zlib.compress(stream.getvalue(), _LEVEL)
    if len(found) > LARGEST_PACKED:
        raise _too_large(folder, LARGEST_PACKED)
    return found


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
    """What a link points to, below the root; no folder that it lies in itself."""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError):  # it points to nothing, or to itself
        return path
    if not found.is_relative_to(root) or folder.resolve().is_relative_to(found):
        raise InputError(
            f"{visible(str(path))} is a link to {visible(str(found))}, which is no file of its"
            " tree: it is not sent to other machines",
            "Replace the link by what it points to.",
        )
    return found


def _too_large(folder: Path, most: int) -> InputError:
    return InputError(
        f"{visible(str(folder))} has more than {most >> 20} MiB, and is not sent to other machines",
        "Name a tree that has CUB's headers alone with --cub: policygen headers fetch VERSION.",
    )


def unpack(data: bytes, place: Path) -> None:
    """Writes the files into a new folder; whatever else an archive holds is refused."""
    reader = zlib.decompressobj()
    plain = reader.decompress(data, 2 * LARGEST)
    if reader.unconsumed_tail or not reader.eof:
        raise InputError("an archive of headers is cut, or too large")
    place.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        left = len(plain)
        for member in archive:
            path = place.joinpath(*_parts(member))
            if (left := left - member.size) < 0:  # two members may share their bytes
                raise InputError("an archive of headers says more than it holds")
            path.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with path.open("xb") as file:  # a name comes once
                file.write(content.read())


def _parts(member: tarfile.TarInfo) -> tuple[str, ...]:
    parts = PurePosixPath(member.name).parts
    inside = parts and ".." not in parts and not member.name.startswith("/")
    whole = member.isreg() and not member.issparse()
    if not (whole and inside and "\0" not in member.name):
        raise InputError(f"an archive of headers holds {visible(member.name)}, which is no file")
    return parts
