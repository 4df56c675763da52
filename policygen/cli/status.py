"""`policygen status`: where a tree stands, and what to type next."""

from pathlib import Path

import click

from policygen.app.status import tree_status
from policygen.cli.options import cub_option, output_options, store_option
from policygen.cli.output import Output
from policygen.report.views.status import print_status


@click.command()
@cub_option
@store_option
@output_options
def status(cub: str | None, store: Path, output: Output) -> int:
    """Shows where a tree stands: what was applied, what is open, what was proved, what to do next.

    Nothing is compiled and nothing is changed. Proofs are those that apply, verify-effect and
    verify-sass recorded in the store; one counts as long as the headers of CUB are what they were.
    """
    output.show(tree_status(cub, store), print_status)
    return 0
