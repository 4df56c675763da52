"""The file behind a path: what it holds, where it really is, and whether it can be replaced."""

import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policygen.errors import InputError
from policygen.opening import NotOpenedError, contained

_READ_ONLY = "Make it writable, or work on a copy of the tree."
_REMEDIES = {
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
    errno.ENOSPC: "Free some space, then run the command again.",
    errno.EDQUOT: "Free some space, then run the command again.",
}
LEFT = ".policygen"
"""How the names of files end that wait to be put into a tree, or were taken out of it."""


def absolute(path: Path) -> Path:
    """Without `..`; symbolic links stay as they are named."""
    return Path(os.path.abspath(path))  # noqa: PTH100  keeps symbolic links


def real(path: Path) -> Path:
    """Behind all symbolic links; one that leads back to itself stays."""
    return Path(os.path.realpath(path))


def inside(path: Path, root: Path) -> str:
    """The path as seen from the root, which may be named through a link."""
    for base in (absolute(root), real(root)):
        if absolute(path).is_relative_to(base):
            return absolute(path).relative_to(base).as_posix()
    raise InputError(f"{path} lies outside of {root}", "Name the tree that it belongs to.")


@contextmanager
def place(path: Path, action: str = "write") -> Iterator[None]:
    """Turns failures into ours, with the file and what to do."""
    try:
        yield
    except OSError as error:
        words = f"cannot {action} {path}: {error.strerror or error}"
        raise InputError(words, _REMEDIES.get(error.errno or 0)) from error


def target_of(path: Path, root: Path) -> Path:
    """The file behind a path of a tree; a link inside of the tree is fine, one out of it is not."""
    with place(path, "read"):
        try:
            return contained(root, path)
        except NotOpenedError as error:
            raise InputError(f"{path} is not followed: {error.reason}", error.remedy) from error


def content(path: Path) -> bytes | None:
    """What a file holds; none where there is no regular file."""
    with place(path, "read"):
        try:
            regular = stat.S_ISREG(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return path.read_bytes() if regular else None


def present(path: Path, root: Path) -> bytes:
    """What a file of a tree holds; an error where there is no regular file."""
    data = content(target_of(path, root))
    if data is None:
        words = "is no regular file" if os.path.lexists(path) else "is missing"
        raise InputError(f"{path} {words}", "Put it back, or make the plan again.")
    return data


def mode_and_owner(path: Path) -> tuple[int, tuple[int, int]]:
    """What a file's successor shall have, too."""
    with place(path, "read"):
        status = path.stat()
    return stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)


def attributes(path: Path) -> dict[str, bytes]:
    """Its extended attributes, access lists among them; none where the disk knows none."""
    with place(path, "read"):
        try:
            return {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))}
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOSYS):
                raise
            return {}


def staged_name(target: Path, mark: str) -> Path:
    """Where the next contents of a file wait, beside it."""
    return target.with_name(f".{target.name}.{mark}{LEFT}")


def leftovers(folder: Path, name: str = "*") -> list[Path]:
    """What waits in a folder, for one of its files or for any: somebody writes, or was killed."""
    return sorted(folder.glob(staged_name(Path(name), "*").name))


def check_replaceable(path: Path) -> None:
    """An error where a file must not be replaced, or where somebody was killed doing it."""
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} is read-only", _READ_ONLY)
    target = real(path)
    if (names := target.stat().st_nlink) > 1:
        raise InputError(
            f"{path} is one file with {names} names (hard links), and would part from the others",
            "Give the tree a file of its own: copy it, and move the copy into its place.",
        )
    if left := leftovers(target.parent, glob.escape(target.name)):
        raise InputError(
            f"{left[0]} is left of an interrupted policygen, so {target.name} may be half done",
            "Run policygen undo with the --store that was written then; it ends what was begun."
            "\n  If that store is gone, check the tree and delete the file.",
        )
