"""Compiles translation units in parallel, each once for what it reads."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from policygen.cache import digest
from policygen.errors import PolicygenError, ProcessError, UnprovableError
from policygen.model.arch import arch_number
from policygen.paths import cache_failure, cache_folder
from policygen.process import ENDLESS, run, threads
from policygen.proof.deps import Listings, Made, remembered
from policygen.proof.mark import UNIT, check_unnamed, made_of, marked, new_mark
from policygen.proof.toolchain import Toolchain, to_install
from policygen.steps import Progress, follow

PHASE = "asking the compiler"
FLAGS = ("-ptx", "-w")
UNITS = "units"
"""Where units are compiled, and stay when they are refused."""
Answer = TypeVar("Answer")
# /tree/cub/device/dispatch/tuning/tuning_scan.cuh(295): error: too many arguments
_ERROR = re.compile(r"^\s*(\S+)[(:](\d+)\)?(?::\d+)?: (?:fatal )?error: (.*)", re.MULTILINE)
LINES = 12
"""As much of the compiler's message as is shown."""
MEMORY = "Is there enough memory?"
SECONDS = 600.0
"""No unit takes minutes, even beside many others; a header can keep a compiler for ever."""
PIPE = "Does a header include a pipe, or itself, or compute for ever?"


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """One compile: a text, where it looks for headers, and for which architecture."""

    name: str
    identity: str
    """The same for the same text, which is made only when it is compiled."""
    text: Callable[[], str]
    includes: tuple[str, ...]
    arch: str
    std: int = 17
    """The language: C++17."""


class RefusedError(ProcessError):
    """A translation unit that does not compile: a header that is broken, or not bound rightly."""

    @property
    def first(self) -> str:
        """What the compiler says first; where it says it of a header, with its name and line."""
        found = _ERROR.search(self.stderr)
        if found is None:
            return self.stderr.strip().partition("\n")[0]
        file, line, message = found.groups()
        return f"{Path(file).name}:{line}: {message}" if not file.endswith(UNIT) else message

    @property
    def in_line(self) -> str:
        """As a reason: what the compiler says first."""
        return f"it does not compile: {self.first}"

    @property
    def has_place(self) -> bool:
        """Whether the compiler says it of a line of what it read."""
        return _ERROR.search(self.stderr) is not None


def compile_all(
    units: Sequence[TranslationUnit],
    toolchain: Toolchain,
    told: Callable[[str], str],
    *,
    writer: str,
    progress: Progress | None = None,
) -> list[str | PolicygenError]:
    """Reads what each unit's PTX tells, or says why there is none; in the order of the units.

    That is what is kept, too: PTX is long, and slow to read. What another `writer` kept is not
    taken for it.
    """
    there = Listings()
    taken = Lock()
    locks: dict[tuple[str, str, tuple[str, ...]], Lock] = {}

    def one(unit: TranslationUnit) -> str | PolicygenError:
        with taken:
            lock = locks.setdefault((unit.identity, unit.arch, unit.includes), Lock())
        with lock:  # the second of two equal units finds what the first one made
            return attempt(lambda: _compile(unit, there, toolchain, told, writer))

    with threads() as pool:
        futures = {pool.submit(one, unit): unit.name for unit in units}
        follow(futures, PHASE, progress)
        return [future.result() for future in futures]


def _compile(
    unit: TranslationUnit,
    there: Listings,
    toolchain: Toolchain,
    told: Callable[[str], str],
    writer: str,
) -> str:
    options = [f"-std=c++{unit.std}", *FLAGS, f"-arch=sm_{arch_number(unit.arch)}"]
    key = digest(toolchain.identity, writer, *options, unit.identity, there.of(unit.includes))
    paths = (*unit.includes, *toolchain.roots)
    data = remembered("probe", key, paths, lambda: _made(unit, options, toolchain, told, key))
    return data.decode()


def _made(
    unit: TranslationUnit,
    options: Sequence[str],
    toolchain: Toolchain,
    told: Callable[[str], str],
    key: str,
) -> Made:
    mark, cache = new_mark(), cache_folder()
    with unit_file(marked(unit.text(), mark), cache) as source:
        folder, made = source.parent, source.with_suffix(".ptx")
        command = [str(toolchain.nvcc), *options, *(f"-I{i}" for i in unit.includes)]
        compile_file(command, source, made, cache, key, "--keep", "--keep-dir", str(folder))
        preprocessed = b"".join(path.read_bytes() for path in folder.glob("*.ii"))
        check_unnamed(preprocessed, source)
        # The mark is another one each time; the answer is not.
        ptx = made_of(made, mark).decode().replace(mark, "policygen_unit")
        return Made(told(ptx).encode(), preprocessed, source)


def attempt(make: Callable[[], Answer]) -> Answer | PolicygenError:
    """Gives what is made, or why it is not: one failure must not end the others."""
    try:
        return make()
    except UnprovableError:
        raise  # no answer of this tree is worth anything
    except PolicygenError as error:
        return error
    except OSError as error:
        return cache_failure(error)


@contextmanager
def unit_file(text: str, cache: Path) -> Iterator[Path]:
    """Writes a unit into a folder of its own; what a stopped compiler leaves there goes with it.

    Another process may compile the same unit at the same time.
    """
    with folder_of_its_own(cache) as folder:
        path = folder / UNIT
        path.write_bytes(text.encode())
        yield path


@contextmanager
def folder_of_its_own(cache: Path) -> Iterator[Path]:
    """Makes a folder that is gone afterwards."""
    units = cache / UNITS
    units.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=units) as temporary:
        yield Path(temporary)


def compile_file(
    command: Sequence[str],
    source: Path,
    made: Path,
    cache: Path,
    key: str,
    *more: str,
    install: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Runs a compiler, nvcc or one that `install` names; a unit that it refuses stays in the cache.

    `variables` are added to what it is told of the environment.
    """
    try:
        arguments = [*command, *more, "-o", str(made), str(source)]
        told = install or to_install()
        run(arguments, folder=source.parent, limit=SECONDS, install=told, more=variables)
    except ProcessError as error:
        raise _failure(error, source, cache / UNITS / f"{key[:32]}.cu", command) from error


def _failure(error: ProcessError, source: Path, kept: Path, command: Sequence[str]) -> ProcessError:
    """Words a failure; the unit stays, so that the command can be repeated.

    A compiler that was killed says nothing of the unit.
    """
    if error.status < 0:
        endless = error.stderr.startswith(ENDLESS)
        words, remedy = (error.stderr, PIPE) if endless else ("it was killed", MEMORY)
        return ProcessError([*command, str(source)], error.status, words, remedy)
    shown = shlex.join([*command, "-o", os.devnull, str(source.replace(kept))])
    return RefusedError([shown], error.status, _shortened(error.stderr))


def _shortened(stderr: str) -> str:
    """Keeps the first errors, without the chains of templates that they were found in."""
    # tuning_scan.cuh(295): error: …
    lines = stderr.strip().splitlines()
    start = next((i for i, line in enumerate(lines) if re.search(r"\berror\b", line)), 0)
    kept = lines[start : start + LINES]
    if left := len(lines) - start - len(kept):
        kept.append(f"… and {left} more lines")
    return "\n".join(kept)
