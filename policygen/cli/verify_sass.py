"""`policygen verify-sass`: compares machine code before and after, kernel by kernel."""

from functools import partial
from pathlib import Path

import click

from policygen.app.comparison import EARLIER
from policygen.app.filters import Filter
from policygen.app.sass import DumpIndex, SassCompiles
from policygen.app.sass import verify_sass as verify
from policygen.cli.options import (
    arch_option,
    cub_option,
    filter_options,
    output_options,
    start,
    store_option,
)
from policygen.cli.output import Output
from policygen.errors import InputError
from policygen.report.console import plural
from policygen.report.value_views import announce, print_compiles, print_sass, write_diffs


def _shard(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Parse `2/4` into two numbers."""
    if text is None:
        return None
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise click.BadParameter(f"{text!r} is no part such as 2/4")


@click.command("verify-sass")
@partial(
    arch_option,
    text="For this arch, or 'earlier': all that the change should not reach.  [default: earlier]",
    words=(EARLIER,),
)
@click.option(
    "--base",
    metavar="TREE",
    help="What to compare with: a git revision, a folder, a fetched version, or saved dumps."
    "  [default: what the last apply replaced, else HEAD]",
)
@click.option(
    "--all", "everything", is_flag=True, help="All workloads of all benchmarks, whatever differs."
)
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
@click.option(
    "--hipcc",
    metavar="FILE",
    help="What compiles rocPRIM's kernels.  [default: in ROCM_PATH, on PATH or in /opt/rocm]",
)
@click.option("--allow-moved", is_flag=True, help="Other registers or order are no difference.")
@click.option("--save", metavar="DIR", help="Keep the dumps, to compare with later: --base DIR.")
@click.option("--diffs", metavar="DIR", help="Write a diff for each kernel that differs.")
@click.option(
    "--shard",
    metavar="I/N",
    callback=_shard,
    help="One part of N, for as many machines: --shard 1/4 to --shard 4/4.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be compiled; compile nothing.")
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
    hipcc: str | None,
    allow_moved: bool,
    save: str | None,
    diffs: str | None,
    shard: tuple[int, int] | None,
    dry_run: bool,
    jobs: int | None,
    output: Output,
) -> int:
    """Shows whether anything else changed: compares the machine code of kernels.

    Workloads that the change can touch are compiled before and after, those that it changes first;
    the others have the same source, and the output says how that is known. -R names benchmarks of
    which all are compiled, --all takes all, -a keeps some of their workloads. The exit status is 1
    when a kernel is not what it was; one that is only called differently is, and one that other
    values were written for is as written.
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
        hipcc=None if hipcc is None else Path(hipcc),
        jobs=jobs,
        shard=shard,
        dry=dry_run,
        announce=None if output.quiet else announce,
    )
    if isinstance(document, SassCompiles):
        output.show(document, print_compiles)
        return 0
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
