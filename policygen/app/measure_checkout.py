"""`policygen measure --benchmarks`: runs a checkout's own benchmarks the way CCCL's search does."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measured_workloads import Effort
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
from policygen.gpu.checkout_rounds import CheckoutTask, in_words, measure_programs
from policygen.gpu.compiling import (
    ObjectCompiler,
    ObjectSource,
    check_compiles,
    runtime_of,
    work_folder,
)
from policygen.gpu.control import controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.device import GpuFacts
from policygen.gpu.machine import find_gpu
from policygen.gpu.measured_rows import MeasuringSession, open_measurements
from policygen.gpu.rounds import Findings
from policygen.gpu.statistics import judged, noises, score_noise, times_of
from policygen.gpu.units import runner_text
from policygen.model.measured import (
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    SkippedPoint,
    VariantFailure,
)
from policygen.model.workload import axis_name, plain
from policygen.proof.compile import Listings
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.steps import Progress, whole


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
    effort = effort or Effort()
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
        about = About(toolchain.version, cccl, facts, "nvbench", effort.seed)
        path = database or folder / "measured.db"
        rows = stack.enter_context(open_measurements(path, about))
        rows.time("compiling", compile_seconds)
        workloads = []
        measuring = whole(progress) if len(builds) == 1 else progress
        for benchmark, workload, built in builds:
            if isinstance(built, PolicygenError):
                workloads.append(
                    MeasuredWorkload(
                        benchmark=benchmark.benchmark.name,
                        workload=plain(workload),
                        variants=(),
                        problem=built.in_line,
                    )
                )
                continue
            task = CheckoutTask(
                benchmark, workload, built, facts, _runtime_values(benchmark, where)
            )
            findings = measure_programs(
                task,
                rows,
                rounds=effort.processes,
                seed=effort.seed,
                patience=effort.patience,
                progress=measuring,
            )
            workloads.append(_summarize(task, rows, findings, labels))
        return MeasuredVariants(
            cub=opened.cub,
            arch=gpu.arch,
            toolchain=f"nvcc {toolchain.version}",
            driver=facts.driver,
            method="nvbench",
            processes=effort.processes,
            rounds=1,
            seed=effort.seed,
            database=None if database is None else str(database),
            workloads=tuple(workloads),
            seconds=time.monotonic() - started,
            compiling=compile_seconds,
            gpu=facts.label,
            ctk=toolchain.version,
            cccl=cccl,
        )


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


def _runtime_values(benchmark: CheckoutBenchmark, where: Filter) -> dict[str, list[str]]:
    """Returns the runtime axis values that `-a` selects."""
    ct_axes = {axis_name(axis) for axis in benchmark.benchmark.ct_axes}
    return {a: sorted(v) for a, v in where.values.items() if axis_name(a) not in ct_axes}


def _summarize(
    task: CheckoutTask, rows: MeasuringSession, findings: Findings, labels: Sequence[str]
) -> MeasuredWorkload:
    measured_spots = [spot for spot in task.spots if rows.times(spot)]
    times = times_of(rows, measured_spots, task.benchmark.declared)
    scored = {variant.variant: variant for variant in judged(times, labels)}
    failed = {
        **{
            label: VariantFailure(kind=failure.kind, reason=failure.reason)
            for label, failure in findings.failed.items()
        },
        **{
            label: VariantFailure(kind="compile", reason=reason)
            for label, reason in task.built.failed.items()
        },
    }
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
