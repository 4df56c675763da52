"""Which files may be replaced: those that policygen made, by what they hold."""

import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from policygen import cache
from policygen.errors import InputError
from policygen.paths import write_atomically

MAKER = "policygen"
"""What plots and tables name as the program that made them."""
_ENDS = 1 << 16
"""As many bytes of each end of a file are looked at."""
SQLITE = b"SQLite format 3\0"
_MARKS = tuple(
    re.compile(mark, re.DOTALL)
    for mark in (
        # {"format": "policygen/plan/2", as it is indented or not
        rb'\s*\{\s*"format": ?"policygen/[a-z-]+/\d+"',
        # // Made by policygen 0.9; make it again rather than edit it.
        rb"// Made by policygen ",
        # # 2 tuning entries in 1 header
        #
        # tree: CUB 3.0.1 (specializations), …; compiler: nvcc 13.2
        rb"# [^\n]+\n\ntree: CUB [^\n]+; compiler: ",
        rb'<!doctype html>.*<meta name="generator" content="policygen">',
        rb"<\?xml [^\n]+\n<!DOCTYPE svg .*<dc:title>policygen</dc:title>",
        rb"\x89PNG\r\n.*tEXtSoftware\0policygen",
        rb"PAR1.*policygen.*PAR1\Z",
        # CUB 3.0.1 (specializations), cub_headers/3.0.1 [--cub]
        rb"CUB [\d.]+ \((?:specializations|selectors)\), [^\n]+ \[",
        # tree         CUB 3.0.1 (specializations),
        rb"tree +CUB [\d.]+ \((?:specializations|selectors)\),\s",
        # policygen 0.1.0, from a clone
        rb"policygen [\w.]+, (?:from a clone|installed as a package)\n\n",
        rb"benchmark,workload,arch,status,since,header,line,reason,score,variant\r?\n",
        rb"database,algorithm,subbench,gpu,ctk,cccl,variant,",
        # # cub.bench.scan.exclusive.sum T=I8 on sm90: DeviceScanKernel
        # # 12 instructions differ
        rb"# [^\n]+ on sm\d+: [^\n]+\n# ",
    )
)


def is_ours(path: Path) -> bool:
    """Whether a file says that policygen made it, so that it can be made again; so does none."""
    data = _ends(path)
    return not data or any(mark.match(data) for mark in _MARKS)


def check_free(path: Path, *, force: bool = False, ours: bool = True) -> None:
    """An error where something stands that would be lost; with `ours` what we made may go."""
    if path.is_dir():
        raise InputError(f"{path}: a folder stands there")
    if not path.exists() or is_stream(path):
        return
    if ours and _ends(path).startswith(SQLITE):
        raise InputError(f"{path}: is a database, which no text replaces", "Name another file.")
    if force:
        return
    if not ours:
        raise InputError(f"{path}: exists already", "Choose another name, or use --force.")
    if not is_ours(path):
        raise InputError(
            f"{path}: exists already, and is no file that policygen made",
            "Choose another name, or use --force.",
        )


def is_stream(path: Path) -> bool:
    """Whether what stands there is written to and not replaced, as a terminal or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_output(path: Path, data: bytes, *, force: bool = False) -> None:
    """Writes a whole file or nothing; what others made stays, where it is not forced."""
    try:
        same = path.is_file() and path.read_bytes() == data
        if not same:
            check_free(path, force=force)
        if is_stream(path):
            with path.open("wb") as stream:
                stream.write(data)
        elif not same:
            write_atomically(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _ends(path: Path) -> bytes:
    """The beginning of a file, and its end where that is another part."""
    try:
        with path.open("rb") as file:
            first = file.read(_ENDS)
            size = file.seek(0, 2)
            file.seek(max(len(first), size - _ENDS))
            return first + file.read(_ENDS)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


_KIND = "stores"
_PATIENCE = 2.0
"""Seconds that somebody who only looks waits for a writer."""


# Which stores were made here: one that merely lies in the current folder may be a stranger's.


def remember(path: Path, token: str) -> None:
    """Notes that a store was made by this user; without a cache it must be named each time."""
    with suppress(OSError):
        cache.keep(_KIND, _key(path, token), b"")


def is_own(path: Path) -> bool:
    """Whether a store was made by this user, in this place."""
    # Of a commit that was killed only who may write can see what counts.
    token = _token(path, "ro") or _token(path, "rw")
    return bool(token) and cache.kept(_KIND, _key(path, token)) is not None


def opened(path: Path, mode: str) -> closing[sqlite3.Connection]:
    """A store that is there, to look into; none is made."""
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return closing(sqlite3.connect(address, _PATIENCE, uri=True))


def _token(path: Path, mode: str) -> str:
    """What no other store has; none for what is no store, or one of before there were any."""
    try:
        with opened(path, mode) as connection:
            return str(connection.execute("SELECT token FROM made").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError):
        return ""


def _key(path: Path, token: str) -> str:
    return cache.digest(str(path.resolve()), token)
