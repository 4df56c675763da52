"""`policygen measure`: measures named variants against base on a GPU of this machine."""

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
from policygen.bindings.own_kernels import active_kernel
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
    """How much to measure, and where."""

    processes: int = PROCESSES
    rounds: int = ROUNDS
    """Rounds in each process."""
    seed: int = 1
    gpu: int = 0
    slots: int | None = None
    """Units compiled at once; if unset, as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that another process is measuring on."""
    sanitize: bool = False
    """Whether to run compute-sanitizer on each variant before it is measured."""
    ncu: bool = False
    """Whether to profile the variants of a custom kernel with ncu after they are measured."""
    method: Method = "events"
    """What times the runs. NVBench measures one runtime workload per process."""


def native_arch(number: int = 0) -> str:
    """Returns the architecture of a GPU of this machine."""
    return find_gpu(number).arch


def measure_variants(
    session: Session,
    where: Filter,
    options: VariantsWanted,
    *,
    database: Path | None = None,
    effort: Effort | None = None,
) -> MeasuredVariants:
    """Measures variants and base in fresh processes, and verifies their results."""
    check_serves("measure", session.cub)
    effort = effort or Effort()
    tool = profiler() if effort.ncu else None
    started = time.monotonic()
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    selection = choose_lot(session, compile_time_part(where), gpu.arch, options)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        compiled_units = compile_lot(session, selection.chosen, compiler, effort.slots)
        compile_seconds = time.monotonic() - started
        workloads = [
            MeasuredWorkload(benchmark=name, workload=dict(axes), variants=(), problem=reason)
            for (name, axes), reason in selection.refused.items()
        ]
        label, driver = gpu.name, gpu.driver
        if runners := [
            unit.runner for results in compiled_units.values() for unit in _successes(results)
        ]:
            runtime = runtime_of(toolchain)
            command = worker_command(effort.gpu, runners[0], runtime)
            successes = {point: _successes(results) for point, results in compiled_units.items()}
            keeps = lambda values: is_meant(values, where)  # noqa: E731
            unsafe_by_point = (
                sanitized(session, selection.chosen, successes, command, keeps, effort.patience)
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
            rows.time("compiling", compile_seconds)
            keep_kernel(rows)
            for point, chosen in selection.chosen.items():
                unsafe = unsafe_by_point.get(point, {})
                task = _MeasuringTask(
                    session, controller, rows, chosen, compiled_units[point], where, effort, unsafe
                )
                workloads.append(_measure_chosen(task, point))
            keep_bandwidth(rows, controller)
            if tool is not None:
                # ncu starts its own process, which does not use NVBench.
                plain = worker_command(effort.gpu, runners[0], runtime)
                with controller.aside():
                    keep_achieved(tool, session, rows, selection.chosen, successes, plain, keeps)
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
            seconds=time.monotonic() - started,
            compiling=compile_seconds,
            gpu=label,
            ctk=toolchain.version,
            cccl=f"v{session.cub.version}",
        )


@dataclass(frozen=True, slots=True)
class _MeasuringTask:
    """A compiled workload, and what is needed to measure it."""

    session: Session
    controller: Controller
    rows: MeasuringSession
    chosen: ChosenWorkload
    results: Sequence[CompiledWorkload | PolicygenError]
    """One for each sub-benchmark."""
    where: Filter
    effort: Effort
    unsafe: Mapping[str, str]
    """Variants that must not run, with the reasons."""

    def refuse(self, workload_task: WorkloadTask) -> None:
        """Records the variants that must not run as failures on the first runtime workload."""
        first, *_ = workload_task.points
        self.rows.prepare(first.spot, workload_task.declared)
        for label, reason in self.unsafe.items():
            self.rows.fail(first.spot, label, Failure("error", reason))


def _measure_chosen(task: _MeasuringTask, point: WorkloadPoint) -> MeasuredWorkload:
    name, axes = point
    problems = [result.in_line for result in task.results if isinstance(result, PolicygenError)]
    if problems:
        return MeasuredWorkload(
            benchmark=name, workload=dict(axes), variants=(), problem=problems[0]
        )
    restarts_before = task.controller.ended
    results: list[tuple[WorkloadTask, Findings]] = []
    for run, unit in zip(task.chosen.opened.runs, _successes(task.results), strict=True):
        workload_task = _workload_task(task, run, unit)
        task.refuse(workload_task)
        findings = measure_workload(
            task.controller,
            task.rows,
            workload_task,
            rounds=task.effort.rounds,
            seed=task.effort.seed,
            processes=task.effort.processes,
            progress=task.session.progress,
        )
        results.append((workload_task, findings))
        if task.effort.method == "events":
            measured_points = [
                point for point in workload_task.points if str(point) not in findings.skipped
            ]
            # Variants ran in few processes, so base runs in more to estimate its noise.
            measure_noise(
                task.controller,
                task.rows,
                workload_task.base,
                measured_points,
                rounds=task.effort.rounds,
                seed=task.effort.seed,
                declared=workload_task.declared,
                progress=task.session.progress,
            )
    times = _times(task, results)
    labels = [
        variant.variant for workload_task, _ in results[:1] for variant in workload_task.variants
    ]
    scored = {variant.variant: variant for variant in judged(times, labels)}
    failures = _failures(task, results)
    return MeasuredWorkload(
        benchmark=name,
        workload=dict(axes),
        variants=tuple(_variant_rows(task, scored, failures)),
        noise=tuple(noises(times)),
        score_noise=score_noise(times),
        skipped=tuple(
            SkippedPoint(point=runtime_axes(point.spot), reason=findings.skipped[str(point)])
            for workload_task, findings in results
            for point in workload_task.points
            if str(point) in findings.skipped
        ),
        repeated=sum(findings.repeated for _, findings in results),
        throttled=sum(findings.throttled for _, findings in results),
        restarts=task.controller.ended - restarts_before,
    )


def _workload_task(task: _MeasuringTask, run: WorkloadRun, unit: CompiledWorkload) -> WorkloadTask:
    base, *variants = unit.functions
    name = run.benchmark.name
    points = runtime_spots(run, unit.inputs, lambda values: is_meant(values, task.where))
    if not points:
        raise InputError(
            f"-a leaves no runtime workload of {name}",
            f"Its runtime axes are {', '.join(run.axes)}.",
        )
    return WorkloadTask(base, tuple(variants), tuple(points), declared_axes(run))


def _times(
    task: _MeasuringTask, results: Sequence[tuple[WorkloadTask, Findings]]
) -> list[PointTimes]:
    """Returns the database's times for the measured points, from this run and earlier ones."""
    spots = [
        point.spot
        for workload_task, findings in results
        for point in workload_task.points
        if str(point) not in findings.skipped
    ]
    declared = {
        key: values
        for workload_task, _ in results
        for key, values in workload_task.declared.items()
    }
    return times_of(task.rows, spots, declared)


def _failures(
    task: _MeasuringTask, results: Sequence[tuple[WorkloadTask, Findings]]
) -> dict[str, VariantFailure]:
    chosen = task.chosen
    failures: dict[str, tuple[FailureKind, str]] = {}
    for _, findings in results:
        failures |= {
            label: (failure.kind, failure.reason) for label, failure in findings.failed.items()
        }
    for unit in _successes(task.results):
        failures |= {label: ("compile", reason) for label, reason in unit.failed.items()}
    failures |= {label: ("invalid", reason) for label, reason in chosen.candidates.refused.items()}
    failures |= {label: ("invalid", reason) for label, reason in chosen.classified.refused.items()}
    failures |= dict.fromkeys(chosen.candidates.base, ("base", "it is what CUB selects"))
    return {
        label: VariantFailure(kind=kind, reason=reason)
        for label, (kind, reason) in failures.items()
    }


def _variant_rows(
    task: _MeasuringTask,
    scored: Mapping[str, MeasuredVariant],
    failures: Mapping[str, VariantFailure],
) -> Iterator[MeasuredVariant]:
    """Yields the requested variants. A variant with the same policy as another gets its score."""
    classified = task.chosen.classified
    stands_for = {**{label: label for label in classified.refused}, **classified.stands_for}
    # The kernel's file itself says which variants are invalid.
    is_kernel = isinstance(task.chosen.opened.meaning, KernelWorkload)
    refused = () if is_kernel else classified.refused
    distinct = (
        variant.label for variant in classified.distinct if not (is_kernel and variant.is_base)
    )
    drawn = (*distinct, *refused)
    for label in task.chosen.labels or drawn:
        representative = stands_for[label]
        if representative in scored:
            yield scored[representative].model_copy(update={"variant": label})
        else:
            yield MeasuredVariant(variant=label, failed=failures.get(representative))


def _successes(results: Sequence[CompiledWorkload | PolicygenError]) -> list[CompiledWorkload]:
    return [result for result in results if not isinstance(result, PolicygenError)]


def compile_time_part(where: Filter) -> Filter:
    """Returns the filter without constraints on runtime axes."""
    kept = tuple(text for text in where.axes if not _is_runtime(text.partition("=")[0]))
    return Filter(where.headers, where.regex, kept, where.archs)


def _is_runtime(axis: str) -> bool:
    """CCCL writes `T{ct}`, or the bare name, for compile-time axes."""
    return "{io}" in axis or "[" in axis


def is_meant(values: Mapping[str, str], where: Filter) -> bool:
    """Returns whether `-a` selects a runtime workload."""
    return all(
        values[axis] in accepted for axis, accepted in where.values.items() if axis in values
    )


PHASE = "profiling"


# Profiling variants of a custom kernel with ncu, after they are measured.


def profiler() -> Path:
    """Finds ncu. Raises before anything is measured if the kernel cannot be profiled."""
    if active_kernel() is None:
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
    units_by_point: Mapping[Point, Sequence[CompiledWorkload]],
    command: Sequence[str],
    keeps: Keeps,
) -> None:
    """Records the achieved occupancy of each variant on each runtime workload."""
    maker = active_kernel()
    assert maker is not None
    targets = [
        (spot, unit)
        for point, workload in chosen.items()
        for run, unit in zip(workload.opened.runs, units_by_point[point], strict=False)
        for spot in runtime_spots(run, unit.inputs, keeps)
    ]
    for index, (spot, unit) in enumerate(targets):
        if session.progress:
            session.progress(HowFar(PHASE, index, len(targets), (str(spot),)))
        base, *variants = unit.functions
        failed = rows.failed(spot.spot)
        runnable = tuple(variant for variant in variants if variant.variant not in failed)
        watched = WatchedWorkload(spot.case, base, runnable)
        result = achieved(tool, command, maker.functions, watched, held=True)
        rows.achieved(spot.spot, result.shares)
        if result.problem is not None:
            session.note(f"ncu tells nothing of {spot}: {result.problem}")


# Checking variants with compute-sanitizer, before they are measured.


def sanitized(
    session: Session,
    chosen: Mapping[Point, ChosenWorkload],
    units_by_point: Mapping[Point, Sequence[CompiledWorkload]],
    command: Sequence[str],
    keeps: Keeps,
    patience: float,
) -> dict[Point, dict[str, str]]:
    """Returns faulty variants by workload, checked on its smallest runtime workload."""
    tool = find_sanitizer(find_toolchain())
    targets = []
    for point, workload in chosen.items():
        for run, unit in zip(workload.opened.runs, units_by_point[point], strict=False):
            spots = runtime_spots(run, unit.inputs, keeps)
            if spots:
                smallest = min(spots, key=lambda spot: spot.case.axes)
                base, *variants = unit.functions
                targets.append((point, WatchedWorkload(smallest.case, base, tuple(variants))))
    workloads = [watched for _, watched in targets]
    reasons_by_target = sanitize(
        tool, command, workloads, patience=patience, progress=session.progress
    )
    problems: dict[Point, dict[str, str]] = {}
    for (point, _), reasons in zip(targets, reasons_by_target, strict=True):
        if BASE in reasons:
            raise InputError(f"base of {point[0]} must not run: {reasons[BASE]}")
        problems.setdefault(point, {}).update(reasons)
    return problems


# Facts recorded for a custom kernel besides the times of its variants.


def keep_kernel(rows: MeasuringSession) -> None:
    """Records what the numbers in labels stand for."""
    maker = active_kernel()
    if maker is None:
        return
    parameters = maker.given.every_parameter
    words = {label: parameter.words for label, parameter in parameters.items() if parameter.words}
    for name in maker.names:
        keep_words(rows.writer, name, words)
        keep_start(rows.writer, name, maker.name, as_label(maker.start))


def keep_bandwidth(rows: MeasuringSession, controller: Controller) -> None:
    """Measures the memory copy bandwidth once, for comparison with kernel times."""
    if active_kernel() is not None and (bandwidth := controller.bandwidth()) is not None:
        keep_peak(rows.writer, rows.number, bandwidth)
