"""Takes applies back, byte for byte, where nobody edited since."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from policygen.errors import EditedError, InputError, PolicygenError, together
from policygen.store.applies import Recovered, settle
from policygen.store.journal import AppliedRecord, Journal
from policygen.store.replacement import Change, described, replace
from policygen.store.targets import present, real, tree_lock

_REMEDY = "Nothing was undone. Keep the edit elsewhere and take it out, then undo again."


@dataclass(frozen=True, slots=True)
class Undone:
    """One apply, as it is when it is taken back; `after` of a change is what stood there before."""

    applied: AppliedRecord
    changes: tuple[Change, ...]


def undo(store: Path, root: Path | None, steps: int, when: datetime) -> tuple[Undone, ...]:
    """Takes back the newest applies to a tree in one go, newest first.

    An undo that was interrupted is ended, and that is all; which applies it took back is told.
    """
    if not store.exists():
        raise nothing(store, root)
    with Journal.open(store) as journal:
        locked = journal.newest_root() if root is None else real(root)
        if locked is None:
            raise nothing(store, root)
        with tree_lock(locked):
            if ended := _ended(journal, settle(journal, locked)):
                return ended
            if not (undone := _steps(journal, root, steps)):
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
    """What an undo would take back, if anything; writes nothing."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        if any(root is None or write.root == real(root) for write in journal.interrupted()):
            raise InputError(
                "an apply or an undo was interrupted", "Run policygen undo: it ends it."
            )
        undone = _steps(journal, root, steps)
    net_changes(undone)
    return undone


def net_changes(undone: Sequence[Undone]) -> tuple[Change, ...]:
    """What happens to each file over all steps; an error where one was edited in between."""
    errors: list[PolicygenError] = []
    newest: dict[Path, Change] = {}
    for step in undone:
        for change in step.changes:
            key = real(change.path)
            newer = newest.get(key)
            try:
                _check(newer, change, step)
            except PolicygenError as error:
                errors.append(error)
            newest[key] = Change((newer or change).path, (newer or change).before, change.after)
    if errors:
        raise together(errors)
    changes = (change for change in newest.values() if change.before != change.after)
    return tuple(sorted(changes, key=lambda change: change.path))


def _check(newer: Change | None, change: Change, step: Undone) -> None:
    """What the apply left must be what is there, or what the newer one found."""
    found = present(change.path, step.applied.root) if newer is None else newer.after
    if found != change.before:
        when = "since" if newer is None else "before the next apply and after"
        message = f"edited {when} apply {step.applied.id} ({step.applied.title})"
        raise EditedError(str(change.path), message, change.before, found, _REMEDY)


def _steps(journal: Journal, root: Path | None, steps: int) -> tuple[Undone, ...]:
    """The newest applies that are in the tree, newest first; none where there are none at all."""
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
    return tuple(_undone(journal, record) for record in chosen)


def _undone(journal: Journal, record: AppliedRecord) -> Undone:
    return Undone(
        record.model_copy(update={"state": "undone"}),
        tuple(
            Change(record.root / file.path, file.after, file.before)
            for file in journal.files_of(record.id)
        ),
    )


def _ended(journal: Journal, recovered: Sequence[Recovered]) -> tuple[Undone, ...]:
    """What an interrupted undo took back; an apply that never came to be is an error.

    Otherwise who undoes it would take back the one before.
    """
    records = {record.id: record for record in journal.applies()}
    for one in recovered:
        if one.kind == "apply" and one.outcome == "put back":
            record = records[one.applies[0]]
            raise InputError(
                f"apply {record.id} ({record.title}) was interrupted; no file of it is changed now",
                "To take back the apply before it, undo again.",
            )
        if one.kind == "undo" and one.outcome == "finished":
            return tuple(_undone(journal, records[number]) for number in one.applies)
    return ()


def nothing(store: Path, root: Path | None) -> InputError:
    """What to tell of a store that has no apply."""
    where = f" to {root}" if root else ""
    return InputError(
        f"nothing to undo: {store} knows of no apply{where} that is not undone",
        "Name the store that was written then: --store FILE.",
    )
