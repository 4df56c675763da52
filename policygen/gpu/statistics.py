"""Ratios, scores, and intervals from process times; one process is one observation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from math import sqrt
from statistics import fmean, median, stdev, variance
from typing import Any

from policygen.gpu.database_writer import RowSpot
from policygen.gpu.measured_rows import MeasuringSession
from policygen.model.measured import MeasuredVariant, MeasuredVerdict, PointNoise, RuntimeRatio
from policygen.model.results import Interval
from policygen.model.verdicts import PerformanceVerdict
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
        centers = rows.noise_centers(spot) or [center for _, center in base]
        variants = {label: _pairs(base, variant) for label, variant in times.items()}
        place = spot.subbench, spot.runtime_axes, weight
        points.append(PointTimes(*place, centers, rows.beside(spot), variants))
    return points


def rung_times(rungs: Rungs, rung: int) -> list[PointTimes]:
    """Return the times of a rung, from the processes that ran all runtime workloads."""
    rows, scores = rungs.rows.get(rung, {}), rungs.scores(rung)
    points = []
    for point, weight in zip(rungs.points, rungs.weights, strict=True):
        variants = {}
        for label, runs in scores.items():
            measured = (rows[label][run.run][point] for run in runs)
            variants[label] = [(row.base, row.center) for row in measured]
        points.append(PointTimes(point.subbench, dict(point.axes), weight, variants=variants))
    return points


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


# Verdicts on a change, from process times compared with those of unchanged code
#
# One process is one observation. The side before runs twice in each process: as itself and as a
# copy, which shows how much equal code differs. Both ratios have the same noise and estimate it
# together. Verdicts are strict enough that none of a whole run is wrong by chance.

SURE = 0.99
"""Confidence that no verdict of a run is faster or slower by chance."""
WIDEST = 50.0
"""Limit of log ratios: no ratio of times is farther from 1."""


@dataclass(frozen=True, slots=True)
class ObservedRatio:
    """Statistics of the observations, before a confidence level is chosen."""

    middle: float
    """Logarithm of before over after."""
    noise: float
    """Relative standard deviation of a ratio between processes."""
    error: float
    """Standard error of the middle."""
    freedom: int
    step: float = 0.0
    """Relative clock resolution, which more processes do not reduce."""


@dataclass(frozen=True, slots=True)
class ComparedTimes:
    """Ratios by process: before over after, and before over its copy."""

    ratios: Sequence[float]
    selves: Sequence[float]
    step: float = 0.0
    """Relative resolution of the clock."""

    def observed(self) -> ObservedRatio | None:
        """Return the statistics, or None for fewer than two processes."""
        count = len(self.ratios)
        if count < 2:
            return None
        logs = [math.log(ratio) for ratio in self.ratios]
        middle = fmean(logs)
        squares = [(log - middle) ** 2 for log in logs]
        squares += [math.log(ratio) ** 2 for ratio in self.selves]
        freedom = len(squares) - 1
        # If a clock rounds both times to steps, their ratio is no more precise than the rounding.
        noise = max(math.sqrt(sum(squares) / freedom), self.step / math.sqrt(6))
        return ObservedRatio(middle, noise, noise / math.sqrt(count), freedom, self.step)


@dataclass(frozen=True, slots=True)
class JudgedTimes:
    """A verdict with its interval; a ratio over 1 is faster after the change."""

    ratio: float
    low: float
    high: float
    noise: float
    """Relative standard deviation of a ratio between processes."""
    verdict: PerformanceVerdict
    clear: bool
    """Whether more processes would not change the verdict."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a document that it fills."""
        return {name: value for name, value in asdict(self).items() if name != "clear"}


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides verdicts."""

    verdicts: int
    """Number of verdicts in a run; the more there are, the stricter each one is."""
    tolerance: float | None = None
    """Relative difference that counts as equal; None for whatever the noise allows."""

    def judge(self, times: "ComparedTimes | SeparateTimes") -> JudgedTimes | None:
        """Return the verdict, or None if the noise cannot be estimated."""
        observed = times.observed()
        if observed is None:
            return None
        middle = observed.middle
        margin = observed.error * student(observed.freedom, 1 - (1 - SURE) / self.verdicts)
        half = min(margin + observed.step, WIDEST)
        low, high = math.exp(middle - half), math.exp(middle + half)
        verdict = self._verdict(low, high)
        may_differ = abs(middle) > observed.error * student(observed.freedom, CONFIDENCE)
        clear = verdict in {"faster", "slower"} or (verdict == "equal" and not may_differ)
        return JudgedTimes(math.exp(middle), low, high, observed.noise, verdict, clear)

    def _verdict(self, low: float, high: float) -> PerformanceVerdict:
        if low > 1:
            return "faster"
        if high < 1:
            return "slower"
        if self.tolerance is not None and max(high - 1, 1 - low) > self.tolerance:
            return "undecided"
        return "equal"


LEAST = 2
"""Minimum number of processes per side to estimate the noise."""


@dataclass(frozen=True, slots=True)
class SeparateTimes:
    """Process times by side."""

    before: Sequence[float]
    after: Sequence[float]
    """Seconds, or times weighted alike on both sides."""
    step: float = 0.0
    """Relative resolution of the clock."""

    @property
    def middles(self) -> tuple[float, float]:
        """Geometric mean of each side."""
        return math.exp(_log_mean(self.before)), math.exp(_log_mean(self.after))

    @property
    def ratio(self) -> float:
        """Ratio of the means, before over after."""
        return math.exp(_log_mean(self.before) - _log_mean(self.after))

    def observed(self) -> ObservedRatio | None:
        """Return the statistics; None if a side has one process or no noise is visible."""
        counts = len(self.before), len(self.after)
        if min(counts) < LEAST:
            return None
        squares = [*_squares(self.before), *_squares(self.after)]
        freedom = len(squares) - 2
        # If a clock rounds times to the same step, they are not closer than the rounding.
        deviation = max(math.sqrt(sum(squares) / freedom), self.step / math.sqrt(12))
        if not deviation:
            return None
        error = deviation * math.sqrt(sum(1 / count for count in counts))
        noise = deviation * math.sqrt(2)
        return ObservedRatio(math.log(self.ratio), noise, error, freedom, self.step)


# Sides measured in separate processes
#
# One process is one observation of its side. The sides are compared as two samples with a pooled
# noise between processes. The noise of samples within a process is never used instead, because
# they share clock, temperature, and memory layout.


def score_times(weights: Sequence[float], points: Sequence[SeparateTimes]) -> SeparateTimes:
    """Return the times of a workload, whose ratio is the weighted mean of the ratios of its points.

    Effects of a process on all runtime workloads are retained.
    """
    ratios = [point.ratio for point in points]
    score = sum(weight * ratio for weight, ratio in zip(weights, ratios, strict=True))
    # Relative change of the score per relative change of a time.
    shares = [weight * ratio / score for weight, ratio in zip(weights, ratios, strict=True)]
    before = _relative_times(shares, [point.before for point in points])
    after = _relative_times(shares, [point.after for point in points])
    step = sum(share * point.step for share, point in zip(shares, points, strict=True))
    return SeparateTimes([score * factor for factor in before], after, step)


def _relative_times(
    shares: Sequence[float], times_by_point: Sequence[Sequence[float]]
) -> list[float]:
    """Return each process relative to the mean; some processes may have measured fewer points."""
    process_count = min(map(len, times_by_point))
    middles = [_log_mean(times[:process_count]) for times in times_by_point]
    return [
        math.exp(
            sum(
                share * (math.log(times[process]) - middle)
                for share, times, middle in zip(shares, times_by_point, middles, strict=True)
            )
        )
        for process in range(process_count)
    ]


def _log_mean(times: Sequence[float]) -> float:
    return fmean(math.log(seconds) for seconds in times)


def _squares(times: Sequence[float]) -> list[float]:
    middle = _log_mean(times)
    return [(math.log(seconds) - middle) ** 2 for seconds in times]
