"""Coverage on the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from policygen.model.coverage import STATUSES, Cell, CellStatus, Compared, Coverage, Fillable, Share
from policygen.model.workload import axes, in_words
from policygen.report import console
from policygen.report.console import plural, print_filled, short, tree_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHOWN = 12
"""As many lines of a kind as are listed without -v."""
WORDS: dict[CellStatus, str] = {
    "tuned": "an entry for this architecture decides",
    "inherited": "one for an earlier architecture does",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
}


def print_coverage(document: Coverage, *, head: bool, verbose: bool) -> None:
    """How much is tuned of each benchmark, and what stands in the way of the rest."""
    out = console.results()
    if head:
        print_filled(
            out, f"{tree_line(document.cub)}; {document.toolchain}".split(" "), "", "  ", "dim"
        )
        out.print()
    out.print(_table(document))
    out.print()
    _print_reasons(out, document.cells, verbose=verbose)
    if document.fillable is not None:
        _print_fillable(out, document.fillable, verbose=verbose)
    if document.compared is not None:
        words = f"since {tree_line(document.compared.cub)}:"
        print_filled(out, words.split(" "), "", "  ", "bold")
        _print_turned(out, document.compared, verbose=verbose)
    for one in document.unresolved:
        out.print(f"{one.benchmark}: {one.reason}", style="red")
    for remark in document.remarks:
        print_filled(out, f"note: {remark}".split(" "), "", "  ", "yellow")
    if head:
        for share in document.totals.values():
            print_filled(out, share_in_words(share).split(" "), "", "  ", "")


def share_in_words(share: Share) -> str:
    """`sm90: 271 of 635 workloads tuned (43 %), 364 default`."""
    others = [f"{share.counts[s]:,} {s}" for s in STATUSES[1:] if share.counts[s]]
    percent = f"{share.percent(('tuned',)):.0f} %"
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return f"{share.arch}: {', '.join([f'{count} ({percent})', *others])}"


def _table(document: Coverage) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("tuned of all", overflow="fold")
    for arch in document.archs:
        table.add_column(arch, justify="right")
    shares = [share for share in document.shares if share.benchmark is not None]
    for benchmark, lot in groupby(shares, key=lambda share: share.benchmark):
        by_arch = {share.arch: share for share in lot}
        cells = [_cell(by_arch.get(arch)) for arch in document.archs]
        table.add_row(short(str(benchmark)), *cells)
    table.add_section()
    table.add_row("all", *(_cell(document.totals.get(arch)) for arch in document.archs))
    return table


def _cell(share: Share | None) -> str:
    return f"{share.counts['tuned'] or '·'}/{share.workloads}" if share else ""


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry that is there and does not decide, with the cells that it is for."""

    status: CellStatus
    place: str
    reason: str
    cells: tuple[Cell, ...]

    @property
    def archs(self) -> str:
        """Where it does not."""
        return ", ".join(dict.fromkeys(cell.arch for cell in self.cells))

    @property
    def workload(self) -> str:
        """Its first workload, and how many more there are."""
        first = self.cells[0]
        others = len({cell.point for cell in self.cells}) - 1
        name = in_words(short(first.benchmark), first.workload)
        return f"{name} and {others} more" if others else name


def undecided(cells: Iterable[Cell]) -> list[Undecided]:
    """Entries that do not decide, by status and place."""
    found: dict[tuple[CellStatus, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            place = f"{cell.entry.header}:{cell.entry.line}"
            found.setdefault((cell.status, place, cell.reason or ""), []).append(cell)
    return [Undecided(*key, tuple(lot)) for key, lot in sorted(found.items())]


def _print_reasons(out: "Console", cells: Iterable[Cell], *, verbose: bool) -> None:
    for status, lot in groupby(undecided(cells), key=lambda one: one.status):
        whole = list(lot)
        count = sum(len(one.cells) for one in whole)
        out.print(f"{status} ({plural(count, 'cell')}): {WORDS[status]}", style="bold")
        shown = whole if verbose else whole[:SHOWN]
        for one in shown:
            words = [one.place, *one.workload.split(" "), "on", *one.archs.split(" ")]
            print_filled(out, words, "  ", "  ", "")
            if one.reason:
                print_filled(out, one.reason.split(" "), "    ", "", "dim")
        _print_cut(out, len(whole) - len(shown))
        out.print()


def _print_fillable(out: "Console", found: Sequence[Fillable], *, verbose: bool) -> None:
    out.print(f"the databases could fill {plural(len(found), 'cell')}:", style="bold")
    shown = found if verbose else found[:SHOWN]
    for one in shown:
        words = [f"{one.score:.3f}", short(one.name), "on", one.arch]
        print_filled(out, [*words, f"({one.status})", one.variant], "  ", "  ", "green")
    _print_cut(out, len(found) - len(shown))
    if found:
        out.print("  policygen apply writes them, and proves it", style="dim")
    out.print()


def _print_turned(out: "Console", compared: Compared, *, verbose: bool) -> None:
    print_filled(out, compared.in_words.split(" "), "  ", "", "")
    whole = compared.ordered
    shown = whole if verbose else whole[:SHOWN]
    for one in shown:
        style = {"lost": "red", "gained": "green"}.get(one.kind, "dim")
        words = [short(one.benchmark), *axes(one.workload), "on", one.arch]
        change = f"{one.before or 'no workload'} → {one.after or 'no workload'}"
        print_filled(out, [*words, f"{change}"], "  ", "  ", style)
    _print_cut(out, len(whole) - len(shown))
    out.print()


def _print_cut(out: "Console", count: int) -> None:
    if count > 0:
        out.print(f"  and {count:,} more (-v lists them)", style="dim")
