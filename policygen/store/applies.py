"""Writes changed files to a tree atomically, and undoes that byte for byte."""

import sqlite3
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from policygen.errors import EditedError, InputError, reported_together
from policygen.outputs import opened
from policygen.store.journal import AppliedRecord, Journal, Write, WriteKind, WrittenFile
from policygen.store.replacement import Change, described, finish, put_back, replace
from policygen.store.targets import content, inside, present, real, tree_lock
from policygen.store_schema import store_errors


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
        write = journal.begin_apply(real(root), files, title, document, when)
        replace(journal, write)
    return write.applies[0]


def _checked_files(changes: Sequence[Change], root: Path) -> tuple[WrittenFile, ...]:
    """Returns the files that change; raises if a file no longer has the contents that were read."""
    files: dict[Path, WrittenFile] = {}
    with reported_together() as part:
        for change in sorted(changes, key=lambda change: change.path):
            with part():
                _check(change, files, root)
                if change.before != change.after:
                    files[real(change.path)] = described(change, root)
    return tuple(files.values())


def _check(change: Change, files: Container[Path], root: Path) -> None:
    inside(change.path, root)
    if present(change.path, root) != change.before:
        raise InputError(
            f"{change.path} was changed since it was read",
            "Make the plan again; nothing was written.",
        )
    if real(change.path) in files:
        raise InputError(f"{change.path} would be changed twice", "Combine the edits into one.")


# Recovery from a killed writer: afterwards, all files are old or all are new


@dataclass(frozen=True, slots=True)
class Recovered:
    """An interrupted write and its outcome."""

    kind: WriteKind
    applies: tuple[int, ...]
    """The apply; for an undo, the applies that it takes back, newest first."""
    outcome: Literal["finished", "put back"]
    edited: tuple[Path, ...]
    """Files that were edited after the interruption; they are left alone."""


def end_interrupted(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """Ends the interrupted writes to a tree, oldest first, for a caller that holds its lock."""
    return tuple(_end(journal, write) for write in journal.interrupted(root))


def settle(journal: Journal, root: Path) -> tuple[Recovered, ...]:
    """Like `end_interrupted`, but raises if a file was edited, so that the user checks it."""
    ended = end_interrupted(journal, root)
    for recovered in ended:
        if recovered.edited:
            names, kind = ", ".join(map(str, recovered.edited)), recovered.kind
            raise InputError(
                f"{names}: edited after an interrupted {kind} and left unchanged; the {kind} is"
                f" {recovered.outcome} in all other files",
                "Check whether the edit still fits, then run the command again.",
            )
    return ended


def complete(store: Path, root: Path | None) -> tuple[AppliedRecord, ...]:
    """Finishes the interrupted apply to a tree, or to the tree of the newest one."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        interrupted_writes = journal.interrupted(None if root is None else real(root))
        if not interrupted_writes:
            return ()
        newest_root = interrupted_writes[-1].root
        with tree_lock(newest_root):
            numbers = {_complete(journal, write) for write in journal.interrupted(newest_root)}
        return tuple(record for record in journal.applies() if record.id in numbers)


def _complete(journal: Journal, write: Write) -> int:
    if write.kind == "undo":
        raise InputError(
            "an undo was interrupted, not an apply", "Run policygen undo to complete it."
        )
    _, remaining, edited = _progress(write)
    if blocked := [file for file in edited if file in remaining]:
        names = ", ".join(str(write.path(file)) for file in blocked)
        raise InputError(
            f"{names}: edited after an interrupted apply, so the apply cannot be completed",
            "Run policygen undo: it restores all other files and keeps the edit.",
        )
    journal.mark(write, "committing")
    finish(write, remaining)
    journal.mark(write, "done")
    return write.applies[0]


def _end(journal: Journal, write: Write) -> Recovered:
    """Moves all files to one side: the side of the edited files, which cannot be moved."""
    edited: Sequence[WrittenFile] = ()
    outcome: Literal["finished", "put back"] = "put back"
    if write.state == "committing":
        moved, remaining, edited = _progress(write)
        if moved and not any(file in remaining for file in edited):
            # Without space for new contents, the old ones may still be restored.
            with suppress(InputError):
                finish(write, remaining)
                outcome = "finished"
    if outcome == "put back":
        put_back(write)
    journal.mark(write, "done" if outcome == "finished" else "failed")
    paths = tuple(write.path(file) for file in edited)
    return Recovered(write.kind, write.applies, outcome, paths)


def _progress(
    write: Write,
) -> tuple[Sequence[WrittenFile], Sequence[WrittenFile], Sequence[WrittenFile]]:
    """Returns the files that were replaced, the others, and those of either that were edited."""
    moved: list[WrittenFile] = []
    remaining: list[WrittenFile] = []
    edited: list[WrittenFile] = []
    for file in write.files:
        current = content(write.target(file))
        # The new contents wait until they replace the target.
        is_edited = current not in {file.before, file.after}
        waits = content(write.waiting(file)) == file.after
        is_moved = current == file.after or (is_edited and not waits)
        (moved if is_moved else remaining).append(file)
        if is_edited:
            edited.append(file)
    return moved, remaining, edited


# Read-only detection of interrupted writes


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A write that was started and not finished."""

    kind: WriteKind
    root: Path
    new: int
    """Number of files that have their new contents."""
    files: int

    def __str__(self) -> str:
        count = f"{self.new} of {self.files} headers of {self.root}"
        state = "are new" if self.kind == "apply" else "are unchanged"
        return f"an {self.kind} was interrupted: {count} {state}"

    @property
    def remedy(self) -> str:
        """The command that ends it; `{}` is replaced by the option that names the store."""
        if self.kind == "undo":
            return "policygen undo{} completes it."
        return "policygen undo{} undoes it, policygen apply --finish{} completes it."


def interrupted(store: Path, root: Path) -> tuple[Interrupted, ...]:
    """Returns the interrupted writes to a tree; none if the store is missing or unreadable."""

    def progress(write: Write) -> Interrupted:
        new = sum(content(write.path(file)) == file.after for file in write.files)
        return Interrupted(write.kind, write.root, new, len(write.files))

    return _read_only(store, lambda journal: tuple(map(progress, journal.interrupted(real(root)))))


def changed_roots(store: Path) -> tuple[Path, ...]:
    """Returns the trees with applies that are not undone; none if the store is unreadable."""
    states = {"prepared", "committing", "applied"}
    return _read_only(
        store,
        lambda journal: tuple(
            dict.fromkeys(apply.root for apply in journal.applies() if apply.state in states)
        ),
    )


Row = TypeVar("Row")


def _read_only(store: Path, read: Callable[[Journal], tuple[Row, ...]]) -> tuple[Row, ...]:
    """Reads a store without creating or migrating it; nothing if it cannot be read."""
    # After a killed commit, only a connection that can write sees the committed state.
    for mode in ("ro", "rw"):
        with (
            suppress(InputError, OSError),
            store_errors(store),
            opened(store, mode) as connection,
        ):
            connection.row_factory = sqlite3.Row
            return read(Journal(store, connection))
    return ()


# Undo: byte for byte, unless the files were edited since

_REMEDY = "Nothing was undone. Save the edit elsewhere, revert it, then undo again."


@dataclass(frozen=True, slots=True)
class Undone:
    """An apply that is undone; each change's `after` has the contents from before the apply."""

    applied: AppliedRecord
    changes: tuple[Change, ...]


def undo(store: Path, root: Path | None, steps: int, when: datetime) -> tuple[Undone, ...]:
    """Undoes the newest applies to a tree at once, newest first.

    If an undo was interrupted, this only finishes it and returns the applies it undid.
    """
    if not store.exists():
        raise nothing(store, root)
    with Journal.open(store) as journal:
        locked = journal.newest_root() if root is None else real(root)
        if locked is None:
            raise nothing(store, root)
        with tree_lock(locked):
            if ended := _taken_back(journal, settle(journal, locked)):
                return ended
            if not (undone := _newest_steps(journal, root, steps)):
                raise nothing(store, root)
            if undone[0].applied.root != locked:
                raise InputError(
                    f"the newest apply is now to {undone[0].applied.root}", "Run the command again."
                )
            files = [described(change, locked) for change in net_changes(undone)]
            numbers = [step.applied.id for step in undone]
            replace(journal, journal.begin_undo(locked, files, numbers, when))
    return undone


def planned(store: Path, root: Path | None, steps: int) -> tuple[Undone, ...]:
    """Returns what an undo would do, without writing."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        if journal.interrupted(None if root is None else real(root)):
            raise InputError(
                "an apply or an undo was interrupted", "Run policygen undo to complete it."
            )
        undone = _newest_steps(journal, root, steps)
    net_changes(undone)
    return undone


def net_changes(undone: Sequence[Undone]) -> tuple[Change, ...]:
    """Combines all steps into one change per file; raises if a file was edited in between."""
    change_by_path: dict[Path, Change] = {}
    with reported_together() as part:
        for step in undone:
            for change in step.changes:
                newer = change_by_path.get(real(change.path))
                with part():
                    _check_step(newer, change, step)
                last = newer or change
                change_by_path[real(change.path)] = Change(last.path, last.before, change.after)
    changes = (change for change in change_by_path.values() if change.before != change.after)
    return tuple(sorted(changes, key=lambda change: change.path))


def _check_step(newer: Change | None, change: Change, step: Undone) -> None:
    """Compares an apply's result with the file, or with what the next apply found."""
    current = present(change.path, step.applied.root) if newer is None else newer.after
    if current != change.before:
        when = "since" if newer is None else "before the next apply and after"
        message = f"edited {when} apply {step.applied.id} ({step.applied.title})"
        raise EditedError(str(change.path), message, change.before, current, _REMEDY)


def _newest_steps(journal: Journal, root: Path | None, steps: int) -> tuple[Undone, ...]:
    """Returns the newest applied records, newest first; empty if there are none."""
    if steps < 1:
        raise InputError(f"{steps} steps cannot be undone", "Give a number from 1.")
    applied = [record for record in reversed(journal.applies()) if record.state == "applied"]
    if root is not None:
        applied = [record for record in applied if record.root == real(root)]
    if applied and steps > len(applied):
        raise InputError(f"{steps} steps cannot be undone: there are {len(applied)}")
    chosen = applied[:steps]
    roots = sorted({str(record.root) for record in chosen})
    if len(roots) > 1:
        raise InputError(
            f"the last {steps} applies are to different trees: {', '.join(roots)}",
            "Name one with --cub.",
        )
    return tuple(_as_undone(journal, record) for record in chosen)


def _as_undone(journal: Journal, record: AppliedRecord) -> Undone:
    files = journal.files_of(record.id)
    changes = tuple(Change(record.root / file.path, file.after, file.before) for file in files)
    return Undone(record.model_copy(update={"state": "undone"}), changes)


def _taken_back(journal: Journal, recovered: Sequence[Recovered]) -> tuple[Undone, ...]:
    """Returns what an interrupted undo took back; raises for an apply that was rolled back.

    Otherwise the user would undo the apply before it by accident.
    """
    records = {record.id: record for record in journal.applies()}
    for write in recovered:
        if write.kind == "apply" and write.outcome == "put back":
            record = records[write.applies[0]]
            raise InputError(
                f"apply {record.id} ({record.title}) was interrupted; all of its files are"
                " restored",
                "To undo the previous apply as well, undo again.",
            )
        if write.kind == "undo" and write.outcome == "finished":
            return tuple(_as_undone(journal, records[number]) for number in write.applies)
    return ()


def nothing(store: Path, root: Path | None) -> InputError:
    """Returns the error for a store without an apply to undo."""
    where = f" to {root}" if root else ""
    return InputError(
        f"nothing to undo: {store} records no apply{where} that can be undone",
        "If another store recorded it, name that store: --store FILE",
    )
