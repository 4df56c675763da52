"""Replaces all files of a write, or none: what is killed half way can be ended later."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from policygen.edit import files
from policygen.edit.change import Change
from policygen.edit.journal import Journal, Write, WrittenFile
from policygen.edit.target import check_replaceable, content, inside, mode_and_owner, place
from policygen.errors import InputError


def described(change: Change, root: Path) -> WrittenFile:
    """A change as the journal has it; an error where the file must not be replaced."""
    check_replaceable(change.path)
    mode, _ = mode_and_owner(change.path)
    return WrittenFile(
        path=inside(change.path, root), mode=mode, before=change.before, after=change.after
    )


def replace(journal: Journal, write: Write) -> None:
    """Does a prepared write; a failure puts all files back.

    A file with several hard links parts from the others, as with every atomic replacement.
    """
    moved: list[WrittenFile] = []
    try:
        for file in write.files:
            _stage(write, file, file.after)
        journal.mark(write, "committing")
        for file in write.files:
            moved.append(file)
            _move(write, file, expected=file.before)
        _sync_folders(write, moved)
        journal.mark(write, "done")
    except BaseException as error:
        try:
            put_back(write, moved)
        except InputError as second:
            raise InputError(
                f"{error}\n{second.message}", "Run the command again: it ends what was begun."
            ) from error
        with suppress(InputError):
            # Unmarked it is put back once more, which changes nothing.
            journal.mark(write, "failed")
        raise


def finish(write: Write, remaining: Sequence[WrittenFile]) -> None:
    """Does what a killed writer left; what it staged in full is used."""
    for file in remaining:
        if content(write.waiting(file)) != file.after:
            _discard(write, file)
            _stage(write, file, file.after)
        _move(write, file, expected=file.before)
    for file in write.files:
        _discard(write, file)
    _sync_folders(write, write.files)


def put_back(write: Write, moved: Iterable[WrittenFile]) -> None:
    """Removes what is staged; those that may have moved and hold the new contents get the old."""
    for file in write.files:
        _discard(write, file)
    restored = [file for file in moved if content(write.target(file)) == file.after]
    for file in restored:
        _stage(write, file, file.before)
        _move(write, file, expected=file.after)
    _sync_folders(write, restored)


def _stage(write: Write, file: WrittenFile, data: bytes) -> None:
    target, waiting = write.target(file), write.waiting(file)
    _, owner = mode_and_owner(target)
    with place(target):
        files.write(waiting, data, file.mode, owner)
        files.fsync(waiting)


def _move(write: Write, file: WrittenFile, expected: bytes) -> None:
    target = write.target(file)
    if content(target) != expected:
        raise InputError(
            f"{write.path(file)} was changed while it was being replaced",
            "All other files are as they were. Run the command again.",
        )
    with place(target):
        files.rename(write.waiting(file), target)


def _discard(write: Write, file: WrittenFile) -> None:
    with place(write.path(file)):
        files.unlink(write.waiting(file))


def _sync_folders(write: Write, changed: Iterable[WrittenFile]) -> None:
    for folder in sorted({write.target(file).parent for file in changed}):
        with place(folder):
            files.fsync_folder(folder)
