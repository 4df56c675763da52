"""`policygen review`: effects of a change to tuning headers."""

from pathlib import Path

import click

from policygen.app.review import read_proofs, read_review, review_change, tell_sass, with_proofs
from policygen.cli.options import cub_option, gpu_option, out_option, start, store_option
from policygen.cli.output import Out, Output
from policygen.report.review_views import annotations, render
from policygen.report.value_views import announce, print_compiles


@click.command()
@click.option(
    "--base",
    metavar="TREE",
    help="What to compare with: a git revision, a folder or a fetched version."
    "  [default: what the last apply replaced, else HEAD]",
)
@cub_option
@store_option
@click.option(
    "--db",
    "files",
    multiple=True,
    metavar="DB",
    help="Where to look for what was written.  [default: the databases of the apply]",
)
@gpu_option
@click.option("--effect", metavar="FILE", help="What `verify-effect --json` printed.")
@click.option("--sass", metavar="FILE", help="What `verify-sass --json` printed.")
@click.option("--performance", metavar="FILE", help="What `verify-performance --json` printed.")
@click.option("--run-sass", is_flag=True, help="Compare the machine code of all earlier archs.")
@click.option("--dry-run", is_flag=True, help="Say what --run-sass would compile; do nothing else.")
@click.option(
    "--from", "source", metavar="FILE", help="A review that was saved with --format json."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "html", "json"]),
    default="md",
    show_default=True,
    help="How it is written.",
)
@out_option
@click.option(
    "--annotate",
    type=click.Choice(["github"]),
    help="Print findings as a workflow's annotations instead, at file and line.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
def review(
    base: str | None,
    cub: str | None,
    store: Path,
    files: tuple[str, ...],
    gpus: tuple[str, ...],
    effect: str | None,
    sass: str | None,
    performance: str | None,
    run_sass: bool,
    dry_run: bool,
    source: str | None,
    form: str,
    out: Out,
    annotate: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Shows what a change of tuning headers means, made by policygen or by hand.

    For each entry: old and new values, the workloads that get other ones on each architecture,
    what the databases say of them, and what the audits find. Exit status 1: something of this
    must not be merged.
    """
    if sass is not None and run_sass:
        raise click.UsageError("--sass and --run-sass exclude each other.")
    if dry_run and (not run_sass or source is not None):
        raise click.UsageError("--dry-run is for --run-sass.")
    proofs = read_proofs(effect, sass, performance)
    if dry_run:
        compiles = tell_sass(start(cub, store, whole=True, quiet=quiet), base)
        Output(as_json or form == "json", quiet, verbose=False).show(compiles, print_compiles)
        return 0
    if source is not None:
        document = read_review(Path(source))
    else:
        session = start(cub, store, whole=True, quiet=quiet)
        announcer = None if quiet else announce
        document = review_change(
            session, base, files=files, gpus=gpus, run_sass=run_sass, announce=announcer
        )
    document = with_proofs(document, proofs)
    out.write(annotations(document) if annotate else render(document, "json" if as_json else form))
    return int(bool(document.failures))
