"""What is the same for entries of all families of a tree: parameters become members and values."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from policygen.bindings.expected import expected_values
from policygen.bindings.variant import member_values
from policygen.dialects.protocol import Spot
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.entry_text import Slot
from policygen.model.plan import Target
from policygen.model.tuning import Family, Value


@dataclass(frozen=True, slots=True)
class FamilySpot(Spot, ABC):
    """A place in a family of a header."""

    site: Site
    binding: FamilyBinding
    family: Family
    """In the header; for a new one the family that it is made after."""
    name: str
    """`sm120_tuning`."""

    @property
    def header(self) -> str:
        """Where it is written."""
        return self.family.header

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """What an entry that is added asks for."""

    @property
    def target(self) -> Target:
        """The entry that decides the workload, now or afterwards."""
        entry = self.entry
        return Target(
            header=self.family.header,
            namespace=self.family.namespace,
            family=self.name,
            args=tuple(slot or "·" for slot in (entry.args if entry else self.slots)),
            line=entry.line if entry else None,
        )

    @property
    def place(self) -> object:
        """What is the same for all workloads of one entry."""
        entry = self.entry
        return *self.in_family, entry.span if entry else self.slots

    @property
    def in_family(self) -> tuple[str, str, str]:
        """What is the same for all entries of the family."""
        return self.family.header, self.family.namespace, self.name

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The values of an entry for a variant of the benchmark as it was measured."""
        for name, value in measured.fixed.items():
            if variant.get(name, value) != value:
                raise InputError(
                    f"{self.header} has no place for {name}, and stands for {name}_{value}"
                )
        return member_values(self.binding, measured, variant, self.told.sizes)

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the policy shows with these values."""
        return expected_values(self.site, self.binding, members, self.told.sizes)
