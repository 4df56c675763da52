"""What the workers of a cluster do: keep what is sent to them, and compile.

Each function is a task. It runs in a worker's process, has plain data, and answers with such.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock

import policygen
from policygen.cache import digest
from policygen.errors import InputError, PolicygenError
from policygen.measure.objects import ObjectCompiler, ObjectSource
from policygen.paths import cache_failure
from policygen.proof.deps import Listings
from policygen.proof.toolchain import find_toolchain
from policygen.search.cluster.answers import Terms, UnitAsk, WorkerAnswer, said_of
from policygen.search.cluster.archives import unpack

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


def compile_unit(terms: Terms, ask: UnitAsk) -> WorkerAnswer:
    """An object, as bytes."""

    def work() -> bytes:
        kept = store()
        kept.need(ask.trees)
        source = ObjectSource(ask.text, tuple(map(kept.tree, ask.trees)), ask.arch)
        compiler = ObjectCompiler(find_toolchain(), kept.folder / "made", kept.there)
        return compiler.make(source).read_bytes()

    return answered(terms, work)
