"""Opens SQLite tuning databases read-only, and detects their layout."""

import os
import re
import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from glob import glob, has_magic
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.results import DataWarning, RunKey
from policygen.model.workload import is_label, shortened
from policygen.opening import SQLITE
from policygen.results.own_tables import (
    OWN,
    MeasuredNoise,
    Pairs,
    find_finals,
    find_noise,
    find_pairs,
    find_weights,
    results_table,
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

CCCL_DATABASE = "cccl_meta_bench.db"
KEY_COLUMNS = ("gpu", "ctk")
VERSION_COLUMNS = ("cccl", "cub")
"""CCCL 2.2 named the column `cub`."""
VALUE_COLUMNS = ("variant", "elapsed", "center", "bw", "samples")
_LOCKED = re.compile(r"database (?:table )?is locked|busy")


@dataclass(frozen=True, slots=True)
class Database:
    """An open database and its contents."""

    path: Path
    connection: sqlite3.Connection
    tables: tuple[ResultTable, ...]
    declared: DeclaredAxes
    logs: tuple[str, ...]
    """Which of `builds` and `runs` exist."""
    unmeasured: tuple[tuple[str, str], ...] = ()
    """Algorithm and sub-benchmark of those that are registered but have no table."""
    gpus: GpuArchs = field(default_factory=dict)
    """The architectures of the measured GPUs, as far as the database has them."""
    noise: MeasuredNoise = field(default_factory=dict)
    """The spread between processes of base, where it was measured."""
    pairs: Pairs = field(default_factory=dict)
    """Base and variants side by side, process by process."""
    finals: Pairs = field(default_factory=dict)
    """The same for the finalists of searches."""
    merged: tuple["Database", ...] = ()
    """Further runs in the same file, each with its own tables and its own base."""

    def warning(
        self, table: str | None, message: str, count: int = 1, row: int | None = None
    ) -> DataWarning:
        """Returns a warning about a part of it."""
        path = str(self.path)
        return DataWarning(database=path, table=table, message=message, count=count, row=row)

    def axis_values(self, table: ResultTable, axis: str) -> set[str]:
        """Returns the values of an axis that were measured."""
        rows = self.connection.execute(f"SELECT DISTINCT {quote(axis)} FROM {table.quoted}")  # noqa: S608
        return {value for (value,) in rows if isinstance(value, str)}

    @property
    def layout(self) -> str:
        """`cccl`, or `cub` for CCCL 2.2's column name."""
        return "cub" if any(table.version == "cub" for table in self.tables) else "cccl"


def is_database(path: Path) -> bool:
    """Checks the header of an SQLite database; anything but a regular file is refused unread."""
    check_regular(path)
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Opens a file read-only: no journal, no lock file. SQLite's errors become InputErrors."""
    connection = _connect(path)
    try:
        yield _inspect(path, connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # A damaged name may not even be text.
        if _LOCKED.search(str(error)):
            raise InputError(
                f"{path}: another process has locked the database: {error}",
                "Wait until the search has finished writing, or copy the file.",
            ) from error
        if (journal := _sibling(path, "-journal")).exists():
            raise InputError(
                f"{path}: an interrupted search left it incomplete: {error}",
                f"Copy it together with {journal.name}, then open the copy once with sqlite3.",
            ) from error
        raise InputError(
            f"{path}: SQLite cannot read this database: {error}",
            "It may be truncated or damaged; try: sqlite3 FILE .recover",
        ) from error
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        if not is_database(path):
            raise InputError(f"{path}: not an SQLite database", "Expected a cccl_meta_bench.db.")
        with path.open("rb") as file:
            versions = file.read(20)[18:]  # file format write and read versions: 2 is WAL
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    # `immutable` would be wrong while a search is still writing: it could read half a transaction.
    # An idle database in WAL mode needs it: SQLite would create files beside it otherwise.
    is_idle_wal = versions == b"\2\2" and not _sibling(path, "-wal").exists()
    options = "mode=ro&immutable=1" if is_idle_wal else "mode=ro"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, timeout=5.0)


def _sibling(path: Path, ending: str) -> Path:
    path = path.resolve()
    return path.with_name(path.name + ending)


def _inspect(path: Path, connection: sqlite3.Connection) -> Database:
    names = {
        row[0]: tuple(
            column[1] for column in connection.execute(f"PRAGMA table_info({quote(row[0])})")
        )
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    tables = tuple(_tables(path, connection, names))
    logs = tuple(name for name in ("builds", "runs") if name in names)
    results = {"subbenches", *logs, *(table.name for table in tables)}
    # policygen's tables also name benchmarks, axes and values: exclude them from detection by
    # content.
    other_tables = {
        name: columns
        for name, columns in names.items()
        if name not in results and not name.startswith(OWN)
    }
    registered: set[tuple[str, str]] = set()
    if "subbenches" in names:
        registered |= {*connection.execute("SELECT DISTINCT algorithm, bench FROM subbenches")}
    pairs, finals = find_pairs(connection, names), find_finals(connection, names)
    database = Database(
        path,
        connection,
        tables,
        declared={
            **find_declared(connection, tables, other_tables),
            **find_weights(connection, names),
        },
        logs=logs,
        unmeasured=tuple(
            sorted(registered - {(table.algorithm, table.subbench) for table in tables})
        ),
        gpus=find_gpus(connection, tables, other_tables),
        noise=find_noise(connection, names),
        pairs={key: {**pairs.get(key, {}), **finals.get(key, {})} for key in {**pairs, **finals}},
        finals=finals,
    )
    merged: list[Database] = []
    while tables := tuple(_tables(path, connection, names, len(merged) + 2)):
        own = Database(path, connection, tables, database.declared, (), gpus=database.gpus)
        merged.append(own)
    return replace(database, merged=tuple(merged))


def _tables(
    path: Path, connection: sqlite3.Connection, names: dict[str, tuple[str, ...]], run: int = 1
) -> Iterator[ResultTable]:
    if "subbenches" not in names:
        if {"builds", "runs"} & set(names):
            return  # every build failed: only the logs exist
        raise InputError(
            f"{path}: not a tuning database: it has no table 'subbenches'",
            f"It has: {', '.join(sorted(names)) or 'no tables'}.",
        )
    rows = connection.execute("SELECT DISTINCT algorithm, bench FROM subbenches ORDER BY 1, 2")
    for algorithm, bench in rows.fetchall():
        if isinstance(algorithm, bytes) or isinstance(bench, bytes):
            raise InputError(f"{path}: table 'subbenches' contains bytes instead of text")
        name = results_table(algorithm, bench, run)
        if name not in names:
            continue  # registered, but without results
        yield _table(path, name, algorithm, bench, names[name])


def _table(
    path: Path, name: str, algorithm: str, bench: str, columns: tuple[str, ...]
) -> ResultTable:
    version = next((column for column in VERSION_COLUMNS if column in columns), None)
    missing = [column for column in (*KEY_COLUMNS, "variant", "center") if column not in columns]
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
NO_CENTER = "rows with an impossible kernel time as their center are ignored"
SHORTEST, LONGEST = 1e-12, 1e9
"""Seconds; the ratio of two such times is finite."""
NO_LABEL = "rows with a variant that is not a label, like ipt_19.tpb_512, are ignored"
NO_TEXT = "rows with bytes instead of text are ignored"


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


# Reading tables as columns of numbers: one pass, strings stored once, samples not read.


def expand(patterns: Sequence[str]) -> tuple[Path, ...]:
    """Expands globs, and folders of CCCL's searches, into files, each once; refuses empty ones."""
    paths: dict[str, Path] = {}
    for pattern in patterns:
        matches = [pattern]
        if has_magic(pattern) and not Path(pattern).exists():
            matches = sorted(glob(pattern, recursive=True))  # noqa: PTH207  absolute ones too
            if not matches:
                raise InputError(f"no file matches {pattern!r}")
        for match in matches:
            path = Path(match)
            files = [path]
            if path.is_dir():  # a lane that measured nothing yet has an empty file
                lanes = sorted(path.rglob(CCCL_DATABASE))
                files = [lane for lane in lanes if lane.is_file() and lane.stat().st_size]
            if not files:
                raise InputError(
                    f"{path} is a folder without a {CCCL_DATABASE}",
                    f"Name the databases: '{path}/*.db'",
                )
            for file in files:
                paths.setdefault(os.path.realpath(file), file)  # resolve() fails on loops
    return tuple(paths.values())


def check_not_input(out: Path, paths: Iterable[Path]) -> None:
    """Raises an error if the output is one of the inputs, even with --force."""
    for path in paths:
        if path.resolve() == out.resolve() or (
            out.exists() and path.exists() and out.samefile(path)
        ):
            raise InputError(f"{out}: is one of the inputs", "Name another file.")


@contextmanager
def open_all(paths: Sequence[Path]) -> Iterator[tuple[Database, ...]]:
    """Opens all databases read-only."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(open_database(path)) for path in paths)


def read_rows(
    database: Database,
    table: ResultTable,
    chosen: Mapping[str, frozenset[str]],
    warn: Callable[[DataWarning], None],
) -> Rows:
    """Reads one table; rows without a positive, finite center are counted and skipped."""
    reader = _Reader(len(table.ct_axes))
    reader.read(database.connection.execute(*_query(table, chosen)))
    for problem in (NO_CENTER, NO_LABEL, NO_TEXT):
        if problem in reader.refused:
            first = reader.first[problem]
            variant = first[4] if isinstance(first[4], str) else repr(first[4])
            example = f": {shortened(variant)}" if problem == NO_LABEL else ""
            message, count = f"{problem}{example}", reader.refused[problem]
            warn(database.warning(table.name, message, count, first[0]))
    return reader.rows(database, table)


def _query(table: ResultTable, chosen: Mapping[str, frozenset[str]]) -> tuple[str, list[str]]:
    columns = ["gpu", "ctk", table.version, "variant", "center", *table.ct_axes, *table.rt_axes]
    column_list = ", ".join(quote(column) for column in columns)
    values_by_axis = {axis: sorted(chosen[axis]) for axis in chosen if axis in table.axes}
    conditions = [
        f"{quote(axis)} IN ({', '.join('?' * len(values))})"
        for axis, values in values_by_axis.items()
    ]
    where = " AND ".join(["TRUE", *conditions])
    sql = f"SELECT rowid, {column_list} FROM {table.quoted} WHERE {where}"  # noqa: S608  quoted
    return sql, [value for values in values_by_axis.values() for value in values]


class _Reader:
    """Converts rows into codes as they arrive."""

    def __init__(self, ct_axes: int) -> None:
        self._split = 6 + ct_axes
        # Each numbers its values in the order of first use.
        self._keys, self._variants, self._workloads, self._points = (
            defaultdict[Any, int](count().__next__) for _ in range(4)
        )
        self._codes = tuple(array("i") for _ in range(4))
        self._centers = array("d")
        self._rowids = array("q")
        # There are few labels, and many rows of each.
        self._is_label = cache(lambda cell: isinstance(cell, str) and is_label(cell))
        self.refused: Counter[str] = Counter()
        """The number of skipped rows by problem."""
        self.first: dict[str, Cells] = {}
        """The first row with each problem."""

    def read(self, cursor: Any) -> None:
        while batch := cursor.fetchmany(BATCH):
            columns = list(zip(*batch, strict=True))
            if (centers := self._valid_centers(columns)) is None:
                columns = list(zip(*self._usable(batch), strict=True))
                centers = array("d", columns[5]) if columns else array("d")
            if columns:
                self._append(columns, centers)

    def _valid_centers(self, columns: list[Cells]) -> "array[float] | None":
        """Returns the centers if all rows are valid, checking column by column; else None."""
        try:
            centers = array("d", columns[5])
        except TypeError:
            return None
        seconds = np.frombuffer(centers, np.float64)
        in_range = bool(((seconds >= SHORTEST) & (seconds <= LONGEST)).all())
        text_columns = (*columns[1:4], *columns[6:])
        is_text = not any(bytes in set(map(type, set(column))) for column in text_columns)
        labels = in_range and is_text and all(map(self._is_label, set(columns[4])))
        return centers if labels else None

    def _usable(self, batch: list[Cells]) -> list[Cells]:
        """Returns the valid rows; the others are counted."""
        usable = []
        for row in batch:
            if problem := self._problem(row):
                self.refused[problem] += 1
                self.first.setdefault(problem, row)
            else:
                usable.append(row)
        return usable

    def _problem(self, row: Cells) -> str | None:
        if not isinstance(row[5], float | int) or not SHORTEST <= row[5] <= LONGEST:
            return NO_CENTER
        if not self._is_label(row[4]):
            return NO_LABEL
        return NO_TEXT if any(isinstance(cell, bytes) for cell in row) else None

    def _append(self, columns: list[Cells], centers: "array[float]") -> None:
        """Appends column by column, so the loops run inside the interpreter."""
        split, rows = self._split, len(centers)
        points = zip(*columns[split:], strict=True) if columns[split:] else [()] * rows
        workloads = zip(*columns[6:split], strict=True) if split > 6 else [()] * rows
        key, variant, workload, point = self._codes
        key.extend(map(self._keys.__getitem__, zip(*columns[1:4], strict=True)))
        variant.extend(map(self._variants.__getitem__, columns[4]))
        workload.extend(map(self._workloads.__getitem__, workloads))
        point.extend(map(self._points.__getitem__, points))
        self._centers.extend(centers)
        self._rowids.extend(columns[0])

    def rows(self, database: Database, table: ResultTable) -> Rows:
        key, variant, workload, point = (np.frombuffer(codes, np.int32) for codes in self._codes)
        keys = (tuple(map(_text, cells)) for cells in self._keys)
        return Rows(
            database=database,
            table=table,
            keys=[RunKey(gpu=gpu, ctk=ctk, cccl=version) for gpu, ctk, version in keys],
            variants=list(self._variants),
            workloads=[tuple(map(_text, cells)) for cells in self._workloads],
            points=[tuple(map(_text, cells)) for cells in self._points],
            key=key,
            variant=variant,
            workload=workload,
            point=point,
            center=np.frombuffer(self._centers, np.float64),
            rowid=np.frombuffer(self._rowids, np.int64),
            unusable=self.refused.total(),
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
