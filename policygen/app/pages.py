"""Documents as text for others: Markdown for a comment, or a page of one file."""

from typing import Literal

from policygen.model.coverage import Coverage
from policygen.model.db_compare import DbCompare
from policygen.model.review import Review
from policygen.model.search_report import SearchReport
from policygen.report.views import coverage, db_compare, review, search_report


def render_page(
    document: Review | Coverage | DbCompare | SearchReport, form: Literal["md", "html"]
) -> str:
    """The text of a page, or Markdown; neither names a path of this machine."""
    if isinstance(document, Review):
        return review.render(document, form)
    if isinstance(document, Coverage):
        return coverage.render(document, form)
    if isinstance(document, SearchReport):
        return search_report.render(document, form)
    return db_compare.render(document, form)
