"""A search on the workers of a Dask cluster; this machine asks, and alone writes the database."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import policygen
from policygen.app.search_places import HeldGpus
from policygen.cache import digest
from policygen.measure.compiling import MakesObjects
from policygen.measure.gpus import check_one_model
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.search.cluster.answers import GpuAsk
from policygen.search.cluster.compiling import ClusterCompiler
from policygen.search.cluster.connection import ClusterClient, connected
from policygen.search.cluster.measuring import ClusterGpu, ClusterGpus
from policygen.search.gpu import Asked, StopAskedError
from policygen.search.pool import GpuPool
from policygen.stopping import Stopped


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
