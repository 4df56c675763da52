"""`policygen headers`: shows and obtains trees."""

import shlex
import sys
from collections.abc import Sequence

import click

from policygen.app.trees import fetch_trees, fetched_session, list_trees, used_tree
from policygen.cli.options import cub_option, output_options
from policygen.cli.output import Output
from policygen.cli.progress import teller
from policygen.cli.start import start
from policygen.report.views.headers import changes, name, table


@click.command("list")
@cub_option
@output_options
def list_(cub: str | None, output: Output) -> int:
    """Lists the trees that can be had, and names the one that is used here."""
    document = list_trees(cub)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    click.echo(table(document), nl=False)
    if output.verbose:
        click.echo(f"\nkept in {document.folder}", err=True)
    if not output.quiet:
        used = name(document.used) if document.used else "none found"
        click.echo(f"\nused here: {used}")
    click.echo(changes(document), err=True, nl=False)
    return 0


@click.command()
@click.argument("versions", metavar="VERSION...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every version of CUB that is known.")
@click.option("--again", is_flag=True, help="Also what is here already, with all of its files.")
@output_options
def fetch(versions: Sequence[str], everything: bool, again: bool, output: Output) -> int:
    """Gets trees of CUB from PyPI and of rocPRIM (rocprim@5.7.1) from Debian's packages.

    The last one that is named becomes the current tree of its library.
    """
    if not versions and not everything:
        raise click.UsageError("name a VERSION, or give --all")

    said = teller(sys.stderr)

    def progress(line: str) -> None:
        if not output.quiet:
            said.say(line)

    try:
        document, trees = fetch_trees(
            versions, everything=everything, again=again, progress=progress
        )
    finally:
        said.clear()
    click.echo(changes(document), err=True, nl=False)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    for tree in trees:
        click.echo(f"{tree.called} {tree.version}: {tree.root}")
        if output.verbose:
            click.echo(f"{name(tree)}, dialect {tree.dialect}", err=True)
    return 0


@click.command()
@click.argument("version", required=False, metavar="[VERSION]")
@click.option("--flags", is_flag=True, help="As options of a compiler: -I for each folder.")
@cub_option
@output_options
def path(version: str | None, cub: str | None, output: Output, *, flags: bool) -> int:
    """Prints the include folder of the tree that is used here, or of a fetched VERSION."""
    if version and cub:
        raise click.UsageError("give VERSION or --cub, not both")
    session = fetched_session(version) if version else start(cub)
    if output.as_json:
        click.echo(used_tree(session).to_json())
    elif flags:
        click.echo(shlex.join(f"-I{folder}" for folder in session.cub.include_folders))
    else:
        click.echo(session.cub.root)
    if output.verbose and not output.quiet:
        click.echo(f"{name(session.cub)}, dialect {session.cub.dialect}", err=True)
    return 0
