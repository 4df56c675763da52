"""The operations that change a tree; there are no others, so that a test can fail each of them."""

import ctypes
import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# File systems that cannot sync a folder say so with one of these.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
# Of <linux/fs.h> and <fcntl.h>.
_EXCHANGE = 2
_HERE = -100


def write(
    path: Path, data: bytes, mode: int, owner: tuple[int, int], attributes: Mapping[str, bytes]
) -> None:
    """Makes a new file; who may not give files away keeps it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with suppress(PermissionError):
            os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        for name, value in attributes.items():
            _describe(descriptor, name, value)
        file.write(data)


def fsync(path: Path) -> None:
    """Waits until a file's contents are on the disk."""
    _sync(path)


def exchange(one: Path, other: Path) -> None:
    """Two files change places in one step; `ENOSYS` or `EINVAL` where the disk knows no such."""
    if renameat2 := _renameat2():
        status = renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
        code = ctypes.get_errno() if status else 0
    else:
        code = errno.ENOSYS
    if code:
        raise OSError(code, os.strerror(code), str(other))


def rename(source: Path, target: Path) -> None:
    """Gives a file another name, in the place of what is called so."""
    source.replace(target)


def link(source: Path, target: Path) -> None:
    """Gives a file a second name, which nothing else may have."""
    os.link(source, target)


def unlink(path: Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def fsync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _describe(descriptor: int, name: str, value: bytes) -> None:
    """Gives a file an extended attribute, if it has not got it by its place."""
    try:
        with suppress(OSError):
            if os.getxattr(descriptor, name) == value:
                return
        os.setxattr(descriptor, name, value)
    except OSError as error:
        words = f"{error.strerror}: its successor cannot have its extended attribute {name}"
        raise OSError(error.errno, words) from error


@cache
def _renameat2() -> Any:
    """The C library's function; none where there is none."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
