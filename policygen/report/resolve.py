"""Resolved values on the terminal."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

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
from policygen.report import console
from policygen.report.console import plural, print_filled, tree_line

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"tuned": "green", "inherited": "yellow", "default": "dim"}


def print_resolution(document: Resolution, *, head: bool, verbose: bool) -> None:
    """By benchmark and architecture; workloads with the same values together."""
    out = console.results()
    if head:
        _print_head(out, f"{tree_line(document.cub)}; {document.toolchain}")
        out.print()
    for (benchmark, arch), rows in groupby(document.rows, key=lambda r: (r.benchmark, r.arch)):
        out.print(f"{benchmark} on {arch}", style="bold")
        for lot in _lots(list(rows)) if not verbose else ([row] for row in rows):
            _print_lot(out, lot)
        out.print()
    if head:
        out.print(_summary(document))
    _endings(out, document.remarks, document.unresolved)


def print_comparison(document: Comparison, *, head: bool) -> None:
    """What differs, workload by workload."""
    out = console.results()
    if head:
        _print_head(out, f"before: {tree_line(document.before)}")
        _print_head(out, f"after:  {tree_line(document.after)}; {document.toolchain}")
        out.print()
    for (benchmark, arch), rows in groupby(
        document.different, key=lambda row: (row.benchmark, row.arch)
    ):
        out.print(f"{benchmark} on {arch}", style="bold")
        lone = {"before": 0, "after": 0}
        for row in rows:
            if row.before is not None and row.after is not None:
                _print_difference(out, row)
            else:
                lone["after" if row.before is None else "before"] += 1
        for when, count in lone.items():
            if count:
                text = f"{plural(count, 'workload')} only {when}"
                _print_filled(out, text.split(" "), "  ", "yellow", " ")
        out.print()
    if head:
        differ = plural(len(document.different), "workload differs", "workloads differ")
        out.print(f"{differ} of {document.compared:,}, on {', '.join(document.archs)}")
    _endings(out, document.remarks, document.unresolved)


def _print_head(out: "Console", text: str) -> None:
    _print_filled(out, text.split(" "), "", "dim", " ")


def _print_lot(out: "Console", lot: list[ResolvedRow]) -> None:
    """The workloads, then what they have in common."""
    row = lot[0]
    style = STYLES[row.status]
    for each in lot:
        _print_filled(out, axes(each.workload), "  ", style, gap=" ")
    where = f", {_place(row.entry)}" if row.entry else ""
    origin = row.status if row.status != "inherited" else f"inherited from {row.since}"
    _print_filled(out, [f"{origin}{where}"], "      ", style)
    _print_filled(out, _values(row.values), "      ", "")
    if row.note:
        _print_filled(out, row.note.split(" "), "      ", "red", gap=" ")


def _print_filled(
    out: "Console", words: list[str], indent: str, style: str, gap: str = "  "
) -> None:
    print_filled(out, words, indent, "  ", style, gap)


def _lots(rows: list[ResolvedRow]) -> Iterator[list[ResolvedRow]]:
    """Workloads that share values and entry, where the first of them stands."""
    lots: dict[tuple[object, ...], list[ResolvedRow]] = {}
    for row in rows:
        key = (tuple(row.values.items()), row.entry, row.status, row.note)
        lots.setdefault(key, []).append(row)
    yield from lots.values()


def _values(values: dict[str, Value]) -> list[str]:
    return [f"{name}={spell(value)}" for name, value in values.items()]


def _place(entry: EntryPlace) -> str:
    return f"{entry.header}:{entry.line}"


def _print_difference(out: "Console", row: Differing) -> None:
    _print_filled(out, axes(row.workload), "  ", "bold", gap=" ")
    for word, values, entry in (
        ("before:", row.before, row.entry_before),
        ("after: ", row.after, row.entry_after),
    ):
        shown = _values(
            {name: value for name, value in (values or {}).items() if name in row.changed}
        )
        shown += [f"({_place(entry)})"] if entry else []
        _print_filled(out, [f"{word} {shown[0]}", *shown[1:]], "      ", "")


def _summary(document: Resolution) -> str:
    counts = dict.fromkeys(STYLES, 0)
    for row in document.rows:
        counts[row.status] += 1
    parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return f"{plural(len(document.rows), 'workload')} on {', '.join(document.archs)}: {parts}"


def _endings(out: "Console", remarks: tuple[str, ...], unresolved: tuple[Unresolved, ...]) -> None:
    for remark in remarks:
        out.print(f"note: {remark}", style="yellow")
    for missing in unresolved:
        out.print(f"{missing.benchmark}: {missing.reason}", style="red")
