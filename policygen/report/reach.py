"""Unreachable entries on the terminal."""

from typing import TYPE_CHECKING

from policygen.model.reach import CallOnly, Reach, Unreachable
from policygen.model.tuning import conjunction
from policygen.report import console
from policygen.report.console import plural, print_filled, tree_line

if TYPE_CHECKING:
    from rich.console import Console


def print_reach(document: Reach, *, head: bool, verbose: bool) -> None:
    """Each entry with its reason; entries with the same reason together."""
    out = console.results()
    if head:
        out.print(f"{tree_line(document.cub)}; {document.toolchain}", style="dim")
        out.print()
    for (header, family, reason), lot in _lots(document.unreachable).items():
        _print_lot(out, header, family, reason, lot)
    if verbose and document.call_only:
        out.print("Selected by some call, and by no benchmark:", style="bold")
        for entry in document.call_only:
            _print_entry(out, entry, "yellow")
            _print_filled(out, f"by {entry.example}", "    ", "dim")
        out.print()
    if head:
        for row in _summary(document):
            out.print(row)
    for remark in document.remarks:
        out.print(f"note: {remark}", style="yellow")


def _lots(
    unreachable: tuple[Unreachable, ...],
) -> dict[tuple[str, str, str], list[Unreachable]]:
    lots: dict[tuple[str, str, str], list[Unreachable]] = {}
    for found in unreachable:
        lots.setdefault((found.header, found.family, found.reason), []).append(found)
    return lots


def _print_lot(
    out: "Console", header: str, family: str, reason: str, lot: list[Unreachable]
) -> None:
    out.print(f"{header}: {family}", style="bold")
    _print_filled(out, f"{lot[0].cause}: {reason}", "  ", "red")
    for entry in lot:
        _print_entry(out, entry, "cyan")
        if entry.example and entry is lot[0]:
            _print_filled(out, f"for example {entry.example}", "    ", "dim")
    out.print()


def _print_entry(out: "Console", entry: Unreachable | CallOnly, style: str) -> None:
    key = f"<{', '.join(entry.args)}>" if entry.family.startswith("sm") else conjunction(entry.args)
    _print_filled(out, f"{entry.header}:{entry.line}: {key}", "  ", style)


def _print_filled(out: "Console", text: str, indent: str, style: str) -> None:
    print_filled(out, text.split(" "), indent, "    ", style)


def _summary(document: Reach) -> tuple[str, str]:
    found = len(document.unreachable)
    parts = [
        f"{plural(document.entries, 'entry', 'entries')}, {found:,} never selected",
        f"{len(document.call_only):,} by no benchmark",
    ]
    if document.unknown:
        where = ", ".join(document.unknown)
        parts.append(f"{sum(document.unknown.values()):,} not known, in {where}")
    if document.unasked:
        parts.append(f"not asked: {', '.join(document.unasked)}")
    tried = f"{plural(document.workloads, 'workload')} tried on {', '.join(document.archs)}"
    return "; ".join(parts), tried
