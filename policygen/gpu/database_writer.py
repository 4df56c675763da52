"""The only writer of a database: a locked file of policygen whose transactions are durable.

A killed process loses only uncommitted data: SQLite replays its log when the file is opened again.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import policygen
from policygen.cache import digest
from policygen.errors import InputError
from policygen.gpu.device import GpuFacts
from policygen.results.database import is_database
from policygen.results.merge import create_log, create_subbenches, translating_write_errors
from policygen.results.own_tables import SESSIONS, VERSION, create_own, own_version, workload_text
from policygen.results.tables import check_regular, quote, write_gpus
from policygen.store_schema import stamp, transaction

PATIENCE = 30.0
"""Seconds that a write waits for readers."""
OF_KEY = f"session IN (SELECT id FROM {SESSIONS} WHERE (ctk, cccl, gpu) = (?, ?, ?))"  # noqa: S608
"""Condition for rows of sessions with the same toolkit, CCCL, and GPU."""
_OTHER = "Name another file; `policygen db merge` brings them together."


class DatabaseWriter:
    """An open database; several threads may write to it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._guard = threading.RLock()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction."""
        begin = "BEGIN IMMEDIATE"
        with (
            self._guard,
            translating_write_errors(self.path),
            transaction(self._connection, begin) as connection,
        ):
            yield connection

    def change(self, statement: str, *values: object) -> None:
        """Execute one statement as a transaction of its own."""
        with self.writing() as connection:
            connection.execute(statement, values)

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query."""
        with self._guard, translating_write_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def insert(connection: Any, table: str, *cells: object, verb: str = "INSERT") -> None:
    """Insert a whole row within an open transaction."""
    connection.execute(f"{verb} INTO {table} VALUES ({', '.join('?' * len(cells))})", cells)


@contextmanager
def open_writer(path: Path) -> Iterator[DatabaseWriter]:
    """Open or create a database and lock out other writers."""
    path = path.resolve()
    with _lock(path):
        with translating_write_errors(path):
            connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with translating_write_errors(path):
                _prepare(path, connection)
            yield DatabaseWriter(path, connection)
        finally:
            # Merge the log into the file, unless someone reads it now.
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA journal_mode = DELETE")
            connection.close()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock the file itself, so that no lock file is left beside it."""
    with translating_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite uses other locks: byte ranges, owned by the process.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        check_regular(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{path}: another process is writing measurements to it",
                "Wait until it has finished, or name another file.",
            ) from error
        if os.fstat(descriptor).st_size and not is_database(path):
            raise InputError(f"{path}: exists already, and is not a database", "Name another file.")
        yield
    finally:
        os.close(descriptor)


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    table_names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not table_names:
        with transaction(connection, "BEGIN IMMEDIATE"):
            create_subbenches(connection)
            create_log(connection, "builds")
            create_log(connection, "runs")
            create_own(connection)
    elif (version := own_version(connection, table_names)) is None:
        raise InputError(f"{path}: was not measured by policygen", _OTHER)
    elif version != VERSION:
        raise InputError(
            f"{path}: its measurements have version {version}, but this policygen supports"
            f" {VERSION}",
            "Use the version of policygen that wrote it, or a newer one.",
        )
    # A kill loses nothing that was committed; a power failure may lose the last rows.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


@dataclass(frozen=True, slots=True)
class RowSpot:
    """A runtime workload of a sub-benchmark, as its table names it."""

    algorithm: str
    subbench: str
    workload: Mapping[str, str]
    """All axes with their values, in column order."""

    @property
    def table(self) -> str:
        """Quoted table name for SQL."""
        return quote(f"{self.algorithm}.{self.subbench}")

    @property
    def runtime_axes(self) -> dict[str, str]:
        """The axes that distinguish it from other runtime workloads of its workload."""
        return {axis: value for axis, value in self.workload.items() if "{ct}" not in axis}

    @property
    def key(self) -> tuple[str, str, str]:
        """Key in policygen's own tables."""
        return self.algorithm, self.subbench, workload_text(self.workload)


_CARD = 12
"""Number of digits that distinguish GPUs of the same name."""


@dataclass(frozen=True, slots=True)
class About:
    """Tools, GPU, and method of a session."""

    ctk: str
    """The toolkit's version, which is nvcc's."""
    cccl: str
    gpu: GpuFacts
    method: str
    """`events` or `nvbench`."""
    seed: int
    gpus: Sequence[GpuFacts] = ()
    """All GPUs, if there are several of one model."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What baseline and variants must share: toolkit, CCCL, and GPU."""
        return self.ctk, self.cccl, self.gpu.label


# Sessions


def begin_session(writer: DatabaseWriter, about: About) -> int:
    """Record the start of a session; return its number."""
    _check_method(writer, about)
    gpu = about.gpu
    cells = {
        "started": now(),
        "policygen": policygen.__version__,
        "ctk": about.ctk,
        "cccl": about.cccl,
        "gpu": gpu.label,
        "card": ",".join(digest("policygen", card.uuid)[:_CARD] for card in about.gpus or (gpu,)),
        "arch": gpu.arch,
        "driver": gpu.driver,
        "nvcc": about.ctk,
        "method": about.method,
        "seed": about.seed,
        "sm_clock": gpu.sm_clock,
        "memory_clock": gpu.memory_clock,
        "power_limit": gpu.power_limit,
    }
    with writer.writing() as connection:
        write_gpus(connection, {gpu.label: gpu.arch})
        inserted = connection.execute(
            f"INSERT INTO {SESSIONS} ({', '.join(cells)})"  # noqa: S608
            f" VALUES ({', '.join('?' * len(cells))})",
            tuple(cells.values()),
        )
    assert inserted.lastrowid is not None
    return inserted.lastrowid


def _check_method(writer: DatabaseWriter, about: About) -> None:
    """Raise InputError if earlier times were measured with another method."""
    rows = writer.rows(
        f"SELECT DISTINCT method FROM {SESSIONS} WHERE (ctk, cccl, gpu) = (?, ?, ?)",  # noqa: S608
        *about.key,
    )
    for (method,) in rows:
        if method != about.method:
            raise InputError(
                f"{writer.path}: was measured with the method {method}, not {about.method}: times"
                " of different methods are not comparable",
                "Name another file.",
            )


def now() -> str:
    """Return the current time in the format of the tables."""
    return stamp(datetime.now(UTC))
