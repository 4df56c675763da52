"""All operations that modify a tree, in one place so that tests can make each of them fail."""

import ctypes
import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# Errors of file systems that cannot sync a folder
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
# Constants of <linux/fs.h> and <fcntl.h>
_EXCHANGE = 2
_AT_FDCWD = -100


def write(
    path: Path, data: bytes, mode: int, owner: tuple[int, int], attributes: Mapping[str, bytes]
) -> None:
    """Creates a file; it stays the user's if the owner cannot be set."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with suppress(PermissionError):
            os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        for name, value in attributes.items():
            _set_attribute(descriptor, name, value)
        file.write(data)


def fsync(path: Path) -> None:
    """Flushes a file's contents to the disk."""
    _sync(path)


def exchange(first: Path, second: Path) -> None:
    """Exchanges two files atomically; fails with `ENOSYS` or `EINVAL` where that is unsupported."""
    if renameat2 := _renameat2():
        status = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE)
        code = ctypes.get_errno() if status else 0
    else:
        code = errno.ENOSYS
    if code:
        raise OSError(code, os.strerror(code), str(second))


def rename(source: Path, target: Path) -> None:
    """Renames a file, replacing the target."""
    source.replace(target)


def link(source: Path, target: Path) -> None:
    """Creates a hard link; fails if the target exists."""
    os.link(source, target)


def unlink(path: Path) -> None:
    """Removes a file if it exists."""
    path.unlink(missing_ok=True)


def fsync_folder(path: Path) -> None:
    """Flushes a folder's entries to the disk."""
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _set_attribute(descriptor: int, name: str, value: bytes) -> None:
    """Sets an extended attribute unless the file already has it from its folder."""
    try:
        with suppress(OSError):
            if os.getxattr(descriptor, name) == value:
                return
        os.setxattr(descriptor, name, value)
    except OSError as error:
        message = f"{error.strerror}: its successor cannot have its extended attribute {name}"
        raise OSError(error.errno, message) from error


@cache
def _renameat2() -> Any:
    """Returns the C library's function, or `None` if it has none."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
