"""`policygen measure`: what named variants are worth on a GPU of this machine, beside base."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measured_workloads import (
    ChosenWorkload,
    VariantsWanted,
    check_compiles,
    choose_lot,
    compile_lot,
    work_folder,
)
from policygen.app.session import Session, check_serves
from policygen.bindings.own_kernels import taken_kernel
from policygen.errors import InputError, PolicygenError
from policygen.gpu.checkout_rounds import NvbenchSettings, controlling_nvbench, nvbench_options
from policygen.gpu.compiling import CompiledWorkload, ObjectCompiler, runtime_of
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.device import Failure
from policygen.gpu.machine import device_environment, find_gpu
from policygen.gpu.measured_rows import (
    MeasuringSession,
    keep_peak,
    keep_start,
    keep_words,
    open_measurements,
)
from policygen.gpu.opened import KernelWorkload
from policygen.gpu.rounds import (
    Findings,
    Keeps,
    WorkloadTask,
    declared_axes,
    measure_workload,
    runtime_spots,
)
from policygen.gpu.statistics import (
    PointTimes,
    judged,
    measure_noise,
    noises,
    runtime_axes,
    score_noise,
    times_of,
)
from policygen.gpu.tools import WatchedWorkload, achieved, find_profiler, find_sanitizer, sanitize
from policygen.gpu.units import WorkloadRun
from policygen.model.measured import (
    FailureKind,
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    Method,
    SkippedPoint,
    VariantFailure,
)
from policygen.model.workload import BASE, Point, as_label
from policygen.model.workload import Point as WorkloadPoint
from policygen.proof.compile import Listings
from policygen.proof.toolchain import find_toolchain
from policygen.steps import HowFar

PROCESSES = 5
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured, and where."""

    processes: int = PROCESSES
    rounds: int = ROUNDS
    """In each process."""
    seed: int = 1
    gpu: int = 0
    slots: int | None = None
    """How many units are compiled at once; none: as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that somebody else measures on."""
    sanitize: bool = False
    """Whether compute-sanitizer looks at each variant before it is measured."""
    ncu: bool = False
    """Whether ncu looks at the variants of a kernel of one's own after they were measured."""
    method: Method = "events"
    """What times runs; NVBench has one runtime workload in each process."""


def native_arch(number: int = 0) -> str:
    """The architecture of a GPU of this machine."""
    return find_gpu(number).arch


def measure_variants(
    session: Session,
    where: Filter,
    wanted: VariantsWanted,
    *,
    database: Path | None = None,
    effort: Effort | None = None,
) -> MeasuredVariants:
    """Measures variants beside base in fresh processes, and checks what they compute."""
    check_serves("measure", session.cub)
    effort = effort or Effort()
    tool = profiler() if effort.ncu else None
    begun = time.monotonic()
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    lot = choose_lot(session, compile_time_part(where), gpu.arch, wanted)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        made = compile_lot(session, lot.chosen, compiler, effort.slots)
        compiled = time.monotonic() - begun
        workloads = [
            MeasuredWorkload(benchmark=name, workload=dict(axes), variants=(), problem=reason)
            for (name, axes), reason in lot.refused.items()
        ]
        label, driver = gpu.name, gpu.driver
        if runners := [one.runner for each in made.values() for one in _fine(each)]:
            runtime = runtime_of(toolchain)
            command = worker_command(effort.gpu, runners[0], runtime)
            fine = {point: _fine(each) for point, each in made.items()}
            keeps = lambda values: is_meant(values, where)  # noqa: E731
            bad = (
                sanitized(session, lot.chosen, fine, command, keeps, effort.patience)
                if effort.sanitize
                else {}
            )
            start: Callable[..., AbstractContextManager[Controller]] = controlling
            if effort.method == "nvbench":
                start = controlling_nvbench
                command = (*command, *nvbench_options(NvbenchSettings()))
            controller = stack.enter_context(
                start(command, patience=effort.patience, more=device_environment())
            )
            facts = controller.facts
            label, driver = facts.label, facts.driver
            about = About(
                toolchain.version,
                f"v{session.cub.version}",
                facts,
                toolchain.version,
                effort.method,
                effort.seed,
            )
            path = database or folder / "measured.db"
            rows = stack.enter_context(open_measurements(path, about))
            rows.time("compiling", compiled)
            keep_kernel(rows)
            for point, one in lot.chosen.items():
                told = bad.get(point, {})
                task = _MeasuringTask(
                    session, controller, rows, one, made[point], where, effort, told
                )
                workloads.append(_measured(task, point))
            keep_bandwidth(rows, controller)
            if tool is not None:
                # The tool starts a process of its own, that does not speak NVBench.
                plain = worker_command(effort.gpu, runners[0], runtime)
                with controller.aside():
                    keep_achieved(tool, session, rows, lot.chosen, fine, plain, keeps)
        return MeasuredVariants(
            cub=session.cub,
            arch=gpu.arch,
            toolchain=f"nvcc {toolchain.version}",
            driver=driver,
            method=effort.method,
            processes=effort.processes,
            rounds=effort.rounds,
            seed=effort.seed,
            database=None if database is None else str(database),
            workloads=tuple(workloads),
            seconds=time.monotonic() - begun,
            compiling=compiled,
            gpu=label,
            ctk=toolchain.version,
            cccl=f"v{session.cub.version}",
        )


@dataclass(frozen=True, slots=True)
class _MeasuringTask:
    """A workload that is compiled, and what measures it."""

    session: Session
    controller: Controller
    rows: MeasuringSession
    chosen: ChosenWorkload
    made: Sequence[CompiledWorkload | PolicygenError]
    """One for each sub-benchmark."""
    where: Filter
    effort: Effort
    bad: Mapping[str, str]
    """Variants that must not run, and why."""

    def refuse(self, asked: WorkloadTask) -> None:
        """Writes why they are not measured, on the first runtime workload."""
        first, *_ = asked.points
        self.rows.prepare(first.spot, asked.declared)
        for label, reason in self.bad.items():
            self.rows.fail(first.spot, label, Failure("error", reason))


def _measured(task: _MeasuringTask, point: WorkloadPoint) -> MeasuredWorkload:
    name, axes = point
    problems = [one.in_line for one in task.made if isinstance(one, PolicygenError)]
    if problems:
        return MeasuredWorkload(
            benchmark=name, workload=dict(axes), variants=(), problem=problems[0]
        )
    before = task.controller.ended
    found: list[tuple[WorkloadTask, Findings]] = []
    for run, made in zip(task.chosen.opened.runs, _fine(task.made), strict=True):
        asked = _asked(task, run, made)
        task.refuse(asked)
        findings = measure_workload(
            task.controller,
            task.rows,
            asked,
            rounds=task.effort.rounds,
            seed=task.effort.seed,
            processes=task.effort.processes,
            progress=task.session.progress,
        )
        found.append((asked, findings))
        if task.effort.method == "events":
            there = [point for point in asked.points if str(point) not in findings.skipped]
            # Where variants were in few processes, base is in some more: what is its noise?
            measure_noise(
                task.controller,
                task.rows,
                asked.base,
                there,
                rounds=task.effort.rounds,
                seed=task.effort.seed,
                declared=asked.declared,
                progress=task.session.progress,
            )
    times = _times(task, found)
    labels = [one.variant for asked, _ in found[:1] for one in asked.variants]
    judged_ones = {one.variant: one for one in judged(times, labels)}
    failures = _failures(task, found)
    return MeasuredWorkload(
        benchmark=name,
        workload=dict(axes),
        variants=tuple(_told(task, judged_ones, failures)),
        noise=tuple(noises(times)),
        score_noise=score_noise(times),
        skipped=tuple(
            SkippedPoint(point=runtime_axes(point.spot), reason=one.skipped[str(point)])
            for asked, one in found
            for point in asked.points
            if str(point) in one.skipped
        ),
        repeated=sum(one.repeated for _, one in found),
        throttled=sum(one.throttled for _, one in found),
        restarts=task.controller.ended - before,
    )


def _asked(task: _MeasuringTask, run: WorkloadRun, made: CompiledWorkload) -> WorkloadTask:
    base, *variants = made.functions
    name = run.benchmark.name
    points = runtime_spots(run, made.inputs, lambda values: is_meant(values, task.where))
    if not points:
        raise InputError(
            f"-a leaves no runtime workload of {name}",
            f"Its runtime axes are {', '.join(run.axes)}.",
        )
    return WorkloadTask(base, tuple(variants), tuple(points), declared_axes(run))


def _times(
    task: _MeasuringTask, found: Sequence[tuple[WorkloadTask, Findings]]
) -> list[PointTimes]:
    """What the database has of what was asked, now or before."""
    spots = [
        point.spot
        for asked, one in found
        for point in asked.points
        if str(point) not in one.skipped
    ]
    declared = {key: values for asked, _ in found for key, values in asked.declared.items()}
    return times_of(task.rows, spots, declared)


def _failures(
    task: _MeasuringTask, found: Sequence[tuple[WorkloadTask, Findings]]
) -> dict[str, VariantFailure]:
    chosen = task.chosen
    known: dict[str, tuple[FailureKind, str]] = {}
    for _, one in found:
        known |= {label: (failure.kind, failure.reason) for label, failure in one.failed.items()}
    for made in _fine(task.made):
        known |= {label: ("compile", reason) for label, reason in made.failed.items()}
    known |= {label: ("invalid", reason) for label, reason in chosen.candidates.refused.items()}
    known |= {label: ("invalid", reason) for label, reason in chosen.classified.refused.items()}
    known |= dict.fromkeys(chosen.candidates.base, ("base", "it is what CUB selects"))
    return {
        label: VariantFailure(kind=kind, reason=reason) for label, (kind, reason) in known.items()
    }


def _told(
    task: _MeasuringTask,
    known: Mapping[str, MeasuredVariant],
    failures: Mapping[str, VariantFailure],
) -> Iterator[MeasuredVariant]:
    """Those that were asked for; one that comes to the same policy as another has its score."""
    classified = task.chosen.classified
    stands_for = {**{label: label for label in classified.refused}, **classified.stands_for}
    # A kernel's file says itself what cannot be.
    is_kernel = isinstance(task.chosen.opened.meaning, KernelWorkload)
    refused = () if is_kernel else classified.refused
    distinct = (one.label for one in classified.distinct if not (is_kernel and one.is_base))
    drawn = (*distinct, *refused)
    for label in task.chosen.labels or drawn:
        own = stands_for[label]
        if own in known:
            yield known[own].model_copy(update={"variant": label})
        else:
            yield MeasuredVariant(variant=label, failed=failures.get(own))


def _fine(made: Sequence[CompiledWorkload | PolicygenError]) -> list[CompiledWorkload]:
    return [one for one in made if not isinstance(one, PolicygenError)]


def compile_time_part(where: Filter) -> Filter:
    """Without what is said of runtime axes."""
    kept = tuple(text for text in where.axes if not _is_runtime(text.partition("=")[0]))
    return Filter(where.headers, where.regex, kept, where.archs)


def _is_runtime(axis: str) -> bool:
    """CCCL writes `T{ct}`, or the bare name, for what is known when it compiles."""
    return "{io}" in axis or "[" in axis


def is_meant(values: Mapping[str, str], where: Filter) -> bool:
    """Whether `-a` leaves a runtime workload."""
    return all(values[axis] in wanted for axis, wanted in where.values.items() if axis in values)


PHASE = "profiling"


# What ncu says of variants of a kernel of one's own, after they were measured.


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


# What compute-sanitizer says of variants, before they are measured.


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


# What is kept of a kernel of one's own besides the times of its variants.


def keep_kernel(rows: MeasuringSession) -> None:
    """Writes what numbers in labels stand for."""
    maker = taken_kernel()
    if maker is None:
        return
    every = maker.given.every_parameter
    words = {label: one.words for label, one in every.items() if one.words}
    for name in maker.names:
        keep_words(rows.writer, name, words)
        keep_start(rows.writer, name, maker.name, as_label(maker.start))


def keep_bandwidth(rows: MeasuringSession, controller: Controller) -> None:
    """Measures once how fast memory is copied, which times of kernels are put beside."""
    if taken_kernel() is not None and (found := controller.bandwidth()) is not None:
        keep_peak(rows.writer, rows.number, found)
