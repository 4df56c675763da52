"""Edits that give an entry other values, or put a new one beside its siblings."""

import re
from collections.abc import Sequence
from dataclasses import replace

from policygen.dialects.provenance import Provenance
from policygen.dialects.specializations import entry_text
from policygen.dialects.specializations.member_edits import member_edits
from policygen.dialects.specializations.sections import Headed, find_sections, heading_like
from policygen.dialects.specializations.siblings import Neighbour, neighbour
from policygen.dialects.surroundings import Surroundings
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import Content, NewEntry
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.source import spelling
from policygen.source.brackets import split_list
from policygen.source.splice import edit_at
from policygen.source.text import Text

_UNIT = "  "
"""What the templates indent members with."""


class Writer:
    """Writes entries of one header."""

    def __init__(self, header: TuningHeader, text: Text) -> None:
        self.header = header
        self.text = text
        self.newline = spelling.newline(text.data)
        self._places = Surroundings(text)
        self._provenance = Provenance(text)
        self._opened_at: set[tuple[int, str]] = set()

    def update(self, family: Family, entry: Entry, content: Content, reason: str) -> list[Edit]:
        """Other values for an entry that is there; nothing where it has them."""
        own = {member.name: member for member in entry.members}
        if content.kind == "inherits" and entry.inherits and not own:
            return self._rebase(entry, content, reason)
        if own and content.values and content.values.keys() <= own.keys():
            edits = member_edits(self.text, entry, content.values, reason)
            return edits + self._provenance.noted(entry, content, reason) if edits else []
        if content.kind == "empty" and not own and not entry.inherits:
            return []
        return self._rewrite(family, entry, content, reason)

    def insertion(self, family: Family, new: NewEntry) -> tuple[int, str]:
        """Where a new entry goes, and its text with the blank lines around it."""
        sections = find_sections(self.text, self._places, family)
        beside = neighbour(family, new.key, [section.entries for section in sections])
        if beside is None:
            kinds = (e for e in family.entries if e.kind == "primary" and not e.disabled)
            primary = next(kinds, None)
            if primary is None:
                raise InputError(f"{self.header.name}: {family.name} has no primary template")
            text = self.entry(family, family.name, new, None)
            return self._places.line_end(primary.span.end), f"{self.newline * 2}{text}"
        if beside.apart and (
            heading := heading_like(sections, beside.apart.sizes, beside.apart.size)
        ):
            return self._opened(family, new, beside, sections, heading)
        # Within a condition that a sibling has already, the new entry needs none of its own.
        inside = new.guard is not None and beside.entry.guard == new.guard
        new = replace(new, guard=None) if inside else new
        text = self.entry(family, family.name, new, beside.entry)
        packed = self._packed(text, beside.entry)
        gap = self.newline * (1 if packed else 2)
        if beside.before:
            at = self._places.start(beside.entry, inside=inside)
            parted = packed or self._places.opens(at)
            return at, f"{'' if parted else self.newline}{text}{gap}"
        at = self._places.end(beside.entry, inside=inside)
        parted = packed or self._places.closes(at)
        return at, f"{gap}{text}{'' if parted else self.newline}"

    def _opened(
        self,
        family: Family,
        new: NewEntry,
        beside: Neighbour,
        sections: Sequence[Headed],
        heading: str,
    ) -> tuple[int, str]:
        """An entry below a heading of its own; of several with one heading, the first has it."""
        index = next(i for i, one in enumerate(sections) if beside.entry in one.entries)
        if beside.before:
            at = self._places.above(sections[index].heading)
        else:
            following = sections[index + 1].heading if index + 1 < len(sections) else None
            at = self._places.section_end(sections[index].entries[-1], following)
        text = self.entry(family, family.name, new, beside.entry)
        parted = "" if self._places.closes(at) else self.newline
        if (at, heading) in self._opened_at:
            gap = self.newline * (1 if self._packed(text, beside.entry) else 2)
            return at, f"{gap}{text}{parted}"
        self._opened_at.add((at, heading))
        alone = [self._places.stands_alone(section.heading) for section in sections]
        gap = self.newline * (2 if 2 * sum(alone) > len(alone) else 1)
        return at, f"{self.newline * 2}// {heading}{gap}{text}{parted}"

    def _packed(self, text: str, beside: Entry) -> bool:
        """Whether a new entry goes without a blank line between it and the one beside it."""
        code = [row for row in text.split(self.newline) if not row.lstrip().startswith("//")]
        return len(code) == 1 and self._places.packed(beside)

    def entry(self, family: Family, name: str, new: NewEntry, sibling: Entry | None) -> str:
        """The text of a new entry, called `name`, in the manner of a sibling."""
        shown = entry_text.typical(self.header, family, sibling)
        types = entry_text.member_types(self.header, family, shown)
        shape = shown if new.content.kind == "values" else sibling
        lone = new.guard is None and new.alias is None
        if lone and sibling and shape and shape.layout == "line":
            text = entry_text.line(family, name, new, types, sibling)
        else:
            text = entry_text.block(family, name, new, types, sibling)
        first = spelling.indent_of(self.text.data, sibling.span.start) if sibling else ""
        fitted = self._fitted(text, sibling, shown)
        return fitted if fitted.startswith("#") else first + fitted

    def _rebase(self, entry: Entry, content: Content, reason: str) -> list[Edit]:
        """Other arguments for what an entry inherits its values from."""
        assert entry.inherits_span is not None
        old, data = entry.inherits_span, self.text.data
        found = entry_text.base_of(content, entry.args)
        assert found is not None, "an entry that inherits has a base"
        name, args = found
        start = data.find(b"<", old.start, old.end)
        start = old.end if start < 0 else start
        named = spelling.text_of(data, Span(old.start, start)).split()[-1:] == [name]
        spans = split_list(self.text.code, start + 1, old.end - 1)
        if named and len(spans) == len(args):
            pairs = zip(spans, args, strict=True)
            changed = [(s, arg) for s, arg in pairs if spelling.text_of(data, s) != arg]
            edits = [self._edit(span, arg, reason) for span, arg in changed]
        else:
            edits = [self._edit(old, f"{name}<{', '.join(args)}>" if args else name, reason)]
        return edits + self._provenance.noted(entry, content, reason) if edits else []

    def _rewrite(self, family: Family, entry: Entry, content: Content, reason: str) -> list[Edit]:
        """Values in place of what an entry inherited, or of a body that lacks some."""
        assert entry.args_span is not None
        if content.kind == "values":
            own = {member.name: member.spelling for member in entry.members}
            content = replace(content, values={**own, **content.values})
        shown = entry_text.typical(self.header, family, entry)
        types = entry_text.member_types(self.header, family, shown)
        shape = shown if content.kind == "values" else entry
        layout = "line" if entry.layout == "line" and shape and shape.layout == "line" else "block"
        tail = entry_text.body(family, content, entry.args, types, layout=layout)
        start = self.text.code.index(b">", entry.args_span.end) + 1
        span = Span(start, entry.span.end)
        edits = [self._edit(span, self._fitted(tail, entry, shown), reason)]
        if layout != entry.layout:
            edits += self._broken_up(entry, reason)
        above = layout == "line" or content.kind != "values"
        return [*self._provenance.noted(entry, content, reason, body=span, above=above), *edits]

    def _broken_up(self, entry: Entry, reason: str) -> list[Edit]:
        """A line for `template <…>` alone, and blank ones around what has become a block."""
        assert entry.args_span is not None
        data, start = self.text.data, entry.span.start
        struct = start + self.text.code[start : entry.args_span.start].rindex(b"struct")
        end = len(data[:struct].rstrip())
        by = spelling.indent_of(data, start)
        edits = [self._edit(Span(end, struct), f"{self.newline}{by}", reason)]
        above = self._places.start(entry, inside=True)
        if not self._places.opens(above):
            edits.append(self._edit(Span(above, above), self.newline, reason))
        below = self._places.end(entry, inside=True)
        if not self._places.closes(below):
            edits.append(self._edit(Span(below, below), self.newline, reason))
        return edits

    def _fitted(self, text: str, sibling: Entry | None, shown: Entry | None) -> str:
        """Lines indented as those of an entry, the first of them apart, with its line endings."""
        data, by, unit = self.text.data, "", _UNIT
        if sibling is not None:
            by = spelling.indent_of(data, sibling.span.start)
        if shown is not None and shown.members:
            theirs = spelling.indent_of(data, shown.members[0].span.start)
            unit = theirs.removeprefix(spelling.indent_of(data, shown.span.start)) or _UNIT
        rows = [re.sub(rf"^{_UNIT}(?=\S)", lambda _: unit, row) for row in text.split("\n")]
        rows[1:] = [by + row if row and not row.startswith("#") else row for row in rows[1:]]
        return self.newline.join(rows)

    def _edit(self, span: Span, new: str, reason: str) -> Edit:
        return edit_at(self.text.data, span, new, reason)
