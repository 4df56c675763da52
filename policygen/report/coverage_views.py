"""Tuning coverage per workload and architecture: on the terminal, as CSV, Markdown, and a page."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from policygen.errors import noun, plural
from policygen.model.audits import (
    STATUSES,
    CellStatus,
    Compared,
    Coverage,
    Fillable,
    Share,
    Turned,
    TurnedKind,
    Unfilled,
)
from policygen.model.audits import Cell as CoveredCell
from policygen.model.trees import tree_line
from policygen.model.workload import OnArch, axes, in_words
from policygen.report.blocks import (
    BLANK,
    Block,
    Card,
    Cards,
    Cell,
    Column,
    Fact,
    Figure,
    Filters,
    Fold,
    Heading,
    Listing,
    Matrix,
    MatrixRow,
    Mixed,
    Note,
    Page,
    Piece,
    Styled,
    Table,
    TableRows,
    Words,
    fact,
    remarks,
    shortened,
    standing_out,
)
from policygen.report.console import short

SHOWN = 12
"""Lines of each kind listed without -v."""
ROWS = 100
"""Maximum rows of a list in Markdown, because a comment holds 65,536 characters."""
PLACE: tuple[tuple[str, str, Callable[[OnArch], str]], ...] = (
    ("benchmark", "", lambda cell: short(cell.benchmark)),
    ("workload", "", lambda cell: " ".join(axes(cell.workload))),
    ("arch", "", lambda cell: cell.arch),
)
"""Columns that name a workload on an architecture."""
FIELDS = (
    "benchmark", "workload", "arch", "status", "since", "header", "line", "reason", "score",
    "variant",
)  # fmt: skip


def page(document: Coverage, *, is_page: bool) -> Page:
    """Build a page, or Markdown."""
    facts = {"tree": tree_line(document.cub), "compiler": document.toolchain}
    blocks = list(_blocks(document, page=is_page))
    return Page(f"Tuning coverage of {document.cub.title}", facts, blocks)


def csv_lines(document: Coverage) -> str:
    """Write one line per workload and architecture."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    fillable_by_cell = {(cell.point, cell.arch): cell for cell in document.fillable or ()}
    for cell in document.cells:
        row = [cell.benchmark, " ".join(axes(cell.workload)), cell.arch, cell.status, cell.since]
        location = (cell.entry.header, cell.entry.line) if cell.entry else (None, None)
        fillable = fillable_by_cell.get((cell.point, cell.arch))
        candidate = (fillable.score, fillable.variant) if fillable else (None, None)
        writer.writerow([*row, *location, cell.reason, *candidate])
    return out.getvalue()


# On a terminal


def coverage(document: Coverage, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show how many workloads of each benchmark are tuned, and what blocks the others."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    yield _by_benchmark(document, "·", total=True)
    yield BLANK
    entries = _undecided(document.cells)
    for status in dict.fromkeys(entry.status for entry in entries):
        matching = [entry for entry in entries if entry.status == status]
        cells = plural(sum(len(entry.cells) for entry in matching), "cell")
        yield Note(f"{status} ({cells}): {WORDS[status]}", "bold", folded=True)
        yield from shortened(matching, SHOWN, _undecided_words, verbose=verbose)
        yield BLANK
    if document.fillable is not None:
        cells = plural(len(document.fillable), "cell")
        text = f"{cells}:" if document.fillable else "none of the untuned cells"
        yield Note(f"the databases could fill {text}", "bold", folded=True)
        yield from shortened(document.fillable, SHOWN, _fillable_words, verbose=verbose)
        if document.fillable:
            text = "  policygen apply writes them after the compiler has confirmed them"
            yield Note(text, "dim", folded=True)
        yield BLANK
    if document.unfilled:
        cells = plural(len(document.unfilled), "cell")
        yield Note(f"policygen plan rejects their variants for {cells}:", "bold", folded=True)
        yield from shortened(document.unfilled, SHOWN, _unfilled_words, verbose=verbose)
        yield BLANK
    if document.compared is not None:
        yield Words(f"since {tree_line(document.compared.cub)}:", "bold")
        yield Words(document.compared.in_words, "", "  ", "  ")
        yield from shortened(document.compared.ordered, SHOWN, _turned_words, verbose=verbose)
        yield BLANK
    for problem in document.unresolved:
        yield Note(f"{problem.benchmark}: {problem.reason}", "red", folded=True)
    yield from remarks(document.remarks)
    for share in document.totals.values() if head else ():
        yield Words(f"{share.arch}: {_share_in_words(share)}")


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry that exists but decides none of the cells that it covers."""

    status: CellStatus
    place: str
    reason: str
    cells: tuple[CoveredCell, ...]

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
    words = [f"{cell.score:.3f}", short(cell.name), "on", cell.arch]
    yield Words([*words, f"({cell.status})", cell.variant], style, "  ")


def _unfilled_words(cell: Unfilled) -> Iterator[Block]:
    yield from _fillable_words(cell, "yellow")
    yield Words(cell.reason, "dim", "    ", "    ")


def _turned_words(cell: Turned) -> Iterator[Block]:
    change = f"{cell.before or 'no workload'} → {cell.after or 'no workload'}"
    words = [short(cell.benchmark), *axes(cell.workload), "on", cell.arch, change]
    yield Words(words, {"lost": "red", "gained": "green"}.get(cell.kind, "dim"), "  ")


WORDS: dict[CellStatus, str] = {
    "tuned": "selected from an entry for this architecture",
    "inherited": "selected from an entry for an earlier architecture",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
    "unknown": "not known: no binding asks for what the entries are for",
}


# Shared by all coverage views


def _undecided(cells: Iterable[CoveredCell]) -> list[Undecided]:
    """Collect entries that do not decide, by status and place."""
    cells_by_entry: dict[tuple[CellStatus, str, str], list[CoveredCell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            location = cell.entry.where
            cells_by_entry.setdefault((cell.status, location, cell.reason or ""), []).append(cell)
    return [Undecided(*key, tuple(cells)) for key, cells in sorted(cells_by_entry.items())]


def _by_benchmark(document: Coverage, zero: str, *, total: bool) -> Table:
    """Show the tuned share of each benchmark and architecture in a plain table."""
    shares_by_name = {**_shares(document), **({"all": document.totals} if total else {})}
    rows = []
    for name, shares in shares_by_name.items():
        tuned = (_tuned_of(shares[arch], zero) if arch in shares else "" for arch in document.archs)
        rows.append([name, *tuned])
    columns = [Column(arch, "n") for arch in document.archs]
    return Table([Column("tuned of all"), *columns], rows, total=total)


def _shares(document: Coverage) -> dict[str, dict[str, Share]]:
    shares_by_benchmark: dict[str, dict[str, Share]] = {}
    for share in document.shares:
        if share.benchmark is not None:
            shares_by_benchmark.setdefault(short(share.benchmark), {})[share.arch] = share
    return shares_by_benchmark


def _tuned_of(share: Share, zero: str = "0") -> str:
    """Write tuned and total workloads: `12/24`, and `?/24` where it is not known."""
    none = "?" if share.counts.get("unknown") else zero
    return f"{share.counts['tuned'] or none}/{share.workloads}"


def _share_in_words(share: Share) -> str:
    """Describe a share: `271 of 635 workloads tuned (43 %), 364 default`."""
    other_statuses = [
        f"{share.counts[status]:,} {status}" for status in STATUSES[1:] if share.counts[status]
    ]
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return ", ".join([f"{count} ({share.percent(('tuned',)):.0f} %)", *other_statuses])


MARKS: dict[TurnedKind, tuple[str, str, str]] = {
    "gained": ("+", "tuned", "gained: tuned now"),
    "lost": ("\u2212", "unreachable", "lost: tuned before"),
    "other": ("±", "inherited", "other changes, for example from inherited to default"),
    "only after": ("new ", "default", "tuned workloads that exist only in this tree"),
    "only before": ("gone ", "disabled", "tuned workloads that exist only in the other tree"),
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
    marks = MARKS.values()
    key = [((mark.strip(), f"mark {style}"), (words, "")) for mark, style, words in marks]
    yield Listing(key, "key")
    yield _changes_table(compared, archs)
    table = TableRows(compared.ordered).table(
        *PLACE,
        ("was", "", lambda cell: Styled(cell.before or "no workload", cell.before or "")),
        ("is", "", lambda cell: Styled(cell.after or "no workload", cell.after or "")),
        label="What changed",
        shown=ROWS,
        anchor=lambda cell: _anchor("since", cell),
    )
    count = len(table.rows)
    yield Fold(f"Each of the {count:,} changes", [table], open=count < 20)


def _changes_table(compared: Compared, archs: Sequence[str]) -> Table:
    """Count by algorithm and architecture; the first row and the last column are totals."""
    counts: Counter[tuple[str, str, TurnedKind]] = Counter()
    for cell in compared.turned:
        for name in (_ALL, short(cell.benchmark)):
            for arch in (cell.arch, _ALL):
                counts[name, arch, cell.kind] += 1
    all_archs = [*archs, *sorted({cell.arch for cell in compared.turned} - {*archs})]
    names = dict.fromkeys([_ALL, *sorted({short(cell.benchmark) for cell in compared.turned})])
    rows: list[list[Cell]] = [
        [name, *(_change_counts(counts, name, arch) for arch in (*all_archs, _ALL))]
        for name in names
    ]
    columns = [
        Column("algorithm"),
        *(Column(arch, f"a-{arch}") for arch in all_archs),
        Column(_ALL),
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
        _turned_facts(document.compared, "gained", "were untuned and are now tuned on"),
        _untuned_arch_facts(document),
        _untuned_benchmark_facts(document),
    ]


def _turned_facts(compared: Compared | None, kind: TurnedKind, words: str) -> Iterator[Fact]:
    turned = compared.turned if compared else ()
    counts = Counter((short(cell.benchmark), cell.arch) for cell in turned if cell.kind == kind)
    for (name, arch), count in counts.items():
        yield fact(count, f"{noun(count, 'workload')} of {name} {words} {arch}", f"delta/{name}")


def _undecided_facts(entries: Sequence[Undecided], status: str, words: str) -> Iterator[Fact]:
    for entry in entries:
        if entry.status == status:
            count = len(entry.cells)
            cells = noun(count, "cell has", "cells have")
            yield fact(count, f"{cells} {words}: {entry.place}, {entry.words}", entry.anchor)


def _fillable_facts(fillable: Sequence[Fillable]) -> Iterator[Fact]:
    best: dict[tuple[str, str], float] = {}
    counts = Counter((short(cell.benchmark), cell.arch) for cell in fillable)
    for cell in fillable:
        key = short(cell.benchmark), cell.arch
        best[key] = max(cell.score, best.get(key, 0))
    for (name, arch), count in counts.items():
        words = f"{noun(count, 'workload')} of {name} can be filled for {arch}"
        score = f"the best score is {best[name, arch]:.3f}"
        yield fact(count, f"{words}; {score}", f"workloads/{name}")


def _untuned_arch_facts(document: Coverage) -> Iterator[Fact]:
    for share in document.totals.values():
        if not share.counts["tuned"]:
            inherited = f"{share.counts['inherited']:,} inherit values from an earlier architecture"
            words = f"{noun(share.workloads, 'workload')}, none of them tuned for {share.arch}"
            yield fact(share.workloads, f"{words}: {inherited}", "shares/all benchmarks")


def _untuned_benchmark_facts(document: Coverage) -> Iterator[Fact]:
    """Name benchmarks without any tuning, those with the most workloads first."""
    for name, shares_by_arch in _shares(document).items():
        if not any(share.counts["tuned"] for share in shares_by_arch.values()):
            count = max(share.workloads for share in shares_by_arch.values())
            words = f"{noun(count, 'workload')} of {name}, none tuned on any architecture"
            yield fact(count, words, f"shares/{name}")


SHORT = {
    "tuned": "tuned",
    "default": "·",
    "disabled": "off",
    "unreachable": "never",
    "unknown": "?",
}


# Coverage as a page with a matrix, and as Markdown


def _blocks(document: Coverage, *, page: bool) -> Iterator[Block]:
    """Show all of the coverage; a page also has a matrix and a heat map."""
    entries = _undecided(document.cells)
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
        if document.fillable:
            yield _variants_table("fillable", document.fillable, title)
        else:
            yield Note("They cover no untuned cell.")
    if document.unfilled:
        title = "Variants that policygen plan rejects"
        yield Heading(title)
        yield _variants_table("unfilled", document.unfilled, title)
    if page:
        yield from _heat_map(document)
    else:
        yield Heading("By benchmark")
        yield _by_benchmark(document, "0", total=False)
    if entries:
        title = "Entries that decide no workload"
        yield Heading(title)
        yield TableRows(entries).table(
            ("what", "", lambda entry: Styled(entry.status, entry.status)),
            ("where", "", lambda entry: Styled(entry.place, "code")),
            ("for", "", lambda entry: entry.words),
            ("why", "", lambda entry: entry.reason),
            label=title,
            shown=ROWS,
            anchor=lambda entry: entry.anchor,
        )


def _totals(document: Coverage) -> Table:
    rows = []
    for share in document.totals.values():
        tuned, *other_counts = (str(share.counts[status]) for status in STATUSES)
        percent = f"({share.percent(('tuned',)):.0f} %)"
        rows.append([share.arch, f"{tuned} {percent}", *other_counts, str(share.workloads)])
    numbers = (Column(title, "n") for title in (*STATUSES, "workloads"))
    return Table([Column("arch"), *numbers], rows)


def _cards(document: Coverage) -> Cards:
    """Create a card per architecture; all list the same statuses, those that occur anywhere."""
    totals = document.totals.values()
    present = [status for status in STATUSES if any(share.counts[status] for share in totals)]
    cards = []
    for share in totals:
        bar = Figure("bar", [(style, percent, "") for style, percent in _parts(share)])
        lines = [f"{share.counts[status]:,} {status}" for status in present]
        answer = f"{share.percent(('tuned',)):.0f} %"
        cards.append(Card("", answer, lines, f"tuned on {share.arch}", figure=bar))
    return Cards(cards)


def _parts(share: Share) -> list[tuple[str, float]]:
    parts = [(status, round(share.percent((status,)), 1)) for status in STATUSES]
    return [part for part in parts if part[1]]


def _share_cell(share: Share) -> Mixed:
    percent = f"{share.percent(('tuned',)):.0f} %"
    return Mixed(percent, _tuned_of(share), _share_in_words(share), _parts(share))


def _matrix(document: Coverage) -> Iterator[Block]:
    title = "Shares by benchmark"
    yield Heading(title)
    yield Filters("reduce, T=I8", {"arch": ("Arch", document.archs)}, STATUSES)
    yield Listing([((status, status), (words, "")) for status, words in WORDS.items()], "key")
    shares_by_name = {"all benchmarks": document.totals, **_shares(document)}
    rows: list[MatrixRow] = []
    for name, shares_by_arch in shares_by_name.items():
        cells = [
            _share_cell(shares_by_arch[arch]) if arch in shares_by_arch else None
            for arch in document.archs
        ]
        rows.append(MatrixRow(name, cells, f"workloads/{name}" if rows else ""))
    columns = [Column(arch, f"a-{arch}") for arch in document.archs]
    yield Matrix("tuned workloads", columns, rows, title, "shares")


def _variants_table(kind: str, cells: Sequence[Fillable], title: str) -> Table:
    """Show variants for cells that are not tuned, and why the plan rejects them."""
    return TableRows(cells).table(
        ("score", "n", lambda cell: cell.score),
        *PLACE,
        ("now", "", lambda cell: Styled(cell.status, cell.status)),
        ("variant", "", lambda cell: Styled(cell.variant, "mono")),
        ("why", "", lambda cell: cell.reason if isinstance(cell, Unfilled) else "")
        if kind == "unfilled"
        else None,
        label=title,
        shown=ROWS,
        anchor=lambda cell: _anchor(kind, cell),
    )


def _heat_map(document: Coverage) -> Iterator[Block]:
    yield Heading("Each workload")
    rows: dict[str, dict[str, list[Styled]]] = {}
    for cell in document.cells:
        location = cell.entry.where if cell.entry else ""
        tooltip = ": ".join(part for part in (location, cell.reason) if part)
        text = SHORT.get(cell.status) or str(cell.since)
        heat_cell = Styled(text, f"c a-{cell.arch} {cell.status}", tooltip)
        workloads = rows.setdefault(short(cell.benchmark), {})
        workloads.setdefault(" ".join(axes(cell.workload)), []).append(heat_cell)
    columns = [Column("workload"), *(Column(arch, f"a-{arch}") for arch in document.archs)]
    for name, workloads in rows.items():
        heat: list[list[Cell]] = [[workload, *cells] for workload, cells in workloads.items()]
        anchors = [f"workloads/{name}/{workload.replace(' ', '/')}" for workload in workloads]
        table = Table(columns, heat, "heat", name, anchors=anchors)
        count = plural(len(workloads), "workload")
        summary = ((name, "bold"), (f" {count}", "soft"))
        yield Fold(summary, [table], "benchmark", anchor=f"workloads/{name}")


def _anchor(kind: str, cell: OnArch) -> str:
    """Name the row of a workload on an architecture: `since/sm90/reduce.sum/T=I8`."""
    return "/".join([kind, cell.arch, short(cell.benchmark), *axes(cell.workload)])
