"""`policygen audit coverage`: which workloads are tuned for which architectures."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policygen.cli.options import cub_option, filter_options, output_options
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.model.coverage import Coverage, Fillable
    from policygen.model.resolve import Resolution


@click.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@filter_options
@click.option("--arch", "archs", multiple=True, metavar="ARCH", help="For this arch. Repeatable.")
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
@click.option("-o", "--out", metavar="FILE", help="Write it to a file.")
@output_options
def coverage(
    headers: tuple[str, ...],
    cub: str | None,
    regex: str,
    axes: tuple[str, ...],
    archs: tuple[str, ...],
    fail_under: float | None,
    inherited: bool,
    files: tuple[str, ...],
    compare: str | None,
    form: str,
    out: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows which workloads are tuned for which architectures, by asking the compiler.

    Each workload of each benchmark is tuned, inherited from an earlier arch, left to the defaults,
    disabled (its entry is commented out) or unreachable (its entry is never taken). HEADER is an
    algorithm (scan) or a header's name. Without --arch: all archs that the tree has tunings for.
    """
    from policygen.cli.asking import read_tree
    from policygen.cli.opening import open_cub
    from policygen.cli.plan_options import defaults
    from policygen.cli.planning import write_file
    from policygen.cli.resolve import Question, other_tree
    from policygen.errors import Problems
    from policygen.model.coverage import Compared
    from policygen.proof.coverage import cells, turned
    from policygen.report.views.coverage import print_coverage, render

    if out is not None and form == "table" and not as_json:
        raise click.UsageError("-o is for --json and --format csv, md and html.")
    found = open_cub(cub)
    now, errors = Question(headers, regex, axes, archs, quiet=quiet).ask(read_tree(found, headers))
    document = _document(now)
    if compare is not None:
        other = other_tree(found, compare)
        question = Question(headers, regex, axes, now.archs, quiet=quiet)
        then, more = question.ask(read_tree(other, headers))
        errors += more
        changes = turned(cells(then), document.cells)
        document = document.model_copy(update={"compared": Compared(cub=other, turned=changes)})
    if files:
        given = {**defaults(), "files": files, "cub": cub, "regex": regex, "axes": axes}
        could = _fillable(document, given, quiet=quiet)
        document = document.model_copy(update={"fillable": could})
    if as_json or form != "table":
        text = document.to_json() + "\n" if as_json else render(document, form)
        if out is None:
            sys.stdout.write(text)
        else:
            write_file(Path(out), text.encode())
    else:
        print_coverage(document, head=not quiet, verbose=verbose)
    if errors:
        raise Problems(errors)
    return int(_is_under(document, fail_under, inherited=inherited))


def _document(resolution: "Resolution") -> "Coverage":
    from policygen.model.coverage import Coverage
    from policygen.proof.coverage import cells, shares

    found = cells(resolution)
    return Coverage(
        cub=resolution.cub,
        toolchain=resolution.toolchain,
        archs=resolution.archs,
        shares=shares(found),
        cells=found,
        remarks=resolution.remarks,
        unresolved=resolution.unresolved,
        problems=resolution.problems,
    )


def _fillable(
    document: "Coverage", given: Mapping[str, Any], *, quiet: bool
) -> "tuple[Fillable, ...]":
    """What plans for the GPUs of databases would write where nothing is tuned."""
    from policygen.bindings.archs import gpu_arch
    from policygen.cli.plan_options import options_of
    from policygen.cli.planning import plan_for, ranked
    from policygen.proof.coverage import fillable

    with ranked(given) as results:
        gpus = {one.gpu: gpu_arch(one.gpu) for one in results.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            told = ", ".join(f"{gpu} ({of or 'not known'})" for gpu, of in sorted(gpus.items()))
            raise InputError(
                f"the results are from {told}, and asked is for {', '.join(document.archs)}",
                "Name the architecture that was measured: --arch sm90",
            )
        wanted = [{**given, "arch": arch} for arch in archs]
        plans = [
            plan_for(results, options_of(one), one, prove=False, quiet=quiet).plan for one in wanted
        ]
    return fillable(document.cells, plans)


def _is_under(document: "Coverage", least: float | None, *, inherited: bool) -> bool:
    from policygen.model.coverage import CellStatus

    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    return least is not None and any(
        share.percent(counted) < least for share in document.totals.values()
    )
