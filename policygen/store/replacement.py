"""Replaces all files of a write or none; an interrupted replacement can be ended later."""

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.store import files
from policygen.store.journal import Journal, Write, WrittenFile
from policygen.store.targets import (
    STAGED_SUFFIX,
    attributes,
    check_replaceable,
    content,
    inside,
    mode_and_owner,
    os_errors,
    target_of,
)

# Changes


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

    The replaced contents are kept beside each file until all files are replaced. After that,
    nothing counts as a failure: the tree is as requested, and the next writer cleans up.
    """
    moved: list[WrittenFile] = []
    try:
        for file in write.files:
            _stage(write, file, file.after)
        journal.mark(write, "committing")
        for file in write.files:
            moved.append(file)
            _move(write, file, expected=file.before)
        _check_taken_out(write)
        _sync_folders(write)
    except BaseException as error:
        try:
            kept = put_back(write, moved)
        except InputError as rollback_error:
            raise InputError(
                f"{error}\n{rollback_error.message}",
                "Run the command again: it ends what was begun.",
            ) from error
        with suppress(InputError):
            # Without this mark the files would be restored once more, which changes nothing.
            journal.mark(write, "failed")
        if kept and isinstance(error, InputError):
            raise InputError(f"{error.message}; {kept_files_note(kept)}", error.remedy) from error
        raise
    with suppress(InputError):
        tidy(write)
        _mark_done(journal, write)


def finish(write: Write, remaining: Sequence[WrittenFile]) -> tuple[Path, ...]:
    """Finishes an interrupted write, using what was staged completely; returns the kept files."""
    for file in remaining:
        if content(write.waiting(file)) != file.after:
            _stage(write, file, file.after)
        _move(write, file, expected=file.before)
    return tidy(write)


def put_back(write: Write, moved: Iterable[WrittenFile]) -> tuple[Path, ...]:
    """Restores the old contents of those files that have the new ones; returns the kept files."""
    mended(write)
    for file in moved:
        if content(write.target(file)) == file.after:
            if content(write.waiting(file)) != file.before:
                _stage(write, file, file.before)
            _move(write, file, expected=file.after)
    return tidy(write)


def mended(write: Write) -> None:
    """Completes interrupted steps, and restores an edit that one of them took out of the tree."""
    for file in write.files:
        target, waiting = write.target(file), write.waiting(file)
        mend(waiting, target)
        taken_out = content(waiting)
        if taken_out not in {None, file.before, file.after} and content(target) == file.after:
            swap(waiting, target)


def tidy(write: Write) -> tuple[Path, ...]:
    """Removes staged files; contents from other writers are kept, and their paths returned."""
    kept = []
    for file in write.files:
        target, waiting = write.target(file), write.waiting(file)
        with os_errors(write.path(file)):
            files.unlink(write.half(file))
            if content(waiting) in {None, file.before, file.after}:
                files.unlink(waiting)
            else:
                kept.append(keep(waiting, target))
    _sync_folders(write)
    return tuple(kept)


def kept_files_note(kept: Sequence[Path]) -> str:
    """Describes where concurrent edits are kept."""
    return f"what else was written meanwhile is kept: {', '.join(map(str, kept))}"


def _check_taken_out(write: Write) -> None:
    """Checks for writes through descriptors that were open before a file was taken out."""
    for file in write.files:
        if content(write.waiting(file)) != file.before:
            raise _changed(write, file)


def _mark_done(journal: Journal, write: Write) -> None:
    """Marks a write as done, with one retry."""
    try:
        journal.mark(write, "done")
    except InputError:
        journal.mark(write, "done")


def _stage(write: Write, file: WrittenFile, data: bytes) -> None:
    """Stages contents so that the `waiting` file is complete at all times."""
    target, half, waiting = write.target(file), write.half(file), write.waiting(file)
    _, owner = mode_and_owner(target)
    with os_errors(target):
        files.unlink(half)
        files.write(half, data, file.mode, owner, attributes(target))
        files.fsync(half)
        if content(waiting) not in {None, file.before, file.after}:
            keep(waiting, target)
        files.rename(half, waiting)


def _move(write: Write, file: WrittenFile, expected: bytes) -> None:
    """Exchanges a file, then checks what came out, since an edit can happen right before."""
    target, waiting = write.target(file), write.waiting(file)
    if content(target) == expected:
        staged = content(waiting)
        swap(waiting, target)
        if content(waiting) == expected:
            return
        swap(waiting, target)
        if content(waiting) != staged:
            # The file was edited again: restore the newest edit.
            swap(waiting, target)
    raise _changed(write, file)


def _changed(write: Write, file: WrittenFile) -> InputError:
    return InputError(
        f"{write.path(file)} was changed while it was being replaced",
        "All other files are as they were. Run the command again.",
    )


def _sync_folders(write: Write) -> None:
    for folder in sorted({write.target(file).parent for file in write.files}):
        with os_errors(folder):
            files.fsync_folder(folder)


# NFS, FAT and most FUSE file systems
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
# FAT and some FUSE file systems
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP)


# Exchange of a staged file with its target without losing either


def swap(waiting: Path, target: Path) -> None:
    """Exchanges two files; readers see one or the other.

    Without an atomic exchange, the target is missing for a moment; `mend` repairs an interruption.
    """
    with os_errors(target):
        try:
            files.exchange(waiting, target)
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            _swap_in_steps(waiting, target)


def mend(waiting: Path, target: Path) -> None:
    """Completes an interrupted non-atomic exchange."""
    taken = _taken_path(waiting)
    if content(taken) is None:
        return
    with os_errors(target):
        if content(target) is None:
            _move_to_free_name(taken, target)
        elif taken.samefile(target):
            files.unlink(taken)
        elif content(waiting) is None or waiting.samefile(target):
            files.rename(taken, waiting)
        else:
            # The target was created again in the meantime.
            keep(taken, target)


def keep(path: Path, target: Path) -> Path:
    """Gives contents of unknown origin a visible name, because somebody wrote them."""
    number = 1
    while True:
        kept = target.with_name(f"{target.name}.kept-{number}")
        try:
            _move_to_free_name(path, kept)
        except FileExistsError:
            number += 1
        else:
            return kept


def _swap_in_steps(waiting: Path, target: Path) -> None:
    """Exchanges two files in steps; keeps both if the target is created in the meantime."""
    taken = _taken_path(waiting)
    files.rename(target, taken)
    try:
        _move_to_free_name(waiting, target)
    except FileExistsError as error:
        kept = keep(taken, target)
        message = f"somebody made it while it was being replaced; what stood there is {kept}"
        raise FileExistsError(error.errno, message) from error
    files.rename(taken, waiting)


def _move_to_free_name(source: Path, target: Path) -> None:
    """Renames a file; raises if the target exists."""
    try:
        files.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            raise
        files.rename(source, target)
    else:
        files.unlink(source)


def _taken_path(waiting: Path) -> Path:
    """Returns the path of the old contents during an exchange in steps."""
    return waiting.with_name(f"{waiting.name.removesuffix(STAGED_SUFFIX)}.out{STAGED_SUFFIX}")
