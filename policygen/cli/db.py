"""`policygen db`: contents of tuning databases, rankings, and choices."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from policygen.app.databases import (
    MeasuredWhere,
    Told,
    compare_databases,
    cover_spaces,
    describe_databases,
    export_rows,
    merge_databases,
    rank_variants,
    report_search,
    strategy_matrix,
)
from policygen.app.db_import import ImportedAs, import_results
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, ask_why, check_other, choose_rules, tell_warnings
from policygen.cli.options import (
    FORMS,
    arch_option,
    bench_option,
    choice,
    combined,
    config_option,
    confirm_option,
    database_options,
    files_argument,
    filter_options,
    flag,
    force_option,
    given_results,
    joined,
    number,
    option,
    out_option,
    output_options,
    print_options,
    repeated,
    rule_options,
)
from policygen.cli.output import Out, Output, View
from policygen.cli.progress import warn
from policygen.plots import is_plot, plot_comparison, plot_workload
from policygen.report import database_views, measure_views, ranking_views, search_views
from policygen.report.console import fitted
from policygen.report.pages import render_page

ranking = joined(
    option("--current", "LABEL", "The header's current variant, as a label."),
    flag(
        "--prefer-simple",
        "Among variants too close to call, choose the one closest to --current.",
        default=None,
    ),
    rule_options(),
    number(
        "--alpha",
        click.FloatRange(0, 1),
        "CCCL's filter: only runtime workloads with samples that differ from base (p < alpha).",
        default=1.0,
    ),
    confirm_option,
    config_option,
)
"""Options that change the ranking and the choice."""


@click.command()
@database_options
@ranking
@number("--top", click.IntRange(1), "Number of variants to list.", default=10)
@output_options
def top(given: ResultFiles, top: int, output: Output, **ranking_options: Any) -> int:
    """Rank variants by score, with intervals and verdicts."""
    return _show(_rank(given, top=top, **ranking_options), fitted(ranking_views.ranking), output)


@click.command()
@database_options
@ranking
@option("--record", "FILE", "Record the decisions in this store: policygen.db.")
@option("--why", "WORKLOAD", "Explain the choice for one workload: cub.bench.reduce.sum T=I32.")
@output_options
def choose(
    given: ResultFiles, record: str | None, why: str | None, output: Output, **ranking_options: Any
) -> int:
    """Choose one variant per workload, or base, with reasons."""
    if why is not None:
        given = ask_why(given, why)
    store = None if record is None else Path(record)
    document = _rank(given, record=store, explain=why is not None, **ranking_options)
    view = ranking_views.choices if why is None else ranking_views.why
    return _show(document, fitted(view), output)


@click.command()
@database_options
@output_options
def coverage(given: ResultFiles, output: Output) -> int:
    """Show how much of each search space was measured."""
    return _show(cover_spaces(given), fitted(ranking_views.coverage), output)


@click.command()
@files_argument
@filter_options
@combined("given", given_results, "files", "regex", "axes")
@output_options
def info(given: ResultFiles, output: Output) -> int:
    """Show what a database contains."""
    return _show(describe_databases(given), ranking_views.info, output)


def _show(document: Told, view: View, output: Output) -> int:
    """Print the usable results, and warn about the others."""
    output.show(document, view)
    tell_warnings(document.warnings, warn)
    return 0


def _rank(
    given: ResultFiles,
    *,
    current: str | None,
    prefer_simple: bool | None,
    rules: dict[str, Any],
    confirm: tuple[str, ...],
    **how: Any,
) -> Told:
    chosen = choose_rules(current, prefer_simple=prefer_simple, **rules)
    return rank_variants(replace(given, confirm=confirm), chosen, current=current, **how)


@click.command()
@click.argument("a", metavar="A.db")
@click.argument("b", metavar="B.db")
@filter_options
@bench_option
@rule_options()
@config_option
@out_option("Write the output to a file; .svg and .html are plots.")
@print_options
def compare(
    a: str,
    b: str,
    regex: str,
    axes: tuple[str, ...],
    benches: tuple[str, ...],
    rules: dict[str, Any],
    out: Out,
    output: Output,
) -> int:
    """Compare two searches, or two GPUs.

    Shows ranking, noise, choices, and how each side's winners do on the other. A.db and B.db may
    be globs for several runs. With -o FILE.svg or .html, scores are plotted against each other.
    """
    plotted = out.path is not None and is_plot(out.path)
    first, second = (
        given_results([pattern], benches, regex=regex, axes=axes) for pattern in (a, b)
    )
    if out.path is not None:
        check_other(out.path, first, second)
    document = compare_databases(first, second, choose_rules(**rules))
    if plotted:
        plot_comparison(document, out.named, force=out.force)
    with (Out() if plotted else out).printed():
        output.show(document, fitted(database_views.compared))
    tell_warnings(document.warnings, warn)
    if plotted:
        _say_where(out, output)
    return 0


FACTS = ("name", "base", "gpu", "archs", "ctk", "cccl", "types", "size", "cub", "warmup")
_fact = partial(option, default="")
facts_options = joined(
    combined("named", ImportedAs, *FACTS),
    number(
        "--warmup",
        click.IntRange(0, 1000),
        "Number of first launches of each configuration to ignore as warm-up.",
        default=1,
    ),
    _fact(
        "--cub",
        "PATH",
        "The tree whose entries are the baseline, for results of a library:"
        " rocprim@5.7.1, or a checkout.",
    ),
    _fact(
        "--size", "SIZE", "The problem size, if the file does not state it: 1000000, or 4096x4096."
    ),
    repeated(
        "--type", "AXIS=VALUE", "A compile-time axis of the kernel: T=F32. Repeatable.", to="types"
    ),
    _fact("--cccl", "VERSION", "The version of CCCL, or of the tree that has the kernel's header."),
    _fact("--ctk", "VERSION", "The version of the CUDA toolkit."),
    arch_option("The architecture of the GPU, if policygen does not know it.", amd=True),
    _fact("--gpu", "NAME", "The GPU's name in the database.  [default: from the files]"),
    _fact(
        "--base",
        "CONFIGURATION",
        "The baseline configuration: block_size_x=128,tile=2, or a label.",
    ),
    _fact(
        "--name",
        "NAME",
        "The kernel's name in results, own.NAME; a name with dots is kept.  [default:"
        " from the files]",
    ),
)
"""What files do not say, as one `named`."""


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@force_option
@facts_options
@print_options
def import_files(
    files: tuple[str, ...], out: str, force: bool, named: ImportedAs, output: Output
) -> int:
    """Import results of Kernel Tuner, T4 files, or rocPRIM.

    Several files of one kernel and GPU are joined; their problem sizes become runtime workloads.
    rocPRIM's files may cover many algorithms. The format is detected from the contents.
    """
    output.show(import_results(files, Path(out), named, force=force), database_views.imported)
    return 0


@click.command()
@files_argument
@option(
    "-R", "REGEX", "Only kernels whose name matches REGEX at its start.", to="regex", default=""
)
@option("--by", "PARAMETER", "The parameter to compare by.  [default: strategy]")
@out_option("Write the output to a file: .html (page with a heat map) or .md.")
@print_options
def matrix(files: tuple[str, ...], regex: str, by: str | None, out: Out, output: Output) -> int:
    """Compare strategies of your kernel at each size.

    Uses the best measured variant of each strategy (`policygen measure --workload`). -v adds
    bandwidth, occupancy, registers and shared memory.
    """
    if out.path is not None:
        check_other(out.path, ResultFiles(files))
    document = strategy_matrix(files, Filter(regex=regex), by)
    _write(document, measure_views.compared, out, output, _form(out.path))
    _say_where(out, output)
    return 0


@click.command()
@files_argument
@filter_options
@bench_option
@combined("given", given_results, "files", "benches", "regex", "axes")
@rule_options()
@config_option
@choice(
    "--format",
    ["table", "md", "html"],
    "Output format.  [default: by FILE's extension, else table]",
    to="form",
    default=None,
)
@out_option("Write the output to a file: .html (page with figures) or .md.")
@print_options
def report(
    given: ResultFiles,
    rules: dict[str, Any],
    form: Literal["table", "md", "html"] | None,
    out: Out,
    output: Output,
) -> int:
    """Report what a search found, and how reliable it is.

    The page shows winners with intervals, convergence, scores against parameters, failures, noise
    and the machine. Databases of `policygen measure` and of CCCL's search have part of that.
    """
    if out.path is not None:
        check_other(out.path, given)
    document = report_search(given, choose_rules(**rules))
    _write(document, search_views.reported, out, output, form or _form(out.path))
    tell_warnings(document.warnings, warn)
    _say_where(out, output)
    return 0


def _write(
    document: Any, view: View, out: Out, output: Output, form: Literal["table", "md", "html"]
) -> None:
    if form == "table" or output.as_json:
        with out.printed():
            output.show(document, view)
    else:
        out.write(render_page(document, form))


def _form(path: Path | None) -> Literal["table", "md", "html"]:
    return FORMS.get(path.suffix.lower(), "table") if path else "table"


def _say_where(out: Out, output: Output) -> None:
    if out.path is not None and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")


# Commands of `policygen db` that write a file: merge, export, and plot


@click.command()
@files_argument
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@force_option
@print_options
def merge(files: tuple[str, ...], out: str, force: bool, output: Output) -> int:
    """Merge databases into one in CCCL's layout.

    Runs with different bases stay separate. If rows of a run differ, the first file's row wins, and
    the exit status is 1. Sources are not changed.
    """
    report = merge_databases(files, Path(out), force=force)
    output.show(report, database_views.merged)
    return int(any(table.conflicts or table.unusable for table in report.tables))


@click.command()
@files_argument
@out_option("The .csv or .parquet file to write.", required=True)
@print_options
def export(files: tuple[str, ...], out: Out, output: Output) -> int:
    """Export all rows to CSV or Parquet."""
    output.show(export_rows(files, out.named), database_views.exported)
    return 0


@click.command()
@database_options
@repeated(
    "--variant", "LABEL", "A variant to plot. Repeatable.  [default: the best]", to="variants"
)
@option("--gpu", "NAME", "The GPU's name in the database, or the start of it.")
@option("--ctk", "VERSION", "The version of the CUDA toolkit.")
@option("--cccl", "VERSION", "The version of CCCL.")
@option("--map", "X,Y", "Plot scores over two parameters instead.", to="parameters")
@combined("measured", MeasuredWhere, "gpu", "ctk", "cccl")
@out_option("The .svg file to write.", required=True)
@print_options
def plot(
    given: ResultFiles,
    variants: tuple[str, ...],
    measured: MeasuredWhere,
    parameters: str | None,
    out: Out,
    output: Output,
) -> int:
    """Plot one workload by quantile, or a map of scores.

    A curve above the red line at 1 is faster than base. -R and -a choose the workload.
    """
    document = plot_workload(
        given, out.named, variants=variants, parameters=parameters, measured=measured
    )
    tell_warnings(document.warnings, warn)
    output.show(document, database_views.plotted)
    return 0
