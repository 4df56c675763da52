"""Finds what was made of a unit again, by the content of all files that the compiler read."""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from policygen.cache import digest, keep, kept

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


@dataclass(frozen=True, slots=True)
class Made:
    """What a compile told, and what the preprocessor left."""

    data: bytes
    preprocessed: bytes
    source: Path
    """The unit, which is part of the key; it and what lies beside it are not looked at again."""


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
