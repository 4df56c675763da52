"""`policygen demo`: the whole workflow on an embedded example, with repeatable commands."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from policygen.app.demo import demo_steps
from policygen.cli.options import cub_option
from policygen.process import Stopped, interrupt_messages

FOLDER = "policygen-demo"
MADE_UP = """\
The measurements in this demo are invented. Everything that the compiler reports about CUB is real.
"""


@click.command()
@cub_option
@click.option("--folder", default=FOLDER, show_default=True, help="Folder for the demo's files.")
@click.pass_context
def demo(context: click.Context, cub: str | None, folder: str) -> int:
    """See a whole run on a real CUB.

    Fetches CUB if needed, plans and applies a made-up database, proves the result, and takes it
    back.
    """
    commands = context.find_root().command
    click.echo(MADE_UP)
    for step, (title, arguments) in enumerate(demo_steps(cub, Path(folder)), start=1):
        line = shlex.join(arguments)
        click.echo(f"{'' if step == 1 else chr(10)}{step}. {title}\n$ policygen {line}")
        sys.stdout.flush()
        try:
            status = commands.main(args=arguments, prog_name="policygen", standalone_mode=False)
        except click.Abort as error:
            folder_hint = f"The demo's files are in {folder}. To start over: policygen demo"
            raise Stopped(
                *interrupt_messages(error), folder_hint, *_undo_hint(arguments, Path(folder))
            ) from error
        if status:
            return int(status)
    return 0


def _undo_hint(arguments: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Explain how to undo the demo's changes, if the interrupted step comes after apply."""
    if arguments[0] not in {"verify-effect", "verify-sass", "undo"}:
        return ()
    store = folder / "policygen.db"
    return (f"To take back what it wrote: policygen undo --store {shlex.quote(str(store))}",)
