"""The dialects of trees, and which one a tree has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.recorded import benchmark_of
from policygen.headers.protocol import (
    Dialect,
    EntryWrite,
    HeaderEdits,
    NotKeptError,
    Spot,
    Tell,
    TuningTree,
    site_of,
)
from policygen.headers.selectors.edits import write_returns
from policygen.headers.selectors.guarded_returns import Returns
from policygen.headers.selectors.marks import mark_returns
from policygen.headers.specializations.edits import write_entries
from policygen.headers.specializations.placement import Specialization, family_spot, keep_later
from policygen.headers.spelling import replaced
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.edits import Marked, mark
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.trees import Dialect as Name
from policygen.model.tuning import Entry, Family, TuningHeader, own
from policygen.rocprim.dialect import Configs

# Guarded returns of policy selectors as a dialect.


@dataclass(frozen=True, slots=True)
class Selectors(Returns):
    """Returns under conditions on sizes, types and compute capabilities."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """The returns of each function, by architecture."""
        return header.selectors

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Marks of their own: a policy tells from which return it comes."""
        del members
        return mark_returns(header, data)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Nothing: what is selected tells whether there is a place."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Other values of returns, and new returns; a new block has its own bounds."""
        return write_returns(self.sources.headers[name], self.sources.data[name], writes)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """None: architectures with returns of their own are refused, others get what is written."""
        del tell
        target, version = arch_number(self.arch), self.sources.cub.bindings
        owners: list[tuple[DeltaRow[Values], str]] = []
        for change in changes:
            _, site = site_of(benchmark_of(change.benchmark, version), version, "selectors")
            returned = self.sources.headers[site.header].selectors
            if own(arch_number(change.arch), returned, target):
                what = f"{change.name} on {change.arch} falls through to the same return"
                owners.append((change, what))
        if owners:
            raise NotKeptError(owners)
        return []


# Struct templates `smNN_*_tuning` as a dialect.


@dataclass(frozen=True, slots=True)
class Specializations:
    """Families of entries, one for each key, which the policies of an architecture read."""

    sources: TuningTree
    arch: str
    below: str | None = None

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Those of struct templates."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Marks in those members of families that show in a policy."""
        return mark_header(header, data, members)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark without a family for the architecture or an earlier one."""
        family_spot(benchmark, Selected({}, None, {}, {}), self.sources, self.arch)

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> Specialization:
        """The entry of a workload, or where one goes; refused where it can have no key."""
        spot = family_spot(benchmark, told, self.sources, self.arch)
        _ = spot.place
        return spot

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> None:
        """None: what keeps later architectures is an entry of theirs."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Entries, and a new family with its policy; one for `below` keeps what that had."""
        header, data = self.sources.headers[name], self.sources.data[name]
        return write_entries(header, data, writes, self.arch, self.below)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """Entries of later families with the values of before."""
        return keep_later(changes, self.sources, self.arch, tell)


DIALECTS: Mapping[Name, type[Selectors] | type[Specializations] | type[Configs]] = {
    "specializations": Specializations,
    "selectors": Selectors,
    "configs": Configs,
}


def dialect_of(sources: TuningTree, arch: str, below: str | None) -> Dialect:
    """How the tunings of a tree are spelled; `below` is the architecture that keeps what it has."""
    return DIALECTS[sources.cub.dialect](sources, arch, below)


# Copies of tuning headers in which every entry is recognisable by what is selected.
#
# Each live entry gets a number of its own: as a constant, which tells the entry that the compiler
# takes for a key, and in place of a count of items, which shows in the policy that is selected.
# The
# count is an odd multiple of a power of two, so that it survives the scaling by a type's size.
#
# What an entry inherits is wrapped in a template of the unit that includes the copy: it gives the
# mark only where the base has the member, as an entry that lacks it is skipped, and shall be.


def mark_header(
    header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]
) -> Marked:
    """Marks the entries of the families that are named (by namespace and name), with a member."""
    entries: list[tuple[Family, Entry]] = []
    edits: list[tuple[Span, str]] = []
    for family in header.families:
        member = members.get((family.namespace, family.name))
        for entry in family.entries if member else ():
            if entry.disabled or entry.body_span is None or member is None:
                continue
            edits += _edits(entry, member, len(entries))
            entries.append((family, entry))
    return Marked(header, replaced(data, edits), tuple(entries))


def _edits(entry: Entry, member: str, number: int) -> Iterator[tuple[Span, str]]:
    body, base = entry.body_span, entry.inherits_span
    assert body is not None
    yield Span(body.start, body.start), f" static constexpr int policygen_entry = {number};"
    own = next((m for m in entry.members if m.name == member), None)
    if own is not None:
        yield own.value_span, str(mark(number))
    elif entry.inherits and base is not None and entry.kind != "primary":
        start = base.start + len("public ") * entry.inherits.startswith("public ")
        yield Span(start, start), f"::policygen_marks::{member}_of<"
        yield Span(base.end, base.end), f", {mark(number)}>"
