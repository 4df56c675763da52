"""From times of processes to ratios, scores and intervals: a process is one observation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, stdev, variance

from policygen.measure.student import student
from policygen.model.measured import MeasuredVariant, MeasuredVerdict, PointNoise, RuntimeRatio
from policygen.model.results import Interval


@dataclass(frozen=True, slots=True)
class PointTimes:
    """What was measured on a runtime workload; a number for each process."""

    subbench: str
    point: Mapping[str, str]
    weight: float
    base: Sequence[float]
    """Seconds."""
    beside: Sequence[float]
    """Base over base: each second sample of a process against the others."""
    variants: Mapping[str, Sequence[tuple[float, float]]]
    """By label the seconds of base, and its own, in the same process."""

    def ratios(self, label: str) -> list[float]:
        """Base's time over a variant's."""
        return [base / own for base, own in self.variants[label]]


def judged(points: Sequence[PointTimes], labels: Sequence[str]) -> list[MeasuredVariant]:
    """Gives each variant that was measured on all runtime workloads its score."""
    everywhere = [one for one in labels if all(one in point.variants for point in points)]
    scores = {label: _weighted(points, _ratios(points, label)) for label in everywhere}
    of_scores = _spread(scores.values())
    of_points = [_spread(one.ratios(label) for label in everywhere) for one in points]
    return [_judged(label, points, scores[label], of_scores, of_points) for label in everywhere]


def noises(points: Sequence[PointTimes]) -> list[PointNoise]:
    """Tells how far base is from itself, from process to process and within one."""
    # Half of the samples know a time worse than all of them.
    return [
        PointNoise(
            subbench=one.subbench,
            point=dict(one.point),
            seconds=median(one.base),
            between=_relative(one.base),
            beside=_deviation_from_one(one.beside) / sqrt(2),
        )
        for one in points
    ]


def score_noise(points: Sequence[PointTimes]) -> float | None:
    """Gives the deviation of the score of base against itself from process to process."""
    scores = _weighted(points, [one.beside for one in points])
    return _deviation_from_one(scores) / sqrt(2) if len(scores) > 1 else None


def _judged(
    label: str,
    points: Sequence[PointTimes],
    scores: Sequence[float],
    of_scores: float,
    of_points: Sequence[float],
) -> MeasuredVariant:
    interval = _interval(scores, of_scores)
    return MeasuredVariant(
        variant=label,
        score=fmean(scores),
        interval=interval,
        verdict=None if interval is None else _verdict(interval),
        runtime=tuple(
            RuntimeRatio(
                subbench=one.subbench,
                point=dict(one.point),
                weight=one.weight,
                seconds=median(seconds for _, seconds in one.variants[label]),
                base_seconds=median(seconds for seconds, _ in one.variants[label]),
                ratio=fmean(own),
                interval=_interval(own, spread),
            )
            for one, own, spread in zip(points, _ratios(points, label), of_points, strict=True)
        ),
    )


def _weighted(points: Sequence[PointTimes], ratios: Sequence[Sequence[float]]) -> list[float]:
    """Scores by process; one that was ended early has not been on all runtime workloads."""
    return [
        sum(one.weight * ratio for one, ratio in zip(points, each, strict=True))
        for each in zip(*ratios, strict=False)
    ]


def _ratios(points: Sequence[PointTimes], label: str) -> list[list[float]]:
    return [one.ratios(label) for one in points]


def _spread(lots: Iterable[Sequence[float]]) -> float:
    """The standard deviation from process to process, of all variants together."""
    shares = [variance(one) / fmean(one) ** 2 for one in lots if len(one) > 1]
    return sqrt(fmean(shares)) if shares else 0.0


def _interval(observed: Sequence[float], spread: float) -> Interval | None:
    """Where the mean lies; never surer than the variants are together."""
    count = len(observed)
    if count < 2:
        return None
    middle = fmean(observed)
    wide = max(stdev(observed), spread * middle)
    half = student(count - 1) * wide / sqrt(count)
    return Interval(low=middle - half, high=middle + half)


def _verdict(interval: Interval) -> MeasuredVerdict:
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "equal"


def _relative(values: Sequence[float]) -> float | None:
    return stdev(values) / fmean(values) if len(values) > 1 else None


def _deviation_from_one(ratios: Sequence[float]) -> float:
    """The ratio of a thing to itself is 1: that much is known."""
    return sqrt(fmean((ratio - 1) ** 2 for ratio in ratios)) if ratios else 0.0
