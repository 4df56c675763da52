"""Documents as text for others: Markdown for a comment, or a page of one file."""

from typing import Literal

from policygen.model.coverage import Coverage
from policygen.model.db_compare import DbCompare
from policygen.model.review import Review
from policygen.report.views import coverage, db_compare, review


def render_page(document: Review | Coverage | DbCompare, form: Literal["md", "html"]) -> str:
    """The text of a page, or Markdown; neither names a path of this machine."""
    if isinstance(document, Review):
        return review.render(document, form)
    if isinstance(document, Coverage):
        return coverage.render(document, form)
    return db_compare.render(document, form)
