"""A GPU's worker under a tool of CUDA's that watches what it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from policygen.measure.control import Controller, controlling
from policygen.measure.device import RuntimeCase, VariantFunction
from policygen.measure.gpus import device_environment
from policygen.measure.outcomes import Limits

FLOOR = 30.0
"""Seconds that a run may always take. Else base tells how long, which is watched as well."""


@dataclass(frozen=True, slots=True)
class WatchedWorkload:
    """What is run of a workload, on a runtime workload of its."""

    case: RuntimeCase
    base: VariantFunction
    variants: tuple[VariantFunction, ...]


@contextmanager
def watched(
    tool: Sequence[str], command: Sequence[str], *, patience: float = 0.0, held: bool = False
) -> Iterator[Controller]:
    """Starts a worker with a tool before it; `held`: this process keeps the GPU already."""
    with controlling(
        (*tool, *command),
        limits=Limits(floor=FLOOR),
        patience=patience,
        more=device_environment(),
        held=held,
    ) as controller:
        yield controller
