"""`policygen db report`: what a search found, how sure that is, and how it got there."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.inputs import check_other
from policygen.app.notes import tell_warnings
from policygen.app.rules import choose_rules
from policygen.app.search_report import report_search
from policygen.cli.options import config_option, filter_options, out_option, output_options
from policygen.cli.output import Out, Output, printed
from policygen.cli.progress import warn
from policygen.cli.result_options import (
    FORMS,
    bench_option,
    files_argument,
    given_results,
    rule_options,
)
from policygen.report.views.search_report import print_reported, render


@click.command()
@files_argument
@filter_options
@bench_option
@rule_options
@config_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "html"]),
    help="How it is written.  [default: what FILE ends with, else table]",
)
@partial(out_option, text="Write it to a file; .html is a page with figures, .md is Markdown.")
@partial(output_options, own=True)
def report(
    files: tuple[str, ...],
    regex: str,
    axes: tuple[str, ...],
    benches: tuple[str, ...],
    rules: dict[str, Any],
    form: str | None,
    out: Out,
    output: Output,
) -> int:
    """Tells what a search found for each workload, how sure that is, and how it got there.

    The page has the winner with its interval beside what the screening had said, convergence,
    scores against parameters, what failed and why, noise, and the machine. Databases of `policygen
    measure` and of CCCL's own search have what they tell of that.
    """
    given = given_results(files, benches, regex=regex, axes=axes)
    if out.path is not None:
        check_other(out.path, given)
    document = report_search(given, choose_rules(**rules))
    written = form or ("table" if output.as_json else _form(out.path))
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif written != "table":
        out.write(render(document, written))
    elif out.path is None:
        output.tell(document, print_reported)
    else:
        with printed() as data:
            output.tell(document, print_reported)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    tell_warnings(document.warnings, warn)
    if out.path is not None and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0


def _form(path: Path | None) -> str:
    return FORMS.get(path.suffix.lower(), "table") if path else "table"
