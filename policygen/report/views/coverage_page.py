"""Coverage as a page with a matrix, and as Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from policygen.model.coverage import STATUSES, Cell, Coverage, Fillable, Share, Unfilled
from policygen.model.workload import axes
from policygen.report.blocks import (
    Block,
    Card,
    Cards,
    Column,
    Figure,
    Filters,
    Fold,
    Heading,
    Inline,
    Listing,
    Matrix,
    MatrixRow,
    Mixed,
    Note,
    Styled,
    Table,
)
from policygen.report.console import plural, short
from policygen.report.facts import standing_out
from policygen.report.views.coverage_delta import since
from policygen.report.views.coverage_facts import facts
from policygen.report.views.coverage_words import (
    ROWS,
    WORDS,
    Undecided,
    by_benchmark,
    cell_anchor,
    share_in_words,
    shares,
    tuned_of,
    undecided,
)

VARIANTS = (Column("score", "n"), "benchmark", "workload", "arch", "now", "variant")
SHORT = {"tuned": "tuned", "default": "·", "disabled": "off", "unreachable": "never"}


def blocks(document: Coverage, *, page: bool) -> Iterator[Block]:
    """Show the whole, on a page with a matrix and a heat map."""
    lots = undecided(document.cells)
    yield _cards(document) if page else _totals(document)
    if page:
        yield from standing_out(facts(document, lots))
    told = [*document.remarks, *(f"{one.benchmark}: {one.reason}" for one in document.unresolved)]
    yield from (Note(text, "soft") for text in told)
    if page:
        yield from _matrix(document)
    if document.compared:
        yield from since(document.compared, document.archs)
    if document.fillable is not None:
        title = "What the databases could fill"
        yield Heading(title)
        yield _could(document.fillable, title)
    if document.unfilled:
        title = "Variants that policygen plan rejects"
        yield Heading(title)
        yield _rejected(document.unfilled, title)
    if page:
        yield from _heat_map(document)
    else:
        yield Heading("By benchmark")
        yield by_benchmark(document, "0", total=False)
    if lots:
        title = "Entries that do not decide"
        yield Heading(title)
        yield _entries(lots, title)


def _totals(document: Coverage) -> Table:
    rows = []
    for share in document.totals.values():
        tuned, *others = (str(share.counts[status]) for status in STATUSES)
        percent = f"({share.percent(('tuned',)):.0f} %)"
        rows.append([share.arch, f"{tuned} {percent}", *others, str(share.workloads)])
    return Table(
        [Column("arch"), *(Column(title, "n") for title in (*STATUSES, "workloads"))], rows
    )


def _cards(document: Coverage) -> Cards:
    """Give each architecture a card with the same lines: what any of them has."""
    totals = document.totals.values()
    there = [status for status in STATUSES if any(share.counts[status] for share in totals)]
    cards = []
    for share in totals:
        bar = Figure("bar", [(style, percent, "") for style, percent in _parts(share)])
        lines = [f"{share.counts[status]:,} {status}" for status in there]
        answer, on = f"{share.percent(('tuned',)):.0f} %", f"tuned on {share.arch}"
        cards.append(Card("", answer, lines, on, figure=bar))
    return Cards(cards)


def _parts(share: Share) -> list[tuple[str, float]]:
    found = [(status, round(share.percent((status,)), 1)) for status in STATUSES]
    return [one for one in found if one[1]]


def _mixed(share: Share) -> Mixed:
    percent = f"{share.percent(('tuned',)):.0f} %"
    return Mixed(percent, tuned_of(share), share_in_words(share), _parts(share))


def _matrix(document: Coverage) -> Iterator[Block]:
    title = "Shares by benchmark"
    yield Heading(title)
    yield Filters("reduce, T=I8", {"arch": ("Arch", document.archs)}, STATUSES)
    yield Listing([((status, status), (words, "")) for status, words in WORDS.items()], "key")
    lots = {"all benchmarks": document.totals, **shares(document)}
    rows: list[MatrixRow] = []
    for name, lot in lots.items():
        cells = [_mixed(lot[arch]) if arch in lot else None for arch in document.archs]
        rows.append(MatrixRow(name, cells, f"workloads/{name}" if rows else ""))
    columns = [Column(arch, f"a-{arch}") for arch in document.archs]
    yield Matrix("tuned workloads", columns, rows, title, "shares")


def _could(found: Sequence[Fillable], title: str) -> Block:
    if not found:
        return Note("No cell that is not tuned.")
    anchors = [cell_anchor("fillable", one) for one in found]
    rows = [_variant(one) for one in found]
    return Table(VARIANTS, rows, label=title, shown=ROWS, anchors=anchors)


def _rejected(found: Sequence[Unfilled], title: str) -> Block:
    anchors = [cell_anchor("unfilled", one) for one in found]
    rows = [[*_variant(one), one.reason] for one in found]
    return Table((*VARIANTS, "why"), rows, label=title, shown=ROWS, anchors=anchors)


def _variant(one: Fillable) -> list[Inline | Styled]:
    place = (short(one.benchmark), " ".join(axes(one.workload)), one.arch)
    return [one.score, *place, Styled(one.status, one.status), Styled(one.variant, "mono")]


def _entries(lots: Iterable[Undecided], title: str) -> Table:
    rows: list[list[Inline | Styled]] = []
    anchors = []
    for one in lots:
        place = Styled(one.place, "code")
        rows.append([Styled(one.status, one.status), place, one.words, one.reason])
        anchors.append(one.anchor)
    return Table(("what", "where", "for", "why"), rows, label=title, shown=ROWS, anchors=anchors)


def _heat_map(document: Coverage) -> Iterator[Block]:
    yield Heading("Each workload")
    rows: dict[str, dict[str, list[Styled]]] = {}
    for cell in document.cells:
        workloads = rows.setdefault(short(cell.benchmark), {})
        workloads.setdefault(" ".join(axes(cell.workload)), []).append(_heat(cell))
    columns = [Column("workload"), *(Column(arch, f"a-{arch}") for arch in document.archs)]
    for name, workloads in rows.items():
        heat: list[list[Inline | Styled]] = [[w, *cells] for w, cells in workloads.items()]
        anchors = [f"workloads/{name}/{w.replace(' ', '/')}" for w in workloads]
        table = Table(columns, heat, "heat", name, anchors=anchors)
        count = plural(len(workloads), "workload")
        summary = ((name, "bold"), (f" {count}", "soft"))
        yield Fold(summary, [table], "benchmark", anchor=f"workloads/{name}")


def _heat(cell: Cell) -> Styled:
    where = f"{cell.entry.header}:{cell.entry.line}" if cell.entry else ""
    why = ": ".join(part for part in (where, cell.reason) if part)
    text = SHORT.get(cell.status) or str(cell.since)
    return Styled(text, f"c a-{cell.arch} {cell.status}", why)
