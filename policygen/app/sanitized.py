"""What compute-sanitizer says of variants, before they are measured."""

from collections.abc import Mapping, Sequence

from policygen.app.measure_variants import ChosenWorkload
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.measure.compiling import CompiledWorkload
from policygen.measure.sanitizer import find_sanitizer, sanitize
from policygen.measure.spots import Keeps, runtime_spots
from policygen.measure.watched import WatchedWorkload
from policygen.model.labels import BASE
from policygen.model.workload import Point
from policygen.proof.toolchain import find_toolchain


def sanitized(
    session: Session,
    chosen: Mapping[Point, ChosenWorkload],
    made: Mapping[Point, Sequence[CompiledWorkload]],
    command: Sequence[str],
    keeps: Keeps,
    patience: float,
) -> dict[Point, dict[str, str]]:
    """By workload what is wrong with variants, on the smallest runtime workload of each."""
    tool = find_sanitizer(find_toolchain())
    asked = []
    for point, one in chosen.items():
        for run, unit in zip(one.opened.runs, made[point], strict=False):
            spots = runtime_spots(run, unit.inputs, keeps)
            if spots:
                least = min(spots, key=lambda spot: spot.case.axes)
                base, *variants = unit.functions
                asked.append((point, WatchedWorkload(least.case, base, tuple(variants))))
    workloads = [one for _, one in asked]
    told = sanitize(tool, command, workloads, patience=patience, progress=session.progress)
    found: dict[Point, dict[str, str]] = {}
    for (point, _), reasons in zip(asked, told, strict=True):
        if BASE in reasons:
            raise InputError(f"base of {point[0]} must not run: {reasons[BASE]}")
        found.setdefault(point, {}).update(reasons)
    return found
