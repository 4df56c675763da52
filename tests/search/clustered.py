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

import distributed

from policygen.errors import ProcessError
from policygen.measure.gpus import ListedGpu
from policygen.proof.compile import RefusedError
from policygen.search.cluster import working, working_gpus
from tests.measure.simulated import Plan

WORKERS = 2


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
                os.kill(os.getpid(), signal.SIGKILL)
            case "ends its worker once":
                self.does.write_text("{}")
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

        def plan(*_):
            given = json.loads((own / "given").read_text()) if (own / "given").exists() else {}
            return Plan(str(own), **{"others": [uuid], **given}).command()

        uuid = f"GPU-{abs(hash(self.folder))}-{number}"
        real = working.find_toolchain
        version = property(lambda _: told().get("nvcc", {}).get(str(number)))

        class OtherToolchain:
            pass

        OtherToolchain.version = version

        def toolchain():
            return OtherToolchain() if str(number) in told().get("nvcc", {}) else real()

        def find_gpu():
            given = json.loads((own / "given").read_text()) if (own / "given").exists() else {}
            return ListedGpu(0, given.get("model", "NVIDIA H200"), uuid, "sm90", "580.82.07")

        working.find_toolchain = toolchain
        working.ObjectCompiler = lambda _, place, __: PretendingCompiler(place, does)
        working_gpus.worker_command = plan
        working_gpus.find_gpu = find_gpu
        working_gpus.runtime_of = lambda _: None
        working_gpus.IDLE = 2.0


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
            for path in own.iterdir():
                path.unlink()
            (own / "given").write_text(json.dumps(plan))

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
        self.client.wait_for_workers(WORKERS, timeout=30)
        self.plans(*[{}] * WORKERS)


@contextmanager
def running(folder):
    for number in range(WORKERS):
        (folder / f"gpu{number}").mkdir()
    with (
        distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            resources={"GPU": 1},
            local_directory=str(folder / "scratch"),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        client.register_plugin(PretendingPlugin(folder))
        yield RunningCluster(cluster, client, folder)
