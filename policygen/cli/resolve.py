"""`policygen resolve`: what CUB selects for each workload, by the compiler."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import (
    cub_option,
    filter_options,
    output_options,
    parse_axes,
    parse_regex,
)
from policygen.errors import InputError, Problems

if TYPE_CHECKING:
    from policygen.cli.asking import Tree
    from policygen.errors import PolicygenError
    from policygen.model.cub import Cub, Dialect
    from policygen.model.resolve import Resolution


@click.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@filter_options
@click.option("--arch", "archs", multiple=True, metavar="ARCH", help="For this arch. Repeatable.")
@click.option(
    "--compare",
    metavar="TREE",
    help="Only what differs from another tree: a path, a fetched version, or a git revision.",
)
@output_options
def resolve(
    headers: tuple[str, ...],
    cub: str | None,
    regex: str,
    axes: tuple[str, ...],
    archs: tuple[str, ...],
    compare: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows which values CUB selects for each workload, and which entry they come from.

    The compiler is asked, no GPU is needed. HEADER is an algorithm (scan) or a header's name; -R
    matches benchmarks, -a takes their compile-time axes: -a 'T=[I8,F32]'. Without --arch: all
    archs that the tree has tunings for. With --compare the exit status is 1 when values differ.
    """
    from policygen.cli.asking import read_tree
    from policygen.cli.opening import open_cub
    from policygen.report.views import resolve as report

    found = read_tree(open_cub(cub), headers)
    question = Question(headers, regex, axes, archs, quiet=quiet)
    if compare is None:
        document, errors = question.ask(found)
        if as_json:
            sys.stdout.write(document.to_json() + "\n")
        else:
            report.print_resolution(document, head=not quiet, verbose=verbose)
        return _ending(errors)
    from policygen.proof.difference import compare_resolutions

    before, errors_before = question.ask(read_tree(other_tree(found.cub, compare), headers))
    after, errors_after = question.ask(found)
    comparison = compare_resolutions(before, after)
    if as_json:
        sys.stdout.write(comparison.to_json() + "\n")
    else:
        report.print_comparison(comparison, head=not quiet)
    return _ending((*errors_before, *errors_after)) or int(bool(comparison.different))


class Question:
    """What is asked of each tree."""

    def __init__(
        self,
        headers: tuple[str, ...],
        regex: str,
        axes: tuple[str, ...],
        archs: tuple[str, ...],
        *,
        quiet: bool,
        only: "Dialect | None" = None,
    ) -> None:
        self.headers = headers
        self.pattern, self.axes = parse_regex(regex), parse_axes(axes)
        self.archs = archs
        self.quiet = quiet
        self.only = only

    def ask(self, found: "Tree") -> "tuple[Resolution, tuple[PolicygenError, ...]]":
        """What the compiler says, and what could not be asked."""
        from policygen.cli.asking import chosen_archs, compile_progress
        from policygen.model.base import Problem
        from policygen.model.resolve import Resolution
        from policygen.proof.resolve import resolve
        from policygen.proof.sites import places, remarks
        from policygen.proof.toolchain import find_toolchain

        asked = places(found.cub, found.headers, self.pattern, self.axes, frozenset(found.paths))
        asked = tuple(place for place in asked if self.only in {None, place.site.dialect})
        meant = {place.site.header for place in asked}
        fitting = [header for header in found.headers if header.name in meant]
        archs = chosen_archs(self.archs, fitting) or chosen_archs(self.archs, found.headers)
        toolchain = find_toolchain()
        told = resolve(
            found.cub,
            asked,
            found.marked(found.cub.dialect),
            archs,
            toolchain,
            enabled=found.enabled() if found.cub.dialect == "selectors" else {},
            progress=compile_progress(quiet=self.quiet),
        )
        all_headers = frozenset() if self.headers else frozenset(found.paths)
        document = Resolution(
            cub=found.cub,
            toolchain=f"nvcc {toolchain.version}",
            archs=archs,
            rows=told.rows,
            remarks=(*remarks(found.cub, all_headers), *told.remarks),
            unresolved=told.unresolved,
            problems=tuple(Problem.of(error) for error in found.errors),
        )
        return document, (*found.errors, *told.errors)


def other_tree(cub: "Cub", text: str) -> "Cub":
    """The tree to compare with: a path or a fetched version, else a git revision."""
    from policygen.cli.opening import open_cub
    from policygen.tree.revision import open_revision

    try:
        return open_cub(text)
    except InputError:
        if Path(text).exists():
            raise
        return open_revision(cub, text)


def _ending(errors: "tuple[PolicygenError, ...]") -> int:
    if errors:
        raise Problems(errors)
    return 0
