"""Implements the dialects of CUB trees, and selects the one of a tree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.words import words
from policygen.headers.protocol import (
    Dialect,
    EntryWrite,
    HeaderEdits,
    Notation,
    NotKeptError,
    SelectionQuery,
    TuningTree,
)
from policygen.headers.selectors.branches import COMMENTED
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.selectors.guarded_returns import Returns
from policygen.headers.selectors.return_edits import write_returns
from policygen.headers.specializations.entry_edits import write_entries
from policygen.headers.specializations.placement import Specialization, family_spot, keep_later
from policygen.headers.spelling import Change, replaced
from policygen.headers.text import Text
from policygen.libraries import part_of
from policygen.model.bindings import BenchmarkBinding
from policygen.model.edits import Marked, mark
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.trees import OTHERS
from policygen.model.trees import Dialect as Name
from policygen.model.tuning import Entry, Family, TuningHeader


@dataclass(frozen=True, slots=True)
class Selectors(Returns):
    """The dialect of policy selectors: returns under conditions."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Returns the returns of each function, by architecture."""
        return header.selectors

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Inserts marks by which a policy identifies its return."""
        del members
        return mark_returns(header, data)

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Writes new values and new returns; a new block has its own bounds."""
        return write_returns(self.sources.headers[name], self.sources.data[name], writes)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Refuses every later architecture: only a bound keeps its values."""
        del tell
        raise NotKeptError(
            [(row, f"{row.name} on {row.arch} falls through to the same return") for row in changes]
        )


@dataclass(frozen=True, slots=True)
class Specializations(Dialect):
    """The dialect of struct templates `smNN_*_tuning`, which policies read by key.

    Entries in their own families shield later architectures.
    """

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Returns the families of struct templates."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Inserts marks in members that policies report: (namespace, name) → member."""
        entries: list[tuple[Family, Entry]] = []
        edits: list[tuple[Span, str]] = []
        for family in header.families:
            member = members.get((family.namespace, family.name))
            for entry in family.entries if member else ():
                if not entry.disabled and entry.body_span is not None and member is not None:
                    edits += _entry_marks(entry, member, len(entries))
                    entries.append((family, entry))
        return Marked(header, replaced(data, edits), tuple(entries))

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark without a family for the architecture or an earlier one."""
        family_spot(benchmark, Selected({}, None, {}, {}), self.sources, self.arch)

    def place(self, benchmark: BenchmarkBinding, selected: Selected) -> Specialization:
        """Finds the entry of a workload, or the place for one; refused if there is no key."""
        spot = family_spot(benchmark, selected, self.sources, self.arch)
        _ = spot.place
        return spot

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Writes entries, and a new family with its policy; `below` keeps its values."""
        header, data = self.sources.headers[name], self.sources.data[name]
        return write_entries(header, data, writes, self.arch, self.below)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Writes entries in later families with the previous values."""
        return keep_later(changes, self.sources, self.arch, tell)


def dialect_class(name: Name) -> type[Dialect]:
    """Returns the class of a dialect: of CUB's, or of the one that another library has."""
    notation = part_of(OTHERS.get(name, "cub"), Notation)
    if notation is not None:
        return notation.dialect
    return Selectors if name == "selectors" else Specializations


def dialect_of(sources: TuningTree, arch: str, below: str | None) -> Dialect:
    """Returns the dialect of a tree; `below` is the later architecture that keeps its values."""
    return dialect_class(sources.cub.dialect)(sources, arch, below)


# Marked copies of tuning headers, in which the selected entry can be identified
#
# Each live entry gets a number, in two forms: as a constant that identifies the entry that the
# compiler selects for a key, and in place of an item count that shows in the selected policy. The
# count is an odd multiple of a power of two, so that it survives scaling by a type's size.
#
# An inherited base is wrapped in a template of the unit that includes the copy. It applies the mark
# only if the base has the member: entries that lack it must still be skipped.


def _entry_marks(entry: Entry, member: str, number: int) -> Iterator[tuple[Span, str]]:
    body, base = entry.body_span, entry.inherits_span
    assert body is not None
    yield Span(body.start, body.start), f" static constexpr int policygen_entry = {number};"
    own_member = next((candidate for candidate in entry.members if candidate.name == member), None)
    if own_member is not None:
        yield own_member.value_span, str(mark(number))
    elif entry.inherits and base is not None and entry.kind != "primary":
        start = base.start + len("public ") * entry.inherits.startswith("public ")
        yield Span(start, start), f"::policygen_marks::{member}_of<"
        yield Span(base.end, base.end), f", {mark(number)}>"


# Marked returns of policy selectors, to identify the return that a policy comes from
#
# A returned policy gets an additional member that names the return. Everything else stays
# unchanged, including values that other code computes from the policy. A struct that is only a pair
# of counts, from which a policy is made elsewhere, carries the mark as its item count, as in a
# family's entry.


def mark_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks the guarded returns that have values."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.members and not entry.disabled
    )
    edits = _marks(HeaderCode(Text("", data).code), [entry for _, entry in entries])
    trait_edits, traits = expose_traits(data)
    return Marked(header, replaced(data, [*edits, *trait_edits]), entries, traits)


def _marks(declared: HeaderCode, entries: Sequence[Entry]) -> Iterator[Change]:
    """Yields the edits; returns are numbered by their position."""
    if entries:
        yield from _members(declared, {function.returns for function in declared.deciding})
    for number, entry in enumerate(entries):
        value = entry.body_span
        assert value is not None, "it has members"
        is_list = declared.code.startswith(b"{", value.start)
        type_name = _returned_at(declared, value.start) if is_list else ""
        yield Span(value.start, value.start), f"::policygen_marks::marked({type_name}"
        yield Span(value.end, value.end), f", {mark(number)})"


def _members(declared: HeaderCode, names: Iterable[str]) -> Iterator[Change]:
    """Adds the member that carries the mark to the structs that are not pairs of counts."""
    for name in sorted(names):
        end = declared.structs[name].body.end
        if words().selectors.counts not in declared.structs[name].fields:
            yield Span(end, end), "int policygen_entry = -1;"


def _returned_at(declared: HeaderCode, offset: int) -> str:
    """Returns the struct that the function around an offset returns."""
    function = declared.function_at(offset)
    assert function is not None, "it has a return"
    return function.returns


def expose_traits(data: bytes) -> tuple[list[Change], tuple[str, ...]]:
    """Makes a selector return its own members instead of a policy, and returns their names.

    A selector on types constructs one on traits and calls it: that call gets an overload, too.
    """
    declared = HeaderCode(Text("", data).code)
    selector_name = words().selectors.name
    selector = declared.structs.get(selector_name)
    calls = [own for own in declared.deciding if own.scope == words().selectors.of_types]
    if selector is None or not selector.fields or len(calls) != 1:
        return [], ()
    (call,) = calls
    body = data[slice(*call.body)].decode(errors="surrogateescape")
    (name,) = call.parameters
    operator = "operator()(::policygen_marks::asked"
    end = selector.body.end
    return [
        (Span(end, end), f"constexpr {selector_name} {operator}) const {{ return *this; }}"),
        (
            Span(call.span.end, call.span.end),
            f" constexpr {selector_name} {operator} {name}) const {{{body}}}",
        ),
    ], selector.fields


# Commented-out conditions, enabled to determine which workloads they match
#
# `// if (key_size == 16) // same as previous tuning` then returns a mark in place of values.


def enable_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks commented-out conditions and turns them into code, except inside `#if 0`."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.disabled and entry.body_span is None
    )
    edits = _enabled(HeaderCode(Text("", data).code), data, [entry for _, entry in entries])
    return Marked(header, replaced(data, edits), entries)


def _enabled(declared: HeaderCode, data: bytes, entries: Sequence[Entry]) -> Iterator[Change]:
    """Yields the edits; conditions are numbered by their position among the entries."""
    returned_structs = set()
    for number, entry in enumerate(entries):
        span = entry.span
        match = COMMENTED.match(data[slice(*span)].decode())
        assert match is not None, "it was read by this"
        returned = _returned_at(declared, span.start)
        returned_structs.add(returned)
        value = f"::policygen_marks::marked({returned}{{}}, {mark(number)})"
        # The line break ends the comment.
        yield span, f"\nif ({match[1]}) return {value};"
    yield from _members(declared, returned_structs)
