"""`policygen review`: what a change of tuning headers means."""

import sys
from pathlib import Path

import click

from policygen.cli.options import cub_option, store_option


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
@click.option("--effect", metavar="FILE", help="What `verify-effect --json` printed.")
@click.option("--sass", metavar="FILE", help="What `verify-sass --json` printed.")
@click.option("--run-sass", is_flag=True, help="Compare the machine code of all earlier archs.")
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
@click.option("-o", "--out", metavar="FILE", help="Write it to a file.")
@click.option(
    "--annotate",
    type=click.Choice(["github"]),
    help="Print findings as a workflow's annotations instead, at file and line.",
)
@click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
def review(
    base: str | None,
    cub: str | None,
    store: str,
    files: tuple[str, ...],
    effect: str | None,
    sass: str | None,
    run_sass: bool,
    source: str | None,
    form: str,
    out: str | None,
    annotate: str | None,
    quiet: bool,
) -> int:
    """Shows what a change of tuning headers means, made by policygen or by hand.

    For each entry: old and new values, the workloads that get other ones on each architecture,
    what the databases say of them, and what the audits find. Exit status 1: something of this
    must not be merged.
    """
    from policygen.cli.opening import open_cub
    from policygen.cli.planning import write_file
    from policygen.cli.reviewing import look, read
    from policygen.model.effect import Effect
    from policygen.model.review import Review
    from policygen.model.sass import VerifySass
    from policygen.report.views.annotations import annotations
    from policygen.report.views.review import render

    if sass is not None and run_sass:
        raise click.UsageError("--sass and --run-sass exclude each other.")
    if source is not None:
        document = read(Path(source), Review)
    else:
        found = open_cub(cub, store, whole=True)
        document = look(found, base, Path(store), files, run_sass=run_sass, quiet=quiet)
    if effect is not None:
        document = document.model_copy(update={"effect": read(Path(effect), Effect)})
    if sass is not None:
        document = document.model_copy(update={"sass": read(Path(sass), VerifySass)})
    text = annotations(document) if annotate else render(document, form)
    if out is None:
        sys.stdout.write(text)
    else:
        write_file(Path(out), text.encode())
    return int(bool(document.failures))
