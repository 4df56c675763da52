"""Tuning databases on the terminal: rankings, choices, contents, coverage.

Nothing that matters is cut: what does not fit the width of the terminal takes more lines.
"""

from collections.abc import Iterable

from policygen.model.results import DbCoverage, DbInfo, DbTop
from policygen.report import console
from policygen.report.db_choices import choice_lines
from policygen.report.db_info import coverage_lines, info_lines
from policygen.report.db_text import Line
from policygen.report.db_top import top_lines
from policygen.report.db_why import why_lines
from policygen.untrusted import visible


def print_top(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Prints what `policygen db top` shows a person."""
    _print(top_lines(document, _width(), verbose=verbose, quiet=quiet))


def print_choices(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Prints what `policygen db choose` shows a person."""
    _print(choice_lines(document, _width(), verbose=verbose, quiet=quiet))


def print_why(document: DbTop) -> None:
    """Prints what `policygen db choose --why` shows a person."""
    _print(why_lines(document, _width()))


def print_info(document: DbInfo, *, verbose: bool, quiet: bool) -> None:
    """Prints what `policygen db info` shows a person."""
    _print(info_lines(document, _width(), verbose=verbose, quiet=quiet))


def print_coverage(document: DbCoverage, *, verbose: bool, quiet: bool) -> None:
    """Prints what `policygen db coverage` shows a person."""
    _print(coverage_lines(document, _width(), verbose=verbose, quiet=quiet))


def _width() -> int:
    return console.results().width


def _print(lines: Iterable[Line]) -> None:
    from rich.text import Text

    out = console.results()
    for line in lines:
        # Lines are laid out already; rich would fill folded ones up with blanks.
        parts = [(visible(text), style) for text, style in line]
        out.print(Text.assemble(*parts), soft_wrap=True)
