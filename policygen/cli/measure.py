"""`policygen measure`: performance of variants next to base on a local GPU."""

from pathlib import Path
from typing import Any

import click

from policygen.app.doctor import examine_measuring, measuring_status
from policygen.app.filters import Filter, parse_target
from policygen.app.measure import measure_checkout, measure_variants, native_arch
from policygen.app.measured_workloads import (
    SEED,
    Effort,
    VariantsWanted,
    compile_variants,
    spaces_of,
)
from policygen.app.own_workloads import with_workload
from policygen.cli.options import (
    arch_option,
    bench_option,
    choice,
    combined,
    cub_option,
    flag,
    number,
    option,
    output_options,
    repeated,
    start,
    where_options,
    workload_option,
)
from policygen.cli.output import Output
from policygen.cli.search_options import (
    COUNT,
    database_option,
    gpu_option,
    jobs_option,
    run_options,
    wait_option,
)
from policygen.report import measure_views, plan_views

EFFORT = ("processes", "rounds", "seed", "gpu", "slots", "patience", "sanitize", "ncu", "method")


@click.command()
@repeated(
    "--variant",
    "LABEL",
    "A variant to measure: ipt_16.tpb_256. Repeatable, or separated by commas.",
    to="variants",
)
@option("--count", "N", "Number of distinct variants to draw from the search space.", type=COUNT)
@flag("--all", "Measure all distinct variants of the search space.", to="everything")
@bench_option
@database_option()
@run_options()
@number("--seed", int, "Random seed for the order of runs and for --count.", default=SEED)
@gpu_option
@wait_option
@jobs_option()
@flag("--sanitize", "Run compute-sanitizer on each variant first.")
@flag("--ncu", "Measure the achieved occupancy of your kernel with ncu.")
@choice(
    "--method", ["events", "nvbench"], "How runs are timed: CUDA events, or NVBench's own samples."
)
@option(
    "--benchmarks",
    "DIR",
    "Measure this CCCL checkout's benchmarks with NVBench; results are not compared.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@flag("--doctor", "List what this machine can measure and what is missing, and exit.")
@flag("--compile-only", "Compile and count the variants; needs no GPU.")
@arch_option("Target of --compile-only.  [default: the GPU's architecture]")
@workload_option
@where_options
@cub_option
@output_options
@combined("effort", Effort, *EFFORT)
def measure(
    selection: Filter,
    output: Output,
    *,
    effort: Effort,
    compile_only: bool,
    doctor: bool,
    **given: Any,
) -> int:
    """Time given variants against CUB's defaults.

    Base and variants run in turn, in fresh processes, and results are compared. Rows are written
    as soon as they are known, and the same command resumes. Exit status 1 means that a variant
    failed, is wrong, or is not possible.
    """
    if doctor:
        checks = examine_measuring()
        output.show(checks, plan_views.doctor)
        return measuring_status(checks)
    labels = [label for text in given["variants"] for label in text.split(",") if label]
    base_only = not (labels or given["count"] or given["everything"] or compile_only)
    count = 0 if base_only else given["count"]
    requested = VariantsWanted(tuple(labels), count, effort.seed, spaces_of(given["benches"]))
    session = start(given["cub"], quiet=output.quiet)
    session, selection = with_workload(session, given["workload"], selection)
    if given["benchmarks"] is not None:
        document = measure_checkout(
            given["benchmarks"],
            selection,
            labels,
            database=given["database"],
            effort=effort,
            progress=session.progress,
        )
        output.show(document, measure_views.measured)
        return int(not document.is_fine)
    if compile_only:
        arch = parse_target(given["archs"] or [native_arch(effort.gpu)])
        spaces = compile_variants(session, selection, arch, requested, slots=effort.slots)
        output.show(spaces, measure_views.compiled_spaces)
        return int(not spaces.is_fine)
    if base_only:
        session.note("no --variant is given: only base and its noise are measured")
    document = measure_variants(
        session, selection, requested, database=given["database"], effort=effort
    )
    output.show(document, measure_views.measured)
    return int(not document.is_fine)
