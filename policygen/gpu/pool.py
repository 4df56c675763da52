"""Several GPUs of one model as one: they divide a rung's variants, and stand in for each other.

A share that was begun by a GPU that is lost goes on elsewhere with the runtime workload that it was
at; what was told of the others before stays.
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
    LookedAt,
    MeasuresRungs,
    PointFound,
    RungPoint,
    StopAskedError,
)
from policygen.process import threads

ATTEMPTS = 3
"""GPUs that may be lost in a row by the same work; then it is thought to be the work's fault."""
_Answer = tuple["RungShare", PointFound | BaseException | None]
"""What a GPU found; or the end of its share, and why it ended."""


class GpuSource:
    """Where GPUs come from while a search runs: of one machine there are no more."""

    def more(self, asked: Asked, *, waiting: bool) -> list[MeasuresRungs]:  # noqa: ARG002
        """GPUs that are new; `waiting`: none is left, and it may wait for one."""
        return []

    def lost(self, gpu: MeasuresRungs) -> None:
        """Is told of a GPU that is asked no more."""


def _silent(_: str) -> None:
    """Says nothing."""


@dataclass(slots=True)
class GpuPool:
    """GPUs that measure side by side."""

    gpus: list[MeasuresRungs]
    source: GpuSource = field(default_factory=GpuSource)
    note: Callable[[str], None] = _silent
    """Is told of a GPU that is lost."""
    _restarts: dict[MeasuresRungs, int] = field(default_factory=dict)
    """Processes of each GPU so far, of lost ones, too."""

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads; what any GPU cannot open is skipped."""
        attempts = 0
        while True:
            self._join()
            found, lost = self._looked(cases, seed)
            if lost is None or found:
                return [_of_all(lot) for lot in zip(*found, strict=True)]
            attempts += 1
            if attempts == ATTEMPTS:
                raise lost
            self.replace(lost, _never)

    def rung(
        self, points: Sequence[RungPoint], seed: int, asked: Asked, *, together: bool = False
    ) -> Iterator[PointFound]:
        """Checks and measures variants, each GPU its share; or one GPU all of them."""
        self._join()
        shares = divided(points, 1 if together else len(self.gpus))
        run = _PoolRun(self, seed, asked, together, deque(shares))
        with threads(len(shares)) as executor:
            yield from run.all(executor)
        if run.problem is not None:
            raise run.problem

    def lose(self, gpu: MeasuresRungs, error: LostGpuError) -> None:
        """Goes on without a GPU."""
        self.gpus.remove(gpu)
        self.source.lost(gpu)
        if self.gpus:
            self.note(f"{error.message}; {len(self.gpus)} measure on")

    def replace(self, error: LostGpuError, asked: Asked) -> None:
        """Finds others where none is left, or ends."""
        self.gpus.extend(self.source.more(asked, waiting=True))
        if not self.gpus:
            raise error
        self.note(f"{error.message}; another one measures on")

    def counted(self, gpu: MeasuresRungs, found: PointFound) -> PointFound:
        """With the processes of all GPUs."""
        self._restarts[gpu] = found.restarts
        return replace(found, restarts=sum(self._restarts.values()))

    def _join(self) -> None:
        self.gpus.extend(self.source.more(_never, waiting=False))

    def _looked(
        self, cases: Sequence[BaseCase], seed: int
    ) -> tuple[list[list[LookedAt]], LostGpuError | None]:
        """What each GPU says that is not lost, and why the last one that is lost is."""
        gpus, found, lost = list(self.gpus), [], None
        with threads(len(gpus)) as executor:
            futures = [executor.submit(gpu.look, cases, seed) for gpu in gpus]
            for gpu, future in zip(gpus, futures, strict=True):
                try:
                    found.append(future.result())
                except LostGpuError as error:
                    lost = error
                    self.lose(gpu, error)
        return found, lost


def divided(points: Sequence[RungPoint], count: int) -> list["RungShare"]:
    """As many shares of the variants, each on all runtime workloads; fewer where they are few."""
    labels = list(points[0].functions) if points else []
    count = max(1, min(count, len(labels)))
    return [
        RungShare(
            number,
            [
                replace(
                    point, functions={one: point.functions[one] for one in labels[number::count]}
                )
                for point in points
            ],
        )
        for number in range(count)
    ]


@dataclass(slots=True)
class RungShare:
    """Some variants of a rung, and how far they are."""

    number: int
    points: Sequence[RungPoint]
    done: int = 0
    """Runtime workloads."""
    failed: set[str] = field(default_factory=set)
    lost: int = 0
    """GPUs that were lost in a row at the same runtime workload."""

    def left(self) -> list[RungPoint]:
        """What is to be measured still; nobody who has failed."""
        return [
            replace(
                point,
                functions={
                    label: one for label, one in point.functions.items() if label not in self.failed
                },
            )
            for point in self.points[self.done :]
        ]

    def take(self, found: PointFound) -> PointFound:
        """Goes on; what was found, as one of the whole rung."""
        found = replace(found, point=self.done, part=self.number)
        self.done += 1
        self.failed |= found.failed.keys()
        self.lost = 0
        return found


@dataclass(slots=True)
class _PoolRun:
    """A rung while it is measured."""

    pool: GpuPool
    seed: int
    asked: Asked
    together: bool
    waiting: deque[RungShare]
    running: dict[int, MeasuresRungs] = field(default_factory=dict)
    """By the share's number."""
    answers: SimpleQueue[_Answer] = field(default_factory=SimpleQueue)
    problem: Exception | None = None
    """Why it ends before its end; what runs still is told before."""

    def all(self, executor: Executor) -> Iterator[PointFound]:
        """What the GPUs find, as it comes."""
        while True:
            self._start(executor)
            if not self.running:
                return
            share, found = self.answers.get()
            if isinstance(found, PointFound):
                gpu = self.running[share.number]
                yield self.pool.counted(gpu, share.take(found))
            else:
                self._ended(share, found)

    def _start(self, executor: Executor) -> None:
        busy = self.running.values()
        for gpu in [one for one in self.pool.gpus if one not in busy]:
            if not self.waiting or self.problem:
                return
            share = self.waiting.popleft()
            self.running[share.number] = gpu
            executor.submit(self._measure, gpu, share)

    def _measure(self, gpu: MeasuresRungs, share: RungShare) -> None:
        """Runs in a thread of its own, which waits for the GPU."""
        ended: BaseException | None = None
        try:
            points = share.left()
            for found in gpu.rung(points, self.seed, self._is_over, together=self.together):
                self.answers.put((share, found))
        except BaseException as error:  # noqa: BLE001  it is raised where the answers are read
            ended = error
        self.answers.put((share, ended))

    def _is_over(self) -> bool:
        return self.problem is not None or self.asked()

    def _ended(self, share: RungShare, error: BaseException | None) -> None:
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
            self._go_on(share, error)
        except (LostGpuError, StopAskedError) as problem:
            self.problem = problem

    def _go_on(self, share: RungShare, error: LostGpuError) -> None:
        if share.lost >= ATTEMPTS:
            raise LostGpuError(
                f"{share.lost} GPUs in a row were lost at the same work: {error.message}",
                error.remedy,
            )
        if not self.pool.gpus:
            self.pool.replace(error, self.asked)


def _of_all(lot: Sequence[LookedAt]) -> LookedAt:
    """What all GPUs can open, as the first one has it."""
    return next((one for one in lot if one.skipped is not None), lot[0])


def _never() -> bool:
    return False
