"""Measuring for a search: runs the baseline and rungs on a GPU, and scores the results.

Requests and answers are plain data, so that the GPU may be in another machine.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from policygen.gpu.control import Controller
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, Rounds, RuntimeCase, VariantFunction
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.rung_rows import RungRows, WeighedSpot
from policygen.gpu.statistics import spot_weights
from policygen.results.own_tables import LAST
from policygen.results.tables import DeclaredAxes

LOOK = 12
"""Rounds of the baseline alone that determine its noise."""
BaseCase = tuple[RuntimeCase, VariantFunction]
"""A runtime workload and its baseline function."""
Functions = Mapping[str, VariantFunction]
"""Functions by variant label."""
Asked = Callable[[], bool]
"""Returns whether a stop was requested."""


class StopAskedError(Exception):
    """A stop was requested; everything measured so far is written."""


@dataclass(frozen=True, slots=True)
class BaselineSamples:
    """Samples of the baseline on a runtime workload, or the reason why there are none."""

    samples: tuple[float, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class RungPoint:
    """A runtime workload of a rung."""

    case: RuntimeCase
    base: VariantFunction
    functions: Functions
    """All variants of the rung."""
    rounds: int


@dataclass(frozen=True, slots=True)
class PointResult:
    """Result of one runtime workload of a rung."""

    samples: Mapping[str, Sequence[float]]
    """Seconds by label, including the baseline; empty if the runtime workload cannot be opened."""
    failed: Mapping[str, Failure]
    elapsed: Mapping[str, float]
    repeated: int = 0
    throttled: int = 0
    restarts: int = 0
    """Number of processes so far that were started after the first one of each GPU."""
    point: int = 0
    """Index of the runtime workload in the rung."""
    part: int = 0
    """Index of the process of the rung; each process measures the baseline."""


class MeasuresRungs(Protocol):
    """A local or remote GPU."""

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        stop_requested: Asked,
        *,
        together: bool = False,
    ) -> Iterator[PointResult]:
        """Check and measure variants in a fresh process, one runtime workload after another.

        A variant that fails on one workload is left out of the next. Several GPUs divide the
        variants, each with the baseline, unless they must be measured `together`.
        """


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """A GPU of this machine."""

    controller: Controller

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""
        self.controller.restart()
        return [self._look(case, base, seed) for case, base in cases]

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        stop_requested: Asked,
        *,
        together: bool = False,  # noqa: ARG002  one GPU measures all of them together
    ) -> Iterator[PointResult]:
        """Check and measure variants in a fresh process, one runtime workload after another."""
        return rung_of(self.point, points, seed, stop_requested)

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointResult:
        """Check and measure all variants on one runtime workload, optionally in a fresh process."""
        controller = self.controller
        if fresh:
            controller.restart()
        variants = list(point.functions.values())
        problem = controller.open(point.case, point.base)
        if problem is not None:  # it could be opened before: the GPU has less memory now
            return PointResult(
                {}, {function.variant: Failure("error", problem) for function in variants}, {}
            )
        checked = controller.check(variants)
        correct = [function for function in variants if function.variant not in checked.failed]
        rounds: Rounds = controller.rounds(correct, point.rounds, seed)
        return PointResult(
            samples=rounds.samples,
            failed={**checked.failed, **rounds.failed},
            elapsed={**checked.elapsed, **rounds.elapsed},
            repeated=rounds.repeated,
            throttled=rounds.throttled,
            restarts=controller.restarts,
        )

    def _look(self, case: RuntimeCase, base: VariantFunction, seed: int) -> BaselineSamples:
        problem = self.controller.open(case, base)
        if problem is not None:
            return BaselineSamples(skipped=problem)
        failure = self.controller.check([base]).failed.get(base.variant)
        if failure is not None:
            reason = f"base differs from itself: {failure.reason}"
            return BaselineSamples(skipped=reason if failure.kind == "wrong" else failure.reason)
        rounds = self.controller.rounds([], math.ceil(LOOK / 2), seed)
        return BaselineSamples(rounds.samples[base.variant])


class MeasuresPoint(Protocol):
    """A function that measures one runtime workload."""

    def __call__(self, point: RungPoint, seed: int, /, *, fresh: bool) -> PointResult:
        """Measure all variants, in a fresh process or the current one."""


def rung_of(
    measure: MeasuresPoint, points: Sequence[RungPoint], seed: int, stop_requested: Asked
) -> Iterator[PointResult]:
    """Measure one runtime workload after another without failed variants, starting a fresh process.

    It can be stopped between two workloads.
    """
    failed: set[str] = set()
    for index, point in enumerate(points):
        if stop_requested():
            raise StopAskedError
        remaining = {
            label: function for label, function in point.functions.items() if label not in failed
        }
        if not remaining:
            return
        result = measure(replace(point, functions=remaining), seed, fresh=not index)
        failed |= result.failed.keys()
        yield replace(result, point=index)


# Rungs of a search


def in_all(functions: Sequence[Functions]) -> list[str]:
    """Return the variants that all sub-benchmarks have, in request order."""
    first, *others = functions
    return [
        label
        for label in first
        if all(label in functions_by_label for functions_by_label in others)
    ]


@dataclass(frozen=True, slots=True)
class TargetPoint:
    """A runtime workload with the time and noise of the baseline."""

    index: int
    """Index of the sub-benchmark."""
    runtime: RuntimeSpot
    weight: float
    seconds: float
    """Time of the baseline."""
    spread: float
    """Relative standard deviation of a sample."""
    rounds: int
    """Rounds of the first rung."""

    @property
    def spot(self) -> RowSpot:
        """Key of the runtime workload in the database."""
        return self.runtime.spot

    @property
    def case(self) -> RuntimeCase:
        """Runtime workload that a device opens."""
        return self.runtime.case

    @property
    def sample_seconds(self) -> float:
        """Estimated duration of one sample."""
        return WARM * self.seconds + BESIDE

    @property
    def weighed(self) -> WeighedSpot:
        """Key and weight for the scores."""
        return WeighedSpot(self.spot, self.weight)


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """A workload whose baseline has run."""

    points: tuple[TargetPoint, ...]
    skipped: tuple[tuple[RowSpot, str], ...]
    """Runtime workloads that are not measured, with reasons."""

    def rounds(self, aim: float, least: int, most: int) -> list[int]:
        """Return the rounds per runtime workload for a standard error of `aim`."""
        share = math.sqrt(len(self.points)) / aim
        return [
            rounds_for(point.weight * point.spread * MEDIAN * share, least, most)
            for point in self.points
        ]

    def error(self, rounds: Sequence[int]) -> float:
        """Return the standard error of a score from these rounds, as far as samples cause it."""
        return math.sqrt(
            sum(
                (point.weight * point.spread * MEDIAN) ** 2 / count
                for point, count in zip(self.points, rounds, strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class RungTask:
    """What a rung measures."""

    rung: int
    bases: Sequence[VariantFunction]
    """Baseline function of each sub-benchmark."""
    functions: Sequence[Functions]
    """Functions by label of each sub-benchmark."""
    rounds: Sequence[int]
    """Rounds for each runtime workload of the target."""
    seed: int
    noise: bool = False
    """Whether the baseline is used to estimate the noise between processes."""

    def points(self, target: SearchTarget) -> list[RungPoint]:
        """Return the GPU requests, for variants that all sub-benchmarks have."""
        labels = in_all(self.functions)
        return [
            RungPoint(
                point.case,
                self.bases[point.index],
                {label: self.functions[point.index][label] for label in labels},
                rounds,
            )
            for point, rounds in zip(target.points, self.rounds, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RungResult:
    """Scores and failures of a rung."""

    scores: Mapping[str, float]
    """Scores of variants that ran on all runtime workloads."""
    failed: Mapping[str, Failure]


def measure_rung(
    gpu: MeasuresRungs,
    rows: RungRows,
    target: SearchTarget,
    task: RungTask,
    fresh: Callable[[], int],
    stop_requested: Asked,
) -> RungResult:
    """Measure a rung, write each result as it arrives, and return the scores.

    `fresh` returns a new process number; each of several GPUs has its own process.
    """
    failed: dict[str, Failure] = {}
    scores: dict[str, float] = {}
    processes: dict[int, int] = {}
    together = task.rung == LAST
    for result in gpu.rung(task.points(target), task.seed, stop_requested, together=together):
        point = target.points[result.point]
        if result.part not in processes:
            processes[result.part] = fresh()
        process = processes[result.part]
        failed |= result.failed
        for label, ratio in _write_point(rows, point, result, task, process).items():
            scores[label] = scores.get(label, 0.0) + point.weight * ratio
    return RungResult(
        {label: score for label, score in scores.items() if label not in failed}, failed
    )


def _write_point(
    rows: RungRows, point: TargetPoint, result: PointResult, task: RungTask, process: int
) -> dict[str, float]:
    """Write a result; return the baseline's time over each variant's."""
    spot, base = point.spot, task.bases[point.index].variant
    for label, failure in result.failed.items():
        rows.fail(spot, label, failure, result.elapsed.get(label, 0.0))
    if not result.samples:
        return {}
    rows.note(result.repeated, result.throttled, result.restarts)
    centers = rows.write(spot, task.rung, process, result.samples, result.elapsed)
    if task.noise:
        rows.noise(spot, process, result.samples)
    return {label: centers[base] / center for label, center in centers.items() if label != base}


MEDIAN = 1.2533
"""Ratio of the standard error of a median to that of a mean, for many samples."""
ROBUST = 1.4826
"""Ratio of a standard deviation to the median absolute deviation."""
AIM = 0.006
"""Standard error of a score that the first rung aims for: about the difference between processes,
which more samples in one process do not reduce.
"""
FEWEST, MOST = 2, 10
"""Range of rounds of the first rung on a runtime workload."""
WARM, BESIDE = 2.0, 0.00015
"""Duration of a sample: a multiple of one run plus a constant number of seconds."""


# Baselines and rounds of a search


def rounds_for(error: float, least: int, most: int) -> int:
    """Return the rounds that reduce a relative error to one, within limits."""
    return min(most, max(least, math.ceil(error**2)))


def look(
    gpu: MeasuresRungs,
    bases: Sequence[VariantFunction],
    runtimes: Sequence[Sequence[RuntimeSpot]],
    declared: DeclaredAxes,
    seed: int,
) -> SearchTarget:
    """Run only the baseline on all runtime workloads to find its time, its noise, and failures.

    `bases` and `runtimes` have one entry per sub-benchmark.
    """
    requests = [
        (index, runtime)
        for index, runtimes_of_case in enumerate(runtimes)
        for runtime in runtimes_of_case
    ]
    results = gpu.look([(runtime.case, bases[index]) for index, runtime in requests], seed)
    answered = list(zip(requests, results, strict=True))
    skipped = [
        (runtime.spot, result.skipped)
        for (_, runtime), result in answered
        if result.skipped is not None
    ]
    measured = [
        (index, runtime, result.samples) for (index, runtime), result in answered if result.samples
    ]
    weights = (
        spot_weights([runtime.spot for _, runtime, _ in measured], declared) if measured else []
    )
    points = []
    for (index, runtime, samples), weight in zip(measured, weights, strict=True):
        spread = _spread(samples)
        error = weight * spread * MEDIAN * math.sqrt(len(measured)) / AIM
        rounds = rounds_for(error, FEWEST, MOST)
        points.append(TargetPoint(index, runtime, weight, median(samples), spread, rounds))
    return SearchTarget(tuple(points), tuple(skipped))


def _spread(samples: Sequence[float]) -> float:
    middle = median(samples)
    return ROBUST * median(abs(sample - middle) for sample in samples) / middle
