"""What rungs found, row by row; the row of results is that of a variant's highest rung.

A variant is selected by its luck in the first rungs. So the samples of the last one stand alone in
CCCL's own table, and those of the others beside it.
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
    """The session, and its number there."""
    center: float
    base: float
    """What base took beside it."""
    count: int
    """Samples."""


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
        """Writes what base and variants took in a process, all or nothing; tells their centers."""
        session = self._session
        kept = {label: np.asarray(times, "<f4") for label, times in samples.items()}
        centers = {label: center_of(mine) for label, mine in kept.items()}
        with session.writer.writing() as connection:
            for label, mine in kept.items():
                took = elapsed.get(label, 0.0)
                cells = (rung, process, centers[label], centers[BASE], mine.tobytes(), now())
                connection.execute(
                    f"INSERT INTO {RUNGS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (session.number, *named(spot), label, *cells),
                )
                together = self._samples(connection, spot, label)
                session.put(connection, spot, label, together, took)
                session.log_run(connection, spot, label, took)
        return centers

    def noise(self, spot: RowSpot, process: int, samples: Mapping[str, Sequence[float]]) -> None:
        """Writes how noisy base was in a fresh process."""
        self._session.noise(spot, process, samples[BASE])

    def fail(self, spot: RowSpot, variant: str, failure: Failure, elapsed: float) -> None:
        """Writes that a variant fails, and why."""
        self._session.fail(spot, variant, failure, elapsed)

    def failed(self, spot: RowSpot) -> dict[str, Failure]:
        """Who failed, in this session or before."""
        return self._session.failed(spot)

    def withdraw(self, spot: RowSpot, variant: str, failure: Failure) -> None:
        """Writes that a variant must not be taken, and why; what it took is deleted."""
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
        """Adds to what is said of throttling, and how many processes there were."""
        self._session.note(repeated, throttled, restarts)

    def time(self, step: str, seconds: float) -> None:
        """Writes how long something took."""
        self._session.time(step, seconds)

    def of(self, spot: RowSpot) -> list[KeptRung]:
        """What is known of a runtime workload, in the order in which it was written."""
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
        """Those of the last rung, where there are some; else all."""
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
    """A runtime workload, and its share of a score."""

    spot: RowSpot
    weight: float


# Scores of rungs: base over variant in the same process, weighted over all runtime workloads.


def rung_scores(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, float]:
    """The mean over processes by variant; a process counts that was on all runtime workloads."""
    found: dict[str, list[float]] = {}
    for label, processes in _everywhere(points, rung).items():
        found[label] = [
            sum(one.weight * base / own for (one, _), (base, own) in zip(points, each, strict=True))
            for each in processes.values()
        ]
    return {label: fmean(scores) for label, scores in found.items()}


def rung_least(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, float]:
    """By variant the ratio of the runtime workload on which it is worst."""
    return {
        label: min(
            fmean(base / own for base, own in pairs)
            for pairs in zip(*processes.values(), strict=True)
        )
        for label, processes in _everywhere(points, rung).items()
    }


def rung_times(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> list[PointTimes]:
    """What statistics take, of the processes that were on all runtime workloads."""
    known = _everywhere(points, rung)
    found = []
    for number, (one, _) in enumerate(points):
        variants = {
            label: [each[number] for each in processes.values()]
            for label, processes in known.items()
        }
        bases = {
            process: each[number][0]
            for processes in known.values()
            for process, each in processes.items()
        }
        found.append(
            PointTimes(
                subbench=one.spot.subbench,
                point=runtime_axes(one.spot),
                weight=one.weight,
                base=list(bases.values()),
                beside=[],
                variants=variants,
            )
        )
    return found


def _everywhere(
    points: Sequence[tuple[WeighedSpot, Sequence[KeptRung]]], rung: int
) -> dict[str, dict[_Process, list[tuple[float, float]]]]:
    """Variant → process → base and its own time on each runtime workload."""
    by_point: list[Mapping[tuple[str, _Process], tuple[float, float]]] = [
        {
            (row.variant, row.process): (row.base, row.center)
            for row in rows
            if row.rung == rung and row.variant != BASE
        }
        for _, rows in points
    ]
    found: dict[str, dict[_Process, list[tuple[float, float]]]] = {}
    for label, process in by_point[0] if by_point else ():
        each = [known.get((label, process)) for known in by_point]
        if None not in each:
            complete = [pair for pair in each if pair is not None]
            found.setdefault(label, {})[process] = complete
    return found
