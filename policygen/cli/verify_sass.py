"""`policygen verify-sass`: compares machine code before and after, kernel by kernel."""

from pathlib import Path
from typing import Any

import click

from policygen.app.comparison import EARLIER
from policygen.app.filters import Filter
from policygen.app.sass import DumpIndex, SassCompiles
from policygen.app.sass import verify_sass as verify
from policygen.cli.options import (
    arch_option,
    base_option,
    cub_option,
    filter_options,
    flag,
    option,
    output_options,
    start,
    store_option,
)
from policygen.cli.output import Output
from policygen.errors import InputError, plural
from policygen.report import value_views
from policygen.report.value_views import announce, write_diffs


def _shard(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Parse `2/4` into two numbers."""
    if text is None:
        return None
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise click.BadParameter(f"{text!r} is not a shard; write 2/4")


@click.command("verify-sass")
@arch_option(
    "The architecture to compare, or 'earlier': all that the change should not reach. "
    " [default: earlier]",
    words=(EARLIER,),
)
@base_option("a fetched version, or saved dumps.")
@flag("--all", "Compare all workloads of all benchmarks.", to="everything")
@filter_options
@flag("--benchmarks", "Compile the checkout's own benchmarks, with TUNE_BASE=1.")
@option("--nvbench", "DIR", "NVBench's include folder.  [default: that of the extra 'benchmarks']")
@cub_option
@store_option
@option("--hipcc", "FILE", "The hipcc to use.  [default: from ROCM_PATH, PATH or /opt/rocm]")
@flag("--allow-moved", "Ignore register and ordering differences.")
@option("--save", "DIR", "Save the dumps, to compare with later: --base DIR.")
@option("--diffs", "DIR", "Folder for diffs of kernels that differ.")
@option("--shard", "I/N", "Process one part of N: --shard 1/4 to --shard 4/4.", callback=_shard)
@flag("--dry-run", "Estimate what would be compiled, and exit.", to="dry")
@click.option(
    "-j", "--jobs", type=click.IntRange(1), metavar="N", help="Number of parallel compiles."
)
@output_options
def verify_sass(
    archs: tuple[str, ...],
    regex: str,
    axes: tuple[str, ...],
    cub: str | None,
    store: Path,
    diffs: str | None,
    output: Output,
    **given: Any,
) -> int:
    """Compare machine code before and after a change.

    Compiles the workloads that the change can reach, and states how it is known that the others
    have the same source. -R names benchmarks to compile completely, --all compiles everything,
    -a filters workloads. Exit status 1 means that a kernel differs; a kernel that is only
    called differently is equal, and one that new values were written for is as written.
    """
    if given["nvbench"] is not None and not given["benchmarks"]:
        raise click.UsageError("--nvbench is for --benchmarks.")
    paths = {name: Path(given[name]) for name in ("nvbench", "save", "hipcc") if given[name]}
    session = start(cub, store, whole=True, quiet=output.quiet)
    chosen = Filter((), regex, axes, archs)
    document = verify(
        session, chosen, **{**given, **paths}, announce=None if output.quiet else announce
    )
    if isinstance(document, SassCompiles):
        output.show(document, value_views.compiles)
        return 0
    if isinstance(document, DumpIndex):
        if output.as_json:
            click.echo(document.to_json())
        else:
            dumps = plural(len(document.files), "dump")
            click.echo(f"saved in {given['save']}: {dumps} ({document.toolchain})")
        return 0
    if diffs is not None:
        write_diffs(document, Path(diffs))
    output.show(document, value_views.sass)
    if document.refused and not document.changed:
        count = plural(len(document.refused), "workload")
        raise InputError(f"{count} did not compile: whether their machine code differs is unknown")
    return int(document.changed)
