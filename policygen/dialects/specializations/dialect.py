"""Struct templates `smNN_*_tuning` as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.protocol import EntryWrite, HeaderEdits, Spot, Tell, TuningTree
from policygen.dialects.specializations.later import keep_later
from policygen.dialects.specializations.marks import mark_header
from policygen.dialects.specializations.place import Specialization, family_spot
from policygen.dialects.specializations.write import write_entries
from policygen.model.bindings import BenchmarkBinding
from policygen.model.marks import Marked
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Family, TuningHeader


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
