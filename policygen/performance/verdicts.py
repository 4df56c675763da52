"""What processes say of a change, beside what they say of code that did not change.

A process is one observation. In each of them the side before runs twice: as itself and as a copy of
itself, which says how far equal code is from itself. Both have the same noise, and tell of it
together. A verdict is made so sure that of all verdicts of a run none is wrong by chance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from policygen.measure.student import CONFIDENCE, student
from policygen.model.performance import PerformanceVerdict

SURE = 0.99
"""With this confidence none of the verdicts of a run is faster or slower by chance."""
WIDEST = 50.0
"""Of logarithms: no ratio of times is farther from 1."""


@dataclass(frozen=True, slots=True)
class ObservedRatio:
    """What observations come to, before anybody says how sure one must be."""

    middle: float
    """The logarithm of before over after."""
    noise: float
    """The standard deviation of a ratio from process to process, as a share."""
    error: float
    """Of the middle."""
    freedom: int
    step: float = 0.0
    """What the clock cannot tell, as a share, besides; no number of processes makes it less."""


class Observations(Protocol):
    """Times of both sides of a change, however they were taken."""

    def observed(self) -> ObservedRatio | None:
        """Nothing where they do not tell their noise."""
        ...


@dataclass(frozen=True, slots=True)
class ComparedTimes:
    """Ratios of times by process: before over after, and before over its copy."""

    ratios: Sequence[float]
    selves: Sequence[float]
    step: float = 0.0
    """That of the clock by which times are told, as a share of them."""

    def observed(self) -> ObservedRatio | None:
        """Nothing where there are less than two processes."""
        count = len(self.ratios)
        if count < 2:
            return None
        logs = [math.log(one) for one in self.ratios]
        middle = fmean(logs)
        squares = [(one - middle) ** 2 for one in logs]
        squares += [math.log(one) ** 2 for one in self.selves]
        freedom = len(squares) - 1
        # Where a clock rounds both times to steps, their ratio is not surer than what it rounds.
        noise = max(math.sqrt(sum(squares) / freedom), self.step / math.sqrt(6))
        return ObservedRatio(middle, noise, noise / math.sqrt(count), freedom, self.step)


@dataclass(frozen=True, slots=True)
class JudgedTimes:
    """What they come to; over 1 is faster after the change."""

    ratio: float
    low: float
    high: float
    noise: float
    """The standard deviation of a ratio from process to process, as a share."""
    verdict: PerformanceVerdict
    clear: bool
    """Whether more processes would say nothing else."""

    @property
    def within(self) -> float:
        """By which share both sides differ at most."""
        return max(self.high - 1, 1 - self.low)


@dataclass(frozen=True, slots=True)
class Judge:
    """How sure verdicts must be."""

    verdicts: int
    """Of a run; the more there are, the surer each of them must be."""
    tolerance: float | None = None
    """The share by which both sides may differ; none: as far as the noise lets one see."""

    def judge(self, times: Observations) -> JudgedTimes | None:
        """Nothing where times do not tell their noise."""
        found = times.observed()
        if found is None:
            return None
        middle = found.middle
        sure = found.error * student(found.freedom, 1 - (1 - SURE) / self.verdicts)
        half = min(sure + found.step, WIDEST)
        low, high = math.exp(middle - half), math.exp(middle + half)
        verdict = self._verdict(low, high)
        may_differ = abs(middle) > found.error * student(found.freedom, CONFIDENCE)
        clear = verdict in {"faster", "slower"} or (verdict == "equal" and not may_differ)
        return JudgedTimes(math.exp(middle), low, high, found.noise, verdict, clear)

    def _verdict(self, low: float, high: float) -> PerformanceVerdict:
        if low > 1:
            return "faster"
        if high < 1:
            return "slower"
        if self.tolerance is not None and max(high - 1, 1 - low) > self.tolerance:
            return "undecided"
        return "equal"
