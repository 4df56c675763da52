"""Resolved values, and how those of two trees differ."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from policygen.model.resolve import (
    Comparison,
    Differing,
    EntryPlace,
    Resolution,
    ResolvedRow,
    Unresolved,
)
from policygen.model.tuning import Value, spell
from policygen.model.workload import axes
from policygen.report.blocks import BLANK, Block, Note, Words
from policygen.report.console import plural, printed, tree_line

STYLES = {"tuned": "green", "inherited": "yellow", "default": "dim"}


def resolution(document: Resolution, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show values by benchmark and architecture; workloads with the same values together."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    for (benchmark, arch), rows in groupby(document.rows, key=lambda r: (r.benchmark, r.arch)):
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        for lot in ([row] for row in rows) if verbose else _lots(rows):
            yield from _lot(lot)
        yield BLANK
    if head:
        counts = {name: sum(row.status == name for row in document.rows) for name in STYLES}
        parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        workloads = plural(len(document.rows), "workload")
        yield Note(f"{workloads} on {', '.join(document.archs)}: {parts}", folded=True)
    yield from _endings(document.remarks, document.unresolved)


def comparison(document: Comparison, *, head: bool) -> Iterator[Block]:
    """Show what differs, workload by workload."""
    if head:
        yield Words(f"before: {tree_line(document.before)}", "dim")
        yield Words(f"after:  {tree_line(document.after)}; {document.toolchain}", "dim")
        yield BLANK
    by_place = groupby(document.different, key=lambda row: (row.benchmark, row.arch))
    for (benchmark, arch), rows in by_place:
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        lone = {"before": 0, "after": 0}
        for row in rows:
            if row.before is not None and row.after is not None:
                yield from _difference(row)
            else:
                lone["after" if row.before is None else "before"] += 1
        for when, count in lone.items():
            if count:
                yield Words(f"{plural(count, 'workload')} only {when}", "yellow", "  ")
        yield BLANK
    if head:
        differ = plural(len(document.different), "workload differs", "workloads differ")
        on = ", ".join(document.archs)
        yield Note(f"{differ} of {document.compared:,}, on {on}", folded=True)
    yield from _endings(document.remarks, document.unresolved)


def _lot(lot: list[ResolvedRow]) -> Iterator[Block]:
    """Show the workloads, then what they have in common."""
    row = lot[0]
    style = STYLES[row.status]
    for each in lot:
        yield Words(axes(each.workload), style, "  ")
    where = f", {_place(row.entry)}" if row.entry else ""
    origin = row.status if row.status != "inherited" else f"inherited from {row.since}"
    yield Words([f"{origin}{where}"], style, "      ")
    yield Words(_values(row.values), "", "      ", joint="  ")
    if row.note:
        yield Words(row.note, "red", "      ")


def _lots(rows: Iterable[ResolvedRow]) -> Iterable[list[ResolvedRow]]:
    """Collect workloads that share values and entry, where the first of them stands."""
    lots: dict[tuple[object, ...], list[ResolvedRow]] = {}
    for row in rows:
        key = (tuple(row.values.items()), row.entry, row.status, row.note)
        lots.setdefault(key, []).append(row)
    return lots.values()


def _values(values: dict[str, Value]) -> list[str]:
    return [f"{name}={spell(value)}" for name, value in values.items()]


def _place(entry: EntryPlace) -> str:
    return f"{entry.header}:{entry.line}"


def _difference(row: Differing) -> Iterator[Block]:
    yield Words(axes(row.workload), "bold", "  ")
    for word, values, entry in (
        ("before:", row.before, row.entry_before),
        ("after: ", row.after, row.entry_after),
    ):
        told = {name: value for name, value in (values or {}).items() if name in row.changed}
        shown = _values(told) + ([f"({_place(entry)})"] if entry else [])
        yield Words([f"{word} {shown[0]}", *shown[1:]], "", "      ", joint="  ")


def _endings(remarks: Iterable[str], unresolved: Iterable[Unresolved]) -> Iterator[Block]:
    for remark in remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)
    for missing in unresolved:
        yield Note(f"{missing.benchmark}: {missing.reason}", "red", folded=True)


print_resolution = printed(resolution)
print_comparison = printed(comparison)
