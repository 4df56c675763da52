"""Writes changed files to a tree atomically and records how to undo it."""

import sqlite3
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from policygen.errors import InputError, together
from policygen.outputs import opened
from policygen.store.journal import AppliedRecord, Journal, Write, WrittenFile
from policygen.store.replacement import (
    Change,
    described,
    finish,
    kept_files_note,
    mended,
    put_back,
    replace,
)
from policygen.store.targets import content, inside, is_locked, present, real, tree_lock
from policygen.store_schema import store_errors as store_schema_told

__all__ = ["Recovered", "apply", "recover"]


def apply(
    changes: Sequence[Change], store: Path, root: Path, title: str, document: str, when: datetime
) -> int:
    """Writes all files or none, records the apply for undo, and returns its number.

    `document` is the request as JSON. Interrupted writes are ended first.
    """
    if all(change.before == change.after for change in changes):
        raise InputError("no file would change", "There is nothing to apply.")
    with tree_lock(real(root)), Journal.open(store) as journal:
        settle(journal, real(root))
        files = _checked_files(changes, root)
        number, write = journal.begin_apply(real(root), files, title, document, when)
        replace(journal, write)
    return number


def _checked_files(changes: Sequence[Change], root: Path) -> tuple[WrittenFile, ...]:
    """Returns the files that change; raises if a file no longer has the contents that were read."""
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
    """An interrupted write and its outcome."""

    kind: Literal["apply", "undo"]
    applies: tuple[int, ...]
    """The apply; for an undo, the applies that it takes back, newest first."""
    outcome: Literal["finished", "put back"]
    edited: tuple[Path, ...]
    """Files that were edited after the interruption; they are left alone."""
    kept: tuple[Path, ...] = ()
    """Other contents that were written during the replacement, by their present names."""


# Recovery from a killed writer: afterwards, all files are old or all are new


def recover(store: Path, root: Path) -> tuple[Recovered, ...]:
    """Ends the interrupted writes to a tree, oldest first."""
    if not store.exists():
        return ()
    root = real(root)
    with tree_lock(root), Journal.open(store) as journal:
        return end_interrupted(journal, root)


def end_interrupted(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """Like `recover`, for a caller that holds the lock."""
    return tuple(
        _end_write(journal, write) for write in journal.interrupted() if write.root == root
    )


def settle(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """Like `end_interrupted`, but raises if a file was edited, so that the user checks it."""
    ended = end_interrupted(journal, root)
    for recovered in ended:
        if recovered.edited or recovered.kept:
            names = ", ".join(map(str, recovered.edited))
            clauses = [f"{names}: edited after an interrupted {recovered.kind}, and left as it is"]
            clauses += [f"the {recovered.kind} is {recovered.outcome} in all other files"]
            clauses += [kept_files_note(recovered.kept)] if recovered.kept else []
            raise InputError(
                "; ".join(clauses if recovered.edited else clauses[1:]),
                "Look whether the edit still fits, then run the command again.",
            )
    return ended


def complete(store: Path, root: Path | None) -> tuple[AppliedRecord, ...]:
    """Finishes the interrupted apply to a tree, or to the tree of the newest one."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        requested_root = None if root is None else real(root)
        roots = [
            write.root for write in journal.interrupted() if requested_root in {None, write.root}
        ]
        if not roots:
            return ()
        with tree_lock(roots[-1]):
            unfinished = [write for write in journal.interrupted() if write.root == roots[-1]]
            numbers = {_complete_write(journal, write) for write in unfinished}
        return tuple(record for record in journal.applies() if record.id in numbers)


def _complete_write(journal: Journal, write: Write) -> int:
    number = journal.applied_by(write)
    if number is None:
        raise InputError("an undo was interrupted, no apply", "Run policygen undo: it ends it.")
    mended(write)
    progress = _progress_of(write)
    if blocked := [file for file in progress.edited if file in progress.remaining]:
        names = ", ".join(str(write.path(file)) for file in blocked)
        raise InputError(
            f"{names}: edited after an interrupted apply, which cannot be finished there",
            "Run policygen undo: all other files get what they had, and the edit stays.",
        )
    journal.mark(write, "committing")
    finish(write, progress.remaining)
    journal.mark(write, "done")
    return number


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a write got."""

    moved: tuple[WrittenFile, ...]
    remaining: tuple[WrittenFile, ...]
    edited: tuple[WrittenFile, ...]
    """Files of either kind that have neither the old nor the new contents."""


def _progress_of(write: Write) -> _Progress:
    moved: list[WrittenFile] = []
    remaining: list[WrittenFile] = []
    edited: list[WrittenFile] = []
    for file in write.files:
        current = content(write.target(file))
        # The staged file holds the new contents until it is exchanged with the target.
        is_staged_new = content(write.waiting(file)) == file.after
        is_moved = current == file.after or (current != file.before and not is_staged_new)
        (moved if is_moved else remaining).append(file)
        if current not in {file.before, file.after}:
            edited.append(file)
    return _Progress(tuple(moved), tuple(remaining), tuple(edited))


def _end_write(journal: Journal, write: Write) -> Recovered:
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
    """Moves all files to one side: the side of the edited files, which cannot be moved."""
    mended(write)
    progress = _progress_of(write)
    if progress.moved and not any(file in progress.remaining for file in progress.edited):
        try:
            return progress.edited, True, finish(write, progress.remaining)
        except InputError:
            pass  # without space for new contents, the old ones may still be restored
    return progress.edited, False, put_back(write, write.files)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A write that was started and not finished."""

    kind: Literal["apply", "undo"]
    root: Path
    new: int
    """Number of files that have their new contents."""
    files: int

    def __str__(self) -> str:
        count = f"{self.new} of {self.files} headers of {self.root}"
        state = "are new" if self.kind == "apply" else "are as they were before"
        return f"an {self.kind} was interrupted: {count} {state}"

    @property
    def remedy(self) -> str:
        """The command that ends it; `{}` is replaced by the option that names the store."""
        if self.kind == "undo":
            return "policygen undo{} ends it."
        return "policygen undo{} takes it back, policygen apply --finish{} completes it."


# Read-only detection of interrupted writes


def interrupted(store: Path, root: Path) -> tuple[Interrupted, ...]:
    """Returns the interrupted writes to a tree; none if the store is missing or unreadable."""
    root = real(root)

    def read(journal: Journal) -> tuple[Interrupted, ...]:
        writes = (write for write in journal.interrupted() if write.root == root)
        return tuple(_interrupted_write(journal, write) for write in writes)

    try:
        return _read_store(store, read)
    except (InputError, OSError):
        return ()


def being_written(root: Path) -> bool:
    """Returns whether a writer is active in the tree, in which case nothing was interrupted."""
    return is_locked(real(root))


def changed_roots(store: Path) -> tuple[Path, ...]:
    """Returns the trees with applies that are not undone; none if the store is unreadable."""

    def read(journal: Journal) -> tuple[Path, ...]:
        states = {"prepared", "committing", "applied"}
        standing = (applied.root for applied in journal.applies() if applied.state in states)
        return tuple(dict.fromkeys(standing))

    try:
        return _read_store(store, read)
    except (InputError, OSError):
        return ()


Read = TypeVar("Read")


def _read_store(store: Path, read: Callable[[Journal], tuple[Read, ...]]) -> tuple[Read, ...]:
    if not store.is_file():
        return ()
    try:
        return _read(store, read, "ro")
    except InputError:
        # After a killed commit, only a connection that can write sees the committed state.
        return _read(store, read, "rw")


def _read(store: Path, read: Callable[[Journal], Read], mode: str) -> Read:
    with store_schema_told(store), opened(store, mode) as connection:
        connection.isolation_level = None
        connection.row_factory = sqlite3.Row
        return read(Journal(store, connection))


def _interrupted_write(journal: Journal, write: Write) -> Interrupted:
    return Interrupted(
        kind="undo" if journal.applied_by(write) is None else "apply",
        root=write.root,
        new=sum(content(write.path(file)) == file.after for file in write.files),
        files=len(write.files),
    )
