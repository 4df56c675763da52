"""Reads files that may be missing, cyclic links or forbidden; every error names the path."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.errors import InputError
from policygen.model.trees import Cub
from policygen.opening import NotOpenedError, read_inside

_REMEDIES = {
    errno.EACCES: "Make it readable, or name another tree with --cub",
    errno.EPERM: "Make it readable, or name another tree with --cub",
    errno.ELOOP: "A symbolic link loops: remove it, or name another tree with --cub",
    errno.ENOENT: "It existed a moment ago; run the command again",
    errno.EROFS: "Set POLICYGEN_CUB_HEADERS to a folder that can be written",
}
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_GIT = ".git"
"""The name of git's own folder or file, which no commit can contain."""
_HEADER_SUFFIXES = {"", ".cuh", ".h", ".hpp", ".inl"}
_BESIDE_HEADERS = {"benchmarks", "cmake", "docs", "examples", "test", "testing", "LICENSE"}


def failure(action: str, path: Path, error: OSError) -> InputError:
    """Returns an error such as `cannot read FILE: Permission denied`, with a remedy."""
    reason = error.strerror or str(error)
    return InputError(f"cannot {action} {path}: {reason}", _REMEDIES.get(error.errno or 0))


@contextmanager
def failing(action: str, path: Path) -> Iterator[None]:
    """Raises this error for the OSError of a block."""
    try:
        yield
    except OSError as error:
        raise failure(action, path, error) from error


def read(path: Path, root: Path) -> bytes:
    """Reads a file of the tree at `root`."""
    try:
        return read_inside(root, path)
    except NotOpenedError as error:
        raise InputError(f"cannot read {path}: {error.reason}", error.remedy) from error
    except OSError as error:
        raise failure("read", path, error) from error


def listing(folder: Path) -> tuple[Path, ...]:
    """Lists a folder's contents sorted by name."""
    with failing("list", folder):
        return tuple(sorted(folder.iterdir()))


def is_file(path: Path) -> bool:
    """Returns whether a path is a file; raises if the path cannot be followed."""
    return stat.S_ISREG(_mode(path))


def seems_file(path: Path) -> bool:
    """Like `is_file`, but returns false for an unreadable path."""
    try:
        return is_file(path)
    except InputError:
        return False


def is_folder(path: Path) -> bool:
    """Returns whether a path is a folder; raises if the path cannot be followed."""
    return stat.S_ISDIR(_mode(path))


def absolute(path: Path | str, base: Path) -> Path:
    """Makes a path absolute without `..`; symbolic links are not resolved."""
    expanded = os.path.expanduser(path)  # noqa: PTH111  Path.expanduser raises for ~nobody
    return Path(os.path.abspath(base / expanded))  # noqa: PTH100  keeps symbolic links


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in _ABSENT:
            return 0
        raise failure("read", path, error) from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not a path: {error}") from error


@contextmanager
def staged(target: Path, is_complete: Callable[[], bool], *, again: bool = True) -> Iterator[Path]:
    """Yields the path of a folder to make, which then becomes `target` atomically.

    With `again`, it replaces what is there. Another process may be faster if what it made is
    complete.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # The name must be covered by .gitignore and must not look like a version.
    prefix = f"{target.name}.part-"
    with TemporaryDirectory(dir=target.parent, prefix=prefix, ignore_cleanup_errors=True) as name:
        staging = Path(name) / "tree"
        yield staging
        if again and target.exists():
            target.rename(staging.with_name("old"))
        try:
            staging.rename(target)
        except OSError:
            if not is_complete():
                raise


# Differences between two trees


def changed_files(before: Cub, after: Cub) -> tuple[Path, ...]:
    """Lists files and folders that differ or that one tree lacks, as paths in `after`.

    The `.git` of a checkout or a submodule is not a file of its tree.
    """
    pairs = zip(before.include_folders, after.include_folders, strict=False)
    try:
        changed = {path for old, new in pairs for path in _changed(Path(old), Path(new))}
    except (OSError, RuntimeError) as error:  # Python raises RuntimeError for cyclic links
        raise InputError(f"cannot compare {after.root} with {before.root}: {error}") from error
    return tuple(sorted(changed))


def changed_headers(before: Cub, after: Cub) -> Iterator[tuple[Path, Path]]:
    """Finds headers that differ or that one tree lacks: paths before and after.

    What a checkout keeps beside its headers, such as tests, no header includes.
    """
    roots = list(zip(before.include_folders, after.include_folders, strict=False))
    for path in changed_files(before, after):
        old_root, root = next(pair for pair in roots if path.is_relative_to(pair[1]))
        place = path.relative_to(root)
        # Headers of the standard library have no suffix.
        may_be_header = path.suffix in _HEADER_SUFFIXES and not path.name.startswith(".")
        if may_be_header and place.parts[:1] and place.parts[0] not in _BESIDE_HEADERS:
            yield old_root / place, path


def _changed(old: Path, new: Path) -> Iterator[Path]:
    if new.name == _GIT or old.resolve() == new.resolve():
        return
    if old.is_dir() and new.is_dir():
        for name in {path.name for folder in (old, new) for path in folder.iterdir()}:
            yield from _changed(old / name, new / name)
    elif not (old.is_file() and new.is_file()) or not _same(old, new):
        yield new


def _same(old: Path, new: Path) -> bool:
    """Compares sizes first, so that files of different sizes are not read."""
    return old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes()
