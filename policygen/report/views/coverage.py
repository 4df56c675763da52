"""Which workloads are tuned where: on the terminal, as CSV, Markdown, and a page."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from policygen.model.coverage import (
    Coverage,
    Fillable,
    Turned,
    Unfilled,
)
from policygen.model.workload import axes, point_of
from policygen.portable import portable
from policygen.report import html, markdown
from policygen.report.blocks import (
    BLANK,
    Block,
    Note,
    Page,
    Words,
    remarks,
)
from policygen.report.console import plural, printed, short, tree_line
from policygen.report.views.coverage_page import blocks
from policygen.report.views.coverage_words import (
    WORDS,
    Undecided,
    by_benchmark,
    share_in_words,
    undecided,
)

SHOWN = 12
"""As many lines of a kind as are listed without -v."""
FIELDS = (
    "benchmark", "workload", "arch", "status", "since", "header", "line", "reason", "score",
    "variant",
)  # fmt: skip


def render(document: Coverage, form: str) -> str:
    """Write `csv`, `md` or `html`; as they are for others, they name no path of a machine."""
    document = portable(document)
    if form == "csv":
        return _csv(document)
    page = Page(
        f"Tuning coverage of {document.cub.title}",
        {"tree": tree_line(document.cub), "compiler": document.toolchain},
        list(blocks(document, page=form == "html")),
    )
    return html.render(page, "coverage") if form == "html" else markdown.render(page)


def coverage(document: Coverage, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show how much is tuned of each benchmark, and what stands in the way of the rest."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    yield by_benchmark(document, "·", total=True)
    yield BLANK
    lots = undecided(document.cells)
    for status in dict.fromkeys(one.status for one in lots):
        found = [one for one in lots if one.status == status]
        cells = plural(sum(len(one.cells) for one in found), "cell")
        yield Note(f"{status} ({cells}): {WORDS[status]}", "bold", folded=True)
        yield from _listed([*map(_entry, found)], verbose=verbose)
        yield BLANK
    if document.fillable is not None:
        cells = plural(len(document.fillable), "cell")
        told = f"{cells}:" if document.fillable else "no cell that is not tuned"
        yield Note(f"the databases could fill {told}", "bold", folded=True)
        yield from _listed([*map(_fillable, document.fillable)], verbose=verbose)
        if document.fillable:
            told = "  policygen apply writes them: the compiler was asked"
            yield Note(told, "dim", folded=True)
        yield BLANK
    if document.unfilled:
        cells = plural(len(document.unfilled), "cell")
        yield Note(f"policygen plan rejects their variants for {cells}:", "bold", folded=True)
        yield from _listed([*map(_unfilled, document.unfilled)], verbose=verbose)
        yield BLANK
    if document.compared is not None:
        yield Words(f"since {tree_line(document.compared.cub)}:", "bold")
        yield Words(document.compared.in_words, "", "  ", "  ")
        yield from _listed([*map(_turned, document.compared.ordered)], verbose=verbose)
        yield BLANK
    for one in document.unresolved:
        yield Note(f"{one.benchmark}: {one.reason}", "red", folded=True)
    yield from remarks(document.remarks)
    for share in document.totals.values() if head else ():
        yield Words(f"{share.arch}: {share_in_words(share)}")


def _listed(found: Sequence[Iterable[Block]], *, verbose: bool) -> Iterator[Block]:
    """List what was found; a list that is cut says by how much."""
    for one in found if verbose else found[:SHOWN]:
        yield from one
    if len(found) > SHOWN and not verbose:
        yield Note(f"  and {len(found) - SHOWN:,} more (-v lists them)", "dim", folded=True)


def _entry(one: Undecided) -> Iterator[Block]:
    yield Words(f"{one.place} {one.words}", "", "  ")
    if one.reason:
        yield Words(one.reason, "dim", "    ", "    ")


def _fillable(one: Fillable, style: str = "green") -> Iterator[Block]:
    words = [f"{one.score:.3f}", short(one.name), "on", one.arch, f"({one.status})", one.variant]
    yield Words(words, style, "  ")


def _unfilled(one: Unfilled) -> Iterator[Block]:
    yield from _fillable(one, "yellow")
    yield Words(one.reason, "dim", "    ", "    ")


def _turned(one: Turned) -> Iterator[Block]:
    change = f"{one.before or 'no workload'} → {one.after or 'no workload'}"
    words = [short(one.benchmark), *axes(one.workload), "on", one.arch, change]
    yield Words(words, {"lost": "red", "gained": "green"}.get(one.kind, "dim"), "  ")


def _csv(document: Coverage) -> str:
    """Write a line for each workload on each architecture."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    could = {(point_of(f.benchmark, f.workload), f.arch): f for f in document.fillable or ()}
    for cell in document.cells:
        row = [cell.benchmark, " ".join(axes(cell.workload)), cell.arch, cell.status, cell.since]
        place = (cell.entry.header, cell.entry.line) if cell.entry else (None, None)
        fillable = could.get((cell.point, cell.arch))
        found = (fillable.score, fillable.variant) if fillable else (None, None)
        writer.writerow([*row, *place, cell.reason, *found])
    return out.getvalue()


print_coverage = printed(coverage)
