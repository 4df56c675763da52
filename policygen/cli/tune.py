"""`policygen tune`: from a GPU directly to a header that speeds up a program."""

from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.inputs import choose_rules
from policygen.app.own_workloads import with_workload, workload_template
from policygen.app.search import SearchWanted
from policygen.app.session import open_session
from policygen.app.tune import LEAST_SCORE, TunedHeader, example_files, example_places, tune_program
from policygen.cli.options import (
    FILE,
    FOLDER,
    cub_option,
    option,
    out_option,
    print_options,
    rule_options,
    where_options,
)
from policygen.cli.output import Out, Output
from policygen.cli.progress import warn
from policygen.cli.search_options import budget_option, database_option, gpu_options, searching
from policygen.errors import InputError
from policygen.outputs import check_free, write_output
from policygen.report import search_views
from policygen.report.progress import telling


@click.command()
@click.argument("workload", required=False, type=FILE, metavar="[FILE]")
@option(
    "--template",
    "ALGORITHM",
    "Print a commented template of FILE for an algorithm (reduce, …) or for a kernel, and exit.",
)
@budget_option("10m")
@out_option("The header to write.")
@database_option("The database for measurements.  [default: the header's name with .db]")
@option(
    "--overlay",
    "FOLDER",
    "Instead of a header, write changed tuning headers to put before CUB, as `policygen"
    " overlay` does.",
    type=FOLDER,
)
@option("--namespace", "NAME", "Namespace of the selectors.  [default: the header's name]")
@gpu_options()
@rule_options(LEAST_SCORE)
@where_options
@cub_option
@print_options
def tune(
    out: Out,
    output: Output,
    workload: Path | None,
    template: str | None,
    selection: Filter,
    **given: Any,
) -> int:
    """Find faster policies on this GPU and write a header.

    FILE describes your own workload (an algorithm, your types and operator, the sizes that matter)
    or your own kernel. Without it, -R and -a choose among CUB's benchmarks. The command
    searches, measures finalists again beside CUB's own policy, and writes those that are
    faster: policy selectors for CUB's public API, or a header with the kernel's values. The
    compiler proves what the header does. If nothing gains enough, no header is written and the
    exit status is 1. The same command resumes.
    """
    if template is not None:
        out.write(workload_template(template))
        return 0
    overlay = given["overlay"]
    if (out.path is None) == (overlay is None):
        raise click.UsageError("Name what to write: a header with -o, or a folder with --overlay.")
    path = out.named if overlay is None else overlay
    if workload is None and not (selection.regex or selection.axes):
        raise InputError(
            "no workload to tune was given",
            "Give a workload file, or a benchmark: -R 'cub.bench.reduce.sum$' -a T=F32"
            "\n  policygen tune --template reduce > mine.toml writes a template.",
        )
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    session, selection = with_workload(session, workload, selection)
    for example in () if overlay else example_places(session.cub, path):
        check_free(example, force=out.force)
    header = TunedHeader(path, given["namespace"], is_overlay=overlay is not None)
    rules = given["rules"]
    rules["least_score"] = rules["least_score"] or LEAST_SCORE
    database = given["database"] or path.with_suffix(".db")
    with searching(teller) as stop_requested:
        document = tune_program(
            session,
            selection,
            SearchWanted(budget=given["budget"]),
            header,
            database,
            rules=choose_rules(**rules),
            effort=given["effort"],
            machines=given["machines"],
            observer=teller,
            stop_requested=stop_requested,
        )
    if document.kernel is not None and document.header is not None:
        out.write(document.kernel.text)
    if document.emitted is not None:
        out.write(document.emitted.text)
        for example, text in example_files(session.cub, document.emitted, path).items():
            write_output(example, text.encode(), force=out.force)
    output.show(document, search_views.tuned, is_last=True)
    return int(document.header is None)
