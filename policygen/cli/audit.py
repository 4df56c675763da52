"""`policygen audit`: what a tree's tunings are worth."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import cub_option, output_options
from policygen.cli.scan import read_scan, tree_and_headers
from policygen.errors import InputError, Problems

if TYPE_CHECKING:
    from policygen.model.cub import Cub
    from policygen.model.tuning import Scan
    from policygen.proof.lint.place import HeaderSource


@click.group()
def audit() -> None:
    """Checks the tunings of a tree."""


@audit.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@click.option(
    "-R", "regex", default="", metavar="REGEX", help="Only algorithms whose name begins with REGEX."
)
@click.option("--arch", "archs", multiple=True, metavar="ARCH", help="Only this arch. Repeatable.")
@click.option("--off", multiple=True, metavar="RULE", help="Without this rule. Repeatable.")
@click.option("--only", multiple=True, metavar="RULE", help="Only this rule. Repeatable.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@output_options
def lint(
    headers: tuple[str, ...],
    cub: str | None,
    regex: str,
    archs: tuple[str, ...],
    off: tuple[str, ...],
    only: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Checks the values of tuning entries against what their algorithm can use.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file. Exit status 1 says
    that something was found.
    """
    from policygen.proof.lint.outside import unprovable
    from policygen.proof.lint.rules import RULES, choose
    from policygen.proof.lint.run import family_name
    from policygen.proof.lint.run import lint as run_lint
    from policygen.report.console import nearby

    if list_rules:
        width = max(len(rule.name) for rule in RULES)
        for rule in RULES:
            sys.stdout.write(f"{rule.name:{width}}  {rule.summary}\n")
        return 0
    rules = choose(only, off)
    scan, errors = read_scan(headers, cub=cub)
    families = None
    if regex or archs:
        # What an entry inherits may stand in a family that is not asked for.
        chosen, _ = read_scan(headers, cub=cub, regex=regex, archs=archs)
        families = {family_name(family) for family in chosen.families}
    _, paths = tree_and_headers(headers, cub)
    if families is not None:
        named = {family[0] for family in families}
        paths = tuple(path for path in paths if path.name in named)
    asked = unprovable(scan.cub, paths, nearby)
    report = run_lint(scan, sources_of(scan, headers), rules, families, asked)
    if as_json:
        sys.stdout.write(report.to_json() + "\n")
    else:
        from policygen.report.views.lint import print_lint

        print_lint(report, head=not quiet, verbose=verbose)
    if errors:
        raise Problems(errors)
    return 1 if report.findings else 0


def sources_of(scan: "Scan", headers: tuple[str, ...]) -> "dict[str, HeaderSource]":
    """The bytes of every header that has families, by name."""
    from policygen.proof.lint.place import HeaderSource
    from policygen.report.console import nearby
    from policygen.source.files import read_bytes

    paths = _paths(scan.cub, headers)
    names = sorted({family.header for family in scan.families})
    return {name: HeaderSource(nearby(paths[name]), read_bytes(paths[name])) for name in names}


def _paths(cub: "Cub", headers: tuple[str, ...]) -> dict[str, Path]:
    """Where the headers are: those of the tree, and before them those that are named as files."""
    from policygen import tree

    known = () if cub.found == "header" else tree.tuning_headers(cub)
    files: dict[str, Path] = {}
    for path in (Path(name) for name in headers if Path(name).is_file()):
        if files.setdefault(path.name, path) != path:
            raise InputError(f"two headers are called {path.name}", "Name them one by one.")
    return {path.name: path for path in known} | files
