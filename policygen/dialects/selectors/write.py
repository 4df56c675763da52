"""Guarded returns as edits of a header; new ones of one block come together, as whole lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.dialects.provenance import Provenance
from policygen.dialects.selectors.add_first import add_first
from policygen.dialects.selectors.additions import (
    Addition,
    Returned,
    add_beside,
    add_inside,
    sizes_of,
    take_over,
    updated,
)
from policygen.dialects.selectors.arch_blocks import ArchBlock, add_in_front
from policygen.dialects.selectors.arch_functions import ArchFunction, add_function
from policygen.dialects.selectors.field_edits import FieldEdits, field_edits, return_of
from policygen.dialects.selectors.first_return import FirstReturn
from policygen.dialects.selectors.nearest import BeforeReturn, BesideReturn, EmptyCase
from policygen.dialects.selectors.nested import NestedCase, add_nested, nested_case
from policygen.model.arch import arch_number
from policygen.model.edit import Edit
from policygen.model.entry_text import Content
from policygen.model.tuning import Entry, TuningHeader
from policygen.source.splice import edit_at
from policygen.source.text import Text


def write_returns(header: TuningHeader, data: bytes, writes: Sequence[EntryWrite]) -> HeaderEdits:
    """The edits of all returns of a header; those for one place are one edit."""
    text = Text(header.name, data)
    provenance = Provenance(text)
    edits: list[Edit] = []
    inserted: list[Insertion] = []
    added: list[EntryWrite] = []
    firsts: dict[str, list[tuple[FirstReturn, EntryWrite]]] = {}
    for write in writes:
        if isinstance(spot := write.spots[0], FirstReturn):
            firsts.setdefault(spot.name, []).append((spot, write))
    writes = [write for write in writes if not isinstance(write.spots[0], FirstReturn)]
    fields = field_edits(text, writes)
    for write in writes:
        if (entry := return_of(write).entry) is None:
            added.append(write)
        else:
            content = replace(write.content, values=fields.values(write))
            edits += update_return(text, provenance, entry, content, write.reason)
    edits += fields.edits(writes)
    for addition, reason in [*_added(text, added, fields), *_first(text, firsts.values())]:
        if addition.span.start == addition.span.end:
            inserted.append((addition.span.start, addition.text, reason))
        else:
            edits.append(edit_at(data, addition.span, addition.text, reason))
    return HeaderEdits(with_insertions(edits, inserted))


def update_return(
    text: Text, provenance: Provenance, entry: Entry, content: Content, reason: str
) -> list[Edit]:
    """Other values for a return, by its own names; nothing where it has them."""
    edits = updated(text, entry, content.values, reason)
    return edits + provenance.noted(entry, content, reason) if edits else []


def _added(
    text: Text, writes: Sequence[EntryWrite], fields: FieldEdits
) -> Iterator[tuple[Addition, str]]:
    """What is added, and for which variants; at one place what asks for more comes first."""
    blocks: dict[tuple[int, str | None], list[tuple[ArchBlock, EntryWrite]]] = {}
    nested: dict[NestedCase, list[tuple[BesideReturn, EntryWrite]]] = {}
    functions: dict[tuple[str, str | None], list[tuple[ArchFunction, EntryWrite]]] = {}
    for write in sorted(writes, key=_order):
        new = return_of(write).new
        assert new is not None, "it is a return that is not there yet"
        at = new.at
        if isinstance(at, ArchFunction):
            functions.setdefault((at.function.name, at.below), []).append((at, write))
        elif isinstance(at, ArchBlock):
            blocks.setdefault((at.block.start, at.below), []).append((at, write))
        elif isinstance(at, BeforeReturn):
            yield add_inside(text, at, _returned(fields, write)), write.reason
        elif isinstance(at, EmptyCase):
            yield take_over(text, at, _returned(fields, write)), write.reason
        elif case := nested_case(text, at):
            nested.setdefault(case, []).append((at, write))
        else:
            yield add_beside(text, at, _returned(fields, write)), write.reason
    for beside in nested.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in beside))
        yield add_nested(text, [(at, _returned(fields, write)) for at, write in beside]), reasons
    for pairs in functions.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        made = [(at, _returned(fields, write)) for at, write in pairs]
        more = [write for _, write in pairs if write.content.added]
        told = fields.of(more[0]) if more else None
        for addition in add_function(text, made, told):
            yield addition, reasons
    for group in blocks.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in group))
        yield add_in_front(text, [(at, _returned(fields, write)) for at, write in group]), reasons


def _first(
    text: Text, firsts: Iterable[Sequence[tuple[FirstReturn, EntryWrite]]]
) -> Iterator[tuple[Addition, str]]:
    for group in firsts:
        pairs = sorted(group, key=lambda pair: (sizes_of(pair[0].conditions), pair[0].conditions))
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        for addition in add_first(text, [(spot, write.content) for spot, write in pairs]):
            yield addition, reasons


def _order(write: EntryWrite) -> tuple[object, ...]:
    """By sizes; of what asks for the same sizes, the one that asks for more comes first.

    What is like a return of a later architecture comes before what is like one of an earlier.
    """
    spot = return_of(write)
    facts = tuple(fact for fact in spot.slots if fact)
    newest = -arch_number(spot.family.arch)
    return newest, sizes_of(facts), -len(facts), facts


def _returned(fields: FieldEdits, write: EntryWrite) -> Returned:
    return Returned(fields.values(write), write.content.label)
