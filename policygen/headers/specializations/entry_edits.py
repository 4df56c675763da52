"""Writes specializations as edits of a header, including whole new families with their links."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from policygen.errors import InputError
from policygen.headers import spelling
from policygen.headers.comments import Surroundings, comment_lines
from policygen.headers.protocol import EntryWrite, HeaderEdits, Insertion, with_insertions
from policygen.headers.specializations.new_arch import NewFamily, new_arch
from policygen.headers.specializations.placement import Specialization
from policygen.headers.specializations.siblings import (
    Neighbour,
    member_changes,
    neighbour,
    overload_of,
    policies_that_read,
    reading_changes,
)
from policygen.headers.spelling import UNIT, Change, edit_at, edits_of, newline
from policygen.headers.syntax import split_list
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.tuning import (
    AddedMember,
    Content,
    Edit,
    Entry,
    Family,
    NewEntry,
    Slot,
    TuningHeader,
)
from policygen.rendering import fill
from policygen.untrusted import comment

# "offset_size::_4", "16"
_TRAILING = re.compile(r"\d+$")


def write_entries(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str, below: str | None
) -> HeaderEdits:
    """Returns the edits of all entries of a header; writes to one place form one edit."""
    writer = Writer(header, Text(header.name, data))
    edits: list[Edit] = []
    policies: list[str] = []
    inserted: list[Insertion] = []
    new_families: dict[str, list[EntryWrite]] = {}
    for write in sorted(writes, key=_sort_key):
        spot = _spot(write)
        if spot.is_new:
            new_families.setdefault(spot.family.namespace, []).append(write)
        elif spot.entry is not None:
            edits += writer.update(spot.family, spot.entry, write.content, write.reason)
        else:
            inserted.append((*writer.insertion(spot.family, _new_entry(write)), write.reason))
    present = [write for write in writes if not _spot(write).is_new]
    edits += _reading_edits(header, writer.text, present)
    for namespace, group in new_families.items():
        added = {name: member for write in group for name, member in write.content.added.items()}
        new_family = new_arch(header, data, namespace, arch, below, added)
        declaration = _declaration(writer, new_family, group)
        inserted.append((new_family.at, declaration, f"{_spot(group[0]).name} is new"))
        edits += new_family.links
        policies += new_family.policies
    return HeaderEdits(with_insertions(edits, inserted), policies)


def _reading_edits(header: TuningHeader, text: Text, writes: Sequence[EntryWrite]) -> list[Edit]:
    """Makes the policies of families read members that their entries lacked."""
    added: dict[tuple[str, str], dict[str, AddedMember]] = {}
    for write in writes:
        family = _spot(write).family
        added.setdefault((family.namespace, family.name), {}).update(write.content.added)
    edits: dict[Span, Edit] = {}
    for (namespace, name), members in added.items():
        for chain, policy, use in policies_that_read(header.chains, namespace, name):
            overload, _ = overload_of(text, chain, policy, use)
            for span, replacement in reading_changes(text, name, overload, members):
                reason = f"{policy.name} reads {', '.join(members)}"
                lines = replacement.replace("\n", newline(text.data))
                edits[span] = edit_at(text.data, span, lines, reason)
    return list(edits.values())


def _spot(write: EntryWrite) -> Specialization:
    spot = write.spots[0]
    assert isinstance(spot, Specialization), "it is an entry of a family"
    return spot


def _sort_key(write: EntryWrite) -> list[int]:
    """Sorts by the sizes in the keys, like siblings; keys that name a type come last."""
    spot = _spot(write)
    slots = () if spot.entry else spot.key.slots
    pairs = list(zip(slots, spot.family.parameters[: len(slots)], strict=True))
    numbers = [
        _TRAILING.search(slot or "") for slot, parameter in pairs if parameter.kind != "type"
    ]
    named_types = sum(slot is not None for slot, parameter in pairs if parameter.kind == "type")
    return [*(int(match[0]) if match else 0 for match in numbers), named_types]


def _new_entry(write: EntryWrite) -> NewEntry:
    key = _spot(write).key
    return NewEntry(key.slots, write.content, key.guard, key.alias)


@dataclass(frozen=True, slots=True)
class Headed:
    """A heading and the live entries below it, up to the next heading."""

    heading: Span
    text: str
    """The heading without comment markers."""
    entries: tuple[Entry, ...]


# Updates and insertions


class Writer:
    """Writes entries of one header."""

    def __init__(self, header: TuningHeader, text: Text) -> None:
        self.header = header
        self.text = text
        self.newline = spelling.newline(text.data)
        self._places = Surroundings(text)
        self._opened_at: set[tuple[int, str]] = set()

    def update(self, family: Family, entry: Entry, content: Content, reason: str) -> list[Edit]:
        """Updates the values of an existing entry; returns no edits if none change."""
        return edits_of(self.text.data, self._changes(family, entry, content), reason)

    def _changes(self, family: Family, entry: Entry, content: Content) -> list[Change]:
        members = {member.name: member for member in entry.members}
        if content.kind == "inherits" and entry.inherits and not members:
            return self._rebase(entry, content)
        if members and content.values and content.values.keys() <= members.keys():
            changes = member_changes(self.text, entry, content.values)
            return changes + self._places.noted(entry, content) if changes else []
        if content.kind == "empty" and not members and not entry.inherits:
            return []
        return self._rewrite(family, entry, content)

    def insertion(self, family: Family, new_entry: NewEntry) -> tuple[int, str]:
        """Returns the offset of a new entry, and its text with the surrounding blank lines."""
        sections = find_sections(self.text, self._places, family)
        closest = neighbour(family, new_entry.key, [section.entries for section in sections])
        if closest is None:
            primaries = (
                entry for entry in family.entries if entry.kind == "primary" and not entry.disabled
            )
            primary = next(primaries, None)
            if primary is None:
                raise InputError(f"{self.header.name}: {family.name} has no primary template")
            text = self.entry(family, family.name, new_entry, None)
            return self._places.line_end(primary.span.end), f"{self.newline * 2}{text}"
        if closest.apart and (
            heading := heading_like(sections, closest.apart.sizes, closest.apart.size)
        ):
            return self._with_heading(family, new_entry, closest, sections, heading)
        # Inside its sibling's preprocessor condition, the new entry needs none of its own.
        shares_guard = new_entry.guard is not None and closest.entry.guard == new_entry.guard
        new_entry = replace(new_entry, guard=None) if shares_guard else new_entry
        text = self.entry(family, family.name, new_entry, closest.entry)
        packed = self._packed(text, closest.entry)
        gap = self.newline * (1 if packed else 2)
        if closest.before:
            offset = self._places.start(closest.entry, inside=shares_guard)
            is_separated = packed or self._places.opens(offset)
            return offset, f"{'' if is_separated else self.newline}{text}{gap}"
        offset = self._places.end(closest.entry, inside=shares_guard)
        is_separated = packed or self._places.closes(offset)
        return offset, f"{gap}{text}{'' if is_separated else self.newline}"

    def _with_heading(
        self,
        family: Family,
        new_entry: NewEntry,
        closest: Neighbour,
        sections: Sequence[Headed],
        heading: str,
    ) -> tuple[int, str]:
        """Puts an entry below a new heading; only the first entry of a heading writes it."""
        index = [closest.entry in section.entries for section in sections].index(True)
        if closest.before:
            offset = len(self.text.data[: sections[index].heading.start].rstrip())
        else:
            following = sections[index + 1].heading if index + 1 < len(sections) else None
            offset = self._places.section_end(sections[index].entries[-1], following)
        text = self.entry(family, family.name, new_entry, closest.entry)
        separator = "" if self._places.closes(offset) else self.newline
        if (offset, heading) in self._opened_at:
            gap = self.newline * (1 if self._packed(text, closest.entry) else 2)
            return offset, f"{gap}{text}{separator}"
        self._opened_at.add((offset, heading))
        standalone = [self._places.stands_alone(section.heading) for section in sections]
        gap = self.newline * (2 if 2 * sum(standalone) > len(standalone) else 1)
        return offset, f"{self.newline * 2}// {heading}{gap}{text}{separator}"

    def _packed(self, text: str, neighbouring: Entry) -> bool:
        """Tells whether a new entry needs no blank line between it and its neighbor."""
        code = [row for row in text.split(self.newline) if not row.lstrip().startswith("//")]
        return len(code) == 1 and self._places.packed(neighbouring)

    def entry(self, family: Family, name: str, new_entry: NewEntry, sibling: Entry | None) -> str:
        """Returns the text of a new entry named `name`, laid out like a sibling."""
        example = typical(self.header, family, sibling)
        types = member_types(self.header, family, example)
        shape = example if new_entry.content.kind == "values" else sibling
        is_plain = new_entry.guard is None and new_entry.alias is None
        fits_line = is_plain and sibling and shape and shape.layout == "line"
        layout: Layout = "line" if fits_line else "block"
        text = entry_text(family, name, new_entry, types, sibling, layout=layout)
        first_indent = spelling.indent_of(self.text.data, sibling.span.start) if sibling else ""
        indented = self._indented(text, sibling, example)
        return indented if indented.startswith("#") else first_indent + indented

    def _rebase(self, entry: Entry, content: Content) -> list[Change]:
        """Changes the arguments of the base that an entry inherits its values from."""
        assert entry.inherits_span is not None
        base_span, data = entry.inherits_span, self.text.data
        base = base_of(content, entry.args)
        assert base is not None, "an entry that inherits has a base"
        name, args = base
        start = data.find(b"<", base_span.start, base_span.end)
        start = base_span.end if start < 0 else start
        same_name = spelling.text_of(data, Span(base_span.start, start)).split()[-1:] == [name]
        spans = split_list(self.text.code, start + 1, base_span.end - 1)
        if same_name and len(spans) == len(args):
            pairs = zip(spans, args, strict=True)
            changes = [(span, arg) for span, arg in pairs if spelling.text_of(data, span) != arg]
        else:
            changes = [(base_span, f"{name}<{', '.join(args)}>" if args else name)]
        return changes + self._places.noted(entry, content) if changes else []

    def _rewrite(self, family: Family, entry: Entry, content: Content) -> list[Change]:
        """Replaces an inherited base, or a body that lacks members, with new content."""
        assert entry.args_span is not None
        if content.kind == "values":
            current = {member.name: member.spelling for member in entry.members}
            content = replace(content, values={**current, **content.values})
        example = typical(self.header, family, entry)
        types = member_types(self.header, family, example)
        shape = example if content.kind == "values" else entry
        keeps_line = entry.layout == "line" and shape and shape.layout == "line"
        layout: Layout = "line" if keeps_line else "block"
        unlabeled = replace(content, label=None)
        in_body = layout == "block" and content.kind == "values"
        inner, above = (content, unlabeled) if in_body else (unlabeled, content)
        entry_body = body(family, inner, entry.args, types, layout=layout)
        start = self.text.code.index(b">", entry.args_span.end) + 1
        span = Span(start, entry.span.end)
        changes = [(span, self._indented(entry_body, entry, example))]
        if layout != entry.layout:
            changes += self._broken_up(entry)
        return [*self._places.noted(entry, above, span), *changes]

    def _broken_up(self, entry: Entry) -> list[Change]:
        """Puts `template <…>` on its own line, and blank lines around the new block."""
        assert entry.args_span is not None
        data, start = self.text.data, entry.span.start
        struct = start + self.text.code[start : entry.args_span.start].rindex(b"struct")
        end = len(data[:struct].rstrip())
        indentation = spelling.indent_of(data, start)
        changes = [(Span(end, struct), f"{self.newline}{indentation}")]
        above = self._places.start(entry, inside=True)
        if not self._places.opens(above):
            changes.append((Span(above, above), self.newline))
        below = self._places.end(entry, inside=True)
        if not self._places.closes(below):
            changes.append((Span(below, below), self.newline))
        return changes

    def _indented(self, text: str, sibling: Entry | None, example: Entry | None) -> str:
        """Indents the lines like those of an entry, except the first, with its line endings."""
        data, indentation, unit = self.text.data, "", UNIT
        if sibling is not None:
            indentation = spelling.indent_of(data, sibling.span.start)
        if example is not None and example.members:
            member_indent = spelling.indent_of(data, example.members[0].span.start)
            unit = member_indent.removeprefix(spelling.indent_of(data, example.span.start)) or UNIT
        rows = [re.sub(rf"^{UNIT}(?=\S)", lambda _: unit, row) for row in text.split("\n")]
        rows[1:] = [
            indentation + row if row and not row.startswith("#") else row for row in rows[1:]
        ]
        return self.newline.join(rows)


def _declaration(writer: Writer, new_family: NewFamily, writes: Sequence[EntryWrite]) -> str:
    """Returns the declaration of a new family with its entries."""
    text = new_family.declaration
    for write in writes:
        entry = _new_entry(write)
        closest = neighbour(new_family.like, entry.key)
        sibling = closest.entry if closest else None
        text += writer.newline * 2 + writer.entry(new_family.like, new_family.name, entry, sibling)
    return text


Layout = Literal["line", "block"]
MemberTypes = Mapping[str, tuple[str, str]]
"""Member → its type (`using` for an alias) and a model spelling, in the neighbors' order."""


# The text of new entries


def typical(header: TuningHeader, family: Family, sibling: Entry | None) -> Entry | None:
    """Returns the entry whose members serve as the layout model: the closest with members."""
    if sibling is not None and sibling.members:
        return sibling
    with_members = [entry for entry in family.specializations if entry.members]
    if with_members:
        return _by_distance(with_members, sibling or family.entries[0])[0]
    candidates = (
        entry
        for other_family in _nearby_families(header, family)
        for entry in other_family.entries
        if entry.members and not entry.disabled
    )
    return next(candidates, None)


def member_types(header: TuningHeader, family: Family, example: Entry | None) -> MemberTypes:
    """Returns the declarations and order of members, from one entry and those closest to it."""
    entries = [
        entry
        for member_family in _nearby_families(header, family)
        for entry in _by_distance(member_family.entries, example)
        if not entry.disabled
    ]
    types: dict[str, tuple[str, str]] = {}
    order: list[str] = []
    for entry in [example, *entries] if example else entries:
        order = _merged_order(order, [member.name for member in entry.members])
        for member in entry.members:
            types.setdefault(member.name, (member.type, member.spelling))
    return {name: types[name] for name in order}


def _by_distance(entries: Sequence[Entry], example: Entry | None) -> list[Entry]:
    """Returns entries in the order of their distance from one of them."""
    offset = example.span.start if example else 0
    return sorted(entries, key=lambda entry: abs(entry.span.start - offset))


def _merged_order(order: list[str], names: Sequence[str]) -> list[str]:
    """Inserts missing names, each behind the name that precedes it elsewhere."""
    merged = list(order)
    for position, name in enumerate(names):
        if name not in order:
            before = next((other for other in reversed(names[:position]) if other in merged), None)
            after = next((other for other in names[position:] if other in order), None)
            if before is not None:
                merged.insert(merged.index(before) + 1, name)
            else:
                merged.insert(merged.index(after) if after else len(merged), name)
    return merged


def _nearby_families(header: TuningHeader, family: Family) -> list[Family]:
    """Returns a family and the namespace's others, closest first, then the earlier one."""
    siblings = [sibling for sibling in header.families if sibling.namespace == family.namespace]
    names = [sibling.name for sibling in siblings]
    own_index = names.index(family.name) if family.name in names else len(names)
    others = [index for index in range(len(siblings)) if index != own_index]
    others.sort(key=lambda index: (abs(index - own_index), index))
    return [family, *(siblings[index] for index in others)]


def entry_text(
    family: Family,
    name: str,
    new_entry: NewEntry,
    types: MemberTypes,
    sibling: Entry | None,
    *,
    layout: Layout,
) -> str:
    """Writes an entry on one line with aligned columns, or as a block with its guard and twin."""
    declared, args = spelling.parameters(family, new_entry.key, sibling)
    if layout == "line":
        closest = _by_distance(family.specializations, sibling)
        head = f"{name}<{spelling.columns(closest, args)}>"
    else:
        head = spelling.head(name, args, lead=len("struct "))
    parts = {
        "guard": new_entry.guard,
        "parameters": declared,
        "template": _template(declared),
        "head": head,
        "alias": _alias(family, name, new_entry.alias, args, sibling),
    }
    return _filled(family, new_entry.content, args, types, layout, parts)


def body(
    family: Family, content: Content, args: Sequence[str], types: MemberTypes, *, layout: Layout
) -> str:
    """Returns the text behind an entry's head: its values or its base."""
    no_head = dict.fromkeys(("guard", "parameters", "template", "head", "alias"), "")
    return _filled(family, content, args, types, layout, no_head).partition("struct ")[2]


def _filled(
    family: Family,
    content: Content,
    args: Sequence[str],
    types: MemberTypes,
    layout: Layout,
    parts: Mapping[str, object],
) -> str:
    context = {
        **parts,
        "base": _base(content, args, wrapped=layout == "block"),
        "label": content.label,
        "members": _member_rows(family, content, types, aligned=layout == "block"),
    }
    return fill(f"edit/{layout}.h.j2", context).removesuffix("\n")


def base_of(content: Content, args: Sequence[str]) -> tuple[str, list[str]] | None:
    """Returns an entry's base and its arguments; `{0}` is the entry's own first argument."""
    if content.kind != "inherits" or content.base is None:
        return None
    text = content.base.format(*args).encode()
    name, opening, _ = text.partition(b"<")
    spans = split_list(text, len(name) + 1, text.rindex(b">")) if opening else []
    return name.decode(), [spelling.text_of(text, span) for span in spans]


def _base(content: Content, args: Sequence[str], *, wrapped: bool) -> str | None:
    base = base_of(content, args)
    if base is None:
        return None
    name, base_args = base
    if not base_args:
        return name
    single_line = f"{name}<{', '.join(base_args)}>"
    return spelling.head(name, base_args, lead=len("    : ")) if wrapped else single_line


def _template(declared: Sequence[str]) -> str:
    return spelling.head("template ", declared, lead=0)


def _member_rows(
    family: Family, content: Content, types: MemberTypes, *, aligned: bool
) -> list[str]:
    """Returns member declarations in the neighbors' order."""
    values = content.values if content.kind == "values" else {}
    names = [*(name for name in types if name in values), *(n for n in values if n not in types)]
    types = {**{name: (type_name, "") for name, type_name in content.types.items()}, **types}
    if unknown := values.keys() - types.keys():
        raise InputError(
            f"{family.header}: no entry of {family.namespace} has {', '.join(sorted(unknown))}",
            "The type of a new member is taken from another entry.",
        )
    return spelling.declarations({n: values[n] for n in names}, types, aligned=aligned)


def _alias(
    family: Family, name: str, key: tuple[Slot, ...] | None, base: list[str], sibling: Entry | None
) -> dict[str, str] | None:
    if key is None:
        return None
    declared, args = spelling.parameters(family, key, sibling)
    return {
        "template": _template(declared),
        "head": spelling.head(name, args, lead=len("struct ")),
        "base": spelling.head(name, base, lead=len("    : ")),
    }


# "64-bit key", "pairs  8:xx": text around a size with its alignment spaces
_NUMBERED = re.compile(r"(\D*?)( *\d+)(\D*)")
_BITS = 8


# Sections: entries below a heading comment such as `// 8-bit key` or `// partition::if`


def find_sections(text: Text, places: Surroundings, family: Family) -> list[Headed]:
    """Returns the sections of a family, in header order."""
    live_entries = family.specializations
    if not live_entries:
        return []
    primary = [
        entry.span.end for entry in family.entries if entry.kind == "primary" and not entry.disabled
    ]
    start = max((end for end in primary if end < live_entries[0].span.start), default=0)
    headings = places.headings(Span(start, live_entries[-1].span.start))
    sections = []
    for index, heading in enumerate(headings):
        end = headings[index + 1].start if index + 1 < len(headings) else len(text.data)
        entries = tuple(entry for entry in live_entries if heading.start < entry.span.start < end)
        (line,) = comment_lines(text.data, heading)
        sections.append(Headed(heading, line.text, entries))
    return [section for section in sections if section.entries]


def heading_like(sections: Sequence[Headed], sizes: Mapping[int, int], size: int) -> str | None:
    """Returns the heading of a section for another size, or None if it cannot be derived.

    `sizes` are in bytes; headings are in bytes or bits.
    """
    texts = {sections[index].text: section_size for index, section_size in sizes.items()}
    for unit in (1, _BITS):
        parts = [
            match.groups()
            for text, section_size in texts.items()
            if (match := _NUMBERED.fullmatch(text)) and int(match[2]) == section_size * unit
        ]
        if (
            1 < len(parts) == len(texts)
            and len({(before, after) for before, _, after in parts}) == 1
        ):
            before, number, after = parts[0]
            blank = " " if number.startswith(" ") else ""
            heading = f"{before}{blank}{str(size * unit).rjust(len(number) - len(blank))}{after}"
            return heading if comment(heading).split() == heading.split() else None
    return None
