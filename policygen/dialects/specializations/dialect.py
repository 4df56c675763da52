"""Struct templates `smNN_*_tuning` as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.protocol import HeaderEdits, Sources, Tell, Write
from policygen.dialects.specializations.later import keep_later
from policygen.dialects.specializations.marks import mark_header
from policygen.dialects.specializations.place import Families
from policygen.dialects.specializations.write import write_entries
from policygen.model.facts import Change
from policygen.model.marks import Marked
from policygen.model.tuning import Family, TuningHeader


@dataclass(frozen=True, slots=True)
class Specializations:
    """Families of entries, one for each key."""

    def read(self, header: TuningHeader) -> tuple[Family, ...]:
        """Those of struct templates."""
        return header.families

    def mark(
        self, header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]
    ) -> Marked:
        """Marks in those members of families that show in a policy."""
        return mark_header(header, data, members)

    def place(self, sources: Sources, arch: str, below: str | None) -> Families:
        """In the families of an architecture; later ones keep what they have by their own."""
        del below
        return Families(sources, arch)

    def write(
        self,
        header: TuningHeader,
        data: bytes,
        writes: Sequence[Write],
        arch: str,
        below: str | None,
    ) -> HeaderEdits:
        """Entries, and a new family with its policy; one for `below` keeps what that had."""
        return write_entries(header, data, writes, arch, below)

    def keep(
        self, changes: Sequence[Change], sources: Sources, arch: str, tell: Tell
    ) -> list[Write]:
        """Entries of later families with the values of before."""
        return keep_later(changes, sources, arch, tell)
