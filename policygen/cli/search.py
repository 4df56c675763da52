"""`policygen search`: finds the best variants of workloads on a GPU of this machine."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.measure import PROCESSES, ROUNDS, Effort
from policygen.app.measure_variants import SEED, spaces_of
from policygen.app.search import SearchWanted, search_variants
from policygen.app.session import open_session
from policygen.cli.options import cub_option, filter_options, output_options
from policygen.cli.output import Output
from policygen.cli.progress import warn
from policygen.cli.result_options import bench_option
from policygen.errors import InputError
from policygen.report.searching import print_line, shown, telling
from policygen.report.views.search import print_searched

COUNT = click.IntRange(min=1)
BUDGET = "20m"
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """`90`, `90s`, `20m`, `1.5h`."""
    match = _BUDGET.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no time such as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


@click.command()
@click.option(
    "--budget",
    default=BUDGET,
    show_default=True,
    metavar="TIME",
    callback=seconds_of,
    help="Time for all workloads together, over all runs of the command: 90s, 20m, 1.5h.",
)
@click.option(
    "--strategy", metavar="NAME", help="How to search.  [default: as the space and budget allow]"
)
@click.option("--variants", type=COUNT, metavar="K", help="As many of each workload at most.")
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
    help="Fresh processes of the last rung: intervals are made over these.",
)
@click.option(
    "--rounds", type=COUNT, default=ROUNDS, show_default=True, help="Runs in each of those."
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Of all that is drawn.")
@click.option("--gpu", type=click.IntRange(min=0), default=0, show_default=True, help="Its number.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="As long for a GPU on which somebody measures.",
)
@click.option("--jobs", type=COUNT, metavar="N", help="Compiles at once.  [default: as fit]")
@filter_options
@cub_option
@output_options
def search(output: Output, **given: Any) -> int:
    """Finds the best variants of workloads on a GPU of this machine.

    All are tried where they are few; of spaces of billions what is near to good ones. Few samples
    tell who may win, more who stays, and fresh processes beside base, on samples that nothing was
    chosen by, what the finalists are worth. The same command goes on where it was.
    """
    if given["db"] is None:
        raise InputError("a search needs a database to write to", "Name one: --db run.db")
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    where = Filter((), given["regex"], given["axes"], ())
    wanted = SearchWanted(
        budget=given["budget"],
        strategy=given["strategy"],
        count=given["variants"],
        spaces=spaces_of(given["benches"]),
    )
    effort = Effort(
        processes=given["processes"],
        rounds=given["rounds"],
        seed=given["seed"],
        gpu=given["gpu"],
        slots=given["jobs"],
        patience=given["wait"],
    )
    with stop_asked() as asked:
        document = shown(
            teller,
            lambda: search_variants(
                session,
                where,
                wanted,
                given["db"],
                effort=effort,
                observer=teller,
                asked=lambda: bool(asked),
            ),
        )
    if output.as_json:
        print_line(document)
    else:
        print_searched(document, head=not output.quiet, verbose=output.verbose)
    return int(not document.is_fine)


@contextmanager
def stop_asked() -> Iterator[list[int]]:
    """Notes the first Ctrl-C, so that what runs is ended and written; the second ends at once."""
    asked: list[int] = []

    def note(number: int, _frame: object) -> None:
        if asked:
            signal.default_int_handler(number, None)
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
