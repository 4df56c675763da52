"""Rows of rungs; the result row of a variant comes from its highest rung.

Variants are selected by their luck in the first rungs. Therefore CCCL's own table holds only the
samples of the last rung, and those of the others are kept separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from policygen.gpu.database_writer import RowSpot, now
from policygen.gpu.device import Failure
from policygen.gpu.measured_rows import MeasuringSession, center_of, named
from policygen.gpu.statistics import PointTimes, runtime_axes
from policygen.model.workload import BASE
from policygen.results.own_tables import LAST, RUNGS, SEARCH_TABLES, SESSIONS
from policygen.results.samples import Samples

SCREENING, SHARPER = 1, 2


@dataclass(frozen=True, slots=True)
class KeptRung:
    """A variant on a runtime workload in one process."""

    variant: str
    rung: int
    process: tuple[int, int]
    """Session and process number in it."""
    center: float
    base: float
    """Time of the baseline in the same process."""
    count: int
    """Number of samples."""


class RungRows:
    """The rungs of a database."""

    def __init__(self, session: MeasuringSession) -> None:
        self._session = session
        with session.writer.writing() as connection:
            for statement in SEARCH_TABLES:
                connection.execute(statement)

    def write(
        self,
        spot: RowSpot,
        rung: int,
        process: int,
        samples: Mapping[str, Sequence[float]],
        elapsed: Mapping[str, float],
    ) -> dict[str, float]:
        """Write the times of one process in one transaction; return the centers."""
        session = self._session
        samples_by_label = {label: np.asarray(times, "<f4") for label, times in samples.items()}
        centers = {
            label: center_of(variant_samples) for label, variant_samples in samples_by_label.items()
        }
        with session.writer.writing() as connection:
            for label, variant_samples in samples_by_label.items():
                seconds = elapsed.get(label, 0.0)
                cells = (
                    rung,
                    process,
                    centers[label],
                    centers[BASE],
                    variant_samples.tobytes(),
                    now(),
                )
                connection.execute(
                    f"INSERT INTO {RUNGS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (session.number, *named(spot), label, *cells),
                )
                all_samples = self._samples(connection, spot, label)
                session.put(connection, spot, label, all_samples, seconds)
                session.log_run(connection, spot, label, seconds)
        return centers

    def noise(self, spot: RowSpot, process: int, samples: Mapping[str, Sequence[float]]) -> None:
        """Write the noise of the baseline in a fresh process."""
        self._session.noise(spot, process, samples[BASE])

    def fail(self, spot: RowSpot, variant: str, failure: Failure, elapsed: float) -> None:
        """Write the failure of a variant."""
        self._session.fail(spot, variant, failure, elapsed)

    def failed(self, spot: RowSpot) -> dict[str, Failure]:
        """Return the failures of all sessions."""
        return self._session.failed(spot)

    def withdraw(self, spot: RowSpot, variant: str, failure: Failure) -> None:
        """Write that a variant must not be used, with the reason, and delete its measurements."""
        session = self._session
        with session.writer.writing() as connection:
            connection.execute(
                f"DELETE FROM {RUNGS} WHERE (algorithm, bench, workload, variant) = (?, ?, ?, ?)"  # noqa: S608
                f" AND session IN (SELECT id FROM {SESSIONS} WHERE (ctk, cccl, gpu) = (?, ?, ?))",
                (*named(spot), variant, *session.about.key),
            )
            session.drop(connection, spot, variant)
        session.fail(spot, variant, failure)

    def note(self, repeated: int, throttled: int, restarts: int) -> None:
        """Add to the throttling counts, and store the number of restarts."""
        self._session.note(repeated, throttled, restarts)

    def time(self, step: str, seconds: float) -> None:
        """Write the duration of a step."""
        self._session.time(step, seconds)

    def of(self, spot: RowSpot) -> list[KeptRung]:
        """Return the rows of a runtime workload in the order in which they were written."""
        rows: list[Any] = self._session.writer.rows(
            "SELECT r.variant, r.rung, r.session, r.process, r.center, r.base,"  # noqa: S608
            f" length(r.samples) / 4 FROM {RUNGS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (r.algorithm, r.bench, r.workload) = (?, ?, ?) ORDER BY r.rowid",
            *self._session.about.key,
            *named(spot),
        )
        return [
            KeptRung(variant, rung, (session, process), center, base, count)
            for variant, rung, session, process, center, base, count in rows
        ]

    def _samples(self, connection: Any, spot: RowSpot, label: str) -> Samples:
        """Return the samples of the last rung, or all samples if there are none."""
        rows = connection.execute(
            f"SELECT r.rung, r.samples FROM {RUNGS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"  # noqa: S608
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (r.algorithm, r.bench, r.workload, r.variant) = (?, ?, ?, ?) ORDER BY r.rowid",
            (*self._session.about.key, *named(spot), label),
        ).fetchall()
        last = [blob for rung, blob in rows if rung == LAST]
        parts = [np.frombuffer(blob, "<f4") for blob in last or [blob for _, blob in rows]]
        return np.concatenate(parts).astype(np.float64)


_Process = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WeighedSpot:
    """A runtime workload with its share of a score."""

    spot: RowSpot
    weight: float


# Scores of rungs


def rung_scores(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, float]:
    """Return mean scores by variant over the processes that ran all runtime workloads.

    A score is the weighted mean of baseline over variant in the same process.
    """
    scores_by_label: dict[str, list[float]] = {}
    for label, processes in _complete_processes(points, rung).items():
        scores_by_label[label] = [
            sum(
                spot.weight * base / variant
                for (spot, _), (base, variant) in zip(points, pairs, strict=True)
            )
            for pairs in processes.values()
        ]
    return {label: fmean(scores) for label, scores in scores_by_label.items()}


def rung_least(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, float]:
    """Return the ratio of each variant on its worst runtime workload."""
    return {
        label: min(
            fmean(base / variant for base, variant in pairs)
            for pairs in zip(*processes.values(), strict=True)
        )
        for label, processes in _complete_processes(points, rung).items()
    }


def rung_times(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> list[PointTimes]:
    """Return the times for statistics, from the processes that ran all runtime workloads."""
    complete = _complete_processes(points, rung)
    times = []
    for index, (spot, _) in enumerate(points):
        variants = {
            label: [pairs[index] for pairs in processes.values()]
            for label, processes in complete.items()
        }
        bases = {
            process: pairs[index][0]
            for processes in complete.values()
            for process, pairs in processes.items()
        }
        times.append(
            PointTimes(
                subbench=spot.spot.subbench,
                point=runtime_axes(spot.spot),
                weight=spot.weight,
                base=list(bases.values()),
                beside=[],
                variants=variants,
            )
        )
    return times


def _complete_processes(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, dict[_Process, list[tuple[float, float]]]]:
    """Map variant → process → baseline and variant times on each runtime workload."""
    by_point: list[Mapping[tuple[str, _Process], tuple[float, float]]] = [
        {
            (row.variant, row.process): (row.base, row.center)
            for row in rows
            if row.rung == rung and row.variant != BASE
        }
        for _, rows in points
    ]
    complete_by_label: dict[str, dict[_Process, list[tuple[float, float]]]] = {}
    for label, process in by_point[0] if by_point else ():
        pairs = [times.get((label, process)) for times in by_point]
        if None not in pairs:
            measured_pairs = [pair for pair in pairs if pair is not None]
            complete_by_label.setdefault(label, {})[process] = measured_pairs
    return complete_by_label
