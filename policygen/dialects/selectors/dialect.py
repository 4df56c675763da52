"""Guarded returns of policy selectors as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.recorded import benchmark_of
from policygen.dialects.protocol import (
    HeaderEdits,
    NotKeptError,
    Sources,
    Tell,
    Write,
)
from policygen.dialects.selectors.marks import mark_returns
from policygen.dialects.selectors.place import Returns
from policygen.dialects.selectors.write import write_returns
from policygen.dialects.sites import site_of
from policygen.model.arch import arch_number
from policygen.model.branches import own
from policygen.model.facts import Change
from policygen.model.marks import Marked
from policygen.model.tuning import Family, TuningHeader


@dataclass(frozen=True, slots=True)
class Selectors:
    """Returns under conditions on sizes, types and compute capabilities."""

    def read(self, header: TuningHeader) -> tuple[Family, ...]:
        """The returns of each function, by architecture."""
        return header.selectors

    def mark(
        self, header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]
    ) -> Marked:
        """Marks of their own: a policy tells from which return it comes."""
        del members
        return mark_returns(header, data)

    def place(self, sources: Sources, arch: str, below: str | None) -> Returns:
        """In the return that decides, or in a new one."""
        return Returns(sources, arch, below)

    def write(
        self,
        header: TuningHeader,
        data: bytes,
        writes: Sequence[Write],
        arch: str,
        below: str | None,
    ) -> HeaderEdits:
        """Other values of returns, and new returns; a new block has its own bounds."""
        del arch, below
        return write_returns(header, data, writes)

    def keep(
        self, changes: Sequence[Change], sources: Sources, arch: str, tell: Tell
    ) -> list[Write]:
        """None: architectures with returns of their own are refused, others get what is written."""
        del tell
        target, version = arch_number(arch), sources.cub.version
        owners: list[tuple[Change, str]] = []
        for change in changes:
            _, site = site_of(benchmark_of(change.benchmark, version), version, "selectors")
            returned = sources.headers[site.header].selectors
            if own(arch_number(change.arch), returned, target):
                what = f"{change.name} on {change.arch} falls through to the same return"
                owners.append((change, what))
        if owners:
            raise NotKeptError(owners)
        return []
