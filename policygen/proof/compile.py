"""Compiles translation units in parallel, with a cache keyed by the files that each reads."""

import hashlib
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from policygen.paths import cache_failure, cache_folder
from policygen.process import ENDLESS, run, threads
from policygen.proof.toolchain import Toolchain, to_install
from policygen.proof.units import UNIT, check_unnamed, include_folder, made_of, marked, new_mark
from policygen.steps import Progress, follow
from policygen.trees.files import read
from policygen.trees.layout import own_sources, tuning_headers

PHASE = "asking the compiler"
FLAGS = ("-ptx", "-w")
UNITS = "units"
"""The cache folder in which units are compiled, and in which refused ones stay."""
Answer = TypeVar("Answer")
Batch = TypeVar("Batch")
"""What one unit asks."""
# /tree/cub/device/dispatch/tuning/tuning_scan.cuh(295): error: too many arguments
_ERROR = re.compile(r"^\s*(\S+)[(:](\d+)\)?(?::\d+)?: (?:fatal )?error: (.*)", re.MULTILINE)
# identifier "scal" is undefined
_QUOTED = re.compile(r'"(?:\w+::)*(\w+)"')
LINES = 12
"""The number of lines to show of a compiler's message."""
MEMORY = "Is there enough memory?"
SECONDS = 600.0
"""No unit takes minutes, even on a busy machine, but a header can make a compiler loop forever."""
PIPE = (
    "Check whether a header includes a pipe or itself, or evaluates an endless constant expression."
)


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """One compile: a text, its include folders, and the target architecture."""

    name: str
    identity: str
    """Identifies the text, which is rendered only if it has to be compiled."""
    text: Callable[[], str]
    includes: tuple[str, ...]
    arch: str
    std: int = 17
    """The C++ standard."""


class RefusedError(ProcessError):
    """A translation unit that does not compile, because of a broken header or a wrong binding."""

    @property
    def first(self) -> str:
        """The compiler's first message, with the header's name and line if it concerns a header."""
        match = _ERROR.search(self.stderr)
        if match is None:
            return self.stderr.strip().partition("\n")[0]
        file, line, message = match.groups()
        return message if _is_unit(file) else f"{Path(file).name}:{line}: {message}"

    @property
    def in_line(self) -> str:
        """The first message as a reason."""
        return f"it does not compile: {self.first}"

    @property
    def has_place(self) -> bool:
        """Whether the compiler's message names a source line."""
        return _ERROR.search(self.stderr) is not None

    def in_own_file(self, own: Path) -> "RefusedError":
        """Returns the error with the line of the user's file that is at fault, if one is.

        `own` describes a kernel or a workload, and the unit repeats its text. The compiler quotes
        what is wrong in it, and shows the line of a source beside it.
        """
        match = _ERROR.search(self.stderr)
        if match is None:
            return self
        file, line, message = match.groups()
        if _is_unit(file):
            rows = own.read_text(encoding="utf-8").splitlines()
            names = [re.compile(rf"\b{re.escape(name)}\b") for name in _QUOTED.findall(message)]
            numbers = (
                number
                for number, row in enumerate(rows, 1)
                if any(name.search(row.partition("#")[0]) for name in names)
            )
            number = next(numbers, 0)
            if not number:
                return self
            file, line, text = str(own), str(number), rows[number - 1]
        elif Path(file).is_relative_to(own.resolve().parent):
            text = self.stderr[match.end() :].lstrip("\n").partition("\n")[0]
        else:
            return self
        shown = f"{file}({line}): error: {message}: {text.strip()}"
        stderr = f"{shown}{self.stderr[match.end() :]}"
        return RefusedError(self.command, self.status, stderr, self.remedy)


def _is_unit(file: str) -> bool:
    """Whether a compiler's message is about a unit of policygen, not about a header or a kernel."""
    path = Path(file)
    return path.name == UNIT and path.parent.parent.name in {"", UNITS}


def compile_all(
    units: Sequence[TranslationUnit],
    toolchain: Toolchain,
    read_ptx: Callable[[str], str],
    *,
    writer: str,
    progress: Progress | None = None,
) -> list[str | PolicygenError]:
    """Compiles units; returns what `read_ptx` extracts from each PTX, or the error, in their order.

    Only the extracted text is cached, as PTX is long and slow to read. An entry that another
    `writer` cached is not used.
    """
    listings = Listings()
    locks = {(unit.identity, unit.arch, unit.includes): Lock() for unit in units}

    def compile_once(unit: TranslationUnit) -> str | PolicygenError:
        # The second of two equal units uses the first one's cache entry.
        with locks[unit.identity, unit.arch, unit.includes]:
            return attempt(lambda: _compile(unit, listings, toolchain, read_ptx, writer))

    with threads() as pool:
        futures = {pool.submit(compile_once, unit): unit.name for unit in units}
        follow(futures, PHASE, progress)
        return [future.result() for future in futures]


def compile_divided(
    batches: Sequence[Batch],
    unit_of: Callable[[Batch], TranslationUnit],
    divide: Callable[[Batch], Sequence[Batch]],
    toolchain: Toolchain,
    read_ptx: Callable[[str], str],
    *,
    writer: str,
    progress: Progress | None = None,
) -> Iterator[tuple[Batch, str | PolicygenError]]:
    """Compiles a unit for each batch like `compile_all`; a batch that is refused is divided.

    So a broken header or benchmark does not affect the others.
    """
    while batches:
        units = [unit_of(batch) for batch in batches]
        results = compile_all(units, toolchain, read_ptx, writer=writer, progress=progress)
        smaller: list[Batch] = []
        for batch, result in zip(batches, results, strict=True):
            parts = divide(batch) if isinstance(result, RefusedError) else ()
            smaller += parts
            if not parts:
                yield batch, result
        batches = smaller


@dataclass(frozen=True, slots=True)
class Listings:
    """The file names in include folders; each folder is listed once.

    They belong to the cache key because `__has_include` depends on names but reads no file.
    """

    names: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, folders: Iterable[str]) -> str:
        """Returns a digest of the file names below some folders."""
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
    listings: Listings,
    toolchain: Toolchain,
    read_ptx: Callable[[str], str],
    writer: str,
) -> str:
    options = [f"-std=c++{unit.std}", *FLAGS, f"-arch=sm_{arch_number(unit.arch)}"]
    key = digest(toolchain.identity, writer, *options, unit.identity, listings.of(unit.includes))

    def make() -> Made:
        mark, cache = new_mark(), cache_folder()
        with unit_file(marked(unit.text(), mark), cache) as source:
            folder, output = source.parent, source.with_suffix(".ptx")
            command = [str(toolchain.nvcc), *options, *(f"-I{path}" for path in unit.includes)]
            compile_file(command, source, output, cache, key, "--keep", "--keep-dir", str(folder))
            preprocessed = b"".join(path.read_bytes() for path in folder.glob("*.ii"))
            check_unnamed(preprocessed, source)
            # The mark differs each time; the answer must not.
            ptx = made_of(output, mark).decode().replace(mark, "policygen_unit")
            return Made(read_ptx(ptx).encode(), preprocessed, source)

    return remembered("probe", key, (*unit.includes, *toolchain.roots), make).decode()


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a compile, and the preprocessor's output."""

    data: bytes
    preprocessed: bytes
    source: Path
    """The unit. It is part of the key, so its folder is left out of the list of files read."""


def attempt(make: Callable[[], Answer]) -> Answer | PolicygenError:
    """Returns the result or the error, so that one failure does not end the others."""
    try:
        return make()
    except UnprovableError:
        raise  # no answer about this tree can be trusted
    except PolicygenError as error:
        return error
    except OSError as error:
        return cache_failure(error)


@contextmanager
def unit_file(text: str, cache: Path) -> Iterator[Path]:
    """Writes a unit into a temporary folder, which also removes what a stopped compiler leaves.

    Another process may compile the same unit at the same time.
    """
    with folder_of_its_own(cache) as folder:
        path = folder / UNIT
        path.write_bytes(text.encode())
        yield path


@contextmanager
def folder_of_its_own(cache: Path) -> Iterator[Path]:
    """Makes a temporary folder."""
    units = cache / UNITS
    units.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=units) as temporary:
        yield Path(temporary)


def compile_file(
    command: Sequence[str],
    source: Path,
    output: Path,
    cache: Path,
    key: str,
    *extra: str,
    install: str | None = None,
) -> None:
    """Runs nvcc or another compiler; a refused unit stays in the cache.

    `install` is the remedy if the compiler is missing.
    """
    try:
        arguments = [*command, *extra, "-o", str(output), str(source)]
        run(arguments, folder=source.parent, limit=SECONDS, install=install or to_install())
    except ProcessError as error:
        raise _failure(error, source, cache / UNITS / f"{key[:32]}.cu", command) from error


def _failure(
    error: ProcessError, source: Path, saved: Path, command: Sequence[str]
) -> ProcessError:
    """Describes a failure; the unit is saved so that the command can be repeated.

    A compiler that was killed says nothing about the unit.
    """
    if error.status < 0:
        is_endless = error.stderr.startswith(ENDLESS)
        words, remedy = (error.stderr, PIPE) if is_endless else ("it was killed", MEMORY)
        return ProcessError([*command, str(source)], error.status, words, remedy)
    shown = shlex.join([*command, "-o", os.devnull, str(source.replace(saved))])
    return RefusedError([shown], error.status, _shorten(error.stderr))


def _shorten(stderr: str) -> str:
    """Keeps the first errors, without the template instantiation notes before them."""
    # tuning_scan.cuh(295): error: …
    lines = stderr.strip().splitlines()
    start = next((index for index, line in enumerate(lines) if re.search(r"\berror\b", line)), 0)
    shown = lines[start : start + LINES]
    if omitted := len(lines) - start - len(shown):
        shown.append(f"… and {omitted} more lines")
    return "\n".join(shown)


READS = "reads"
LISTS = 8
"""Number of file lists to keep per unit: its headers may include others in another tree."""
LARGEST = 64 << 20
"""Bytes. A file that a source names by `#line` was perhaps never read, and may be endless."""
_LISTS = TypeAdapter(list[list[str]])
_CLOCK_GRANULARITY = 50_000_000
"""Nanoseconds."""
# # 1 "/folder/cub/config.cuh" 1 3
_MARKER = re.compile(rb'\n# \d+ "((?:[^"\\\n]+|\\.)*)"')
# \\ and \" are escaped characters, \303 is a byte.
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class IncludeFolders:
    """Include folders, searched like a compiler does: the first that has a file provides it.

    Files are named relative to the folders, so that two trees with the same headers share a key.
    """

    paths: tuple[str, ...]
    seen: dict[str, str | None] = field(default_factory=dict)
    """Cache of name → content digest."""

    def find(self, name: str) -> str | None:
        """Finds the path of a file."""
        if name.startswith(os.sep):
            return name
        candidates = (f"{folder}/{name}" for folder in self.paths)
        return next((path for path in candidates if os.path.lexists(path)), None)

    def name(self, path: str) -> str:
        """Names a file relative to the folders, or by its path if they do not provide it."""
        for folder in self.paths:
            if path.startswith(f"{folder}/"):
                name = path[len(folder) + 1 :]
                return name if self.find(name) == path else path
        return path

    def content(self, name: str) -> str | None:
        """Returns the digest of a file's content; None if there is no file."""
        if name not in self.seen:
            path = self.find(name)
            self.seen[name] = None if path is None else file_digest(path)
        return self.seen[name]


# Caches results by the content of all files that the compiler read.


def remembered(
    kind: str, key: str, paths: Sequence[str], make: Callable[[], Made], folder: Path | None = None
) -> bytes:
    """Returns the cached result for a key if all files are unchanged, or else makes it."""
    folders = IncludeFolders(tuple(paths))
    lists: list[list[str]] = []  # of files that the unit read so far, the newest first
    with suppress(ValidationError):  # the seal on a cache entry is not a secret
        lists = _LISTS.validate_json(kept(READS, key, folder) or b"[]", strict=True)
    for names in lists:
        name = _cache_key(key, names, folders)
        if name is not None and (data := kept(kind, name, folder)) is not None:
            return data
    fresh = make()
    current = IncludeFolders(tuple(paths))
    names = files(fresh.preprocessed, current, fresh.source.parent)
    # An empty list means that the markers were not understood, so do not cache.
    if names and (name := _cache_key(key, names, current)) is not None:
        keep(kind, name, fresh.data, folder)
        older = [other for other in lists if other != names][: LISTS - 1]
        keep(READS, key, json.dumps([names, *older]).encode(), folder)
    return fresh.data


def files(preprocessed: bytes, folders: IncludeFolders, own: Path) -> list[str]:
    """Lists the files that a preprocessed unit came from.

    nvcc's `-MD` would list them, too, but would preprocess everything a second time.
    """
    markers = set(_MARKER.findall(b"\n" + preprocessed))
    paths = [os.fsdecode(_ESCAPE.sub(_unescape, name)) for name in markers]
    if any(map(_endless, paths)):
        return []
    # A source may contain `#line 1 "/no/file"`, or "/dev/zero"; "<built-in>" is not a file.
    read = {path for path in paths if path.startswith(os.sep) and file_digest(path)}
    return sorted(folders.name(path) for path in read if not path.startswith(f"{own}{os.sep}"))


def _endless(path: str) -> bool:
    """Whether a file is too large for a compiler to have read it: the list is then unreliable."""
    try:
        return path.startswith(os.sep) and os.stat(path).st_size > LARGEST  # noqa: PTH116
    except OSError:
        return False


def file_digest(path: str) -> str | None:
    """Returns the digest of a regular file; a change shows in its times or its inode."""
    try:
        status = os.stat(path)  # noqa: PTH116  a thousand paths per unit
        if not stat.S_ISREG(status.st_mode):
            return None
        times = status.st_mtime_ns, status.st_ctime_ns
        # File times are coarse: do not cache the digest of a file that has just changed.
        settled = time.time_ns() - max(times) > _CLOCK_GRANULARITY
        read_digest = _digest if settled else _digest.__wrapped__
        return read_digest(path, status.st_dev, status.st_ino, status.st_size, times)
    except OSError:
        return None


@lru_cache(maxsize=1 << 16)
def _digest(path: str, _device: int, _inode: int, _size: int, _times: tuple[int, int]) -> str:
    """Reads each file once, as most units read the same headers."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _unescape(match: re.Match[bytes]) -> bytes:
    text = match[1]
    return bytes([int(text, 8)]) if len(text) == 3 else text


def _cache_key(key: str, names: Iterable[str], folders: IncludeFolders) -> str | None:
    """Returns the cache key for the content of these files; None if one is missing."""
    parts = [key]
    for name in names:
        content = folders.content(name)
        if content is None:
            return None
        parts += [name, content]
    return digest(*parts)


# Copies a library's headers with replacements.
#
# Headers that include each other by relative path cannot be overridden by an earlier folder.


def copied(cub: Cub, replaced: Mapping[str, bytes]) -> str:
    """Makes an include folder with them."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    contents = {str(path.relative_to(root)): read(path, root) for path in paths}
    paths_by_name = {path.name: str(path.relative_to(root)) for path in tuning_headers(cub)}
    contents |= {paths_by_name[name]: data for name, data in replaced.items()}
    return include_folder("copied", contents)
