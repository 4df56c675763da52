"""`policygen db`: what tuning databases hold, how good the variants are, which ones to take."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from policygen.app.databases import Told, cover_spaces, describe_databases, rank_variants
from policygen.app.inputs import ResultFiles, ask_why
from policygen.app.notes import tell_warnings
from policygen.app.rules import choose_rules
from policygen.cli.options import Command, config_option, decorated, filter_options, output_options
from policygen.cli.output import Output
from policygen.cli.progress import warn
from policygen.cli.result_options import (
    confirm_option,
    database_options,
    files_argument,
    given_results,
    rule_options,
)
from policygen.report.views.db import (
    print_choices,
    print_coverage,
    print_info,
    print_top,
    print_why,
)


def ranking(command: Command) -> Command:
    """What changes the ranking and the choice."""
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
def top(given: ResultFiles, top: int, output: Output, **wanted: Any) -> int:
    """Ranks the variants of each workload, with intervals, verdicts and the worst workload."""
    return _show(_rank(given, top, **wanted), print_top, output)


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
    given: ResultFiles, record: str | None, why: str | None, output: Output, **wanted: Any
) -> int:
    """Chooses one variant per workload, or base, and says why not the others."""
    if why is not None:
        given = ask_why(given, why)
    document = _rank(given, None, record, explain=why is not None, **wanted)
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
    """Prints what is usable; what is not is a warning."""
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
