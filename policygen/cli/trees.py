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
    library_option,
    output_options,
    selection_options,
    start,
    store_option,
)
from policygen.cli.output import Output, end
from policygen.cli.progress import teller, warn
from policygen.report.plan_views import print_doctor, print_status
from policygen.report.tree_views import changes, print_scan, table, tree_name
from policygen.report.value_views import print_comparison, print_resolution


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
        used = tree_name(document.used) if document.used else "none found"
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
        click.echo(f"{tree_name(session.cub)}, dialect {session.cub.dialect}", err=True)
    return 0


# `policygen scan`


@click.command()
@partial(selection_options, arch="Only this arch.")
@library_option
@click.option("--no-cache", is_flag=True, help="Read anew what is known from before.")
@output_options
def scan(
    selection: Filter, cub: str | None, library: Library | None, no_cache: bool, output: Output
) -> int:
    """Shows every tuning family and entry of a tree.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file; with one, or with
    -v, the entries are listed too. -R matches algorithms and qualified family names; -a takes
    template parameters as axes, and what guarded returns ask for: -a 'KeySize=[1,2]',
    -a 'key_size=1'.
    """
    document, errors = scan_tunings(
        cub, selection, cached=not no_cache, selectors=True, library=library, note=warn
    )
    if output.as_json:
        click.echo(document.to_json())
    else:
        entries = output.verbose or bool(selection.headers)
        print_scan(document, entries=entries, head=not output.quiet)
    return end(errors)


# `policygen resolve`


@click.command()
@selection_options
@library_option
@click.option(
    "--compare",
    metavar="TREE",
    help="Only what differs from another tree: a path, a fetched version, or a git revision.",
)
@output_options
def resolve(
    selection: Filter, cub: str | None, library: Library | None, compare: str | None, output: Output
) -> int:
    """Shows which values CUB selects for each workload, and which entry they come from.

    The compiler is asked, no GPU is needed. HEADER is an algorithm (scan) or a header's name; -R
    matches benchmarks, -a takes their compile-time axes: -a 'T=[I8,F32]'. Without --arch: all
    archs that the tree has tunings for. With --compare the exit status is 1 when values differ.
    """
    session = start(cub, quiet=output.quiet, library=library)
    if compare is None:
        document, errors = resolve_workloads(session, selection)
        output.show(document, print_resolution)
        return end(errors)
    comparison, errors = compare_trees(session, compare, selection)
    if output.as_json:
        click.echo(comparison.to_json())
    else:
        print_comparison(comparison, head=not output.quiet)
    return end(errors, has_findings=bool(comparison.different))


# `policygen status`


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


# `policygen doctor`


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
