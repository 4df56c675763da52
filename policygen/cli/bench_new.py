"""`policygen bench new`: a benchmark of one's own for a CCCL checkout."""

from functools import partial
from pathlib import Path

import click

from policygen.app.new_benchmark import binding_of, new_benchmark
from policygen.cli.options import cub_option, out_option, output_options
from policygen.cli.output import Out, Output
from policygen.cli.progress import warn
from policygen.paths import nearby
from policygen.report.console import results
from policygen.report.views import bench as report


@click.command()
@click.argument(
    "workload", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True
)
@partial(out_option, text="The source: cub/benchmarks/bench/FOLDER/NAME.cu.", required=True)
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
