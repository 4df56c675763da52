"""A workload on both sides of a change: its objects, and what was measured of them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from policygen.gpu.comparison import ComparedTimes, Judge, JudgedTimes
from policygen.gpu.control import Controller
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import RuntimeSpot, WorkloadTask, measure_workload
from policygen.gpu.statistics import PointTimes, times_of
from policygen.model.workload import BASE, Point
from policygen.results.export import quantile_ratios
from policygen.results.tables import DeclaredAxes
from policygen.steps import Progress

AFTER, COPY = "after_1", "before_1"
"""What both are called beside `base`, the side before; databases want labels of variants."""


@dataclass(frozen=True, slots=True)
class ChangePart:
    """A sub-benchmark of a workload, compiled with the headers of both sides."""

    before: VariantFunction
    after: VariantFunction
    copy: VariantFunction
    """The side before once more, in a file of its own: what equal code is measured by."""
    points: tuple[RuntimeSpot, ...]
    declared: DeclaredAxes


@dataclass(slots=True)
class ChangedWorkload:
    """What is known of a workload so far."""

    point: Point
    parts: tuple[ChangePart, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    """Runtime workloads that are not measured, and why."""
    failed: Failure | None = None
    """What is wrong with the side after."""
    seconds: float = 0.0
    """What a process of one runtime workload took, of late."""

    @property
    def spots(self) -> list[RuntimeSpot]:
        """The runtime workloads that can be measured."""
        every = (spot for part in self.parts for spot in part.points)
        return [spot for spot in every if str(spot) not in self.skipped]

    def times(self, rows: MeasuringSession) -> list[PointTimes]:
        """What the database has of them; nothing as long as one was not measured."""
        spots = [one.spot for one in self.spots]
        if any(AFTER not in rows.times(spot) for spot in spots):
            return []
        declared = {key: values for part in self.parts for key, values in part.declared.items()}
        return times_of(rows, spots, declared)


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A runtime workload, its weight, and what each side takes."""

    times: PointTimes
    judged: JudgedTimes

    @property
    def seconds(self) -> tuple[float, float]:
        """Before and after."""
        before, after = zip(*self.times.variants[AFTER], strict=True)
        return median(before), median(after)


@dataclass(frozen=True, slots=True)
class JudgedWorkload:
    """What is known of a workload: of its score, and of each runtime workload."""

    score: JudgedTimes
    points: tuple[JudgedPoint, ...]

    @property
    def clear(self) -> bool:
        """Whether more processes would say nothing else."""
        return self.score.clear and all(one.judged.clear for one in self.points)


def judge_workload(judge: Judge, times: Sequence[PointTimes]) -> JudgedWorkload | None:
    """Nothing as long as a runtime workload was measured in less than two processes."""
    every = [_compared(one) for one in times]
    judged = [judge.judge(one) for one in every]
    known = [one for one in judged if one is not None]
    if not known or len(known) < len(judged):
        return None
    weights = [one.weight for one in times]
    score = judge.judge(
        ComparedTimes(
            _weighted(weights, [one.ratios for one in every]),
            _weighted(weights, [one.selves for one in every]),
            sum(weight * one.step for weight, one in zip(weights, every, strict=True)),
        )
    )
    assert score is not None
    points = (JudgedPoint(one, told) for one, told in zip(times, known, strict=True))
    return JudgedWorkload(score, tuple(points))


def unclear_spots(change: ChangedWorkload, judged: JudgedWorkload | None) -> Iterator[RuntimeSpot]:
    """The runtime workloads that are to be measured in more processes."""
    if judged is None:
        yield from change.spots
        return
    open_ones = [not one.judged.clear for one in judged.points]
    # Where each of them is clear and their mean is not, all tell of the mean.
    everything = not any(open_ones) and not judged.score.clear
    for spot, is_open in zip(change.spots, open_ones, strict=True):
        if is_open or everything:
            yield spot


def _compared(times: PointTimes) -> ComparedTimes:
    selves = times.ratios(COPY) if COPY in times.variants else ()
    return ComparedTimes(times.ratios(AFTER), selves, _step(times))


def _step(times: PointTimes) -> float:
    """By how much two different times differ at least, as a share: what the clock can tell.

    Where times are not rounded, that comes to nothing the more there are.
    """
    pairs = (pair for label in (AFTER, COPY) for pair in times.variants.get(label, ()))
    centers = sorted({seconds for pair in pairs for seconds in pair})
    steps = [later - earlier for earlier, later in pairwise(centers)]
    return min(steps) / centers[0] if steps else 0.0


def _weighted(weights: Sequence[float], lots: Sequence[Sequence[float]]) -> list[float]:
    """Scores by process; runtime workloads that were clear early are in fewer."""
    if not all(lots):
        return []
    least = min(map(len, lots))
    processes = zip(*(lot[:least] for lot in lots), strict=True)
    return [sum(w * ratio for w, ratio in zip(weights, each, strict=True)) for each in processes]


def quantiles_of(rows: MeasuringSession, spot: RuntimeSpot) -> tuple[float, ...]:
    """Before over after at each quantile, of the samples of all processes."""
    samples = rows.samples(spot.spot)
    if not {BASE, AFTER} <= samples.keys():
        return ()
    return quantile_ratios(samples[BASE], samples[AFTER])


def failures_of(failed: Mapping[str, Failure]) -> Failure | None:
    """What is wrong with the side after; that its own copy fails is the side before's affair."""
    return failed.get(AFTER)


LOOKS = (5, 8, 12, 20)
"""Processes after which it is looked at what is clear."""


@dataclass(slots=True)
class ChangeMeasuring:
    """What measures, and how long it may."""

    controller: Controller
    rows: MeasuringSession
    judge: Judge
    looks: Sequence[int]
    rounds: int
    seed: int
    budget: float | None = None
    """Seconds."""
    progress: Progress | None = None
    _asked: bool = field(init=False, default=False)
    late: bool = field(init=False, default=False)
    """Whether something was left, as there was no time for it."""

    def run(self, changes: Sequence[ChangedWorkload]) -> list[JudgedWorkload | None]:
        """Measures all of them, then again what is not clear; for each what it comes to."""
        begun = time.monotonic()
        for processes in self.looks:
            for change in changes:
                if change.failed is None:
                    self._look(change, processes, begun)
        return [self.judged(change) for change in changes]

    def judged(self, change: ChangedWorkload) -> JudgedWorkload | None:
        """What is known of a workload so far."""
        times = change.times(self.rows)
        return judge_workload(self.judge, times) if times else None

    def _look(self, change: ChangedWorkload, processes: int, begun: float) -> None:
        spots = list(unclear_spots(change, self.judged(change)))
        if not spots:
            return
        if self.budget is not None:
            left = self.budget - (time.monotonic() - begun)
            if left <= change.seconds * len(spots):
                self.late = True
                return
        for part in change.parts:
            mine = [spot for spot in part.points if spot in spots]
            if mine and change.failed is None:
                self._measure(change, part, mine, processes)

    def _measure(
        self, change: ChangedWorkload, part: ChangePart, spots: Sequence[RuntimeSpot], count: int
    ) -> None:
        begun = time.monotonic()
        if self._asked:
            self.controller.restart()  # each look begins with a fresh process, as the first did
        self._asked = True
        task = WorkloadTask(part.before, (part.after, part.copy), tuple(spots), part.declared)
        found = measure_workload(
            self.controller,
            self.rows,
            task,
            rounds=self.rounds,
            seed=self.seed,
            processes=count,
            progress=self.progress,
        )
        change.skipped |= found.skipped
        change.failed = failures_of(found.failed)
        change.seconds = (time.monotonic() - begun) / len(spots)


# Measures changes in fresh processes, look after look: what is clear is not measured again.


def looks_until(most: int) -> tuple[int, ...]:
    """When it is looked, with so many processes at most."""
    return (*(one for one in LOOKS if one < most), most)
