"""`policygen review`: effects of a change to tuning headers."""

from pathlib import Path
from typing import Any, Literal

import click

from policygen.app.review import read_proofs, read_review, review_change, with_proofs
from policygen.app.sass import tell_earlier
from policygen.cli.options import (
    arch_option,
    base_option,
    choice,
    cub_option,
    files_option,
    flag,
    gpu_option,
    option,
    out_option,
    quiet_option,
    start,
    store_option,
)
from policygen.cli.output import Out, Output
from policygen.report import value_views
from policygen.report.pages import render_page
from policygen.report.review_facts import annotations
from policygen.report.value_views import announce


@click.command()
@base_option()
@cub_option
@store_option
@files_option("A database with the measurements. Repeatable.  [default: those of the apply]")
@gpu_option
@arch_option(
    "An architecture that entries may change besides their own.", name="--reaches", to="reaches"
)
@option("--effect", "FILE", "Include this output of `verify-effect --json`.")
@option("--sass", "FILE", "Include this output of `verify-sass --json`.")
@option("--performance", "FILE", "Include this output of `verify-performance --json`.")
@flag("--run-sass", "Also compare the machine code on all earlier architectures.")
@flag("--dry-run", "Estimate what --run-sass would compile, and exit.")
@option("--from", "FILE", "Render a review saved with --format json.", to="source")
@choice("--format", ["md", "html", "json"], "Output format.", to="form")
@out_option()
@choice("--annotate", ["github"], "Print findings as GitHub annotations.", default=None)
@flag("--json", "Same as --format json.", to="as_json")
@quiet_option
def review(
    base: str | None,
    cub: str | None,
    store: Path,
    effect: str | None,
    sass: str | None,
    performance: str | None,
    dry_run: bool,
    source: str | None,
    form: Literal["json", "md", "html"],
    out: Out,
    annotate: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Explain a change of tuning headers.

    For each entry: old and new values, affected workloads on each architecture, what databases
    say, and audit findings. Exit status 1 means that something must not be merged, such as an
    entry that leaks to an architecture other than its own.
    """
    if sass is not None and given["run_sass"]:
        raise click.UsageError("--sass and --run-sass exclude each other.")
    if dry_run and (not given["run_sass"] or source is not None):
        raise click.UsageError("--dry-run is for --run-sass.")
    proofs = read_proofs(effect, sass, performance)
    if dry_run:
        compiles = tell_earlier(start(cub, store, whole=True, quiet=quiet), base)
        Output(as_json or form == "json", quiet, verbose=False).show(compiles, value_views.compiles)
        return 0
    if source is not None:
        document = read_review(Path(source)).allowing(given["reaches"])
    else:
        session = start(cub, store, whole=True, quiet=quiet)
        document = review_change(session, base, **given, announce=None if quiet else announce)
    document = with_proofs(document, proofs)
    out.write(
        annotations(document) if annotate else render_page(document, "json" if as_json else form)
    )
    return int(bool(document.failures))
