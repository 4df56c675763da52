"""Records each write with all contents before and after it, so that it can be undone."""

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
from policygen.store_schema import open_store, stamp, store_errors, transaction

PATIENCE = 30.0
"""Seconds to wait for another writer."""
HEADERS = frozenset({".cuh", ".hpp"})
"""Suffixes of the files that policygen writes in a tree; others are never written."""
WriteState = Literal["prepared", "committing", "done", "failed"]


class AppliedRecord(Record):
    """One apply; `files` are relative to `root`."""

    id: int
    root: Path
    title: str
    document: str
    """The request as JSON."""
    applied_at: AwareDatetime
    state: Literal["prepared", "committing", "applied", "undone", "failed"]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of a write, relative to the root."""

    path: str
    mode: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """Files that change together in an apply or an undo."""

    id: int
    root: Path
    staged: str
    state: WriteState
    files: tuple[WrittenFile, ...]

    def path(self, file: WrittenFile) -> Path:
        """The file's path in the tree."""
        return self.root / file.path

    def target(self, file: WrittenFile) -> Path:
        """The file that is replaced; a link is kept and then leads to the new contents."""
        return target_of(self.path(file), self.root)

    def waiting(self, file: WrittenFile) -> Path:
        """Path of the complete new contents, and of the old ones after the exchange."""
        return staged_name(self.target(file), self.staged)

    def half(self, file: WrittenFile) -> Path:
        """Path of the new contents while they are being written."""
        return staged_name(self.target(file), f"{self.staged}.half")


class Journal:
    """An open `policygen.db`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens the store and creates it if necessary."""
        connection = open_store(path, PATIENCE)
        # EXTRA also syncs the folder after a transaction, so that a power failure cannot undo it.
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
        """Records a write before it is done; also returns the number of the apply."""
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
        """Records an undo before it is done; the applies count as undone when the write is done."""
        with self._writing() as connection:
            write = _insert(connection, root, files, when)
            connection.executemany(
                "UPDATE applies SET undone_by = ? WHERE id = ?",
                [(write.id, number) for number in undone],
            )
        return write

    def mark(self, write: Write, state: WriteState) -> None:
        """Sets a write's state."""
        with self._writing() as connection:
            connection.execute("UPDATE writes SET state = ? WHERE id = ?", (state, write.id))

    def applies(self) -> tuple[AppliedRecord, ...]:
        """Returns all applies, oldest first."""
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
        """Returns the files of an apply with the contents before and after it."""
        with self._reading() as connection:
            row = connection.execute("SELECT write FROM applies WHERE id = ?", (number,)).fetchone()
            return _files(connection, row["write"])

    def interrupted(self) -> tuple[Write, ...]:
        """Returns the writes that were started and not finished, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT * FROM writes WHERE state IN ('prepared', 'committing') ORDER BY id"
            ).fetchall()
            return tuple(
                Write(
                    id=row["id"],
                    root=_root(row["root"]),
                    staged=_staging_token(row["staged"]),
                    state=row["state"],
                    files=_files(connection, row["id"]),
                )
                for row in rows
            )

    def newest_root(self) -> Path | None:
        """Returns the tree of the newest write that is applied or was interrupted."""
        with self._reading() as connection:
            row = connection.execute(_NEWEST).fetchone()
            return None if row is None else _root(row["root"])

    def applied_by(self, write: Write) -> int | None:
        """Returns the number of the apply of a write; `None` for an undo."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT id FROM applies WHERE write = ?", (write.id,)
            ).fetchone()
        return None if row is None else row["id"]

    def undone_by(self, write: Write) -> tuple[int, ...]:
        """Returns the applies that an undo takes back, newest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id FROM applies WHERE undone_by = ? ORDER BY id DESC", (write.id,)
            )
            return tuple(row["id"] for row in rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with (
            store_errors(self.path),
            transaction(self._connection, "BEGIN IMMEDIATE") as connection,
        ):
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with store_errors(self.path), transaction(self._connection, "BEGIN") as connection:
            yield connection


def history(store: Path) -> tuple[AppliedRecord, ...]:
    """Returns all applies of a store, oldest first; empty if there is no store."""
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
    token = secrets.token_hex(8)
    number = connection.execute(
        "INSERT INTO writes (root, started_at, staged, state) VALUES (?, ?, ?, 'prepared')",
        (str(root), stamp(when), token),
    ).lastrowid
    assert number is not None
    connection.executemany(
        "INSERT INTO written_files VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                file.path,
                file.mode,
                file.before,
                _digest(file.before),
                file.after,
                _digest(file.after),
            )
            for file in files
        ],
    )
    return Write(id=number, root=root, staged=token, state="prepared", files=tuple(files))


def _files(connection: sqlite3.Connection, write: int) -> tuple[WrittenFile, ...]:
    rows = connection.execute(
        "SELECT * FROM written_files WHERE write = ? ORDER BY path", (write,)
    ).fetchall()
    return tuple(_file(row) for row in rows)


def _root(text: object) -> Path:
    """Validates a tree's root; a relative path would depend on the current folder."""
    if not isinstance(text, str) or not Path(text).is_absolute() or "\0" in text:
        raise ValueError(f"{text!r} is no folder of a tree")
    return Path(text)


def _staging_token(text: object) -> str:
    """Validates a part of file names, which must not contain a path."""
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
_PROOF_FIELDS = ("content", "command", "passed", "whole", "words", "proved_at")


class ProofRecord(Record):
    """One run of a command that proves something about a tree."""

    content: str
    """Digest of the contents of the tree."""
    command: ProofCommand
    passed: bool
    whole: bool
    """Whether the command compared everything that it compares by default."""
    words: str
    proved_at: AwareDatetime


# Proofs about trees: command, content and outcome


def keep_proof(store: Path, root: Path, proof: ProofRecord) -> None:
    """Adds a proof; existing ones are never changed."""
    cells = {**proof.model_dump(), "root": str(real(root)), "proved_at": stamp(proof.proved_at)}
    insert = (
        "INSERT INTO proofs (root, content, command, passed, whole, words, proved_at)"
        " VALUES (:root, :content, :command, :passed, :whole, :words, :proved_at)"
    )
    with (
        store_errors(store),
        closing(open_store(store, PATIENCE)) as connection,
        transaction(connection, "BEGIN IMMEDIATE"),
    ):
        connection.execute(insert, cells)


def proofs_of(store: Path, root: Path, content: str) -> tuple[ProofRecord, ...]:
    """Returns the proofs about a tree, or about the same content elsewhere, newest first."""
    with store_errors(store), closing(open_store(store, PATIENCE)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(
            "SELECT * FROM proofs WHERE root = ? OR content = ? ORDER BY id DESC",
            (str(real(root)), content),
        ).fetchall()
        return tuple(
            ProofRecord.model_validate({name: row[name] for name in _PROOF_FIELDS}) for row in rows
        )
