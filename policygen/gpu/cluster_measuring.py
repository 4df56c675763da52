"""GPUs of a cluster's workers: each is asked for one runtime workload at a time."""

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
from policygen.gpu.compiling import ObjectSource, as_made, as_refused, is_said_of_code, object_in
from policygen.gpu.device import GpuFacts, LostGpuError, RuntimeCase, VariantFunction
from policygen.gpu.machine import BusyGpuError, ListedGpu
from policygen.gpu.pool import GpuSource
from policygen.gpu.rungs import (
    Asked,
    BaseCase,
    LookedAt,
    MeasuresRungs,
    PointFound,
    RungPoint,
    StopAskedError,
    rung_of,
)
from policygen.process import threads
from policygen.proof.compile import MEMORY, RefusedError, attempt
from policygen.proof.toolchain import Toolchain
from policygen.untrusted import visible

PAUSE = 0.5
"""Seconds between two questions whether a GPU is free, or a worker there."""
T = TypeVar("T")
_START = (
    'Start one: dask worker ADDRESS --resources "GPU=1" --nthreads 1; or wait for one: --wait'
    " SECONDS."
)
_OTHER = (
    "{} has a GPU of another model, whose times cannot be compared: it is {}, the others are {}"
)
LEAVING = 3.0
"""Seconds that a worker may take to give its GPU back, while somebody waits for it."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterGpu:
    """The GPU of one worker, as long as that lives."""

    cluster: ClusterClient
    worker: str
    owner: GpuAsk
    facts: GpuFacts

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads, in a fresh process."""
        named = [(self._case(case), self._function(base)) for case, base in cases]
        found: list[LookedAt] = self._asked(look_at_base, named, seed)
        return found

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        asked: Asked,
        *,
        together: bool = False,  # noqa: ARG002  one GPU measures all of them together
    ) -> Iterator[PointFound]:
        """Checks and measures variants in a fresh process, one runtime workload after the other.

        Each is a task of its own: of a worker that ends, one is lost.
        """
        return rung_of(self._point, points, seed, asked)

    def leave(self) -> None:
        """Gives the GPU back."""
        self.cluster.tell_gpu(self.worker, give_back, self.owner.owner, patience=LEAVING)

    def _point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointFound:
        named = RungPoint(
            self._case(point.case),
            self._function(point.base),
            {label: self._function(one) for label, one in point.functions.items()},
            point.rounds,
        )
        found: PointFound = self._asked(measure_point, named, seed, fresh)
        return found

    def _asked(self, work: Work, *arguments: object) -> Any:
        """Somebody else may have the GPU where this search left it alone for long."""
        return patiently(
            lambda: self.cluster.ask_gpu(self.worker, work, self.owner, *arguments),
            self.cluster.patience,
        )

    def _case(self, case: RuntimeCase) -> RuntimeCase:
        return replace(case, inputs=self.cluster.contents.file(case.inputs))

    def _function(self, one: VariantFunction) -> VariantFunction:
        return replace(one, library=self.cluster.contents.file(one.library))


@dataclass(slots=True)
class ClusterGpus(GpuSource):
    """The GPUs of a cluster's workers, also of those that come while a search runs."""

    cluster: ClusterClient
    note: Callable[[str], None]
    owner: GpuAsk = field(default=GpuAsk("", ""))
    """Who asks: known when there is something to time calls with."""
    model: str = ""
    used: dict[str, ClusterGpu] = field(default_factory=dict)
    """By worker."""
    useless: set[str] = field(default_factory=set)
    """Processes whose GPU was lost, or is another model."""
    said: set[str] = field(default_factory=set)

    def seen(self, asked: Asked) -> dict[str, ListedGpu]:
        """The GPU of each worker, which nobody keeps yet; waits for the first one."""
        end = time.monotonic() + self.cluster.patience
        while not (workers := self._workers()):
            if asked():
                raise StopAskedError
            if time.monotonic() >= end:
                raise InputError(f"no worker of {self.cluster.address} announces a GPU", _START)
            time.sleep(PAUSE)
        found = {}
        for worker, one in _each(workers, self._see):
            if isinstance(one, PolicygenError):
                raise one
            found[worker] = one.gpu
        return found

    def first(self, owner: GpuAsk, asked: Asked) -> list[MeasuresRungs]:
        """Keeps those that are there; what others measure on is left to them."""
        self.owner = owner
        end = time.monotonic() + self.cluster.patience
        while True:
            found, errors = self._taken(self._workers())
            for error in errors:
                if not isinstance(error, BusyGpuError):
                    raise error
            if found:
                self._say(errors)
                return found
            if time.monotonic() >= end:
                raise errors[0] if errors else LostGpuError("all workers with GPUs have ended")
            if asked():
                raise StopAskedError
            time.sleep(PAUSE)

    def more(self, asked: Asked, *, waiting: bool) -> list[MeasuresRungs]:
        """GPUs of new workers; where none is left a worker may be started anew."""
        end = time.monotonic() + max(self.cluster.patience, RESTART)
        while True:
            found, errors = self._taken(self._workers())
            self._say(errors)
            if found or not waiting or time.monotonic() >= end:
                return found
            if asked():
                raise StopAskedError
            time.sleep(PAUSE)

    def lost(self, gpu: MeasuresRungs) -> None:
        """Takes it no more, unless its worker is started anew."""
        for worker, one in [*self.used.items()]:
            if one is gpu:
                del self.used[worker]
                self.useless.add(one.owner.process)

    def leave(self) -> None:
        """Gives all back."""
        list(_each([*self.used], lambda worker: self.used[worker].leave()))

    def _workers(self) -> list[str]:
        """Those that have a GPU, and are not asked already."""
        workers = self.cluster.workers().items()
        return [name for name, one in workers if one.has_gpu and name not in self.used]

    def _see(self, worker: str) -> SeenByWorker:
        found: SeenByWorker = self.cluster.ask_gpu(worker, see_gpu)
        return found

    def _take(self, worker: str) -> ClusterGpu | None:
        if self._see(worker).process in self.useless:
            return None
        held: HeldByWorker = self.cluster.ask_gpu(worker, hold_gpu, self.owner)
        owner = replace(self.owner, process=held.process)
        return ClusterGpu(self.cluster, worker, owner, held.facts)

    def _taken(self, workers: Sequence[str]) -> tuple[list[MeasuresRungs], list[PolicygenError]]:
        """The GPUs that this search may have now; and why not the others."""
        found: list[MeasuresRungs] = []
        errors: list[PolicygenError] = []
        for worker, gpu in _each(workers, self._take):
            if isinstance(gpu, PolicygenError):
                errors.append(gpu)
            elif gpu is not None:
                self.model = self.model or gpu.facts.label
                if gpu.facts.label == self.model:
                    self.used[worker] = gpu
                    found.append(gpu)
                    continue
                gpu.leave()
                self.useless.add(gpu.owner.process)
                errors.append(InputError(_OTHER.format(worker, gpu.facts.label, self.model)))
        return found, errors

    def _say(self, errors: Sequence[PolicygenError]) -> None:
        """Notes each once."""
        for words in (one.in_line for one in errors):
            if words not in self.said:
                self.said.add(words)
                self.note(visible(words))


def patiently(ask: Callable[[], T], patience: float) -> T:
    """Asks again, as long as somebody else has the GPU."""
    end = time.monotonic() + patience
    while True:
        try:
            return ask()
        except BusyGpuError:
            if time.monotonic() >= end:
                raise
        time.sleep(PAUSE)


def _each(
    workers: Sequence[str], ask: Callable[[str], T]
) -> Iterator[tuple[str, T | PolicygenError]]:
    """What comes of asking workers side by side."""
    with threads(len(workers) or 1) as executor:
        futures = [executor.submit(attempt, lambda one=worker: ask(one)) for worker in workers]
        for worker, future in zip(workers, futures, strict=True):
            yield worker, future.result()


# Compiles units on the workers of a cluster; what comes back is kept on this machine.

KIND = "cluster-objects"
"""Apart from objects of this machine: headers of the host's compiler may be others there."""


@dataclass(frozen=True, slots=True)
class ClusterCompiler:
    """What compiles, and where the objects lie."""

    cluster: ClusterClient
    toolchain: Toolchain
    folder: Path

    def make(self, source: ObjectSource) -> Path:
        """Has an object made, or takes the one that is kept; refused with the compiler's words."""
        trees = tuple(map(self.cluster.contents.folder, source.includes))
        key = digest(self.toolchain.version, *source.flags, source.text, "trees", *trees)
        known = kept(KIND, key)
        if known is None:
            known = self._made(UnitAsk(source.text, trees, source.arch))
            keep(KIND, key, known)
        return object_in(self.folder, key, known)

    def _made(self, unit: UnitAsk) -> bytes:
        try:
            return as_made(self.cluster.ask(compile_unit, unit, near=self._others()))
        except RefusedError as error:
            if not is_said_of_code(error):
                raise
            return as_refused(error)
        except EndedWorkersError as error:
            words = "the workers that compiled it have ended, one after the other"
            raise ProcessError(["nvcc"], -signal.SIGKILL, words, MEMORY) from error

    def _others(self) -> list[str]:
        """Workers on which nobody waits for a GPU meanwhile: all, where there are no such."""
        workers = self.cluster.workers()
        return [name for name, one in workers.items() if not one.has_gpu or one.threads > 1]
