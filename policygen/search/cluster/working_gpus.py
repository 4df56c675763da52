"""What the workers of a cluster do with their GPU: they keep it for one search at a time.

A search that says nothing for some minutes has lost it: whoever asks next gets it. One that goes on
with the same database has it at once, also when it was killed before.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TypeVar

from policygen.measure.control import controlling, worker_command
from policygen.measure.device import VariantFunction
from policygen.measure.gpus import device_environment, find_gpu
from policygen.measure.locks import BusyGpuError
from policygen.measure.objects import runtime_of
from policygen.measure.outcomes import LostGpuError
from policygen.proof.toolchain import find_toolchain
from policygen.search.cluster.answers import (
    GpuAsk,
    HeldByWorker,
    SeenByWorker,
    Terms,
    WorkerAnswer,
)
from policygen.search.cluster.working import WorkerStore, answered, here, store
from policygen.search.gpu import BaseCase, LocalGpu, RungPoint

IDLE = 300.0
"""Seconds without a question, after which a GPU is given back."""
PROCESS = token_hex(8)
"""Names this process: a worker that was started anew has not what it had."""
T = TypeVar("T")


@dataclass(slots=True)
class WorkersGpu:
    """The GPU of a worker."""

    owner: str = ""
    gpu: LocalGpu | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    timer: threading.Timer | None = None
    guard: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def used(self, ask: GpuAsk) -> Iterator[LocalGpu]:
        """Lets a search have it; refused while it is another's."""
        with self.guard:
            if ask.process not in {"", PROCESS}:
                raise LostGpuError("its process was started anew")
            if self.gpu is not None and self.owner != ask.owner:
                raise BusyGpuError(
                    "another search measures on its GPU",
                    "Wait until it has ended: --wait SECONDS.",
                )
            if self.timer is not None:
                self.timer.cancel()
            try:
                yield self.gpu or self._open(ask)
            except LostGpuError:
                self.close()
                raise
            finally:
                self._watch()

    def close(self) -> None:
        """Gives it back."""
        with self.guard:
            self.gpu, self.owner = None, ""
            self.stack.close()

    def _open(self, ask: GpuAsk) -> LocalGpu:
        runner, runtime = store().path(ask.runner), runtime_of(find_toolchain())
        # A batch system says which GPU is meant; it is the first one that CUDA shows.
        command = worker_command(find_gpu().number, runner, runtime)
        controller = self.stack.enter_context(controlling(command, more=device_environment()))
        self.gpu, self.owner = LocalGpu(controller), ask.owner
        return self.gpu

    def _watch(self) -> None:
        if self.gpu is None:
            return
        self.timer = threading.Timer(IDLE, self._close_idle)
        self.timer.daemon = True
        self.timer.start()

    def _close_idle(self) -> None:
        with self.guard:
            if threading.current_thread() is self.timer:  # nobody has asked since
                self.close()


_gpus: dict[str, WorkersGpu] = {}
"""By the worker's address."""
_guard = threading.Lock()


def _own() -> WorkersGpu:
    with _guard:
        return _gpus.setdefault(here(), WorkersGpu())


def see_gpu(terms: Terms) -> WorkerAnswer:
    """Says which GPU this worker has."""
    return answered(terms, lambda: SeenByWorker(find_gpu(), PROCESS))


def hold_gpu(terms: Terms, ask: GpuAsk) -> WorkerAnswer:
    """Keeps the GPU for a search."""
    return _using(terms, ask, (), lambda gpu, _: HeldByWorker(gpu.controller.facts, PROCESS))


def look_at_base(terms: Terms, ask: GpuAsk, cases: Sequence[BaseCase], seed: int) -> WorkerAnswer:
    """Runs base alone on runtime workloads, in a fresh process."""
    needed = [name for case, base in cases for name in (case.inputs, base.library)]

    def work(gpu: LocalGpu, kept: WorkerStore) -> object:
        lying = [
            (replace(case, inputs=str(kept.path(case.inputs))), _lying(kept, base))
            for case, base in cases
        ]
        return gpu.look(lying, seed)

    return _using(terms, ask, needed, work)


def measure_point(
    terms: Terms,
    ask: GpuAsk,
    point: RungPoint,
    seed: int,
    fresh: bool,  # noqa: FBT001  it travels
) -> WorkerAnswer:
    """Checks and measures variants on one runtime workload; in a fresh process, or not."""
    functions = point.functions.values()
    needed = [point.case.inputs, point.base.library, *(one.library for one in functions)]

    def work(gpu: LocalGpu, kept: WorkerStore) -> object:
        lying = RungPoint(
            replace(point.case, inputs=str(kept.path(point.case.inputs))),
            _lying(kept, point.base),
            {label: _lying(kept, one) for label, one in point.functions.items()},
            point.rounds,
        )
        return gpu.point(lying, seed, fresh=fresh)

    return _using(terms, ask, needed, work)


def give_back(terms: Terms, owner: str) -> WorkerAnswer:
    """Keeps the GPU no more, where it is this search's."""

    def work() -> None:
        own = _own()
        if own.owner == owner:
            own.close()

    return answered(terms, work)


def _using(
    terms: Terms,
    ask: GpuAsk,
    needed: Sequence[str],
    work: Callable[[LocalGpu, WorkerStore], object],
) -> WorkerAnswer:
    def whole() -> object:
        kept = store()
        kept.need([ask.runner, *needed])
        with _own().used(ask) as gpu:
            return work(gpu, kept)

    return answered(terms, whole)


def _lying(kept: WorkerStore, one: VariantFunction) -> VariantFunction:
    """With the place where its object lies here."""
    return replace(one, library=str(kept.path(one.library)))
