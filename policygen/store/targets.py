"""The file behind a path: its contents, its real location, and whether it can be replaced."""

import errno
import glob
import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.git import Objects, Repository, TreeEntry, find_repository, object_id
from policygen.opening import NotOpenedError, contained
from policygen.paths import cache_failure, cache_folder

_READ_ONLY = "Make it writable, or work on a copy of the tree."
_NO_SPACE = "Free some space, then run the command again."
_REMEDIES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _READ_ONLY),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _NO_SPACE),
}


def absolute(path: Path) -> Path:
    """Makes a path absolute without `..`; symbolic links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100  keeps symbolic links


def real(path: Path) -> Path:
    """Resolves all symbolic links, except a cyclic one."""
    return Path(os.path.realpath(path))


def inside(path: Path, root: Path) -> str:
    """Returns the path relative to the root, which may be named through a link."""
    for base in (absolute(root), real(root)):
        if absolute(path).is_relative_to(base):
            return absolute(path).relative_to(base).as_posix()
    raise InputError(f"{path} lies outside of {root}", "Name the tree that it belongs to.")


@contextmanager
def os_errors(path: Path, action: str = "write") -> Iterator[None]:
    """Turns an `OSError` into an `InputError` with the path and a remedy."""
    try:
        yield
    except OSError as error:
        message = f"cannot {action} {path}: {error.strerror or error}"
        raise InputError(message, _REMEDIES.get(error.errno or 0)) from error


def target_of(path: Path, root: Path) -> Path:
    """Resolves a path's links; raises for a link that leads out of the tree."""
    with os_errors(path, "read"):
        try:
            return contained(root, path)
        except NotOpenedError as error:
            raise InputError(f"{path} is not followed: {error.reason}", error.remedy) from error


def content(path: Path) -> bytes | None:
    """Returns a file's contents; `None` if it is not a regular file."""
    with os_errors(path, "read"):
        try:
            regular = stat.S_ISREG(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return path.read_bytes() if regular else None


def present(path: Path, root: Path) -> bytes:
    """Returns the contents of a tree's file; raises if it is not a regular file."""
    data = content(target_of(path, root))
    if data is None:
        problem = "is not a regular file" if os.path.lexists(path) else "is missing"
        raise InputError(f"{path} {problem}", "Restore it, or make the plan again.")
    return data


def mode_and_owner(path: Path) -> tuple[int, tuple[int, int]]:
    """Returns the mode and owner that a file's replacement must have."""
    with os_errors(path, "read"):
        status = path.stat()
    return stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)


def attributes(path: Path) -> dict[str, bytes]:
    """Returns a file's extended attributes, including ACLs; empty if the file system has none."""
    with os_errors(path, "read"):
        try:
            return {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))}
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOSYS):
                raise
            return {}


def staged_name(target: Path, mark: str) -> Path:
    """Returns the path for a file's next contents, beside it."""
    return target.with_name(f".{target.name}.{mark}.policygen")


def leftovers(folder: Path, name: str = "*") -> list[Path]:
    """Returns the staged files in a folder: of an active or a killed writer."""
    return sorted(folder.glob(staged_name(Path(name), "*").name))


def check_replaceable(path: Path) -> None:
    """Raises if a file must not be replaced, or if a writer was killed while replacing it."""
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} is read-only", _READ_ONLY)
    target = real(path)
    if (links := target.stat().st_nlink) > 1:
        raise InputError(
            f"{path} has {links} hard links, and replacing it would break them",
            "Copy the file and move the copy into its place.",
        )
    if staged := leftovers(target.parent, glob.escape(target.name)):
        raise InputError(
            f"{staged[0]} was left behind by an interrupted policygen, so {target.name} may be"
            " only partly written",
            "Run policygen undo with the --store of that apply to complete it.\n  If that store no"
            " longer exists, check the tree and delete the file.",
        )


# Uncommitted changes according to git


def uncommitted(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Returns the files with uncommitted changes; empty without git or a repository."""
    folders: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        folders[real(path).parent].append(path)
    changed: set[Path] = set()
    for folder, folder_paths in folders.items():
        with suppress(MissingToolError, ProcessError, InputError):
            if (repository := find_repository(folder)) is not None:
                changed |= {*_uncommitted_paths(repository, folder_paths)}
    return tuple(path for path in paths if path in changed)


def _uncommitted_paths(repository: Repository, paths: Sequence[Path]) -> list[Path]:
    """Returns the paths whose contents differ from the last commit, except ignored ones."""
    names = {path: real(path).relative_to(repository.top).as_posix() for path in paths}
    entry_by_name = _committed(repository, [*names.values()])
    changed = [path for path in paths if not _is_committed(path, entry_by_name.get(names[path]))]
    untracked = [names[path] for path in changed if names[path] not in entry_by_name]
    ignored = repository.ignored(untracked) if untracked else set()
    return [path for path in changed if names[path] not in ignored]


def _committed(repository: Repository, names: Sequence[str]) -> dict[str, TreeEntry]:
    try:
        commit = repository.commit("HEAD")
    except ProcessError:  # there is no commit yet
        return {}
    with Objects(repository) as objects:
        return objects.files(commit, names)


def _is_committed(path: Path, entry: TreeEntry | None) -> bool:
    """Returns whether a file matches a commit's, apart from line endings."""
    if entry is None or not path.is_file():
        return entry is None and not path.exists()
    data = path.read_bytes()
    variants = (data, data.replace(b"\r\n", b"\n"))
    return entry.id in {object_id(variant, entry.id) for variant in variants}


PATIENCE = 10.0
"""Seconds to wait for another writer."""


class BusyError(InputError):
    """Another process is writing to the tree."""


# Lock of a tree: one writer at a time


@contextmanager
def tree_lock(root: Path, patience: float | None = None) -> Iterator[None]:
    """Excludes other writers with this cache by a lock that ends with its process."""
    if not root.is_dir():
        problem = "Not a directory" if root.exists() else "No such file or directory"
        raise InputError(f"cannot lock {root}: {problem}", "Name a tree that exists.")
    lock = cache_folder() / "locks" / hashlib.sha256(os.fsencode(real(root))).hexdigest()
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock).acquire(PATIENCE if patience is None else patience)
    except Timeout as error:
        raise BusyError(
            f"another policygen is writing to {root}", "Wait until it has finished."
        ) from error
    except OSError as error:
        raise cache_failure(error) from error
    with held:
        yield


def being_written(root: Path) -> bool:
    """Returns whether a process is writing to a tree, in which case nothing was interrupted."""
    try:
        with tree_lock(root, 0):
            return False
    except BusyError:
        return True
