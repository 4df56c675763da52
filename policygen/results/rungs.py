"""Scores the rungs of searches: each process by itself, on all runtime workloads or not at all."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from policygen.model.workload import BASE
from policygen.results.cases import count_points, known_axes, runtime_weights
from policygen.results.database import Database
from policygen.results.own_tables import RUNGS
from policygen.results.samples import Samples
from policygen.results.sessions import OwnRecords, PointSpot, RungRow, WorkloadSpot
from policygen.results.tables import DeclaredAxes, axes_of, quote

MOST_SAMPLES = 1_000_000
"""Limit per row."""
YEAR = 366 * 86400.0
Run = tuple[int, int, int]
"""A process: the index of its database, the session, and its number there."""
Side = tuple[int, int]
"""A session: the index of its database, and its number there."""


@dataclass(frozen=True, slots=True)
class RungScore:
    """The score of a variant in one process, and when all its runtime workloads were measured."""

    run: Run
    score: float
    seconds: float | None
    """Seconds since the search of this workload began."""
    row: tuple[int, int]
    """The database index and rowid of its last row."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """The rungs of a workload in all given databases."""

    points: tuple[PointSpot, ...]
    weights: tuple[float, ...]
    approximate: bool
    declared: int | None
    """The number of runtime workloads that the declared axes make."""
    rows: Mapping[int, Mapping[str, Mapping[Run, Mapping[PointSpot, RungRow]]]]
    """By rung, variant and process."""
    clock: "Clock"

    def scores(self, rung: int) -> dict[str, list[RungScore]]:
        """Returns, by variant, the processes that measured it completely; base is included."""
        scores_by_variant = {}
        for variant, runs in self.rows.get(rung, {}).items():
            scores = [
                self._score(run, rows)
                for run, rows in sorted(runs.items())
                if len(rows) == len(self.points)
            ]
            if scores:
                scores_by_variant[variant] = scores
        return scores_by_variant

    def means(self, rung: int) -> dict[str, float]:
        """Returns the mean score of each variant over the processes that measured it completely."""
        return {
            variant: fmean(run.score for run in runs)
            for variant, runs in self.scores(rung).items()
            if variant != BASE
        }

    def least(self, rung: int, points: Collection[PointSpot] | None = None) -> dict[str, float]:
        """Returns the lowest ratio of each variant on any runtime workload, over all processes."""
        ratios: dict[str, dict[PointSpot, list[float]]] = {}
        for point, row in self._cells(rung):
            if row.variant != BASE and (points is None or point in points):
                by_point = ratios.setdefault(row.variant, {})
                by_point.setdefault(point, []).append(row.base / row.center)
        return {variant: min(map(fmean, by_point.values())) for variant, by_point in ratios.items()}

    @property
    def heaviest(self) -> tuple[PointSpot, ...]:
        """The runtime workload that counts most, if any; of equals that with the slowest base."""
        seconds = dict.fromkeys(self.points, 0.0)
        for point, row in (cell for rung in self.rows for cell in self._cells(rung)):
            seconds[point] = max(seconds[point], row.base)
        weights = dict(zip(self.points, self.weights, strict=True))
        order = sorted(self.points, key=lambda point: (-weights[point], -seconds[point]))
        return tuple(order[:1])

    def _cells(self, rung: int) -> Iterator[tuple[PointSpot, RungRow]]:
        for runs in self.rows.get(rung, {}).values():
            for rows in runs.values():
                yield from rows.items()

    def highest(self) -> dict[str, int]:
        """Returns the last rung that each variant reached."""
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
    """Seconds spent searching a workload, with sessions placed one after the other."""

    begun: Mapping[Side, float]
    before: Mapping[Side, float]

    def seconds(self, side: Side, at: float | None) -> float | None:
        """Returns the search time elapsed at a moment of a session."""
        begun = self.begun.get(side)
        if at is None or begun is None or not 0 <= at - begun <= YEAR:
            return None
        return self.before[side] + at - begun


def rungs_of(
    records: Sequence[OwnRecords],
    databases: Sequence[Database],
    spot: WorkloadSpot,
    declared: DeclaredAxes,
    values_by_axis: Mapping[str, frozenset[str]],
) -> Rungs | None:
    """Collects the rungs of a workload; None if there are none on the selected points."""
    rows = [
        (database_index, point, row)
        for database_index, record in enumerate(records)
        for point, point_rows in record.rungs.get(spot, {}).items()
        if all(value in values_by_axis.get(axis, {value}) for axis, value in point.axes)
        for row in point_rows
    ]
    if not rows:
        return None
    sorted_points = tuple(sorted({point for _, point, _ in rows}, key=_natural_order))
    weights_of_points, approximate, declared_count = point_weights(
        spot, sorted_points, databases, declared
    )
    return Rungs(
        sorted_points,
        weights_of_points,
        approximate,
        declared_count,
        _by_rung(rows),
        _clock(spot, records),
    )


def rungs_at(
    rows_by_point: Mapping[PointSpot, Sequence[RungRow]], weights_of_points: Sequence[float]
) -> Rungs:
    """Returns the rungs of runtime workloads in one database, which knows of no time of day."""
    rows = ((0, point, row) for point, rows in rows_by_point.items() for row in rows)
    return Rungs(
        tuple(rows_by_point),
        tuple(weights_of_points),
        approximate=False,
        declared=None,
        rows=_by_rung(rows),
        clock=Clock({}, {}),
    )


def _by_rung(
    rows: Iterable[tuple[int, PointSpot, RungRow]],
) -> dict[int, dict[str, dict[Run, dict[PointSpot, RungRow]]]]:
    """Groups rows by rung, variant and process; each has the index of its database."""
    groups: dict[int, dict[str, dict[Run, dict[PointSpot, RungRow]]]] = {}
    for database_index, point, row in rows:
        runs = groups.setdefault(row.rung, {}).setdefault(row.variant, {})
        # Repeated measurements follow those that they replace.
        runs.setdefault((database_index, row.session, row.process), {})[point] = row
    return groups


def read_samples(databases: Sequence[Database], places: Iterable[tuple[int, int]]) -> Samples:
    """Reads the samples of rows in the order in which they were taken; invalid ones are skipped."""
    arrays = []
    query = f"SELECT samples FROM {quote(RUNGS)} WHERE rowid = ?"  # noqa: S608
    for database_index, rowid in places:
        row = databases[database_index].connection.execute(query, (rowid,)).fetchone()
        blob = row[0] if row else None
        if isinstance(blob, bytes) and len(blob) % 4 == 0 and len(blob) <= 4 * MOST_SAMPLES:
            arrays.append(np.frombuffer(blob, "<f4").astype(np.float64))
    samples = np.concatenate(arrays) if arrays else np.empty(0)
    return np.asarray(samples[np.isfinite(samples) & (samples > 0)])


def _natural_order(point: PointSpot) -> tuple[object, ...]:
    """Returns a sort key that puts 2^8 before 2^16."""
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
    """Weights runtime workloads as scores of databases do: by the declared axes."""
    cccl, values_by_axis = spot.key[2], known_axes(databases, declared)
    runtime = [(spot.algorithm, point.subbench, dict(point.axes)) for point in points]
    weights, approximate = runtime_weights(runtime, values_by_axis, cccl)
    benches = {(algorithm, subbench, tuple(axes)) for algorithm, subbench, axes in runtime}
    declared_count = count_points(benches, {**axes_of(cccl), **values_by_axis})
    return tuple(weights.tolist()), approximate, declared_count


def _clock(spot: WorkloadSpot, records: Sequence[OwnRecords]) -> Clock:
    """Builds a clock; a session begins a workload when it has finished the ones before."""
    begun: dict[Side, float] = {}
    length: dict[Side, float] = {}
    for database_index, record in enumerate(records):
        for session, (first, last) in record.spans.get(spot, {}).items():
            ends = [
                sessions[session][1]
                for other_spot, sessions in record.spans.items()
                if other_spot != spot and session in sessions
            ]
            started = record.sessions[session].started
            before = [*ends, *([] if started is None else [started])]
            begun[database_index, session] = max(
                (moment for moment in before if moment <= first), default=first
            )
            length[database_index, session] = min(last - begun[database_index, session], YEAR)
    seconds_before: dict[Side, float] = {}
    total = 0.0
    for side in sorted(begun, key=lambda side: (begun[side], side)):
        seconds_before[side] = total
        total += length[side]
    return Clock(begun, seconds_before)
