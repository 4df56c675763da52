"""Compiles both sides of changed workloads, for measuring."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measure import is_meant
from policygen.app.performance_claims import Claims
from policygen.errors import PolicygenError
from policygen.measure.compiling import (
    CompiledWorkload,
    MakesObjects,
    WorkloadToCompile,
    compile_workloads,
)
from policygen.measure.device import VariantFunction
from policygen.measure.outcomes import Failure
from policygen.measure.runs import WorkloadRun
from policygen.measure.spots import declared_axes, runtime_spots
from policygen.measure.units import runner_text
from policygen.model.resolve import EntryPlace
from policygen.model.workload import Point
from policygen.performance.changes import AFTER, COPY, ChangedWorkload, ChangePart
from policygen.steps import Progress

Runs = Sequence[tuple[WorkloadRun, WorkloadToCompile]]
"""A workload by sub-benchmark: how it runs, and both sides of it."""


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """What is measured of a change, and what is known of the rest."""

    before: str
    after: str
    """Both sides in words."""
    runs: Mapping[Point, Runs]
    same: tuple[Point, ...]
    """Those with the same machine code."""
    refused: Mapping[Point, str]
    """Those that cannot be measured."""
    claims: Claims
    remarks: tuple[str, ...] = ()
    entries: Mapping[Point, EntryPlace | None] | None = None
    """What decides after the change; none where it is not known."""


@dataclass(frozen=True, slots=True)
class CompiledChanges:
    """Workloads that can be measured, and those that cannot."""

    changes: tuple[ChangedWorkload, ...]
    refused: Mapping[Point, str]
    runner: Path | None
    """What times calls; none where nothing can be measured."""


def compile_changes(
    prepared: PreparedChange,
    where: Filter,
    compiler: MakesObjects,
    folder: Path,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> CompiledChanges:
    """Compiles each workload twice; a side that is refused costs its workload alone."""
    tasks = [(point, *run) for point, runs in prepared.runs.items() for run in runs]
    made = compile_workloads(
        [task for _, _, task in tasks], runner_text(), compiler, slots=slots, progress=progress
    )
    refused = dict(prepared.refused)
    found: dict[Point, ChangedWorkload] = {}
    runner = None
    for (point, run, _), one in zip(tasks, made, strict=True):
        if isinstance(one, PolicygenError):
            refused[point] = one.in_line
            continue
        runner = one.runner
        change = found.setdefault(point, ChangedWorkload(point, ()))
        if AFTER in one.failed:
            change.failed = Failure("compile", one.failed[AFTER])
        else:
            change.parts += (_part(run, one, where, folder),)
    for point, change in found.items():
        if change.failed is None and not any(part.points for part in change.parts):
            refused.setdefault(point, "-a leaves none of its runtime workloads")
    kept = tuple(one for point, one in found.items() if point not in refused)
    return CompiledChanges(kept, refused, runner)


def _part(run: WorkloadRun, made: CompiledWorkload, where: Filter, folder: Path) -> ChangePart:
    before, after = made.functions
    library = Path(before.library)
    again = folder / f"{library.stem}-again{library.suffix}"
    shutil.copyfile(library, again)
    return ChangePart(
        before,
        after,
        VariantFunction(COPY, str(again), before.function),
        tuple(runtime_spots(run, made.inputs, lambda values: is_meant(values, where))),
        declared_axes(run),
    )
