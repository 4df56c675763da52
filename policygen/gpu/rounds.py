"""Measures the variants of a workload on all of its runtime workloads and writes the results.

Results in the database are not measured again, so a killed run can be resumed.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policygen.gpu.control import Controller
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, RuntimeCase, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.units import WorkloadRun
from policygen.model.workload import BASE
from policygen.process import stopping
from policygen.results.own_tables import Spread, WeighedValues, spread_of
from policygen.results.tables import DeclaredAxes
from policygen.steps import HowFar, Progress, counted

PHASE = "measure"


@dataclass(frozen=True, slots=True)
class RuntimeSpot:
    """A runtime workload: its key in the database, and what a device opens."""

    spot: RowSpot
    case: RuntimeCase

    def __str__(self) -> str:
        axes = self.spot.workload.items()
        values = " ".join(f"{axis.partition('{')[0]}={value}" for axis, value in axes)
        return f"{self.spot.algorithm} {values}"


@dataclass(frozen=True, slots=True)
class WorkloadTask:
    """What to measure of one workload."""

    base: VariantFunction
    variants: tuple[VariantFunction, ...]
    """Variants without the baseline."""
    points: tuple[RuntimeSpot, ...]
    declared: DeclaredAxes = field(default_factory=dict)
    """All values of the axes that the benchmark declares."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Outcome of a workload over all sessions of its database."""

    failed: Mapping[str, Failure]
    """Label → failure on a runtime workload; these variants are not candidates."""
    skipped: Mapping[str, str]
    """Runtime workloads that are not measured, with reasons."""
    new: int
    """Number of rows that were added or got more samples."""
    repeated: int = 0
    throttled: int = 0


def measure_workload(
    controller: Controller,
    session: MeasuringSession,
    task: WorkloadTask,
    *,
    rounds: int,
    seed: int,
    processes: int = 1,
    progress: Progress | None = None,
) -> Findings:
    """Check and measure variants until each has `processes` fresh processes.

    A variant that fails on a runtime workload is not run on the next, because only variants
    measured everywhere count.
    """
    failed: dict[str, Failure] = {}
    for point in task.points:
        session.prepare(point.spot, task.declared)
        failed |= session.failed(point.spot)
    missing_processes = {
        str(point): _missing_processes(session, point, task, processes) for point in task.points
    }
    steps = [
        (process, point)
        for process in range(processes)
        for point in task.points
        if any(
            missing > process
            for variant, missing in missing_processes[str(point)].items()
            if variant not in failed
        )
    ]
    skipped: dict[str, str] = {}
    new = done = repeated = throttled = last = 0
    with stopping(
        lambda: (
            f"{done:,} of {len(steps):,} runtime workloads are measured, and all written rows"
            " are kept; the same command resumes there."
        )
    ):
        for done, (process, point) in enumerate(steps):
            if progress:
                progress(HowFar(PHASE, done, len(steps), (str(point),)))
            if process != last:
                controller.restart()
                last = process
            if str(point) in skipped:
                continue
            problem = controller.open_checked(point.case, task.base)
            if problem is not None:
                skipped[str(point)] = problem
                continue
            counts = missing_processes[str(point)]
            excluded = {
                variant for variant, missing in counts.items() if missing <= process
            } | failed.keys()
            pending = [function for function in task.variants if function.variant not in excluded]
            findings = _measure_point(controller, session, point, pending, rounds, seed + process)
            session.launched(point.spot, controller.launches)
            failed |= findings.failed
            new += findings.new
            repeated += findings.repeated
            throttled += findings.throttled
    if progress:
        progress(HowFar(PHASE, len(steps), len(steps)))
    labels = {function.variant for function in task.variants}
    failed = {label: failure for label, failure in failed.items() if label in labels}
    return Findings(failed, skipped, new, repeated, throttled)


def _missing_processes(
    session: MeasuringSession, point: RuntimeSpot, task: WorkloadTask, processes: int
) -> dict[str, int]:
    """Return how many more processes each variant needs; a deleted row needs all."""
    recorded, times = session.measured(point.spot), session.times(point.spot)
    labels = [function.variant for function in (task.base, *task.variants)]
    return {
        label: max(0, processes - len(times.get(label, ()))) if label in recorded else processes
        for label in labels
    }


def _measure_point(
    controller: Controller,
    session: MeasuringSession,
    point: RuntimeSpot,
    functions: Sequence[VariantFunction],
    rounds: int,
    seed: int,
) -> Findings:
    started = time.monotonic()
    result = controller.rounds(functions, rounds, seed)
    for label, samples in result.samples.items():
        session.record(point.spot, label, samples, result.elapsed.get(label, 0.0))
    for label, failure in result.failed.items():
        session.fail(point.spot, label, failure, result.elapsed.get(label, 0.0))
    session.note(result.repeated, result.throttled, controller.restarts)
    session.time(str(point), time.monotonic() - started)
    session.noise(point.spot, controller.restarts, result.samples[BASE])
    return Findings(result.failed, {}, len(result.samples), result.repeated, result.throttled)


PROCESSES = 5
"""Number of fresh baseline processes from which the noise is estimated."""
NOISE_PHASE = "measure noise"


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
    """Return the spread by runtime workload; the baseline runs in fresh processes.

    It runs as often as a variant would. Processes already in the database count.
    """
    for point in points:
        session.prepare(point.spot, declared or {})
    missing = {id(point): processes - len(session.noise_centers(point.spot)) for point in points}
    count = max([0, *missing.values()])
    for process in counted(range(count), NOISE_PHASE, progress):
        controller.restart()
        for point in points:
            if missing[id(point)] <= process or controller.open(point.case, base) is not None:
                continue
            # Without variants the baseline runs twice in a round.
            result = controller.rounds([], math.ceil(rounds / 2), seed + process)
            session.noise(point.spot, controller.restarts, result.samples[base.variant])
            session.note(result.repeated, result.throttled, controller.restarts)
    return {str(point): spread_of(session.noise_centers(point.spot)) for point in points}


Keeps = Callable[[Mapping[str, str]], bool]
"""Whether to include a runtime workload, by its axis values."""


# Runtime workloads of a sub-benchmark


def runtime_spots(
    run: WorkloadRun, inputs: Path, keeps: Keeps = lambda _: True
) -> list[RuntimeSpot]:
    """Return the runtime workloads with the object that creates their inputs."""
    types = {f"{axis}{{ct}}": value for axis, value in run.workload.values.items()}
    counts = len(run.binding.buffers), len(run.binding.sizes)
    return [
        RuntimeSpot(
            RowSpot(run.benchmark.name, run.binding.subbench, {**types, **point.values}),
            RuntimeCase(str(inputs), point.numbers, *counts),
        )
        for point in run.points
        if keeps(point.values)
    ]


def declared_axes(run: WorkloadRun) -> DeclaredAxes:
    """Return all declared values of the runtime axes, with their weights."""
    name, subbench = run.benchmark.name, run.binding.subbench
    weights = run.binding.weights
    return {
        (name, subbench, axis): WeighedValues.of(values, weights.get(axis))
        for axis, values in run.axes.items()
    }
