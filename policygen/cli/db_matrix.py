"""`policygen db matrix`: strategies of a kernel of one's own against sizes."""

from functools import partial

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, check_other
from policygen.app.kernel_matrix import strategy_matrix
from policygen.cli.options import out_option, output_options
from policygen.cli.output import Out, Output, printed
from policygen.cli.result_options import FORMS, files_argument
from policygen.report.views.matrix import print_matrix, render


@click.command()
@files_argument
@click.option(
    "-R",
    "regex",
    default="",
    metavar="REGEX",
    help="Only kernels whose name begins with a match of REGEX.",
)
@click.option(
    "--by",
    metavar="PARAMETER",
    help="The parameter whose values are compared as sets.  [default: strategy]",
)
@partial(out_option, text="Write it to a file; .html is a page with a heat map, .md is Markdown.")
@partial(output_options, own=True)
def matrix(files: tuple[str, ...], regex: str, by: str | None, out: Out, output: Output) -> int:
    """Compares strategies of a kernel of one's own: who is fastest at which size, and why.

    Of each strategy the best variant counts at each size, of what `policygen measure --workload`
    has measured; -v shows bandwidth, occupancy, registers and shared memory of each.
    """
    if out.path is not None:
        check_other(out.path, ResultFiles(files))
    document = strategy_matrix(files, Filter((), regex, (), ()), by)
    form = FORMS.get(out.path.suffix.lower()) if out.path else None
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif form is not None:
        out.write(render(document, form))
    elif out.path is None:
        output.tell(document, print_matrix)
    else:
        with printed() as data:
            output.tell(document, print_matrix)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    if out.path is not None and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0
