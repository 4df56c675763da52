"""From samples of processes to ratios, scores and intervals: a process is one observation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, median, stdev

from policygen.model.measured import MeasuredVariant, MeasuredVerdict, PointNoise, RuntimeRatio
from policygen.model.results import Interval

CONFIDENCE = 0.95
_STUDENT = (12.706, 4.303)
"""The quantiles for one and two degrees of freedom, where the series does not hold."""
Samples = Sequence[Sequence[float]]
"""Seconds, by process."""


@dataclass(frozen=True, slots=True)
class PointTimes:
    """What was measured on a runtime workload."""

    subbench: str
    point: Mapping[str, str]
    weight: float
    base: Samples
    variants: Mapping[str, Samples]


def judged(points: Sequence[PointTimes], labels: Sequence[str]) -> list[MeasuredVariant]:
    """Gives each variant that was measured on all runtime workloads its score."""
    return [
        _judged(label, points) for label in labels if all(label in one.variants for one in points)
    ]


def noises(points: Sequence[PointTimes]) -> list[PointNoise]:
    """Tells how far base is from itself, from process to process and within one."""
    return [
        PointNoise(
            subbench=one.subbench,
            point=dict(one.point),
            seconds=median(map(median, one.base)),
            between=_relative([median(times) for times in one.base]),
            beside=_deviation_from_one([_beside(times) for times in one.base]),
        )
        for one in points
    ]


def score_noise(points: Sequence[PointTimes]) -> float | None:
    """Gives the deviation of the score of base against itself from process to process."""
    by_process = [
        sum(one.weight * _beside(times) for one, times in zip(points, each, strict=True))
        for each in zip(*(one.base for one in points), strict=True)
    ]
    return _relative(by_process)


def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Gives the quantile of Student's distribution, by Fisher's series."""
    if freedom <= len(_STUDENT) and confidence == CONFIDENCE:
        return _STUDENT[freedom - 1]
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _judged(label: str, points: Sequence[PointTimes]) -> MeasuredVariant:
    ratios = [_ratios(one.base, one.variants[label]) for one in points]
    scores = [
        sum(one.weight * ratio for one, ratio in zip(points, each, strict=True))
        for each in zip(*ratios, strict=True)
    ]
    aside = [
        sum(one.weight * _beside(times) for one, times in zip(points, each, strict=True))
        for each in zip(*(one.base for one in points), strict=True)
    ]
    interval = _interval(scores, aside)
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
                seconds=median(map(median, one.variants[label])),
                base_seconds=median(map(median, one.base)),
                ratio=fmean(own),
                interval=_interval(own, [_beside(times) for times in one.base]),
            )
            for one, own in zip(points, ratios, strict=True)
        ),
    )


def _ratios(base: Samples, own: Samples) -> list[float]:
    return [median(b) / median(o) for b, o in zip(base, own, strict=True)]


def _beside(times: Sequence[float]) -> float:
    """Base against itself: each second sample against the others."""
    return median(times[::2]) / median(times[1::2]) if len(times) > 1 else 1.0


def _interval(observed: Sequence[float], aside: Sequence[float]) -> Interval | None:
    """Where the mean lies; never surer than base is of itself."""
    count = len(observed)
    if count < 2:
        return None
    middle = fmean(observed)
    wide = max(stdev(observed), _deviation_from_one(aside) * middle)
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
    return sqrt(fmean((ratio - 1) ** 2 for ratio in ratios))
