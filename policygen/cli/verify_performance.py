"""`policygen verify-performance`: measures whether a change is faster as merged."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from policygen.app.filters import Filter
from policygen.app.performance import MOST, PerformanceEffort, compare_performance, narrow_plan
from policygen.app.performance import verify_performance as verify
from policygen.cli.options import (
    EXISTING_FILE,
    FOLDER,
    base_option,
    combined,
    cub_option,
    flag,
    number,
    option,
    output_options,
    repeated,
    start,
    store_option,
    where_options,
)
from policygen.cli.output import Out, Output
from policygen.cli.search_options import (
    budget_option,
    database_option,
    gpu_option,
    jobs_option,
    run_options,
    wait_option,
)
from policygen.report import performance_views
from policygen.report.performance_views import narrowed

EFFORT = ("processes", "rounds", "seed", "budget", "gpu", "slots", "patience")
OF_RESULTS = frozenset(
    {
        *("before", "after", "regex", "axes", "tolerance"),
        *("as_json", "quiet", "verbose", "name", "force"),
    }
)
"""Parameters that also apply to results measured elsewhere."""


@click.command("verify-performance")
@base_option()
@option(
    "--header",
    "FILE",
    "Measure this header, made by emit or tune, against CUB's own policies.",
    type=EXISTING_FILE,
)
@flag(
    "--all",
    "Measure all workloads of changed headers, not only those that the change can reach.",
    to="everything",
)
@where_options
@option(
    "--tolerance",
    "PERCENT",
    "Allowed slowdown.  [default: the resolution of the measurement]",
    type=click.FloatRange(min=0, min_open=True),
)
@budget_option("10m", text="Time limit for measuring: 90s, 20m. The rest is undecided.")
@run_options(
    processes=MOST, least=2, text="Maximum number of fresh processes; clear results stop earlier."
)
@number("--seed", int, "Random seed for the order of runs.", default=1)
@database_option("The database for measurements. Rows of the same change are not measured again.")
@flag("--entries", "Show which entry carries the gain or loss.")
@option("--narrow", "FILE", "Write the last apply's plan without its losses, for `apply --plan`.")
@gpu_option
@wait_option
@jobs_option("-j")
@option(
    "--nvbench",
    "DIR",
    "Folder for NVBench JSON of both sides, for nvbench_compare.py.",
    type=FOLDER,
)
@repeated(
    "--before",
    "FILE",
    "Compare NVBench results (--json, --jsonbin) instead: one process before the change."
    " Repeatable.",
)
@repeated("--after", "FILE", "One process after the change. Repeatable.")
@cub_option
@store_option
@output_options
@combined("effort", PerformanceEffort, *EFFORT)
def verify_performance(
    selection: Filter, output: Output, effort: PerformanceEffort, **given: Any
) -> int:
    """Measure a change before and after on a GPU.

    Workloads whose machine code differs run before and after the change in turn, in fresh
    processes, beside a copy of the old code that shows the noise of equal code. Results are
    compared. Exit status 1 means that something is slower, undecided, wrong, or below the
    change's claim.
    """
    tolerance = None if given["tolerance"] is None else given["tolerance"] / 100
    if given["before"] or given["after"]:
        _check_results(click.get_current_context(), given)
        document = compare_performance(
            given["before"], given["after"], selection, tolerance=tolerance
        )
        output.show(document, performance_views.performance)
        return int(not document.passes)
    if given["header"] is not None:
        for name in ("base", "everything", "entries", "narrow"):
            if given[name]:
                option = {"everything": "all"}.get(name, name)
                raise click.UsageError(f"--{option} is for headers of a tree, not for --header.")
    narrow = Out.chosen(given["narrow"], force=False)
    session = start(given["cub"], given["store"], whole=True, quiet=output.quiet)
    document = verify(
        session,
        selection,
        **{name: given[name] for name in ("base", "header", "everything", "database", "nvbench")},
        tolerance=tolerance,
        effort=effort,
    )
    output.show(document, partial(performance_views.performance, entries=given["entries"]))
    if narrow.path is not None:
        plan = narrow_plan(session, document, base=given["base"])
        if plan is not None:
            narrow.write(plan.to_json())
        session.note(narrowed(plan, narrow.path))
    return int(not document.passes)


def _check_results(context: click.Context, given: Mapping[str, Any]) -> None:
    if not (given["before"] and given["after"]):
        raise click.UsageError("--before and --after belong together: give each at least once")
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in OF_RESULTS:
            raise click.UsageError(
                f"{parameter.opts[-1]} is for measuring, and --before and --after give results"
            )
