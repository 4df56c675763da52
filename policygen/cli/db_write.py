"""The commands of `policygen db` that write a file: merge, export, plot."""

from functools import partial
from pathlib import Path

import click

from policygen.app.database_files import MeasuredWhere, export_rows, merge_databases, plot_workload
from policygen.app.inputs import ResultFiles
from policygen.app.notes import tell_warnings
from policygen.cli.options import force_option, out_option, output_options
from policygen.cli.output import Out, Output
from policygen.cli.progress import warn
from policygen.cli.result_options import database_options, files_argument
from policygen.report.views.db_merge import print_merge
from policygen.report.views.db_written import print_export, print_plot


@click.command()
@files_argument
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@force_option
@partial(output_options, own=True)
def merge(files: tuple[str, ...], out: str, force: bool, output: Output) -> int:
    """Merges databases into one that CCCL's own scripts read; conflicts are reported.

    The first file that has a row wins, and the exit status is 1 where one was left out. Sources
    stay as they are.
    """
    report = merge_databases(files, Path(out), force=force)
    output.tell(report, print_merge)
    return int(any(table.conflicts or table.unusable for table in report.tables))


@click.command()
@files_argument
@partial(out_option, text="A .csv or a .parquet file.", required=True)
@partial(output_options, own=True)
def export(files: tuple[str, ...], out: Out, output: Output) -> int:
    """Writes all rows as one flat table, CSV or Parquet."""
    output.tell(export_rows(files, out.named), print_export)
    return 0


@click.command()
@database_options
@click.option(
    "--variant", "variants", multiple=True, metavar="LABEL", help="Repeatable. [the best]"
)
@click.option("--gpu", metavar="NAME", help="The GPU, as the database names it, or its beginning.")
@click.option("--ctk", metavar="VERSION", help="The version of the toolkit.")
@click.option("--cccl", metavar="VERSION", help="The version of CCCL.")
@click.option("--map", "axes_of_map", metavar="X,Y", help="The score over two parameters instead.")
@partial(out_option, text="An .svg or a .png file.", required=True)
@partial(output_options, own=True)
def plot(
    given: ResultFiles,
    variants: tuple[str, ...],
    gpu: str | None,
    ctk: str | None,
    cccl: str | None,
    axes_of_map: str | None,
    out: Out,
    output: Output,
) -> int:
    """Plots one workload: ratio to base by quantile per runtime workload, or a map of scores.

    A curve above the red line at 1 is faster than base. -R and -a choose the workload.
    """
    measured = MeasuredWhere(gpu, ctk, cccl)
    document = plot_workload(
        given, out.named, variants=variants, parameters=axes_of_map, measured=measured
    )
    tell_warnings(document.warnings, warn)
    output.tell(document, print_plot)
    return 0
