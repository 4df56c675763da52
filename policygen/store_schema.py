"""The schema of `policygen.db` by version, and how the file is opened and written."""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from policygen.errors import InputError
from policygen.outputs import remember

APPLICATION_ID = 0x70676462
"""SQLite's application id for the file: `pgdb`."""
PATIENCE = 30.0
"""Seconds that a writer waits for another writer."""
_REMEDY = "Move it away; policygen will create a new one."

# Each migration leads from its index in this list to the next version; they must never change.
MIGRATIONS = (
    """
    CREATE TABLE choices (
        id INTEGER PRIMARY KEY,
        chosen_at TEXT NOT NULL,
        algorithm TEXT NOT NULL,
        workload TEXT NOT NULL,
        gpu TEXT NOT NULL,
        ctk TEXT NOT NULL,
        cccl TEXT NOT NULL,
        decision TEXT NOT NULL,
        variant TEXT,
        score REAL,
        reason TEXT NOT NULL
    );
    CREATE TABLE sources (
        choice INTEGER NOT NULL REFERENCES choices(id),
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL
    );
    CREATE TABLE outcomes (
        id INTEGER PRIMARY KEY,
        choice INTEGER NOT NULL REFERENCES choices(id),
        state TEXT NOT NULL,
        at TEXT NOT NULL
    );
    """,
    """
    CREATE INDEX sources_of ON sources(choice);
    CREATE INDEX outcomes_of ON outcomes(choice);
    CREATE INDEX choices_of ON choices(algorithm);
    """,
    """
    CREATE TABLE writes (
        id INTEGER PRIMARY KEY,
        root TEXT NOT NULL,
        started_at TEXT NOT NULL,
        staged TEXT NOT NULL,
        state TEXT NOT NULL
    );
    CREATE TABLE written_files (
        write INTEGER NOT NULL REFERENCES writes(id),
        path TEXT NOT NULL,
        mode INTEGER NOT NULL,
        before BLOB NOT NULL,
        before_sha256 TEXT NOT NULL,
        after BLOB NOT NULL,
        after_sha256 TEXT NOT NULL,
        PRIMARY KEY (write, path)
    );
    CREATE TABLE applies (
        id INTEGER PRIMARY KEY,
        write INTEGER NOT NULL REFERENCES writes(id),
        undone_by INTEGER REFERENCES writes(id),
        title TEXT NOT NULL,
        document TEXT NOT NULL,
        applied_at TEXT NOT NULL
    );
    """,
    """
    CREATE TABLE made (
        token TEXT NOT NULL
    );
    """,
    """
    CREATE TABLE proofs (
        id INTEGER PRIMARY KEY,
        root TEXT NOT NULL,
        content TEXT NOT NULL,
        command TEXT NOT NULL,
        passed INTEGER NOT NULL,
        whole INTEGER NOT NULL,
        words TEXT NOT NULL,
        proved_at TEXT NOT NULL
    );
    """,
)


class OpenStore:
    """An open `policygen.db`; several processes may have it open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens the store, creates it if it does not exist, and migrates an old one."""
        with store_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without an isolation level, each write begins its transaction explicitly.
            connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            with store_errors(path):
                connection.execute("PRAGMA foreign_keys = ON")
                # EXTRA also syncs the folder after a transaction, so that a power failure cannot
                # undo it.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.row_factory = sqlite3.Row
                if token := migrate(path, connection):
                    remember(path, token)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    @contextmanager
    def reading(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """Runs the block as a transaction; database errors name the file."""
        with store_errors(self.path), transaction(self._connection, begin) as connection:
            yield connection

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Like `reading`, but waits for another writer here, not in the middle of the block."""
        return self.reading("BEGIN IMMEDIATE")


def stamp(when: datetime) -> str:
    """Formats a time as ISO 8601 in UTC."""
    return when.astimezone(UTC).isoformat()


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    """Runs the block as a transaction."""
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turns database errors into an `InputError` with the file and a remedy."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(f"{path}: the store cannot be used: {error}") from error
    except (sqlite3.Error, ValueError, TypeError, LookupError, RecursionError) as error:
        message = str(error).partition("\n")[0]
        raise InputError(f"{path}: the store is damaged: {message}", _REMEDY) from error
    except OSError as error:
        raise InputError(f"{path}: the store cannot be used: {error.strerror}") from error


def migrate(path: Path, connection: sqlite3.Connection) -> str | None:
    """Migrates a store to the newest version; a current one is only checked.

    Returns the unique token of a store that is created.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS):
        _check(path, connection)
        return None
    with transaction(connection, "BEGIN IMMEDIATE"):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version:
            _check(path, connection)
        elif connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise InputError(f"{path}: not a policygen store")
        if version > len(MIGRATIONS):
            raise InputError(
                f"{path}: the store has version {version}, but this policygen supports"
                f" {len(MIGRATIONS)}",
                "Use the version of policygen that wrote it, or a newer one.",
            )
        for text in MIGRATIONS[version:]:
            # executescript() would commit first.
            for statement in filter(str.strip, text.split(";")):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        if version:
            return None
        token = secrets.token_hex()
        connection.execute("INSERT INTO made (token) VALUES (?)", (token,))
        return token


def _check(path: Path, connection: sqlite3.Connection) -> None:
    """Checks that a file is an intact policygen store."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise InputError(f"{path}: not a policygen store")
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise InputError(f"{path}: the store is damaged: {problem}", _REMEDY)
