"""`policygen tune`: the short way from a GPU to a header that makes a program faster."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.search import SearchWanted
from policygen.app.session import open_session
from policygen.app.tune import TunedHeader, tune_program
from policygen.cli.options import cub_option, filter_options, out_option, output_options
from policygen.cli.output import Out, Output
from policygen.cli.progress import warn
from policygen.cli.search_options import (
    budget_option,
    effort_of,
    gpu_options,
    machines_of,
    stop_asked,
)
from policygen.report.searching import print_line, shown, telling
from policygen.report.views.tune import print_tuned


@click.command()
@partial(budget_option, default="10m")
@partial(out_option, text="The header to write.", required=True)
@click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where measurements are kept.  [default: the header's name with .db]",
)
@click.option("--namespace", metavar="NAME", help="Of the selectors.  [default: the header's name]")
@gpu_options
@filter_options
@cub_option
@partial(output_options, own=True)
def tune(out: Out, output: Output, **given: Any) -> int:
    """Finds faster policies for workloads on this GPU, and writes a header that gives them to CUB.

    It searches, lets the finalists run again beside what CUB selects, and writes those that are
    faster, as policy selectors for CUB's public API; the compiler shows what the header does. Where
    nothing is faster there is no header, and the exit status is 1. The same command goes on.
    """
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    where = Filter((), given["regex"], given["axes"], ())
    header = TunedHeader(out.named, given["namespace"])
    database = given["db"] or out.named.with_suffix(".db")
    with stop_asked() as asked:
        document = shown(
            teller,
            lambda: tune_program(
                session,
                where,
                SearchWanted(budget=given["budget"]),
                header,
                database,
                effort=effort_of(given),
                machines=machines_of(given),
                observer=teller,
                asked=lambda: bool(asked),
            ),
        )
    if document.emitted is not None:
        out.write(document.emitted.text)
    if output.as_json:
        print_line(document)
    else:
        print_tuned(document, head=not output.quiet, verbose=output.verbose)
    return int(document.emitted is None)
