"""What was gained and lost since another tree: by architecture and algorithm, then one by one."""

from collections import Counter
from collections.abc import Iterator, Sequence

from policygen.model.coverage import Compared, TurnedKind
from policygen.model.workload import axes
from policygen.report.blocks import (
    Block,
    Column,
    Fold,
    Heading,
    Inline,
    Listing,
    Note,
    Piece,
    Styled,
    Table,
)
from policygen.report.console import short, tree_line
from policygen.report.views.coverage_words import ROWS, cell_anchor

MARKS: dict[TurnedKind, tuple[str, str, str]] = {
    "gained": ("+", "tuned", "gained: tuned now"),
    "lost": ("\u2212", "unreachable", "lost: tuned before"),
    "other": ("±", "inherited", "other changes, as from inherited to default"),
    "only after": ("new ", "default", "tuned workloads that only this tree has"),
    "only before": ("gone ", "disabled", "tuned workloads that only the other tree has"),
}
"""What stands before the count, its style, and what it means."""
_ALL = "all"


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
