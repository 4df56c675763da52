"""Tuning coverage per workload and architecture: on the terminal, as CSV, Markdown, and a page."""

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
"""Lines of each kind listed without -v."""
FIELDS = (
    "benchmark", "workload", "arch", "status", "since", "header", "line", "reason", "score",
    "variant",
)  # fmt: skip


def render(document: Coverage, form: str) -> str:
    """Render `csv`, `md` or `html`, without local paths because the output is meant for sharing."""
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
    """Show how many workloads of each benchmark are tuned, and what blocks the others."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    yield by_benchmark(document, "·", total=True)
    yield BLANK
    entries = undecided(document.cells)
    for status in dict.fromkeys(entry.status for entry in entries):
        matching = [entry for entry in entries if entry.status == status]
        cells = plural(sum(len(entry.cells) for entry in matching), "cell")
        yield Note(f"{status} ({cells}): {WORDS[status]}", "bold", folded=True)
        yield from _listed([*map(_undecided_words, matching)], verbose=verbose)
        yield BLANK
    if document.fillable is not None:
        cells = plural(len(document.fillable), "cell")
        text = f"{cells}:" if document.fillable else "no cell that is not tuned"
        yield Note(f"the databases could fill {text}", "bold", folded=True)
        yield from _listed([*map(_fillable_words, document.fillable)], verbose=verbose)
        if document.fillable:
            text = "  policygen apply writes them: the compiler was asked"
            yield Note(text, "dim", folded=True)
        yield BLANK
    if document.unfilled:
        cells = plural(len(document.unfilled), "cell")
        yield Note(f"policygen plan rejects their variants for {cells}:", "bold", folded=True)
        yield from _listed([*map(_unfilled_words, document.unfilled)], verbose=verbose)
        yield BLANK
    if document.compared is not None:
        yield Words(f"since {tree_line(document.compared.cub)}:", "bold")
        yield Words(document.compared.in_words, "", "  ", "  ")
        yield from _listed([*map(_turned_words, document.compared.ordered)], verbose=verbose)
        yield BLANK
    for problem in document.unresolved:
        yield Note(f"{problem.benchmark}: {problem.reason}", "red", folded=True)
    yield from remarks(document.remarks)
    for share in document.totals.values() if head else ():
        yield Words(f"{share.arch}: {share_in_words(share)}")


def _listed(items: Sequence[Iterable[Block]], *, verbose: bool) -> Iterator[Block]:
    """List items; a truncated list states how many are hidden."""
    for item in items if verbose else items[:SHOWN]:
        yield from item
    if len(items) > SHOWN and not verbose:
        yield Note(f"  and {len(items) - SHOWN:,} more (-v lists them)", "dim", folded=True)


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry that exists but decides none of the cells that it covers."""

    status: CellStatus
    place: str
    reason: str
    cells: tuple[Cell, ...]

    @property
    def anchor(self) -> str:
        """Anchor of its row on a page."""
        return f"undecided/{self.place}"

    @property
    def words(self) -> str:
        """First workload, the number of other workloads, and the architectures."""
        first = self.cells[0]
        other_count = len({cell.point for cell in self.cells}) - 1
        suffix = f" and {other_count} more" if other_count else ""
        archs = ", ".join(dict.fromkeys(cell.arch for cell in self.cells))
        return f"{in_words(short(first.benchmark), first.workload)}{suffix} on {archs}"


def _undecided_words(entry: Undecided) -> Iterator[Block]:
    yield Words(f"{entry.place} {entry.words}", "", "  ")
    if entry.reason:
        yield Words(entry.reason, "dim", "    ", "    ")


def _fillable_words(cell: Fillable, style: str = "green") -> Iterator[Block]:
    words = [
        f"{cell.score:.3f}",
        short(cell.name),
        "on",
        cell.arch,
        f"({cell.status})",
        cell.variant,
    ]
    yield Words(words, style, "  ")


def _unfilled_words(cell: Unfilled) -> Iterator[Block]:
    yield from _fillable_words(cell, "yellow")
    yield Words(cell.reason, "dim", "    ", "    ")


def _turned_words(cell: Turned) -> Iterator[Block]:
    change = f"{cell.before or 'no workload'} → {cell.after or 'no workload'}"
    words = [short(cell.benchmark), *axes(cell.workload), "on", cell.arch, change]
    yield Words(words, {"lost": "red", "gained": "green"}.get(cell.kind, "dim"), "  ")


def _csv(document: Coverage) -> str:
    """Write one line per workload and architecture."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    fillable_by_cell = {
        (point_of(cell_to_fill.benchmark, cell_to_fill.workload), cell_to_fill.arch): cell_to_fill
        for cell_to_fill in document.fillable or ()
    }
    for cell in document.cells:
        row = [cell.benchmark, " ".join(axes(cell.workload)), cell.arch, cell.status, cell.since]
        location = (cell.entry.header, cell.entry.line) if cell.entry else (None, None)
        fillable = fillable_by_cell.get((cell.point, cell.arch))
        candidate = (fillable.score, fillable.variant) if fillable else (None, None)
        writer.writerow([*row, *location, cell.reason, *candidate])
    return out.getvalue()


WORDS: dict[CellStatus, str] = {
    "tuned": "an entry for this architecture decides",
    "inherited": "one for an earlier architecture does",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
}


# Shared by all coverage views


def undecided(cells: Iterable[Cell]) -> list[Undecided]:
    """Collect entries that do not decide, by status and place."""
    cells_by_entry: dict[tuple[CellStatus, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            location = f"{cell.entry.header}:{cell.entry.line}"
            cells_by_entry.setdefault((cell.status, location, cell.reason or ""), []).append(cell)
    return [
        Undecided(*key, tuple(entry_cells)) for key, entry_cells in sorted(cells_by_entry.items())
    ]


def by_benchmark(document: Coverage, zero: str, *, total: bool) -> Table:
    """Show the tuned share of each benchmark and architecture in a plain table."""
    shares_by_name = {**shares(document), **({"all": document.totals} if total else {})}
    rows = []
    for name, shares_by_arch in shares_by_name.items():
        arch_shares = [shares_by_arch.get(arch) for arch in document.archs]
        row = [tuned_of(share, zero) if share else "" for share in arch_shares]
        rows.append([name, *row])
    columns = [Column(arch, "n") for arch in document.archs]
    return Table([Column("tuned of all"), *columns], rows, total=total)


def shares(document: Coverage) -> dict[str, dict[str, Share]]:
    """Collect the shares of each benchmark by architecture."""
    shares_by_benchmark: dict[str, dict[str, Share]] = {}
    for share in document.shares:
        if share.benchmark is not None:
            shares_by_benchmark.setdefault(short(share.benchmark), {})[share.arch] = share
    return shares_by_benchmark


def tuned_of(share: Share, zero: str = "0") -> str:
    """Write tuned and total workloads: `12/24`."""
    return f"{share.counts['tuned'] or zero}/{share.workloads}"


def share_in_words(share: Share) -> str:
    """Describe a share: `271 of 635 workloads tuned (43 %), 364 default`."""
    other_statuses = [
        f"{share.counts[status]:,} {status}" for status in STATUSES[1:] if share.counts[status]
    ]
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return ", ".join([f"{count} ({share.percent(('tuned',)):.0f} %)", *other_statuses])


print_coverage = printed(coverage)
MARKS: dict[TurnedKind, tuple[str, str, str]] = {
    "gained": ("+", "tuned", "gained: tuned now"),
    "lost": ("\u2212", "unreachable", "lost: tuned before"),
    "other": ("±", "inherited", "other changes, as from inherited to default"),
    "only after": ("new ", "default", "tuned workloads that only this tree has"),
    "only before": ("gone ", "disabled", "tuned workloads that only the other tree has"),
}
"""Mark before the count, its style, and its meaning."""
_ALL = "all"


# Changes since another tree


def since(compared: Compared, archs: Sequence[str]) -> Iterator[Block]:
    """Show the counts in a table, followed by each changed cell."""
    yield Heading(f"Since {tree_line(compared.cub)}")
    yield Note(compared.in_words)
    if not compared.turned:
        return
    legend = [
        ((mark.strip(), f"mark {style}"), (words, "")) for mark, style, words in MARKS.values()
    ]
    yield Listing(legend, "key")
    yield _changes_table(compared, archs)
    rows: list[list[str | Styled]] = []
    for cell in compared.ordered:
        turned = [
            Styled(status or "no workload", status or "") for status in (cell.before, cell.after)
        ]
        rows.append([short(cell.benchmark), " ".join(axes(cell.workload)), cell.arch, *turned])
    columns = ("benchmark", "workload", "arch", "was", "is")
    anchors = [cell_anchor("since", cell) for cell in compared.ordered]
    table = Table(columns, rows, label="What changed", shown=ROWS, anchors=anchors)
    yield Fold(f"Each of the {len(rows):,} changes", [table], open=len(rows) < 20)


def _changes_table(compared: Compared, archs: Sequence[str]) -> Table:
    """Count by algorithm and architecture; the first row and the last column are totals."""
    counts: Counter[tuple[str, str, TurnedKind]] = Counter()
    for cell in compared.turned:
        for name in (_ALL, short(cell.benchmark)):
            for arch in (cell.arch, _ALL):
                counts[name, arch, cell.kind] += 1
    all_archs = [*archs, *sorted({cell.arch for cell in compared.turned} - {*archs})]
    names = dict.fromkeys([_ALL, *sorted({short(cell.benchmark) for cell in compared.turned})])
    rows: list[list[Inline | Styled]] = [
        [name, *(_change_counts(counts, name, arch) for arch in (*all_archs, _ALL))]
        for name in names
    ]
    columns: list[str | Column] = [
        "algorithm",
        *(Column(arch, f"a-{arch}") for arch in all_archs),
        _ALL,
    ]
    anchors = [f"delta/{name}" for name in names]
    return Table(columns, rows, "delta", "Changes by algorithm", anchors=anchors)


def _change_counts(counts: Counter[tuple[str, str, TurnedKind]], name: str, arch: str) -> Styled:
    pieces: list[Piece] = []
    for kind, (mark, style, _) in MARKS.items():
        if count := counts[name, arch, kind]:
            pieces += [(" ", "")] * bool(pieces)
            pieces.append((f"{mark}{count:,}", f"mark {style}"))
    return Styled(tuple(pieces) or "", "" if arch == _ALL else f"a-{arch}")


# Notable facts about coverage


def facts(document: Coverage, entries: Sequence[Undecided]) -> list[Iterator[Fact]]:
    """Collect facts by kind, most severe kind first."""
    return [
        _turned_facts(document.compared, "lost", "lost their tuning on"),
        _undecided_facts(entries, "unreachable", "an entry that is never taken"),
        _undecided_facts(entries, "disabled", "an entry that is commented out"),
        _fillable_facts(document.fillable or ()),
        _turned_facts(document.compared, "gained", "are tuned now, and were not, on"),
        _untuned_arch_facts(document),
        _untuned_benchmark_facts(document),
    ]


def _turned_facts(compared: Compared | None, kind: TurnedKind, words: str) -> Iterator[Fact]:
    turned = compared.turned if compared else ()
    counts = Counter((short(cell.benchmark), cell.arch) for cell in turned if cell.kind == kind)
    for (name, arch), count in counts.items():
        yield fact(count, f"{_workloads(count)} of {name} {words} {arch}", f"delta/{name}")


def _undecided_facts(entries: Sequence[Undecided], status: str, words: str) -> Iterator[Fact]:
    for entry in entries:
        if entry.status == status:
            count = len(entry.cells)
            text = (
                f"{'cell has' if count == 1 else 'cells have'} {words}: {entry.place},"
                f" {entry.words}"
            )
            yield fact(count, text, entry.anchor)


def _fillable_facts(fillable: Sequence[Fillable]) -> Iterator[Fact]:
    best: dict[tuple[str, str], float] = {}
    counts = Counter((short(cell.benchmark), cell.arch) for cell in fillable)
    for cell in fillable:
        key = short(cell.benchmark), cell.arch
        best[key] = max(cell.score, best.get(key, 0))
    for (name, arch), count in counts.items():
        words = f"{_workloads(count)} of {name} can be filled for {arch}"
        score = f"the best score is {best[name, arch]:.3f}"
        yield fact(count, f"{words}; {score}", f"workloads/{name}")


def _untuned_arch_facts(document: Coverage) -> Iterator[Fact]:
    for share in document.totals.values():
        if not share.counts["tuned"]:
            inherited = f"{share.counts['inherited']:,} inherit what an earlier architecture has"
            words = f"{_workloads(share.workloads)}, and none is tuned for {share.arch}"
            yield fact(share.workloads, f"{words}: {inherited}", "shares/all benchmarks")


def _untuned_benchmark_facts(document: Coverage) -> Iterator[Fact]:
    """Name benchmarks without any tuning, those with the most workloads first."""
    for name, shares_by_arch in shares(document).items():
        if not any(share.counts["tuned"] for share in shares_by_arch.values()):
            count = max(share.workloads for share in shares_by_arch.values())
            words = f"{_workloads(count)} of {name}, and none is tuned on any of the architectures"
            yield fact(count, words, f"shares/{name}")


def _workloads(count: int) -> str:
    return noun(count, "workload")


VARIANTS = (Column("score", "n"), "benchmark", "workload", "arch", "now", "variant")
SHORT = {"tuned": "tuned", "default": "·", "disabled": "off", "unreachable": "never"}


# Coverage as a page with a matrix, and as Markdown


def blocks(document: Coverage, *, page: bool) -> Iterator[Block]:
    """Show all of the coverage; a page also has a matrix and a heat map."""
    entries = undecided(document.cells)
    yield _cards(document) if page else _totals(document)
    if page:
        yield from standing_out(facts(document, entries))
    notes = [
        *document.remarks,
        *(f"{problem.benchmark}: {problem.reason}" for problem in document.unresolved),
    ]
    yield from (Note(text, "soft") for text in notes)
    if page:
        yield from _matrix(document)
    if document.compared:
        yield from since(document.compared, document.archs)
    if document.fillable is not None:
        title = "What the databases could fill"
        yield Heading(title)
        yield _fillable_table(document.fillable, title)
    if document.unfilled:
        title = "Variants that policygen plan rejects"
        yield Heading(title)
        yield _unfilled_table(document.unfilled, title)
    if page:
        yield from _heat_map(document)
    else:
        yield Heading("By benchmark")
        yield by_benchmark(document, "0", total=False)
    if entries:
        title = "Entries that do not decide"
        yield Heading(title)
        yield _undecided_table(entries, title)


def _totals(document: Coverage) -> Table:
    rows = []
    for share in document.totals.values():
        tuned, *other_counts = (str(share.counts[status]) for status in STATUSES)
        percent = f"({share.percent(('tuned',)):.0f} %)"
        rows.append([share.arch, f"{tuned} {percent}", *other_counts, str(share.workloads)])
    return Table(
        [Column("arch"), *(Column(title, "n") for title in (*STATUSES, "workloads"))], rows
    )


def _cards(document: Coverage) -> Cards:
    """Create a card per architecture; all list the same statuses, those that occur anywhere."""
    totals = document.totals.values()
    present_statuses = [
        status for status in STATUSES if any(share.counts[status] for share in totals)
    ]
    cards = []
    for share in totals:
        bar = Figure("bar", [(style, percent, "") for style, percent in _parts(share)])
        lines = [f"{share.counts[status]:,} {status}" for status in present_statuses]
        answer, label = f"{share.percent(('tuned',)):.0f} %", f"tuned on {share.arch}"
        cards.append(Card("", answer, lines, label, figure=bar))
    return Cards(cards)


def _parts(share: Share) -> list[tuple[str, float]]:
    parts = [(status, round(share.percent((status,)), 1)) for status in STATUSES]
    return [part for part in parts if part[1]]


def _share_cell(share: Share) -> Mixed:
    percent = f"{share.percent(('tuned',)):.0f} %"
    return Mixed(percent, tuned_of(share), share_in_words(share), _parts(share))


def _matrix(document: Coverage) -> Iterator[Block]:
    title = "Shares by benchmark"
    yield Heading(title)
    yield Filters("reduce, T=I8", {"arch": ("Arch", document.archs)}, STATUSES)
    yield Listing([((status, status), (words, "")) for status, words in WORDS.items()], "key")
    shares_by_name = {"all benchmarks": document.totals, **shares(document)}
    rows: list[MatrixRow] = []
    for name, shares_by_arch in shares_by_name.items():
        cells = [
            _share_cell(shares_by_arch[arch]) if arch in shares_by_arch else None
            for arch in document.archs
        ]
        rows.append(MatrixRow(name, cells, f"workloads/{name}" if rows else ""))
    columns = [Column(arch, f"a-{arch}") for arch in document.archs]
    yield Matrix("tuned workloads", columns, rows, title, "shares")


def _fillable_table(fillable: Sequence[Fillable], title: str) -> Block:
    if not fillable:
        return Note("No cell that is not tuned.")
    anchors = [cell_anchor("fillable", cell) for cell in fillable]
    rows = [_variant_cells(cell) for cell in fillable]
    return Table(VARIANTS, rows, label=title, shown=ROWS, anchors=anchors)


def _unfilled_table(unfilled: Sequence[Unfilled], title: str) -> Block:
    anchors = [cell_anchor("unfilled", cell) for cell in unfilled]
    rows = [[*_variant_cells(cell), cell.reason] for cell in unfilled]
    return Table((*VARIANTS, "why"), rows, label=title, shown=ROWS, anchors=anchors)


def _variant_cells(cell: Fillable) -> list[Inline | Styled]:
    location = (short(cell.benchmark), " ".join(axes(cell.workload)), cell.arch)
    return [cell.score, *location, Styled(cell.status, cell.status), Styled(cell.variant, "mono")]


def _undecided_table(entries: Iterable[Undecided], title: str) -> Table:
    rows: list[list[Inline | Styled]] = []
    anchors = []
    for entry in entries:
        location = Styled(entry.place, "code")
        rows.append([Styled(entry.status, entry.status), location, entry.words, entry.reason])
        anchors.append(entry.anchor)
    return Table(("what", "where", "for", "why"), rows, label=title, shown=ROWS, anchors=anchors)


def _heat_map(document: Coverage) -> Iterator[Block]:
    yield Heading("Each workload")
    rows: dict[str, dict[str, list[Styled]]] = {}
    for cell in document.cells:
        workloads = rows.setdefault(short(cell.benchmark), {})
        workloads.setdefault(" ".join(axes(cell.workload)), []).append(_heat_cell(cell))
    columns = [Column("workload"), *(Column(arch, f"a-{arch}") for arch in document.archs)]
    for name, workloads in rows.items():
        heat: list[list[Inline | Styled]] = [
            [workload, *cells] for workload, cells in workloads.items()
        ]
        anchors = [f"workloads/{name}/{workload.replace(' ', '/')}" for workload in workloads]
        table = Table(columns, heat, "heat", name, anchors=anchors)
        count = plural(len(workloads), "workload")
        summary = ((name, "bold"), (f" {count}", "soft"))
        yield Fold(summary, [table], "benchmark", anchor=f"workloads/{name}")


def _heat_cell(cell: Cell) -> Styled:
    location = f"{cell.entry.header}:{cell.entry.line}" if cell.entry else ""
    tooltip = ": ".join(part for part in (location, cell.reason) if part)
    text = SHORT.get(cell.status) or str(cell.since)
    return Styled(text, f"c a-{cell.arch} {cell.status}", tooltip)


ROWS = 100
"""Maximum rows of a list in Markdown, because a comment holds 65,536 characters."""


def cell_anchor(kind: str, cell: OnArch) -> str:
    """Name the row of a workload on an architecture: `since/sm90/reduce.sum/T=I8`."""
    return "/".join([kind, cell.arch, short(cell.benchmark), *axes(cell.workload)])
