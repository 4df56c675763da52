"""What all views of coverage say in the same words."""

from collections.abc import Iterable
from dataclasses import dataclass

from policygen.model.coverage import STATUSES, Cell, CellStatus, Coverage, Share
from policygen.model.workload import OnArch, axes, in_words
from policygen.report.blocks import Column, Table
from policygen.report.console import plural, short

ROWS = 100
"""Of a list in Markdown: a comment holds 65,536 characters."""
WORDS: dict[CellStatus, str] = {
    "tuned": "an entry for this architecture decides",
    "inherited": "one for an earlier architecture does",
    "default": "no entry does",
    "disabled": "its entry is commented out",
    "unreachable": "its entry is never taken",
}


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


def undecided(cells: Iterable[Cell]) -> list[Undecided]:
    """Collect entries that do not decide, by status and place."""
    found: dict[tuple[CellStatus, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in {"disabled", "unreachable"} and cell.entry is not None:
            place = f"{cell.entry.header}:{cell.entry.line}"
            found.setdefault((cell.status, place, cell.reason or ""), []).append(cell)
    return [Undecided(*key, tuple(lot)) for key, lot in sorted(found.items())]


def share_in_words(share: Share) -> str:
    """Tell a share: `271 of 635 workloads tuned (43 %), 364 default`."""
    others = [f"{share.counts[s]:,} {s}" for s in STATUSES[1:] if share.counts[s]]
    count = f"{share.counts['tuned']:,} of {plural(share.workloads, 'workload')} tuned"
    return ", ".join([f"{count} ({share.percent(('tuned',)):.0f} %)", *others])


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


def cell_anchor(kind: str, one: OnArch) -> str:
    """Name the row of a workload on an architecture: `since/sm90/reduce.sum/T=I8`."""
    return "/".join([kind, one.arch, short(one.benchmark), *axes(one.workload)])
