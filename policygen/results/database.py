"""A tuning database as SQLite has it: opened for reading only, its layout found by looking."""

import re
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.results import DataWarning, RunKey
from policygen.model.workload import is_label, shortened
from policygen.outputs import SQLITE
from policygen.results.own_tables import (
    OWN,
    Finals,
    MeasuredNoise,
    Pairs,
    find_finals,
    find_noise,
    find_pairs,
    find_weights,
)
from policygen.results.tables import (
    DeclaredAxes,
    GpuArchs,
    ResultTable,
    check_regular,
    find_declared,
    find_gpus,
    quote,
)

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


Codes = np.ndarray[Any, np.dtype[np.int32]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]
Point = tuple[str, ...]
Cells = tuple[Any, ...]
BATCH = 20_000
NO_CENTER = "rows whose center is no time that a kernel takes are left out"
SHORTEST, LONGEST = 1e-12, 1e9
"""Seconds; a ratio of two such times is a number."""
NO_LABEL = "rows whose variant is no label such as ipt_19.tpb_512 are left out"
NO_TEXT = "rows with bytes where text should be are left out"


@dataclass(frozen=True, slots=True)
class Rows:
    """The usable rows of one table; each code is an index into the list of the same name."""

    database: Database
    table: ResultTable
    keys: list[RunKey]
    variants: list[str]
    workloads: list[Point]
    points: list[Point]
    key: Codes
    variant: Codes
    workload: Codes
    point: Codes
    center: Floats
    rowid: Integers
    unusable: int


# Tables of a database as columns of numbers: one pass, strings kept once, samples left alone.


def expand(patterns: Sequence[str]) -> tuple[Path, ...]:
    """The files that are meant, each once; a glob that matches nothing is an error."""
    found: dict[Path, Path] = {}
    for pattern in patterns:
        matches = [pattern]
        if has_magic(pattern) and not Path(pattern).exists():
            matches = sorted(glob(pattern, recursive=True))  # noqa: PTH207  absolute ones too
            if not matches:
                raise InputError(f"no file matches {pattern!r}")
        for match in matches:
            path = Path(match)
            if path.is_dir():
                raise InputError(f"{path} is a folder", f"Name the databases: '{path}/*.db'")
            found.setdefault(path.resolve(), path)
    return tuple(found.values())


@contextmanager
def open_all(paths: Sequence[Path]) -> Iterator[tuple[Database, ...]]:
    """All databases, opened for reading only."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(open_database(path)) for path in paths)


def read_rows(
    database: Database,
    table: ResultTable,
    chosen: Mapping[str, frozenset[str]],
    warn: Callable[[DataWarning], None],
) -> Rows:
    """One table; rows without a positive, finite center are counted and left out."""
    reader = _Reader(len(table.ct_axes))
    reader.read(database.connection.execute(*_query(table, chosen)))
    rows = reader.rows(database, table)
    for refused in reader.refused:
        warn(
            DataWarning(
                database=str(database.path),
                table=table.name,
                message=refused.message,
                count=refused.count,
                row=refused.row,
            )
        )
    return rows


def _query(table: ResultTable, chosen: Mapping[str, frozenset[str]]) -> tuple[str, list[str]]:
    columns = ["gpu", "ctk", table.version, "variant", "center", *table.ct_axes, *table.rt_axes]
    wanted = ", ".join(quote(column) for column in columns)
    sql = f"SELECT rowid, {wanted} FROM {table.quoted}"  # noqa: S608  names are quoted
    conditions: list[str] = []
    values: list[str] = []
    for axis, allowed in chosen.items():
        if axis in table.axes:
            conditions.append(f"{quote(axis)} IN ({', '.join('?' * len(allowed))})")
            values += sorted(allowed)
    return sql + (" WHERE " + " AND ".join(conditions) if conditions else ""), values


class _Labels(dict[Any, bool]):
    """Whether a cell is a variant label; there are few, and many rows of each."""

    def __missing__(self, cell: Any) -> bool:
        self[cell] = found = isinstance(cell, str) and is_label(cell)
        return found


@dataclass(slots=True)
class _Refused:
    """Rows of a table that are left out for one reason."""

    kind: str
    message: str
    row: int
    count: int = 0


class _Index(dict[Any, int]):
    """Numbers what it is asked for, in the order in which it is asked."""

    def __missing__(self, key: Any) -> int:
        self[key] = found = len(self)
        return found


class _Reader:
    """Turns rows into codes, as they come."""

    def __init__(self, ct_axes: int) -> None:
        self._split = 6 + ct_axes
        self._keys, self._variants = _Index(), _Index()
        self._workloads, self._points = _Index(), _Index()
        self._codes = tuple(array("i") for _ in range(4))
        self._centers = array("d")
        self._rowids = array("q")
        self._labels = _Labels()
        self.refused: list[_Refused] = []

    def read(self, cursor: Any) -> None:
        while batch := cursor.fetchmany(BATCH):
            columns = list(zip(*batch, strict=True))
            if (centers := self._fine(columns)) is None:
                columns = list(zip(*self._usable(batch), strict=True))
                centers = array("d", columns[5]) if columns else array("d")
            if columns:
                self._take(columns, centers)

    def _fine(self, columns: list[Cells]) -> "array[float] | None":
        """The centers, where nothing is wrong with any row; looked at column by column."""
        try:
            centers = array("d", columns[5])
        except TypeError:
            return None
        seconds = np.frombuffer(centers, np.float64)
        in_range = bool(((seconds >= SHORTEST) & (seconds <= LONGEST)).all())
        others = (*columns[1:4], *columns[6:])
        text = not any(bytes in set(map(type, set(column))) for column in others)
        labels = in_range and text and all(self._labels[cell] for cell in set(columns[4]))
        return centers if labels else None

    def _usable(self, batch: list[Cells]) -> list[Cells]:
        """The rows with which nothing is wrong; the others are counted."""
        usable = self._all(batch, NO_CENTER, _center)
        usable = self._all(usable, NO_LABEL, lambda row: self._labels[row[4]], _variant)
        return self._all(usable, NO_TEXT, _is_text)

    @property
    def unusable(self) -> int:
        """How many rows were left out."""
        return sum(one.count for one in self.refused)

    def _all(
        self,
        rows: list[Cells],
        message: str,
        is_fine: Callable[[Cells], bool],
        example: Callable[[Cells], str] = lambda _: "",
    ) -> list[Cells]:
        """Those that are fine; the others are counted."""
        fine = [row for row in rows if is_fine(row)]
        if len(fine) < len(rows):
            first = next(row for row in rows if not is_fine(row))
            known = next((one for one in self.refused if one.kind == message), None)
            if known is None:
                known = _Refused(message, f"{message}{example(first)}", first[0])
                self.refused.append(known)
            known.count += len(rows) - len(fine)
        return fine

    def _take(self, columns: list[Cells], centers: "array[float]") -> None:
        """Column by column: the loops run inside the interpreter."""
        split, count = self._split, len(centers)
        points = zip(*columns[split:], strict=True) if columns[split:] else [()] * count
        workloads = zip(*columns[6:split], strict=True) if split > 6 else [()] * count
        key, variant, workload, point = self._codes
        key.extend(map(self._keys.__getitem__, zip(*columns[1:4], strict=True)))
        variant.extend(map(self._variants.__getitem__, columns[4]))
        workload.extend(map(self._workloads.__getitem__, workloads))
        point.extend(map(self._points.__getitem__, points))
        self._centers.extend(centers)
        self._rowids.extend(columns[0])

    def rows(self, database: Database, table: ResultTable) -> Rows:
        key, variant, workload, point = (np.frombuffer(c, np.int32) for c in self._codes)
        return Rows(
            database=database,
            table=table,
            keys=[RunKey(gpu=_text(g), ctk=_text(c), cccl=_text(v)) for g, c, v in self._keys],
            variants=list(self._variants),
            workloads=[tuple(map(_text, w)) for w in self._workloads],
            points=[tuple(map(_text, p)) for p in self._points],
            key=key,
            variant=variant,
            workload=workload,
            point=point,
            center=np.frombuffer(self._centers, np.float64),
            rowid=np.frombuffer(self._rowids, np.int64),
            unusable=self.unusable,
        )


def _center(row: Cells) -> bool:
    return isinstance(row[5], float | int) and SHORTEST <= row[5] <= LONGEST


def _is_text(row: Cells) -> bool:
    return not any(isinstance(cell, bytes) for cell in row)


def _variant(row: Cells) -> str:
    return f": {shortened(row[4] if isinstance(row[4], str) else repr(row[4]))}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
