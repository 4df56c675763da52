"""Specializations as edits of a header, a new family with its links among them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.errors import InputError
from policygen.headers import spelling
from policygen.headers.comments import comment_lines
from policygen.headers.protocol import EntryWrite, HeaderEdits, Insertion, with_insertions
from policygen.headers.provenance import Provenance, Surroundings
from policygen.headers.specializations.new_arch import NewFamily, new_arch
from policygen.headers.specializations.placement import Specialization
from policygen.headers.specializations.siblings import (
    Neighbour,
    member_edits,
    neighbour,
    overload_of,
    policies_that_read,
    reading_changes,
)
from policygen.headers.spelling import edit_at, newline
from policygen.headers.syntax import split_list
from policygen.headers.text import Text
from policygen.model.edits import AddedMember, Content, Edit, NewEntry, Slot
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rendering import fill
from policygen.untrusted import comment

# "offset_size::_4", "16"
_TRAILING = re.compile(r"\d+$")


def write_entries(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str, below: str | None
) -> HeaderEdits:
    """The edits of all entries of a header; those for one place are one edit."""
    writer = Writer(header, Text(header.name, data))
    edits: list[Edit] = []
    policies: list[str] = []
    inserted: list[Insertion] = []
    new: dict[str, list[EntryWrite]] = {}
    for write in sorted(writes, key=_order):
        spot = _spot(write)
        if spot.is_new:
            new.setdefault(spot.family.namespace, []).append(write)
        elif spot.entry is not None:
            edits += writer.update(spot.family, spot.entry, write.content, write.reason)
        else:
            inserted.append((*writer.insertion(spot.family, _new_entry(write)), write.reason))
    edits += _read(header, writer.text, [w for w in writes if not _spot(w).is_new])
    for namespace, group in new.items():
        added = {n: m for write in group for n, m in write.content.added.items()}
        made = new_arch(header, data, namespace, arch, below, added)
        inserted.append((made.at, _declared(writer, made, group), f"{_spot(group[0]).name} is new"))
        edits += made.links
        policies += made.policies
    return HeaderEdits(with_insertions(edits, inserted), policies)


def _read(header: TuningHeader, text: Text, writes: Sequence[EntryWrite]) -> list[Edit]:
    """Makes the policies of families read members that their entries did not have."""
    added: dict[tuple[str, str], dict[str, AddedMember]] = {}
    for write in writes:
        family = _spot(write).family
        added.setdefault((family.namespace, family.name), {}).update(write.content.added)
    found: dict[Span, Edit] = {}
    for (namespace, name), members in added.items():
        for chain, policy, use in policies_that_read(header.chains, namespace, name):
            overload, _ = overload_of(text, chain, policy, use) or (None, False)
            for span, new in reading_changes(text, name, overload, members):
                reason = f"{policy.name} reads {', '.join(members)}"
                lines = new.replace("\n", newline(text.data))
                found[span] = edit_at(text.data, span, lines, reason)
    return list(found.values())


def _spot(write: EntryWrite) -> Specialization:
    spot = write.spots[0]
    assert isinstance(spot, Specialization), "it is an entry of a family"
    return spot


def _order(write: EntryWrite) -> list[int]:
    """By the sizes in their keys, as siblings are; what names a type comes behind what does not."""
    spot = _spot(write)
    slots = () if spot.entry else spot.key.slots
    pairs = list(zip(slots, spot.family.parameters[: len(slots)], strict=True))
    found = [_TRAILING.search(slot or "") for slot, p in pairs if p.kind != "type"]
    named = sum(slot is not None for slot, p in pairs if p.kind == "type")
    return [*(int(match[0]) if match else 0 for match in found), named]


def _new_entry(write: EntryWrite) -> NewEntry:
    key = _spot(write).key
    return NewEntry(key.slots, write.content, key.guard, key.alias)


@dataclass(frozen=True, slots=True)
class Headed:
    """A heading and the live entries below it, up to the next one."""

    heading: Span
    text: str
    """Without the marks of a comment."""
    entries: tuple[Entry, ...]


# Edits that give an entry other values, or put a new one beside its siblings.


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
        shown = typical(self.header, family, sibling)
        types = member_types(self.header, family, shown)
        shape = shown if new.content.kind == "values" else sibling
        lone = new.guard is None and new.alias is None
        if lone and sibling and shape and shape.layout == "line":
            text = line(family, name, new, types, sibling)
        else:
            text = block(family, name, new, types, sibling)
        first = spelling.indent_of(self.text.data, sibling.span.start) if sibling else ""
        fitted = self._fitted(text, sibling, shown)
        return fitted if fitted.startswith("#") else first + fitted

    def _rebase(self, entry: Entry, content: Content, reason: str) -> list[Edit]:
        """Other arguments for what an entry inherits its values from."""
        assert entry.inherits_span is not None
        old, data = entry.inherits_span, self.text.data
        found = base_of(content, entry.args)
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
        shown = typical(self.header, family, entry)
        types = member_types(self.header, family, shown)
        shape = shown if content.kind == "values" else entry
        layout = "line" if entry.layout == "line" and shape and shape.layout == "line" else "block"
        tail = body(family, content, entry.args, types, layout=layout)
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


def _declared(writer: Writer, made: NewFamily, writes: Sequence[EntryWrite]) -> str:
    """The declaration of a new family with its entries."""
    texts = []
    for write in writes:
        entry = _new_entry(write)
        beside = neighbour(made.like, entry.key)
        texts.append(writer.entry(made.like, made.name, entry, beside.entry if beside else None))
    gap = writer.newline * 2
    text = made.declaration.rstrip("\r\n") + "".join(gap + entry for entry in texts)
    return text + made.declaration[len(made.declaration.rstrip("\r\n")) :]


_UNIT = "  "
"""What the templates indent members with."""
MemberTypes = Mapping[str, tuple[str, str]]
"""Member → its type, `using` for an alias, and a spelling to take after; in neighbours' order."""


# The text of an entry that a header does not have yet, in the manner of its family.


def typical(header: TuningHeader, family: Family, sibling: Entry | None) -> Entry | None:
    """The entry whose members show how values are laid out: the closest that has some."""
    if sibling is not None and sibling.members:
        return sibling
    at = sibling.span.start if sibling else family.entries[0].span.start
    valued = [entry for entry in family.specializations if entry.members]
    if valued:
        return min(valued, key=lambda entry: abs(entry.span.start - at))
    others = [family, *_beside(header, family)]
    found = (e for other in others for e in other.entries if e.members and not e.disabled)
    return next(found, None)


def member_types(header: TuningHeader, family: Family, shown: Entry | None) -> MemberTypes:
    """How members are declared, and in which order: by one entry, else by those closest to it."""
    families = [family, *_beside(header, family)]
    entries = [e for one in families for e in _by_distance(one, shown) if not e.disabled]
    found: dict[str, tuple[str, str]] = {}
    order: list[str] = []
    for entry in [shown, *entries] if shown else entries:
        order = _among(order, [member.name for member in entry.members])
        for member in entry.members:
            found.setdefault(member.name, (member.type, member.spelling))
    return {name: found[name] for name in order}


def _by_distance(family: Family, shown: Entry | None) -> list[Entry]:
    """The entries of a family, those that stand closest to one first."""
    if shown is None:
        return list(family.entries)
    at = shown.span.start
    return sorted(family.entries, key=lambda entry: abs(entry.span.start - at))


def _among(order: list[str], others: Sequence[str]) -> list[str]:
    """Names with those that they lack, each behind what it stands behind elsewhere."""
    found = list(order)
    for position, name in enumerate(others):
        if name not in order:
            before = next((n for n in reversed(others[:position]) if n in found), None)
            after = next((n for n in others[position:] if n in order), None)
            if before is not None:
                found.insert(found.index(before) + 1, name)
            else:
                found.insert(found.index(after) if after else len(found), name)
    return found


def _beside(header: TuningHeader, family: Family) -> list[Family]:
    """The other families of a namespace, the closest first, of two as close the one before."""
    same = [f for f in header.families if f.namespace == family.namespace]
    home = next((i for i, f in enumerate(same) if f.name == family.name), len(same))
    places = sorted(range(len(same)), key=lambda i: (abs(i - home), i))
    return [same[i] for i in places if i != home]


def block(
    family: Family,
    name: str,
    new: NewEntry,
    types: MemberTypes,
    sibling: Entry | None,
) -> str:
    """An entry over several lines, with its guard and the one for the unsigned type."""
    declared, args = spelling.parameters(family, new.key, sibling)
    lead = len("struct ")
    return fill(
        "edit/block.h.j2",
        {
            "guard": new.guard,
            "template": _template(declared),
            "head": spelling.head(name, args, lead=lead),
            "base": _base(new.content, args, wrapped=True),
            "label": new.content.label,
            "members": _members(family, new.content, types, aligned=True),
            "alias": _alias(family, name, new.alias, args, sibling),
        },
    ).removesuffix("\n")


def line(
    family: Family,
    name: str,
    new: NewEntry,
    types: MemberTypes,
    sibling: Entry,
) -> str:
    """An entry on one line, its arguments in the columns of those that are."""
    declared, args = spelling.parameters(family, new.key, sibling)
    closest = sorted(
        family.specializations, key=lambda entry: abs(entry.span.start - sibling.span.start)
    )
    return fill(
        "edit/line.h.j2",
        {
            "parameters": declared,
            "head": f"{name}<{spelling.columns(closest, args)}>",
            "base": _base(new.content, args, wrapped=False),
            "label": new.content.label,
            "members": _members(family, new.content, types, aligned=False),
        },
    ).removesuffix("\n")


def body(
    family: Family,
    content: Content,
    args: Sequence[str],
    types: MemberTypes,
    *,
    layout: str,
) -> str:
    """What stands behind an entry's head: its values, or what it inherits them from."""
    members = _members(family, content, types, aligned=layout == "block")
    base = _base(content, args, wrapped=layout == "block")
    if layout == "line":
        inside = f" {' '.join(members)} " if members else ""
        return f"{f' : {base}' if base else ''} {{{inside}}};"
    rows = [f"// {content.label}", *members] if content.label and members else members
    inside = "".join(f"  {row}\n" for row in rows)
    return "\n" + (f"    : {base}\n" if base else "") + (f"{{\n{inside}}};" if rows else "{};")


def base_of(content: Content, args: Sequence[str]) -> tuple[str, list[str]] | None:
    """What an entry inherits from, and its arguments; `{0}` is the entry's own first argument."""
    if content.kind != "inherits" or content.base is None:
        return None
    text = content.base.format(*args).encode()
    name, found, _ = text.partition(b"<")
    spans = split_list(text, len(name) + 1, text.rindex(b">")) if found else []
    return name.decode(), [spelling.text_of(text, span) for span in spans]


def _base(content: Content, args: Sequence[str], *, wrapped: bool) -> str | None:
    found = base_of(content, args)
    if found is None:
        return None
    name, theirs = found
    if not theirs:
        return name
    return spelling.head(name, theirs, lead=len("    : ")) if wrapped else _one_line(name, theirs)


def _one_line(name: str, args: Sequence[str]) -> str:
    return f"{name}<{', '.join(args)}>"


def _template(declared: Sequence[str]) -> str:
    return spelling.head("template ", declared, lead=0)


def _members(
    family: Family,
    content: Content,
    types: MemberTypes,
    *,
    aligned: bool,
) -> list[str]:
    """Members as they are declared, in the order in which neighbours have them."""
    values = content.values if content.kind == "values" else {}
    order = [*(name for name in types if name in values), *(n for n in values if n not in types)]
    types = {**{name: (kind, "") for name, kind in content.types.items()}, **types}
    if unknown := values.keys() - types.keys():
        raise InputError(
            f"{family.header}: no entry of {family.namespace} has {', '.join(sorted(unknown))}",
            "The type of a member is that of another entry's.",
        )
    return spelling.declarations({n: values[n] for n in order}, types, aligned=aligned)


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


# The sizes in "64-bit key", "pairs  8:xx", with the spaces that align them
_NUMBER = re.compile(r"( *)(\d+)")
_BITS = 8


# Groups of entries below a comment that heads them: `// 8-bit key`, `// partition::if`.


def find_sections(text: Text, places: Surroundings, family: Family) -> list[Headed]:
    """The sections of a family, in the order of the header."""
    live = family.specializations
    if not live:
        return []
    primary = [e.span.end for e in family.entries if e.kind == "primary" and not e.disabled]
    start = max((end for end in primary if end < live[0].span.start), default=0)
    headings = places.headings(Span(start, live[-1].span.start))
    found = []
    for at, heading in enumerate(headings):
        end = headings[at + 1].start if at + 1 < len(headings) else len(text.data)
        below = tuple(e for e in live if heading.start < e.span.start < end)
        (line,) = comment_lines(text.data, heading)
        found.append(Headed(heading, line.text, below))
    return [section for section in found if section.entries]


def heading_like(sections: Sequence[Headed], sizes: Mapping[int, int], size: int) -> str | None:
    """The heading of a section for another size; none where those that are there do not tell.

    `sizes` are the bytes by which sections differ; headings have bytes or bits.
    """
    texts = {sections[index].text: known for index, known in sizes.items()}
    for unit in (1, _BITS):
        parts = [_parts(text, known * unit) for text, known in texts.items()]
        first = parts[0]
        if len(parts) > 1 and first and all(_said(part) == _said(first) for part in parts):
            before, number, after = first
            blank = " " if number.startswith(" ") else ""
            made = f"{before}{blank}{str(size * unit).rjust(len(number) - len(blank))}{after}"
            return made if comment(made).split() == made.split() else None
    return None


_Parts = tuple[str, str, str]


def _parts(text: str, number: int) -> _Parts | None:
    """A heading around the one number that it has, which is this one."""
    found = list(_NUMBER.finditer(text))
    if len(found) != 1 or int(found[0][2]) != number:
        return None
    return text[: found[0].start()], found[0][0], text[found[0].end() :]


def _said(parts: _Parts | None) -> tuple[str, str] | None:
    return parts and (parts[0], parts[2])
