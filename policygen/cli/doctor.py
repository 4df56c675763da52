"""`policygen doctor`: what is here of what policygen works with, and what mends what is not."""

import click

from policygen.app.doctor import examine
from policygen.cli.options import cub_option, output_options
from policygen.cli.output import Output
from policygen.report.views.doctor import print_doctor


@click.command()
@cub_option
@output_options
def doctor(cub: str | None, output: Output) -> int:
    """Shows what policygen works with on this machine, and the command that mends what is missing.

    Python and its packages, nvcc and what comes with it, git, the GPU, trees, the cache, the store.
    -q shows only what is to be mended, -v who needs what. The exit status is 1 when something is
    missing that a command needs; a GPU and extras are no such things.
    """
    document = examine(cub)
    output.show(document, print_doctor)
    return int(bool(document.problems))
