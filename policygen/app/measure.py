"""`policygen measure`: measures named variants against base on a GPU of this machine.

With `--benchmarks`, it runs a checkout's own benchmarks the way CCCL's search does.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measured_workloads import (
    ChosenWorkload,
    Effort,
    VariantsWanted,
    check_runtime_axes,
    choose_lot,
    chosen_workloads,
    compile_lot,
)
from policygen.app.session import Session, check_serves
from policygen.bindings.own_kernels import kernel_of
from policygen.errors import InputError, PolicygenError
from policygen.gpu.checkout import (
    BenchmarkCheckout,
    BuiltPrograms,
    CheckoutBenchmark,
    ProgramCompiler,
    build_programs,
    find_library,
    open_checkout,
)
from policygen.gpu.checkout_rounds import (
    CRITERION,
    CheckoutTask,
    NvbenchController,
    in_words,
    measure_programs,
)
from policygen.gpu.compiling import (
    CompiledWorkload,
    ObjectCompiler,
    ObjectSource,
    check_compiles,
    runtime_of,
    work_folder,
)
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About, RowSpot
from policygen.gpu.device import Failure, GpuFacts
from policygen.gpu.machine import find_gpu
from policygen.gpu.measured_rows import MeasuringSession, keep_rows, keep_words, open_measurements
from policygen.gpu.opened import KernelWorkload
from policygen.gpu.rounds import (
    Findings,
    Keeps,
    WorkloadTask,
    declared_axes,
    measure_noise,
    measure_workload,
    runtime_spots,
)
from policygen.gpu.statistics import judged, noises, score_noise, times_of
from policygen.gpu.tools import WatchedWorkload, achieved, find_profiler, find_sanitizer, sanitize
from policygen.gpu.units import runner_text
from policygen.model.measured import (
    FailureKind,
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    SkippedPoint,
    VariantFailure,
)
from policygen.model.trees import Cub
from policygen.model.workload import BASE, Point, as_label, axis_name, plain, point_of
from policygen.proof.compile import Listings
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.results.own_tables import KERNELS, PEAKS
from policygen.steps import HowFar, Progress, whole


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
    tool = profiler(session.cub) if effort.ncu else None
    started = time.monotonic()
    check_runtime_axes(session, where, chosen_workloads(session, where.compile_time))
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    selected, refused = choose_lot(session, where.compile_time, gpu.arch, options)
    if sum(len(workload.opened.runs) for workload in selected.values()) == 1:
        session = replace(session, progress=whole(session.progress))
    cccl = f"v{session.cub.version}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        compiled_units = compile_lot(session, selected, compiler, effort.slots)
        compile_seconds = time.monotonic() - started
        workloads = [
            MeasuredWorkload.of(point, variants=(), problem=reason)
            for point, reason in refused.items()
        ]
        label, driver = gpu.name, gpu.driver
        if runners := [
            unit.runner for results in compiled_units.values() for unit in _successes(results)
        ]:
            runtime = runtime_of(toolchain)
            command = worker_command(effort.gpu, runners[0], runtime)
            successes = {point: _successes(results) for point, results in compiled_units.items()}
            unsafe_by_point = (
                sanitized(session, selected, successes, command, where.accepts, effort.patience)
                if effort.sanitize
                else {}
            )
            kind = Controller
            if effort.method == "nvbench":
                kind, command = NvbenchController, (*command, "nvbench", *CRITERION)
            controller = stack.enter_context(
                controlling(command, kind=kind, patience=effort.patience)
            )
            facts = controller.facts
            label, driver = facts.label, facts.driver
            about = About(toolchain.version, cccl, facts, effort.method, effort.seed)
            path = database or folder / "measured.db"
            rows = stack.enter_context(open_measurements(path, about))
            rows.time("compiling", compile_seconds)
            keep_kernel(rows, session.cub)
            for point, chosen in selected.items():
                unsafe = unsafe_by_point.get(point, {})
                task = _MeasuringTask(
                    session, controller, rows, chosen, compiled_units[point], where, effort, unsafe
                )
                workloads.append(_measure_chosen(task, point))
            keep_bandwidth(rows, controller, session.cub)
            if tool is not None:
                # ncu starts its own process, which does not use NVBench.
                plain = worker_command(effort.gpu, runners[0], runtime)
                with controller.aside():
                    keep_achieved(tool, session, rows, selected, successes, plain, where.accepts)
        seconds = compile_seconds, time.monotonic() - started
        card = gpu.arch, label, driver
        return _document(session.cub, toolchain, effort, card, database, workloads, seconds)


def _document(
    cub: Cub,
    toolchain: Toolchain,
    effort: Effort,
    card: tuple[str, str, str],
    database: Path | None,
    workloads: Sequence[MeasuredWorkload],
    seconds: tuple[float, float],
) -> MeasuredVariants:
    """Builds the document; `card` is architecture, GPU and driver."""
    arch, gpu, driver = card
    return MeasuredVariants(
        cub=cub,
        toolchain=f"nvcc {toolchain.version}",
        ctk=toolchain.version,
        cccl=f"v{cub.version}",
        method=effort.method,
        processes=effort.processes,
        rounds=effort.rounds,
        seed=effort.seed,
        arch=arch,
        gpu=gpu,
        driver=driver,
        database=None if database is None else str(database),
        workloads=tuple(workloads),
        compiling=seconds[0],
        seconds=seconds[1],
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


def _measure_chosen(task: _MeasuringTask, point: Point) -> MeasuredWorkload:
    problems = [result.in_line for result in task.results if isinstance(result, PolicygenError)]
    if problems:
        return MeasuredWorkload.of(point, variants=(), problem=problems[0])
    restarts_before = task.controller.ended
    results: list[tuple[WorkloadTask, Findings]] = []
    spots: list[RowSpot] = []
    declared: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for run, unit in zip(task.chosen.opened.runs, _successes(task.results), strict=True):
        base, *variants = unit.functions
        points = tuple(runtime_spots(run, unit.inputs, task.where.accepts))
        workload_task = WorkloadTask(base, tuple(variants), points, declared_axes(run))
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
        measured_points = [
            point for point in workload_task.points if str(point) not in findings.skipped
        ]
        spots += [point.spot for point in measured_points]
        declared |= workload_task.declared
        if task.effort.method == "events":
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
    times = times_of(task.rows, spots, declared)  # from this run and earlier ones
    labels = [
        variant.variant for workload_task, _ in results[:1] for variant in workload_task.variants
    ]
    scored = {variant.variant: variant for variant in judged(times, labels)}
    failures = _failures(task, results)
    return MeasuredWorkload.of(
        point,
        variants=tuple(_variant_rows(task, scored, failures)),
        noise=tuple(noises(times)),
        score_noise=score_noise(times),
        skipped=tuple(
            SkippedPoint(point=point.spot.runtime_axes, reason=findings.skipped[str(point)])
            for workload_task, findings in results
            for point in workload_task.points
            if str(point) in findings.skipped
        ),
        repeated=sum(findings.repeated for _, findings in results),
        throttled=sum(findings.throttled for _, findings in results),
        restarts=task.controller.ended - restarts_before,
    )


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


PHASE = "profiling"


# Profiling variants of a custom kernel with ncu, after they are measured.


def profiler(cub: Cub) -> Path:
    """Finds ncu. Raises before anything is measured if the kernel cannot be profiled."""
    if kernel_of(cub) is None:
        raise InputError(
            "--ncu works only for your own kernels: a CUB call launches several",
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
    maker = kernel_of(session.cub)
    assert maker is not None
    targets = [
        (spot, unit)
        for point, workload in chosen.items()
        for run, unit in zip(workload.opened.runs, units_by_point[point], strict=False)
        for spot in runtime_spots(run, unit.inputs, keeps)
    ]
    for index, (spot, unit) in enumerate(targets):
        if session.progress:
            session.progress(HowFar(PHASE, index, len(targets), (str(spot),), is_whole=True))
        base, *variants = unit.functions
        failed = rows.failed(spot.spot)
        runnable = tuple(variant for variant in variants if variant.variant not in failed)
        watched = WatchedWorkload(spot.case, base, runnable)
        result = achieved(tool, command, maker.functions, watched, held=True)
        if isinstance(result, str):
            session.note(f"ncu reports nothing about {spot}: {result}")
        else:
            rows.achieved(spot.spot, result)


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
            raise InputError(f"base of {point[0]} cannot run: {reasons[BASE]}")
        problems.setdefault(point, {}).update(reasons)
    return problems


# Facts recorded for a custom kernel besides the times of its variants.


def keep_kernel(rows: MeasuringSession, cub: Cub) -> None:
    """Records what the numbers in labels stand for."""
    maker = kernel_of(cub)
    if maker is None:
        return
    parameters = maker.given.every_parameter
    words = {label: parameter.words for label, parameter in parameters.items() if parameter.words}
    for name in maker.names:
        keep_words(rows.writer, name, words)
        keep_rows(rows.writer, KERNELS, [(name, maker.name, as_label(maker.start))])


def keep_bandwidth(rows: MeasuringSession, controller: Controller, cub: Cub) -> None:
    """Measures the memory copy bandwidth once, for comparison with kernel times."""
    if kernel_of(cub) is not None and (bandwidth := controller.bandwidth()) is not None:
        keep_rows(rows.writer, PEAKS, [(rows.number, bandwidth)])


# `--benchmarks`: programs of base and variants, run in turn.


def measure_checkout(
    checkout: Path,
    where: Filter,
    labels: Sequence[str],
    *,
    database: Path | None = None,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> MeasuredVariants:
    """Builds programs of base and variants, and runs them in turn, without verifying results."""
    effort = replace(effort or Effort(), method="nvbench", rounds=1)
    started = time.monotonic()
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    library = find_library(toolchain)
    opened = open_checkout(checkout, where.pattern)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        facts = _facts(toolchain, gpu.arch, folder, effort)
        compiler = ProgramCompiler(toolchain, library, opened, gpu.arch, folder)
        builds = list(_build(opened, compiler, where, labels, effort, progress))
        compile_seconds = time.monotonic() - started
        cccl = f"v{opened.cub.version}"
        about = About(toolchain.version, cccl, facts, effort.method, effort.seed)
        path = database or folder / "measured.db"
        rows = stack.enter_context(open_measurements(path, about))
        rows.time("compiling", compile_seconds)
        workloads = []
        measuring = whole(progress) if len(builds) == 1 else progress
        for benchmark, workload, built in builds:
            if isinstance(built, PolicygenError):
                point = point_of(benchmark.benchmark.name, plain(workload))
                workloads.append(MeasuredWorkload.of(point, variants=(), problem=built.in_line))
                continue
            ct_axes = {axis_name(axis) for axis in benchmark.benchmark.ct_axes}
            rt_values = {
                a: sorted(v) for a, v in where.values.items() if axis_name(a) not in ct_axes
            }
            task = CheckoutTask(benchmark, workload, built, facts, rt_values)
            findings = measure_programs(
                task,
                rows,
                rounds=effort.processes,
                seed=effort.seed,
                patience=effort.patience,
                progress=measuring,
            )
            workloads.append(_summarize(task, rows, findings, labels))
        seconds = compile_seconds, time.monotonic() - started
        card = gpu.arch, facts.label, facts.driver
        return _document(opened.cub, toolchain, effort, card, database, workloads, seconds)


def _facts(toolchain: Toolchain, arch: str, folder: Path, effort: Effort) -> GpuFacts:
    """Queries the GPU's facts from a worker, and releases the GPU."""
    compiler = ObjectCompiler(toolchain, folder, Listings())
    runner = compiler.make(ObjectSource(runner_text(), (), arch))
    command = worker_command(effort.gpu, runner, runtime_of(toolchain))
    with controlling(command, patience=effort.patience) as controller:
        return controller.facts


_Build = tuple[CheckoutBenchmark, Mapping[str, str], BuiltPrograms | PolicygenError]


def _build(
    opened: BenchmarkCheckout,
    compiler: ProgramCompiler,
    where: Filter,
    labels: Sequence[str],
    effort: Effort,
    progress: Progress | None,
) -> Iterator[_Build]:
    for benchmark in opened.benchmarks.values():
        for workload in _workloads(benchmark, where):
            try:
                built: BuiltPrograms | PolicygenError = build_programs(
                    compiler, benchmark, workload, labels, slots=effort.slots, progress=progress
                )
            except PolicygenError as error:
                built = error
            yield benchmark, workload, built


def _workloads(benchmark: CheckoutBenchmark, where: Filter) -> Iterator[dict[str, str]]:
    """Yields the compile-time axis values that `-a` selects."""
    selected = {axis_name(axis): values for axis, values in where.values.items()}
    remaining = {
        axis: tuple(v for v in values if v in selected.get(axis_name(axis), {v}))
        for axis, values in benchmark.benchmark.ct_axes.items()
    }
    for axis, values in remaining.items():
        if not values:
            name = benchmark.benchmark.name
            raise InputError(f"-a leaves no value of {axis_name(axis)} of {name}")
    for values in product(*remaining.values()):
        yield dict(zip(remaining, values, strict=True))


def _summarize(
    task: CheckoutTask, rows: MeasuringSession, findings: Findings, labels: Sequence[str]
) -> MeasuredWorkload:
    measured_spots = [spot for spot in task.spots if rows.times(spot)]
    times = times_of(rows, measured_spots, task.benchmark.declared)
    scored = {variant.variant: variant for variant in judged(times, labels)}
    failed = {
        label: VariantFailure(kind=failure.kind, reason=failure.reason)
        for label, failure in findings.failed.items()
    }
    for label, reason in task.built.failed.items():
        failed[label] = VariantFailure(kind="compile", reason=reason)
    return MeasuredWorkload(
        benchmark=task.name,
        workload=plain(task.workload),
        variants=tuple(
            scored.get(label) or MeasuredVariant(variant=label, failed=failed.get(label))
            for label in labels
        ),
        noise=tuple(noises(times)),
        score_noise=score_noise(times),
        skipped=tuple(
            SkippedPoint(point=spot.runtime_axes, reason=findings.skipped[in_words(spot)])
            for spot in task.spots
            if in_words(spot) in findings.skipped
        ),
    )
