"""What processes say of a change, beside what they say of code that did not change.

A process is one observation. In each of them the side before runs twice: as itself and as a copy of
itself, which says how far equal code is from itself. Both have the same noise, and tell of it
together. A verdict is made so sure that of all verdicts of a run none is wrong by chance.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

import numpy as np

from policygen.errors import InputError
from policygen.gpu.statistics import CONFIDENCE, student
from policygen.model.verdicts import PerformanceVerdict
from policygen.model.workload import Point, axis_name, in_words
from policygen.results.database import LONGEST, SHORTEST
from policygen.results.nvbench import NvbenchBench, NvbenchRun, NvbenchState, SkippedState
from policygen.results.samples import Samples

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


# Sides that were not measured side by side: a process has run one of them alone.
#
# A process is one observation of its side: what it took. The sides are compared as two samples
# are,
# by the noise that both show together from process to process. That of samples within a process
# is
# never taken for it: they share a clock, a temperature and places in memory.


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


SIDES = ("before", "after")
NO_TIME = "NVBench tells no time"
Axes = Mapping[str, str]
"""With their values; as databases name them."""
Keeps = Callable[[str, Axes], bool]
"""Whether a runtime workload is meant, by its benchmark and all its axes."""


@dataclass(slots=True)
class MatchedPoint:
    """A runtime workload: what each process took, by side, and why others did not."""

    subbench: str
    axes: Axes
    times: Mapping[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    skipped: dict[str, str] = field(default_factory=dict)
    """By side."""
    step: float = 0.0

    @property
    def separate(self) -> SeparateTimes | None:
        """Nothing where a side has not measured it."""
        before, after = (self.times[side] for side in SIDES)
        return SeparateTimes(before, after, self.step) if before and after else None

    @property
    def skips(self) -> bool:
        """Whether NVBench skips it, and neither side has measured it."""
        told = self.skipped.values()
        return bool(told) and NO_TIME not in told and not any(self.times.values())

    @property
    def lacking(self) -> str:
        """Which side has not measured it, and why."""
        return "; ".join(
            f"{side}: {self.skipped.get(side, 'there is no result')}"
            for side in SIDES
            if not self.times[side]
        )


@dataclass(slots=True)
class MatchedWorkload:
    """A workload, and what either side has of it."""

    point: Point
    points: list[MatchedPoint] = field(default_factory=list)
    problem: str | None = None
    """Why its runtime workloads cannot be matched."""


# Results of both sides, matched by benchmark, sub-benchmark and the values of axes.


def match_results(
    before: Sequence[NvbenchRun], after: Sequence[NvbenchRun], keeps: Keeps
) -> list[MatchedWorkload]:
    """The workloads of both sides, in the order in which they are first named."""
    different = _different_axes((*before, *after))
    workloads: dict[tuple[str, frozenset[tuple[str, str]]], MatchedWorkload] = {}
    points: dict[tuple[str, str, frozenset[tuple[str, str]]], MatchedPoint] = {}
    for side, run in [*((SIDES[0], run) for run in before), *((SIDES[1], run) for run in after)]:
        seen = set()
        for bench, state in _states(run):
            if not keeps(run.algorithm, state.point):
                continue
            key = (run.algorithm, bench.name, frozenset(state.point.items()))
            if key in seen:
                told = in_words(bench.name, state.point)
                raise InputError(f"{run.path}: {told}: is there twice")
            seen.add(key)
            if key not in points:
                types, rest = _parts(bench, state.point)
                points[key] = MatchedPoint(bench.name, rest)
                workload = MatchedWorkload(
                    (run.algorithm, tuple((axis_name(axis), types[axis]) for axis in types)),
                    problem=different.get(run.algorithm),
                )
                place = (run.algorithm, frozenset(types.items()))
                workloads.setdefault(place, workload).points.append(points[key])
            _add(points[key], side, state)
    return list(workloads.values())


def step_of(samples: Samples | None) -> float:
    """The step of the clock around the median, as a share of what is a step less than it.

    0 where none can be seen. Two medians that are a step apart may be those of equal code.
    """
    if samples is None or not samples.size:
        return 0.0
    center = float(np.median(samples.astype(np.float64)))
    below, above = samples[samples < center], samples[samples > center]
    low = float(below.max()) if below.size else center
    high = float(above.min()) if above.size else center
    step = (high - low) / 2
    return step / (center - step) if step < center else 1.0


def _states(run: NvbenchRun) -> Iterator[tuple[NvbenchBench, NvbenchState | SkippedState]]:
    for bench in run.benches:
        yield from ((bench, state) for state in bench.states)
        yield from ((bench, state) for state in bench.skipped)


def _parts(bench: NvbenchBench, point: Axes) -> tuple[dict[str, str], dict[str, str]]:
    """What tells a workload, and what tells its runtime workloads: as databases part them."""
    types = {axis: point[axis] for axis in bench.axes if "{ct}" in axis}
    return types, {axis: point[axis] for axis in bench.axes if "{ct}" not in axis}


def _add(point: MatchedPoint, side: str, state: NvbenchState | SkippedState) -> None:
    if isinstance(state, SkippedState):
        point.skipped[side] = state.reason
    elif not (math.isfinite(state.center) and SHORTEST <= state.center <= LONGEST):
        point.skipped[side] = NO_TIME
    else:
        point.times[side].append(state.center)
        point.step = max(point.step, step_of(state.samples))


def _different_axes(runs: Sequence[NvbenchRun]) -> dict[str, str]:
    """Benchmarks whose results have different axes, and which."""
    first: dict[tuple[str, str], tuple[NvbenchRun, NvbenchBench]] = {}
    found: dict[str, str] = {}
    for run in runs:
        for bench in run.benches:
            one, known = first.setdefault((run.algorithm, bench.name), (run, bench))
            if set(known.axes) != set(bench.axes):
                found.setdefault(
                    run.algorithm,
                    f"{bench.name} has the axes {_named(known)} in {one.path}, and"
                    f" {_named(bench)} in {run.path}",
                )
    return found


def _named(bench: NvbenchBench) -> str:
    return ", ".join(bench.axes) or "none"
