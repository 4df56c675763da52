"""Where a search compiles and measures: on this machine, or on the workers of a cluster."""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import policygen
from policygen.cache import digest
from policygen.errors import PolicygenError
from policygen.gpu.candidates import Batch, CompiledBatch, WorkloadSearch
from policygen.gpu.cluster import ClusterClient, connected
from policygen.gpu.cluster_measuring import ClusterCompiler, ClusterGpu, ClusterGpus
from policygen.gpu.cluster_workers import GpuAsk
from policygen.gpu.compiling import CompiledWorkload, MakesObjects, compile_workloads
from policygen.gpu.device import GpuFacts
from policygen.gpu.machine import check_one_model
from policygen.gpu.opened import Candidates
from policygen.gpu.pool import GpuPool
from policygen.gpu.rounds import Keeps, runtime_spots
from policygen.gpu.rungs import Asked, MeasuresRungs, StopAskedError
from policygen.gpu.tools import Sanitizes
from policygen.gpu.units import runner_text
from policygen.model.workload import BASE
from policygen.process import Stopped
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.steps import Progress


@dataclass(frozen=True, slots=True)
class SearchMachines:
    """Which machines a search may use."""

    gpus: tuple[int, ...] | None = (0,)
    """Numbers of GPUs of this machine; None means all of them."""
    scheduler: str | None = None
    """The address or the file of a Dask scheduler. If given, its workers are used instead."""


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """GPUs of one model, reserved for this search."""

    measures: MeasuresRungs
    facts: Sequence[GpuFacts]
    """Facts about each of the GPUs."""
    sanitizes: Sanitizes | None = None
    """Runs compute-sanitizer on the finalists, if requested."""


class SearchPlace(Protocol):
    """A place where a search can run."""

    @property
    def arch(self) -> str:
        """The architecture of the GPUs."""

    @property
    def toolchain(self) -> Toolchain:
        """The toolchain; on other machines, one of the same release."""

    @property
    def slots(self) -> int:
        """Units compiled at once."""

    def compiler(self, folder: Path) -> MakesObjects:
        """Returns a compiler whose objects go to a folder."""

    def held(self, runner: Path) -> AbstractContextManager[HeldGpus]:
        """Reserves the GPUs for a block. `runner` is the program that times calls on them."""


# Compiling the batches of a search: variants of several workloads in parallel.


@dataclass(frozen=True, slots=True)
class BatchCompiler:
    """A compiler for the batches of several workloads."""

    searches: Mapping[str, WorkloadSearch]
    compiler: MakesObjects
    slots: int
    keeps: Keeps
    """Selects the runtime workloads to measure."""
    progress: Progress | None = None

    def __call__(self, batch: Batch) -> dict[str, CompiledBatch]:
        """Compiles all variants of a batch."""
        chosen = {
            name: self.searches[name].opened.candidates(labels) for name, labels in batch.items()
        }
        tasks = [
            (name, self.searches[name].opened.to_compile(run, candidates.made))
            for name, candidates in chosen.items()
            for run in self.searches[name].opened.runs
        ]
        compiled = compile_workloads(
            [task for _, task in tasks],
            runner_text(),
            self.compiler,
            slots=self.slots,
            progress=self.progress,
        )
        results_by_name: dict[str, list[CompiledWorkload | PolicygenError]] = {
            name: [] for name in batch
        }
        for (name, _), result in zip(tasks, compiled, strict=True):
            results_by_name[name].append(result)
        return {
            name: self._batch(name, chosen[name], results)
            for name, results in results_by_name.items()
        }

    def _batch(
        self,
        name: str,
        candidates: Candidates,
        results: Sequence[CompiledWorkload | PolicygenError],
    ) -> CompiledBatch:
        units = [unit for unit in results if isinstance(unit, CompiledWorkload)]
        problems = [result.in_line for result in results if isinstance(result, PolicygenError)]
        if problems:
            return CompiledBatch((), (), (), {}, problems[0])
        runs = self.searches[name].opened.runs
        failed = {label: ("invalid", reason) for label, reason in candidates.refused.items()}
        failed |= dict.fromkeys(candidates.base, ("base", "it is what CUB selects"))
        for unit in units:
            failed |= {label: ("compile", reason) for label, reason in unit.failed.items()}
        return CompiledBatch(
            bases=tuple(unit.functions[0] for unit in units),
            functions=tuple(
                {
                    function.variant: function
                    for function in unit.functions
                    if function.variant != BASE
                }
                for unit in units
            ),
            runtimes=tuple(
                tuple(runtime_spots(run, unit.inputs, self.keeps))
                for run, unit in zip(runs, units, strict=True)
            ),
            failed=failed,
        )


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Workers of a cluster that compile and measure."""

    cluster: ClusterClient
    gpus: ClusterGpus
    toolchain: Toolchain
    arch: str
    slots: int
    owner: str
    """Identifies this search, also when it resumes after being killed."""
    asked: Asked

    def compiler(self, folder: Path) -> MakesObjects:
        """Compiles on any worker."""
        return ClusterCompiler(self.cluster, self.toolchain, folder)

    @contextmanager
    def held(self, runner: Path) -> Iterator[HeldGpus]:
        """Reserves the GPUs of all workers that have any."""
        request = GpuAsk(self.owner, self.cluster.contents.file(str(runner)))
        try:
            with _stopping_while_waiting():
                gpus = self.gpus.first(request, self.asked)
            facts = [gpu.facts for gpu in gpus if isinstance(gpu, ClusterGpu)]
            yield HeldGpus(GpuPool(gpus, self.gpus, self.gpus.note), facts)
        finally:
            self.gpus.leave()


# Searching on a Dask cluster. Only this machine writes the database.


@contextmanager
def cluster_place(
    scheduler: str,
    database: Path,
    *,
    slots: int | None,
    patience: float,
    note: Callable[[str], None],
    stop_requested: Asked,
) -> Iterator[ClusterPlace]:
    """Connects to a scheduler's workers for a search that writes a database."""
    toolchain = find_toolchain()
    terms = (policygen.__version__, toolchain.version)
    with connected(scheduler, terms, patience) as cluster:
        gpus = ClusterGpus(cluster, note)
        with _stopping_while_waiting():
            gpus_by_worker = gpus.seen(stop_requested)
        check_one_model({worker: gpu.name for worker, gpu in gpus_by_worker.items()})
        arch = next(iter(gpus_by_worker.values())).arch
        threads = sum(worker.threads for worker in cluster.workers().values())
        owner = digest("search", socket.gethostname(), str(database.resolve()))
        yield ClusterPlace(cluster, gpus, toolchain, arch, slots or threads, owner, stop_requested)


@contextmanager
def _stopping_while_waiting() -> Iterator[None]:
    try:
        yield
    except StopAskedError as error:
        raise Stopped("it waited for a worker with a GPU; nothing was measured yet") from error
