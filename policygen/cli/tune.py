"""`policygen tune`: from a GPU directly to a header that speeds up a program."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.own_workloads import workload_template
from policygen.app.search import SearchWanted
from policygen.app.session import open_session
from policygen.app.tune import TunedHeader, example_files, example_places, tune_program
from policygen.cli.options import (
    cub_option,
    filter_options,
    out_option,
    output_options,
    with_own,
)
from policygen.cli.output import Out, Output
from policygen.cli.progress import warn
from policygen.cli.search_options import (
    budget_option,
    effort_of,
    gpu_options,
    machines_of,
    stop_on_interrupt,
)
from policygen.errors import InputError
from policygen.outputs import check_free, write_output
from policygen.report.plan_views import print_tuned
from policygen.report.progress import print_line, shown, telling


@click.command()
@click.argument(
    "workload", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]"
)
@click.option(
    "--template",
    metavar="ALGORITHM",
    help="Print a commented start of FILE for an algorithm, reduce for one, or for a kernel, and do"
    " nothing else.",
)
@partial(budget_option, default="10m")
@partial(out_option, text="The header to write.")
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
def tune(
    out: Out, output: Output, workload: Path | None, template: str | None, **given: Any
) -> int:
    """Finds faster policies for workloads on this GPU, and writes a header that gives them to CUB.

    FILE names a workload of your own: an algorithm, your types and operator, the sizes that
    matter; or a kernel of your own, with its parameters and how it is launched. Without it -R and
    -a choose among those of CUB's benchmarks. It searches, lets the finalists run again beside what
    is selected today, and writes those that are faster: policy selectors for CUB's public API, or a
    header of the kernel's values. The compiler shows what the header does. Where nothing is faster
    there is no header, and the exit status is 1. The same command goes on.
    """
    if template is not None:
        out.write(workload_template(template))
        return 0
    if out.path is None:
        raise click.UsageError("Missing option '-o': the header to write.")
    if workload is None and not (given["regex"] or given["axes"]):
        raise InputError(
            "what is tuned is not said",
            "Name a workload of your own, or a benchmark: -R 'cub.bench.reduce.sum$' -a T=F32"
            "\n  policygen tune --template reduce > mine.toml makes a start of the former.",
        )
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    session, selection = with_own(session, workload, Filter((), given["regex"], given["axes"], ()))
    for path in example_places(out.named):
        check_free(path, force=out.force)
    header = TunedHeader(out.named, given["namespace"])
    database = given["db"] or out.named.with_suffix(".db")
    with stop_on_interrupt() as stop_requests:
        document = shown(
            teller,
            lambda: tune_program(
                session,
                selection,
                SearchWanted(budget=given["budget"]),
                header,
                database,
                effort=effort_of(given),
                machines=machines_of(given),
                observer=teller,
                stop_requested=lambda: bool(stop_requests),
            ),
        )
    if document.kernel is not None and document.header is not None:
        out.write(document.kernel.text)
    if document.emitted is not None:
        out.write(document.emitted.text)
        for path, text in example_files(session.cub, document.emitted, out.named).items():
            write_output(path, text.encode(), force=out.force)
    if output.as_json:
        print_line(document)
    else:
        print_tuned(document, head=not output.quiet, verbose=output.verbose)
    return int(document.header is None)
