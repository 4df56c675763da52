"""Translation units to what their PTX tells, in parallel, each compiled once for what it reads."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from policygen.cache import digest
from policygen.errors import PolicygenError, ProcessError, UnprovableError
from policygen.model.arch import arch_number
from policygen.paths import cache_failure, cache_folder
from policygen.process import ENDLESS, run, threads
from policygen.proof.deps import Made, remembered
from policygen.proof.mark import UNIT, check_unnamed, made_of, marked, new_mark
from policygen.proof.toolchain import REMEDY, Toolchain

Progress = Callable[[int, int, str], None]
FLAGS = ("-ptx", "-w")
UNITS = "units"
"""Where units are compiled, and stay when they are refused."""
LINES = 12
"""As much of the compiler's message as is shown."""
MEMORY = "Is there enough memory?"
SECONDS = 1200.0
"""No unit takes minutes, even beside many others; a header can keep a compiler for ever."""
PIPE = "Does a header include a pipe, or itself, or compute for ever?"


@dataclass(frozen=True, slots=True)
class Unit:
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


def compile_all(
    units: Sequence[Unit],
    toolchain: Toolchain,
    told: Callable[[str], str],
    *,
    writer: str,
    progress: Progress | None = None,
) -> list[str | PolicygenError]:
    """What each unit's PTX tells, or why there is none; in the order of the units.

    That is what is kept, too: PTX is long, and slow to read. What another `writer` kept is not
    taken for it.
    """
    results: list[str | PolicygenError] = []
    taken = Lock()
    locks: dict[tuple[str, str, tuple[str, ...]], Lock] = {}

    def one(unit: Unit) -> str | PolicygenError:
        with taken:
            lock = locks.setdefault((unit.identity, unit.arch, unit.includes), Lock())
        with lock:  # the second of two equal units finds what the first one made
            try:
                return _compile(unit, toolchain, told, writer)
            except UnprovableError:
                raise  # no answer of this tree is worth anything
            except PolicygenError as error:
                return error

    with threads() as pool:
        for index, (unit, result) in enumerate(zip(units, pool.map(one, units), strict=True)):
            results.append(result)
            if progress:
                progress(index + 1, len(units), unit.name)
    return results


def _compile(unit: Unit, toolchain: Toolchain, told: Callable[[str], str], writer: str) -> str:
    options = [f"-std=c++{unit.std}", *FLAGS, f"-arch=sm_{arch_number(unit.arch)}"]
    key = digest(toolchain.identity, writer, *options, unit.identity)
    paths = (*unit.includes, *toolchain.roots)
    data = remembered("probe", key, paths, lambda: _made(unit, options, toolchain, told, key))
    return data.decode()


def _made(
    unit: Unit, options: Sequence[str], toolchain: Toolchain, told: Callable[[str], str], key: str
) -> Made:
    folder = cache_folder() / UNITS
    # A folder of its own: another process may compile the same unit at the same time.
    with _writable(folder), TemporaryDirectory(dir=folder) as temporary:
        source, made = Path(temporary) / UNIT, Path(temporary) / "main.ptx"
        mark = new_mark()
        source.write_text(marked(unit.text(), mark))
        command = [str(toolchain.nvcc), *options, *(f"-I{i}" for i in unit.includes)]
        try:
            outputs = ["--keep", "--keep-dir", temporary, "-o", str(made)]
            arguments = [*command, *outputs, str(source)]
            run(arguments, folder=Path(temporary), limit=SECONDS, install=REMEDY)
        except ProcessError as error:
            raise compile_failure(error, source, folder / f"{key[:32]}.cu", command) from error
        preprocessed = b"".join(path.read_bytes() for path in Path(temporary).glob("*.ii"))
        check_unnamed(preprocessed, source)
        # The mark is another one each time; the answer is not.
        ptx = made_of(made, mark).decode().replace(mark, "policygen_unit")
        return Made(told(ptx).encode(), preprocessed, source)


def compile_failure(
    error: ProcessError, source: Path, kept: Path, command: Sequence[str]
) -> ProcessError:
    """What to tell of a unit that does not compile: it stays, so that the command can be repeated.

    A compiler that was killed says nothing of the unit.
    """
    if error.status < 0:
        endless = error.stderr.startswith(ENDLESS)
        words, remedy = (error.stderr, PIPE) if endless else ("it was killed", MEMORY)
        return ProcessError([*command, str(source)], error.status, words, remedy)
    shown = shlex.join([*command, "-o", os.devnull, str(source.replace(kept))])
    return RefusedError([shown], error.status, _shortened(error.stderr))


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """The compiler writes to the cache's folder, so that it must be there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise cache_failure(error) from error


def _shortened(stderr: str) -> str:
    """The first errors, without the chains of templates that they were found in."""
    # tuning_scan.cuh(295): error: …
    lines = stderr.strip().splitlines()
    start = next((i for i, line in enumerate(lines) if re.search(r"\berror\b", line)), 0)
    kept = lines[start : start + LINES]
    if left := len(lines) - start - len(kept):
        kept.append(f"… and {left} more lines")
    return "\n".join(kept)
