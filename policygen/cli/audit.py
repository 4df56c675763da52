"""`policygen audit`: coverage, lint, and reach."""

import sys
from functools import partial

import click

from policygen.app.audits import audit_coverage, audit_lint, audit_reach, lint_rules, under
from policygen.app.filters import Filter
from policygen.cli.options import gpu_option, out_option, output_options, selection_options, start
from policygen.cli.output import Out, Output, end
from policygen.cli.progress import warn
from policygen.report.coverage_views import print_coverage, render
from policygen.report.value_views import print_lint, print_reach


@click.command()
@selection_options
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit status 1 when less is tuned on any of the archs.",
)
@click.option("--inherited", is_flag=True, help="What is inherited counts as tuned, too.")
@click.option(
    "--db", "files", multiple=True, metavar="DB", help="What could these results fill? Repeatable."
)
@gpu_option
@click.option(
    "--compare",
    metavar="TREE",
    help="What was gained or lost since another tree: a path, a fetched version, a git revision.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "md", "html"]),
    default="table",
    show_default=True,
    help="How it is written.",
)
@out_option
@partial(output_options, own=True)
def coverage(
    selection: Filter,
    cub: str | None,
    fail_under: float | None,
    inherited: bool,
    files: tuple[str, ...],
    gpus: tuple[str, ...],
    compare: str | None,
    form: str,
    out: Out,
    output: Output,
) -> int:
    """Shows which workloads are tuned for which architectures, by asking the compiler.

    Each workload of each benchmark is tuned, inherited from an earlier arch, left to the defaults,
    disabled (its entry is commented out) or unreachable (its entry is never taken). HEADER is an
    algorithm (scan) or a header's name. Without --arch: all archs that the tree has tunings for.
    """
    if out.path is not None and form == "table" and not output.as_json:
        raise click.UsageError("-o is for --json and --format csv, md and html.")
    session = start(cub, quiet=output.quiet)
    document, errors = audit_coverage(session, selection, compare=compare, files=files, gpus=gpus)
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif form != "table":
        out.write(render(document, form))
    else:
        output.show(document, print_coverage)
    missed = under(document, fail_under, inherited=inherited)
    for line in missed:
        sys.stderr.write(f"policygen: {line}\n")
    return end(errors, has_findings=bool(missed))


# `policygen audit lint`


@click.command()
@partial(selection_options, arch="Only this arch.")
@click.option("--off", multiple=True, metavar="RULE", help="Without this rule. Repeatable.")
@click.option("--only", multiple=True, metavar="RULE", help="Only this rule. Repeatable.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@output_options
def lint(
    selection: Filter,
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
    report, errors = audit_lint(cub, selection, only=only, off=off, note=warn)
    output.show(report, print_lint)
    return end(errors, has_findings=bool(report.findings))


# `policygen audit reach`


@click.command()
@partial(selection_options, arch="Only entries for this arch. Repeatable.")
@output_options
def reach(selection: Filter, cub: str | None, output: Output) -> int:
    """Finds entries that no workload can ever select, by asking the compiler.

    In a copy of each header every entry gets a value that is its own; then all workloads are
    tried, those of benchmarks and many that no benchmark has, on every arch whose policy reads
    the family, and at which a policy selector may decide otherwise. HEADER is an algorithm (scan)
    or a header's name; -R, -a and --arch choose entries, as they do for scan. Exit status 1 says
    that an entry was never seen.
    """
    document, errors = audit_reach(start(cub, quiet=output.quiet), selection)
    output.show(document, print_reach)
    return end(errors, has_findings=bool(document.unreachable))
