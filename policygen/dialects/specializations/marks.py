"""Copies of tuning headers in which every entry is recognisable by what is selected.

Each live entry gets a number of its own: as a constant, which tells the entry that the compiler
takes for a key, and in place of a count of items, which shows in the policy that is selected. The
count is an odd multiple of a power of two, so that it survives the scaling by a type's size.

What an entry inherits is wrapped in a template of the unit that includes the copy: it gives the
mark only where the base has the member, as an entry that lacks it is skipped, and shall be.
"""

from collections.abc import Iterator, Mapping

from policygen.model.base import Span
from policygen.model.marks import Marked, mark
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.source.splice import replaced


def mark_header(
    header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]
) -> Marked:
    """Marks the entries of the families that are named (by namespace and name), with a member."""
    entries: list[tuple[Family, Entry]] = []
    edits: list[tuple[Span, str]] = []
    for family in header.families:
        member = members.get((family.namespace, family.name))
        for entry in family.entries if member else ():
            if entry.disabled or entry.body_span is None or member is None:
                continue
            edits += _edits(entry, member, len(entries))
            entries.append((family, entry))
    return Marked(header, replaced(data, edits), tuple(entries))


def _edits(entry: Entry, member: str, number: int) -> Iterator[tuple[Span, str]]:
    body, base = entry.body_span, entry.inherits_span
    assert body is not None
    yield Span(body.start, body.start), f" static constexpr int policygen_entry = {number};"
    own = next((m for m in entry.members if m.name == member), None)
    if own is not None:
        yield own.value_span, str(mark(number))
    elif entry.inherits and base is not None and entry.kind != "primary":
        start = base.start + len("public ") * entry.inherits.startswith("public ")
        yield Span(start, start), f"::policygen_marks::{member}_of<"
        yield Span(base.end, base.end), f", {mark(number)}>"
