from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import cub_option, output_options

if TYPE_CHECKING:
    from policygen.model.cub import Cub


@click.group()
def headers() -> None:
    """Shows and obtains CUB trees."""


@headers.command("list")
@cub_option
@output_options
def list_(cub: str | None, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Lists the trees that can be had, and names the one that is used here."""
    from policygen.report.views.headers import changes, name, table
    from policygen.tree import find_any, headers_folder
    from policygen.tree.overview import overview

    folder = headers_folder(Path.cwd())
    document = overview(folder, find_any(cub, Path.cwd()))
    if as_json:
        click.echo(document.to_json())
        return 0
    click.echo(table(document), nl=False)
    if verbose:
        click.echo(f"\nkept in {folder}", err=True)
    if not quiet:
        used = name(document.used) if document.used else "none found"
        click.echo(f"\nused here: {used}")
    click.echo(changes(document), err=True, nl=False)
    return 0


@headers.command()
@click.argument("versions", metavar="VERSION...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every version that is known.")
@click.option("--again", is_flag=True, help="Also what is here already, with all of its files.")
@output_options
def fetch(
    versions: Sequence[str],
    everything: bool,
    again: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Gets CUB trees from PyPI; the last one that is named becomes the current tree."""
    from policygen.report.views.headers import changes
    from policygen.tree import headers_folder
    from policygen.tree.overview import all_versions, fetch_all, overview

    if not versions and not everything:
        raise click.UsageError("name a VERSION, or give --all")
    folder = headers_folder(Path.cwd())
    wanted = all_versions(folder, versions) if everything else versions
    trees = fetch_all(wanted, folder, _progress(quiet), again=again)
    document = overview(folder, trees[-1])
    click.echo(changes(document), err=True, nl=False)
    if as_json:
        click.echo(document.to_json())
        return 0
    for tree in trees:
        click.echo(f"CUB {tree.version}: {tree.root}")
        _explain(tree, verbose)
    return 0


@headers.command()
@click.argument("version", required=False)
@cub_option
@output_options
def path(version: str | None, cub: str | None, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Prints the include folder of the tree that is used here, or of a fetched VERSION."""
    from policygen.cli.opening import open_cub
    from policygen.tree import headers_folder
    from policygen.tree.overview import overview
    from policygen.tree.store import open_fetched

    if version and cub:
        raise click.UsageError("give VERSION or --cub, not both")
    folder = headers_folder(Path.cwd())
    tree = open_fetched(folder, version) if version else open_cub(cub)
    click.echo(overview(folder, tree).to_json() if as_json else tree.root)
    _explain(tree, verbose and not quiet)
    return 0


def _progress(quiet: bool) -> Callable[[str], None]:
    return (lambda _line: None) if quiet else (lambda line: click.echo(line, err=True))


def _explain(cub: Cub, verbose: bool) -> None:
    if verbose:
        from policygen.report.views.headers import name

        click.echo(f"{name(cub)}, dialect {cub.dialect}", err=True)
