"""A simulated GPU on which NVBench measures: each place of the order has a few samples at once.

`python -m tests.gpu.simulated_nvbench PLAN` serves it.
"""

import json
import sys
from pathlib import Path

from policygen.gpu.device import UNSUPPORTED, DeviceError
from policygen.gpu.worker import run_worker
from policygen.process import module
from tests.gpu.simulated import Plan, SimulatedDevice

SAMPLES = 3


class SimulatedNvbench(SimulatedDevice):
    """What a plan does when a variant is timed, it does at its first sample."""

    spent = False

    def nvbench(self, order, around):
        if self.spent:
            raise DeviceError(UNSUPPORTED, "NVBench has run in this process already")
        self.spent = True
        for place, one in enumerate(order):
            around(place, lambda one=one: [self.sample(one) for _ in range(SAMPLES)])


def command(plan):
    plan.command()
    return (*module("tests.gpu.simulated_nvbench"), str(Path(plan.folder) / "plan.json"))


def main(path):
    plan = Plan(**json.loads(Path(path).read_text()))
    return run_worker(lambda: SimulatedNvbench(plan), plan.locks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
