"""Documents as pages and Markdown, from the library."""

import pytest

import policygen
from policygen.model.results import Rules
from policygen.model.searches import SearchReport
from tests.report.test_coverage_page import document as coverage
from tests.report.test_db_compare import document as comparison
from tests.report.test_db_compare import workload
from tests.report.test_review_page import review


@pytest.mark.parametrize(
    ("made", "title"),
    [
        (review, "0 tuning entries in"),
        (coverage, "Tuning coverage of CUB"),
        (lambda: comparison(workload()), "Two databases compared"),
        (lambda: SearchReport(databases=(), rules=Rules(), workloads=()), "Search report"),
    ],
)
def test_each_document_is_a_page_and_markdown(made, title):
    text = policygen.render_page(made(), "md")
    assert text.startswith(f"# {title}")
    page = policygen.render_page(made(), "html")
    assert page.startswith("<!doctype html>")
    assert f"<h1>{title}" in page


def test_a_comparison_in_markdown_has_all_tables_and_no_plot():
    text = policygen.render_page(comparison(workload()), "md")
    assert r"| I32, I32 | 12 | \-0.25 | 3/4 |" in text
    assert "### I32, I32: runtime workloads" in text
    assert "svg" not in text
