"""Checks the values of tuning entries against what their algorithm can use."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from policygen import tree
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.notes import Note, unsaid
from policygen.app.scan import scan_tunings, tree_and_headers
from policygen.errors import InputError, SourceError
from policygen.model.cub import Cub
from policygen.model.lint import LintReport
from policygen.model.tuning import Scan
from policygen.paths import nearby
from policygen.proof.lint.outside import unprovable
from policygen.proof.lint.place import HeaderSource
from policygen.proof.lint.rules import RULES, choose
from policygen.proof.lint.run import family_name, lint
from policygen.source.files import read_bytes


def lint_rules() -> dict[str, str]:
    """The rules, each with what it finds."""
    return {rule.name: rule.summary for rule in RULES}


def audit_lint(
    cub: str | None = None,
    asked: Filter = EVERYTHING,
    *,
    only: Sequence[str] = (),
    off: Sequence[str] = (),
    note: Note = unsaid,
) -> tuple[LintReport, tuple[SourceError, ...]]:
    """Checks the headers that are named, or all; tells what could not be read, too."""
    rules = choose(only, off)
    everything = Filter(headers=asked.headers)
    scan, errors = scan_tunings(cub, everything, selectors=True, note=note)
    families = None
    found, paths = tree_and_headers(asked.headers, cub)
    if asked.regex or asked.archs or asked.axes:
        # What an entry inherits may stand in a family that is not asked for.
        chosen, _ = scan_tunings(cub, replace(asked, axes=()), selectors=True)
        families = {family_name(family) for family in chosen.families}
        named = {family[0] for family in families}
        paths = tuple(path for path in paths if path.name in named)
    outside = unprovable(found, paths, nearby)
    sources = sources_of(scan, asked.headers)
    return lint(scan, sources, rules, families, outside), errors


def sources_of(scan: Scan, headers: Sequence[str] = ()) -> dict[str, HeaderSource]:
    """The bytes of every header that has families, by name."""
    paths = _paths(scan.cub, headers)
    names = sorted({family.header for family in scan.families})
    return {name: HeaderSource(nearby(paths[name]), read_bytes(paths[name])) for name in names}


def _paths(cub: Cub, headers: Sequence[str]) -> dict[str, Path]:
    """Where the headers are: those of the tree, and before them those that are named as files."""
    known = () if cub.found == "header" else tree.tuning_headers(cub)
    files: dict[str, Path] = {}
    for path in (Path(name) for name in headers if Path(name).is_file()):
        if files.setdefault(path.name, path) != path:
            raise InputError(f"two headers are called {path.name}", "Name them one by one.")
    return {path.name: path for path in known} | files
