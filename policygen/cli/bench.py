"""`policygen bench`: what benchmarks offer to tune."""

from pathlib import Path

import click

from policygen.app.benchmarks import benchmarks_around, check_bindings, read_tunables
from policygen.app.filters import Filter
from policygen.cli.options import cub_option, filter_options, output_options
from policygen.cli.output import Output, end
from policygen.report.console import results
from policygen.report.views import bench as report
from policygen.report.views import bench_check


@click.command("list")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--check", "compare", is_flag=True, help="Compare with the bindings; 1 when they differ."
)
@cub_option
@filter_options
@output_options
def bench(
    paths: tuple[Path, ...],
    compare: bool,
    cub: str | None,
    axes: tuple[str, ...],
    regex: str,
    output: Output,
) -> int:
    """The parameters, variants and workloads of benchmarks.

    PATH is a benchmark's .cu file, a folder of them, a CCCL checkout, or a cccl_meta_bench.csv.
    Without one: the benchmarks of --cub, else of the checkout around the current folder.
    """
    asked = Filter((), regex, axes)
    if compare and asked.values:
        raise click.UsageError("--check compares whole axes: give no -a with it")
    if not paths:
        paths = (benchmarks_around(cub),)
        if not output.quiet:
            click.echo(f"benchmarks of {paths[0].as_posix()}", err=True)
    document, errors = read_tunables(paths, asked)
    checked = check_bindings(document) if compare and document.benchmarks else None
    if output.as_json:
        click.echo((checked or document).to_json())
    elif checked:
        bench_check.show(checked, results())
    elif document.benchmarks:
        report.show(document, results(), verbose=output.verbose)
    return end(errors, found=checked is not None and checked.differing > 0)
