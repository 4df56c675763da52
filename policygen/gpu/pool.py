"""A pool of GPUs of one model that share the variants of a rung and replace each other.

If a GPU is lost, another one continues its share at the current runtime workload; results reported
before are kept.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

from policygen.gpu.device import LostGpuError
from policygen.gpu.rungs import (
    Asked,
    BaseCase,
    BaselineSamples,
    MeasuresRungs,
    PointResult,
    RungPoint,
    StopAskedError,
)
from policygen.process import threads

ATTEMPTS = 3
"""Number of GPUs that the same work may lose in a row before the work itself is blamed."""
_Answer = tuple["RungShare", PointResult | BaseException | None]
"""Result of a GPU, or the end of its share with the error, if any."""


class GpuSource:
    """Source of additional GPUs during a search; a single machine has none."""

    def more(self, stop_requested: Asked, *, waiting: bool) -> list[MeasuresRungs]:  # noqa: ARG002
        """Return new GPUs; `waiting` means that none is left and the call may wait for one."""
        return []

    def lost(self, gpu: MeasuresRungs) -> None:
        """Handle a GPU that is no longer used."""


def _ignore_note(_: str) -> None:
    """Ignore a note."""


@dataclass(slots=True)
class GpuPool:
    """GPUs that measure in parallel."""

    gpus: list[MeasuresRungs]
    source: GpuSource = field(default_factory=GpuSource)
    note: Callable[[str], None] = _ignore_note
    """Callback for notes about lost GPUs."""
    _restarts: dict[MeasuresRungs, int] = field(default_factory=dict)
    """Number of processes of each GPU so far, including lost GPUs."""

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads; skip what any GPU cannot open."""
        attempts = 0
        while True:
            self._join()
            answers, error = self._look_on_all(cases, seed)
            if error is None or answers:
                return [_first_skip(looked) for looked in zip(*answers, strict=True)]
            attempts += 1
            if attempts == ATTEMPTS:
                raise error
            self.replace(error, _never_stop)

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        stop_requested: Asked,
        *,
        together: bool = False,
    ) -> Iterator[PointResult]:
        """Check and measure variants, divided among the GPUs unless `together` is set."""
        self._join()
        shares = divided(points, 1 if together else len(self.gpus))
        run = _PoolRun(self, seed, stop_requested, together, deque(shares))
        with threads(len(shares)) as executor:
            yield from run.all(executor)
        if run.problem is not None:
            raise run.problem

    def lose(self, gpu: MeasuresRungs, error: LostGpuError) -> None:
        """Continue without a GPU."""
        self.gpus.remove(gpu)
        self.source.lost(gpu)
        if self.gpus:
            self.note(f"{error.message}; {len(self.gpus)} measure on")

    def replace(self, error: LostGpuError, stop_requested: Asked) -> None:
        """Get other GPUs when none is left, or raise the error."""
        self.gpus.extend(self.source.more(stop_requested, waiting=True))
        if not self.gpus:
            raise error
        self.note(f"{error.message}; another one measures on")

    def counted(self, gpu: MeasuresRungs, result: PointResult) -> PointResult:
        """Return the result with the process count of all GPUs."""
        self._restarts[gpu] = result.restarts
        return replace(result, restarts=sum(self._restarts.values()))

    def _join(self) -> None:
        self.gpus.extend(self.source.more(_never_stop, waiting=False))

    def _look_on_all(
        self, cases: Sequence[BaseCase], seed: int
    ) -> tuple[list[list[BaselineSamples]], LostGpuError | None]:
        """Return the answers of all remaining GPUs and the error of the last lost one."""
        gpus, answers, last_error = list(self.gpus), [], None
        with threads(len(gpus)) as executor:
            futures = [executor.submit(gpu.look, cases, seed) for gpu in gpus]
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
        RungShare(
            index,
            [
                replace(
                    point,
                    functions={label: point.functions[label] for label in labels[index::count]},
                )
                for point in points
            ],
        )
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
    lost: int = 0
    """Number of GPUs lost in a row at the same runtime workload."""

    def left(self) -> list[RungPoint]:
        """Return the remaining work without failed variants."""
        return [
            replace(
                point,
                functions={
                    label: function
                    for label, function in point.functions.items()
                    if label not in self.failed
                },
            )
            for point in self.points[self.done :]
        ]

    def take(self, result: PointResult) -> PointResult:
        """Advance, and return the result as part of the whole rung."""
        result = replace(result, point=self.done, part=self.number)
        self.done += 1
        self.failed |= result.failed.keys()
        self.lost = 0
        return result


@dataclass(slots=True)
class _PoolRun:
    """A rung while it is measured."""

    pool: GpuPool
    seed: int
    stop_requested: Asked
    together: bool
    waiting: deque[RungShare]
    running: dict[int, MeasuresRungs] = field(default_factory=dict)
    """By share number."""
    answers: SimpleQueue[_Answer] = field(default_factory=SimpleQueue)
    problem: Exception | None = None
    """Reason for stopping early, raised after the running shares have ended."""

    def all(self, executor: Executor) -> Iterator[PointResult]:
        """Yield results as they arrive."""
        while True:
            self._start(executor)
            if not self.running:
                return
            share, answer = self.answers.get()
            if isinstance(answer, PointResult):
                gpu = self.running[share.number]
                yield self.pool.counted(gpu, share.take(answer))
            else:
                self._finish_share(share, answer)

    def _start(self, executor: Executor) -> None:
        busy = self.running.values()
        for gpu in [gpu for gpu in self.pool.gpus if gpu not in busy]:
            if not self.waiting or self.problem:
                return
            share = self.waiting.popleft()
            self.running[share.number] = gpu
            executor.submit(self._measure, gpu, share)

    def _measure(self, gpu: MeasuresRungs, share: RungShare) -> None:
        """Measure a share; runs in its own thread."""
        ended: BaseException | None = None
        try:
            points = share.left()
            for result in gpu.rung(points, self.seed, self._is_over, together=self.together):
                self.answers.put((share, result))
        except BaseException as error:  # noqa: BLE001  raised where the answers are read
            ended = error
        self.answers.put((share, ended))

    def _is_over(self) -> bool:
        return self.problem is not None or self.stop_requested()

    def _finish_share(self, share: RungShare, error: BaseException | None) -> None:
        gpu = self.running.pop(share.number)
        if error is None:
            return
        if isinstance(error, StopAskedError):
            self.problem = self.problem or error
            return
        if not isinstance(error, LostGpuError):
            raise error
        self.pool.lose(gpu, error)
        share.lost += 1
        self.waiting.append(share)
        try:
            self._reassign(share, error)
        except (LostGpuError, StopAskedError) as problem:
            self.problem = problem

    def _reassign(self, share: RungShare, error: LostGpuError) -> None:
        if share.lost >= ATTEMPTS:
            raise LostGpuError(
                f"{share.lost} GPUs in a row were lost at the same work: {error.message}",
                error.remedy,
            )
        if not self.pool.gpus:
            self.pool.replace(error, self.stop_requested)


def _first_skip(answers: Sequence[BaselineSamples]) -> BaselineSamples:
    """Return the first answer that was skipped on any GPU, else the first answer."""
    return next((looked_at for looked_at in answers if looked_at.skipped is not None), answers[0])


def _never_stop() -> bool:
    return False
