"""Scores of a search's rungs: each process by itself, on all runtime workloads or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policygen.model.results import RunKey
from policygen.model.workload import BASE
from policygen.results.cases import Case, Part, declared_points, weights
from policygen.results.database import Database
from policygen.results.own_tables import RUNGS
from policygen.results.samples import Samples
from policygen.results.sessions import OwnRecords, PointSpot, RungRow, WorkloadSpot
from policygen.results.tables import DeclaredAxes, ResultTable, quote

SCREENING, SHARPER, LAST = 1, 2, 3
MOST_SAMPLES = 1_000_000
"""Of a row."""
YEAR = 366 * 86400.0
Run = tuple[int, int, int]
"""A process: the place of its database, the session, and its number there."""
Side = tuple[int, int]
"""A session: the place of its database, and its number there."""
Spans = Mapping[WorkloadSpot, Mapping[int, tuple[float, float]]]
"""By workload and session when its first and its last row were written."""


@dataclass(frozen=True, slots=True)
class RungScore:
    """What one process says of a variant, and when it had been on all runtime workloads."""

    run: Run
    score: float
    seconds: float | None
    """Of the search of this workload."""
    row: tuple[int, int]
    """Where its last row stands."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """The rungs of a workload in all databases that are given."""

    points: tuple[PointSpot, ...]
    weights: tuple[float, ...]
    approximate: bool
    declared: int | None
    """Runtime workloads that the declared axes make."""
    rows: Mapping[int, Mapping[str, Mapping[Run, Mapping[PointSpot, RungRow]]]]
    """By rung, variant and process."""
    clock: "Clock"

    def scores(self, rung: int) -> dict[str, list[RungScore]]:
        """By variant the processes in which it was measured whole; base is one of them."""
        found = {}
        for variant, runs in self.rows.get(rung, {}).items():
            scores = [
                self._score(run, rows)
                for run, rows in sorted(runs.items())
                if len(rows) == len(self.points)
            ]
            if scores:
                found[variant] = scores
        return found

    def highest(self) -> dict[str, int]:
        """The last rung that each variant was in."""
        return {
            variant: rung for rung in sorted(self.rows) for variant in self.rows[rung] if variant
        }

    def _score(self, run: Run, rows: Mapping[PointSpot, RungRow]) -> RungScore:
        score = sum(
            weight * rows[point].base / rows[point].center
            for point, weight in zip(self.points, self.weights, strict=True)
        )
        last = max(rows.values(), key=lambda row: row.rowid)
        return RungScore(run, score, self.clock.seconds(run[:2], last.at), (run[0], last.rowid))


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that a workload has been searched for, one session behind the other."""

    begun: Mapping[Side, float]
    before: Mapping[Side, float]

    def seconds(self, side: Side, at: float | None) -> float | None:
        """How long it had been searched at a time of a session."""
        begun = self.begun.get(side)
        if at is None or begun is None or not 0 <= at - begun <= YEAR:
            return None
        return self.before[side] + at - begun


def rungs_of(
    records: Sequence[OwnRecords],
    databases: Sequence[Database],
    spot: WorkloadSpot,
    declared: DeclaredAxes,
    asked: Mapping[str, frozenset[str]],
    spans: Sequence[Spans],
) -> Rungs | None:
    """The rungs of a workload; none where there are none on the runtime workloads asked for."""
    rows: dict[int, dict[str, dict[Run, dict[PointSpot, RungRow]]]] = {}
    points: dict[PointSpot, None] = {}
    for place, record in enumerate(records):
        for point, lot in record.rungs.get(spot, {}).items():
            if any(value not in asked.get(axis, {value}) for axis, value in point.axes):
                continue
            points.setdefault(point)
            for row in lot:
                runs = rows.setdefault(row.rung, {}).setdefault(row.variant, {})
                # What was taken again stands behind what it replaces.
                runs.setdefault((place, row.session, row.process), {})[point] = row
    if not points:
        return None
    named = tuple(sorted(points, key=_natural))
    found, approximate, there = point_weights(spot, named, databases, declared)
    return Rungs(named, found, approximate, there, rows, _clock(spans, spot, records))


def spans_of(record: OwnRecords) -> Spans:
    """When each session had which workload."""
    found: dict[WorkloadSpot, dict[int, tuple[float, float]]] = {}
    for spot, points in record.rungs.items():
        sessions = found.setdefault(spot, {})
        for row in (row for rows in points.values() for row in rows):
            if row.at is not None:
                first, last = sessions.get(row.session, (row.at, row.at))
                sessions[row.session] = min(first, row.at), max(last, row.at)
    return found


def read_samples(databases: Sequence[Database], places: Iterable[tuple[int, int]]) -> Samples:
    """The samples of some rows, in the order in which they were taken; what is none is left out."""
    found = []
    query = f"SELECT samples FROM {quote(RUNGS)} WHERE rowid = ?"  # noqa: S608
    for place, rowid in places:
        row = databases[place].connection.execute(query, (rowid,)).fetchone()
        blob = row[0] if row else None
        if isinstance(blob, bytes) and len(blob) % 4 == 0 and len(blob) <= 4 * MOST_SAMPLES:
            found.append(np.frombuffer(blob, "<f4").astype(np.float64))
    whole = np.concatenate(found) if found else np.empty(0)
    return np.asarray(whole[np.isfinite(whole) & (whole > 0)])


def _natural(point: PointSpot) -> tuple[object, ...]:
    """2^8 comes before 2^16."""
    values = [
        (0, int(value), "") if value.isdecimal() and len(value) < 20 else (1, 0, value)
        for _, value in point.axes
    ]
    return point.subbench, values, point.axes


def point_weights(
    spot: WorkloadSpot,
    points: Sequence[PointSpot],
    databases: Sequence[Database],
    declared: DeclaredAxes,
) -> tuple[tuple[float, ...], bool, int | None]:
    """As scores of databases are weighted: by what is declared of the axes."""
    lots: dict[tuple[str, tuple[str, ...]], list[PointSpot]] = {}
    for point in points:
        lots.setdefault((point.subbench, tuple(axis for axis, _ in point.axes)), []).append(point)
    parts = tuple(
        Part(
            ResultTable(f"{spot.algorithm}.{bench}", spot.algorithm, bench, "cccl", axes, ()),
            tuple(tuple(value for _, value in point.axes) for point in lot),
            np.empty((0, 0, 0)),
            np.empty((0, 0, 0), np.int64),
        )
        for (bench, axes), lot in lots.items()
    )
    gpu, ctk, cccl = spot.key
    key = RunKey(gpu=gpu, ctk=ctk, cccl=cccl)
    case = Case(spot.algorithm, key, dict(spot.axes), tuple(databases), (BASE,), parts)
    by_part, approximate = weights(case, declared)
    found = {
        point: float(weight)
        for lot, values in zip(lots.values(), by_part, strict=True)
        for point, weight in zip(lot, values, strict=True)
    }
    there = declared_points(case, declared)
    return tuple(found[point] for point in points), approximate, there


def _clock(spans: Sequence[Spans], spot: WorkloadSpot, records: Sequence[OwnRecords]) -> Clock:
    """A session that searches several workloads begins this one when it has left the others."""
    begun: dict[Side, float] = {}
    length: dict[Side, float] = {}
    for place, (record, by_spot) in enumerate(zip(records, spans, strict=True)):
        for session, (first, last) in by_spot.get(spot, {}).items():
            ends = [
                lot[session][1]
                for other, lot in by_spot.items()
                if other != spot and session in lot
            ]
            started = record.sessions[session].started
            before = [*ends, *([] if started is None else [started])]
            begun[place, session] = max((at for at in before if at <= first), default=first)
            length[place, session] = min(last - begun[place, session], YEAR)
    before_it: dict[Side, float] = {}
    total = 0.0
    for side in sorted(begun, key=lambda one: (begun[one], one)):
        before_it[side] = total
        total += length[side]
    return Clock(begun, before_it)
