"""Compiles translation units in parallel, each once for what it reads."""

import hashlib
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from policygen.cache import digest, keep, kept
from policygen.errors import PolicygenError, ProcessError, UnprovableError
from policygen.model.arch import arch_number
from policygen.model.trees import Cub
from policygen.paths import cache_failure, cache_folder, write_atomically
from policygen.process import ENDLESS, run, threads
from policygen.proof.toolchain import Toolchain, to_install
from policygen.proof.units import UNIT, check_unnamed, made_of, marked, new_mark
from policygen.steps import Progress, follow
from policygen.trees.files import read
from policygen.trees.layout import own_sources, tuning_headers

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


@dataclass(frozen=True, slots=True)
class Listings:
    """What include folders hold, whatever stands in it; each is looked through once.

    `__has_include` reads nothing, and answers by which files there are.
    """

    names: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, folders: Iterable[str]) -> str:
        """Names what a compile can find in folders."""
        return digest(*sorted(frozenset().union(*map(self._names, folders))))

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self.names:
            self.names[folder] = frozenset(
                f"{path.removeprefix(folder)}/{name}"
                for path, below, names in os.walk(folder)
                for name in (*below, *names)
            )
        return self.names[folder]


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


@dataclass(frozen=True, slots=True)
class Made:
    """What a compile told, and what the preprocessor left."""

    data: bytes
    preprocessed: bytes
    source: Path
    """The unit, which is part of the key; it and what lies beside it are not looked at again."""


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


READS = "reads"
LISTS = 8
"""Of files that one unit read: its headers include others in another tree."""
LARGEST = 64 << 20
"""Bytes; what a source names by `#line` and no compiler has read may have no end."""
_LISTS = TypeAdapter(list[list[str]])
_TICK = 50_000_000
"""Nanoseconds."""
# # 1 "/folder/cub/config.cuh" 1 3
_MARKER = re.compile(rb'\n# \d+ "((?:[^"\\\n]+|\\.)*)"')
# \\ and \" stand for themselves, \303 for a byte.
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class IncludeFolders:
    """Include folders as a compiler looks through them: the first that has a file gives it.

    A file is named by its place in them, so that two trees with the same headers are one.
    """

    paths: tuple[str, ...]
    seen: dict[str, str | None] = field(default_factory=dict)
    """Name → content's digest, of what was looked at."""

    def find(self, name: str) -> str | None:
        """Finds the path of a file."""
        if name.startswith(os.sep):
            return name
        places = (f"{folder}/{name}" for folder in self.paths)
        return next((path for path in places if os.path.lexists(path)), None)

    def name(self, path: str) -> str:
        """Names a file as every tree does; one that is found elsewhere keeps its path."""
        for folder in self.paths:
            if path.startswith(f"{folder}/"):
                name = path[len(folder) + 1 :]
                return name if self.find(name) == path else path
        return path

    def content(self, name: str) -> str | None:
        """Names what stands in a file, if there is one."""
        if name not in self.seen:
            path = self.find(name)
            self.seen[name] = None if path is None else file_digest(path)
        return self.seen[name]


# Finds what was made of a unit again, by the content of all files that the compiler read.


def remembered(
    kind: str, key: str, paths: Sequence[str], make: Callable[[], Made], folder: Path | None = None
) -> bytes:
    """Gives what was made for a key of files with the same content, else makes it."""
    found = IncludeFolders(tuple(paths))
    lists = _lists(key, folder)
    for names in lists:
        name = _entry(key, names, found)
        if name is not None and (known := kept(kind, name, folder)) is not None:
            return known
    made = make()
    now = IncludeFolders(tuple(paths))
    names = files(made.preprocessed, now, made.source.parent)
    # A list of nothing was not understood, and vouches for nothing.
    if names and (name := _entry(key, names, now)) is not None:
        keep(kind, name, made.data, folder)
        rest = [one for one in lists if one != names][: LISTS - 1]
        keep(READS, key, json.dumps([names, *rest]).encode(), folder)
    return made.data


def files(preprocessed: bytes, folders: IncludeFolders, own: Path) -> list[str]:
    """Lists the files that a preprocessed unit came from.

    nvcc's `-MD` would list them too, by preprocessing all a second time.
    """
    markers = set(_MARKER.findall(b"\n" + preprocessed))
    paths = [os.fsdecode(_ESCAPE.sub(_unescaped, name)) for name in markers]
    if any(map(_endless, paths)):
        return []
    # A source may say `#line 1 "/no/file"`, or "/dev/zero"; "<built-in>" is no file.
    read = {path for path in paths if path.startswith(os.sep) and file_digest(path)}
    return sorted(folders.name(path) for path in read if not path.startswith(f"{own}{os.sep}"))


def _endless(path: str) -> bool:
    """Whether a file is larger than what a compiler reads: what it did read is not known then."""
    try:
        return path.startswith(os.sep) and os.stat(path).st_size > LARGEST  # noqa: PTH116
    except OSError:
        return False


def file_digest(path: str) -> str | None:
    """Names the content of a regular file; a change of it shows in its times or its inode."""
    try:
        known = os.stat(path)  # noqa: PTH116  a thousand paths a unit
        if not stat.S_ISREG(known.st_mode):
            return None
        times = known.st_mtime_ns, known.st_ctime_ns
        # The clock of a file system ticks slowly: what is new may change without a sign of it.
        settled = time.time_ns() - max(times) > _TICK
        read = _digest if settled else _digest.__wrapped__
        return read(path, known.st_dev, known.st_ino, known.st_size, times)
    except OSError:
        return None


@lru_cache(maxsize=1 << 16)
def _digest(path: str, _device: int, _inode: int, _size: int, _times: tuple[int, int]) -> str:
    """Reads a file once, as most units read the same headers."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match[1]
    return bytes([int(text, 8)]) if len(text) == 3 else text


def _entry(key: str, names: Iterable[str], folders: IncludeFolders) -> str | None:
    """Names what was made of these files; none where one is missing."""
    parts = [key]
    for name in names:
        content = folders.content(name)
        if content is None:
            return None
        parts += [name, content]
    return digest(*parts)


def _lists(key: str, folder: Path | None) -> list[list[str]]:
    """Reads which files the unit read so far, the newest list first."""
    try:
        return _LISTS.validate_json(kept(READS, key, folder) or b"[]", strict=True)
    except ValidationError:  # what seals an entry is no secret
        return []


# Makes a copy of a library's headers in which some have other content.
#
# Headers that include each other by their place cannot be replaced by a folder before the tree.


def copied(cub: Cub, replaced: Mapping[str, bytes]) -> str:
    """Makes an include folder; the same content has the same one."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    contents = {str(path.relative_to(root)): read(path, root) for path in paths}
    places = {path.name: str(path.relative_to(root)) for path in tuning_headers(cub)}
    contents |= {places[name]: data for name, data in replaced.items()}
    name = digest(*(part for item in sorted(contents.items()) for part in item))[:32]
    folder = cache_folder() / "copied" / name
    try:
        for place, data in contents.items():
            path = folder / place
            if not path.is_file() or path.read_bytes() != data:
                write_atomically(path, data)
    except OSError as error:
        raise cache_failure(error) from error
    return str(folder)
