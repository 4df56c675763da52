"""The one way in which a file of a tree is opened: inside of the tree, regular, not too large.

A tree may be a stranger's: a link in it could lead to a secret, which an error would then quote, or
to a device or a pipe that never ends.
"""

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 8 << 20
"""No source file of CUB comes near; a larger file is not one."""


class NotOpenedError(Exception):
    """Why a file is not read, and what can be done about it."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def read_inside(root: Path, path: Path) -> bytes:
    """The bytes of a file of the tree at `root`; both may be named through links of the user's."""
    descriptor = _open(root, path)
    try:
        status = os.fstat(descriptor)
        _check_kind(status.st_mode)
        if status.st_size <= MAX_BYTES:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) <= MAX_BYTES:  # else it grew, or its size is not told
                return data
        size = f"{max(status.st_size, MAX_BYTES + 1):,} bytes"
        raise NotOpenedError(
            f"{size}: larger than the limit of {MAX_BYTES >> 20} MiB",
            "It is no source file of CUB.",
        )
    finally:
        os.close(descriptor)


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
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | _NO_LINK, dir_fd=at)
    finally:
        os.close(at)


_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise NotOpenedError("not a regular file")
