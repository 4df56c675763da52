"""Other values for the members of an entry, with the `=` of those beside them where they belong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry, Member
from policygen.source.spelling import like, line_end, line_start, same, widths
from policygen.source.splice import edit_at
from policygen.source.text import Text


@dataclass(frozen=True, slots=True)
class _Row:
    """A member that has a line for itself."""

    line: int
    left: str
    """What stands before the `=`, from the line's beginning, without white space behind it."""
    gap: Span
    """The white space before the `=`."""
    old: str
    new: str


def member_edits(text: Text, entry: Entry, values: Mapping[str, str], reason: str) -> list[Edit]:
    """The edits that give members their values; none for those that have them."""
    new = {
        member.name: like(member.spelling, values[member.name])
        for member in entry.members
        if member.name in values and not same(member, values[member.name])
    }
    edits = [
        edit_at(text.data, member.value_span, new[member.name], reason)
        for member in entry.members
        if member.name in new
    ]
    for rows in _groups([_row(text, m, new.get(m.name, m.spelling)) for m in entry.members]):
        edits += _realigned(text, rows, reason)
    return edits


def _row(text: Text, member: Member, new: str) -> _Row | None:
    data, start = text.data, line_start(text.data, member.span.start)
    equals = text.code.rfind(b"=", member.span.start, member.value_span.start)
    alone = not data[start : member.span.start].strip() and member.span.end == line_end(data, start)
    if equals < 0 or not alone:
        return None
    left = data[start:equals].decode().rstrip()
    gap = Span(start + len(left), equals)
    return _Row(text.line(start), left, gap, member.spelling, new)


def _groups(rows: Sequence[_Row | None]) -> Iterator[list[_Row]]:
    """Rows on lines that follow each other: clang-format aligns them."""
    group: list[_Row] = []
    for row in rows:
        if group and (row is None or row.line != group[-1].line + 1):
            yield group
            group = []
        if row is not None:
            group.append(row)
    if group:
        yield group


def _realigned(text: Text, rows: Sequence[_Row], reason: str) -> Iterator[Edit]:
    """Other white space before the `=`, where it was as clang-format leaves it."""
    before = widths([(row.left, row.old) for row in rows])
    after = widths([(row.left, row.new) for row in rows])
    there = [len(row.left) + row.gap.end - row.gap.start - 1 for row in rows]
    for row, old, new in zip(rows, before, after, strict=True):
        if before == there and old != new:
            yield edit_at(text.data, row.gap, " " * (new - len(row.left) + 1), reason)
