"""Guarded returns of policy selectors as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.recorded import benchmark_of
from policygen.dialects.protocol import EntryWrite, HeaderEdits, NotKeptError, Tell
from policygen.dialects.selectors.marks import mark_returns
from policygen.dialects.selectors.place import Returns
from policygen.dialects.selectors.write import write_returns
from policygen.dialects.sites import site_of
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.branches import own
from policygen.model.marks import Marked
from policygen.model.selection import DeltaRow, Values
from policygen.model.tuning import Family, TuningHeader


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
