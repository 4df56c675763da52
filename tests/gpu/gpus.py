"""Simulated GPUs for rungs."""

from contextlib import ExitStack, contextmanager

from policygen.gpu.control import controlling
from policygen.gpu.device import Limits
from policygen.gpu.pool import LocalGpu, RungPoint
from tests.gpu.measuring import QUICK
from tests.gpu.simulated import BASE, Plan, case, variants

LABELS = tuple(f"ipt_{number}.tpb_64" for number in range(1, 8))
SIZES = (16, 18, 20)
LIMITS = Limits(first=300.0, floor=300.0)
LOST = ["crash"] * LIMITS.attempts
"""What base does on a GPU that is lost."""


def plan_of(folder, number, **plan):
    """What a GPU does, by its number."""
    own = folder / f"gpu{number}"
    own.mkdir(exist_ok=True)
    return Plan(str(own), others=[f"GPU-{number}"], **plan)


@contextmanager
def local_gpus(*plans):
    with ExitStack() as stack:
        yield [
            LocalGpu(
                stack.enter_context(
                    controlling(plan.command(), limits=LIMITS, watch=QUICK, locks=plan.locks)
                )
            )
            for plan in plans
        ]


def points(labels=LABELS, sizes=SIZES, rounds=2):
    functions = {one.variant: one for one in variants(*labels)}
    return [RungPoint(case(size), BASE, functions, rounds) for size in sizes]


def never():
    return False


def cells(found):
    """What each runtime workload has samples of, and in which part."""
    return sorted((one.point, label, one.part) for one in found for label in one.samples)


def measured(found):
    """Point and variant of each sample list, base left out."""
    return sorted((point, label) for point, label, _ in cells(found) if label != "base")


ALL = sorted((number, label) for number in range(len(SIZES)) for label in LABELS)
