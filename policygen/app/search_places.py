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
    """Numbers of GPUs of this machine; none: all of them."""
    scheduler: str | None = None
    """The address, or the file, of a Dask scheduler, whose workers are used instead."""


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """GPUs of one model, on which nobody else measures."""

    measures: MeasuresRungs
    facts: Sequence[GpuFacts]
    """Of each of them."""
    sanitizes: Sanitizes | None = None
    """Looks at finalists, where that is asked for."""


class SearchPlace(Protocol):
    """A place to search on."""

    @property
    def arch(self) -> str:
        """The architecture of its GPUs."""

    @property
    def toolchain(self) -> Toolchain:
        """What compiles; on other machines one of the same release."""

    @property
    def slots(self) -> int:
        """Units that are compiled at once."""

    def compiler(self, folder: Path) -> MakesObjects:
        """What compiles; objects lie in a folder."""

    def held(self, runner: Path) -> AbstractContextManager[HeldGpus]:
        """Keeps its GPUs for a block; the runner times calls on them."""


# Compiles the batches of a search: variants of several workloads side by side.


@dataclass(frozen=True, slots=True)
class BatchCompiler:
    """What compiles, and for which workloads."""

    searches: Mapping[str, WorkloadSearch]
    compiler: MakesObjects
    slots: int
    keeps: Keeps
    """Which runtime workloads are measured."""
    progress: Progress | None = None

    def __call__(self, batch: Batch) -> dict[str, CompiledBatch]:
        """The objects of all variants of a batch, or why there are none."""
        chosen = {
            name: self.searches[name].opened.candidates(labels) for name, labels in batch.items()
        }
        tasks = [
            (name, self.searches[name].opened.to_compile(run, candidates.made))
            for name, candidates in chosen.items()
            for run in self.searches[name].opened.runs
        ]
        made = compile_workloads(
            [task for _, task in tasks],
            runner_text(),
            self.compiler,
            slots=self.slots,
            progress=self.progress,
        )
        found: dict[str, list[CompiledWorkload | PolicygenError]] = {name: [] for name in batch}
        for (name, _), one in zip(tasks, made, strict=True):
            found[name].append(one)
        return {name: self._batch(name, chosen[name], lot) for name, lot in found.items()}

    def _batch(
        self,
        name: str,
        candidates: Candidates,
        made: Sequence[CompiledWorkload | PolicygenError],
    ) -> CompiledBatch:
        fine = [one for one in made if isinstance(one, CompiledWorkload)]
        problems = [one.in_line for one in made if isinstance(one, PolicygenError)]
        if problems:
            return CompiledBatch((), (), (), {}, problems[0])
        runs = self.searches[name].opened.runs
        failed = {label: ("invalid", reason) for label, reason in candidates.refused.items()}
        failed |= dict.fromkeys(candidates.base, ("base", "it is what CUB selects"))
        for one in fine:
            failed |= {label: ("compile", reason) for label, reason in one.failed.items()}
        return CompiledBatch(
            bases=tuple(one.functions[0] for one in fine),
            functions=tuple(
                {each.variant: each for each in one.functions if each.variant != BASE}
                for one in fine
            ),
            runtimes=tuple(
                tuple(runtime_spots(run, one.inputs, self.keeps))
                for run, one in zip(runs, fine, strict=True)
            ),
            failed=failed,
        )


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Workers that compile, and those that measure."""

    cluster: ClusterClient
    gpus: ClusterGpus
    toolchain: Toolchain
    arch: str
    slots: int
    owner: str
    """This search, also when it goes on after it was killed."""
    asked: Asked

    def compiler(self, folder: Path) -> MakesObjects:
        """Compiles on any worker."""
        return ClusterCompiler(self.cluster, self.toolchain, folder)

    @contextmanager
    def held(self, runner: Path) -> Iterator[HeldGpus]:
        """Keeps the GPUs of all workers that have one."""
        ask = GpuAsk(self.owner, self.cluster.contents.file(str(runner)))
        try:
            with _told_to_stop():
                found = self.gpus.first(ask, self.asked)
            facts = [one.facts for one in found if isinstance(one, ClusterGpu)]
            yield HeldGpus(GpuPool(found, self.gpus, self.gpus.note), facts)
        finally:
            self.gpus.leave()


# A search on the workers of a Dask cluster; this machine asks, and alone writes the database.


@contextmanager
def cluster_place(
    scheduler: str,
    database: Path,
    *,
    slots: int | None,
    patience: float,
    note: Callable[[str], None],
    asked: Asked,
) -> Iterator[ClusterPlace]:
    """The workers of a scheduler, for a search that writes a database."""
    toolchain = find_toolchain()
    terms = (policygen.__version__, toolchain.version)
    with connected(scheduler, terms, patience) as cluster:
        gpus = ClusterGpus(cluster, note)
        with _told_to_stop():
            seen = gpus.seen(asked)
        check_one_model({worker: one.name for worker, one in seen.items()})
        arch = next(iter(seen.values())).arch
        threads = sum(one.threads for one in cluster.workers().values())
        owner = digest("search", socket.gethostname(), str(database.resolve()))
        yield ClusterPlace(cluster, gpus, toolchain, arch, slots or threads, owner, asked)


@contextmanager
def _told_to_stop() -> Iterator[None]:
    try:
        yield
    except StopAskedError as error:
        raise Stopped("it waited for a worker with a GPU; nothing was measured yet") from error
