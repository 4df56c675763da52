"""Measures the variants of a workload on all its runtime workloads, and writes what it finds.

What the database has is not measured again: a run that was killed goes on where it was.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policygen.gpu.control import Controller
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, RuntimeCase, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.units import RuntimePoint, WorkloadRun
from policygen.model.workload import BASE
from policygen.process import stopping
from policygen.results.own_tables import WeighedValues
from policygen.results.tables import DeclaredAxes
from policygen.steps import HowFar, Progress

PHASE = "measure"


@dataclass(frozen=True, slots=True)
class RuntimeSpot:
    """A runtime workload: how the database names it, and what a device opens."""

    spot: RowSpot
    case: RuntimeCase

    def __str__(self) -> str:
        axes = self.spot.workload.items()
        values = " ".join(f"{axis.partition('{')[0]}={value}" for axis, value in axes)
        return f"{self.spot.algorithm} {values}"


@dataclass(frozen=True, slots=True)
class WorkloadTask:
    """What is measured of one workload."""

    base: VariantFunction
    variants: tuple[VariantFunction, ...]
    """Without base."""
    points: tuple[RuntimeSpot, ...]
    declared: DeclaredAxes = field(default_factory=dict)
    """All values of the axes, as the benchmark declares them."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What became of a workload, over all sessions of its database."""

    failed: Mapping[str, Failure]
    """By label: those that are wrong, or fail, on a runtime workload; they are no candidates."""
    skipped: Mapping[str, str]
    """Runtime workloads that are not measured, and why."""
    new: int
    """Rows that were written now, or got more samples."""
    repeated: int = 0
    throttled: int = 0

    @property
    def wrong(self) -> Mapping[str, Failure]:
        """Those whose results are not those of base."""
        return {label: one for label, one in self.failed.items() if one.kind == "wrong"}


def measure_workload(
    controller: Controller,
    session: MeasuringSession,
    task: WorkloadTask,
    *,
    rounds: int,
    seed: int,
    processes: int = 1,
    retry: bool = False,
    progress: Progress | None = None,
) -> Findings:
    """Checks and measures what was not measured in so many processes, each of them fresh.

    A variant that fails on a runtime workload is not asked on the next: only those that are
    measured everywhere count. With `retry` those are asked again that failed in an earlier session.
    """
    for point in task.points:
        session.prepare(point.spot, task.declared)
    failed: dict[str, Failure] = {}
    for point in () if retry else task.points:
        failed |= session.failed(point.spot)
    lacking = {str(point): _lacking(session, point, task, processes) for point in task.points}
    steps = [
        (process, point)
        for process in range(processes)
        for point in task.points
        if any(n > process for one, n in lacking[str(point)].items() if one not in failed)
    ]
    skipped: dict[str, str] = {}
    new = done = repeated = throttled = last = 0
    with stopping(lambda: _kept(done, len(steps))):
        for done, (process, point) in enumerate(steps):
            if progress:
                progress(HowFar(PHASE, done, len(steps), (str(point),)))
            if process != last:
                controller.restart()
                last = process
            if str(point) in skipped:
                continue
            why = controller.open(point.case, task.base) or _unsure(controller, task.base)
            if why is not None:
                skipped[str(point)] = why
                continue
            counts = lacking[str(point)]
            known = {one for one, n in counts.items() if n <= process} | failed.keys()
            todo = [one for one in task.variants if one.variant not in known]
            found = _measure_point(controller, session, point, todo, rounds, seed + process)
            session.launched(point.spot, controller.launches)
            failed |= found.failed
            new += found.new
            repeated += found.repeated
            throttled += found.throttled
    if progress:
        progress(HowFar(PHASE, len(steps), len(steps)))
    labels = {one.variant for one in task.variants}
    failed = {label: one for label, one in failed.items() if label in labels}
    return Findings(failed, skipped, new, repeated, throttled)


def _lacking(
    session: MeasuringSession, point: RuntimeSpot, task: WorkloadTask, processes: int
) -> dict[str, int]:
    """In how many processes more each is to be measured; a row that is gone counts for nothing."""
    there, times = session.measured(point.spot), session.times(point.spot)
    labels = [one.variant for one in (task.base, *task.variants)]
    return {
        label: max(0, processes - len(times.get(label, ()))) if label in there else processes
        for label in labels
    }


def _unsure(controller: Controller, base: VariantFunction) -> str | None:
    """Why no results can be compared with base's, where it has others each time."""
    bad = controller.check([base]).failed.get(base.variant)
    if bad is None:
        return None
    return f"base differs from itself: {bad.reason}" if bad.kind == "wrong" else bad.reason


def _measure_point(
    controller: Controller,
    session: MeasuringSession,
    point: RuntimeSpot,
    todo: Sequence[VariantFunction],
    rounds: int,
    seed: int,
) -> Findings:
    begun = time.monotonic()
    checked = controller.check(todo)
    for label, failure in checked.failed.items():
        session.fail(point.spot, label, failure, checked.elapsed.get(label, 0.0))
    right = [one for one in todo if one.variant in checked.right]
    found = controller.rounds(right, rounds, seed)
    for label, samples in found.samples.items():
        elapsed = found.elapsed.get(label, 0.0) + checked.elapsed.get(label, 0.0)
        session.record(point.spot, label, samples, elapsed)
    for label, failure in found.failed.items():
        session.fail(point.spot, label, failure, found.elapsed.get(label, 0.0))
    session.note(found.repeated, found.throttled, controller.restarts)
    session.time(str(point), time.monotonic() - begun)
    session.noise(point.spot, controller.restarts, found.samples[BASE])
    failed = {**checked.failed, **found.failed}
    return Findings(failed, {}, len(found.samples), found.repeated, found.throttled)


def _kept(done: int, total: int) -> str:
    return (
        f"{done:,} of {total:,} runtime workloads are measured, and all rows that were written are"
        " kept: the same command goes on there."
    )


Keeps = Callable[[Mapping[str, str]], bool]
"""Whether a runtime workload is meant, by the values of its axes."""


# The runtime workloads of a sub-benchmark: as its table names them, and as a device opens them.


def all_points(_: Mapping[str, str]) -> bool:
    """Each of them is meant."""
    return True


def row_spots(run: WorkloadRun, keeps: Keeps = all_points) -> list[RowSpot]:
    """How the database names them."""
    return [_row_spot(run, point) for point in run.points if keeps(point.values)]


def runtime_spots(run: WorkloadRun, inputs: Path, keeps: Keeps = all_points) -> list[RuntimeSpot]:
    """With the object that makes their inputs."""
    buffers, sizes = len(run.binding.buffers), len(run.binding.sizes)
    return [
        RuntimeSpot(_row_spot(run, point), RuntimeCase(str(inputs), point.numbers, buffers, sizes))
        for point in run.points
        if keeps(point.values)
    ]


def declared_axes(run: WorkloadRun) -> DeclaredAxes:
    """All values of the runtime axes, as the benchmark declares them, with weights of their own."""
    name, subbench = run.benchmark.name, run.binding.subbench
    weights = run.binding.weights
    return {
        (name, subbench, axis): WeighedValues.of(values, weights.get(axis))
        for axis, values in run.axes.items()
    }


def _row_spot(run: WorkloadRun, point: RuntimePoint) -> RowSpot:
    types = {f"{axis}{{ct}}": value for axis, value in run.workload.values.items()}
    return RowSpot(run.benchmark.name, run.binding.subbench, {**types, **point.values})
