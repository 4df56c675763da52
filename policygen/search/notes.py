"""What a database says of its searches: how each was made, how long it took, and why it ended."""

import json
from collections.abc import Collection
from typing import Any

from policygen.measure.database import MeasuringSession, named
from policygen.model.search import Ended
from policygen.model.workload import Point
from policygen.results.provenance import SEARCHES, SESSIONS, workload_text
from policygen.search.workload import WorkloadSearch


class SearchNotes:
    """The searches of a database."""

    def __init__(self, session: MeasuringSession) -> None:
        self._session = session

    def begin(self, one: WorkloadSearch, seed: int, budget: float | None) -> None:
        """Notes that this session searches a workload."""
        counts = one.counts
        cells = (
            *(self._session.number, *_named(one.point), one.name, seed),
            *(str(counts.variants), str(counts.valid), str(counts.distinct)),
            *(one.base, budget),
        )
        with self._session.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {SEARCHES} (session, algorithm, workload, strategy, seed, variants,"  # noqa: S608
                f" valid, distinct_, base, budget) VALUES ({', '.join('?' * len(cells))})",
                cells,
            )

    def spend(self, seconds: float, ended: Ended | None = None) -> None:
        """Notes how long this session has taken so far, and why it tries no more."""
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET spent = ?, ended = coalesce(?, ended) WHERE session = ?",  # noqa: S608
                (seconds, ended, self._session.number),
            )

    def skip(self, one: WorkloadSearch) -> None:
        """Notes which runtime workloads of a workload are not measured."""
        target = one.target
        spots = [named(spot)[1:] for spot, _ in target.skipped] if target else []
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET skipped = ?"  # noqa: S608
                " WHERE (session, algorithm, workload) = (?, ?, ?)",
                (json.dumps(spots), self._session.number, *_named(one.point)),
            )

    def skipped(self, point: Point) -> set[tuple[str, str]]:
        """The sub-benchmarks and runtime workloads that earlier sessions did not measure."""
        rows: list[Any] = self._session.writer.rows(
            f"SELECT q.skipped FROM {SEARCHES} AS q JOIN {SESSIONS} AS s ON s.id = q.session"  # noqa: S608
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?) AND (q.algorithm, q.workload) = (?, ?)"
            " AND q.skipped IS NOT NULL",
            *self._session.about.key,
            *_named(point),
        )
        return {(subbench, axes) for (text,) in rows for subbench, axes in json.loads(text)}

    def before(self, points: Collection[Point]) -> float:
        """Seconds that earlier sessions took for some of these workloads."""
        names = {_named(point) for point in points}
        rows: list[Any] = self._session.writer.rows(
            f"SELECT q.session, q.algorithm, q.workload, q.spent FROM {SEARCHES} AS q"  # noqa: S608
            f" JOIN {SESSIONS} AS s ON s.id = q.session"
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?) AND q.session <> ?",
            *self._session.about.key,
            self._session.number,
        )
        sessions: dict[int, float] = {}
        for session, algorithm, workload, spent in rows:
            if (algorithm, workload) in names:
                sessions[session] = max(spent, sessions.get(session, 0.0))
        return sum(sessions.values())


def _named(point: Point) -> tuple[str, str]:
    name, axes = point
    return name, workload_text({f"{axis}{{ct}}": value for axis, value in axes})
