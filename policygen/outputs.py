"""Decides which files may be replaced: those whose contents show that policygen made them."""

import re
import shlex
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from policygen import cache
from policygen.errors import InputError
from policygen.opening import SQLITE
from policygen.paths import write_atomically

MAKER = "policygen"
"""The program name in generated plots and tables."""
_END_BYTES = 1 << 16
"""Number of bytes to inspect at each end of a file."""
_MARKS = tuple(
    re.compile(mark, re.DOTALL)
    for mark in (
        # {"format": "policygen/plan/2", indented or not
        rb'\s*\{\s*"format": ?"policygen/[a-z-]+/\d+"',
        # // Made by policygen 0.9; make it again rather than edit it.
        rb"(?://|#|<!--) Made by policygen ",
        # # 2 tuning entries in 1 header
        #
        # tree: CUB 3.0.1 (specializations), …; compiler: nvcc 13.2
        rb"# [^\n]+\n\ntree: CUB [^\n]+; compiler: ",
        rb'<!doctype html>.*<meta name="generator" content="policygen">',
        rb"<\?xml [^\n]+\n<(?:!DOCTYPE )?svg .*<dc:title>policygen</dc:title>",
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
    """Returns whether a file's contents show that policygen made it, or it is empty."""
    data = _ends(path)
    return not data or any(mark.match(data) for mark in _MARKS)


def check_free(path: Path, *, force: bool = False, ours: bool = True) -> None:
    """Raises if a file would be lost; with `ours`, generated files may be replaced."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder")
    if not path.exists() or is_stream(path):
        return
    if ours and _ends(path).startswith(SQLITE):
        raise InputError(
            f"{path}: is a database and is not overwritten with text", "Name another file."
        )
    if force:
        return
    if not ours:
        raise InputError(f"{path}: exists already", "Choose another name, or use --force.")
    if not is_ours(path):
        raise InputError(
            f"{path}: exists already and was not written by policygen",
            "Choose another name, or use --force.",
        )


def check_folder(path: Path) -> None:
    """Raises if the folder of a file to write is missing: no folder is made by a typing error."""
    folder = path.absolute().parent
    if not folder.exists():
        raise InputError(
            f"cannot write {path}: there is no folder {folder}",
            f"Make it first: mkdir -p {shlex.quote(str(folder))}",
        )


def is_stream(path: Path) -> bool:
    """Returns whether a path is written to rather than replaced, such as a terminal or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_output(path: Path, data: bytes, *, force: bool = False) -> None:
    """Writes a file atomically; files from other programs are only replaced if forced."""
    try:
        is_unchanged = path.is_file() and path.read_bytes() == data
        if not is_unchanged:
            check_free(path, force=force)
        if is_stream(path):
            with path.open("wb") as stream:
                stream.write(data)
        elif not is_unchanged:
            write_atomically(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _ends(path: Path) -> bytes:
    """Returns the beginning of a file, and its end if that is not included."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_END_BYTES)
            size = file.seek(0, 2)
            file.seek(max(len(beginning), size - _END_BYTES))
            return beginning + file.read(_END_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


_CACHE_KIND = "stores"
_PATIENCE = 2.0
"""Seconds that a reader waits for a writer."""


# Stores made on this machine; a store that lies in the current folder may be a stranger's


def remember(path: Path, token: str) -> None:
    """Records that this user made a store; without a cache, it must be named each time."""
    with suppress(OSError):
        cache.keep(_CACHE_KIND, _key(path, token), b"")


def is_own(path: Path) -> bool:
    """Returns whether this user made a store at this path."""
    # After a killed commit, only a connection that can write sees the committed state.
    token = _token(path, "ro") or _token(path, "rw")
    return bool(token) and cache.kept(_CACHE_KIND, _key(path, token)) is not None


def opened(path: Path, mode: str) -> closing[sqlite3.Connection]:
    """Opens an existing store; never creates one."""
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return closing(sqlite3.connect(uri, _PATIENCE, uri=True))


def _token(path: Path, mode: str) -> str:
    """Returns the store's unique token; empty for no store, or one without a token."""
    try:
        with opened(path, mode) as connection:
            return str(connection.execute("SELECT token FROM made").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError):
        return ""


def _key(path: Path, token: str) -> str:
    return cache.digest(str(path.resolve()), token)
