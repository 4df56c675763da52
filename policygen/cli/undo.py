"""`policygen undo`: takes the last apply back, byte for byte."""

from pathlib import Path

import click

from policygen.app.undo import undo_applies
from policygen.cli.options import cub_option, output_options, store_option
from policygen.cli.output import Output
from policygen.cli.progress import warn
from policygen.report.diff import print_diff
from policygen.report.views.undo import print_undo


@click.command()
@click.option(
    "--steps", default=1, show_default=True, metavar="N", type=int, help="How many applies."
)
@cub_option
@store_option
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change; write nothing.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when there is something to undo; write nothing."
)
@output_options
def undo(
    steps: int, cub: str | None, store: Path, as_diff: bool, check: bool, output: Output
) -> int:
    """Takes the last apply back, or the last N in one go; every byte is as it was before.

    Nothing is written where a file was edited since; the edit is shown. With --cub only applies
    to that tree count, else the last one to any tree.
    """
    if as_diff and output.as_json:
        raise click.UsageError("give --diff or --json, not both")
    write = not (as_diff or check)
    undone = undo_applies(store, cub, steps=steps, write=write, required=not check, note=warn)
    if as_diff:
        for diff in undone.diffs:
            print_diff(diff)
    else:
        output.show(undone.document, print_undo)
    return int(check and bool(undone.undone))
