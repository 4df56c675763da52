"""A tuning database as SQLite has it: opened for reading only, its layout found by looking."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from policygen.errors import InputError
from policygen.outputs import SQLITE
from policygen.results.declared import DeclaredAxes, find_declared
from policygen.results.files import check_regular
from policygen.results.finals import Finals, find_finals
from policygen.results.gpus import GpuArchs, find_gpus
from policygen.results.measured_noise import MeasuredNoise, find_noise
from policygen.results.paired_noise import Pairs, find_pairs
from policygen.results.provenance import OWN
from policygen.results.table import ResultTable, quote
from policygen.results.weighed import find_weights

KEY_COLUMNS = ("gpu", "ctk")
VERSION_COLUMNS = ("cccl", "cub")
"""CCCL 2.2 called the column `cub`."""
VALUE_COLUMNS = ("variant", "elapsed", "center", "bw", "samples")
_LOCKED = re.compile(r"database (?:table )?is locked|busy")


@dataclass(frozen=True, slots=True)
class Database:
    """An open database and what was found in it."""

    path: Path
    connection: sqlite3.Connection
    tables: tuple[ResultTable, ...]
    declared: DeclaredAxes
    logs: tuple[str, ...]
    """Which of `builds` and `runs` there are."""
    unmeasured: tuple[tuple[str, str], ...] = ()
    """Algorithm and sub-benchmark of those that are registered, and have no table."""
    gpus: GpuArchs = field(default_factory=dict)
    """What it says of the GPUs that were measured."""
    noise: MeasuredNoise = field(default_factory=dict)
    """How far processes of base were from each other, where that was measured."""
    pairs: Pairs = field(default_factory=dict)
    """Base beside variants, process by process."""
    finals: Finals = field(default_factory=dict)
    """The same of the finalists of searches."""

    @property
    def layout(self) -> str:
        """`cccl`, or `cub` for CCCL 2.2's column."""
        return "cub" if any(table.version == "cub" for table in self.tables) else "cccl"


def is_database(path: Path) -> bool:
    """Whether a file says that it is an SQLite database; what is no file is refused unread."""
    check_regular(path)
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Opens a file for reading only; nothing is written, no journal, no lock file."""
    connection = _connect(path)
    try:
        with _told(path):
            yield _look(path, connection)
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        if not is_database(path):
            raise InputError(f"{path}: not an SQLite database", "Expected a cccl_meta_bench.db.")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    # `immutable` would be wrong while a search is still writing: it may read half a transaction.
    # A database in WAL mode that nobody has open needs it: SQLite would put files beside it.
    how = "mode=ro&immutable=1" if _is_idle_wal(path) else "mode=ro"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, timeout=5.0)


def _is_idle_wal(path: Path) -> bool:
    with path.open("rb") as file:
        versions = file.read(20)[18:20]  # how to write and read the file: 2 is WAL
    return versions == b"\2\2" and not _beside(path, "-wal").exists()


def _beside(path: Path, ending: str) -> Path:
    path = path.resolve()
    return path.with_name(path.name + ending)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turns SQLite's failures into ours, with the file and what to do."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # A name that is damaged may not even be text.
        if _LOCKED.search(str(error)):
            raise InputError(
                f"{path}: another process holds the database: {error}",
                "Wait until the search has written, or copy the file.",
            ) from error
        if (journal := _beside(path, "-journal")).exists():
            raise InputError(
                f"{path}: a search was interrupted while it wrote: {error}",
                f"Copy it together with {journal.name}, and open the copy once with sqlite3.",
            ) from error
        raise InputError(
            f"{path}: SQLite cannot read this database: {error}",
            "It may be cut off or damaged; try: sqlite3 FILE .recover",
        ) from error


def _look(path: Path, connection: sqlite3.Connection) -> Database:
    names = {
        row[0]: _columns(connection, row[0])
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    tables = tuple(_tables(path, connection, names))
    known = {table.name for table in tables} | {"subbenches"}
    logs = tuple(name for name in ("builds", "runs") if name in names)
    others = {n: c for n, c in names.items() if n not in known and n not in logs}
    # Ours name benchmarks, axes and values, too: they are not told by what they hold.
    others = {n: c for n, c in others.items() if not n.startswith(OWN)}
    declared = {
        **find_declared(connection, tables, others),
        **find_weights(connection, names),
    }
    have = {(table.algorithm, table.subbench) for table in tables}
    without = tuple(sorted(_registered(connection, names) - have))
    gpus = find_gpus(connection, tables, others)
    noise, pairs = find_noise(connection, names), find_pairs(connection, names)
    finals = find_finals(connection, names)
    pairs = {key: {**pairs.get(key, {}), **finals.get(key, {})} for key in {**pairs, **finals}}
    return Database(path, connection, tables, declared, logs, without, gpus, noise, pairs, finals)


def _registered(
    connection: sqlite3.Connection, names: dict[str, tuple[str, ...]]
) -> set[tuple[str, str]]:
    if "subbenches" not in names:
        return set()
    return set(connection.execute("SELECT DISTINCT algorithm, bench FROM subbenches"))


def _columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    return tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quote(table)})"))


def _tables(
    path: Path, connection: sqlite3.Connection, names: dict[str, tuple[str, ...]]
) -> Iterator[ResultTable]:
    if "subbenches" not in names:
        if {"builds", "runs"} & set(names):
            return  # every build failed: there is nothing but the log of it
        raise InputError(
            f"{path}: a database of something else: it has no table 'subbenches'",
            f"It has: {', '.join(sorted(names)) or 'no tables'}.",
        )
    rows = connection.execute("SELECT DISTINCT algorithm, bench FROM subbenches ORDER BY 1, 2")
    for algorithm, bench in rows.fetchall():
        if isinstance(algorithm, bytes) or isinstance(bench, bytes):
            raise InputError(f"{path}: table 'subbenches' holds bytes where text should be")
        name = f"{algorithm}.{bench}"
        if name not in names:
            continue  # registered, but nothing was stored
        yield _table(path, name, algorithm, bench, names[name])


def _table(
    path: Path, name: str, algorithm: str, bench: str, columns: tuple[str, ...]
) -> ResultTable:
    version = next((column for column in VERSION_COLUMNS if column in columns), None)
    missing = [c for c in (*KEY_COLUMNS, "variant", "center") if c not in columns]
    if version is None or missing:
        raise InputError(
            f"{path}: table {name!r} has no column {(missing or ['cccl'])[0]!r}",
            f"It has: {', '.join(columns)}.",
        )
    fixed = {*KEY_COLUMNS, version, *VALUE_COLUMNS}
    axes = tuple(column for column in columns if column not in fixed)
    return ResultTable(name, algorithm, bench, version, axes, columns)
