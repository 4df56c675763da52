"""Whether somebody was killed while he wrote to a tree: looks, and changes nothing."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policygen.edit.journal import Journal, Write
from policygen.edit.lock import is_locked
from policygen.edit.target import content, real
from policygen.errors import InputError
from policygen.own_stores import opened
from policygen.store_schema import told


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
    with told(store), opened(store, mode) as connection:
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
