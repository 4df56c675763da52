"""Verdicts on a change, from process times compared with those of unchanged code.

One process is one observation. The side before runs twice in each process: as itself and as a copy,
which shows how much equal code differs. Both ratios have the same noise and estimate it together.
Verdicts are strict enough that none of a whole run is wrong by chance.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from policygen.gpu.statistics import CONFIDENCE, student
from policygen.model.verdicts import PerformanceVerdict

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
