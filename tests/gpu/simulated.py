"""A GPU that is simulated, served by a worker's process: each variant does what a plan says.

`python -m tests.gpu.simulated PLAN` serves it. A variant is fine, or does one of these, when
it is checked or (`sample: …`) when it is timed: crash, exit, hang, sticky, memory, wrong, prints.
"""

import json
import math
import os
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from policygen.gpu.device import (
    MEMORY,
    UNSUPPORTED,
    Clocks,
    DeviceError,
    GpuFacts,
    Launch,
    RuntimeCase,
    VariantFunction,
)
from policygen.gpu.worker import run_worker
from policygen.process import module

FACTS = GpuFacts(
    name="NVIDIA H200",
    uuid="GPU-5f3b",
    arch="sm90",
    sms=132,
    bus_width=6144,
    ecc=True,
    driver="580.82.07",
    l2=60 << 20,
    memory=141 << 30,
    sm_clock=1980,
    memory_clock=3201,
    power_limit=700.0,
)
BASE = VariantFunction("base", "unit.so", "policygen_run_0")
ILLEGAL = 700
LAUNCH = Launch(32, 0, 0, 0, 256, 512, 8, 2048, 1 << 20)


def variants(*labels):
    return tuple(
        VariantFunction(label, "unit.so", f"policygen_run_{number}")
        for number, label in enumerate(labels, 1)
    )


def case(*axes):
    return RuntimeCase("inputs.so", axes, 2, 1)


@dataclass
class Plan:
    """What a GPU does; `folder` holds what it remembers beyond the life of a process."""

    folder: str
    does: dict[str, str] = field(default_factory=dict)
    """Label → what goes wrong."""
    ratios: dict[str, float] = field(default_factory=dict)
    """Label → how many times as fast as base."""
    skips: list[int] = field(default_factory=list)
    """The first axis of runtime workloads that are none."""
    throttled: list[int] = field(default_factory=list)
    """Looks at the clocks, by number, that find them low."""
    clocks: list[int] = field(default_factory=list)
    """MHz of the first looks."""
    refuses: str = ""
    """Why there is no GPU."""
    opening: list[str] = field(default_factory=list)
    """What happens when inputs are made, the first times."""
    bases: list[str] = field(default_factory=list)
    """What base does, the first times that it is timed."""
    others: list[str] = field(default_factory=list)
    """UUIDs of the GPU that the first processes find."""
    shift: float = 0.0
    """By what share processes differ from each other."""
    model: str = FACTS.name
    copies: str = ""
    """What comes of a copy, on a GPU that tells of launches: bytes in a second, or what fails."""

    def command(self):
        path = Path(self.folder) / "plan.json"
        path.write_text(json.dumps(self.__dict__))
        return (*module("tests.gpu.simulated"), str(path))

    @property
    def locks(self):
        return Path(self.folder)


class SimulatedDevice:
    """Does what the plan says."""

    def __init__(self, plan):
        self.plan = plan
        self.axes = ()
        self.process = self._next("process")
        self.random = Random(self.process)
        if plan.refuses:
            raise DeviceError(100, plan.refuses)

    def facts(self):
        uuids = self.plan.others
        uuid = uuids[min(self.process, len(uuids) - 1)] if uuids else FACTS.uuid
        return replace(FACTS, uuid=uuid, name=self.plan.model)

    def holds(self, case):
        return False

    def open(self, case):
        self.axes = case.axes
        self._listed("opening")
        return case.axes[0] not in self.plan.skips

    def reference(self, base):
        self._does(self.plan.does.get(base.variant, ""))

    def check(self, one):
        return self._does(self.plan.does.get(one.variant, "").removeprefix("check: "))

    def sample(self, one):
        if (Path(self.plan.folder) / "ends").exists():
            end_who_asks()
        if one.variant == "base":
            self._listed("bases")
        does, _, what = self.plan.does.get(one.variant, "").partition(": ")
        if does == "sample" and self._does(what):
            return float(what)
        noise = 1 + self.random.uniform(-0.01, 0.01) + self.plan.shift * (self.process % 3)
        size = self.axes[0] if self.axes[0] < 64 else math.log2(self.axes[0])
        return 1e-5 * 2 ** (size - 16) / self.plan.ratios.get(one.variant, 1.0) * noise

    def launch(self, one):
        return None

    def bandwidth(self):
        return None

    def nvbench(self, order, measure):
        raise DeviceError(UNSUPPORTED, "this worker was not started for NVBench")

    def clocks(self):
        number = self._next("clocks")
        listed = self.plan.clocks
        sm = listed[number] if number < len(listed) else 1980
        return Clocks(sm, ("it is too hot",) if number in self.plan.throttled else ())

    def close(self):
        self.axes = ()

    def _listed(self, name):
        """What happens the first times that something is done, in whichever process."""
        todo = getattr(self.plan, name)
        number = self._next(name)
        if number < len(todo):
            self._does(todo[number])

    def _does(self, what):
        match what:
            case "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
                time.sleep(3600)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "killed once" if not self._next("killed"):
                os.kill(os.getpid(), signal.SIGKILL)
            case "ends who asks" if not self._next("ended"):
                end_who_asks()
            case "exit":
                sys.stderr.write("no more of this\n")
                sys.stderr.flush()
                os._exit(3)
            case "hang":
                time.sleep(3600)
            case "sticky":
                raise DeviceError(ILLEGAL, "an illegal memory access was encountered")
            case "memory":
                raise DeviceError(MEMORY, "out of memory")
            case "prints":
                os.write(1, b"a variant was here\n")
            case "wrong":
                return "3 of 65,536 elements differ, the first at 7"
            case "inf" | "-1.0":
                return what
        return None

    def _next(self, name):
        """Counts, over all processes."""
        path = Path(self.plan.folder) / f"{name}.count"
        with path.open("ab") as file:
            file.write(b".")
            return file.tell() - 1


class LaunchingDevice(SimulatedDevice):
    """One with kernels of one's own."""

    def launch(self, one):
        return LAUNCH

    def bandwidth(self):
        self._does(self.plan.copies)
        return float(self.plan.copies)


def device(plan):
    return LaunchingDevice(plan) if plan.copies else SimulatedDevice(plan)


def end_who_asks():
    """Kills the process that started this one, which ends when it notices."""
    time.sleep(0.3)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


def main(path):
    plan = Plan(**json.loads(Path(path).read_text()))
    return run_worker(lambda: device(plan), plan.locks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
