"""Ratios, scores, and intervals from process times; one process is one observation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from statistics import fmean, median, stdev, variance

from policygen.gpu.database_writer import RowSpot
from policygen.gpu.measured_rows import MeasuringSession
from policygen.model.measured import MeasuredVariant, MeasuredVerdict, PointNoise, RuntimeRatio
from policygen.model.results import Interval
from policygen.model.workload import BASE
from policygen.results.cases import runtime_weights
from policygen.results.rungs import Rungs
from policygen.results.tables import DeclaredAxes


@dataclass(frozen=True, slots=True)
class PointTimes:
    """Times on a runtime workload, one number per process."""

    subbench: str
    point: Mapping[str, str]
    weight: float
    base: Sequence[float] = ()
    """Seconds."""
    beside: Sequence[float] = ()
    """Baseline over baseline: every second sample of a process against the others."""
    variants: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Label → seconds of the baseline and of the variant in the same process."""

    def ratios(self, label: str) -> list[float]:
        """Return the baseline's time over a variant's."""
        return [base / seconds for base, seconds in self.variants[label]]


def judged(points: Sequence[PointTimes], labels: Sequence[str]) -> list[MeasuredVariant]:
    """Score each variant that was measured on all runtime workloads."""
    complete = [label for label in labels if all(label in point.variants for point in points)]
    scores = {
        label: weighted(points, [point.ratios(label) for point in points]) for label in complete
    }
    score_spread = _spread(scores.values())
    spreads = [_spread(point.ratios(label) for label in complete) for point in points]
    variants = []
    for label in complete:
        interval = interval_of(scores[label], score_spread)
        runtime = (
            RuntimeRatio(
                subbench=point.subbench,
                point=dict(point.point),
                weight=point.weight,
                seconds=median(seconds for _, seconds in point.variants[label]),
                base_seconds=median(seconds for seconds, _ in point.variants[label]),
                ratio=fmean(point.ratios(label)),
                interval=interval_of(point.ratios(label), spread),
            )
            for point, spread in zip(points, spreads, strict=True)
        )
        variants.append(
            MeasuredVariant(
                variant=label,
                score=fmean(scores[label]),
                interval=interval,
                verdict=None if interval is None else _verdict(interval),
                runtime=tuple(runtime),
            )
        )
    return variants


def noises(points: Sequence[PointTimes]) -> list[PointNoise]:
    """Return the noise of the baseline between processes and within one."""
    # Each side has half of the samples, so its time is less precise than that of all.
    return [
        PointNoise(
            subbench=point.subbench,
            point=dict(point.point),
            seconds=median(point.base),
            between=stdev(point.base) / fmean(point.base) if len(point.base) > 1 else None,
            beside=_deviation_from_one(point.beside) / sqrt(2),
        )
        for point in points
    ]


def score_noise(points: Sequence[PointTimes]) -> float | None:
    """Return the deviation of the baseline's score against itself between processes."""
    scores = weighted(points, [point.beside for point in points])
    return _deviation_from_one(scores) / sqrt(2) if len(scores) > 1 else None


def weighted(points: Sequence[PointTimes], ratios: Sequence[Sequence[float]]) -> list[float]:
    """Return scores by process; some processes may not have run all runtime workloads."""
    return [
        sum(point.weight * ratio for point, ratio in zip(points, process_ratios, strict=True))
        for process_ratios in zip(*ratios, strict=False)
    ]


def _spread(groups: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation between processes, pooled over all variants."""
    relative_variances = [
        variance(values) / fmean(values) ** 2 for values in groups if len(values) > 1
    ]
    return sqrt(fmean(relative_variances)) if relative_variances else 0.0


def interval_of(observed: Sequence[float], spread: float = 0.0) -> Interval | None:
    """Return the confidence interval of the mean, at least as wide as the pooled spread implies."""
    count = len(observed)
    if count < 2:
        return None
    middle = fmean(observed)
    deviation = max(stdev(observed), spread * middle)
    half = student(count - 1) * deviation / sqrt(count)
    return Interval(low=middle - half, high=middle + half)


def _verdict(interval: Interval) -> MeasuredVerdict:
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "equal"


def _deviation_from_one(ratios: Sequence[float]) -> float:
    """Return the deviation of ratios whose true mean is 1."""
    return sqrt(fmean((ratio - 1) ** 2 for ratio in ratios)) if ratios else 0.0


CONFIDENCE = 0.95
_FAR, _HALVINGS = 1e6, 200


# Student's t-distribution


@cache
def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile: the number of standard errors for this confidence."""
    low, high = 0.0, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """Return the chance of being within `t` standard errors (Abramowitz and Stegun, 26.7.3)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    total, term = 0.0, math.cos(angle) if odd else 1.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    partial = math.sin(angle) * total
    return (angle + partial) * 2 / math.pi if odd else partial


# Times from a database


def times_of(
    rows: MeasuringSession, spots: Sequence[RowSpot], declared: DeclaredAxes
) -> list[PointTimes]:
    """Read the times of all sessions; the weights are relative to these runtime workloads."""
    points = []
    for spot, weight in zip(spots, spot_weights(spots, declared), strict=True):
        times = rows.times(spot)
        base = times.pop(BASE, [])
        points.append(
            PointTimes(
                subbench=spot.subbench,
                point=spot.runtime_axes,
                weight=weight,
                base=rows.noise_centers(spot) or [center for _, center in base],
                beside=rows.beside(spot),
                variants={label: _pairs(base, variant) for label, variant in times.items()},
            )
        )
    return points


def rung_times(rungs: Rungs, rung: int) -> list[PointTimes]:
    """Return the times of a rung, from the processes that ran all runtime workloads."""
    rows, scores = rungs.rows.get(rung, {}), rungs.scores(rung)
    return [
        PointTimes(
            subbench=point.subbench,
            point=dict(point.axes),
            weight=weight,
            variants={
                label: [
                    (rows[label][run.run][point].base, rows[label][run.run][point].center)
                    for run in runs
                ]
                for label, runs in scores.items()
            },
        )
        for point, weight in zip(rungs.points, rungs.weights, strict=True)
    ]


def spot_weights(spots: Sequence[RowSpot], declared: DeclaredAxes) -> list[float]:
    """Return the normalized weights of runtime workloads."""
    points = [(spot.algorithm, spot.subbench, spot.workload) for spot in spots]
    return list(map(float, runtime_weights(points, declared)[0]))


def _pairs(
    base: Sequence[tuple[int, float]], variant: Sequence[tuple[int, float]]
) -> list[tuple[float, float]]:
    """Pair baseline and variant by process, in order within each session."""
    pairs = []
    for session_id in dict.fromkeys(session for session, _ in variant):
        sides = [
            [center for session, center in side if session == session_id]
            for side in (base, variant)
        ]
        pairs += list(zip(*sides, strict=False))
    return pairs
