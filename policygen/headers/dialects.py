"""Implements the dialects of CUB trees, selects the one of a tree, and drafts edits in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.headers.protocol import (
    Dialect,
    EntryWrite,
    HeaderEdits,
    Notation,
    NotKeptError,
    SelectionQuery,
    TuningTree,
)
from policygen.headers.selectors.branches import mark_returns
from policygen.headers.selectors.guarded_returns import Returns
from policygen.headers.selectors.return_edits import write_returns
from policygen.headers.specializations.entry_edits import write_entries
from policygen.headers.specializations.placement import Specialization, family_spot, keep_later
from policygen.headers.spelling import replaced, splice
from policygen.libraries import part_of
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Options
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.trees import OTHERS
from policygen.model.trees import Dialect as Name
from policygen.model.tuning import Entry, Family, Marked, TuningHeader, mark
from policygen.model.workload import Point


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

    def place(
        self, benchmark: BenchmarkBinding, selected: Selected, point: Point
    ) -> Specialization:
        """Finds the entry of a workload, or the place for one; refused if there is no key."""
        del point
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


# Drafts: entries in the headers of a tree, for a plan as for a variant that is measured


@dataclass(frozen=True, slots=True)
class Draft:
    """The edited headers."""

    edits: Mapping[str, HeaderEdits]
    after: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Drafter:
    """Writes entries into the headers of one tree."""

    sources: TuningTree
    options: Options

    @property
    def dialect(self) -> Dialect:
        """How the tree spells its tunings."""
        arch, number = self.options.arch, arch_number(self.options.arch)
        kept = filter(self.options.keeps, (a for a in ladder() if arch_number(a) > number))
        return dialect_of(self.sources, arch, next(kept, None))

    def drafted(self, writes: Sequence[EntryWrite]) -> Draft:
        """Writes entries into their headers."""
        edits, after = {}, {}
        by_header: dict[str, list[EntryWrite]] = {}
        for write in writes:
            by_header.setdefault(write.header, []).append(write)
        for name, group in by_header.items():
            try:
                header_edits, data = self._header(name, group)
            except InputError as error:
                raise NotWritableError(self._culprits(name, group, error)) from error
            if header_edits.edits:
                edits[name], after[name] = header_edits, data
        return Draft(edits, after)

    def _header(self, name: str, writes: Sequence[EntryWrite]) -> tuple[HeaderEdits, bytes]:
        header_edits = self.dialect.write(name, writes)
        return header_edits, splice(name, self.sources.data[name], header_edits.edits)

    def _culprits(
        self, name: str, writes: Sequence[EntryWrite], error: InputError
    ) -> list[tuple[EntryWrite, InputError]]:
        """Returns the writes that fail on their own, or all writes if none does."""
        failing = []
        for write in writes:
            try:
                self._header(name, [write])
            except InputError as write_error:
                failing.append((write, write_error))
        return failing or [(write, error) for write in writes]


class NotWritableError(Exception):
    """Entries that have no place in their header."""

    def __init__(self, writes: Sequence[tuple[EntryWrite, InputError]]) -> None:
        super().__init__(writes[0][1].message)
        self.reasons = {point: error.in_line for write, error in writes for point in write.points}
