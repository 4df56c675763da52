"""`policygen audit coverage`: which workloads are tuned for which architectures."""

import sys
from functools import partial

import click

from policygen.app.coverage import audit_coverage, under
from policygen.app.filters import Filter
from policygen.cli.options import asked_options, out_option, output_options
from policygen.cli.output import Out, Output, end
from policygen.cli.result_options import gpu_option
from policygen.cli.start import start
from policygen.report.views.coverage import print_coverage, render


@click.command()
@asked_options
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
    asked: Filter,
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
    document, errors = audit_coverage(session, asked, compare=compare, files=files, gpus=gpus)
    if output.as_json:
        out.write(document.to_json() + "\n")
    elif form != "table":
        out.write(render(document, form))
    else:
        output.show(document, print_coverage)
    missed = under(document, fail_under, inherited=inherited)
    for line in missed:
        sys.stderr.write(f"policygen: {line}\n")
    return end(errors, found=bool(missed))
