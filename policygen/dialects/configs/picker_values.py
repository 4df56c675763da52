"""Other values for a return of a picker, and for the comment above it that repeats them."""

import re
from collections.abc import Iterator, Mapping

from policygen.dialects.configs.pickers import last_name
from policygen.dialects.configs.place import PickerSpot
from policygen.dialects.specializations.member_edits import member_edits
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry
from policygen.source.brackets import closing_brace, split_list
from policygen.source.spelling import same
from policygen.source.splice import edit_at
from policygen.source.text import Text

# "'block_size_x': 256" of "// CONFIG: {'key_type': 'int', 'block_size_x': 256, 'ipt': 8}"
_TOLD = re.compile(rb"""['"](\w+)['"]\s*:\s*(-?\d+)\b""")


def with_values(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> list[Edit]:
    """The edits of a return: of its values, of those that it leaves out, and of its comment."""
    edits = member_edits(text, entry, values, reason)
    if unsaid := spot.left_out(entry, values):
        edits += _said(text, entry, unsaid, spot, reason)
    return [*edits, *_commented(text, entry, values, spot, reason)]


def _said(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> Iterator[Edit]:
    """Values behind the last one of their struct, up to those that have to be said."""
    assert entry.inherits_span is not None, "it returns something"
    opened = text.code.find(b"{", entry.inherits_span.start, entry.inherits_span.end)
    left = dict(values)
    structs = _structs(text, opened, spot.site.configs[0], "", spot) if opened >= 0 else ()
    for prefix, of, at in structs:
        given = len(split_list(text.code, at.start, at.end))
        fields = spot.parameters.get(of, ())[given:]
        wanted = [n for n, (name, _) in enumerate(fields) if prefix + name in left]
        if not wanted:
            continue
        parts = []
        for name, kind in fields[: wanted[-1] + 1]:
            parts.append(spot.argument(kind, left.pop(prefix + name, None), prefix + name))
        last = split_list(text.code, at.start, at.end)[-1].end
        new = "".join(f", {part}" for part in parts)
        yield edit_at(text.data, Span(last, last), new, reason)
    if left:
        raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(left)}")


def _structs(
    text: Text, opened: int, of: str, prefix: str, spot: PickerSpot
) -> Iterator[tuple[str, str, Span]]:
    """The braces of a return: the path of each, the struct that it is, and what is in it."""
    close = closing_brace(text.code, opened)
    assert close is not None, "the header was read"
    inside = Span(opened + 1, close)
    yield prefix, of, inside
    for (name, kind), part in zip(
        spot.parameters.get(of, ()), split_list(text.code, *inside), strict=False
    ):
        brace = text.code.find(b"{", part.start, part.end)
        if brace >= 0:
            yield from _structs(text, brace, last_name(kind), f"{prefix}{name}.", spot)


def _commented(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> Iterator[Edit]:
    """The numbers of a comment that are those of the values: by their names, else the only ones."""
    if entry.comment_span is None:
        return
    told = {
        match[1].decode(): Span(*match.span(2))
        for match in _TOLD.finditer(text.data, *entry.comment_span)
    }
    for member in entry.members:
        new = values.get(member.name)
        if new is None or same(member, new) or not new.lstrip("-").isdigit():
            continue
        old = {n: s for n, s in told.items() if text.data[slice(*s)].decode() == member.spelling}
        named = next((name for name in spot.called.get(member.name, ()) if name in old), None)
        if named is None and len(old) == 1:
            (named,) = old
        if named is not None:
            yield edit_at(text.data, told.pop(named), new, reason)
