"""Replaces all files of a write or none; an interrupted replacement can be ended later.

The journal has the contents before and after. The new ones wait beside each file until all of them
are complete; then each replaces its file in one step.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.store.journal import Journal, Write, WrittenFile
from policygen.store.targets import (
    attributes,
    check_replaceable,
    content,
    inside,
    mode_and_owner,
    os_errors,
    target_of,
)

# Errors of file systems that cannot sync a folder
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


@dataclass(frozen=True, slots=True)
class Change:
    """Old and new contents of a file; `path` is absolute."""

    path: Path
    before: bytes
    after: bytes


def described(change: Change, root: Path) -> WrittenFile:
    """Returns the journal's record of a change; raises if the file must not be replaced."""
    path = inside(change.path, root)
    target_of(change.path, root)
    check_replaceable(change.path)
    mode, _ = mode_and_owner(change.path)
    return WrittenFile(path=path, mode=mode, before=change.before, after=change.after)


def replace(journal: Journal, write: Write) -> None:
    """Executes a prepared write; a failure restores all files.

    Once all files are replaced, nothing counts as a failure: the tree is as requested.
    """
    try:
        for file in write.files:
            _stage(write, file, file.after)
        journal.mark(write, "committing")
        for file in write.files:
            _move(write, file, expected=file.before)
        _sync_folders(write)
    except BaseException as error:
        try:
            put_back(write)
        except InputError as rollback_error:
            raise InputError(
                f"{error}\n{rollback_error.message}",
                "Run the command again; it completes what was begun.",
            ) from error
        with suppress(InputError):
            # Without this mark the files would be restored once more, which changes nothing.
            journal.mark(write, "failed")
        raise
    try:
        journal.mark(write, "done")
    except InputError:
        with suppress(InputError):
            journal.mark(write, "done")


def finish(write: Write, remaining: Sequence[WrittenFile]) -> None:
    """Finishes an interrupted write, using what was staged completely."""
    for file in remaining:
        if content(write.waiting(file)) != file.after:
            _stage(write, file, file.after)
        _move(write, file, expected=file.before)
    _tidy(write)


def put_back(write: Write) -> None:
    """Restores the old contents of those files that have the new ones."""
    for file in write.files:
        if content(write.target(file)) == file.after:
            _stage(write, file, file.before)
            _move(write, file, expected=file.after)
    _tidy(write)


def _stage(write: Write, file: WrittenFile, data: bytes) -> None:
    """Writes contents beside their file, in place of what an interrupted writer left there."""
    target, waiting = write.target(file), write.waiting(file)
    _, owner = mode_and_owner(target)
    with os_errors(target):
        unlink(waiting)
        write_file(waiting, data, file.mode, owner, attributes(target))


def _move(write: Write, file: WrittenFile, expected: bytes) -> None:
    """Replaces a file by what waits beside it, unless it was edited."""
    target = write.target(file)
    if content(target) != expected:
        raise InputError(
            f"{write.path(file)} was changed while it was being replaced",
            "All other files are unchanged. Run the command again.",
        )
    with os_errors(target):
        rename(write.waiting(file), target)


def _tidy(write: Write) -> None:
    """Removes what still waits."""
    for file in write.files:
        with os_errors(write.path(file)):
            unlink(write.waiting(file))
    _sync_folders(write)


def _sync_folders(write: Write) -> None:
    for folder in sorted({write.target(file).parent for file in write.files}):
        with os_errors(folder):
            sync_folder(folder)


# All operations that modify a tree, so that tests can make each of them fail


def write_file(
    path: Path, data: bytes, mode: int, owner: tuple[int, int], attributes: Mapping[str, bytes]
) -> None:
    """Creates a file and flushes it to the disk; it stays the user's if the owner cannot be set."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with suppress(PermissionError):
            os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        for name, value in attributes.items():
            _set_attribute(descriptor, name, value)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def rename(source: Path, target: Path) -> None:
    """Renames a file, replacing the target."""
    source.replace(target)


def unlink(path: Path) -> None:
    """Removes a file if it exists."""
    path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Flushes a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def _set_attribute(descriptor: int, name: str, value: bytes) -> None:
    """Sets an extended attribute unless the file already has it from its folder."""
    try:
        with suppress(OSError):
            if os.getxattr(descriptor, name) == value:
                return
        os.setxattr(descriptor, name, value)
    except OSError as error:
        message = f"{error.strerror}: its extended attribute {name} cannot be copied"
        raise OSError(error.errno, message) from error
