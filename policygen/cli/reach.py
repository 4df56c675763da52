"""`policygen audit reach`: entries that no workload can select."""

from functools import partial

import click

from policygen.app.filters import Filter
from policygen.app.reach import audit_reach
from policygen.cli.options import asked_options, output_options
from policygen.cli.output import Output, end
from policygen.cli.start import start
from policygen.report.views.reach import print_reach


@click.command()
@partial(asked_options, arch="Only entries for this arch. Repeatable.")
@output_options
def reach(asked: Filter, cub: str | None, output: Output) -> int:
    """Finds entries that no workload can ever select, by asking the compiler.

    In a copy of each header every entry gets a value that is its own; then all workloads are
    tried, those of benchmarks and many that no benchmark has, on every arch whose policy reads
    the family, and at which a policy selector may decide otherwise. HEADER is an algorithm (scan)
    or a header's name; -R, -a and --arch choose entries, as they do for scan. Exit status 1 says
    that an entry was never seen.
    """
    document, errors = audit_reach(start(cub, quiet=output.quiet), asked)
    output.show(document, print_reach)
    return end(errors, found=bool(document.unreachable))
