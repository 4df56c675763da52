"""Entries to write as edits of the headers, a new family with its links among them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.dialects.specializations.entry_edits import Writer
from policygen.dialects.specializations.new_arch import new_arch
from policygen.dialects.specializations.siblings import neighbour
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import NewEntry
from policygen.model.tuning import TuningHeader
from policygen.planning.added import added_returns
from policygen.planning.decide import Write
from policygen.source.splice import edit_at
from policygen.source.text import Text

# "offset_size::_4", "16"
_TRAILING = re.compile(r"\d+$")


@dataclass(slots=True)
class HeaderEdits:
    """What changes in one header."""

    edits: list[Edit] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)


def header_edits(
    header: TuningHeader, data: bytes, writes: Sequence[Write], arch: str, keep: str | None
) -> HeaderEdits:
    """The edits of all entries of a header; those for one place are one edit."""
    writer = Writer(header, Text(header.name, data))
    found = HeaderEdits()
    added: dict[int, list[tuple[str, str]]] = {}
    new: dict[str, list[Write]] = {}
    returns: list[Write] = []
    for write in sorted(writes, key=_order):
        to = write.spots[0].to
        if to.new:
            returns.append(write)
        elif to.is_new:
            new.setdefault(to.family.namespace, []).append(write)
        elif write.entry is not None:
            content = write.content
            if to.fields:
                values = {to.fields[name]: value for name, value in content.values.items()}
                content = replace(content, values=values)
            found.edits += writer.update(to.family, write.entry, content, write.reason)
        else:
            at, text = writer.insertion(to.family, _new_entry(write))
            added.setdefault(at, []).append((text, write.reason))
    for addition, reason in added_returns(writer.text, returns):
        if addition.span.start == addition.span.end:
            added.setdefault(addition.span.start, []).append((addition.text, reason))
        else:
            found.edits.append(edit_at(data, addition.span, addition.text, reason))
    for namespace, group in new.items():
        at, text, edits, policies = _new_family(writer, header, data, namespace, group, arch, keep)
        added.setdefault(at, []).append((text, f"{group[0].spots[0].to.name} is new"))
        found.edits += edits
        found.policies += policies
    for at, texts in added.items():
        # The label that an update puts above its entry stands behind a new entry at that place.
        labels = [edit for edit in found.edits if edit.span == (at, at)]
        found.edits = [edit for edit in found.edits if edit not in labels]
        texts += [(label.new, label.reason) for label in labels]
        joined = "".join(text for text, _ in texts)
        reason = "; ".join(dict.fromkeys(reason for _, reason in texts))
        found.edits.append(Edit(span=Span(at, at), old="", new=joined, reason=reason))
    found.edits.sort(key=lambda edit: edit.span)
    return found


def _order(write: Write) -> list[int]:
    """By the sizes in their keys, as siblings are; what names a type comes behind what does not."""
    slots = write.key.slots if write.key and not write.spots[0].to.new else ()
    parameters = write.spots[0].to.family.parameters[: len(slots)]
    pairs = list(zip(slots, parameters, strict=True))
    found = [_TRAILING.search(slot or "") for slot, p in pairs if p.kind != "type"]
    named = sum(slot is not None for slot, p in pairs if p.kind == "type")
    return [*(int(match[0]) if match else 0 for match in found), named]


def _new_entry(write: Write) -> NewEntry:
    key = write.key
    assert key is not None
    return NewEntry(key.slots, write.content, key.guard, key.alias)


def _new_family(
    writer: Writer,
    header: TuningHeader,
    data: bytes,
    namespace: str,
    writes: Sequence[Write],
    arch: str,
    keep: str | None,
) -> tuple[int, str, tuple[Edit, ...], tuple[str, ...]]:
    """The declaration with its entries, the links of the chain, and their names."""
    made = new_arch(header, data, namespace, arch, keep)
    texts = []
    for write in writes:
        entry = _new_entry(write)
        beside = neighbour(made.like, entry.key)
        texts.append(writer.entry(made.like, made.name, entry, beside.entry if beside else None))
    gap = writer.newline * 2
    text = made.declaration.rstrip("\r\n") + "".join(gap + entry for entry in texts)
    trailing = made.declaration[len(made.declaration.rstrip("\r\n")) :]
    return made.at, text + trailing, made.links, made.policies


def by_header(writes: Sequence[Write]) -> Mapping[str, list[Write]]:
    """Writes by the header that they change."""
    found: dict[str, list[Write]] = {}
    for write in writes:
        found.setdefault(write.spots[0].header, []).append(write)
    return found
