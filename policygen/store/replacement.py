"""Replaces all files of a write, or none: what is killed half way can be ended later."""

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
    LEFT,
    attributes,
    check_replaceable,
    content,
    inside,
    mode_and_owner,
    place,
    target_of,
)

# A change of one file.


@dataclass(frozen=True, slots=True)
class Change:
    """What a file holds, and what it shall hold; `path` is absolute."""

    path: Path
    before: bytes
    after: bytes


def described(change: Change, root: Path) -> WrittenFile:
    """A change as the journal has it; an error where the file must not be replaced."""
    path = inside(change.path, root)
    target_of(change.path, root)
    check_replaceable(change.path)
    mode, _ = mode_and_owner(change.path)
    return WrittenFile(path=path, mode=mode, before=change.before, after=change.after)


def replace(journal: Journal, write: Write) -> None:
    """Does a prepared write; a failure puts all files back.

    What was replaced waits beside each file until all are. From then on nothing is a failure: the
    tree is as it was asked for, and what is not tidied or recorded is ended by the next writer.
    """
    moved: list[WrittenFile] = []
    try:
        for file in write.files:
            _stage(write, file, file.after)
        journal.mark(write, "committing")
        for file in write.files:
            moved.append(file)
            _move(write, file, expected=file.before)
        _check_out(write)
        _sync_folders(write)
    except BaseException as error:
        try:
            kept = put_back(write, moved)
        except InputError as second:
            raise InputError(
                f"{error}\n{second.message}", "Run the command again: it ends what was begun."
            ) from error
        with suppress(InputError):
            # Unmarked it is put back once more, which changes nothing.
            journal.mark(write, "failed")
        if kept and isinstance(error, InputError):
            raise InputError(f"{error.message}; {told(kept)}", error.remedy) from error
        raise
    with suppress(InputError):
        tidy(write)
        _recorded(journal, write)


def finish(write: Write, remaining: Sequence[WrittenFile]) -> tuple[Path, ...]:
    """Does what a killed writer left; what it staged in full is used. Returns what was kept."""
    for file in remaining:
        if content(write.waiting(file)) != file.after:
            _stage(write, file, file.after)
        _move(write, file, expected=file.before)
    return tidy(write)


def put_back(write: Write, moved: Iterable[WrittenFile]) -> tuple[Path, ...]:
    """Those that may have moved and hold the new contents get the old. Returns what was kept."""
    mended(write)
    for file in moved:
        if content(write.target(file)) == file.after:
            if content(write.waiting(file)) != file.before:
                _stage(write, file, file.before)
            _move(write, file, expected=file.after)
    return tidy(write)


def mended(write: Write) -> None:
    """Ends steps that were killed: an edit that one of them took out is in its place again."""
    for file in write.files:
        target, waiting = write.target(file), write.waiting(file)
        mend(waiting, target)
        out = content(waiting)
        if out not in {None, file.before, file.after} and content(target) == file.after:
            swap(waiting, target)


def tidy(write: Write) -> tuple[Path, ...]:
    """Removes what waits beside the files; what somebody else wrote keeps a name, and is told."""
    kept = []
    for file in write.files:
        target, waiting = write.target(file), write.waiting(file)
        with place(write.path(file)):
            files.unlink(write.half(file))
            if content(waiting) in {None, file.before, file.after}:
                files.unlink(waiting)
            else:
                kept.append(keep(waiting, target))
    _sync_folders(write)
    return tuple(kept)


def told(kept: Sequence[Path]) -> str:
    """Where edits are that came in between."""
    return f"what else was written meanwhile is kept: {', '.join(map(str, kept))}"


def _check_out(write: Write) -> None:
    """Who had a file open can write to it after it was taken out."""
    for file in write.files:
        if content(write.waiting(file)) != file.before:
            raise _changed(write, file)


def _recorded(journal: Journal, write: Write) -> None:
    """That all files are new; a disk that fails once is asked again."""
    try:
        journal.mark(write, "done")
    except InputError:
        journal.mark(write, "done")


def _stage(write: Write, file: WrittenFile, data: bytes) -> None:
    """What is called `waiting` is whole, always."""
    target, half, waiting = write.target(file), write.half(file), write.waiting(file)
    _, owner = mode_and_owner(target)
    with place(target):
        files.unlink(half)
        files.write(half, data, file.mode, owner, attributes(target))
        files.fsync(half)
        if content(waiting) not in {None, file.before, file.after}:
            keep(waiting, target)
        files.rename(half, waiting)


def _move(write: Write, file: WrittenFile, expected: bytes) -> None:
    """What comes out is compared, too: nobody can edit a file between a look and a swap."""
    target, waiting = write.target(file), write.waiting(file)
    if content(target) == expected:
        new = content(waiting)
        swap(waiting, target)
        if content(waiting) == expected:
            return
        swap(waiting, target)
        if content(waiting) != new:
            # It was edited again: the newest edit belongs there.
            swap(waiting, target)
    raise _changed(write, file)


def _changed(write: Write, file: WrittenFile) -> InputError:
    return InputError(
        f"{write.path(file)} was changed while it was being replaced",
        "All other files are as they were. Run the command again.",
    )


def _sync_folders(write: Write) -> None:
    for folder in sorted({write.target(file).parent for file in write.files}):
        with place(folder):
            files.fsync_folder(folder)


# NFS, FAT and most of FUSE.
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
# FAT, and some of FUSE.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP)


# Puts a file that waits into its place and takes out what stood there, so that neither is lost.


def swap(waiting: Path, target: Path) -> None:
    """They change places; whoever looks sees the one or the other.

    Where the disk cannot do that in one step, the target is not there for a moment; `mend` ends
    what a kill left then.
    """
    with place(target):
        try:
            files.exchange(waiting, target)
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            _in_steps(waiting, target)


def mend(waiting: Path, target: Path) -> None:
    """Ends a swap in steps that was killed, if there was one."""
    taken = _taken(waiting)
    if content(taken) is None:
        return
    with place(target):
        if content(target) is None:
            _put(taken, target)
        elif taken.samefile(target):
            files.unlink(taken)
        elif content(waiting) is None or waiting.samefile(target):
            files.rename(taken, waiting)
        else:
            # Somebody made the target anew meanwhile.
            keep(taken, target)


def keep(path: Path, target: Path) -> Path:
    """Gives what nobody knows a name that is seen: somebody wrote it."""
    number = 1
    while True:
        kept = target.with_name(f"{target.name}.kept-{number}")
        try:
            _put(path, kept)
        except FileExistsError:
            number += 1
        else:
            return kept


def _in_steps(waiting: Path, target: Path) -> None:
    """What is made at the target meanwhile stays, and so does what was there."""
    taken = _taken(waiting)
    files.rename(target, taken)
    try:
        _put(waiting, target)
    except FileExistsError as error:
        kept = keep(taken, target)
        words = f"somebody made it while it was being replaced; what stood there is {kept}"
        raise FileExistsError(error.errno, words) from error
    files.rename(taken, waiting)


def _put(source: Path, target: Path) -> None:
    """Gives a file a name that nothing else has; an error where something has it."""
    try:
        files.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            raise
        files.rename(source, target)
    else:
        files.unlink(source)


def _taken(waiting: Path) -> Path:
    """Where the old contents are on their way out."""
    return waiting.with_name(f"{waiting.name.removesuffix(LEFT)}.out{LEFT}")
