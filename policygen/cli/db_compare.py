"""`policygen db compare`: two GPUs or two searches beside each other."""

from functools import partial
from typing import Any

import click

from policygen.app.db_compare import compare_databases, is_plot, plot_comparison
from policygen.app.inputs import check_other
from policygen.app.notes import tell_warnings
from policygen.app.rules import choose_rules
from policygen.cli.options import config_option, filter_options, out_option, output_options
from policygen.cli.output import Out, Output, printed
from policygen.cli.progress import warn
from policygen.cli.result_options import bench_option, given_results, rule_options
from policygen.report.views.db_compare import print_compared


@click.command()
@click.argument("a", metavar="A.db")
@click.argument("b", metavar="B.db")
@filter_options
@bench_option
@rule_options
@config_option
@partial(out_option, text="Write what is printed to a file; .svg, .png and .html are plots.")
@partial(output_options, own=True)
def compare(
    a: str,
    b: str,
    regex: str,
    axes: tuple[str, ...],
    benches: tuple[str, ...],
    rules: dict[str, Any],
    out: Out,
    output: Output,
) -> int:
    """Compares two GPUs or two searches: order, noise, choices, and how winners do elsewhere.

    A.db and B.db may be globs, of runs of the same. With -o FILE.svg, .png or .html the scores of
    both are plotted against each other, besides what is printed.
    """
    plotted = out.path is not None and is_plot(out.path)
    first, second = (given_results([one], benches, regex=regex, axes=axes) for one in (a, b))
    if out.path is not None:
        check_other(out.path, first, second)
    document = compare_databases(first, second, choose_rules(**rules))
    if plotted:
        plot_comparison(document, out.named, force=out.force)
    if plotted or out.path is None:
        output.tell(document, print_compared)
    else:
        with printed() as data:
            output.tell(document, print_compared)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    tell_warnings(document.warnings, warn)
    if plotted and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0
