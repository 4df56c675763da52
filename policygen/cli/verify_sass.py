"""`policygen verify-sass`: the machine code before and after, kernel by kernel."""

from pathlib import Path

import click

from policygen.app.filters import Filter
from policygen.app.sass import DumpIndex
from policygen.app.sass import verify_sass as verify
from policygen.cli.options import cub_option, filter_options, output_options, store_option
from policygen.cli.output import Output
from policygen.cli.start import start
from policygen.errors import InputError
from policygen.report.console import plural
from policygen.report.views.sass import print_sass, write_diffs


@click.command("verify-sass")
@click.option(
    "--arch",
    "archs",
    multiple=True,
    metavar="ARCH",
    help="For this arch, or 'earlier': all that the change should not reach. Repeatable, or with"
    " commas.  [default: earlier]",
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
@click.option("--diffs", metavar="DIR", help="Write a diff for each kernel that differs.")
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
    store: Path,
    allow_moved: bool,
    save: str | None,
    diffs: str | None,
    jobs: int | None,
    output: Output,
) -> int:
    """Shows whether anything else changed: compares the machine code of kernels.

    Each workload of the benchmarks whose header differs is compiled before and after; -R names
    other ones, --all takes all, -a keeps some of their workloads. The exit status is 1 when a
    kernel is not what it was; one that is only called differently is.
    """
    if nvbench is not None and not benchmarks:
        raise click.UsageError("--nvbench is for --benchmarks.")
    document = verify(
        start(cub, store, whole=True, quiet=output.quiet),
        Filter((), regex, axes, archs),
        base=base,
        everything=everything,
        benchmarks=benchmarks,
        nvbench=None if nvbench is None else Path(nvbench),
        allow_moved=allow_moved,
        save=None if save is None else Path(save),
        jobs=jobs,
    )
    if isinstance(document, DumpIndex):
        if output.as_json:
            click.echo(document.to_json())
        else:
            dumps = plural(len(document.files), "dump")
            click.echo(f"saved in {save}: {dumps} ({document.toolchain})")
        return 0
    if diffs is not None:
        write_diffs(document, Path(diffs))
    output.show(document, print_sass)
    if document.refused and not document.changed:
        count = plural(len(document.refused), "workload")
        raise InputError(f"{count} did not compile: nothing is known of what is in them")
    return int(document.changed)
