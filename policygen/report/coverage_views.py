"""Which workloads are tuned where: on the terminal, as CSV, Markdown, and a page."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from policygen.model.audits import (
    STATUSES,
    Cell,
    CellStatus,
    Compared,
    Coverage,
    Fillable,
    Share,
    Turned,
    TurnedKind,
    Unfilled,
)
from policygen.model.workload import OnArch, axes, in_words, point_of
from policygen.portable import portable
from policygen.report import markdown, pages
from policygen.report.blocks import (
    BLANK,
    Block,
    Card,
    Cards,
    Column,
    Fact,
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
    Page,
    Piece,
    Styled,
    Table,
    Words,
    fact,
    remarks,
    standing_out,
)
from policygen.report.console import noun, plural, printed, short, tree_line

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
    return pages.render(page, "coverage") if form == "html" else markdown.render(page)


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


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry that is there and does not decide, with the cells that it is for."""

    status: CellStatus
    place: str
    reason: str
    cells: tuple[Cell, ...]

    @property
    def anchor(self) -> str:
        """Name its row on a page."""
        return f"undecided/{self.place}"

    @property
    def words(self) -> str:
        """Name its first workload, and how many more there are, and where it does not."""
        first = self.cells[0]
        others = len({cell.point for cell in self.cells}) - 1
        more = f" and {others} more" if others else ""
        archs = ", ".join(dict.fromkeys(cell.arch for cell in self.cells))
        return f"{in_words(short(first.benchmark), first.workload)}{more} on {archs}"


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


WORDS: dict[CellStatus, str] = {
    "tuned": "an entry for this architecture decides",
    "inherited": "one for an earlier architecture does",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
}


# What all views of coverage say in the same words.


def undecided(cells: Iterable[Cell]) -> list[Undecided]:
    """Collect entries that do not decide, by status and place."""
    found: dict[tuple[CellStatus, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            place = f"{cell.entry.header}:{cell.entry.line}"
            found.setdefault((cell.status, place, cell.reason or ""), []).append(cell)
    return [Undecided(*key, tuple(lot)) for key, lot in sorted(found.items())]


def by_benchmark(document: Coverage, none: str, *, total: bool) -> Table:
    """Show the shares in a plain table."""
    lots = {**shares(document), **({"all": document.totals} if total else {})}
    rows = []
    for name, lot in lots.items():
        found = [lot.get(arch) for arch in document.archs]
        row = [tuned_of(one, none) if one else "" for one in found]
        rows.append([name, *row])
    columns = [Column(arch, "n") for arch in document.archs]
    return Table([Column("tuned of all"), *columns], rows, total=total)


def shares(document: Coverage) -> dict[str, dict[str, Share]]:
    """Collect the shares of each benchmark by architecture."""
    found: dict[str, dict[str, Share]] = {}
    for share in document.shares:
        if share.benchmark is not None:
            found.setdefault(short(share.benchmark), {})[share.arch] = share
    return found


def tuned_of(share: Share, none: str = "0") -> str:
    """Write `12/24`."""
    return f"{share.counts['tuned'] or none}/{share.workloads}"


def share_in_words(share: Share) -> str:
    """Tell a share: `271 of 635 workloads tuned (43 %), 364 default`."""
    others = [f"{share.counts[s]:,} {s}" for s in STATUSES[1:] if share.counts[s]]
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return ", ".join([f"{count} ({share.percent(('tuned',)):.0f} %)", *others])


print_coverage = printed(coverage)
MARKS: dict[TurnedKind, tuple[str, str, str]] = {
    "gained": ("+", "tuned", "gained: tuned now"),
    "lost": ("\u2212", "unreachable", "lost: tuned before"),
    "other": ("±", "inherited", "other changes, as from inherited to default"),
    "only after": ("new ", "default", "tuned workloads that only this tree has"),
    "only before": ("gone ", "disabled", "tuned workloads that only the other tree has"),
}
"""What stands before the count, its style, and what it means."""
_ALL = "all"


# What was gained and lost since another tree: by architecture and algorithm, then one by one.


def since(compared: Compared, archs: Sequence[str]) -> Iterator[Block]:
    """Show the counts in a table, and each cell below it."""
    yield Heading(f"Since {tree_line(compared.cub)}")
    yield Note(compared.in_words)
    if not compared.turned:
        return
    told = [((mark.strip(), f"mark {style}"), (words, "")) for mark, style, words in MARKS.values()]
    yield Listing(told, "key")
    yield _delta(compared, archs)
    rows: list[list[str | Styled]] = []
    for one in compared.ordered:
        turned = [Styled(s or "no workload", s or "") for s in (one.before, one.after)]
        rows.append([short(one.benchmark), " ".join(axes(one.workload)), one.arch, *turned])
    columns = ("benchmark", "workload", "arch", "was", "is")
    anchors = [cell_anchor("since", one) for one in compared.ordered]
    table = Table(columns, rows, label="What changed", shown=ROWS, anchors=anchors)
    yield Fold(f"Each of the {len(rows):,} changes", [table], open=len(rows) < 20)


def _delta(compared: Compared, archs: Sequence[str]) -> Table:
    """Count by algorithm and architecture; the first row and the last column sum up."""
    counts: Counter[tuple[str, str, TurnedKind]] = Counter()
    for one in compared.turned:
        for name in (_ALL, short(one.benchmark)):
            for arch in (one.arch, _ALL):
                counts[name, arch, one.kind] += 1
    known = [*archs, *sorted({one.arch for one in compared.turned} - {*archs})]
    names = dict.fromkeys([_ALL, *sorted({short(one.benchmark) for one in compared.turned})])
    rows: list[list[Inline | Styled]] = [
        [name, *(_counted(counts, name, arch) for arch in (*known, _ALL))] for name in names
    ]
    columns: list[str | Column] = [
        "algorithm",
        *(Column(arch, f"a-{arch}") for arch in known),
        _ALL,
    ]
    anchors = [f"delta/{name}" for name in names]
    return Table(columns, rows, "delta", "Changes by algorithm", anchors=anchors)


def _counted(counts: Counter[tuple[str, str, TurnedKind]], name: str, arch: str) -> Styled:
    found: list[Piece] = []
    for kind, (mark, style, _) in MARKS.items():
        if count := counts[name, arch, kind]:
            found += [(" ", "")] * bool(found)
            found.append((f"{mark}{count:,}", f"mark {style}"))
    return Styled(tuple(found) or "", "" if arch == _ALL else f"a-{arch}")


# The facts of a coverage that stand out.


def facts(document: Coverage, lots: Sequence[Undecided]) -> list[Iterator[Fact]]:
    """Collect them by kind, the worst kind first."""
    return [
        _coverage_facts_turned(document.compared, "lost", "lost their tuning on"),
        _undecided(lots, "unreachable", "an entry that is never taken"),
        _undecided(lots, "disabled", "an entry that is commented out"),
        _coverage_facts_fillable(document.fillable or ()),
        _coverage_facts_turned(document.compared, "gained", "are tuned now, and were not, on"),
        _archs(document),
        _bare(document),
    ]


def _coverage_facts_turned(
    compared: Compared | None, kind: TurnedKind, words: str
) -> Iterator[Fact]:
    turned = compared.turned if compared else ()
    counts = Counter((short(one.benchmark), one.arch) for one in turned if one.kind == kind)
    for (name, arch), count in counts.items():
        yield fact(count, f"{_workloads(count)} of {name} {words} {arch}", f"delta/{name}")


def _undecided(lots: Sequence[Undecided], status: str, words: str) -> Iterator[Fact]:
    for one in lots:
        if one.status == status:
            count = len(one.cells)
            text = f"{'cell has' if count == 1 else 'cells have'} {words}: {one.place}, {one.words}"
            yield fact(count, text, one.anchor)


def _coverage_facts_fillable(found: Sequence[Fillable]) -> Iterator[Fact]:
    best: dict[tuple[str, str], float] = {}
    counts = Counter((short(one.benchmark), one.arch) for one in found)
    for one in found:
        key = short(one.benchmark), one.arch
        best[key] = max(one.score, best.get(key, 0))
    for (name, arch), count in counts.items():
        words = f"{_workloads(count)} of {name} can be filled for {arch}"
        score = f"the best score is {best[name, arch]:.3f}"
        yield fact(count, f"{words}; {score}", f"workloads/{name}")


def _archs(document: Coverage) -> Iterator[Fact]:
    for share in document.totals.values():
        if not share.counts["tuned"]:
            inherited = f"{share.counts['inherited']:,} inherit what an earlier architecture has"
            words = f"{_workloads(share.workloads)}, and none is tuned for {share.arch}"
            yield fact(share.workloads, f"{words}: {inherited}", "shares/all benchmarks")


def _bare(document: Coverage) -> Iterator[Fact]:
    """Name benchmarks that nobody tuned, those with the most workloads first."""
    for name, lot in shares(document).items():
        if not any(share.counts["tuned"] for share in lot.values()):
            count = max(share.workloads for share in lot.values())
            words = f"{_workloads(count)} of {name}, and none is tuned on any of the architectures"
            yield fact(count, words, f"shares/{name}")


def _workloads(count: int) -> str:
    return noun(count, "workload")


VARIANTS = (Column("score", "n"), "benchmark", "workload", "arch", "now", "variant")
SHORT = {"tuned": "tuned", "default": "·", "disabled": "off", "unreachable": "never"}


# Coverage as a page with a matrix, and as Markdown.


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


ROWS = 100
"""Of a list in Markdown: a comment holds 65,536 characters."""


def cell_anchor(kind: str, one: OnArch) -> str:
    """Name the row of a workload on an architecture: `since/sm90/reduce.sum/T=I8`."""
    return "/".join([kind, one.arch, short(one.benchmark), *axes(one.workload)])
