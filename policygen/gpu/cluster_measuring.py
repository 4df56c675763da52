"""GPUs of a cluster's workers; each measures one runtime workload at a time."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from policygen.cache import digest, keep, kept
from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.gpu.cluster import RESTART, ClusterClient, EndedWorkersError, Work
from policygen.gpu.cluster_workers import (
    GpuAsk,
    HeldByWorker,
    SeenByWorker,
    UnitAsk,
    compile_unit,
    give_back,
    hold_gpu,
    look_at_base,
    measure_point,
    see_gpu,
)
from policygen.gpu.compiling import ObjectSource, as_made, as_refused, is_code_error, object_in
from policygen.gpu.device import GpuFacts, LostGpuError, RuntimeCase, VariantFunction
from policygen.gpu.machine import BusyGpuError, ListedGpu
from policygen.gpu.pool import GpuSource
from policygen.gpu.rungs import (
    Asked,
    BaseCase,
    BaselineSamples,
    MeasuresRungs,
    PointResult,
    RungPoint,
    StopAskedError,
    rung_of,
)
from policygen.process import threads
from policygen.proof.compile import MEMORY, RefusedError, attempt
from policygen.proof.toolchain import Toolchain
from policygen.untrusted import visible

PAUSE = 0.5
"""Seconds between checks for a free GPU or a new worker."""
T = TypeVar("T")
_START = (
    'Start one: dask worker ADDRESS --resources "GPU=1" --nthreads 1; or wait for one: --wait'
    " SECONDS."
)
_OTHER = (
    "{} has a GPU of another model, whose times cannot be compared: it is {}, the others are {}"
)
LEAVING = 3.0
"""Seconds that a worker may take to give its GPU back while the user waits."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterGpu:
    """The GPU of one worker, for the lifetime of the worker."""

    cluster: ClusterClient
    worker: str
    owner: GpuAsk
    facts: GpuFacts

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""
        cluster_cases = [(self._case(case), self._function(base)) for case, base in cases]
        looked: list[BaselineSamples] = self._call_gpu(look_at_base, cluster_cases, seed)
        return looked

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        stop_requested: Asked,
        *,
        together: bool = False,  # noqa: ARG002  one GPU measures all of them together
    ) -> Iterator[PointResult]:
        """Check and measure variants in a fresh process, one runtime workload after another.

        Each runtime workload is a separate task, so a worker that ends loses only one.
        """
        return rung_of(self._point, points, seed, stop_requested)

    def leave(self) -> None:
        """Give the GPU back."""
        self.cluster.tell_gpu(self.worker, give_back, self.owner.owner, patience=LEAVING)

    def _point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointResult:
        cluster_point = RungPoint(
            self._case(point.case),
            self._function(point.base),
            {label: self._function(function) for label, function in point.functions.items()},
            point.rounds,
        )
        result: PointResult = self._call_gpu(measure_point, cluster_point, seed, fresh)
        return result

    def _call_gpu(self, work: Work, *arguments: object) -> Any:
        """Call the GPU, waiting if another search took it while it was idle."""
        return patiently(
            lambda: self.cluster.ask_gpu(self.worker, work, self.owner, *arguments),
            self.cluster.patience,
        )

    def _case(self, case: RuntimeCase) -> RuntimeCase:
        return replace(case, inputs=self.cluster.contents.file(case.inputs))

    def _function(self, function: VariantFunction) -> VariantFunction:
        return replace(function, library=self.cluster.contents.file(function.library))


@dataclass(slots=True)
class ClusterGpus(GpuSource):
    """The GPUs of a cluster's workers, including workers that join during a search."""

    cluster: ClusterClient
    note: Callable[[str], None]
    owner: GpuAsk = field(default=GpuAsk("", ""))
    """The search that asks; known once there is a runner for timing calls."""
    model: str = ""
    used: dict[str, ClusterGpu] = field(default_factory=dict)
    """GPUs by worker."""
    useless: set[str] = field(default_factory=set)
    """Processes whose GPU was lost or is another model."""
    said: set[str] = field(default_factory=set)

    def seen(self, stop_requested: Asked) -> dict[str, ListedGpu]:
        """Return the GPU of each worker without holding it; wait for the first worker."""
        end = time.monotonic() + self.cluster.patience
        while not (workers := self._workers()):
            if stop_requested():
                raise StopAskedError
            if time.monotonic() >= end:
                raise InputError(f"no worker of {self.cluster.address} announces a GPU", _START)
            time.sleep(PAUSE)
        gpus = {}
        for worker, seen in _call_each(workers, self._query_gpu):
            if isinstance(seen, PolicygenError):
                raise seen
            gpus[worker] = seen.gpu
        return gpus

    def first(self, owner: GpuAsk, stop_requested: Asked) -> list[MeasuresRungs]:
        """Hold the available GPUs, leaving those that others use."""
        self.owner = owner
        end = time.monotonic() + self.cluster.patience
        while True:
            gpus, errors = self._take_all(self._workers())
            for error in errors:
                if not isinstance(error, BusyGpuError):
                    raise error
            if gpus:
                self._report(errors)
                return gpus
            if time.monotonic() >= end:
                raise errors[0] if errors else LostGpuError("all workers with GPUs have ended")
            if stop_requested():
                raise StopAskedError
            time.sleep(PAUSE)

    def more(self, stop_requested: Asked, *, waiting: bool) -> list[MeasuresRungs]:
        """Return GPUs of new workers; if none is left, wait for a worker to restart."""
        end = time.monotonic() + max(self.cluster.patience, RESTART)
        while True:
            gpus, errors = self._take_all(self._workers())
            self._report(errors)
            if gpus or not waiting or time.monotonic() >= end:
                return gpus
            if stop_requested():
                raise StopAskedError
            time.sleep(PAUSE)

    def lost(self, gpu: MeasuresRungs) -> None:
        """Stop using a GPU unless its worker restarts."""
        for worker, used in [*self.used.items()]:
            if used is gpu:
                del self.used[worker]
                self.useless.add(used.owner.process)

    def leave(self) -> None:
        """Give all GPUs back."""
        list(_call_each([*self.used], lambda worker: self.used[worker].leave()))

    def _workers(self) -> list[str]:
        """Return the workers with a GPU that is not in use here."""
        workers = self.cluster.workers().items()
        return [name for name, worker in workers if worker.has_gpu and name not in self.used]

    def _query_gpu(self, worker: str) -> SeenByWorker:
        seen: SeenByWorker = self.cluster.ask_gpu(worker, see_gpu)
        return seen

    def _take(self, worker: str) -> ClusterGpu | None:
        if self._query_gpu(worker).process in self.useless:
            return None
        held: HeldByWorker = self.cluster.ask_gpu(worker, hold_gpu, self.owner)
        owner = replace(self.owner, process=held.process)
        return ClusterGpu(self.cluster, worker, owner, held.facts)

    def _take_all(self, workers: Sequence[str]) -> tuple[list[MeasuresRungs], list[PolicygenError]]:
        """Take the GPUs that are available now; also return the errors of the others."""
        taken: list[MeasuresRungs] = []
        errors: list[PolicygenError] = []
        for worker, gpu in _call_each(workers, self._take):
            if isinstance(gpu, PolicygenError):
                errors.append(gpu)
            elif gpu is not None:
                self.model = self.model or gpu.facts.label
                if gpu.facts.label == self.model:
                    self.used[worker] = gpu
                    taken.append(gpu)
                    continue
                gpu.leave()
                self.useless.add(gpu.owner.process)
                errors.append(InputError(_OTHER.format(worker, gpu.facts.label, self.model)))
        return taken, errors

    def _report(self, errors: Sequence[PolicygenError]) -> None:
        """Report each error once."""
        for message in (error.in_line for error in errors):
            if message not in self.said:
                self.said.add(message)
                self.note(visible(message))


def patiently(ask: Callable[[], T], patience: float) -> T:
    """Retry while another search holds the GPU."""
    end = time.monotonic() + patience
    while True:
        try:
            return ask()
        except BusyGpuError:
            if time.monotonic() >= end:
                raise
        time.sleep(PAUSE)


def _call_each(
    workers: Sequence[str], ask: Callable[[str], T]
) -> Iterator[tuple[str, T | PolicygenError]]:
    """Call workers in parallel and yield their answers or errors."""
    with threads(len(workers) or 1) as executor:
        futures = [executor.submit(attempt, lambda name=worker: ask(name)) for worker in workers]
        for worker, future in zip(workers, futures, strict=True):
            yield worker, future.result()


# Compiling on workers; the objects are cached on this machine

KIND = "cluster-objects"
"""Separate from local objects, because the host compiler's headers may differ on the workers."""


@dataclass(frozen=True, slots=True)
class ClusterCompiler:
    """Compiles units on workers and stores the objects in a folder."""

    cluster: ClusterClient
    toolchain: Toolchain
    folder: Path

    def make(self, source: ObjectSource) -> Path:
        """Compile an object or take it from the cache; raise RefusedError if the compiler does."""
        trees = tuple(map(self.cluster.contents.folder, source.includes))
        key = digest(self.toolchain.version, *source.flags, source.text, "trees", *trees)
        data = kept(KIND, key)
        if data is None:
            data = self._compile(UnitAsk(source.text, trees, source.arch))
            keep(KIND, key, data)
        return object_in(self.folder, key, data)

    def _compile(self, unit: UnitAsk) -> bytes:
        try:
            return as_made(self.cluster.ask(compile_unit, unit, near=self._free_workers()))
        except RefusedError as error:
            if not is_code_error(error):
                raise
            return as_refused(error)
        except EndedWorkersError as error:
            message = "the workers that compiled it have ended, one after the other"
            raise ProcessError(["nvcc"], -signal.SIGKILL, message, MEMORY) from error

    def _free_workers(self) -> list[str]:
        """Return the workers on which no GPU call would wait; all if there are none."""
        workers = self.cluster.workers()
        return [
            name for name, worker in workers.items() if not worker.has_gpu or worker.threads > 1
        ]
