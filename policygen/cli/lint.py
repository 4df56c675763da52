"""`policygen audit lint`: values that their algorithm cannot use."""

from functools import partial

import click

from policygen.app.filters import Filter
from policygen.app.lint import audit_lint, lint_rules
from policygen.cli.options import asked_options, output_options
from policygen.cli.output import Output, end
from policygen.cli.progress import warn
from policygen.report.views.lint import print_lint


@click.command()
@partial(asked_options, arch="Only this arch.")
@click.option("--off", multiple=True, metavar="RULE", help="Without this rule. Repeatable.")
@click.option("--only", multiple=True, metavar="RULE", help="Only this rule. Repeatable.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@output_options
def lint(
    asked: Filter,
    cub: str | None,
    off: tuple[str, ...],
    only: tuple[str, ...],
    list_rules: bool,
    output: Output,
) -> int:
    """Checks the values of tuning entries against what their algorithm can use.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file. Exit status 1 says
    that something was found.
    """
    if list_rules:
        rules = lint_rules()
        width = max(len(name) for name in rules)
        for name, summary in rules.items():
            click.echo(f"{name:{width}}  {summary}")
        return 0
    report, errors = audit_lint(cub, asked, only=only, off=off, note=warn)
    output.show(report, print_lint)
    return end(errors, found=bool(report.findings))
