"""A GPU that measures for a search: looks at base, and runs rungs; who writes is somebody else.

What is asked and what is told are plain data, so that the GPU may be in another machine.
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
"""Rounds of base alone, to see how noisy it is."""
BaseCase = tuple[RuntimeCase, VariantFunction]
"""A runtime workload, and base for it."""
Functions = Mapping[str, VariantFunction]
"""By label."""
Asked = Callable[[], bool]
"""Whether somebody has asked to stop."""


class StopAskedError(Exception):
    """Somebody has asked to stop; what was measured is written."""


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Base on a runtime workload: its samples, or why there are none."""

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
class PointFound:
    """What came of it."""

    samples: Mapping[str, Sequence[float]]
    """Seconds by label, base among them; nothing where the runtime workload cannot be opened."""
    failed: Mapping[str, Failure]
    elapsed: Mapping[str, float]
    repeated: int = 0
    throttled: int = 0
    restarts: int = 0
    """Processes so far, that were started after the first one of each GPU."""
    point: int = 0
    """Which of the rung's runtime workloads it is."""
    part: int = 0
    """Which of the rung's fresh processes: base was measured in each of them."""


class MeasuresRungs(Protocol):
    """A GPU, here or elsewhere."""

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads, in a fresh process."""

    def rung(
        self, points: Sequence[RungPoint], seed: int, asked: Asked, *, together: bool = False
    ) -> Iterator[PointFound]:
        """Checks and measures variants in a fresh process, one runtime workload after the other.

        Who fails on one is not on the next. Several GPUs divide the variants among them, each with
        base, where these need not be measured `together`.
        """


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """A GPU of this machine."""

    controller: Controller

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads, in a fresh process."""
        self.controller.restart()
        return [self._look(case, base, seed) for case, base in cases]

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        asked: Asked,
        *,
        together: bool = False,  # noqa: ARG002  one GPU measures all of them together
    ) -> Iterator[PointFound]:
        """Checks and measures variants in a fresh process, one runtime workload after the other."""
        return rung_of(self.point, points, seed, asked)

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointFound:
        """Checks and measures all variants on one runtime workload; in a fresh process, or not."""
        controller = self.controller
        if fresh:
            controller.restart()
        variants = list(point.functions.values())
        why = controller.open(point.case, point.base)
        if why is not None:  # it could be opened before: the GPU has less memory now
            return PointFound({}, {one.variant: Failure("error", why) for one in variants}, {})
        checked = controller.check(variants)
        right = [one for one in variants if one.variant not in checked.failed]
        found: Rounds = controller.rounds(right, point.rounds, seed)
        return PointFound(
            samples=found.samples,
            failed={**checked.failed, **found.failed},
            elapsed={**checked.elapsed, **found.elapsed},
            repeated=found.repeated,
            throttled=found.throttled,
            restarts=controller.restarts,
        )

    def _look(self, case: RuntimeCase, base: VariantFunction, seed: int) -> LookedAt:
        why = self.controller.open(case, base)
        if why is not None:
            return LookedAt(skipped=why)
        bad = self.controller.check([base]).failed.get(base.variant)
        if bad is not None:
            wrong = f"base differs from itself: {bad.reason}"
            return LookedAt(skipped=wrong if bad.kind == "wrong" else bad.reason)
        found = self.controller.rounds([], math.ceil(LOOK / 2), seed)
        return LookedAt(found.samples[base.variant])


class MeasuresPoint(Protocol):
    """Measures a runtime workload."""

    def __call__(self, point: RungPoint, seed: int, /, *, fresh: bool) -> PointFound:
        """All variants of it; in a fresh process, or in the one that is there."""


def rung_of(
    measure: MeasuresPoint, points: Sequence[RungPoint], seed: int, asked: Asked
) -> Iterator[PointFound]:
    """One runtime workload after the other, without those who failed; the first in a fresh process.

    It stops between two of them.
    """
    failed: set[str] = set()
    for number, point in enumerate(points):
        if asked():
            raise StopAskedError
        left = {label: one for label, one in point.functions.items() if label not in failed}
        if not left:
            return
        found = measure(replace(point, functions=left), seed, fresh=not number)
        failed |= found.failed.keys()
        yield replace(found, point=number)


# One rung of some variants of a workload: measured by a GPU, written as it comes, scored.


def in_all(functions: Sequence[Functions]) -> list[str]:
    """Variants that all sub-benchmarks have, in the order in which they were asked for."""
    first, *more = functions
    return [label for label in first if all(label in lot for lot in more)]


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


@dataclass(frozen=True, slots=True)
class RungTask:
    """What a rung measures."""

    rung: int
    bases: Sequence[VariantFunction]
    """One for each sub-benchmark."""
    functions: Sequence[Functions]
    """By label, for each sub-benchmark."""
    rounds: Sequence[int]
    """For each runtime workload of the target."""
    seed: int
    noise: bool = False
    """Whether base tells of the noise from process to process."""

    def points(self, target: SearchTarget) -> list[RungPoint]:
        """What a GPU is asked: variants that all sub-benchmarks have."""
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
class RungFound:
    """What became of variants."""

    scores: Mapping[str, float]
    """Of those that ran on all runtime workloads."""
    failed: Mapping[str, Failure]


def measure_rung(
    gpu: MeasuresRungs,
    rows: RungRows,
    target: SearchTarget,
    task: RungTask,
    fresh: Callable[[], int],
    asked: Asked,
) -> RungFound:
    """Writes what a GPU finds on each runtime workload when it has it; then the scores.

    `fresh` numbers a process: several GPUs have one each.
    """
    failed: dict[str, Failure] = {}
    scores: dict[str, float] = {}
    processes: dict[int, int] = {}
    together = task.rung == LAST
    for one in gpu.rung(task.points(target), task.seed, asked, together=together):
        point = target.points[one.point]
        if one.part not in processes:
            processes[one.part] = fresh()
        process = processes[one.part]
        failed |= one.failed
        for label, ratio in _written(rows, point, one, task, process).items():
            scores[label] = scores.get(label, 0.0) + point.weight * ratio
    return RungFound(
        {label: score for label, score in scores.items() if label not in failed}, failed
    )


def _written(
    rows: RungRows, point: TargetPoint, found: PointFound, task: RungTask, process: int
) -> dict[str, float]:
    """Base's time over each variant's."""
    spot, base = point.spot, task.bases[point.index].variant
    for label, failure in found.failed.items():
        rows.fail(spot, label, failure, found.elapsed.get(label, 0.0))
    if not found.samples:
        return {}
    rows.note(found.repeated, found.throttled, found.restarts)
    centers = rows.write(spot, task.rung, process, found.samples, found.elapsed)
    if task.noise:
        rows.noise(spot, process, found.samples)
    return {label: centers[base] / center for label, center in centers.items() if label != base}


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


# What a search measures of a workload: its sub-benchmarks' runtime workloads, and base on them.


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
