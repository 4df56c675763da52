"""The commands of `policygen db` that write a file: merge, export, plot."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.db import inputs, tell
from policygen.cli.options import filter_options, output_options, parse_axes, parse_regex
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.results.case import Case


@click.command()
@click.argument("files", metavar="DB...", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@output_options
def merge(
    files: tuple[str, ...], out: str, force: bool, as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Merges databases into one that CCCL's own scripts read; conflicts are reported.

    The first file that has a row wins, and the exit status is 1 where one was left out. Sources
    stay as they are.
    """
    from policygen.results.load import expand
    from policygen.results.merge import merge as merge_databases

    report = merge_databases(expand(files), Path(out), force=force)
    if as_json:
        click.echo(report.to_json())
    else:
        from policygen.report.db_merge import print_merge

        print_merge(report, verbose=verbose, quiet=quiet)
    return int(any(table.conflicts or table.unusable for table in report.tables))


@click.command()
@click.argument("files", metavar="DB...", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="FILE", help="A .csv or a .parquet file.")
@click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
def export(files: tuple[str, ...], out: str, quiet: bool) -> int:
    """Writes all rows as one flat table, CSV or Parquet."""
    from policygen.results.export import export as export_rows
    from policygen.results.load import expand

    kinds = {".csv": "csv", ".parquet": "parquet"}
    kind = kinds.get(Path(out).suffix.lower())
    if kind is None:
        raise InputError(f"{out}: a table is written to .csv or .parquet")
    rows = export_rows(expand(files), Path(out), kind="csv" if kind == "csv" else "parquet")
    if not quiet:
        click.echo(f"{rows:,} rows written to {out}")
    return 0


@click.command()
@inputs
@filter_options
@click.option(
    "--variant", "variants", multiple=True, metavar="LABEL", help="Repeatable. [the best]"
)
@click.option("--gpu", metavar="NAME", help="The GPU, as the database names it, or its beginning.")
@click.option("--ctk", metavar="VERSION", help="The version of the toolkit.")
@click.option("--cccl", metavar="VERSION", help="The version of CCCL.")
@click.option("--map", "axes_of_map", metavar="X,Y", help="The score over two parameters instead.")
@click.option("-o", "--out", required=True, metavar="FILE", help="An .svg or a .png file.")
@click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
def plot(
    files: tuple[str, ...],
    benches: tuple[str, ...],
    base: str | None,
    regex: str,
    axes: tuple[str, ...],
    variants: tuple[str, ...],
    gpu: str | None,
    ctk: str | None,
    cccl: str | None,
    axes_of_map: str | None,
    out: str,
    quiet: bool,
) -> int:
    """Plots one workload: ratio to base by quantile per runtime workload, or a map of scores.

    A curve above the red line at 1 is faster than base. -R and -a choose the workload.
    """
    from policygen.cli.inputs import open_inputs
    from policygen.model.labels import BASE
    from policygen.report.plots import RatioPanel, ratio_plot, score_map
    from policygen.results.confidence import SampleReader
    from policygen.results.decoder import Decoder
    from policygen.results.plotdata import point_samples, score_cells
    from policygen.results.score import score_case
    from policygen.results.top import Warnings, open_cases

    for name in (*files, *benches, *((base,) if base else ())):
        if Path(name).resolve() == Path(out).resolve():
            raise InputError(f"{out}: is one of the inputs", "Name another file.")
    warnings = Warnings()
    pattern, chosen = parse_regex(regex), parse_axes(axes)
    with (
        open_inputs(files, benches, base) as given,
        open_cases(given.databases, warnings, pattern, chosen) as cases,
    ):
        case = _only(
            tuple(
                case
                for case in cases
                if case.key.gpu.startswith(gpu or "")
                and ctk in {None, case.key.ctk}
                and cccl in {None, case.key.cccl}
            )
        )
        scores = score_case(case, given.declared)
        where = ", ".join(f"{name}={value}" for name, value in case.workload.items())
        title = f"{case.algorithm}[{where}] on {case.key.gpu}"
        if axes_of_map:
            x, comma, y = axes_of_map.partition(",")
            if not comma:
                raise InputError(f"--map {axes_of_map!r} is not of the form X,Y")
            score_map(title, x, y, score_cells(scores, x, y), Path(out))
        else:
            ranked = [case.variants[index] for index in scores.index]
            wanted = variants or tuple(name for name in ranked if name != BASE)[:1]
            with Decoder() as decoder:
                found = point_samples(case, wanted, SampleReader(case, decoder, warnings.add))
            panels = [RatioPanel(p.row, p.column, p.base, p.variants) for p in found]
            ratio_plot(title, panels, Path(out))
    tell(warnings.all)
    if not quiet:
        sys.stdout.write(f"written to {out}\n")
    return 0


def _only(cases: "tuple[Case, ...]") -> "Case":
    if len(cases) == 1:
        return cases[0]
    names = "".join(
        f"\n    {case.algorithm}[{', '.join(f'{n}={v}' for n, v in case.workload.items())}]"
        f" on {case.key.gpu}, ctk {case.key.ctk}, cccl {case.key.cccl}, {' + '.join(case.files)}"
        for case in cases[:10]
    )
    more = f"\n    and {len(cases) - 10} more" if len(cases) > 10 else ""
    if not cases:
        raise InputError("nothing matches", "See what there is: policygen db info DB...")
    same = len({(case.algorithm, *case.workload.values()) for case in cases}) == 1
    raise InputError(
        f"{len(cases)} workloads match, a plot shows one:{names}{more}",
        "They differ in what they were measured on: choose with --gpu, --ctk and --cccl."
        if same
        else "Choose one with -R and -a, such as -a 'T{ct}=I32'.",
    )
