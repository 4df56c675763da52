"""Scores of rungs: base over variant in the same process, weighted over all runtime workloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from policygen.measure.statistics import PointTimes
from policygen.measure.tables import RowSpot
from policygen.measure.times import runtime_axes
from policygen.model.labels import BASE
from policygen.search.rung_rows import KeptRung

_Process = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WeighedSpot:
    """A runtime workload, and its share of a score."""

    spot: RowSpot
    weight: float


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
