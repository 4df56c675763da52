"""`policygen verify-sass`: the machine code before and after, kernel by kernel."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import (
    cub_option,
    filter_options,
    output_options,
    parse_axes,
    parse_regex,
    store_option,
)
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.errors import SourceError
    from policygen.model.cub import Cub
    from policygen.model.sass import DumpIndex
    from policygen.proof.sass.benchmarks import Checkout


@click.command("verify-sass")
@click.option(
    "--arch",
    "archs",
    multiple=True,
    metavar="ARCH",
    help="For this arch, or 'earlier': all that the change should not reach.  [default: earlier]",
)
@click.option(
    "--base",
    metavar="TREE",
    help="What to compare with: a git revision, a folder, a fetched version, or saved dumps."
    "  [default: what the last apply replaced, else HEAD]",
)
@click.option("--all", "everything", is_flag=True, help="All benchmarks, whatever differs.")
@filter_options
@click.option(
    "--benchmarks", is_flag=True, help="Compile the checkout's own benchmarks, with TUNE_BASE=1."
)
@click.option(
    "--nvbench",
    metavar="DIR",
    help="NVBench, which the benchmarks include.  [default: that of the extra 'benchmarks']",
)
@cub_option
@store_option
@click.option("--allow-moved", is_flag=True, help="Other registers or order are no difference.")
@click.option("--save", metavar="DIR", help="Keep the dumps, to compare with later: --base DIR.")
@click.option("--out", metavar="DIR", help="Write a diff for each kernel that differs.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Compiles at once.")
@output_options
def verify_sass(
    archs: tuple[str, ...],
    base: str | None,
    everything: bool,
    regex: str,
    axes: tuple[str, ...],
    benchmarks: bool,
    nvbench: str | None,
    cub: str | None,
    store: str,
    allow_moved: bool,
    save: str | None,
    out: str | None,
    jobs: int | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows whether anything else changed: compares the machine code of kernels.

    Each workload of the benchmarks whose header differs is compiled before and after; -R names
    other ones, --all takes all, -a keeps some of their workloads. The exit status is 1 when a
    kernel is not what it was; one that is only called differently is.
    """
    from policygen.cli.base import find_base, no_base
    from policygen.cli.comparing import Chosen, ask, compiling, tools_of
    from policygen.cli.opening import open_cub
    from policygen.proof.toolchain import find_toolchain
    from policygen.report.console import plural
    from policygen.report.views.sass import print_sass, write_diffs

    if nvbench is not None and not benchmarks:
        raise click.UsageError("--nvbench is for --benchmarks.")
    found = open_cub(cub, store, whole=True)
    before = find_base(found, base, Path(store))
    if before is None and save is None:
        raise no_base(Path(store))
    toolchain = find_toolchain()
    tools = tools_of(toolchain)
    pattern = parse_regex(regex)
    checkout = _checkout(found, pattern, nvbench) if benchmarks else None
    chosen = Chosen(pattern, parse_axes(axes), everything, checkout)
    question = ask(found, before, chosen, archs, toolchain.archs)
    with compiling(tools, jobs, quiet=quiet) as compiler:
        if save is not None:
            index = question.save(compiler, Path(save))
            if before is None:
                return _saved(index, Path(save), as_json=as_json)
        sides = question.compiled(compiler)
    document = question.document(sides, str(tools), allow_moved=allow_moved)
    if out is not None:
        write_diffs(document, Path(out))
    if as_json:
        sys.stdout.write(document.to_json() + "\n")
    else:
        print_sass(document, head=not quiet, verbose=verbose)
    if document.refused and not document.changed:
        count = plural(len(document.refused), "workload")
        raise InputError(f"{count} did not compile: nothing is known of what is in them")
    return int(document.changed)


def _checkout(found: "Cub", pattern: "re.Pattern[str]", nvbench: str | None) -> "Checkout":
    """The benchmarks that stand beside a tree."""
    from policygen.errors import Problems
    from policygen.paths import cache_folder
    from policygen.proof.sass.benchmarks import Checkout
    from policygen.proof.sass.nvbench import find_nvbench
    from policygen.source.benchmarks.files import benchmarks_folder, checkout, find, helper_folders
    from policygen.source.benchmarks.read import narrowing

    errors: list[SourceError] = []
    root = checkout(Path(found.root).parent)
    found_files = [file for file in find(root, errors) if pattern.match(file.name)]
    if errors:
        raise Problems(errors)
    files = {file.name: file.path for file in found_files}
    includes = find_nvbench(None if nvbench is None else Path(nvbench), cache_folder())
    folders = (*map(str, helper_folders(root)), *includes)
    return Checkout(benchmarks_folder(root), files, narrowing(found_files), folders)


def _saved(index: "DumpIndex", folder: Path, *, as_json: bool) -> int:
    from policygen.report.console import plural

    if as_json:
        sys.stdout.write(index.to_json() + "\n")
    else:
        click.echo(f"saved in {folder}: {plural(len(index.files), 'dump')} ({index.toolchain})")
    return 0
