"""`policygen db`: contents of tuning databases, rankings, and choices."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.databases import (
    MeasuredWhere,
    Told,
    compare_databases,
    cover_spaces,
    describe_databases,
    export_rows,
    is_plot,
    merge_databases,
    plot_comparison,
    plot_workload,
    rank_variants,
)
from policygen.app.db_import import ImportedAs, import_results
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, ask_why, check_other, choose_rules
from policygen.app.kernel_matrix import strategy_matrix
from policygen.app.search_report import report_search
from policygen.app.session import tell_warnings
from policygen.cli.options import (
    FORMS,
    Command,
    arch_option,
    bench_option,
    combined_option,
    config_option,
    confirm_option,
    database_options,
    decorated,
    files_argument,
    filter_options,
    force_option,
    given_results,
    out_option,
    output_options,
    rule_options,
)
from policygen.cli.output import Out, Output, printed
from policygen.cli.progress import warn
from policygen.report.agreement_views import print_compared
from policygen.report.database_views import print_export, print_import, print_merge, print_plot
from policygen.report.measure_views import print_matrix, render
from policygen.report.ranking_views import (
    print_choices,
    print_coverage,
    print_info,
    print_top,
    print_why,
)
from policygen.report.search_views import print_reported
from policygen.report.search_views import render as search_views_render


def ranking(command: Command) -> Command:
    """Options that change the ranking and the choice."""
    return decorated(
        command,
        click.option(
            "--current", metavar="LABEL", help="The values in the header now, as a label."
        ),
        click.option(
            "--prefer-simple",
            is_flag=True,
            default=None,
            help="Among those too close to call, the one closest to --current.",
        ),
        rule_options,
        click.option(
            "--alpha",
            type=click.FloatRange(0, 1),
            default=1.0,
            show_default=True,
            help="CCCL's: only runtime workloads whose samples differ from base's (p < alpha).",
        ),
        confirm_option,
        config_option,
    )


@click.command()
@database_options
@ranking
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="How many.")
@output_options
def top(given: ResultFiles, top: int, output: Output, **ranking_options: Any) -> int:
    """Ranks the variants of each workload, with intervals, verdicts and the worst workload."""
    return _show(_rank(given, top, **ranking_options), print_top, output)


@click.command()
@database_options
@ranking
@click.option(
    "--record", metavar="FILE", help="Keep the decisions in this store, such as policygen.db."
)
@click.option(
    "--why",
    metavar="WORKLOAD",
    help="The whole reasoning for one workload: cub.bench.reduce.sum T=I32.",
)
@output_options
def choose(
    given: ResultFiles, record: str | None, why: str | None, output: Output, **ranking_options: Any
) -> int:
    """Chooses one variant per workload, or base, and says why not the others."""
    if why is not None:
        given = ask_why(given, why)
    document = _rank(given, None, record, explain=why is not None, **ranking_options)
    return _show(document, print_choices if why is None else print_why, output)


@click.command()
@database_options
@output_options
def coverage(given: ResultFiles, output: Output) -> int:
    """Shows how much of the search space was measured, workload by workload."""
    return _show(cover_spaces(given), print_coverage, output)


@click.command()
@files_argument
@filter_options
@output_options
def info(files: tuple[str, ...], regex: str, axes: tuple[str, ...], output: Output) -> int:
    """Shows algorithms, workloads, GPUs, versions, rows, failures and the time spent."""
    given = given_results(files, regex=regex, axes=axes)
    return _show(describe_databases(given), print_info, output)


def _show(document: Told, print_text: Callable[..., None], output: Output) -> int:
    """Print the usable results, and warn about the others."""
    output.tell(document, print_text)
    tell_warnings(document.warnings, warn)
    return 0


def _rank(
    given: ResultFiles,
    top: int | None,
    record: str | None = None,
    *,
    alpha: float,
    current: str | None,
    prefer_simple: bool | None,
    rules: dict[str, Any],
    confirm: tuple[str, ...],
    explain: bool = False,
) -> Told:
    chosen = choose_rules(current, prefer_simple=prefer_simple, **rules)
    store = None if record is None else Path(record)
    return rank_variants(
        replace(given, confirm=confirm),
        chosen,
        top=top,
        alpha=alpha,
        current=current,
        record=store,
        explain=explain,
    )


# `policygen db compare`


@click.command()
@click.argument("a", metavar="A.db")
@click.argument("b", metavar="B.db")
@filter_options
@bench_option
@rule_options
@config_option
@partial(out_option, text="Write what is printed to a file; .svg, .png and .html are plots.")
@partial(output_options, own=True)
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
    """Compares two GPUs or two searches: order, noise, choices, and how winners do elsewhere.

    A.db and B.db may be globs, of runs of the same. With -o FILE.svg, .png or .html the scores of
    both are plotted against each other, besides what is printed.
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
    if plotted or out.path is None:
        output.tell(document, print_compared)
    else:
        with printed() as data:
            output.tell(document, print_compared)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    tell_warnings(document.warnings, warn)
    if plotted and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0


# `policygen db import`


def facts_options(command: Command) -> Command:
    """What files do not say, as one `named`."""
    names = ("name", "base", "gpu", "archs", "ctk", "cccl", "types", "size", "cub", "warmup")
    return decorated(
        combined_option(command, "named", ImportedAs, *names),
        click.option(
            "--warmup",
            type=click.IntRange(0, 1000),
            default=1,
            show_default=True,
            help="As many first launches of each configuration warm up, and do not count.",
        ),
        click.option(
            "--cub",
            default="",
            metavar="PATH",
            help="The tree whose entries are base, of a library whose results these are:"
            " rocprim@5.7.1, or a checkout.",
        ),
        click.option(
            "--size",
            default="",
            metavar="SIZE",
            help="The size of the problem, where a file does not say it: 1000000, or 4096x4096.",
        ),
        click.option(
            "--type",
            "types",
            multiple=True,
            metavar="AXIS=VALUE",
            help="What the kernel was compiled for, as an axis: T=F32. Repeatable.",
        ),
        click.option(
            "--cccl",
            default="",
            metavar="VERSION",
            help="The version of CCCL, or of the tree that has the kernel's header.",
        ),
        click.option("--ctk", default="", metavar="VERSION", help="The version of the toolkit."),
        partial(arch_option, text="The GPU's, where policygen does not know it.", amd=True),
        click.option(
            "--gpu",
            default="",
            metavar="NAME",
            help="The GPU, as the database is to name it.  [default: as the files do]",
        ),
        click.option(
            "--base",
            default="",
            metavar="CONFIGURATION",
            help="The configuration in use now, with which others are compared:"
            " block_size_x=128,tile=2, or a label.",
        ),
        click.option(
            "--name",
            default="",
            metavar="NAME",
            help="What results call the kernel: own.NAME; with dots it stays, as bindings have it."
            "  [default: as the files do]",
        ),
    )


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@force_option
@facts_options
@partial(output_options, own=True)
def import_files(
    files: tuple[str, ...], out: str, force: bool, named: ImportedAs, output: Output
) -> int:
    """Writes results of Kernel Tuner, T4 results, or rocPRIM's results, as a database.

    Several files are of one kernel on one GPU: sizes of the problem are its runtime workloads, and
    what was measured twice is joined. Files of rocPRIM's are of as many algorithms as they name.
    What a file is, its content tells.
    """
    output.tell(import_results(files, Path(out), named, force=force), print_import)
    return 0


# `policygen db matrix`


@click.command()
@files_argument
@click.option(
    "-R",
    "regex",
    default="",
    metavar="REGEX",
    help="Only kernels whose name begins with a match of REGEX.",
)
@click.option(
    "--by",
    metavar="PARAMETER",
    help="The parameter whose values are compared as sets.  [default: strategy]",
)
@partial(out_option, text="Write it to a file; .html is a page with a heat map, .md is Markdown.")
@partial(output_options, own=True)
def matrix(files: tuple[str, ...], regex: str, by: str | None, out: Out, output: Output) -> int:
    """Compares strategies of a kernel of one's own: who is fastest at which size, and why.

    Of each strategy the best variant counts at each size, of what `policygen measure --workload`
    has measured; -v shows bandwidth, occupancy, registers and shared memory of each.
    """
    if out.path is not None:
        check_other(out.path, ResultFiles(files))
    document = strategy_matrix(files, Filter((), regex, (), ()), by)
    form = FORMS.get(out.path.suffix.lower()) if out.path else None
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif form is not None:
        out.write(render(document, form))
    elif out.path is None:
        output.tell(document, print_matrix)
    else:
        with printed() as data:
            output.tell(document, print_matrix)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    if out.path is not None and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0


# `policygen db report`


@click.command()
@files_argument
@filter_options
@bench_option
@rule_options
@config_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "html"]),
    help="How it is written.  [default: what FILE ends with, else table]",
)
@partial(out_option, text="Write it to a file; .html is a page with figures, .md is Markdown.")
@partial(output_options, own=True)
def report(
    files: tuple[str, ...],
    regex: str,
    axes: tuple[str, ...],
    benches: tuple[str, ...],
    rules: dict[str, Any],
    form: str | None,
    out: Out,
    output: Output,
) -> int:
    """Tells what a search found for each workload, how sure that is, and how it got there.

    The page has the winner with its interval beside what the screening had said, convergence,
    scores against parameters, what failed and why, noise, and the machine. Databases of `policygen
    measure` and of CCCL's own search have what they tell of that.
    """
    given = given_results(files, benches, regex=regex, axes=axes)
    if out.path is not None:
        check_other(out.path, given)
    document = report_search(given, choose_rules(**rules))
    written = form or ("table" if output.as_json else _form(out.path))
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif written != "table":
        out.write(search_views_render(document, written))
    elif out.path is None:
        output.tell(document, print_reported)
    else:
        with printed() as data:
            output.tell(document, print_reported)
        out.write(data.getvalue().decode("utf-8", "surrogateescape"))
    tell_warnings(document.warnings, warn)
    if out.path is not None and not (output.quiet or output.as_json):
        click.echo(f"written to {out.path}")
    return 0


def _form(path: Path | None) -> str:
    return FORMS.get(path.suffix.lower(), "table") if path else "table"


# Commands of `policygen db` that write a file: merge, export, and plot


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
