"""The one way in which a stranger's file is read: regular, not too large, inside of its tree.

A link in a tree could lead to a secret, which an error would then quote, or to a device or a pipe
that never ends. A document is measured before it is parsed: parsers take many times its size, and
some of them take quadratic time or a call for each level.
"""

import errno
import os
import re
import stat
from pathlib import Path

from policygen.errors import InputError

MAX_BYTES = 8 << 20
"""No source file of CUB comes near; a larger file is not one."""
DOCUMENT = 32 << 20
"""Bytes of a document, such as a plan, a review or NVBench's JSON; those of whole trees have a few
megabytes."""
DEPTH = 64
"""Levels of lists, objects and dotted keys; documents of policygen have fewer than twenty."""
_PER_VALUE = 32
"""Bytes that a value of a document has at least, on average, in one of the largest size."""
# Texts and comments of JSON and TOML, up to the end of the document where one is not closed
_TEXT = re.compile(
    rb"""(?s)"{3}(?:[^"\\]++|\\.|"(?!""))*(?:"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)"""
    rb"""|"(?:[^"\\\n]++|\\.)*"?|'[^'\n]*+'?|\#[^\n]*+"""
)
_DOTTED = re.compile(rb"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){%d}" % DEPTH)
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class NotOpenedError(Exception):
    """Why a file is not read, and what can be done about it."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def read_inside(root: Path, path: Path, most: int | None = None) -> bytes:
    """The bytes of a file of the tree at `root`; both may be named through links of the user's."""
    remedy = "It is no source file of CUB." if most is None else None
    return _bounded(_open(root, path), MAX_BYTES if most is None else most, remedy)


def read_named(path: Path, most: int = DOCUMENT) -> bytes:
    """The bytes of a file that the user names; links are followed, pipes and devices refused."""
    try:
        _check_kind(path.stat().st_mode, "Name a file: pipes and devices are none.")
        return _bounded(os.open(path, _READ), most)
    except NotOpenedError as error:
        raise InputError(f"{path}: {error.reason}", error.remedy) from error


def read_document(path: Path, most: int = DOCUMENT) -> bytes:
    """The same of a document of JSON or TOML, with no more in it than a parser can take."""
    data = read_named(path, most)
    bare = _TEXT.sub(b"x", data)
    values = bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > (largest := most // _PER_VALUE):
        raise InputError(f"{path}: {values:,} values: more than the limit of {largest:,}")
    if _is_deep(bare) or _DOTTED.search(bare):
        raise InputError(f"{path}: nested more deeply than the limit of {DEPTH} levels")
    return data


def plain_file(folder: Path, name: str) -> Path | None:
    """A regular file below a folder, or none; an error where a link stands in the way."""
    path = folder
    for part in Path(name).parts:
        path /= part
        if path.is_symlink():
            raise NotOpenedError(f"{name} is a symbolic link", "Put the file itself there.")
    return path if path.is_file() else None


def _is_deep(bare: bytes) -> bool:
    """Whether more lists or objects are open at once than a parser shall see."""
    depth = 0
    for bracket in bare.translate(_AS_LISTS, _NO_BRACKETS):
        depth += 1 if bracket == ord("[") else -1
        if not 0 <= depth <= DEPTH:  # what closes nothing is no document, which its parser tells
            return depth > DEPTH
    return False


def _bounded(descriptor: int, most: int, remedy: str | None = None) -> bytes:
    """All of a regular file that was opened, and is closed."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check_kind(status.st_mode)
        data = file.read(most + 1) if status.st_size <= most else None
    if data is not None and len(data) <= most:  # else it grew, or its size is not told
        return data
    size = f"{max(status.st_size, most + 1):,} bytes"
    limit = f"{most >> 20} MiB" if most >> 20 else f"{most:,} bytes"
    raise NotOpenedError(f"{size}: larger than the limit of {limit}", remedy)


def contained(root: Path, path: Path) -> Path:
    """Where a file of a tree really is; an error where a link leads out of the tree."""
    top = os.path.realpath(root)
    try:
        found = Path(os.path.realpath(path, strict=True))
    except (FileNotFoundError, NotADirectoryError):
        found = Path(os.path.realpath(path))
    if found.is_relative_to(top):
        return found
    named = Path(os.path.abspath(path))  # noqa: PTH100  links stay as they are named
    linked = any(named.is_relative_to(base) for base in (top, os.path.abspath(root)))  # noqa: PTH100
    how = "a link leads out of the tree" if linked else "it lies outside of the tree"
    raise NotOpenedError(
        f"{how} {top}", "Put the file itself there, or name the tree that it belongs to."
    )


def _open(root: Path, path: Path) -> int:
    """Walks down from the root of the tree: what became a link since it was resolved is refused."""
    top = os.path.realpath(root)
    *folders, name = contained(root, path).relative_to(top).parts or (".",)
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=at)
            os.close(at)
            at = inner
        # Opening a device can do something by itself.
        _check_kind(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
        return os.open(name, _READ | _NO_LINK, dir_fd=at)
    finally:
        os.close(at)


_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


def _check_kind(mode: int, remedy: str | None = None) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise NotOpenedError("not a regular file", remedy)
