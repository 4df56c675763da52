"""Tuning databases: rankings, choices, contents, coverage.

Nothing that matters is cut: what does not fit the width of the terminal takes more lines.
"""

from policygen.model.results import DbCoverage, DbTop
from policygen.report.console import printed, results, show
from policygen.report.views.db_choices import choices
from policygen.report.views.db_info import coverage, info
from policygen.report.views.db_top import ranking
from policygen.report.views.db_why import why


def print_top(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Print a ranking."""
    show(ranking(document, results().width, verbose=verbose, quiet=quiet))


def print_choices(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Print what to do for each workload."""
    show(choices(document, results().width, verbose=verbose, quiet=quiet))


def print_why(document: DbTop, **_how: bool) -> None:
    """Print the whole reasoning of choices, which is not said shorter or longer."""
    show(why(document, results().width))


def print_coverage(document: DbCoverage, *, verbose: bool, quiet: bool) -> None:
    """Print how much of the search space that is."""
    show(coverage(document, results().width, verbose=verbose, quiet=quiet))


print_info = printed(info)
