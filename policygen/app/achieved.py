"""What ncu says of variants of a kernel of one's own, after they were measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from policygen.app.measure_variants import ChosenWorkload
from policygen.app.session import Session
from policygen.bindings.own_kernel import taken_kernel
from policygen.errors import InputError
from policygen.measure.compiling import CompiledWorkload
from policygen.measure.database import MeasuringSession
from policygen.measure.profiler import achieved, find_profiler
from policygen.measure.spots import Keeps, runtime_spots
from policygen.measure.watched import WatchedWorkload
from policygen.model.workload import Point
from policygen.proof.toolchain import find_toolchain
from policygen.steps import HowFar

PHASE = "profiling"


def profiler() -> Path:
    """What is asked; refused before anything is measured where it cannot be."""
    if taken_kernel() is None:
        raise InputError(
            "--ncu is for kernels of your own: a call of CUB's is several kernels",
            "Name the file of one: --workload FILE",
        )
    return find_profiler(find_toolchain())


def keep_achieved(
    tool: Path,
    session: Session,
    rows: MeasuringSession,
    chosen: Mapping[Point, ChosenWorkload],
    made: Mapping[Point, Sequence[CompiledWorkload]],
    command: Sequence[str],
    keeps: Keeps,
) -> None:
    """Writes the share of threads that were at work, of each variant on each runtime workload."""
    maker = taken_kernel()
    assert maker is not None
    asked = [
        (spot, unit)
        for point, one in chosen.items()
        for run, unit in zip(one.opened.runs, made[point], strict=False)
        for spot in runtime_spots(run, unit.inputs, keeps)
    ]
    for done, (spot, unit) in enumerate(asked):
        if session.progress:
            session.progress(HowFar(PHASE, done, len(asked), (str(spot),)))
        base, *variants = unit.functions
        failed = rows.failed(spot.spot)
        fine = tuple(each for each in variants if each.variant not in failed)
        one = WatchedWorkload(spot.case, base, fine)
        found = achieved(tool, command, maker.functions, one, held=True)
        rows.achieved(spot.spot, found.shares)
        if found.problem is not None:
            session.note(f"ncu tells nothing of {spot}: {found.problem}")
