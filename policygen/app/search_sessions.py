"""When, on what and how long was measured, as sessions wrote it of themselves."""

from collections.abc import Sequence

from policygen.model.search_report import ReportedSession, StepTime
from policygen.results.database import Database
from policygen.results.searches import OwnRecords, SessionRow, number_of, text_of

MOST = 40
"""Sessions that are told, the last ones."""
STEPS = 12
"""Steps of a session that are told."""


def reported_sessions(
    databases: Sequence[Database], records: Sequence[OwnRecords]
) -> tuple[tuple[ReportedSession, ...], int]:
    """The last ones in their order, and how many there are besides; imports are none."""
    found = [
        _session(database, row, record.times.get(number, ()))
        for database, record in zip(databases, records, strict=True)
        for number, row in record.sessions.items()
        if not row.is_import
    ]
    return tuple(found[-MOST:]), max(0, len(found) - MOST)


def _session(
    database: Database, row: SessionRow, times: Sequence[tuple[str, float]]
) -> ReportedSession:
    steps = _steps(times)
    rest = steps[STEPS:]
    texts = (
        "started",
        "policygen",
        "ctk",
        "cccl",
        "gpu",
        "card",
        "arch",
        "driver",
        "nvcc",
        "method",
    )
    ended = row.cells.get("ended")
    return ReportedSession(
        database=str(database.path),
        **{name: text_of(row.cells.get(name)) for name in texts},
        ended=None if ended is None else text_of(ended),
        seconds=_length(row),
        seed=_count(row, "seed"),
        sm_clock=_count(row, "sm_clock"),
        memory_clock=_count(row, "memory_clock"),
        power_limit=number_of(row.cells.get("power_limit")),
        repeated=_count(row, "repeated") or 0,
        throttled=_count(row, "throttled") or 0,
        restarts=_count(row, "restarts") or 0,
        steps=tuple(steps[:STEPS]),
        other_steps=_together("others", rest) if rest else None,
    )


def _length(row: SessionRow) -> float | None:
    if row.started is None or row.ended is None or row.ended < row.started:
        return None
    return row.ended - row.started


def _steps(times: Sequence[tuple[str, float]]) -> list[StepTime]:
    """Those that took longest first."""
    lots: dict[str, list[float]] = {}
    for step, seconds in times:
        lots.setdefault(step, []).append(seconds)
    found = [StepTime(step=step, count=len(lot), seconds=sum(lot)) for step, lot in lots.items()]
    return sorted(found, key=lambda one: (-one.seconds, one.step))


def _together(name: str, steps: Sequence[StepTime]) -> StepTime:
    count, seconds = sum(one.count for one in steps), sum(one.seconds for one in steps)
    return StepTime(step=name, count=count, seconds=seconds)


def _count(row: SessionRow, name: str) -> int | None:
    found = row.cells.get(name)
    return found if isinstance(found, int) and abs(found) < 1 << 53 else None
