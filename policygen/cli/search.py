"""`policygen search`: finds the best variants of workloads, or replays a strategy."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.measure import PROCESSES, ROUNDS
from policygen.app.measured_workloads import spaces_of
from policygen.app.search import SearchWanted, search_variants
from policygen.app.search_replay import (
    BATCH,
    DEFAULT,
    NAMES,
    SAMPLES,
    Replaying,
    replay_search,
)
from policygen.app.session import open_session, tell_warnings
from policygen.cli.options import (
    bench_option,
    cub_option,
    filter_options,
    output_options,
    with_own,
    workload_option,
)
from policygen.cli.output import Output
from policygen.cli.progress import compile_progress, warn
from policygen.cli.search_options import (
    COUNT,
    budget_option,
    effort_of,
    gpu_options,
    machines_of,
    stop_on_interrupt,
)
from policygen.errors import InputError
from policygen.report.progress import print_line, shown, telling
from policygen.report.search_views import print_replay, print_searched

NOTHING = "none"
"""Value of `--start` for no variant."""


@click.command()
@partial(budget_option, default="20m")
@click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where rows are written, as CCCL's search has them; what is there is not measured again.",
)
@click.option(
    "--strategy",
    type=click.Choice(NAMES),
    help="What chooses variants.  [default: exhaustive where that fits into half of the budget,"
    f" else {DEFAULT}]",
)
@click.option(
    "--variants", type=COUNT, metavar="K", help="As many of each workload at most.  [default: all]"
)
@click.option(
    "--processes",
    type=COUNT,
    default=PROCESSES,
    show_default=True,
    help="Fresh processes of the last rung: intervals are made over these.",
)
@click.option(
    "--rounds", type=COUNT, default=ROUNDS, show_default=True, help="Runs in each of those at most."
)
@click.option(
    "--compile-beside",
    "beside",
    is_flag=True,
    help="Compile a batch while another is screened: what is tried next knows less then.",
)
@click.option(
    "--start-db",
    "start_dbs",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="DB",
    help="Try the best variants of this database first. Repeatable.",
)
@gpu_options
@click.option(
    "--replay",
    "replays",
    multiple=True,
    metavar="DB",
    help="Try the strategy on the spaces of this database; needs no GPU. Repeatable.",
)
@click.option(
    "--seeds", type=COUNT, metavar="N", help="With --replay: so many seeds, from --seed on."
)
@click.option(
    "--batch",
    type=COUNT,
    metavar="N",
    help=f"With --replay: variants that are asked for at once.  [default: {BATCH}]",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --replay: samples by which the strategy is told scores; 0: what was recorded."
    f"  [default: {SAMPLES}]",
)
@click.option(
    "--start",
    "starts",
    multiple=True,
    metavar="LABEL",
    help="Begin with this variant, too; with --replay with it alone, or with none. Repeatable."
    "  [default: what CUB selects here and for other types; of a replay what the database names]",
)
@bench_option
@workload_option
@filter_options
@cub_option
@output_options
def search(output: Output, replays: tuple[str, ...], **given: Any) -> int:
    """Finds the best variants of workloads on a GPU of this machine.

    All are tried where they are few; of spaces of billions what is near to good ones. Few samples
    tell who may win, more who stays, and fresh processes beside base, on samples that nothing was
    chosen by, what the finalists are worth. The same command goes on where it was.

    A replay asks a strategy for variants and tells it what a database has of them: a few samples,
    drawn by the seed. What is shown is the score by all samples.
    """
    if replays:
        return _replay(output, replays, given)
    if given["db"] is None:
        raise InputError(
            "a search needs a database to write to",
            "Name one: --db run.db; --replay DB tries strategies without a GPU.",
        )
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    selection = Filter((), given["regex"], given["axes"], ())
    session, selection = with_own(session, given["workload"], selection)
    request = SearchWanted(
        budget=given["budget"],
        strategy=given["strategy"],
        count=given["variants"],
        spaces=spaces_of(given["benches"]),
        beside=given["beside"],
        starts=tuple(label for label in given["starts"] if label != NOTHING),
        earlier=given["start_dbs"],
    )
    with stop_on_interrupt() as stop_requests:
        document = shown(
            teller,
            lambda: search_variants(
                session,
                selection,
                request,
                given["db"],
                effort=effort_of(given),
                machines=machines_of(given),
                observer=teller,
                stop_requested=lambda: bool(stop_requests),
            ),
        )
    if output.as_json:
        print_line(document)
    else:
        print_searched(document, head=not output.quiet, verbose=output.verbose)
    return int(not document.is_fine)


def _replay(output: Output, replays: tuple[str, ...], given: dict[str, Any]) -> int:
    """`search --replay`."""
    selection = Filter(regex=given["regex"], axes=given["axes"])
    names = ("strategy", "variants", "seed", "seeds", "batch", "samples")
    chosen = {name: given[name] for name in names if given[name] is not None}
    if given["starts"]:
        chosen["starts"] = tuple(label for label in given["starts"] if label != NOTHING)
    replaying = Replaying(**chosen)
    document = replay_search(
        ResultFiles(replays, given["benches"], where=selection),
        replaying,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, print_replay)
    tell_warnings(document.warnings, warn)
    return 0
