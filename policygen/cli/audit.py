"""`policygen audit`: coverage, lint, and reach."""

import sys
from typing import Any, Literal

import click

from policygen.app.audits import audit_coverage, audit_lint, audit_reach, lint_rules, under
from policygen.app.filters import Filter
from policygen.cli.options import (
    choice,
    files_option,
    flag,
    gpu_option,
    option,
    out_option,
    output_options,
    print_options,
    repeated,
    selection_options,
    start,
)
from policygen.cli.output import Out, Output, end
from policygen.cli.progress import warn
from policygen.report import coverage_views, value_views
from policygen.report.pages import render_page


@click.command()
@selection_options
@option(
    "--fail-under",
    "PERCENT",
    "Exit with 1 if a smaller percentage is tuned on any architecture.",
    type=click.FloatRange(0, 100),
)
@flag("--inherited", "Count inherited workloads as tuned.")
@files_option("A database whose results could fill gaps. Repeatable.")
@gpu_option
@option(
    "--compare", "TREE", "Compare with another tree: a path, a fetched version, or a git revision."
)
@choice("--format", ["table", "csv", "md", "html"], "Output format.", to="form")
@out_option()
@print_options
def coverage(
    selection: Filter,
    cub: str | None,
    fail_under: float | None,
    inherited: bool,
    form: Literal["table", "csv", "md", "html"],
    out: Out,
    output: Output,
    **given: Any,
) -> int:
    """Show which workloads are tuned on which architectures.

    A workload is tuned, inherited from an earlier architecture, default, disabled (its entry is
    commented out) or unreachable (its entry is never selected). HEADER is an algorithm (scan)
    or a header's name. Without --arch, all architectures that the tree has tunings for are
    shown.
    """
    if out.path is not None and form == "table" and not output.as_json:
        raise click.UsageError("-o is for --json and --format csv, md and html.")
    session = start(cub, quiet=output.quiet)
    document, errors = audit_coverage(session, selection, **given)
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif form != "table":
        out.write(render_page(document, form))
    else:
        output.show(document, coverage_views.coverage)
    missed = under(document, fail_under, inherited=inherited)
    for line in missed:
        sys.stderr.write(f"policygen: {line}\n")
    return end(errors, has_findings=bool(missed))


@click.command()
@selection_options
@repeated("--off", "RULE", "Skip this rule. Repeatable.")
@repeated("--only", "RULE", "Apply only this rule. Repeatable.")
@flag("--rules", "List the rules and exit.", to="list_rules")
@output_options
def lint(selection: Filter, cub: str | None, list_rules: bool, output: Output, **rules: Any) -> int:
    """Find implausible values of tuning entries.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file. Exit status 1 means
    that there are findings.
    """
    if list_rules:
        summaries = lint_rules()
        width = max(len(name) for name in summaries)
        for name, summary in summaries.items():
            click.echo(f"{name:{width}}  {summary}")
        return 0
    report, errors = audit_lint(cub, selection, **rules, note=warn)
    output.show(report, value_views.lint)
    return end(errors, has_findings=bool(report.findings))


@click.command()
@selection_options
@output_options
def reach(selection: Filter, cub: str | None, output: Output) -> int:
    """Find tuning entries that nothing selects.

    In a copy of each header every entry gets a unique value. Then all workloads of benchmarks, and
    many other calls, are compiled for every architecture that can select differently. HEADER
    is an algorithm (scan) or a header's name; -R, -a and --arch filter entries, as for scan.
    Exit status 1 means that some entry was never selected.
    """
    document, errors = audit_reach(start(cub, quiet=output.quiet), selection)
    output.show(document, value_views.reach)
    return end(errors, has_findings=bool(document.unreachable))
