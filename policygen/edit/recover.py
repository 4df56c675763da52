"""Ends what a killed writer began: afterwards all files are old, or all are new."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policygen.edit.journal import Journal, Write, WrittenFile
from policygen.edit.lock import tree_lock
from policygen.edit.replace import finish, put_back
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
        if one.edited:
            names = ", ".join(map(str, one.edited))
            raise InputError(
                f"{names}: edited after an interrupted {one.kind}, and left as it is;"
                f" the {one.kind} is {one.outcome} in all other files",
                "Look whether the edit still fits, then run the command again.",
            )
    return ended


def _end(journal: Journal, write: Write) -> Recovered:
    edited: list[WrittenFile] = []
    finished = False
    if write.state == "prepared":
        put_back(write, ())
    else:
        edited, finished = _decide(write)
    journal.mark(write, "done" if finished else "failed")
    number = journal.applied_by(write)
    return Recovered(
        kind="undo" if number is None else "apply",
        applies=journal.undone_by(write) if number is None else (number,),
        outcome="finished" if finished else "put back",
        edited=tuple(write.path(file) for file in edited),
    )


def _decide(write: Write) -> tuple[list[WrittenFile], bool]:
    """Brings the files to one side; edited ones cannot move, so their side counts."""
    edited: list[WrittenFile] = []
    moved: list[WrittenFile] = []
    remaining: list[WrittenFile] = []
    forward = True
    for file in write.files:
        found = content(write.target(file))
        # A rename takes the staged file away.
        new = found == file.after or (found != file.before and content(write.waiting(file)) is None)
        (moved if new else remaining).append(file)
        if found not in {file.before, file.after}:
            edited.append(file)
            forward = forward and new
    if moved and forward:
        try:
            finish(write, remaining)
        except InputError:
            pass
        else:
            return edited, True
    put_back(write, write.files)
    return edited, False
