"""A real cluster of processes, whose workers have simulated GPUs and compile nothing.

What a worker does is written into files, which it reads when it is asked: it may be another process
each time.
"""

import json
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dask
import distributed

from policygen.cache import digest
from policygen.errors import ProcessError
from policygen.gpu import cluster_workers
from policygen.gpu.machine import ListedGpu
from policygen.proof.compile import RefusedError
from tests.gpu.simulated import Plan

WORKERS = 2
STARTED = 0.3
"""Seconds after which a nanny knows that its worker runs."""
RUNNING = distributed.Status.running


@dataclass(frozen=True)
class PretendingCompiler:
    """Makes each unit an object that is its text; does what the cluster's folder says."""

    folder: Path
    does: Path

    def make(self, source):
        told = json.loads(self.does.read_text()) if self.does.exists() else {}
        with self.does.with_name("compiled").open("a") as file:
            file.write(f"{os.getpid()}\n")
        assert all(Path(one).is_dir() for one in source.includes)
        match told.get("compile", ""):
            case "ends its worker":
                time.sleep(STARTED)
                os.kill(os.getpid(), signal.SIGKILL)
            case "ends its worker once":
                self.does.write_text("{}")
                time.sleep(STARTED)
                os.kill(os.getpid(), signal.SIGKILL)
            case "takes long":
                time.sleep(told["seconds"])
            case "refuses":
                raise RefusedError(["nvcc"], 2, "main.cu(3): error: static assertion failed")
            case "is killed":
                raise ProcessError(["nvcc"], -9, "it was killed", "Is there enough memory?")
            case "has no room":
                raise OSError(28, "No space left on device", "/scratch")
            case "fails":
                raise ValueError("nobody thought of this")
        path = self.folder / f"{abs(hash(source.text))}.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.text)
        return path


class PretendingPlugin(distributed.WorkerPlugin):
    """Lets a worker's process have a simulated GPU, by the worker's name."""

    name = "pretending"

    def __init__(self, folder):
        self.folder = str(folder)

    def setup(self, worker):
        folder, number = Path(self.folder), worker.name
        own = folder / f"gpu{number}"
        does = folder / "does"

        def told():
            return json.loads(does.read_text()) if does.exists() else {}

        def plan():
            return json.loads((own / "plan.json").read_text())

        real = cluster_workers.find_toolchain
        version = property(lambda _: told().get("nvcc", {}).get(str(number)))

        class OtherToolchain:
            pass

        OtherToolchain.version = version

        def toolchain():
            return OtherToolchain() if str(number) in told().get("nvcc", {}) else real()

        def find_gpu():
            told = plan()
            return ListedGpu(0, told["model"], told["others"][0], "sm90", "580.82.07")

        def full(*_):
            if (own / "full").exists():
                raise OSError(28, "No space left on device", str(own))
            return digest(*_)

        cluster_workers.digest = full
        cluster_workers.find_toolchain = toolchain
        cluster_workers.ObjectCompiler = lambda _, place, __: PretendingCompiler(place, does)
        cluster_workers.worker_command = lambda *_: Plan(**plan()).command()
        cluster_workers.find_gpu = find_gpu
        cluster_workers.runtime_of = lambda _: None


def stay_idle(seconds):
    """How long a worker lets a silent search keep its GPU."""
    cluster_workers.IDLE = seconds


def _close_gpus():
    """What an earlier test was too busy to give back."""
    stay_idle(300.0)
    for one in [*cluster_workers._gpus.values()]:
        one.close()


@dataclass
class RunningCluster:
    """One for a module of tests; each test says anew what its workers do."""

    cluster: distributed.LocalCluster
    client: distributed.Client
    folder: Path

    @property
    def address(self):
        return self.cluster.scheduler_address

    def does(self, **told):
        (self.folder / "does").write_text(json.dumps(told))

    def plans(self, *given):
        """What the GPU of each worker does."""
        for number, plan in enumerate(given):
            own = self.folder / f"gpu{number}"
            for path in [*own.glob("*.count"), *own.glob("full"), *own.glob("ends")]:
                path.unlink()
            uuid = f"GPU-{digest(str(own))[:12]}"  # no lock is another test's
            Plan(str(own), **{"others": [uuid], **plan}).command()

    def number(self, gpu):
        """Which plan the GPU of a worker has."""
        return self.client.scheduler_info()["workers"][gpu.worker]["name"]

    def compiled(self):
        """The processes that compiled something."""
        path = self.folder / "compiled"
        return path.read_text().split() if path.exists() else []

    def pids(self):
        return self.client.run(os.getpid)

    def reset(self):
        """All workers are there, fresh, and do as they should."""
        self.does()
        (self.folder / "compiled").unlink(missing_ok=True)
        self.settle()
        self.client.run(_close_gpus)
        self.plans(*[{}] * WORKERS)

    def settle(self):
        """Waits until each nanny knows that its worker runs: before, it starts no other one."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            nannies = self.cluster.workers.values()
            if [one.process and one.process.status for one in nannies] == [RUNNING] * WORKERS:
                return
            time.sleep(0.05)
        raise AssertionError("a worker was not started anew")

    def kill(self):
        """Kills all workers, one after the other."""
        self.settle()
        for pid in self.pids().values():
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


@contextmanager
def running(folder):
    for number in range(WORKERS):
        (folder / f"gpu{number}").mkdir()
    with (
        dask.config.set(
            {
                # Where a worker has ended, its scheduler tries for so long to have its answers.
                "distributed.comm.timeouts.connect": "3s",
                # A worker that happens to be away so long after an earlier end is not given up.
                "distributed.deploy.lost-worker-timeout": "1h",
            }
        ),
        distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            resources={"GPU": 1},
            local_directory=str(folder / "scratch"),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        running = RunningCluster(cluster, client, folder)
        running.plans(*[{}] * WORKERS)
        client.register_plugin(PretendingPlugin(folder))
        yield running
