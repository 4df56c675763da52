"""`policygen measure`: performance of variants next to base on a local GPU."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.doctor_measuring import examine_measuring, exit_status
from policygen.app.filters import Filter, parse_target
from policygen.app.measure import (
    PROCESSES,
    ROUNDS,
    Effort,
    measure_variants,
    native_arch,
)
from policygen.app.measure_checkout import measure_checkout
from policygen.app.measured_workloads import SEED, VariantsWanted, compile_variants, spaces_of
from policygen.cli.options import (
    arch_option,
    bench_option,
    cub_option,
    filter_options,
    output_options,
    start,
    with_own,
    workload_option,
)
from policygen.cli.output import Output
from policygen.cli.search_options import wait_option
from policygen.report.measure_views import print_compiled, print_measured
from policygen.report.plan_views import print_doctor

COUNT = click.IntRange(min=1)


@click.command()
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="LABEL",
    help="A variant to measure: ipt_16.tpb_256. Repeatable, or with commas.",
)
@click.option(
    "--count",
    type=COUNT,
    metavar="N",
    help="So many distinct variants of the search space, drawn by the seed.",
)
@click.option("--all", "everything", is_flag=True, help="All distinct variants of the space.")
@bench_option
@click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where rows are written, as CCCL's search has them; what is there is not measured again.",
)
@click.option(
    "--processes",
    type=COUNT,
    default=PROCESSES,
    show_default=True,
    help="Fresh processes: intervals are made over these.",
)
@click.option(
    "--rounds", type=COUNT, default=ROUNDS, show_default=True, help="Runs in each process."
)
@click.option(
    "--seed", type=int, default=SEED, show_default=True, help="Of the order, and of --count."
)
@click.option("--gpu", type=click.IntRange(min=0), default=0, show_default=True, help="Its number.")
@wait_option
@click.option("--jobs", type=COUNT, metavar="N", help="Compiles at once.  [default: as fit]")
@click.option("--sanitize", is_flag=True, help="Let compute-sanitizer look at each variant before.")
@click.option("--ncu", is_flag=True, help="Let ncu tell what occupancy a kernel of yours achieves.")
@click.option(
    "--method",
    type=click.Choice(["events", "nvbench"]),
    default="events",
    show_default=True,
    help="What times runs: events of CUDA, or NVBench's own samples.",
)
@click.option(
    "--benchmarks",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Measure this CCCL checkout's own benchmarks with NVBench; results are not compared.",
)
@click.option("--doctor", is_flag=True, help="Say what this machine can measure, and no more.")
@click.option(
    "--compile-only", is_flag=True, help="Compile the variants and count them; needs no GPU."
)
@partial(arch_option, text="What --compile-only compiles for.  [default: the GPU's own]")
@workload_option
@filter_options
@cub_option
@output_options
def measure(output: Output, *, compile_only: bool, doctor: bool, **given: Any) -> int:
    """Measures variants beside base on a GPU of this machine, and checks what they compute.

    Base and variants run in turn, in fresh processes, each with the results of base, or it is
    reported. A row is in the database as soon as it is known; the same command goes on where it
    was. The exit status is 1 when a variant fails, is wrong, or cannot be.
    """
    if doctor:
        checks = examine_measuring()
        output.show(checks, print_doctor)
        return exit_status(checks)
    selection = Filter((), given["regex"], given["axes"], ())
    labels = [label for text in given["variants"] for label in text.split(",") if label]
    base_only = not (labels or given["count"] or given["everything"] or compile_only)
    count = 0 if base_only else given["count"]
    requested = VariantsWanted(tuple(labels), count, given["seed"], spaces_of(given["benches"]))
    effort = Effort(
        processes=given["processes"],
        rounds=given["rounds"],
        seed=given["seed"],
        gpu=given["gpu"],
        slots=given["jobs"],
        patience=given["wait"],
        sanitize=given["sanitize"],
        ncu=given["ncu"],
        method=given["method"],
    )
    session = start(given["cub"], quiet=output.quiet)
    session, selection = with_own(session, given["workload"], selection)
    if given["benchmarks"] is not None:
        document = measure_checkout(
            given["benchmarks"],
            selection,
            labels,
            database=given["db"],
            effort=effort,
            progress=session.progress,
        )
        output.show(document, print_measured)
        return int(not document.is_fine)
    if compile_only:
        arch = parse_target(given["archs"] or [native_arch(effort.gpu)])
        spaces = compile_variants(session, selection, arch, requested, slots=effort.slots)
        output.show(spaces, print_compiled)
        return int(not spaces.is_fine)
    if base_only:
        session.note("no --variant is named: base alone is measured, and how noisy it is")
    document = measure_variants(session, selection, requested, database=given["db"], effort=effort)
    output.show(document, print_measured)
    return int(not document.is_fine)
