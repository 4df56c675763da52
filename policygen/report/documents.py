"""Renders documents as Markdown or as a single HTML page."""

from typing import Literal

from policygen.model.audits import Coverage
from policygen.model.databases import DbCompare
from policygen.model.reviews import Review
from policygen.model.searches import SearchReport
from policygen.report import agreement_views, coverage_views, review_views, search_views


def render_page(
    document: Review | Coverage | DbCompare | SearchReport, form: Literal["md", "html"]
) -> str:
    """Renders a document. Neither format names a path of this machine."""
    if isinstance(document, Review):
        return review_views.render(document, form)
    if isinstance(document, Coverage):
        return coverage_views.render(document, form)
    if isinstance(document, SearchReport):
        return search_views.render(document, form)
    return agreement_views.render(document, form)
