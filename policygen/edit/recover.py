"""Ends what a killed writer began: afterwards all files are old, or all are new."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policygen.edit.journal import AppliedRecord, Journal, Write, WrittenFile
from policygen.edit.lock import tree_lock
from policygen.edit.replace import finish, mended, put_back, told
from policygen.edit.target import content, real
from policygen.errors import InputError


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
