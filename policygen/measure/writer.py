"""The one writer of a database: a file of ours, locked, in which what is written is there for good.

A process that is killed loses what it has not written, and nothing else: SQLite's log beside the
file is played into it when it is opened again.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from policygen.errors import InputError
from policygen.results.database import is_database
from policygen.results.files import check_regular
from policygen.results.provenance import VERSION, create_own, own_version
from policygen.results.writing import create_log, create_subbenches, told
from policygen.store_schema import transaction

PATIENCE = 30.0
"""Seconds that a write waits for somebody who reads."""
_OTHER = "Name another file; `policygen db merge` brings them together."


class DatabaseWriter:
    """An open database; several threads may write to it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._guard = threading.RLock()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of the block or nothing; when it has ended it is kept."""
        begin = "BEGIN IMMEDIATE"
        with self._guard, told(self.path), transaction(self._connection, begin) as connection:
            yield connection

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """What a query finds."""
        with self._guard, told(self.path):
            return self._connection.execute(query, values).fetchall()


@contextmanager
def open_writer(path: Path) -> Iterator[DatabaseWriter]:
    """Opens a database, and makes it where there is none; keeps other writers away."""
    path = path.resolve()
    with _lock(path):
        with told(path):
            connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with told(path):
                _prepare(path, connection)
            yield DatabaseWriter(path, connection)
        finally:
            # One file again, where nobody reads it just now.
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA journal_mode = DELETE")
            connection.close()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """The file itself is locked, so that none is left beside it."""
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite's own locks are others: they are of ranges of bytes, and of the process.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        check_regular(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{path}: another process measures into it",
                "Wait until it has ended, or name another file.",
            ) from error
        if os.fstat(descriptor).st_size and not is_database(path):
            raise InputError(f"{path}: exists already, and is no database", "Name another file.")
        yield
    finally:
        os.close(descriptor)


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not names:
        with transaction(connection, "BEGIN IMMEDIATE"):
            create_subbenches(connection)
            create_log(connection, "builds")
            create_log(connection, "runs")
            create_own(connection)
    elif (version := own_version(connection, names)) is None:
        raise InputError(f"{path}: was measured by another program than policygen", _OTHER)
    elif version != VERSION:
        raise InputError(
            f"{path}: its measurements are of version {version}, this policygen knows {VERSION}",
            "Use the policygen that wrote it, or a newer one.",
        )
    # Who is killed loses nothing that was committed; a power cut may take the last rows.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
