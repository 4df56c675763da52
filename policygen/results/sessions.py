"""Reads what sessions and searches recorded about themselves.

Databases are untrusted and may hold anything: rows with an invalid time, label or workload are
skipped and counted.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from policygen.model.results import DataWarning, RunKey
from policygen.model.workload import BASE, axis_name, is_label, parse_label
from policygen.results.database import LONGEST, SHORTEST, Database
from policygen.results.own_tables import (
    FAILURES,
    FORMAT,
    IMPORTED,
    LAST,
    NOISE,
    RUNGS,
    SEARCHES,
    SESSIONS,
    TIMES,
    VERSION,
    own_version,
)
from policygen.results.tables import quote

MOST = 1_000_000
"""Limit of rows read from a table."""
LETTERS = 400
"""Length limit of untrusted text that is shown."""
LONGEST_NAME = 4096
"""Length limit of a workload's JSON."""
Warn = Callable[[DataWarning], None]
Axes = tuple[tuple[str, str], ...]
Cells = Mapping[str, Any]


class WorkloadSpot(NamedTuple):
    """A workload under a key; its axes are named without flags, and sorted."""

    key: tuple[str, str, str]
    algorithm: str
    axes: Axes


class PointSpot(NamedTuple):
    """A runtime workload."""

    subbench: str
    axes: Axes


class RungRow(NamedTuple):
    """A variant, or base, on a runtime workload in one process."""

    session: int
    process: int
    rung: int
    variant: str
    center: float
    base: float
    at: float | None
    """Seconds since 1970."""
    rowid: int


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session; its environment is in `cells`, by column."""

    key: tuple[str, str, str]
    started: float | None
    ended: float | None
    cells: Cells

    @property
    def is_import(self) -> bool:
        """Whether the session imported measurements instead of taking them."""
        return self.cells.get("method") == IMPORTED


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A session's record of its search of a workload."""

    session: int
    cells: Cells


class FailureRow(NamedTuple):
    """A variant that is wrong or fails."""

    variant: str
    kind: str
    reason: str


class NoiseRow(NamedTuple):
    """Base in a fresh process."""

    center: float
    beside: float


@dataclass(frozen=True, slots=True)
class OwnRecords:
    """policygen's records in a database; empty if another program wrote it."""

    sessions: Mapping[int, SessionRow]
    searches: Mapping[WorkloadSpot, Sequence[SearchRow]]
    rungs: Mapping[WorkloadSpot, Mapping[PointSpot, Sequence[RungRow]]]
    failures: Mapping[WorkloadSpot, Sequence[FailureRow]]
    noise: Mapping[WorkloadSpot, Mapping[PointSpot, Sequence[NoiseRow]]]
    times: Mapping[int, Sequence[tuple[str, float]]]


NOTHING = OwnRecords({}, {}, {}, {}, {}, {})


def read_own(database: Database, warn: Warn) -> OwnRecords:
    """Reads all records of a database."""
    reader = _OwnReader(database, warn)
    if not reader.is_ours():
        return NOTHING
    return reader.read()


def spot_of(key: RunKey, algorithm: str, workload: Mapping[str, str]) -> WorkloadSpot:
    """Returns the spot of a workload with axes named as in results tables."""
    axes = tuple(sorted((axis_name(name), value) for name, value in workload.items()))
    return WorkloadSpot((key.gpu, key.ctk, key.cccl), algorithm, axes)


def seconds_of(text: object) -> float | None:
    """Parses an ISO 8601 time into seconds since 1970; UTC if it has no time zone."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


class _OwnReader:
    """Reads the records of one database."""

    def __init__(self, database: Database, warn: Warn) -> None:
        self._connection = database.connection
        self._path, self._warn = str(database.path), warn
        self._workloads: dict[str, tuple[Axes, Axes] | None] = {}
        names = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._names = {str(name) for (name,) in names}
        self._sessions: dict[int, SessionRow] = {}

    def is_ours(self) -> bool:
        """Returns whether policygen wrote the database, in a known version."""
        if FORMAT not in self._names:
            return False
        version = own_version(self._connection, self._names)
        if version != VERSION:
            self._warn_about(FORMAT, f"version {version} of these tables is not known: not read", 1)
        return version == VERSION

    def read(self) -> OwnRecords:
        """Reads sessions first: all other rows refer to one."""
        self._sessions = dict(self._read_sessions())
        return OwnRecords(
            sessions=self._sessions,
            searches=_group(self._read_searches()),
            rungs=_group_by_point(self._read_rungs()),
            failures=_group(self._read_failures()),
            noise=_group_by_point(self._read_noise()),
            times=_group(self._read_times()),
        )

    def _read_sessions(self) -> Iterator[tuple[int, SessionRow]]:
        for cells in self._rows(SESSIONS, "id", "gpu", "ctk", "cccl"):
            number, *key = (cells[name] for name in ("id", "gpu", "ctk", "cccl"))
            if not isinstance(number, int) or not all(isinstance(part, str) for part in key):
                self._skipped += 1
                continue
            gpu, ctk, cccl = key
            started, ended = seconds_of(cells.get("started")), seconds_of(cells.get("ended"))
            yield number, SessionRow((gpu, ctk, cccl), started, ended, cells)

    def _read_searches(self) -> Iterator[tuple[WorkloadSpot, SearchRow]]:
        for cells, spot, point in self._rows_of_workloads(SEARCHES, "strategy"):
            # All axes of a search are compile-time axes, with or without the flag.
            workload_spot = spot._replace(axes=tuple(sorted((*spot.axes, *point.axes))))
            yield workload_spot, SearchRow(cells["session"], cells)

    def _read_rungs(self) -> Iterator[tuple[WorkloadSpot, PointSpot, RungRow]]:
        columns = ("bench", "variant", "rung", "process", "center", "base", "at")
        for cells, spot, point in self._rows_of_workloads(RUNGS, *columns):
            variant, rung, process = (cells[name] for name in ("variant", "rung", "process"))
            center, base = cells["center"], cells["base"]
            is_valid = _is_time(center) and _is_time(base) and _is_variant(variant)
            if not is_valid or rung not in range(1, LAST + 1) or not isinstance(process, int):
                self._skipped += 1
                continue
            at = seconds_of(cells["at"])
            row = RungRow(
                cells["session"], process, rung, variant, center, base, at, cells["rowid"]
            )
            yield spot, point, row

    def _read_failures(self) -> Iterator[tuple[WorkloadSpot, FailureRow]]:
        for cells, spot, _ in self._rows_of_workloads(FAILURES, "variant", "kind", "reason"):
            if _is_variant(variant := cells["variant"]):
                yield spot, FailureRow(variant, text_of(cells["kind"]), text_of(cells["reason"]))
            else:
                self._skipped += 1

    def _read_noise(self) -> Iterator[tuple[WorkloadSpot, PointSpot, NoiseRow]]:
        for cells, spot, point in self._rows_of_workloads(NOISE, "bench", "center", "beside"):
            center, beside = cells["center"], cells["beside"]
            if _is_time(center) and isinstance(beside, float) and 0.01 < beside < 100:
                yield spot, point, NoiseRow(center, beside)
            else:
                self._skipped += 1

    def _read_times(self) -> Iterator[tuple[int, tuple[str, float]]]:
        for cells in self._rows(TIMES, "session", "step", "seconds"):
            session, seconds = cells["session"], number_of(cells["seconds"])
            if session in self._sessions and seconds is not None and seconds >= 0:
                yield session, (text_of(cells["step"]), seconds)
            else:
                self._skipped += 1

    def _rows_of_workloads(
        self, table: str, *columns: str
    ) -> Iterator[tuple[Cells, WorkloadSpot, PointSpot]]:
        """Yields rows that name a session and a workload."""
        for cells in self._rows(table, "session", "algorithm", "workload", *columns):
            session = self._sessions.get(cells["session"])
            axes = self._axes(cells["workload"])
            algorithm, subbench = cells["algorithm"], cells.get("bench", "")
            if not session or not axes or not isinstance(algorithm, str):
                self._skipped += 1
            elif isinstance(subbench, str):
                fixed, free = axes
                yield cells, WorkloadSpot(session.key, algorithm, fixed), PointSpot(subbench, free)
            else:
                self._skipped += 1

    def _rows(self, table: str, *columns: str) -> Iterator[Cells]:
        """Yields a table's rows by column if it has these columns; warns about skipped rows."""
        self._skipped = 0
        if table not in self._names:
            return
        table_columns = [
            row[1] for row in self._connection.execute(f"PRAGMA table_info({quote(table)})")
        ]
        if missing := [name for name in columns if name not in table_columns]:
            self._warn_about(table, f"has no column {missing[0]!r}: it is not read", 1)
            return
        # Samples are only read for the rows that are shown.
        read_columns = [
            "rowid",
            *(name for name in table_columns if name not in {"samples", "rowid"}),
        ]
        names = ", ".join(map(quote, read_columns))
        rows = self._connection.execute(
            f"SELECT {names} FROM {quote(table)} ORDER BY rowid LIMIT {MOST}"  # noqa: S608
        )
        count = 0
        for row in rows:
            count += 1
            yield dict(zip(read_columns, row, strict=True))
        if self._skipped:
            self._warn_about(
                table, "rows that say nothing that can be used are left out", self._skipped
            )
        if count == MOST:
            query = f"SELECT count(*) FROM {quote(table)}"  # noqa: S608
            (total,) = self._connection.execute(query).fetchone()
            if total > MOST:
                self._warn_about(
                    table, f"rows behind the first {MOST:,} are left out", total - MOST
                )

    def _axes(self, text: object) -> tuple[Axes, Axes] | None:
        """Returns the compile-time and runtime axes that a cell names."""
        if not isinstance(text, str) or len(text) > LONGEST_NAME:
            return None
        if text not in self._workloads:
            self._workloads[text] = _parse_workload(text)
        return self._workloads[text]

    def _warn_about(self, table: str, message: str, count: int) -> None:
        self._warn(DataWarning(database=self._path, table=table, message=message, count=count))


def _parse_workload(text: str) -> tuple[Axes, Axes] | None:
    try:
        axes = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(axes, dict) or not all(isinstance(value, str) for value in axes.values()):
        return None
    fixed = sorted((axis_name(name), value) for name, value in axes.items() if "{ct}" in name)
    free = sorted((name, value) for name, value in axes.items() if "{ct}" not in name)
    return tuple(fixed), tuple(free)


def text_of(cell: object) -> str:
    """Shortens untrusted text for display."""
    text = cell if isinstance(cell, str) else "" if cell is None else str(cell)
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}…"


def number_of(cell: object) -> float | None:
    """Returns a finite number; None if a cell holds anything else."""
    if isinstance(cell, bool) or not isinstance(cell, float | int):
        return None
    return float(cell) if math.isfinite(cell) and abs(cell) < LONGEST else None


def _is_time(cell: object) -> bool:
    return isinstance(cell, float | int) and SHORTEST <= cell <= LONGEST


def _is_variant(cell: object) -> bool:
    return isinstance(cell, str) and len(cell) <= LONGEST_NAME and is_label(cell)


def _group(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for key, record in pairs:
        groups.setdefault(key, []).append(record)
    return groups


def _group_by_point(
    triples: Iterator[tuple[WorkloadSpot, PointSpot, Any]],
) -> dict[WorkloadSpot, dict[PointSpot, Any]]:
    groups: dict[WorkloadSpot, dict[PointSpot, list[Any]]] = {}
    for spot, point, record in triples:
        groups.setdefault(spot, {}).setdefault(point, []).append(record)
    return groups


LISTED = 3


# A search's logs: what was built, and what became of it.


def algorithm_of(bench: str) -> str:
    """Returns the algorithm of a benchmark's name, which may end with a variant's label."""
    return split(bench)[0]


def split(bench: str) -> tuple[str, str]:
    """Splits `cub.bench.reduce.sum.ipt_16.tpb_512` into the algorithm and the label.

    The second part may also be `base` or empty.
    """
    parts = bench.split(".")
    end = len(parts)
    while end > 1 and (parts[end - 1] == BASE or parse_label(parts[end - 1]) is not None):
        end -= 1
        if parts[end] == BASE:
            break
    return ".".join(parts[:end]), ".".join(parts[end:])


def nothing_measured(database: Database) -> DataWarning:
    """Explains why a database has no results table."""
    codes = [code for _, code in _builds(database)]
    built = sum(code == "0" for code in codes)
    reason = f"{built:,} of {len(codes):,} builds succeeded, and no run left a row"
    message = f"nothing was measured: {reason if built else 'every build failed'}"
    return DataWarning(database=str(database.path), table=None, message=message)


def never_ran(
    database: Database, measured: Mapping[str, set[str]], pattern: re.Pattern[str]
) -> Iterator[DataWarning]:
    """Yields warnings about variants that were built but have no row in any table."""
    silent: dict[str, list[str]] = {}
    for bench, code in _builds(database):
        algorithm, variant = split(bench)
        measured_variants = measured.get(algorithm)
        if (
            code == "0"
            and pattern.match(algorithm)
            and measured_variants is not None
            and variant not in measured_variants
        ):
            silent.setdefault(algorithm, []).append(variant)
    for algorithm, variants in silent.items():
        names = list(dict.fromkeys(variants))
        rest = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
        yield DataWarning(
            database=str(database.path),
            table=algorithm,
            message=f"built, but no run left a row: {', '.join(names[:LISTED])}{rest}",
        )


def failed_in_logs(database: Database) -> dict[str, dict[tuple[str, str], list[str]]]:
    """Returns, by algorithm, log and code, the variants that were not built or did not run.

    The logs do not state the workload.
    """
    failures: dict[str, dict[tuple[str, str], list[str]]] = {}
    for log in database.logs:
        rows = database.connection.execute(f"SELECT bench, code FROM {log}")  # noqa: S608  fixed
        for bench, code in rows:
            algorithm, variant = split(str(bench))
            if str(code) != "0" and variant:
                kinds = failures.setdefault(algorithm, {})
                kinds.setdefault((log.removesuffix("s"), str(code)), []).append(variant)
    return failures


def _builds(database: Database) -> list[tuple[str, str]]:
    if "builds" not in database.logs:
        return []
    rows = database.connection.execute("SELECT bench, code FROM builds")
    return [(str(bench), str(code)) for bench, code in rows]
