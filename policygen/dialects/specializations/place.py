"""The specialization that a workload's key leads to, or the key of one that is to be added."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policygen.bindings.expected import expected_values, kept_members
from policygen.bindings.keys import fits
from policygen.bindings.variant import member_values
from policygen.dialects.family_spot import FamilySpot
from policygen.dialects.protocol import Spot, TuningTree, TypeName
from policygen.dialects.sites import site_of
from policygen.dialects.specializations.content import kept_by_new, kept_content, values_content
from policygen.dialects.specializations.keys import (
    EntryKey,
    general_key,
    named_key,
    too_general,
    type_positions,
)
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule
from policygen.model.entry_text import Content, Slot
from policygen.model.selection import Selected
from policygen.model.tuning import Entry, Family, Value


@dataclass(frozen=True, slots=True)
class Specialization(FamilySpot):
    """One of a family, for the key of a workload."""

    unsaid_members: Mapping[str, MemberRule] = field(default_factory=dict)
    """What later families say, and this one leaves to its policy: the load modifier of sm90."""
    named_key: EntryKey | None = None
    """That of an entry for one of the types alone."""
    known_key: list[EntryKey] = field(default_factory=list, compare=False)
    """The general one, once it is looked for: that takes milliseconds."""

    @property
    def is_new(self) -> bool:
        """Whether the header does not have its family yet."""
        return self.name != self.family.name

    @property
    def args(self) -> tuple[str, ...]:
        """The workload's key, as the compiler prints it."""
        return self.told.keys[self.family.name].args

    @property
    def entry(self) -> Entry | None:
        """The one that has the key now; none in a family that is new."""
        lead = self.told.keys[self.family.name].entry
        if self.named_key or lead is None or self.is_new or lead[1].kind == "primary":
            return None
        return lead[1]

    @property
    def key(self) -> EntryKey:
        """Under which an entry would be added."""
        if self.named_key is not None:
            return self.named_key
        if not self.known_key:
            self.known_key.append(general_key(self.family, self.args))
        return self.known_key[0]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What an entry that is added asks for."""
        return self.key.slots

    @property
    def types(self) -> Mapping[TypeName, str]:
        """Those of its arguments that are types."""
        return {position: self.args[position] for position in type_positions(self.family)}

    def naming(self, name: TypeName) -> Spot:
        """Beside a more general one."""
        assert isinstance(name, int), "it is an argument"
        return replace(self, named_key=named_key(self.family, self.args, name))

    @property
    def named(self) -> str:
        """The type that its entry names, besides what it names anyway."""
        pairs = zip(self.key.slots, self.general.key.slots, strict=True)
        return ", ".join(slot for slot, other in pairs if slot and slot != other)

    @property
    def general(self) -> "Specialization":
        """The same where nothing needs to be written for one of the types."""
        return replace(self, named_key=None)

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added: it would take others, too."""
        parameter = None if self.entry else too_general(self.family, self.key)
        return parameter and (
            f"an entry for {parameter} no would take every other type of this size, too"
        )

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """The values of a variant that the policy shows, and no member of an entry says."""
        rules = {m: r for m, r in self.unsaid_members.items() if r.parameters <= variant.keys()}
        like = self.binding.model_copy(update={"members": rules})
        members = member_values(like, measured, variant, self.told.sizes)
        wanted = expected_values(self.site, like, members, self.told.sizes)
        return {name: value for name, value in wanted.items() if name in self.told.values}

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values, or what has them and is inherited."""
        return values_content(self.binding, members, label)

    def kept(self, name: str) -> Content:
        """What the entry has that has the key now."""
        now = self.general.entry
        if self.is_new:
            return kept_by_new(self.family)
        if content := kept_content(self.family, now):
            return content
        values = kept_members(self.site, self.binding, self.told.values, self.told.sizes)
        if values is None:
            raise InputError(f"no entry can keep what {name} has")
        return Content("values", values)

    def takes(self, other: Spot) -> bool:
        """Whether it decides another workload, or may, where that has no entry of its own."""
        if not isinstance(other, Specialization) or other.in_family != self.in_family:
            return False
        if self.entry is not None:
            return other.entry is self.entry
        return fits(other.family.parameters, self.key.slots, other.args)

    def lost(self, found: str) -> str:
        """That the workload does not get what is written for it."""
        del found
        return "would be unreachable"


def family_spot(
    benchmark: BenchmarkBinding, told: Selected, sources: TuningTree, arch: str
) -> Specialization:
    """In the architecture's family, or in one that is made after that of an earlier one."""
    algorithm, site = site_of(benchmark, sources.cub.bindings, "specializations")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    known = algorithm.families_at(site, [header])
    number = arch_number(arch)
    earlier = [pair for pair in known if arch_number(pair[1].arch) <= number]
    if not earlier:
        raise InputError(
            f"{site.header} has no family of tunings for {arch} or an earlier architecture"
        )
    binding, family = max(earlier, key=_by_arch)
    said = {name for rule in binding.members.values() for name in rule.parameters}
    newest, _ = max(known, key=_by_arch)
    later = {m: r for m, r in newest.members.items() if r.parameters and not r.parameters & said}
    name = f"{arch}{family.name.removeprefix(family.arch)}"
    return Specialization(told, site, binding, family, name, later)


def _by_arch(pair: tuple[FamilyBinding, Family]) -> int:
    return arch_number(pair[1].arch)
