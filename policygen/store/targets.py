"""The file behind a path: what it holds, where it really is, and whether it can be replaced."""

import errno
import fcntl
import glob
import hashlib
import os
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.git import Objects, Repository, TreeEntry, find_repository, object_id
from policygen.opening import NotOpenedError, contained
from policygen.paths import cache_folder

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


# What git says of files that are about to be changed.


def uncommitted(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that are changed and not committed; none where there is no git or repository."""
    folders: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        folders[real(path).parent].append(path)
    changed = {path for folder, lot in folders.items() for path in _changed(folder, lot)}
    return tuple(path for path in paths if path in changed)


def _changed(folder: Path, paths: Sequence[Path]) -> list[Path]:
    try:
        repository = find_repository(folder)
        return [] if repository is None else _lost(repository, paths)
    except (MissingToolError, ProcessError, InputError):
        return []


def _lost(repository: Repository, paths: Sequence[Path]) -> list[Path]:
    """Those whose content the last commit does not have; not those that git is to ignore."""
    names = {path: real(path).relative_to(repository.top).as_posix() for path in paths}
    known = _committed(repository, list(names.values()))
    changed = [path for path in paths if not _is_known(path, known.get(names[path]))]
    untracked = [names[path] for path in changed if names[path] not in known]
    ignored = repository.ignored(untracked) if untracked else set()
    return [path for path in changed if names[path] not in ignored]


def _committed(repository: Repository, names: Sequence[str]) -> dict[str, TreeEntry]:
    try:
        commit = repository.commit("HEAD")
    except ProcessError:  # there is no commit yet
        return {}
    with Objects(repository) as objects:
        return objects.files(commit, names)


def _is_known(path: Path, entry: TreeEntry | None) -> bool:
    """Whether a file is that of a commit, but for line endings."""
    if entry is None or not path.is_file():
        return entry is None and not path.exists()
    data = path.read_bytes()
    both = (data, data.replace(b"\r\n", b"\n"))
    return entry.id in {object_id(one, entry.id) for one in both}


PATIENCE = 10.0
"""Seconds that a writer waits for another one."""
_PAUSE = 0.02
# NFS locks only what is open for writing, which a folder cannot be; others lock no folder at all.
_NO_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)


class BusyError(InputError):
    """Somebody else writes to the tree."""


# One policygen at a time writes to a tree.


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
