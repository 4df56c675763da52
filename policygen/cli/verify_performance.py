"""`policygen verify-performance`: measures whether a change is faster as merged."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from policygen.app.filters import Filter
from policygen.app.measure import ROUNDS
from policygen.app.performance import MOST, PerformanceEffort
from policygen.app.performance import verify_performance as verify
from policygen.app.performance_files import compare_performance
from policygen.app.performance_narrow import narrow_plan
from policygen.cli.options import cub_option, filter_options, output_options, start, store_option
from policygen.cli.output import Out, Output
from policygen.cli.search_options import budget_option, wait_option
from policygen.report.performance_views import narrowed, print_performance

COUNT = click.IntRange(min=1)
OF_RESULTS = frozenset(
    {
        "before",
        "after",
        "regex",
        "axes",
        "tolerance",
        "as_json",
        "quiet",
        "verbose",
        "name",
        "force",
    }
)
"""Parameters that also apply to results measured elsewhere."""


@click.command("verify-performance")
@click.option(
    "--base",
    metavar="TREE",
    help="What to compare with: a git revision, a folder, or a fetched version."
    "  [default: what the last apply replaced, else HEAD]",
)
@click.option(
    "--header",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A header that emit or tune made: CUB with its selectors, beside CUB by itself.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All workloads of the headers that changed, not only those that the change can touch.",
)
@filter_options
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0, min_open=True),
    metavar="PERCENT",
    help="As much slower something may be.  [default: as far as the noise lets one see]",
)
@partial(
    budget_option,
    default="10m",
    text="Time for measuring; what was not measured then is not decided: 90s, 20m.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=2),
    default=MOST,
    show_default=True,
    help="Fresh processes at most; what is clear stops earlier.",
)
@click.option(
    "--rounds", type=COUNT, default=ROUNDS, show_default=True, help="Runs in each process."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where rows are written; what is there of the same change is not measured again.",
)
@click.option(
    "--entries",
    is_flag=True,
    help="Say of each entry what became of its workloads: which one carries the win or the loss.",
)
@click.option(
    "--narrow",
    metavar="FILE",
    help="Where something is slower, write the plan of the last apply without it: apply --plan.",
)
@click.option("--gpu", type=click.IntRange(min=0), default=0, show_default=True, help="Its number.")
@wait_option
@click.option("-j", "--jobs", type=COUNT, metavar="N", help="Compiles at once.  [default: as fit]")
@click.option(
    "--nvbench",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where NVBench's JSON of both sides is written, for nvbench_compare.py.",
)
@click.option(
    "--before",
    multiple=True,
    metavar="FILE",
    help="Compare results of NVBench (--json, --jsonbin) instead: one process of the side before."
    " Repeatable.",
)
@click.option(
    "--after",
    multiple=True,
    metavar="FILE",
    help="One process of the side after. Repeatable.",
)
@cub_option
@store_option
@output_options
def verify_performance(output: Output, **given: Any) -> int:
    """Measures a change as it is merged: what is faster on this GPU, and that nothing is slower.

    Workloads with other machine code run before and after the change in turn, in fresh processes,
    beside a copy of the side before, which tells how far equal code is from itself; results are
    compared. The exit status is 1 when something is slower, not decided, wrong, or less than the
    change claims.
    """
    tolerance = None if given["tolerance"] is None else given["tolerance"] / 100
    selection = Filter((), given["regex"], given["axes"], ())
    if given["before"] or given["after"]:
        _check_results(click.get_current_context(), given)
        document = compare_performance(
            given["before"], given["after"], selection, tolerance=tolerance
        )
        output.show(document, print_performance)
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
        base=given["base"],
        header=given["header"],
        everything=given["everything"],
        tolerance=tolerance,
        database=given["db"],
        effort=PerformanceEffort(
            processes=given["processes"],
            rounds=given["rounds"],
            seed=given["seed"],
            budget=given["budget"],
            gpu=given["gpu"],
            slots=given["jobs"],
            patience=given["wait"],
        ),
        nvbench=given["nvbench"],
    )
    output.show(document, partial(print_performance, entries=given["entries"]))
    if narrow.path is not None:
        plan = narrow_plan(session, document, base=given["base"])
        if plan is not None:
            narrow.write(plan.to_json())
        session.note(narrowed(plan, narrow.path))
    return int(not document.passes)


def _check_results(context: click.Context, given: Mapping[str, Any]) -> None:
    """Reject options for measuring if results are given."""
    if not (given["before"] and given["after"]):
        raise click.UsageError("--before and --after belong together: give each at least once")
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_given and option.name not in OF_RESULTS:
            raise click.UsageError(
                f"{option.opts[-1]} is for measuring, and --before and --after give results"
            )
