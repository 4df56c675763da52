"""Specializations as edits of a header, a new family with its links among them."""

import re
from collections.abc import Sequence

from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.dialects.specializations.added_members import (
    overload_of,
    policies_that_read,
    reading_changes,
)
from policygen.dialects.specializations.entry_edits import Writer
from policygen.dialects.specializations.new_arch import NewFamily, new_arch
from policygen.dialects.specializations.place import Specialization
from policygen.dialects.specializations.siblings import neighbour
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import AddedMember, NewEntry
from policygen.model.tuning import TuningHeader
from policygen.source.spelling import newline
from policygen.source.splice import edit_at
from policygen.source.text import Text

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
