"""Reads what sessions and searches recorded about themselves.

Databases are untrusted and may hold anything: rows with an invalid time, label or workload are
skipped and counted.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar, get_args

from policygen.model.results import DataWarning, RunKey
from policygen.model.searches import Memcheck, MemcheckOutcome
from policygen.model.workload import BASE, axis_name, is_label, parse_label
from policygen.results.database import LONGEST, SHORTEST, Database
from policygen.results.own_tables import (
    FAILURES,
    FORMAT,
    IMPORTED,
    LAST,
    MEMCHECKS,
    MOST_ROWS,
    NOISE,
    RUNGS,
    SEARCHES,
    SESSIONS,
    TIMES,
    VERSION,
    own_version,
    workload_of,
)
from policygen.results.tables import quote

LETTERS = 400
"""Length limit of untrusted text that is shown."""
LONGEST_NAME = 4096
"""Length limit of a workload's JSON."""
Warn = Callable[[DataWarning], None]
Axes = tuple[tuple[str, str], ...]
Cells = Mapping[str, Any]
Item = TypeVar("Item")


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


class FailureRow(NamedTuple):
    """A variant that is wrong or fails."""

    variant: str
    kind: str
    reason: str


class NoiseRow(NamedTuple):
    """Base in a fresh process."""

    center: float
    beside: float


@dataclass(frozen=True)
class OwnRecords:
    """policygen's records in a database; empty if another program wrote it."""

    sessions: Mapping[int, SessionRow]
    searches: Mapping[WorkloadSpot, Sequence[Cells]]
    """The cells of what sessions recorded of their searches, by column."""
    rungs: Mapping[WorkloadSpot, Mapping[PointSpot, Sequence[RungRow]]]
    failures: Mapping[WorkloadSpot, Sequence[FailureRow]]
    noise: Mapping[WorkloadSpot, Mapping[PointSpot, Sequence[NoiseRow]]]
    times: Mapping[int, Sequence[tuple[str, float]]]
    memchecks: Mapping[WorkloadSpot, Sequence[Memcheck]]

    @cached_property
    def spans(self) -> Mapping[WorkloadSpot, Mapping[int, tuple[float, float]]]:
        """By workload and session, the times of its first and last row."""
        spans: dict[WorkloadSpot, dict[int, tuple[float, float]]] = {}
        for spot, points in self.rungs.items():
            sessions = spans.setdefault(spot, {})
            for row in (row for rows in points.values() for row in rows):
                if row.at is not None:
                    first, last = sessions.get(row.session, (row.at, row.at))
                    sessions[row.session] = min(first, row.at), max(last, row.at)
        return spans


NOTHING = OwnRecords({}, {}, {}, {}, {}, {}, {})


def read_own(database: Database, warn: Warn) -> OwnRecords:
    """Reads all records of a database."""
    reader = _OwnReader(database, warn)
    return reader.read() if reader.is_ours() else NOTHING


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
    def __init__(self, database: Database, warn: Warn) -> None:
        self._connection = database.connection
        self._database, self._warn = database, warn
        names = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._names = {str(name) for (name,) in names}
        self._sessions: dict[int, SessionRow] = {}

    def is_ours(self) -> bool:
        """Returns whether policygen wrote the database, in a known version."""
        if FORMAT not in self._names:
            return False
        version = own_version(self._connection, self._names)
        if version != VERSION:
            message = f"version {version} of these tables is unknown; they are not read"
            self._warn(self._database.warning(FORMAT, message))
        return version == VERSION

    def read(self) -> OwnRecords:
        """Reads sessions first: all other rows refer to one."""
        self._sessions = dict(self._records(SESSIONS, ("id", "gpu", "ctk", "cccl"), _session))
        failure = ("variant", "kind", "reason")
        rung = ("bench", "variant", "rung", "process", "center", "base", "at")
        place = ("session", "algorithm", "workload")
        noise = ("bench", "center", "beside")
        times = ("session", "step", "seconds")
        memcheck = ("variant", "outcome", "words", "in_cub")
        return OwnRecords(
            sessions=self._sessions,
            searches=_group(self._records(SEARCHES, (*place, "strategy"), self._search)),
            rungs=_group_by_point(self._records(RUNGS, (*place, *rung), self._rung)),
            failures=_group(self._records(FAILURES, (*place, *failure), self._failure)),
            noise=_group_by_point(self._records(NOISE, (*place, *noise), self._noise)),
            times=_group(self._records(TIMES, times, self._time)),
            memchecks=_group(self._records(MEMCHECKS, (*place, *memcheck), self._memcheck)),
        )

    def _search(self, cells: Cells) -> tuple[WorkloadSpot, Cells] | None:
        spot = self._spot_of_search(cells)
        return spot and (spot, cells)

    def _memcheck(self, cells: Cells) -> tuple[WorkloadSpot, Memcheck] | None:
        spot = self._spot_of_search(cells)
        is_valid = cells["outcome"] in get_args(MemcheckOutcome) and _is_variant(cells["variant"])
        if spot is None or not is_valid:
            return None
        memcheck = Memcheck(
            variant=cells["variant"],
            outcome=cells["outcome"],
            words=text_of(cells["words"]),
            in_cub=cells["in_cub"] == 1,
        )
        return spot, memcheck

    def _spot_of_search(self, cells: Cells) -> WorkloadSpot | None:
        """Returns the workload of a row whose axes are compile-time axes, flagged or not."""
        spots = self._spots(cells)
        return spots and spots[0]._replace(axes=tuple(sorted((*spots[0].axes, *spots[1].axes))))

    def _rung(self, cells: Cells) -> tuple[WorkloadSpot, PointSpot, RungRow] | None:
        variant, rung, process = (cells[name] for name in ("variant", "rung", "process"))
        center, base = cells["center"], cells["base"]
        is_valid = _is_time(center) and _is_time(base) and _is_variant(variant)
        is_valid = is_valid and rung in range(1, LAST + 1) and isinstance(process, int)
        if not is_valid or (spots := self._spots(cells)) is None:
            return None
        at, rowid = seconds_of(cells["at"]), cells["rowid"]
        return *spots, RungRow(cells["session"], process, rung, variant, center, base, at, rowid)

    def _failure(self, cells: Cells) -> tuple[WorkloadSpot, FailureRow] | None:
        if not _is_variant(cells["variant"]) or (spots := self._spots(cells)) is None:
            return None
        kind, reason = text_of(cells["kind"]), text_of(cells["reason"])
        return spots[0], FailureRow(cells["variant"], kind, reason)

    def _noise(self, cells: Cells) -> tuple[WorkloadSpot, PointSpot, NoiseRow] | None:
        center, beside = cells["center"], cells["beside"]
        is_valid = _is_time(center) and isinstance(beside, float) and 0.01 < beside < 100
        if not is_valid or (spots := self._spots(cells)) is None:
            return None
        return *spots, NoiseRow(center, beside)

    def _time(self, cells: Cells) -> tuple[int, tuple[str, float]] | None:
        session, seconds = cells["session"], number_of(cells["seconds"])
        if session not in self._sessions or seconds is None or seconds < 0:
            return None
        return session, (text_of(cells["step"]), seconds)

    def _spots(self, cells: Cells) -> tuple[WorkloadSpot, PointSpot] | None:
        """Returns the workload of a session that a row names."""
        session, axes = self._sessions.get(cells["session"]), _parse_workload(cells["workload"])
        algorithm, subbench = cells["algorithm"], cells.get("bench", "")
        is_named = isinstance(algorithm, str) and isinstance(subbench, str)
        if not session or not axes or not is_named:
            return None
        fixed, free = axes
        return WorkloadSpot(session.key, algorithm, fixed), PointSpot(subbench, free)

    def _records(
        self, table: str, columns: Sequence[str], record_of: Callable[[Cells], Item | None]
    ) -> Iterator[Item]:
        """Yields what a table's rows say if it has these columns; warns about skipped rows."""
        if table not in self._names:
            return
        info = self._connection.execute(f"PRAGMA table_info({quote(table)})")
        table_columns = [row[1] for row in info]
        if missing := [name for name in columns if name not in table_columns]:
            message = f"has no column {missing[0]!r}; it is not read"
            self._warn(self._database.warning(table, message))
            return
        # Samples are only read for the rows that are shown.
        read_columns = [
            "rowid",
            *(name for name in table_columns if name not in {"samples", "rowid"}),
        ]
        names = ", ".join(map(quote, read_columns))
        rows = self._connection.execute(
            f"SELECT {names} FROM {quote(table)} ORDER BY rowid LIMIT {MOST_ROWS}"  # noqa: S608
        )
        count = skipped = 0
        for row in rows:
            count += 1
            record = record_of(dict(zip(read_columns, row, strict=True)))
            if record is None:
                skipped += 1
            else:
                yield record
        if skipped:
            message = "rows without usable content are ignored"
            self._warn(self._database.warning(table, message, skipped))
        query = f"SELECT count(*) FROM {quote(table)}"  # noqa: S608
        total = self._connection.execute(query).fetchone()[0] if count == MOST_ROWS else count
        if rest := total - count:
            message = f"rows after the first {MOST_ROWS:,} are ignored"
            self._warn(self._database.warning(table, message, rest))


def _session(cells: Cells) -> tuple[int, SessionRow] | None:
    number, gpu, ctk, cccl = (cells[name] for name in ("id", "gpu", "ctk", "cccl"))
    if not isinstance(number, int) or not all(isinstance(part, str) for part in (gpu, ctk, cccl)):
        return None
    started, ended = seconds_of(cells.get("started")), seconds_of(cells.get("ended"))
    return number, SessionRow((gpu, ctk, cccl), started, ended, cells)


@lru_cache(maxsize=1 << 12)
def _parse_workload(text: object) -> tuple[Axes, Axes] | None:
    """Returns the compile-time and runtime axes that a cell names."""
    is_short = isinstance(text, str) and len(text) <= LONGEST_NAME
    if not is_short or (axes := workload_of(text)) is None:
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


def _group(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for key, record in pairs:
        groups.setdefault(key, []).append(record)
    return groups


def _group_by_point(
    triples: Iterator[tuple[WorkloadSpot, PointSpot, Any]],
) -> dict[WorkloadSpot, dict[PointSpot, Any]]:
    by_spot = _group((spot, (point, record)) for spot, point, record in triples)
    return {spot: _group(points) for spot, points in by_spot.items()}


LISTED = 3


# A search's logs: what was built, and what became of it.


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
    reason = f"{built:,} of {len(codes):,} builds succeeded, but no run left a row"
    message = f"nothing was measured: {reason if built else 'every build failed'}"
    return database.warning(None, message)


def never_ran(
    database: Database, measured: Mapping[str, set[str]], pattern: re.Pattern[str]
) -> Iterator[DataWarning]:
    """Yields warnings about variants that were built but have no row in any table."""
    silent: dict[str, dict[str, None]] = {}
    for bench, code in _builds(database):
        algorithm, variant = split(bench)
        is_chosen = code == "0" and pattern.match(algorithm) and algorithm in measured
        if is_chosen and variant not in measured[algorithm]:
            silent.setdefault(algorithm, {})[variant] = None
    for algorithm, variants in silent.items():
        rest = f" and {len(variants) - LISTED:,} more" if len(variants) > LISTED else ""
        names = ", ".join([*variants][:LISTED])
        yield database.warning(algorithm, f"built, but no run left a row: {names}{rest}")


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
