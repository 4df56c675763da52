"""A/A: base against itself in fresh processes, which says how far equal code is from itself."""

import math
from collections.abc import Mapping, Sequence

from policygen.measure.control import Controller
from policygen.measure.database import MeasuringSession
from policygen.measure.device import VariantFunction
from policygen.measure.run import RuntimeSpot
from policygen.results.declared import DeclaredAxes
from policygen.results.measured_noise import Spread, spread_of
from policygen.steps import HowFar, Progress

PROCESSES = 5
"""Fresh processes of base, from whose differences the noise is known."""
PHASE = "measure noise"


def measure_noise(
    controller: Controller,
    session: MeasuringSession,
    base: VariantFunction,
    points: Sequence[RuntimeSpot],
    *,
    rounds: int,
    seed: int,
    processes: int = PROCESSES,
    declared: DeclaredAxes | None = None,
    progress: Progress | None = None,
) -> Mapping[str, Spread | None]:
    """The spread by runtime workload: base runs as often as a variant, in each process on all.

    What the database has counts: only processes that it lacks are started.
    """
    for point in points:
        session.prepare(point.spot, declared or {})
    lacking = {id(one): processes - len(session.noise_centers(one.spot)) for one in points}
    count = max([0, *lacking.values()])
    for number in range(count):
        if progress:
            progress(HowFar(PHASE, number, count))
        controller.restart()
        for point in points:
            if lacking[id(point)] > number:
                _measure(controller, session, base, point, number, rounds, seed)
    if progress:
        progress(HowFar(PHASE, count, count))
    return {str(one): spread_of(session.noise_centers(one.spot)) for one in points}


def _measure(
    controller: Controller,
    session: MeasuringSession,
    base: VariantFunction,
    point: RuntimeSpot,
    process: int,
    rounds: int,
    seed: int,
) -> None:
    if controller.open(point.case, base) is not None:
        return
    # Alone, base runs twice in a round.
    found = controller.rounds([], math.ceil(rounds / 2), seed + process)
    session.noise(point.spot, controller.restarts, found.samples[base.variant])
    session.note(found.repeated, found.throttled, controller.restarts)
