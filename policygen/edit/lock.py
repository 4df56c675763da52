"""One policygen at a time writes to a tree."""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policygen.errors import InputError
from policygen.paths import cache_folder

PATIENCE = 10.0
"""Seconds that a writer waits for another one."""
_PAUSE = 0.02
# NFS locks only what is open for writing, which a folder cannot be; others lock no folder at all.
_NO_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)


class BusyError(InputError):
    """Somebody else writes to the tree."""


@contextmanager
def tree_lock(root: Path, patience: float | None = None) -> Iterator[None]:
    """Keeps other writers away; the folder itself is locked, so no file is left behind."""
    descriptor = _lock(root, PATIENCE if patience is None else patience)
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(root: Path) -> bool:
    """Whether somebody writes to a tree now."""
    try:
        with tree_lock(root, 0):
            return False
    except BusyError:
        return True


def _lock(root: Path, patience: float) -> int:
    try:
        return _locked(root, root, os.O_RDONLY | os.O_DIRECTORY, patience)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise InputError(
                f"cannot lock {root}: {error.strerror}", "Name a tree that is there."
            ) from error
    return _locked(_stand_in(root), root, os.O_RDWR | os.O_CREAT, patience)


def _stand_in(root: Path) -> Path:
    """A file in the cache, for a tree that cannot be locked itself."""
    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / hashlib.sha256(os.fsencode(root.resolve())).hexdigest()


def _locked(path: Path, root: Path, flags: int, patience: float) -> int:
    """An open descriptor that holds the lock until it is closed, or its process ends."""
    descriptor = os.open(path, flags, 0o600)
    try:
        _wait(descriptor, root, patience)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait(descriptor: int, root: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise BusyError(
                    f"another policygen is writing to {root}", "Wait until it is done."
                ) from error
            time.sleep(_PAUSE)
        else:
            return
