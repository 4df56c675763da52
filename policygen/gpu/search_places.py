"""Where a search compiles and measures: on this machine, or on the workers of a cluster."""

import socket
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import policygen
from policygen.cache import digest
from policygen.errors import InputError, PolicygenError
from policygen.gpu.candidates import CompiledBatch, WorkloadSearch
from policygen.gpu.cluster import ClusterClient, ClusterCompiler, ClusterGpu, ClusterGpus, connected
from policygen.gpu.cluster_workers import GpuAsk
from policygen.gpu.compiling import (
    MEMORY,
    CompiledWorkload,
    MakesObjects,
    ObjectCompiler,
    compile_unit,
    compile_workloads,
    runtime_of,
)
from policygen.gpu.control import controlling, worker_command
from policygen.gpu.device import GpuFacts
from policygen.gpu.machine import ListedGpu, check_one_model, find_gpus
from policygen.gpu.opened import OpenedWorkload, to_compile
from policygen.gpu.pool import Asked, GpuPool, LocalGpu, StopAskedError
from policygen.gpu.rounds import Keeps, runtime_spots
from policygen.gpu.tools import Sanitizes, WatchedWorkload, find_sanitizer, sanitize
from policygen.gpu.units import runner_text
from policygen.paths import cache_failures
from policygen.process import Stopped, workers_of
from policygen.proof.compile import Listings
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.steps import Note


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """GPUs of one model, reserved for this search."""

    measures: GpuPool
    facts: Sequence[GpuFacts]
    """Facts about each of the GPUs."""
    sanitizes: Sanitizes | None = None
    """Runs compute-sanitizer on the finalists, if requested."""
    memchecks: Sanitizes | None = None
    """Runs it on variants that failed; None on a cluster."""


# Compiling a search: the baseline of each workload, and units of a few variants.


@dataclass(frozen=True, slots=True)
class UnitCompiler:
    """A compiler for the units of several workloads; its calls run in several threads."""

    compiler: MakesObjects
    keeps: Keeps
    """Selects the runtime workloads to measure."""
    begun: "dict[str, Future[CompiledBatch]]" = field(default_factory=dict)
    """Baselines by workload."""

    def begin(self, executor: Executor, searches: Iterable[WorkloadSearch]) -> None:
        """Begins to compile the baselines, before a GPU is held."""
        for search in searches:
            self.begun[search.title] = executor.submit(self._baseline, search.opened)

    def __call__(self, search: WorkloadSearch, labels: Sequence[str]) -> CompiledBatch:
        """Compiles variants of a workload, or its baseline if there are no labels."""
        opened = search.opened
        if not labels:
            return self.begun[search.title].result()
        candidates = opened.candidates(labels)
        failed = {label: ("invalid", reason) for label, reason in candidates.refused.items()}
        failed |= dict.fromkeys(candidates.base, ("base", "it is what CUB selects"))
        by_run = []
        for run in opened.runs:
            made = [candidate for candidate in candidates.made if candidate.label not in failed]
            task = to_compile(opened.meaning, run, made)
            with cache_failures():
                of_run, messages = compile_unit(task, self.compiler, made)
            by_run.append(of_run)
            failed |= {label: ("compile", reason) for label, reason in messages.items()}
        ready = (label for label in by_run[0] if label not in failed)
        functions = {label: tuple(of_run[label] for of_run in by_run) for label in ready}
        return CompiledBatch(functions=functions, failed=failed)

    def _baseline(self, opened: OpenedWorkload) -> CompiledBatch:
        tasks = [to_compile(opened.meaning, run, ()) for run in opened.runs]
        slots = 2 * len(tasks)
        compiled = compile_workloads(tasks, runner_text(), self.compiler, slots=slots)
        units = [unit for unit in compiled if isinstance(unit, CompiledWorkload)]
        for result in compiled:
            if isinstance(result, PolicygenError):
                return CompiledBatch(problem=result.in_line)
        runtimes = [
            tuple(runtime_spots(run, unit.inputs, self.keeps))
            for run, unit in zip(opened.runs, units, strict=True)
        ]
        bases = tuple(unit.functions[0] for unit in units)
        return CompiledBatch(bases, runtimes=tuple(runtimes))


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """GPUs and cores of this machine."""

    gpus: Sequence[ListedGpu]
    toolchain: Toolchain
    workers: int | None
    """Units to compile at once; None: as many as cores and memory allow."""
    patience: float
    sanitizes: bool
    note: Note

    @property
    def arch(self) -> str:
        """The architecture of the GPUs."""
        return self.gpus[0].arch

    @property
    def slots(self) -> int:
        """Units compiled at once."""
        return workers_of(self.workers, MEMORY)

    def compiler(self, folder: Path) -> MakesObjects:
        """Compiles with processes on this machine."""
        return ObjectCompiler(self.toolchain, folder, Listings())

    @contextmanager
    def held(self, runner: Path) -> Iterator[HeldGpus]:
        """Holds all GPUs, acquired in numerical order so that two searches cannot deadlock."""
        runtime = runtime_of(self.toolchain)
        with ExitStack() as stack:
            commands = [worker_command(gpu.number, runner, runtime) for gpu in self.gpus]
            controllers = [
                stack.enter_context(controlling(command, patience=self.patience))
                for command in commands
            ]
            facts = [controller.facts for controller in controllers]
            pairs = zip(self.gpus, facts, strict=True)
            check_one_model({f"GPU {gpu.number}": gpu_facts.label for gpu, gpu_facts in pairs})
            pool = GpuPool([LocalGpu(controller) for controller in controllers], note=self.note)

            def run_sanitizer(workloads: Sequence[WatchedWorkload]) -> list[dict[str, str]]:
                """Runs compute-sanitizer on the first GPU."""
                tool = find_sanitizer(self.toolchain)
                with controllers[0].aside():
                    return sanitize(tool, commands[0], workloads, held=True)

            yield HeldGpus(pool, facts, run_sanitizer if self.sanitizes else None, run_sanitizer)


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


SearchPlace = LocalPlace | ClusterPlace


@contextmanager
def open_place(
    gpus: Sequence[int] | None,
    scheduler: str | None,
    database: Path,
    *,
    slots: int | None,
    patience: float,
    sanitizes: bool,
    note: Note,
    stop_requested: Asked,
) -> Iterator[SearchPlace]:
    """Opens the GPUs of this machine, None: all of them, or those of a scheduler's workers.

    Only this machine writes the database.
    """
    if scheduler is None:
        listed, toolchain = find_gpus(gpus), find_toolchain()
        if sanitizes:
            find_sanitizer(toolchain)
        yield LocalPlace(listed, toolchain, slots, patience, sanitizes, note)
        return
    if sanitizes:
        raise InputError(
            "--sanitize works on GPUs of this machine, but --scheduler uses those of its workers",
            "Check the results of a cluster search with: policygen measure --sanitize",
        )
    toolchain = find_toolchain()
    terms = (policygen.__version__, toolchain.version)
    with connected(scheduler, terms, patience) as cluster:
        cluster_gpus = ClusterGpus(cluster, note)
        with _stopping_while_waiting():
            gpus_by_worker = cluster_gpus.seen(stop_requested)
        check_one_model({worker: gpu.name for worker, gpu in gpus_by_worker.items()})
        arch = next(iter(gpus_by_worker.values())).arch
        threads = sum(worker.threads for worker in cluster.workers().values())
        owner = digest("search", socket.gethostname(), str(database.resolve()))
        yield ClusterPlace(
            cluster, cluster_gpus, toolchain, arch, slots or threads, owner, stop_requested
        )


@contextmanager
def _stopping_while_waiting() -> Iterator[None]:
    try:
        yield
    except StopAskedError as error:
        raise Stopped("it was waiting for a worker with a GPU; nothing is measured yet") from error
