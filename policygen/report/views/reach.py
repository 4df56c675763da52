"""Entries that are never selected."""

from collections.abc import Iterator

from policygen.model.reach import CallOnly, Reach, Unreachable
from policygen.model.tuning import conjunction
from policygen.report.blocks import BLANK, Block, Note, Words
from policygen.report.console import plural, printed, tree_line


def reach(document: Reach, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each entry with its reason; entries with the same reason together."""
    if head:
        yield Note(f"{tree_line(document.cub)}; {document.toolchain}", "dim", folded=True)
        yield BLANK
    lots: dict[tuple[str, str, str], list[Unreachable]] = {}
    for found in document.unreachable:
        lots.setdefault((found.header, found.family, found.reason), []).append(found)
    for (header, family, reason), lot in lots.items():
        yield Note(f"{header}: {family}", "bold", folded=True)
        yield Words(f"{lot[0].cause}: {reason}", "red", "  ", "      ")
        for entry in lot:
            yield _entry(entry, "cyan")
            if entry.example and entry is lot[0]:
                yield Words(f"for example {entry.example}", "dim", "    ", "        ")
        yield BLANK
    if verbose and document.call_only:
        yield Note("Selected by some call, and by no benchmark:", "bold", folded=True)
        for one in document.call_only:
            yield _entry(one, "yellow")
            yield Words(f"by {one.example}", "dim", "    ", "        ")
        yield BLANK
    if head:
        yield from _summary(document)
    for remark in document.remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)


def _entry(entry: Unreachable | CallOnly, style: str) -> Block:
    key = f"<{', '.join(entry.args)}>" if entry.family.startswith("sm") else conjunction(entry.args)
    return Words(f"{entry.header}:{entry.line}: {key}", style, "  ", "      ")


def _summary(document: Reach) -> Iterator[Block]:
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
    yield Note("; ".join(parts), folded=True)
    tried = f"{plural(document.workloads, 'workload')} tried on {', '.join(document.archs)}"
    yield Note(tried, folded=True)


print_reach = printed(reach)
