"""What a search measures of a workload: its sub-benchmarks' runtime workloads, and base on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from policygen.measure.device import RuntimeCase, VariantFunction
from policygen.measure.run import RuntimeSpot
from policygen.measure.tables import RowSpot
from policygen.measure.times import spot_weights
from policygen.results.declared import DeclaredAxes
from policygen.search.gpu import MeasuresRungs
from policygen.search.rung_scores import WeighedSpot

MEDIAN = 1.2533
"""The standard error of a median over that of a mean, of many samples."""
ROBUST = 1.4826
"""A standard deviation over the median distance from the median."""
AIM = 0.006
"""The standard error of a score that the first rung is made for: about what scores differ by from
process to process, which more samples in one process do not take away."""
FEWEST, MOST = 2, 10
"""Rounds of the first rung on a runtime workload."""
WARM, BESIDE = 2.0, 0.00015
"""A sample takes so many times a run, and so many seconds besides."""


@dataclass(frozen=True, slots=True)
class TargetPoint:
    """A runtime workload that base was measured on, and how noisy it is there."""

    index: int
    """Of the sub-benchmark."""
    runtime: RuntimeSpot
    weight: float
    seconds: float
    """What base takes."""
    spread: float
    """The relative standard deviation of a sample."""
    rounds: int
    """Of the first rung."""

    @property
    def spot(self) -> RowSpot:
        """How the database names it."""
        return self.runtime.spot

    @property
    def case(self) -> RuntimeCase:
        """What a device opens."""
        return self.runtime.case

    @property
    def sample_seconds(self) -> float:
        """How long one sample takes."""
        return WARM * self.seconds + BESIDE

    @property
    def weighed(self) -> WeighedSpot:
        """What scores need of it."""
        return WeighedSpot(self.spot, self.weight)


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """A workload whose base has run."""

    points: tuple[TargetPoint, ...]
    skipped: tuple[tuple[RowSpot, str], ...]
    """Runtime workloads that are not measured, and why."""

    def rounds(self, aim: float, least: int, most: int) -> list[int]:
        """How often to run on each runtime workload for a score that is so sure."""
        share = math.sqrt(len(self.points)) / aim
        return [
            rounds_for(one.weight * one.spread * MEDIAN * share, least, most) for one in self.points
        ]

    def error(self, rounds: Sequence[int]) -> float:
        """The standard error of a score by these rounds, as far as samples make it."""
        return math.sqrt(
            sum(
                (one.weight * one.spread * MEDIAN) ** 2 / count
                for one, count in zip(self.points, rounds, strict=True)
            )
        )


def rounds_for(error: float, least: int, most: int) -> int:
    """As many as make so many times the error that is wanted into that, within limits."""
    return min(most, max(least, math.ceil(error**2)))


def look(
    gpu: MeasuresRungs,
    bases: Sequence[VariantFunction],
    runtimes: Sequence[Sequence[RuntimeSpot]],
    declared: DeclaredAxes,
    seed: int,
) -> SearchTarget:
    """Runs base alone on all runtime workloads: how long it takes, how noisy, and where it cannot.

    One base, and one lot of runtime workloads, for each sub-benchmark.
    """
    asked = [(index, one) for index, lot in enumerate(runtimes) for one in lot]
    looked = gpu.look([(one.case, bases[index]) for index, one in asked], seed)
    both = list(zip(asked, looked, strict=True))
    skipped = [(one.spot, found.skipped) for (_, one), found in both if found.skipped is not None]
    seen = [(index, one, found.samples) for (index, one), found in both if found.samples]
    weights = spot_weights([one.spot for _, one, _ in seen], declared) if seen else []
    points = []
    for (index, one, samples), weight in zip(seen, weights, strict=True):
        spread = _spread(samples)
        error = weight * spread * MEDIAN * math.sqrt(len(seen)) / AIM
        rounds = rounds_for(error, FEWEST, MOST)
        points.append(TargetPoint(index, one, weight, median(samples), spread, rounds))
    return SearchTarget(tuple(points), tuple(skipped))


def _spread(samples: Sequence[float]) -> float:
    middle = median(samples)
    return ROBUST * median(abs(one - middle) for one in samples) / middle
