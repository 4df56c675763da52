"""`policygen resolve`: what CUB selects for each workload, by the compiler."""

import click

from policygen.app.filters import Filter
from policygen.app.libraries import Library
from policygen.app.resolve import compare_trees, resolve_workloads
from policygen.cli.options import asked_options, library_option, output_options
from policygen.cli.output import Output, end
from policygen.cli.start import start
from policygen.report.views.resolve import print_comparison, print_resolution


@click.command()
@asked_options
@library_option
@click.option(
    "--compare",
    metavar="TREE",
    help="Only what differs from another tree: a path, a fetched version, or a git revision.",
)
@output_options
def resolve(
    asked: Filter, cub: str | None, library: Library | None, compare: str | None, output: Output
) -> int:
    """Shows which values CUB selects for each workload, and which entry they come from.

    The compiler is asked, no GPU is needed. HEADER is an algorithm (scan) or a header's name; -R
    matches benchmarks, -a takes their compile-time axes: -a 'T=[I8,F32]'. Without --arch: all
    archs that the tree has tunings for. With --compare the exit status is 1 when values differ.
    """
    session = start(cub, quiet=output.quiet, library=library)
    if compare is None:
        document, errors = resolve_workloads(session, asked)
        output.show(document, print_resolution)
        return end(errors)
    comparison, errors = compare_trees(session, compare, asked)
    if output.as_json:
        click.echo(comparison.to_json())
    else:
        print_comparison(comparison, head=not output.quiet)
    return end(errors, found=bool(comparison.different))
