"""Undoes applies byte for byte unless the files were edited since."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from policygen.errors import EditedError, InputError, reported_together
from policygen.store.applies import Recovered, settle
from policygen.store.journal import AppliedRecord, Journal
from policygen.store.replacement import Change, described, replace
from policygen.store.targets import present, real, tree_lock

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
                    _check(newer, change, step)
                last = newer or change
                change_by_path[real(change.path)] = Change(last.path, last.before, change.after)
    changes = (change for change in change_by_path.values() if change.before != change.after)
    return tuple(sorted(changes, key=lambda change: change.path))


def _check(newer: Change | None, change: Change, step: Undone) -> None:
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
    return Undone(
        record.model_copy(update={"state": "undone"}),
        tuple(
            Change(record.root / file.path, file.after, file.before)
            for file in journal.files_of(record.id)
        ),
    )


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
