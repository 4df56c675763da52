"""`policygen bench`: tunable parameters of benchmarks."""

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
from policygen.cli.options import (
    FILE,
    cub_option,
    flag,
    out_option,
    output_options,
    print_options,
    where_options,
)
from policygen.cli.output import Out, Output, end
from policygen.cli.progress import warn
from policygen.portable import nearby
from policygen.report import tree_views
from policygen.report.console import fitted, show


@click.command("list")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@flag("--check", "Compare sources with bindings; exit with 1 if they differ.", to="compare")
@cub_option
@where_options
@output_options
def bench(
    paths: tuple[Path, ...], compare: bool, cub: str | None, selection: Filter, output: Output
) -> int:
    """List parameters, variants and workloads of benchmarks.

    PATH is a benchmark's .cu file, a folder of them, a CCCL checkout, or a cccl_meta_bench.csv.
    The default is the benchmarks of --cub, or of the checkout around the current folder.
    """
    if compare and selection.values:
        raise click.UsageError("--check compares whole axes and cannot be combined with -a")
    if not paths:
        paths = (benchmarks_around(cub),)
        if not output.quiet:
            click.echo(f"benchmarks of {paths[0].as_posix()}", err=True)
    document, errors = read_tunables(paths, selection)
    checked = check_bindings(document) if compare and document.benchmarks else None
    if output.as_json:
        click.echo((checked or document).to_json())
    elif checked:
        show(tree_views.check_lines(checked))
    elif document.benchmarks:
        show(fitted(tree_views.benchmarks)(document, verbose=output.verbose))
    return end(errors, has_findings=checked is not None and checked.differing > 0)


@click.command()
@click.argument("workload", type=FILE, metavar="FILE", required=True)
@out_option(
    "The source to write: cub/benchmarks/bench/FOLDER/NAME.cu.", required=True, makes_folder=True
)
@cub_option
@print_options
def new(workload: Path, out: Out, cub: str | None, output: Output) -> int:
    """Write a benchmark for a workload of your own.

    FILE describes the workload, as for `policygen tune`. The source goes into a CCCL checkout and
    has the tuning parameters of CUB's benchmark for the algorithm, with your types, operator,
    sizes and inputs. Its binding, NAME.binding.toml, is written beside it.
    """
    document = new_benchmark(workload, out.named, cub=cub, force=out.force, note=warn)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    show(fitted(tree_views.benchmarks)(document, verbose=output.verbose))
    if not output.quiet:
        click.echo(f"bound by {nearby(binding_of(out.named))}", err=True)
    return 0
