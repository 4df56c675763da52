"""What is the same for entries of all families of a tree: parameters become members and values."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from policygen.bindings.expected import expected_values, value_name
from policygen.bindings.variant import member_values
from policygen.bindings.words import words
from policygen.dialects.protocol import Spot
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.entry_text import AddedMember, Slot
from policygen.model.plan import Target
from policygen.model.tuning import Family, Value, spell


@dataclass(frozen=True, slots=True)
class FamilySpot(Spot, ABC):
    """A place in a family of a header."""

    site: Site
    binding: FamilyBinding
    family: Family
    """In the header; for a new one the family that it is made after."""
    name: str
    """`sm120_tuning`."""
    unsaid_members: Mapping[str, MemberRule] = field(default_factory=dict, kw_only=True)
    """What later families say, and this one leaves to its policy: the load modifier of sm90."""
    added: Mapping[str, AddedMember] = field(default_factory=dict, kw_only=True)
    """Members that entries are made to say, and that the policy does not read yet."""

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
        rules = (*self.unsaid_members.values(), *self.binding.members.values())
        said = {name for rule in rules for name in rule.parameters}
        if lost := [name for name in variant if name not in said and name not in measured.fixed]:
            raise InputError(f"{self.header} has no place for {', '.join(lost)}")
        for name, value in measured.fixed.items():
            if name not in said and variant.get(name, value) != value:
                raise InputError(
                    f"{self.header} has no place for {name}, and stands for {name}_{value}"
                )
        return member_values(self.binding, measured, variant, self.told.sizes)

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """The values of a variant that the policy shows, and no member of an entry says."""
        rules = {m: r for m, r in self.unsaid_members.items() if r.parameters <= variant.keys()}
        like = self.binding.model_copy(update={"members": rules})
        members = member_values(like, measured, variant, self.told.sizes)
        wanted = {
            **measured.always,
            **expected_values(self.site, like, members, self.told.sizes),
        }
        said = {value_name(self.site, *rule) for rule in self.binding.members.items()}
        return {n: v for n, v in wanted.items() if n in self.told.values and n not in said}

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """Without the values of another algorithm than the one that is wanted."""
        found = {**self.told.values, **wanted}
        used = self.site.used_by.get(str(wanted.get(words().values.algorithm)))
        if used is None:
            return found
        others = {name for names in self.site.used_by.values() for name in names} - {*used}
        return {name: value for name, value in found.items() if name not in others}

    def rule_for(self, measured: BenchmarkBinding, name: str) -> tuple[str, MemberRule | None]:
        """How an entry says a value that its family leaves to the policy, and by which member."""
        for member, rule in self.unsaid_members.items():
            if value_name(self.site, member, rule) == name:
                return member, rule
        constant = measured.always.get(name)
        return name, None if constant is None else MemberRule(constant=spell(constant))

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the policy shows with these values."""
        return expected_values(self.site, self.binding, members, self.told.sizes)
