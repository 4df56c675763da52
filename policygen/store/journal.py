"""What was written when, with all contents before and after: enough to take it back."""

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from pydantic import AwareDatetime

from policygen.model.records import Record
from policygen.store.targets import real, staged_name, target_of
from policygen.store_schema import open_store, stamp, told, transaction

PATIENCE = 30.0
"""Seconds that a writer waits for another one."""
HEADERS = frozenset({".cuh", ".hpp"})
"""How the names of the files end that policygen writes in a tree; nothing else is ever written."""
WriteState = Literal["prepared", "committing", "done", "failed"]


class AppliedRecord(Record):
    """One apply; `files` are seen from `root`."""

    id: int
    root: Path
    title: str
    document: str
    """What was asked for, as JSON."""
    applied_at: AwareDatetime
    state: Literal["prepared", "committing", "applied", "undone", "failed"]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of a write, seen from the root."""

    path: str
    mode: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """Files that change together: an apply, or the undo of some."""

    id: int
    root: Path
    staged: str
    state: WriteState
    files: tuple[WrittenFile, ...]

    def path(self, file: WrittenFile) -> Path:
        """A file as its user knows it."""
        return self.root / file.path

    def target(self, file: WrittenFile) -> Path:
        """The file that is replaced: a link stays, and leads to the new contents."""
        return target_of(self.path(file), self.root)

    def waiting(self, file: WrittenFile) -> Path:
        """Where its next contents wait, whole; then what they replaced."""
        return staged_name(self.target(file), self.staged)

    def half(self, file: WrittenFile) -> Path:
        """Where its next contents are written."""
        return staged_name(self.target(file), f"{self.staged}.half")


class Journal:
    """An open `policygen.db`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens the store, makes it where there is none."""
        connection = open_store(path, PATIENCE)
        # FULL, and the folder is synced when a transaction ends: no power cut takes it back.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.row_factory = sqlite3.Row
        return cls(path, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._connection.close()

    def begin_apply(
        self, root: Path, files: Sequence[WrittenFile], title: str, document: str, when: datetime
    ) -> tuple[int, Write]:
        """Stores what is about to be written; returns the number of the apply, too."""
        with self._writing() as connection:
            write = _insert(connection, root, files, when)
            number = connection.execute(
                "INSERT INTO applies (write, title, document, applied_at) VALUES (?, ?, ?, ?)",
                (write.id, title, document, stamp(when)),
            ).lastrowid
        assert number is not None
        return number, write

    def begin_undo(
        self, root: Path, files: Sequence[WrittenFile], undone: Sequence[int], when: datetime
    ) -> Write:
        """The same for taking applies back; they count as undone when the write is done."""
        with self._writing() as connection:
            write = _insert(connection, root, files, when)
            connection.executemany(
                "UPDATE applies SET undone_by = ? WHERE id = ?",
                [(write.id, number) for number in undone],
            )
        return write

    def mark(self, write: Write, state: WriteState) -> None:
        """Moves a write on."""
        with self._writing() as connection:
            connection.execute("UPDATE writes SET state = ? WHERE id = ?", (state, write.id))

    def applies(self) -> tuple[AppliedRecord, ...]:
        """All applies in the order they were stored."""
        with self._reading() as connection:
            files: dict[int, tuple[str, ...]] = {}
            for write, path in connection.execute(
                "SELECT write, path FROM written_files ORDER BY write, path"
            ):
                files[write] = (*files.get(write, ()), path)
            rows = connection.execute(_APPLIES).fetchall()
            return tuple(
                AppliedRecord(
                    **{name: row[name] for name in _FIELDS} | {"root": _root(row["root"])},
                    files=files.get(row["write"], ()),
                )
                for row in rows
            )

    def files_of(self, number: int) -> tuple[WrittenFile, ...]:
        """The contents that an apply found and left."""
        with self._reading() as connection:
            row = connection.execute("SELECT write FROM applies WHERE id = ?", (number,)).fetchone()
            return _files(connection, row["write"])

    def interrupted(self) -> tuple[Write, ...]:
        """Writes that were begun and not ended, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT * FROM writes WHERE state IN ('prepared', 'committing') ORDER BY id"
            ).fetchall()
            return tuple(
                Write(
                    id=row["id"],
                    root=_root(row["root"]),
                    staged=_mark(row["staged"]),
                    state=row["state"],
                    files=_files(connection, row["id"]),
                )
                for row in rows
            )

    def newest_root(self) -> Path | None:
        """The tree of the newest write that is in a tree, or was interrupted."""
        with self._reading() as connection:
            row = connection.execute(_NEWEST).fetchone()
            return None if row is None else _root(row["root"])

    def applied_by(self, write: Write) -> int | None:
        """The apply that a write is; none for an undo."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT id FROM applies WHERE write = ?", (write.id,)
            ).fetchone()
        return None if row is None else row["id"]

    def undone_by(self, write: Write) -> tuple[int, ...]:
        """The applies that an undo takes back, newest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id FROM applies WHERE undone_by = ? ORDER BY id DESC", (write.id,)
            )
            return tuple(row["id"] for row in rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with told(self.path), transaction(self._connection, "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with told(self.path), transaction(self._connection, "BEGIN") as connection:
            yield connection


def history(store: Path) -> tuple[AppliedRecord, ...]:
    """All applies of a store, oldest first; none where there is no store."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        return journal.applies()


_FIELDS = ("id", "root", "title", "document", "applied_at", "state")
_APPLIES = """
    SELECT applies.*, own.root,
        CASE
            WHEN undo.state = 'done' THEN 'undone'
            WHEN own.state = 'done' THEN 'applied'
            ELSE own.state
        END AS state
    FROM applies
    JOIN writes AS own ON own.id = applies.write
    LEFT JOIN writes AS undo ON undo.id = applies.undone_by
    ORDER BY applies.id
"""
_NEWEST = """
    SELECT own.root
    FROM writes AS own
    LEFT JOIN applies ON applies.write = own.id
    LEFT JOIN writes AS undo ON undo.id = applies.undone_by
    WHERE own.state IN ('prepared', 'committing')
        OR (own.state = 'done' AND applies.id IS NOT NULL AND undo.state IS NOT 'done')
    ORDER BY own.id DESC LIMIT 1
"""


def _insert(
    connection: sqlite3.Connection, root: Path, files: Sequence[WrittenFile], when: datetime
) -> Write:
    mark = secrets.token_hex(8)
    number = connection.execute(
        "INSERT INTO writes (root, started_at, staged, state) VALUES (?, ?, ?, 'prepared')",
        (str(root), stamp(when), mark),
    ).lastrowid
    assert number is not None
    connection.executemany(
        "INSERT INTO written_files VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (number, f.path, f.mode, f.before, _digest(f.before), f.after, _digest(f.after))
            for f in files
        ],
    )
    return Write(id=number, root=root, staged=mark, state="prepared", files=tuple(files))


def _files(connection: sqlite3.Connection, write: int) -> tuple[WrittenFile, ...]:
    rows = connection.execute(
        "SELECT * FROM written_files WHERE write = ? ORDER BY path", (write,)
    ).fetchall()
    return tuple(_file(row) for row in rows)


def _root(text: object) -> Path:
    """A tree; a relative one would be another in each folder."""
    if not isinstance(text, str) or not Path(text).is_absolute() or "\0" in text:
        raise ValueError(f"{text!r} is no folder of a tree")
    return Path(text)


def _mark(text: object) -> str:
    """A part of the names of files; nothing that leads elsewhere."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{16}", text):
        raise ValueError(f"{text!r} is no mark of files that wait")
    return text


def _file(row: sqlite3.Row) -> WrittenFile:
    path = PurePosixPath(row["path"])
    inside = not (path.is_absolute() or ".." in path.parts or "\0" in row["path"])
    if not inside or path.suffix not in HEADERS:
        raise ValueError(f"{path} is no header of a tree")
    for name in ("before", "after"):
        if _digest(row[name]) != row[f"{name}_sha256"]:
            raise ValueError(f"the contents of {row['path']} are not those that were stored")
    return WrittenFile(path=row["path"], mode=row["mode"], before=row["before"], after=row["after"])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


ProofCommand = Literal["apply", "verify-effect", "verify-sass"]
_PROOFS_FIELDS = ("content", "command", "passed", "whole", "words", "proved_at")


class ProofRecord(Record):
    """One run of a command that proves something."""

    content: str
    """That of the tree which it was run on."""
    command: ProofCommand
    passed: bool
    whole: bool
    """Whether all was compared that the command compares when it is not told otherwise."""
    words: str
    proved_at: AwareDatetime


# What was proved of trees, in the store: by which command, of which content, how it ended.


def keep_proof(store: Path, root: Path, proof: ProofRecord) -> None:
    """Adds a proof; nothing that is there is changed."""
    cells = {**proof.model_dump(), "root": str(real(root)), "proved_at": stamp(proof.proved_at)}
    insert = (
        "INSERT INTO proofs (root, content, command, passed, whole, words, proved_at)"
        " VALUES (:root, :content, :command, :passed, :whole, :words, :proved_at)"
    )
    with (
        told(store),
        closing(open_store(store, PATIENCE)) as connection,
        transaction(connection, "BEGIN IMMEDIATE"),
    ):
        connection.execute(insert, cells)


def proofs_of(store: Path, root: Path, content: str) -> tuple[ProofRecord, ...]:
    """What was proved of a tree, or of its content elsewhere; newest first."""
    with told(store), closing(open_store(store, PATIENCE)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(
            "SELECT * FROM proofs WHERE root = ? OR content = ? ORDER BY id DESC",
            (str(real(root)), content),
        ).fetchall()
        return tuple(
            ProofRecord.model_validate({name: row[name] for name in _PROOFS_FIELDS}) for row in rows
        )
