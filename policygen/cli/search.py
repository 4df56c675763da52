"""`policygen search`: finds the best variants of workloads, or replays a strategy."""

from functools import partial
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, tell_warnings
from policygen.app.measured_workloads import spaces_of
from policygen.app.own_workloads import with_workload
from policygen.app.search import (
    BATCH,
    DEFAULT,
    SAMPLES,
    STRATEGIES,
    Replaying,
    SearchWanted,
    replay_search,
    search_variants,
)
from policygen.app.session import open_session
from policygen.cli.options import (
    EXISTING_FILE,
    bench_option,
    cub_option,
    output_options,
    where_options,
    workload_option,
)
from policygen.cli.output import Output
from policygen.cli.progress import compile_progress, warn
from policygen.cli.search_options import (
    COUNT,
    budget_option,
    database_option,
    gpu_options,
    run_options,
    searching,
)
from policygen.errors import InputError
from policygen.report import search_views
from policygen.report.console import show
from policygen.report.progress import print_line, telling

NOTHING = "none"
"""Value of `--start` for no variant."""


@click.command()
@partial(budget_option, default="20m")
@database_option
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    help=f"Search strategy.  [default: {DEFAULT}]",
)
@click.option(
    "--variants",
    type=COUNT,
    metavar="K",
    help="Maximum number of variants per workload.  [default: all]",
)
@run_options
@click.option(
    "--start-db",
    "start_dbs",
    multiple=True,
    type=EXISTING_FILE,
    metavar="DB",
    help="Try the best variants of this database after the neighbors of base. Repeatable.",
)
@partial(gpu_options, effort_names=("processes", "rounds"))
@click.option(
    "--replay",
    "replays",
    multiple=True,
    metavar="DB",
    help="Test the strategy on recorded spaces; needs no GPU. Repeatable.",
)
@click.option(
    "--seeds", type=COUNT, metavar="N", help="With --replay: number of seeds, starting at --seed."
)
@click.option(
    "--batch",
    type=COUNT,
    metavar="N",
    help=f"With --replay: variants per batch.  [default: {BATCH}]",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"With --replay: samples per score that the strategy sees; 0: all.  [default: {SAMPLES}]",
)
@click.option(
    "--start",
    "starts",
    multiple=True,
    metavar="LABEL",
    help="Start with this variant; with --replay, only with it. Repeatable.  [default: CUB's own"
    " values here and for other types; for a replay, those that the database names]",
)
@bench_option
@workload_option
@where_options
@cub_option
@output_options
def search(selection: Filter, output: Output, replays: tuple[str, ...], **given: Any) -> int:
    """Search for the best variants on a GPU.

    The neighbors of base come first, then those of the best. A first sample drops bad variants,
    more samples select, and finalists run next to base in fresh processes, on samples that no
    selection has used. The same command resumes.

    A replay tests a strategy on a recorded space: the strategy sees scores of a few samples, and
    the output shows scores of all samples.
    """
    if replays:
        return _replay(selection, output, replays, given)
    if given["database"] is None:
        raise InputError(
            "a search needs a database to write to",
            "Name one: --db run.db; --replay DB tries strategies without a GPU.",
        )
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    session, selection = with_workload(session, given["workload"], selection)
    request = SearchWanted(
        budget=given["budget"],
        strategy=given["strategy"],
        count=given["variants"],
        spaces=spaces_of(given["benches"]),
        starts=tuple(label for label in given["starts"] if label != NOTHING),
        earlier=given["start_dbs"],
    )
    with searching(teller) as stop_requested:
        document = search_variants(
            session,
            selection,
            request,
            given["database"],
            effort=given["effort"],
            machines=given["machines"],
            observer=teller,
            stop_requested=stop_requested,
        )
    if output.as_json:
        print_line(document)
    else:
        show(search_views.searched(document, head=not output.quiet, verbose=output.verbose))
    return int(not document.is_fine)


def _replay(
    selection: Filter, output: Output, replays: tuple[str, ...], given: dict[str, Any]
) -> int:
    """`search --replay`."""
    names = ("strategy", "variants", "seeds", "batch", "samples")
    chosen = {name: given[name] for name in names if given[name] is not None}
    chosen["seed"] = given["effort"].seed
    if given["starts"]:
        chosen["starts"] = tuple(label for label in given["starts"] if label != NOTHING)
    replaying = Replaying(**chosen)
    document = replay_search(
        ResultFiles(replays, given["benches"], where=selection),
        replaying,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, search_views.replayed)
    tell_warnings(document.warnings, warn)
    return 0
