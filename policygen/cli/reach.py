"""`policygen audit reach`: entries that no workload can select."""

import click

from policygen.app.reach import audit_reach
from policygen.cli.options import cub_option, output_options
from policygen.cli.output import Output, end
from policygen.cli.start import start
from policygen.report.views.reach import print_reach


@click.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@output_options
def reach(headers: tuple[str, ...], cub: str | None, output: Output) -> int:
    """Finds entries that no workload can ever select, by asking the compiler.

    In a copy of each header every entry gets a value that is its own; then all workloads are
    tried, those of benchmarks and many that no benchmark has, on every arch whose policy reads
    the family, and at which a policy selector may decide otherwise. HEADER is an algorithm (scan)
    or a header's name. Exit status 1 says that an entry was never seen.
    """
    document, errors = audit_reach(start(cub, quiet=output.quiet), headers)
    output.show(document, print_reach)
    return end(errors, found=bool(document.unreachable))
