"""`policygen search`: the best variants of workloads, or how a strategy finds them."""

from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.notes import tell_warnings
from policygen.app.search_replay import (
    BATCH,
    DEFAULT,
    NAMES,
    SAMPLES,
    Replaying,
    replay_search,
)
from policygen.cli.options import filter_options, output_options
from policygen.cli.output import Output
from policygen.cli.progress import compile_progress, warn
from policygen.cli.result_options import bench_option
from policygen.errors import InputError
from policygen.report.views.replay import print_replay

NOTHING = "none"
"""To begin with."""
COUNT = click.IntRange(min=1)


@click.command()
@click.option(
    "--replay",
    "replays",
    multiple=True,
    metavar="DB",
    help="Try the strategy on the spaces of this database; needs no GPU. Repeatable.",
)
@click.option(
    "--strategy",
    type=click.Choice(NAMES),
    help=f"What chooses variants.  [default: {DEFAULT}]",
)
@click.option("--variants", type=COUNT, metavar="K", help="Variants at most.  [default: all]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of what is drawn.")
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
    help="With --replay: begin with this variant; none: with nothing. Repeatable."
    "  [default: what the database names, and nothing for random]",
)
@bench_option
@filter_options
@output_options
def search(output: Output, replays: tuple[str, ...], **given: Any) -> int:
    """Finds the best variants of workloads; --replay tries a strategy on what was measured.

    A replay asks a strategy for variants and tells it what a database has of them: a few samples,
    drawn by the seed. What is shown is the score by all samples.
    """
    if not replays:
        raise InputError(
            "a search on a GPU is not there yet",
            "policygen measure --all measures a space; --replay DB tries a strategy on one.",
        )
    return _replay(output, replays, given)


def _replay(output: Output, replays: tuple[str, ...], given: dict[str, Any]) -> int:
    """`search --replay`."""
    where = Filter(regex=given["regex"], axes=given["axes"])
    names = ("strategy", "variants", "seed", "seeds", "batch", "samples")
    chosen = {name: given[name] for name in names if given[name] is not None}
    if given["starts"]:
        chosen["starts"] = tuple(one for one in given["starts"] if one != NOTHING)
    how = Replaying(**chosen)
    document = replay_search(
        ResultFiles(replays, given["benches"], where=where),
        how,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, print_replay)
    tell_warnings(document.warnings, warn)
    return 0
