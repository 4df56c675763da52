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
from typing import Any, Literal

import policygen
from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.gpu.compiling import ObjectCompiler, ObjectSource, runtime_of
from policygen.gpu.control import controlling, worker_command
from policygen.gpu.device import LostGpuError
from policygen.gpu.machine import BusyGpuError, find_gpu
from policygen.gpu.pool import LocalGpu, RungPoint
from policygen.paths import cache_failure
from policygen.proof.compile import Listings
from policygen.proof.toolchain import find_toolchain
from policygen.untrusted import visible

SAME = (
    "All workers of a search need the same versions of policygen and nvcc as the machine that"
    " starts it."
)


class LackingError(Exception):
    """A worker lacks contents that a task needs; the arguments are their digests."""


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
            raise LackingError(*missing)

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
            raise InputError("received data does not match its digest")

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


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """Answer of a worker."""

    worker: str
    """Address of the worker."""
    kind: Literal["done", "lacks", "failed"]
    value: Any = None
    """The result, the digests of the contents that it lacks, or the error."""

    def given(self) -> Any:
        """Return the result, or raise the error with the worker's name."""
        if self.kind == "done":
            return self.value
        match self.value:
            case ProcessError() as error:
                raise replace(error, command=["nvcc"])
            case MissingToolError() as error:
                raise replace(error, tool=f"{self.worker}: {error.tool}")
            case InputError() as error:
                raise replace(error, message=f"{self.worker}: {error.message}")
            case error:
                raise InputError(f"{self.worker}: {error.in_line}")


def answered(terms: Terms, work: Callable[[], object]) -> WorkerAnswer:
    """Run a task for a client of the same release, whose results are the same."""

    def checked() -> object:
        version, nvcc = terms
        if version != policygen.__version__:
            raise InputError(f"has policygen {policygen.__version__}, not {version}", SAME)
        nvcc_version = find_toolchain().version
        if nvcc_version != nvcc:
            raise InputError(f"has nvcc {nvcc_version}, not {nvcc}", SAME)
        return work()

    return _outcome(checked)


def _outcome(work: Callable[[], object]) -> WorkerAnswer:
    """Run a task; errors become answers."""
    worker = here()
    try:
        return WorkerAnswer(worker, "done", work())
    except LackingError as error:
        return WorkerAnswer(worker, "lacks", error.args)
    except PolicygenError as error:
        return WorkerAnswer(worker, "failed", error)
    except OSError as error:
        return WorkerAnswer(worker, "failed", cache_failure(error))


def keep_part(name: str, sender: str, start: int, part: bytes, size: int) -> WorkerAnswer:
    """Store a part of a content that tasks need."""
    return _outcome(lambda: store().keep(name, sender, start, part, size))


def compile_unit(terms: Terms, source: ObjectSource) -> WorkerAnswer:
    """Return the compiled object of a unit, whose include folders are digests, as bytes."""

    def work() -> bytes:
        contents = store()
        contents.need(source.includes)
        local_source = replace(source, includes=tuple(map(contents.tree, source.includes)))
        compiler = ObjectCompiler(find_toolchain(), contents.folder / "made", contents.there)
        return compiler.make(local_source).read_bytes()

    return answered(terms, work)


IDLE = 300.0
"""Seconds without a request after which a GPU is given back."""
PROCESS = token_hex(8)
"""Identifies this process; a restarted worker has lost its state."""


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
                raise LostGpuError("its process was restarted")
            if self.gpu is not None and self.owner != ask.owner:
                raise BusyGpuError(
                    "another search is using its GPU",
                    "Wait for it: --wait SECONDS.",
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
        controller = self.stack.enter_context(controlling(command))
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
    """Return the GPU of this worker, which no search need hold, and the worker's process."""
    return answered(terms, lambda: (find_gpu(), PROCESS))


def hold_gpu(terms: Terms, ask: GpuAsk) -> WorkerAnswer:
    """Hold the GPU for a search; return its facts and the process, which a restart changes."""
    return _use_gpu(terms, ask, (), lambda gpu, _: (gpu.controller.facts, PROCESS))


def look_at_base(terms: Terms, ask: GpuAsk, points: Sequence[RungPoint], seed: int) -> WorkerAnswer:
    """Run only the baseline on runtime workloads, in a fresh process."""
    return _use_gpu(terms, ask, points, lambda gpu, local: gpu.look(local, seed))


def measure_point(
    terms: Terms,
    ask: GpuAsk,
    point: RungPoint,
    seed: int,
    fresh: bool,  # noqa: FBT001  task arguments are positional
) -> WorkerAnswer:
    """Check and measure variants on one runtime workload, optionally in a fresh process."""
    return _use_gpu(terms, ask, [point], lambda gpu, local: gpu.point(local[0], seed, fresh=fresh))


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
    points: Sequence[RungPoint],
    work: Callable[[LocalGpu, Sequence[RungPoint]], object],
) -> WorkerAnswer:
    """Run a task on the GPU with the points' objects, which were sent by digest."""

    def use() -> object:
        contents, digests = store(), [ask.runner]

        def local_path(name: str) -> str:
            digests.append(name)
            return str(contents.path(name))

        local_points = [point.relocated(local_path) for point in points]
        contents.need(digests)
        with _own_gpu().used(ask) as gpu:
            return work(gpu, local_points)

    return answered(terms, use)


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
            f"{visible(str(path))} is a link to {visible(str(target))}, which is outside of its"
            " tree, and is not sent to other machines",
            "Replace the link with the file that it points to.",
        )
    return target


def _too_large(folder: Path, most: int) -> InputError:
    return InputError(
        f"{visible(str(folder))} has more than {most >> 20} MiB and is not sent to other machines",
        "Name a tree that contains only CUB's headers with --cub, for example one from: policygen"
        " headers fetch VERSION",
    )


def unpack(data: bytes, target: Path) -> None:
    """Write the files into a new folder; refuse anything but regular files."""
    reader = zlib.decompressobj()
    try:
        archive_bytes = reader.decompress(data, 2 * LARGEST)
        if reader.unconsumed_tail or not reader.eof:
            raise tarfile.ReadError("truncated or too large")
        target.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(archive_bytes), mode="r:") as archive:
            remaining = len(archive_bytes)
            for member in archive:
                path = target.joinpath(*_parts(member))
                if (remaining := remaining - member.size) < 0:  # two members may share their bytes
                    raise InputError("an archive of headers is shorter than it declares")
                path.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                with path.open("xb") as file:  # each name may occur once
                    file.write(content.read())
    except (zlib.error, tarfile.TarError) as error:
        raise InputError(f"an archive of headers is damaged: {error}") from error


def _parts(member: tarfile.TarInfo) -> tuple[str, ...]:
    parts = PurePosixPath(member.name).parts
    is_inside = parts and ".." not in parts and not member.name.startswith("/")
    is_plain_file = member.isreg() and not member.issparse()
    if not (is_plain_file and is_inside and "\0" not in member.name):
        raise InputError(f"an archive of headers holds {visible(member.name)}, which is not a file")
    return parts
