"""Which workloads are tuned where: on the terminal, as CSV, Markdown, and a page."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from policygen.model.coverage import (
    STATUSES,
    Cell,
    CellStatus,
    Compared,
    Coverage,
    Fillable,
    Share,
    Turned,
    Unfilled,
)
from policygen.model.workload import axes, in_words, point_of
from policygen.portable import portable
from policygen.report import html, markdown
from policygen.report.blocks import (
    BLANK,
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
    Note,
    Page,
    Styled,
    Table,
    Words,
    remarks,
)
from policygen.report.console import plural, printed, short, tree_line

ROWS = 100
"""Of a list in Markdown: a comment holds 65,536 characters."""
SHOWN = 12
"""As many lines of a kind as are listed without -v."""
WORDS: dict[CellStatus, str] = {
    "tuned": "an entry for this architecture decides",
    "inherited": "one for an earlier architecture does",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
}
SHORT = {"tuned": "tuned", "default": "·", "disabled": "off", "unreachable": "never"}
VARIANTS = (Column("score", "n"), "benchmark", "workload", "arch", "now", "variant")
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
        f"Tuning coverage of CUB {document.cub.version}",
        {"tree": tree_line(document.cub), "compiler": document.toolchain},
        list(_blocks(document, page=form == "html")),
    )
    return html.render(page, "coverage") if form == "html" else markdown.render(page)


def coverage(document: Coverage, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show how much is tuned of each benchmark, and what stands in the way of the rest."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    yield _by_benchmark(document, "·", total=True)
    yield BLANK
    undecided = _undecided(document.cells)
    for status in dict.fromkeys(one.status for one in undecided):
        found = [one for one in undecided if one.status == status]
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
        yield Words(f"{share.arch}: {_in_words(share)}")


def _listed(found: Sequence[Iterable[Block]], *, verbose: bool) -> Iterator[Block]:
    """List what was found; a list that is cut says by how much."""
    for one in found if verbose else found[:SHOWN]:
        yield from one
    if len(found) > SHOWN and not verbose:
        yield Note(f"  and {len(found) - SHOWN:,} more (-v lists them)", "dim", folded=True)


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry that is there and does not decide, with the cells that it is for."""

    status: CellStatus
    place: str
    reason: str
    cells: tuple[Cell, ...]

    @property
    def words(self) -> str:
        """Name its first workload, and how many more there are, and where it does not."""
        first = self.cells[0]
        others = len({cell.point for cell in self.cells}) - 1
        more = f" and {others} more" if others else ""
        archs = ", ".join(dict.fromkeys(cell.arch for cell in self.cells))
        return f"{in_words(short(first.benchmark), first.workload)}{more} on {archs}"


def _undecided(cells: Iterable[Cell]) -> list[Undecided]:
    """Collect entries that do not decide, by status and place."""
    found: dict[tuple[CellStatus, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            place = f"{cell.entry.header}:{cell.entry.line}"
            found.setdefault((cell.status, place, cell.reason or ""), []).append(cell)
    return [Undecided(*key, tuple(lot)) for key, lot in sorted(found.items())]


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


def _in_words(share: Share) -> str:
    """Tell a share: `271 of 635 workloads tuned (43 %), 364 default`."""
    others = [f"{share.counts[s]:,} {s}" for s in STATUSES[1:] if share.counts[s]]
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return ", ".join([f"{count} ({share.percent(('tuned',)):.0f} %)", *others])


def _shares(document: Coverage) -> dict[str, dict[str, Share]]:
    """Collect the shares of each benchmark by architecture."""
    found: dict[str, dict[str, Share]] = {}
    for share in document.shares:
        if share.benchmark is not None:
            found.setdefault(short(share.benchmark), {})[share.arch] = share
    return found


def _of(share: Share, none: str = "0") -> str:
    return f"{share.counts['tuned'] or none}/{share.workloads}"


def _by_benchmark(document: Coverage, none: str, *, total: bool) -> Table:
    lots = {**_shares(document), **({"all": document.totals} if total else {})}
    rows = []
    for name, lot in lots.items():
        shares = [lot.get(arch) for arch in document.archs]
        row = [_of(one, none) if one else "" for one in shares]
        rows.append([name, *row])
    columns = [Column(arch, "n") for arch in document.archs]
    return Table([Column("tuned of all"), *columns], rows, total=total)


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


def _blocks(document: Coverage, *, page: bool) -> Iterator[Block]:
    """Show the whole, on a page with a heat map."""
    yield _cards(document) if page else _totals(document)
    told = [*document.remarks, *(f"{one.benchmark}: {one.reason}" for one in document.unresolved)]
    yield from (Note(text, "soft") for text in told)
    if document.compared:
        yield from _since(document.compared)
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
        yield _by_benchmark(document, "0", total=False)
    if undecided := _undecided(document.cells):
        title = "Entries that do not decide"
        yield Heading(title)
        rows: list[list[Inline | Styled]] = []
        for one in undecided:
            place = Styled(one.place, "code")
            rows.append([Styled(one.status, one.status), place, one.words, one.reason])
        yield Table(("what", "where", "for", "why"), rows, label=title, shown=ROWS)


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
    cards = []
    for share in document.totals.values():
        parts = [(status, round(share.percent((status,)), 1), "") for status in STATUSES]
        bar = Figure("bar", [part for part in parts if part[1]])
        answer, on = f"{share.percent(('tuned',)):.0f} %", f"tuned on {share.arch}"
        cards.append(Card("", answer, [_in_words(share)], on, figure=bar))
    return Cards(cards)


def _since(compared: Compared) -> Iterator[Block]:
    yield Heading(f"Since {tree_line(compared.cub)}")
    yield Note(compared.in_words)
    rows: list[list[str | Styled]] = []
    for one in compared.ordered:
        turned = [Styled(s or "no workload", s or "") for s in (one.before, one.after)]
        rows.append([short(one.benchmark), " ".join(axes(one.workload)), one.arch, *turned])
    title, columns = "What changed", ("benchmark", "workload", "arch", "was", "is")
    if rows:
        table = Table(columns, rows, label=title, shown=ROWS)
        yield Fold(title, [table], open=len(rows) < 20)


def _could(found: Sequence[Fillable], title: str) -> Block:
    if not found:
        return Note("No cell that is not tuned.")
    rows = [_variant(one) for one in found]
    return Table(VARIANTS, rows, label=title, shown=ROWS)


def _rejected(found: Sequence[Unfilled], title: str) -> Block:
    rows = [[*_variant(one), one.reason] for one in found]
    return Table((*VARIANTS, "why"), rows, label=title, shown=ROWS)


def _variant(one: Fillable) -> list[Inline | Styled]:
    place = (short(one.benchmark), " ".join(axes(one.workload)), one.arch)
    return [one.score, *place, Styled(one.status, one.status), Styled(one.variant, "mono")]


def _heat_map(document: Coverage) -> Iterator[Block]:
    yield Heading("Heat map")
    yield Filters("reduce, T=I8", {"arch": ("Arch", document.archs)}, STATUSES)
    yield Listing([((status, status), (words, "")) for status, words in WORDS.items()], "key")
    rows: dict[str, dict[str, list[Styled]]] = {}
    for cell in document.cells:
        where = f"{cell.entry.header}:{cell.entry.line}" if cell.entry else ""
        why = ": ".join(part for part in (where, cell.reason) if part)
        text = SHORT.get(cell.status) or str(cell.since)
        style = f"c a-{cell.arch} {cell.status}"
        workloads = rows.setdefault(short(cell.benchmark), {})
        workloads.setdefault(" ".join(axes(cell.workload)), []).append(Styled(text, style, why))
    columns = [Column("workload"), *(Column(arch, f"a-{arch}") for arch in document.archs)]
    for name, shares in _shares(document).items():
        bars = [
            (f"a-{arch}", round(one.percent(("tuned",))), f"{arch} {_of(one)}")
            for arch, one in shares.items()
        ]
        heat: list[list[Inline | Styled]] = [[w, *cells] for w, cells in rows[name].items()]
        table = Table(columns, heat, "heat", name)
        yield Fold(((name, "bold"),), [table], "benchmark", Figure("share", bars))


print_coverage = printed(coverage)
