"""What a header has to tell besides, so that returns can give what its policies had for all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.dialects.protocol import EntryWrite
from policygen.dialects.selectors.added_fields import (
    AddedFields,
    calls_of,
    qualified,
    returned_struct,
    rewrapped,
)
from policygen.dialects.selectors.added_parameters import AddedParameters, helper_of
from policygen.dialects.selectors.arch_functions import ArchFunction
from policygen.dialects.selectors.functions import Struct, find_structs
from policygen.dialects.selectors.guarded_return import GuardedReturn
from policygen.dialects.selectors.nearest import read_bodies
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import Entry
from policygen.source.splice import edit_at
from policygen.source.text import Text


@dataclass(frozen=True, slots=True)
class FieldEdits:
    """The structs of a header whose values are returned, and what some of them have to have."""

    text: Text
    structs: Mapping[str, Struct]
    by_struct: Mapping[str, AddedFields]
    helpers: Mapping[str, AddedParameters]
    """Functions that make policies, and have to be told more."""

    def edits(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        """The fields, and where the functions are called whose returns tell more."""
        for name, fields in self.by_struct.items():
            for at, row in fields.declared(self.text, self.structs):
                yield edit_at(self.text.data, Span(at, at), row, f"{name} tells more")
        for name, helper in self.helpers.items():
            for span, new in helper.edits(self.text):
                yield edit_at(self.text.data, span, new, f"{name} takes more")
        if self.by_struct:
            yield from self._read(writes)

    def of(self, write: EntryWrite) -> AddedFields | None:
        """What the struct of a return has to have; none where a function makes it."""
        if not write.content.added or _like(write).inherits in self.helpers:
            return None
        return self.by_struct[_struct(self.text, self.structs, write).name]

    def values(self, write: EntryWrite) -> dict[str, str]:
        """The values by what the return calls them; those that it has not, as the header does."""
        names = return_of(write).fields
        found = {names[name]: value for name, value in write.content.values.items()}
        for name in write.content.added:
            found[name] = qualified(self.text, self.structs, name, found[name])
        return found

    def _read(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        text, bodies = self.text, read_bodies(self.text)
        changes: dict[Span, str] = {}
        for write in writes:
            spot, fields = return_of(write), self.of(write)
            if fields and not (spot.new and isinstance(spot.new.at, ArchFunction)):
                for scope, variable in calls_of(text, spot.family.name, bodies):
                    changes |= dict(fields.read(text, scope, variable))
        for at, new in changes.items():
            span, lines = rewrapped(text, at, new)
            yield edit_at(text.data, span, lines, "what is returned tells it")


def field_edits(text: Text, writes: Sequence[EntryWrite]) -> FieldEdits:
    """Finds what structs have to tell besides."""
    structs = find_structs(text.code)
    found: dict[str, dict[str, AddedMember]] = {}
    helpers: dict[str, AddedParameters] = {}
    for write in writes:
        added = write.content.added
        if added and (helper := helper_of(text, structs, _like(write), added)):
            known = helpers.get(helper.function.name, helper)
            members = {**known.members, **added}
            helpers[helper.function.name] = replace(known, members=members)
        elif added:
            found.setdefault(_struct(text, structs, write).name, {}).update(added)
    fields = {name: AddedFields(structs[name], members) for name, members in found.items()}
    return FieldEdits(text, structs, fields, helpers)


def return_of(write: EntryWrite) -> GuardedReturn:
    """Where a write goes, which is a return."""
    spot = write.spots[0]
    assert isinstance(spot, GuardedReturn), "it is a return"
    return spot


def _struct(text: Text, structs: Mapping[str, Struct], write: EntryWrite) -> Struct:
    """What is made by the return that changes, or by the one that a new one is like."""
    return returned_struct(text, structs, _like(write), write.content.added)


def _like(write: EntryWrite) -> Entry:
    """The return that changes, or the one that a new one is like."""
    spot = return_of(write)
    entry = spot.new.at.beside.entry if spot.new else spot.entry
    assert entry is not None, "it changes, or is like another"
    return entry
