"""Guarded returns as edits of a header; new ones of one block come together, as whole lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.dialects.provenance import Provenance
from policygen.dialects.selectors.added_fields import (
    AddedFields,
    calls_of,
    qualified,
    returned_struct,
)
from policygen.dialects.selectors.additions import (
    Addition,
    Returned,
    add_beside,
    add_inside,
    sizes_of,
    take_over,
    updated,
    wrapped,
)
from policygen.dialects.selectors.arch_blocks import ArchBlock, add_in_front
from policygen.dialects.selectors.arch_functions import ArchFunction, add_function
from policygen.dialects.selectors.functions import Struct, find_structs
from policygen.dialects.selectors.nearest import (
    BeforeReturn,
    BesideReturn,
    EmptyCase,
    read_bodies,
)
from policygen.dialects.selectors.nested import NestedCase, add_nested, nested_case
from policygen.dialects.selectors.place import GuardedReturn
from policygen.model.arch import arch_number
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import AddedMember, Content
from policygen.model.tuning import Entry, TuningHeader
from policygen.source.spelling import indent_of, line_end, line_start, newline
from policygen.source.splice import edit_at
from policygen.source.text import Text


def write_returns(header: TuningHeader, data: bytes, writes: Sequence[EntryWrite]) -> HeaderEdits:
    """The edits of all returns of a header; those for one place are one edit."""
    text = Text(header.name, data)
    provenance = Provenance(text)
    edits: list[Edit] = []
    inserted: list[Insertion] = []
    added: list[EntryWrite] = []
    for write in writes:
        if (entry := _spot(write).entry) is None:
            added.append(write)
        else:
            content = replace(write.content, values=_values(text, write))
            edits += update_return(text, provenance, entry, content, write.reason)
    fields = dict(_fields(text, writes))
    edits += _declared(text, fields)
    edits += _read(text, writes, fields)
    for addition, reason in _added(text, added, fields):
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


def _spot(write: EntryWrite) -> GuardedReturn:
    spot = write.spots[0]
    assert isinstance(spot, GuardedReturn), "it is a return"
    return spot


def _values(text: Text, write: EntryWrite) -> dict[str, str]:
    """The values by what the return calls them; those that it has not, as the header has them."""
    names = _spot(write).fields
    found = {names[name]: value for name, value in write.content.values.items()}
    for name in write.content.added:
        found[name] = qualified(text, name, found[name])
    return found


def _entry(write: EntryWrite) -> Entry:
    """The return that changes, or that a new one is like."""
    spot = _spot(write)
    found = spot.new.at.beside.entry if spot.new else spot.entry
    assert found is not None, "it changes, or is like another"
    return found


def _struct(text: Text, structs: Mapping[str, Struct], write: EntryWrite) -> str:
    return returned_struct(text, structs, _entry(write), write.content.added).name


def _fields(text: Text, writes: Sequence[EntryWrite]) -> Iterator[tuple[str, AddedFields]]:
    """What structs have to tell besides, by their names."""
    structs = find_structs(text.code)
    found: dict[str, dict[str, AddedMember]] = {}
    for write in writes:
        if write.content.added:
            name = _struct(text, structs, write)
            found.setdefault(name, {}).update(write.content.added)
    for name, members in found.items():
        yield name, AddedFields(structs[name], members)


def _declared(text: Text, fields: Mapping[str, AddedFields]) -> Iterator[Edit]:
    structs = find_structs(text.code)
    for name, one in fields.items():
        for at, row in one.declared(text, structs):
            yield edit_at(text.data, Span(at, at), row, f"{name} tells more")


def _read(
    text: Text, writes: Sequence[EntryWrite], fields: Mapping[str, AddedFields]
) -> Iterator[Edit]:
    """Where the functions are called whose returns tell more."""
    if not fields:
        return
    bodies = read_bodies(text)
    changes: dict[Span, str] = {}
    for write in writes:
        spot = _spot(write)
        if write.content.added and not (spot.new and isinstance(spot.new.at, ArchFunction)):
            struct = _struct(text, find_structs(text.code), write)
            for scope, variable in calls_of(text, spot.family.name, bodies):
                changes |= dict(fields[struct].read(text, scope, variable))
    for span, new in changes.items():
        start, end = line_start(text.data, span.start), line_end(text.data, span.end)
        before, after = (text.data[s:e].decode() for s, e in ((start, span.start), (span.end, end)))
        rows = wrapped(f"{before}{new}{after}", indent_of(text.data, span.start))
        lines = newline(text.data).join(rows)
        yield edit_at(text.data, Span(start, end), lines, "what is returned tells it")


def _added(
    text: Text, writes: Sequence[EntryWrite], fields: Mapping[str, AddedFields]
) -> Iterator[tuple[Addition, str]]:
    """What is added, and for which variants; at one place what asks for more comes first."""
    blocks: dict[tuple[int, str | None], list[tuple[ArchBlock, EntryWrite]]] = {}
    nested: dict[NestedCase, list[tuple[BesideReturn, EntryWrite]]] = {}
    functions: dict[tuple[str, str | None], list[tuple[ArchFunction, EntryWrite]]] = {}
    for write in sorted(writes, key=_order):
        new = _spot(write).new
        assert new is not None, "it is a return that is not there yet"
        at = new.at
        if isinstance(at, ArchFunction):
            functions.setdefault((at.function.name, at.below), []).append((at, write))
        elif isinstance(at, ArchBlock):
            blocks.setdefault((at.block.start, at.below), []).append((at, write))
        elif isinstance(at, BeforeReturn):
            yield add_inside(text, at, _returned(text, write)), write.reason
        elif isinstance(at, EmptyCase):
            yield take_over(text, at, _returned(text, write)), write.reason
        elif case := nested_case(text, at):
            nested.setdefault(case, []).append((at, write))
        else:
            yield add_beside(text, at, _returned(text, write)), write.reason
    for beside in nested.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in beside))
        yield add_nested(text, [(at, _returned(text, write)) for at, write in beside]), reasons
    for pairs in functions.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        made = [(at, _returned(text, write)) for at, write in pairs]
        more = [write for _, write in pairs if write.content.added]
        structs = find_structs(text.code)
        told = fields[_struct(text, structs, more[0])] if more else None
        for addition in add_function(text, made, told):
            yield addition, reasons
    for group in blocks.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in group))
        yield add_in_front(text, [(at, _returned(text, write)) for at, write in group]), reasons


def _order(write: EntryWrite) -> tuple[object, ...]:
    """By sizes; of what asks for the same sizes, the one that asks for more comes first.

    What is like a return of a later architecture comes before what is like one of an earlier.
    """
    spot = _spot(write)
    facts = tuple(fact for fact in spot.slots if fact)
    newest = -arch_number(spot.family.arch)
    return newest, sizes_of(facts), -len(facts), facts


def _returned(text: Text, write: EntryWrite) -> Returned:
    return Returned(_values(text, write), write.content.label)
