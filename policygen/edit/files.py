"""The operations that change a tree; there are no others, so that a test can fail each of them."""

import errno
import os
from contextlib import suppress
from pathlib import Path

# File systems that cannot sync a folder say so with one of these.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


def write(path: Path, data: bytes, mode: int, owner: tuple[int, int]) -> None:
    """Makes a new file; who may not give files away keeps it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with suppress(PermissionError):
            os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        file.write(data)


def fsync(path: Path) -> None:
    """Waits until a file's contents are on the disk."""
    _sync(path)


def rename(source: Path, target: Path) -> None:
    """Puts a file in the place of another; whoever looks sees the one or the other."""
    source.replace(target)


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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
