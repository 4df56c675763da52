"""The specialization that a workload's key leads to, or the key of one that is to be added."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policygen.bindings.expected import kept_members, value_name
from policygen.bindings.keys import fits
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
from policygen.model.arch import arch_number, family_arch
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.entry_text import AddedMember, Content, Slot
from policygen.model.selection import Selected, Values
from policygen.model.tuning import Entry, Family, spell


@dataclass(frozen=True, slots=True)
class Specialization(FamilySpot):
    """One of a family, for the key of a workload."""

    named_key: EntryKey | None = None
    """That of an entry for one of the types alone."""
    known_key: list[EntryKey] = field(default_factory=list, compare=False)
    """The general one, once it is looked for: that takes milliseconds."""

    @property
    def is_new(self) -> bool:
        """Whether the header does not have its family yet."""
        return self.name != self.family.name

    @property
    def unsure(self) -> bool:
        """Whether it is made after a later one, which may need what is declared later."""
        return self.is_new and family_arch(self.name) < family_arch(self.family.name)

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
            f"an entry for {parameter} no would take every other type of this size, too: nothing in"
            " it names the type"
        )

    def saying(self, measured: BenchmarkBinding, shown: Values) -> Spot | None:
        """With members that the family's entries do not have: the policy has to read them."""
        rules, added = {}, {}
        for name, value in shown.items():
            member, rule = self.rule_for(measured, name)
            if rule is None or member in self.binding.members or name not in self.told.kinds:
                return None
            rules[member] = rule
            added[member] = AddedMember(self.told.kinds[name], spell(value))
        members = {**self.binding.members, **rules}
        binding = self.binding.model_copy(update={"members": members})
        return replace(self, binding=binding, added={**self.added, **added})

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values, or what has them and is inherited."""
        found = Content("values", members, label=label)
        if not self.added:
            found = values_content(self.binding, members, label)
        return replace(found, types=self._types, added=self.added)

    @property
    def _types(self) -> dict[str, str]:
        """The types of members, of which the policy shows the values."""
        kinds = self.told.kinds
        names = ((m, value_name(self.site, m, r) or "") for m, r in self.binding.members.items())
        return {member: kinds[name] for member, name in names if name in kinds}

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
    """In the architecture's family, or in one that is made after that of an earlier one.

    Where there is none before it, the newest is followed: it has most of what can be said.
    """
    algorithm, site = site_of(benchmark, sources.cub.bindings, "specializations")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    known = algorithm.families_at(site, [header])
    number = arch_number(arch)
    earlier = [pair for pair in known if arch_number(pair[1].arch) <= number]
    following = [pair for pair in known if _only_declared(pair[1])]
    if not (earlier or following):
        raise InputError(
            f"{site.header} has no family of tunings for {arch} or an earlier architecture"
        )
    binding, family = max(earlier or following, key=_by_arch)
    said = {name for rule in binding.members.values() for name in rule.parameters}
    # Of what later versions of CUB have too: what their entries say can be said by new ones here.
    rows = (one for one in algorithm.families if one.site == site.name)
    newest = max(rows, key=lambda one: family_arch(one.name))
    later = {m: r for m, r in newest.members.items() if r.parameters and not r.parameters & said}
    name = f"{arch}{family.name.removeprefix(family.arch)}"
    return Specialization(told, site, binding, family, name, unsaid_members=later)


def _only_declared(family: Family) -> bool:
    """Whether its primary template has no values: what has no entry is left to policies."""
    return any(e.kind == "primary" and e.body_span is None for e in family.entries)


def _by_arch(pair: tuple[FamilyBinding, Family]) -> int:
    return arch_number(pair[1].arch)
