"""Commands on trees: `headers`, `scan`, `resolve`, `status`, and `doctor`."""

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from policygen.app.doctor import examine
from policygen.app.filters import Filter
from policygen.app.resolve import compare_trees, resolve_workloads
from policygen.app.scan import scan_tunings
from policygen.app.session import Library, fetch_trees, fetched_session, list_trees, used_tree
from policygen.app.status import tree_status
from policygen.cli.options import (
    cub_option,
    flag,
    library_option,
    option,
    output_options,
    selection_options,
    start,
    store_option,
)
from policygen.cli.output import Output, end
from policygen.cli.progress import teller, warn
from policygen.report import plan_views, tree_views, value_views
from policygen.report.tree_views import changes, table, tree_name


@click.command("list")
@cub_option
@output_options
def list_(cub: str | None, output: Output) -> int:
    """List trees that can be fetched, and the current one."""
    document = list_trees(cub)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    click.echo(table(document), nl=False)
    if output.verbose:
        click.echo(f"\nkept in {document.folder}", err=True)
    if not output.quiet:
        used = tree_name(document.used) if document.used else "none found"
        click.echo(f"\nused here: {used}")
    click.echo(changes(document), err=True, nl=False)
    return 0


@click.command()
@click.argument("versions", metavar="VERSION...", nargs=-1)
@flag("--all", "Fetch all known versions of CUB.", to="everything")
@flag("--again", "Fetch again what is already here.")
@output_options
def fetch(versions: Sequence[str], everything: bool, again: bool, output: Output) -> int:
    """Fetch trees of CUB from PyPI, or of rocPRIM from Debian.

    rocPRIM is named by its ROCm release: rocprim@5.7.1. The last tree named becomes the current
    one of its library.
    """
    if not versions and not everything:
        raise click.UsageError("Name a VERSION, or give --all")

    reporter = teller(sys.stderr)

    def progress(line: str) -> None:
        if not output.quiet:
            reporter.say(line)

    try:
        document, trees = fetch_trees(
            versions, everything=everything, again=again, progress=progress
        )
    finally:
        reporter.clear()
    click.echo(changes(document), err=True, nl=False)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    for tree in trees:
        click.echo(f"{tree.called} {tree.version}: {tree.root}")
        if output.verbose:
            click.echo(f"{tree_name(tree)}, dialect {tree.dialect}", err=True)
    return 0


@click.command()
@click.argument("version", required=False, metavar="[VERSION]")
@flag("--flags", "Print compiler options: -I for each folder.")
@cub_option
@output_options
def path(version: str | None, cub: str | None, output: Output, *, flags: bool) -> int:
    """Print the include folder of a tree."""
    if version and cub:
        raise click.UsageError("VERSION and --cub exclude each other")
    session = fetched_session(version) if version else start(cub)
    if output.as_json:
        click.echo(used_tree(session).to_json())
    elif flags:
        click.echo(shlex.join(f"-I{folder}" for folder in session.cub.include_folders))
    else:
        click.echo(session.cub.root)
    if output.verbose and not output.quiet:
        click.echo(f"{tree_name(session.cub)}, dialect {session.cub.dialect}", err=True)
    return 0


@click.command()
@selection_options
@library_option
@flag("--no-cache", "Ignore cached results.")
@output_options
def scan(
    selection: Filter, cub: str | None, library: Library | None, no_cache: bool, output: Output
) -> int:
    """List the tuning entries of a tree.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file; with it, or with
    -v, entries are listed. -R matches algorithms and qualified family names; -a filters by
    template parameters and conditions of guarded returns: -a 'KeySize=[1,2]', -a 'key_size=1'.
    """
    document, errors = scan_tunings(
        cub, selection, cached=not no_cache, selectors=True, library=library, note=warn
    )
    output.show(document, partial(tree_views.scanned, entries=bool(selection.headers)))
    return end(errors)


@click.command()
@selection_options
@library_option
@option(
    "--compare",
    "TREE",
    "Show only differences from another tree: a path, a fetched version, or a git revision.",
)
@output_options
def resolve(
    selection: Filter, cub: str | None, library: Library | None, compare: str | None, output: Output
) -> int:
    """Show which policy CUB selects for a workload.

    Asks the compiler; needs no GPU. HEADER is an algorithm (scan) or a header's name. -R matches
    benchmarks, -a filters their compile-time axes: -a 'T=[I8,F32]'. Without --arch, all
    architectures that the tree has tunings for are shown. With --compare, exit status 1 means
    that values differ.
    """
    session = start(cub, quiet=output.quiet, library=library)
    if compare is None:
        document, errors = resolve_workloads(session, selection)
        output.show(document, value_views.resolution)
        return end(errors)
    comparison, errors = compare_trees(session, compare, selection)
    output.show(comparison, value_views.comparison)
    return end(errors, has_findings=bool(comparison.different))


@click.command()
@cub_option
@store_option
@output_options
def status(cub: str | None, store: Path, output: Output) -> int:
    """Show what was applied, proven and left to do.

    Nothing is compiled or changed. Proofs are those that apply, verify-effect and verify-sass
    recorded in the store; each is valid as long as CUB's headers are unchanged.
    """
    output.show(tree_status(cub, store), plan_views.status)
    return 0


@click.command()
@cub_option
@output_options
def doctor(cub: str | None, output: Output) -> int:
    """Show what this machine has and lacks.

    Covers Python packages, nvcc, git, the GPU, trees, the cache and the store, with a command to
    fix what is missing. -q shows only problems, -v who needs what. Exit status 1 means that
    something is missing that a command needs; a GPU and extras do not count.
    """
    document = examine(cub)
    output.show(document, plan_views.doctor)
    return int(bool(document.problems))
