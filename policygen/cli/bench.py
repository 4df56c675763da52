"""`policygen bench`: tunable parameters of benchmarks."""

from functools import partial
from pathlib import Path

import click

from policygen.app.benchmarks import (
    benchmarks_around,
    binding_of,
    check_bindings,
    new_benchmark,
    read_tunables,
)
from policygen.app.filters import Filter
from policygen.cli.options import cub_option, filter_options, out_option, output_options
from policygen.cli.output import Out, Output, end
from policygen.cli.progress import warn
from policygen.paths import nearby
from policygen.report import tree_views
from policygen.report import tree_views as report
from policygen.report.console import results


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
    selection = Filter((), regex, axes)
    if compare and selection.values:
        raise click.UsageError("--check compares whole axes: give no -a with it")
    if not paths:
        paths = (benchmarks_around(cub),)
        if not output.quiet:
            click.echo(f"benchmarks of {paths[0].as_posix()}", err=True)
    document, errors = read_tunables(paths, selection)
    checked = check_bindings(document) if compare and document.benchmarks else None
    if output.as_json:
        click.echo((checked or document).to_json())
    elif checked:
        tree_views.show_check(checked, results())
    elif document.benchmarks:
        report.show(document, results(), verbose=output.verbose)
    return end(errors, has_findings=checked is not None and checked.differing > 0)


# `policygen bench new`


@click.command()
@click.argument(
    "workload", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True
)
@partial(
    out_option,
    text="The source: cub/benchmarks/bench/FOLDER/NAME.cu.",
    required=True,
    chosen=Out.chosen_with_folder,
)
@cub_option
@partial(output_options, own=True)
def new(workload: Path, out: Out, cub: str | None, output: Output) -> int:
    """Writes a benchmark of your own for a CCCL checkout, and a binding of it.

    FILE names a workload of your own, as `policygen tune` takes it. The source has the parameters
    of the benchmark that CUB has for the algorithm, and your types, operator, sizes and inputs.
    What is shown is read from it. The binding lies beside it: NAME.binding.toml.
    """
    document = new_benchmark(workload, out.named, cub=cub, force=out.force, note=warn)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    report.show(document, results(), verbose=output.verbose)
    if not output.quiet:
        click.echo(f"bound by {nearby(binding_of(out.named))}", err=True)
    return 0
