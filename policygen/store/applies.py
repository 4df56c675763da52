"""Writes changed files into a tree, all or none, and remembers how to take them back."""

import sqlite3
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from policygen.errors import InputError, together
from policygen.outputs import opened
from policygen.store.journal import AppliedRecord, Journal, Write, WrittenFile
from policygen.store.replacement import Change, described, finish, mended, put_back, replace, told
from policygen.store.targets import content, inside, is_locked, present, real, tree_lock
from policygen.store_schema import told as store_schema_told

__all__ = ["Recovered", "apply", "recover"]


def apply(
    changes: Sequence[Change], store: Path, root: Path, title: str, document: str, when: datetime
) -> int:
    """Writes all files or none, and remembers how to take it back; the number of the apply.

    `document` says what was asked for, as JSON. What a kill interrupted before is ended first.
    """
    if all(change.before == change.after for change in changes):
        raise InputError("no file would change", "There is nothing to apply.")
    with tree_lock(real(root)), Journal.open(store) as journal:
        settle(journal, real(root))
        files = _checked(changes, root)
        number, write = journal.begin_apply(real(root), files, title, document, when)
        replace(journal, write)
    return number


def _checked(changes: Sequence[Change], root: Path) -> tuple[WrittenFile, ...]:
    """The files that change, each as it was when the change was made."""
    errors: list[InputError] = []
    files: dict[Path, WrittenFile] = {}
    for change in sorted(changes, key=lambda change: change.path):
        try:
            _check(change, files, root)
            if change.before != change.after:
                files[real(change.path)] = described(change, root)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(files.values())


def _check(change: Change, files: Container[Path], root: Path) -> None:
    inside(change.path, root)
    if present(change.path, root) != change.before:
        raise InputError(
            f"{change.path} was changed since it was read", "Make the plan again; nothing was done."
        )
    if real(change.path) in files:
        raise InputError(f"{change.path} would be changed twice", "Give all of it in one change.")


@dataclass(frozen=True, slots=True)
class Recovered:
    """One interrupted write, and what became of it."""

    kind: Literal["apply", "undo"]
    applies: tuple[int, ...]
    """The apply; for an undo those that it takes back, newest first."""
    outcome: Literal["finished", "put back"]
    edited: tuple[Path, ...]
    """Files that somebody edited since; they are left as they are."""
    kept: tuple[Path, ...] = ()
    """What else somebody wrote while they were replaced, by the names that it has now."""


# Ends what a killed writer began: afterwards all files are old, or all are new.


def recover(store: Path, root: Path) -> tuple[Recovered, ...]:
    """Ends what was interrupted in a tree, oldest first."""
    if not store.exists():
        return ()
    root = real(root)
    with tree_lock(root), Journal.open(store) as journal:
        return end_interrupted(journal, root)


def end_interrupted(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """The same for whoever holds the lock."""
    return tuple(_end(journal, write) for write in journal.interrupted() if write.root == root)


def settle(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """The same; an error where somebody edited a file since, for who goes on must look first."""
    ended = end_interrupted(journal, root)
    for one in ended:
        if one.edited or one.kept:
            names = ", ".join(map(str, one.edited))
            words = [f"{names}: edited after an interrupted {one.kind}, and left as it is"]
            words += [f"the {one.kind} is {one.outcome} in all other files"]
            words += [told(one.kept)] if one.kept else []
            raise InputError(
                "; ".join(words if one.edited else words[1:]),
                "Look whether the edit still fits, then run the command again.",
            )
    return ended


def complete(store: Path, root: Path | None) -> tuple[AppliedRecord, ...]:
    """Does what is left of an interrupted apply to a tree, or to the one of the newest of them."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        wanted = None if root is None else real(root)
        roots = [w.root for w in journal.interrupted() if wanted in {None, w.root}]
        if not roots:
            return ()
        with tree_lock(roots[-1]):
            left = [write for write in journal.interrupted() if write.root == roots[-1]]
            numbers = {_completed(journal, write) for write in left}
        return tuple(record for record in journal.applies() if record.id in numbers)


def _completed(journal: Journal, write: Write) -> int:
    number = journal.applied_by(write)
    if number is None:
        raise InputError("an undo was interrupted, no apply", "Run policygen undo: it ends it.")
    mended(write)
    sides = _sides(write)
    if stuck := [file for file in sides.edited if file in sides.remaining]:
        names = ", ".join(str(write.path(file)) for file in stuck)
        raise InputError(
            f"{names}: edited after an interrupted apply, which cannot be finished there",
            "Run policygen undo: all other files get what they had, and the edit stays.",
        )
    journal.mark(write, "committing")
    finish(write, sides.remaining)
    journal.mark(write, "done")
    return number


@dataclass(frozen=True, slots=True)
class _Sides:
    """How far a write came."""

    moved: tuple[WrittenFile, ...]
    remaining: tuple[WrittenFile, ...]
    edited: tuple[WrittenFile, ...]
    """Of both: they hold neither what was there before nor what was to be there."""


def _sides(write: Write) -> _Sides:
    moved: list[WrittenFile] = []
    remaining: list[WrittenFile] = []
    edited: list[WrittenFile] = []
    for file in write.files:
        found = content(write.target(file))
        # What waits is new until it changes places with the old.
        waits = content(write.waiting(file)) == file.after
        new = found == file.after or (found != file.before and not waits)
        (moved if new else remaining).append(file)
        if found not in {file.before, file.after}:
            edited.append(file)
    return _Sides(tuple(moved), tuple(remaining), tuple(edited))


def _end(journal: Journal, write: Write) -> Recovered:
    edited: Sequence[WrittenFile] = ()
    finished = False
    if write.state == "prepared":
        kept = put_back(write, ())
    else:
        edited, finished, kept = _decide(write)
    journal.mark(write, "done" if finished else "failed")
    number = journal.applied_by(write)
    return Recovered(
        kind="undo" if number is None else "apply",
        applies=journal.undone_by(write) if number is None else (number,),
        outcome="finished" if finished else "put back",
        edited=tuple(write.path(file) for file in edited),
        kept=kept,
    )


def _decide(write: Write) -> tuple[Sequence[WrittenFile], bool, tuple[Path, ...]]:
    """Brings the files to one side; edited ones cannot move, so their side counts."""
    mended(write)
    sides = _sides(write)
    if sides.moved and not any(file in sides.remaining for file in sides.edited):
        try:
            return sides.edited, True, finish(write, sides.remaining)
        except InputError:
            pass  # a disk that takes no new contents may still take the old ones back
    return sides.edited, False, put_back(write, write.files)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A write that was begun and not ended."""

    kind: Literal["apply", "undo"]
    root: Path
    new: int
    """Files that are as they shall be."""
    files: int

    def __str__(self) -> str:
        count = f"{self.new} of {self.files} headers of {self.root}"
        done = "are new" if self.kind == "apply" else "are as they were before"
        return f"an {self.kind} was interrupted: {count} {done}"

    @property
    def remedy(self) -> str:
        """What ends it; `{}` stands for the option that names the store."""
        if self.kind == "undo":
            return "policygen undo{} ends it."
        return "policygen undo{} takes it back, policygen apply --finish{} completes it."


# Whether somebody was killed while he wrote to a tree: looks, and changes nothing.


def interrupted(store: Path, root: Path) -> tuple[Interrupted, ...]:
    """What a store knows of a tree; a store that is not there or not ours knows nothing."""
    try:
        return _known(store, real(root))
    except (InputError, OSError):
        return ()


def being_written(root: Path) -> bool:
    """Whether somebody writes to the tree now: then nothing was interrupted."""
    return is_locked(real(root))


def _known(store: Path, root: Path) -> tuple[Interrupted, ...]:
    if not store.is_file():
        return ()
    try:
        return _read(store, root, "ro")
    except InputError:
        # Of a commit that was killed only who may write can see what counts.
        return _read(store, root, "rw")


def _read(store: Path, root: Path, mode: str) -> tuple[Interrupted, ...]:
    with store_schema_told(store), opened(store, mode) as connection:
        connection.isolation_level = None
        connection.row_factory = sqlite3.Row
        journal = Journal(store, connection)
        return tuple(_one(journal, write) for write in journal.interrupted() if write.root == root)


def _one(journal: Journal, write: Write) -> Interrupted:
    return Interrupted(
        kind="undo" if journal.applied_by(write) is None else "apply",
        root=write.root,
        new=sum(content(write.path(file)) == file.after for file in write.files),
        files=len(write.files),
    )
