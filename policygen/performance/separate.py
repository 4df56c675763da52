"""Sides that were not measured side by side: a process has run one of them alone.

A process is one observation of its side: what it took. The sides are compared as two samples are,
by the noise that both show together from process to process. That of samples within a process is
never taken for it: they share a clock, a temperature and places in memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from policygen.performance.verdicts import ObservedRatio

LEAST = 2
"""Processes of a side, so that it tells its noise."""


@dataclass(frozen=True, slots=True)
class SeparateTimes:
    """What each process took, by side."""

    before: Sequence[float]
    after: Sequence[float]
    """Seconds, or times that are weighed alike on both sides."""
    step: float = 0.0
    """That of the clock by which centers are told, as a share of them."""

    @property
    def middles(self) -> tuple[float, float]:
        """What a process of each side takes."""
        return math.exp(_middle(self.before)), math.exp(_middle(self.after))

    @property
    def ratio(self) -> float:
        """Before over after, by their middles."""
        return math.exp(_middle(self.before) - _middle(self.after))

    def observed(self) -> ObservedRatio | None:
        """Nothing where a side has one process, or no noise can be seen."""
        counts = len(self.before), len(self.after)
        if min(counts) < LEAST:
            return None
        squares = [*_squares(self.before), *_squares(self.after)]
        freedom = len(squares) - 2
        # Where a clock rounds times to the same step, they are not closer than what it rounds.
        deviation = max(math.sqrt(sum(squares) / freedom), self.step / math.sqrt(12))
        if not deviation:
            return None
        error = deviation * math.sqrt(sum(1 / count for count in counts))
        noise = deviation * math.sqrt(2)
        return ObservedRatio(math.log(self.ratio), noise, error, freedom, self.step)


def score_times(weights: Sequence[float], points: Sequence[SeparateTimes]) -> SeparateTimes:
    """The times of a workload, whose ratio is the weighted mean of those of its points.

    What a process does to all runtime workloads together stays in what it comes to.
    """
    ratios = [one.ratio for one in points]
    score = sum(weight * ratio for weight, ratio in zip(weights, ratios, strict=True))
    # By which share the score changes where a time does.
    shares = [weight * ratio / score for weight, ratio in zip(weights, ratios, strict=True)]
    before = _together(shares, [one.before for one in points])
    after = _together(shares, [one.after for one in points])
    step = sum(share * one.step for share, one in zip(shares, points, strict=True))
    return SeparateTimes([score * one for one in before], after, step)


def _together(shares: Sequence[float], lots: Sequence[Sequence[float]]) -> list[float]:
    """How far each process is from the middle of all; some may have measured fewer points."""
    least = min(map(len, lots))
    middles = [_middle(lot[:least]) for lot in lots]
    return [
        math.exp(
            sum(
                share * (math.log(lot[process]) - middle)
                for share, lot, middle in zip(shares, lots, middles, strict=True)
            )
        )
        for process in range(least)
    ]


def _middle(times: Sequence[float]) -> float:
    return fmean(math.log(one) for one in times)


def _squares(times: Sequence[float]) -> list[float]:
    middle = _middle(times)
    return [(math.log(one) - middle) ** 2 for one in times]
