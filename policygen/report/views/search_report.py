"""The report of a search: on a terminal, as Markdown, and as a page with figures."""

from collections.abc import Iterator

from policygen.model.search_report import (
    FailureGroup,
    ReportedFinalist,
    ReportedWorkload,
    SearchReport,
)
from policygen.portable import portable
from policygen.report import html, markdown
from policygen.report.blocks import BLANK, Block, Column, Note, Page, Table, Words
from policygen.report.console import plural, short, show
from policygen.report.views import db_words, search_words
from policygen.report.views.search_page import page_blocks

SHOWN = 5
"""Finalists that are shown without -v."""
STYLES = {"faster": "green", "better": "green", "slower": "red", "worse": "red"}


def reported(document: SearchReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show what won for each workload, how sure that is, and what failed."""
    for place, one in enumerate(document.workloads):
        if place:
            yield BLANK
        yield from _workload(one, verbose=verbose, quiet=quiet)
    if not document.workloads:
        yield Note("no workload was measured")


def print_reported(document: SearchReport, *, verbose: bool, quiet: bool) -> None:
    """Print what a search found."""
    show(reported(document, verbose=verbose, quiet=quiet))


def render(document: SearchReport, form: str = "html") -> str:
    """Write a page with figures, or Markdown without; neither names a path of a machine."""
    document = portable(document)
    facts = {"measured on": "; ".join(search_words.where(document))} if document.workloads else {}
    facts["databases"] = ", ".join(document.databases)
    blocks = list(page_blocks(document, page=form == "html"))
    page = Page(_title(document), facts, blocks)
    return html.render(page, "search") if form == "html" else markdown.render(page)


def _title(document: SearchReport) -> str:
    names = list(dict.fromkeys(short(one.algorithm) for one in document.workloads))
    searched = any(one.origin == "search" for one in document.workloads)
    what = "Search" if searched or not names else "Measurements"
    if not names:
        return "Search report"
    return f"{what} of {names[0] if len(names) == 1 else plural(len(names), 'benchmark')}"


def _workload(one: ReportedWorkload, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    yield db_words.prose(search_words.name(one), style="bold")
    if not quiet:
        yield Words(db_words.key_parts(one, None), "dim", "  ", "    ", db_words.DOT, even=True)
    yield db_words.prose(search_words.result(one), "  ")
    shown = one.finalists if verbose else one.finalists[:SHOWN]
    if shown:
        yield finalists_table(shown, one)
    if quiet:
        return
    if len(shown) < len(one.finalists):
        yield Note(f"the best {SHOWN} of {len(one.finalists):,}; all: -v", "dim")
    for text in (search_words.today(one), *search_words.convergence(one)):
        yield db_words.note(text)
    if told := search_words.failures(one):
        yield db_words.prose(told, style="red" if one.counts.wrong else "")
        yield from map(_failure, one.failures if verbose else one.failures[:SHOWN])
    for text in search_words.remarks(one):
        yield db_words.note(text)


def _failure(group: FailureGroup) -> Block:
    style = "red" if group.kind == "wrong" else ""
    such = f", such as {group.variants[0]}" if group.variants else ""
    words = f"{group.count:,} {group.kind}: {group.reason}{such}".split()
    return Words(words, style, "  ", "    ")


def finalists_table(shown: tuple[ReportedFinalist, ...], one: ReportedWorkload) -> Table:
    """The finalists in numbers."""
    rungs = one.rung in {"last", "sharper"}
    head = ["score", "95 %", *(["screened"] if rungs else []), "least"]
    return Table(
        [*(Column(title, "whole") for title in head), Column("", "name"), "variant"],
        [
            [
                final.score,
                search_words.between(final),
                *([search_words.number(final.screened)] if rungs else []),
                search_words.number(min((row.ratio for row in final.runtime), default=None)),
                final.verdict or "not sure",
                final.variant,
            ]
            for final in shown
        ],
        "plain",
        styles=[STYLES.get(final.verdict or "", "") for final in shown],
        label="finalists",
    )
