"""GPUs of one model that share the variants of a rung and replace each other.

If a GPU is lost, another one continues its share at the current runtime workload; results reported
before are kept. Requests and results are plain data, so that a GPU may be in another machine.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import Protocol

from policygen.errors import plural
from policygen.gpu.control import Controller, PointResult
from policygen.gpu.device import LONG, Failure, LostGpuError, RuntimeCase, VariantFunction
from policygen.process import threads

LOOK = 12
"""Samples of the baseline alone that determine its noise; half as many if a call is long."""
ATTEMPTS = 3
"""Number of GPUs that the same work may lose in a row before the work itself is blamed."""
Asked = Callable[[], bool]
"""Returns whether a stop was requested."""


class StopAskedError(Exception):
    """A stop was requested; everything measured so far is written."""


@dataclass(frozen=True, slots=True)
class BaselineSamples:
    """Samples of the baseline on a runtime workload, or the reason why there are none."""

    samples: Sequence[float] = ()
    skipped: str | None = None
    opening: float = 0.0
    """Seconds to create the inputs and the baseline results."""
    cost: float = 0.0
    """Seconds that one sample takes with everything around it."""


@dataclass(frozen=True, slots=True)
class RungPoint:
    """A runtime workload of a rung."""

    case: RuntimeCase
    base: VariantFunction
    functions: Mapping[str, VariantFunction] = field(default_factory=dict)
    """All variants of the rung, by label."""
    rounds: int = 0
    least: float = 0.0
    """Ratio to the baseline under which a variant is left out of the next runtime workloads."""
    checks: bool = True
    """Whether results are compared with the baseline's before anything is timed."""

    def without(self, labels: set[str]) -> "RungPoint":
        """Leave variants out."""
        return replace(self, functions={k: v for k, v in self.functions.items() if k not in labels})

    def relocated(self, place: Callable[[str], str]) -> "RungPoint":
        """Return the same point with other paths of its objects."""

        def move(function: VariantFunction) -> VariantFunction:
            return replace(function, library=place(function.library))

        functions = {label: move(function) for label, function in self.functions.items()}
        case = replace(self.case, inputs=place(self.case.inputs))
        return replace(self, case=case, base=move(self.base), functions=functions)


class RungGpu(Protocol):
    """A GPU of this machine or of another one."""

    def look(self, points: Sequence[RungPoint], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointResult:
        """Check and measure all variants on one runtime workload, optionally in a fresh process."""


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """A GPU of this machine."""

    controller: Controller

    def look(self, points: Sequence[RungPoint], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""
        self.controller.restart()
        self.controller.open(points[0].case, points[0].base)  # opens the GPU, which takes longer
        return [self._look(point, seed) for point in points]

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointResult:
        """Check and measure all variants on one runtime workload, optionally in a fresh process."""
        controller = self.controller
        if fresh:
            controller.restart()
        problem = controller.open(point.case, point.base)
        if problem is not None:  # it could be opened before: the GPU has less memory now
            return PointResult({}, dict.fromkeys(point.functions, Failure("error", problem)), {})
        functions = [*point.functions.values()]
        return controller.rounds(functions, point.rounds, seed, checks=point.checks)

    def _look(self, point: RungPoint, seed: int) -> BaselineSamples:
        begun = time.monotonic()
        problem = self.controller.open_checked(point.case, point.base)
        if problem is not None:
            return BaselineSamples(skipped=problem)
        opening = time.monotonic() - begun
        first = self.controller.rounds([], 1, seed).samples[point.base.variant]
        count = LOOK if max(first) < LONG else LOOK // 2
        begun = time.monotonic()
        samples = self.controller.rounds([], math.ceil(count / 2), seed).samples[point.base.variant]
        cost = (time.monotonic() - begun) / len(samples)
        return BaselineSamples(samples, opening=opening, cost=cost)


class GpuSource:
    """Source of additional GPUs during a search; a single machine has none."""

    def more(self, stop_requested: Asked, *, waiting: bool) -> list[RungGpu]:  # noqa: ARG002
        """Return new GPUs; `waiting` means that none is left and the call may wait for one."""
        return []

    def lost(self, gpu: RungGpu) -> None:
        """Handle a GPU that is no longer used."""


@dataclass(slots=True)
class GpuPool:
    """GPUs that measure in parallel."""

    gpus: list[RungGpu]
    source: GpuSource = field(default_factory=GpuSource)
    note: Callable[[str], None] = lambda _: None
    """Callback for notes about lost GPUs."""
    _restarts: dict[RungGpu, int] = field(default_factory=dict)
    """Number of processes of each GPU so far, including lost GPUs."""

    def look(self, points: Sequence[RungPoint], seed: int) -> list[BaselineSamples]:
        """Run only the baseline, in fresh processes; skip what any GPU cannot open."""
        attempts = 0
        while True:
            self._join()
            answers, error = self._look_on_all(points, seed)
            if error is None or answers:
                return [
                    next((answer for answer in looked if answer.skipped is not None), looked[0])
                    for looked in zip(*answers, strict=True)
                ]
            attempts += 1
            if attempts == ATTEMPTS:
                raise error
            self.replace(error, lambda: False)

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        stop_requested: Asked,
        *,
        together: bool = False,
        fresh: bool = True,
    ) -> Generator[PointResult]:
        """Check and measure variants, one runtime workload after another.

        A variant that fails, or is too slow, on one workload is left out of the next. The GPUs
        divide the variants, each with the baseline, unless they must be measured `together`. They
        begin in `fresh` processes, or go on in those that they have.
        """
        self._join()
        shares = divided(points, 1 if together else len(self.gpus))
        run = _PoolRun(self, seed, stop_requested, deque(shares))
        with threads(len(shares)) as executor:
            yield from run.all(executor, fresh=fresh)
        if run.problem is not None:
            raise run.problem

    def lose(self, gpu: RungGpu, error: LostGpuError) -> None:
        """Continue without a GPU."""
        self.gpus.remove(gpu)
        self.source.lost(gpu)
        if self.gpus:
            self.note(f"{error.message}; {plural(len(self.gpus), 'GPU')} left")

    def replace(self, error: LostGpuError, stop_requested: Asked) -> None:
        """Get other GPUs when none is left, or raise the error."""
        self.gpus.extend(self.source.more(stop_requested, waiting=True))
        if not self.gpus:
            raise error
        self.note(f"{error.message}; another GPU continues")

    def counted(self, gpu: RungGpu, result: PointResult) -> PointResult:
        """Return the result with the process count of all GPUs."""
        self._restarts[gpu] = result.restarts
        return replace(result, restarts=sum(self._restarts.values()))

    def _join(self) -> None:
        self.gpus.extend(self.source.more(lambda: False, waiting=False))

    def _look_on_all(
        self, points: Sequence[RungPoint], seed: int
    ) -> tuple[list[list[BaselineSamples]], LostGpuError | None]:
        """Return the answers of all remaining GPUs and the error of the last lost one."""
        gpus, answers, last_error = list(self.gpus), [], None
        with threads(len(gpus)) as executor:
            futures = [executor.submit(gpu.look, points, seed) for gpu in gpus]
            for gpu, future in zip(gpus, futures, strict=True):
                try:
                    answers.append(future.result())
                except LostGpuError as error:
                    last_error = error
                    self.lose(gpu, error)
        return answers, last_error


def divided(points: Sequence[RungPoint], count: int) -> list["RungShare"]:
    """Divide the variants into `count` shares, each with all runtime workloads."""
    labels = list(points[0].functions) if points else []
    count = max(1, min(count, len(labels)))
    return [
        RungShare(index, [point.without({*labels} - {*labels[index::count]}) for point in points])
        for index in range(count)
    ]


@dataclass(slots=True)
class RungShare:
    """A share of a rung's variants and its progress."""

    number: int
    points: Sequence[RungPoint]
    done: int = 0
    """Number of finished runtime workloads."""
    failed: set[str] = field(default_factory=set)
    """Variants that are left out: they failed, or are too slow."""
    lost: int = 0
    """Number of GPUs lost in a row at the same runtime workload."""

    @property
    def point(self) -> RungPoint:
        """The next runtime workload, without the variants that are left out."""
        return self.points[self.done].without(self.failed)

    def take(self, result: PointResult) -> PointResult:
        """Go on to the next runtime workload; return the result with its place in the rung."""
        self.failed |= result.failed.keys() | result.below(self.points[self.done].least)
        result = replace(result, point=self.done, part=self.number)
        self.done, self.lost = self.done + 1, 0
        return result


@dataclass(slots=True)
class _PoolRun:
    """A rung while it is measured."""

    pool: GpuPool
    seed: int
    stop_requested: Asked
    waiting: deque[RungShare]
    running: dict[Future[PointResult], tuple[RungGpu, RungShare]] = field(default_factory=dict)
    """What each GPU measures: the next runtime workload of a share."""
    problem: Exception | None = None
    """Reason for stopping early, raised after what runs has ended."""

    def all(self, executor: Executor, *, fresh: bool) -> Iterator[PointResult]:
        """Yield results as they arrive."""
        while True:
            busy = [gpu for gpu, _ in self.running.values()]
            for gpu in [gpu for gpu in self.pool.gpus if gpu not in busy]:
                if self.waiting and self.problem is None:
                    self._measure(executor, gpu, self.waiting.popleft(), fresh=fresh)
            if not self.running:
                return
            ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
            for future in ended:
                gpu, share = self.running.pop(future)
                try:
                    result = share.take(future.result())
                except LostGpuError as error:
                    self._lose(gpu, share, error)
                else:
                    # The GPU goes on while the result is written.
                    self._measure(executor, gpu, share, fresh=False)
                    yield self.pool.counted(gpu, result)

    def _measure(self, executor: Executor, gpu: RungGpu, share: RungShare, *, fresh: bool) -> None:
        """Begin the next runtime workload of a share; it can be stopped between two."""
        if self.problem is not None or share.done == len(share.points):
            return
        if self.stop_requested():
            self.problem = StopAskedError()
        elif (point := share.point).functions:
            future = executor.submit(gpu.point, point, self.seed, fresh=fresh)
            self.running[future] = gpu, share

    def _lose(self, gpu: RungGpu, share: RungShare, error: LostGpuError) -> None:
        """Let another GPU continue a share."""
        self.pool.lose(gpu, error)
        share.lost += 1
        self.waiting.append(share)
        if share.lost >= ATTEMPTS:
            message = f"{share.lost} GPUs in a row failed on the same work: {error.message}"
            self.problem = LostGpuError(message, error.remedy)
        elif not self.pool.gpus:
            try:
                self.pool.replace(error, self.stop_requested)
            except (LostGpuError, StopAskedError) as problem:
                self.problem = problem
