"""Records each write with all contents before and after it, so that it can be undone."""

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import AwareDatetime

from policygen.model.records import Record
from policygen.store.targets import real, staged_name, target_of
from policygen.store_schema import OpenStore, stamp

HEADERS = frozenset({".cuh", ".hpp"})
"""Suffixes of the files that policygen writes in a tree; others are never written."""
WriteKind = Literal["apply", "undo"]
WriteState = Literal["prepared", "committing", "done", "failed"]
ProofCommand = Literal["apply", "verify-effect", "verify-sass"]


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
    kind: WriteKind
    applies: tuple[int, ...]
    """The apply; for an undo, the applies that it takes back, newest first."""

    def path(self, file: WrittenFile) -> Path:
        """The file's path in the tree."""
        return self.root / file.path

    def target(self, file: WrittenFile) -> Path:
        """The file that is replaced; a link is kept and then leads to the new contents."""
        return target_of(self.path(file), self.root)

    def waiting(self, file: WrittenFile) -> Path:
        """Path of the new contents until they replace the target."""
        return staged_name(self.target(file), self.staged)


class Journal(OpenStore):
    """The store's record of writes."""

    def begin_apply(
        self, root: Path, files: Sequence[WrittenFile], title: str, document: str, when: datetime
    ) -> Write:
        """Records a write before it is done."""
        with self.writing() as connection:
            write = _insert(connection, root, files, when)
            connection.execute(
                "INSERT INTO applies (write, title, document, applied_at) VALUES (?, ?, ?, ?)",
                (write, title, document, stamp(when)),
            )
            return _write(connection, write)

    def begin_undo(
        self, root: Path, files: Sequence[WrittenFile], undone: Iterable[int], when: datetime
    ) -> Write:
        """Records an undo before it is done; the applies count as undone when the write is done."""
        with self.writing() as connection:
            write = _insert(connection, root, files, when)
            connection.executemany(
                "UPDATE applies SET undone_by = ? WHERE id = ?",
                [(write, number) for number in undone],
            )
            return _write(connection, write)

    def mark(self, write: Write, state: WriteState) -> None:
        """Sets a write's state."""
        with self.writing() as connection:
            connection.execute("UPDATE writes SET state = ? WHERE id = ?", (state, write.id))

    def applies(self) -> tuple[AppliedRecord, ...]:
        """Returns all applies, oldest first."""
        with self.reading() as connection:
            files: dict[int, list[str]] = {}
            for write, path in connection.execute(
                "SELECT write, path FROM written_files ORDER BY write, path"
            ):
                files.setdefault(write, []).append(path)
            return tuple(
                AppliedRecord(
                    **{name: row[name] for name in ("id", "title", "document", "applied_at")},
                    root=_root(row["root"]),
                    state=row["state"],
                    files=tuple(files.get(row["write"], ())),
                )
                for row in connection.execute(_APPLIES)
            )

    def files_of(self, number: int) -> tuple[WrittenFile, ...]:
        """Returns the files of an apply with the contents before and after it."""
        with self.reading() as connection:
            row = connection.execute("SELECT write FROM applies WHERE id = ?", (number,)).fetchone()
            return _files(connection, row["write"])

    def interrupted(self, root: Path | None = None) -> tuple[Write, ...]:
        """Returns the writes to a tree that were started and not finished, oldest first."""
        query = "SELECT id FROM writes WHERE state IN ('prepared', 'committing') ORDER BY id"
        with self.reading() as connection:
            writes = [_write(connection, row["id"]) for row in connection.execute(query).fetchall()]
        return tuple(write for write in writes if root in {None, write.root})

    def newest_root(self) -> Path | None:
        """Returns the tree of the newest write that is applied or was interrupted."""
        with self.reading() as connection:
            row = connection.execute(_NEWEST).fetchone()
            return None if row is None else _root(row["root"])


def history(store: Path) -> tuple[AppliedRecord, ...]:
    """Returns all applies of a store, oldest first; empty if there is no store."""
    if not store.exists():
        return ()
    with Journal.open(store) as journal:
        return journal.applies()


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
) -> int:
    number = connection.execute(
        "INSERT INTO writes (root, started_at, staged, state) VALUES (?, ?, ?, 'prepared')",
        (str(root), stamp(when), secrets.token_hex(8)),
    ).lastrowid
    assert number is not None
    for file in files:
        before, after = (file.before, _digest(file.before)), (file.after, _digest(file.after))
        connection.execute(
            "INSERT INTO written_files VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, file.path, file.mode, *before, *after),
        )
    return number


def _write(connection: sqlite3.Connection, number: int) -> Write:
    row = connection.execute("SELECT * FROM writes WHERE id = ?", (number,)).fetchone()
    applies = connection.execute(
        "SELECT id, write FROM applies WHERE ? IN (write, undone_by) ORDER BY id DESC", (number,)
    ).fetchall()
    return Write(
        id=number,
        root=_root(row["root"]),
        staged=_staging_token(row["staged"]),
        state=row["state"],
        files=_files(connection, number),
        kind="apply" if any(apply["write"] == number for apply in applies) else "undo",
        applies=tuple(apply["id"] for apply in applies),
    )


def _files(connection: sqlite3.Connection, write: int) -> tuple[WrittenFile, ...]:
    query = "SELECT * FROM written_files WHERE write = ? ORDER BY path"
    return tuple(map(_file, connection.execute(query, (write,))))


def _root(text: object) -> Path:
    """Validates a tree's root; a relative path would depend on the current folder."""
    if not isinstance(text, str) or not Path(text).is_absolute() or "\0" in text:
        raise ValueError(f"{text!r} is not the folder of a tree")
    return Path(text)


def _staging_token(text: object) -> str:
    """Validates a part of file names, which must not contain a path."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{16}", text):
        raise ValueError(f"{text!r} is not the suffix of staged files")
    return text


def _file(row: sqlite3.Row) -> WrittenFile:
    path = PurePosixPath(row["path"])
    inside = not (path.is_absolute() or ".." in path.parts or "\0" in row["path"])
    if not inside or path.suffix not in HEADERS:
        raise ValueError(f"{path} is not a header of a tree")
    for name in ("before", "after"):
        if _digest(row[name]) != row[f"{name}_sha256"]:
            raise ValueError(f"the stored contents of {row['path']} are damaged")
    return WrittenFile(path=row["path"], mode=row["mode"], before=row["before"], after=row["after"])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Proofs about trees: command, content and outcome


def keep_proof(store: Path, root: Path, proof: ProofRecord) -> None:
    """Adds a proof; existing ones are never changed."""
    cells = {**proof.model_dump(), "root": str(real(root)), "proved_at": stamp(proof.proved_at)}
    insert = (
        "INSERT INTO proofs (root, content, command, passed, whole, words, proved_at)"
        " VALUES (:root, :content, :command, :passed, :whole, :words, :proved_at)"
    )
    with Journal.open(store) as journal, journal.writing() as connection:
        connection.execute(insert, cells)


def proofs_of(store: Path, root: Path, content: str) -> tuple[ProofRecord, ...]:
    """Returns the proofs about a tree, or about the same content elsewhere, newest first."""
    query = (
        f"SELECT {', '.join(ProofRecord.model_fields)} FROM proofs"  # noqa: S608  our names
        " WHERE root = ? OR content = ? ORDER BY id DESC"
    )
    with Journal.open(store) as journal, journal.reading() as connection:
        rows = connection.execute(query, (str(real(root)), content))
        return tuple(ProofRecord.model_validate(dict(row)) for row in rows)
