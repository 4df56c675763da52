"""Merges several databases into one that CCCL's own scripts read."""

import json
import secrets
import sqlite3
import stat
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count, groupby
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.model.results import MergeConflict, MergedTable, MergeReport
from policygen.model.workload import BASE, is_label
from policygen.outputs import check_folder, check_free
from policygen.results.database import (
    VERSION_COLUMNS,
    Database,
    check_not_input,
    open_all,
    open_database,
)
from policygen.results.imported import check_alike, rows_of
from policygen.results.own_tables import (
    CREATES,
    SESSIONS,
    VERSION,
    are_same,
    own_version,
    results_table,
)
from policygen.results.tables import DeclaredAxes, ResultTable, quote, write_gpus

BATCH = 2_000
LISTED = 200
"""Limit of conflicts that are listed; all are counted."""
Cells = tuple[Any, ...]
Axis = tuple[str, str, str]


def merge(paths: Sequence[Path], out: Path, *, force: bool = False) -> MergeReport:
    """Writes every row once; if two rows conflict, the first file's is kept."""
    check_not_input(out, paths)
    with open_all(paths) as databases:
        check_alike(databases)
    with new_database(out, force=force) as connection:
        merging = _Merge(out, connection)
        for path in paths:
            with open_database(path) as database:
                for run in (database, *database.merged):
                    merging.add(run)
                with translating_write_errors(out):
                    _keep_own(database, connection)
        with translating_write_errors(out):
            declare(connection, merging.declared)
            write_gpus(connection, merging.gpus)
    tables = (
        MergedTable(table=name, **{"rows": 0, **counts})
        for name, counts in sorted(merging.counts.items())
    )
    return MergeReport(
        out=str(out),
        databases=tuple(map(str, paths)),
        tables=tuple(tables),
        conflicts=tuple(merging.conflicts),
        unlisted=merging.unlisted,
    )


def _keep_own(database: Database, connection: sqlite3.Connection) -> None:
    """Copies policygen's records. A session gets a new number; one that is there is skipped."""
    names = {name for (name,) in database.connection.execute("SELECT name FROM sqlite_master")}
    if own_version(database.connection, names) not in {None, VERSION}:
        return
    numbers: dict[Any, int | None] = {None: None}
    for table, statement in CREATES.items():
        if table in names:
            connection.execute(statement)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        if not columns:
            continue
        rows = rows_of(database, table, *columns)
        if "session" in columns:
            rows = [(numbers[row[0]], *row[1:]) for row in rows if row[0] in numbers]
        else:
            start = 1 if table == SESSIONS else 0
            present = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
            there = {row[start:] for row in present}
            rows = [row for row in rows if row[start:] not in there and not _has_bytes(row)]
        if table == SESSIONS:
            numbers |= {row[0]: number for number, row in enumerate(rows, 1 + len(present))}
            rows = [(numbers[row[0]], *row[1:]) for row in rows]
        insert(connection, table, len(columns), rows, verb="INSERT OR IGNORE")


class _Merge:
    """A database that others are merged into."""

    def __init__(self, out: Path, connection: sqlite3.Connection) -> None:
        self._out, self._connection = out, connection
        self._axes: dict[str, tuple[Path, tuple[str, ...]]] = {}
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.declared: dict[Axis, tuple[str, ...]] = {}
        self.gpus: dict[str, str] = {}
        self.conflicts: list[MergeConflict] = []
        self.unlisted = 0

    def add(self, database: Database) -> None:
        """Adds the rows of a database that are not there yet."""
        for log in database.logs:
            self._add_log(database, log)
        for table in database.tables:
            self._check_axes(database.path, table)
        for _, tables in groupby(database.tables, lambda table: table.algorithm):
            self._add_tables(database, [*tables])
        for axis, values in sorted(database.declared.items()):
            self._add_declared(database, axis, values)
        self.gpus |= {**database.gpus, **self.gpus}

    def _add_log(self, database: Database, log: str) -> None:
        """Copies a log: runs shared by files count once, equal runs within a file count each."""
        source = database.connection
        columns = [row[1] for row in source.execute(f"PRAGMA table_info({quote(log)})")]
        version = next((column for column in VERSION_COLUMNS if column in columns), "cccl")
        columns_to_copy = ("ctk", version, "bench", "code", "elapsed")
        if missing := [column for column in columns_to_copy if column not in columns]:
            raise InputError(f"{database.path}: table {log!r} has no column {missing[0]!r}")
        query = f"SELECT {', '.join(columns_to_copy)} FROM {quote(log)}"  # noqa: S608
        rows = Counter(source.execute(query).fetchall())
        counts = self.counts[log]
        with translating_write_errors(self._out):
            create_log(self._connection, log)
            query = f"SELECT ctk, cccl, bench, code, elapsed FROM {quote(log)}"  # noqa: S608
            existing = Counter(self._connection.execute(query).fetchall())
            for row, count in rows.items():
                if not _is_text(row[:4]):
                    counts["unusable"] += count
                    continue
                new = max(0, count - existing[row])
                counts["rows"] += new
                counts["duplicates"] += count - new
                insert(self._connection, log, 5, [row] * new)

    def _check_axes(self, path: Path, table: ResultTable) -> None:
        """Refuses tables with other axes: they belong to another benchmark of the same name."""
        name = results_table(table.algorithm, table.subbench)
        first, axes = self._axes.setdefault(name, (path, table.axes))
        if set(axes) != set(table.axes):
            raise InputError(
                f"{path}: table {name!r} has the axes {', '.join(table.axes) or 'none'},"
                f" but {', '.join(axes) or 'none'} in {first}",
                "Different versions of a benchmark cannot be merged; merge each version"
                " separately.",
            )

    def _prepare(self, table: ResultTable, run: int) -> tuple[tuple[str, ...], str, str]:
        """Returns the axes as the output has them, and statements to add and look up a row."""
        axes = self._axes[results_table(table.algorithm, table.subbench)][1]
        with translating_write_errors(self._out):
            name = create_results(self._connection, table.algorithm, table.subbench, axes, run)
        return axes, *_statements(name, axes)

    def _add_tables(self, database: Database, tables: Sequence[ResultTable]) -> None:
        """Adds the tables of a benchmark; workloads with another base become another run."""
        runs: defaultdict[Cells, int] = defaultdict(lambda: 1)
        for run in count(1):
            # A base that differs in one sub-benchmark makes all of them another run.
            bases = (key for table in tables for key in self._other_bases(database, table, run))
            if not (others := {workload for workload in bases if runs[workload] == run}):
                break
            runs.update(dict.fromkeys(others, run + 1))
        for table in tables:
            prepared = {run: self._prepare(table, run) for run in sorted({1, *runs.values()})}
            for batch in _batches(database, table, axes := prepared[1][0]):
                with translating_write_errors(self._out):
                    for cells in batch:
                        run = runs[_workload(cells, axes)]
                        name = results_table(table.algorithm, table.subbench, run)
                        self._add_row(database, name, cells, *prepared[run])

    def _add_row(
        self, database: Database, table: str, cells: Cells, axes: Sequence[str], add: str, look: str
    ) -> None:
        counts = self.counts[table]
        if not _is_usable(cells):
            counts["unusable"] += 1
        elif self._connection.execute(add, cells).rowcount:
            counts["rows"] += 1
        elif (kept := self._connection.execute(look, cells).fetchone()[0]) == cells[5]:
            counts["duplicates"] += 1
        else:
            counts["conflicts"] += 1
            ctk, cccl, gpu, variant = cells[:4]
            point = " ".join(f"{axis}={value}" for axis, value in zip(axes, cells[8:], strict=True))
            what = f"{variant}: {point} on {gpu}, {ctk}, {cccl}"
            self._list(database, table, what, _describe_center(kept), _describe_center(cells[5]))

    def _other_bases(self, database: Database, table: ResultTable, run: int) -> Iterator[Cells]:
        """Yields workloads whose base this run of earlier files has measured otherwise."""
        axes, _, look = self._prepare(table, run)
        for batch in _batches(database, table, axes, where=f" WHERE variant = '{BASE}'"):
            for cells in batch:
                with translating_write_errors(self._out):
                    row = self._connection.execute(look, cells).fetchone()
                if row is not None and row[0] != cells[5]:
                    yield _workload(cells, axes)

    def _add_declared(self, database: Database, axis: Axis, values: tuple[str, ...]) -> None:
        """Keeps the first file's values, and appends those that only later files have."""
        kept = self.declared.setdefault(axis, values)
        if not are_same(kept, values):
            table, what = f"{axis[0]}.{axis[1]}", f"declared values of {axis[2]}"
            self.counts[table]["conflicts"] += 1
            texts = (str(getattr(side, "weights", ", ".join(side))) for side in (kept, values))
            self._list(database, table, what, *texts)
            if kept != values:  # otherwise only the weights differ
                self.declared[axis] = tuple(dict.fromkeys((*kept, *values)))

    def _list(self, database: Database, table: str, what: str, kept: str, refused: str) -> None:
        path = str(database.path)
        conflict = MergeConflict(path=path, table=table, what=what, kept=kept, refused=refused)
        if len(self.conflicts) < LISTED:
            self.conflicts.append(conflict)
        else:
            self.unlisted += 1


def _is_text(cells: Cells) -> bool:
    return None not in cells and not _has_bytes(cells)


def _has_bytes(cells: Cells) -> bool:
    return any(isinstance(cell, bytes) for cell in cells)


def _is_usable(cells: Cells) -> bool:
    """Returns whether a row is valid: a label, and no bytes where text should be."""
    named = _is_text(cells[:4]) and not _has_bytes(cells[8:])
    return named and isinstance(cells[3], str) and is_label(cells[3])


def _workload(cells: Cells, axes: Sequence[str]) -> Cells:
    """Returns the cells that base and variants of a workload share."""
    return (
        *cells[:3],
        *(value for axis, value in zip(axes, cells[8:], strict=True) if "{ct}" in axis),
    )


def _statements(name: str, axes: Sequence[str]) -> tuple[str, str]:
    """Returns the statements that add a row unless its key exists, and that read its center.

    Both take all cells as parameters.
    """
    keys = {"ctk": 1, "cccl": 2, "gpu": 3, "variant": 4}
    keys |= {axis: place for place, axis in enumerate(axes, 9)}
    # A UNIQUE constraint lets rows with NULLs pass; IS does not.
    key_matches = " AND ".join(f"{quote(column)} IS ?{place}" for column, place in keys.items())
    columns = ["ctk", "cccl", "gpu", "variant", "elapsed", "center", "bw", "samples", *axes]
    places = ", ".join(f"?{place}" for place in range(1, len(columns) + 1))
    all_used = f" AND ?{len(columns)} IS ?{len(columns)}"
    return (
        f"INSERT INTO {name} ({', '.join(map(quote, columns))}) SELECT {places}"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT 1 FROM {name} WHERE {key_matches})",
        f"SELECT center FROM {name} WHERE {key_matches}{all_used}",  # noqa: S608
    )


def _batches(
    database: Database, table: ResultTable, axes: Sequence[str], where: str = ""
) -> Iterator[list[Cells]]:
    names = ["ctk", table.version, "gpu", "variant", "elapsed", "center", "bw", "samples", *axes]
    cells = [quote(name) if name in table.columns else "NULL" for name in names]
    query = f"SELECT {', '.join(cells)} FROM {table.quoted}{where}"  # noqa: S608
    cursor = database.connection.execute(query)
    while batch := cursor.fetchmany(BATCH):
        yield batch


def _describe_center(center: object) -> str:
    return "no center" if center is None else f"center {center!r}"


DECLARED = "declared_axes"
"""policygen's table of declared values; readers detect it by its content."""


# New databases in the layout of CCCL's own scripts.


@contextmanager
def new_database(out: Path, *, force: bool = False) -> Iterator[sqlite3.Connection]:
    """Yields a database that appears as `out` only if the block succeeds."""
    out = out.resolve()
    _check_free(out, force=force)
    with replacing(out) as temporary:
        # Until it is renamed no other process sees it: no journal, no syncing to disk.
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        if out.exists():
            temporary.chmod(stat.S_IMODE(out.stat().st_mode))


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yields the path of a temporary file, which replaces `out` if the block succeeds."""
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
    try:
        with translating_write_errors(out):
            yield temporary
            temporary.replace(out)
    finally:
        with suppress(OSError):  # on a read-only disk there is none
            temporary.unlink()


def _check_free(out: Path, *, force: bool) -> None:
    check_folder(out)
    check_free(out, force=force, ours=False)
    for suffix in ("-journal", "-wal"):
        # SQLite would replay it into the new file.
        if out.with_name(out.name + suffix).exists():
            raise InputError(
                f"{out}: another process is writing to it: {out.name}{suffix} exists",
                "Wait until it has finished, or choose another name.",
            )


@contextmanager
def translating_write_errors(out: Path) -> Iterator[None]:
    """Translates write errors into InputErrors with the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{out}: cannot be written: {reason}") from error


def create_subbenches(connection: sqlite3.Connection) -> None:
    """Creates the table that CCCL queries first; without it a database counts as empty."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS subbenches"
        " (algorithm TEXT NOT NULL, bench TEXT NOT NULL, UNIQUE(algorithm, bench))"
    )


def create_results(
    connection: sqlite3.Connection, algorithm: str, subbench: str, axes: Sequence[str], run: int = 1
) -> str:
    """Creates the table of a sub-benchmark if needed; returns its quoted name."""
    create_subbenches(connection)
    connection.execute("INSERT OR IGNORE INTO subbenches VALUES (?, ?)", (algorithm, subbench))
    table = quote(results_table(algorithm, subbench, run))
    columns = "".join(f", {quote(axis)} TEXT" for axis in axes)
    key = "".join(f", {quote(axis)}" for axis in axes)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table} (ctk TEXT NOT NULL, cccl TEXT NOT NULL,"
        " gpu TEXT NOT NULL, variant TEXT NOT NULL, elapsed REAL, center REAL, bw REAL,"
        f" samples BLOB{columns}, UNIQUE(ctk, cccl, gpu, variant{key}))"
    )
    return table


def insert(
    connection: sqlite3.Connection,
    table: str,
    columns: int,
    rows: Iterable[Cells],
    *,
    verb: str = "INSERT",
) -> None:
    """Adds rows to a table of so many columns."""
    places = ", ".join("?" * columns)
    connection.executemany(f"{verb} INTO {table} VALUES ({places})", rows)


def create_log(connection: sqlite3.Connection, name: str) -> None:
    """Creates `builds` or `runs` if needed."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {quote(name)} (ctk TEXT NOT NULL, cccl TEXT NOT NULL,"
        " bench TEXT NOT NULL, code TEXT NOT NULL, elapsed REAL)"
    )


def declare(connection: sqlite3.Connection, declared: DeclaredAxes) -> None:
    """Writes the declared values of axes, if any."""
    if not declared:
        return
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {DECLARED} (algorithm TEXT NOT NULL, bench TEXT NOT NULL,"
        " axis TEXT NOT NULL, idx INTEGER NOT NULL, value TEXT NOT NULL,"
        " UNIQUE(algorithm, bench, axis, idx))"
    )
    cells = (
        (*key, index, declared_cell(value))
        for key, values in sorted(declared.items())
        for index, value in enumerate(values)
    )
    insert(connection, DECLARED, 5, cells)


def declared_cell(value: str) -> str:
    """Returns the value, in brackets if its text would parse as several values."""
    is_plain = value == value.strip() and "," not in value and not value.startswith("[")
    return value if is_plain else json.dumps([value])
