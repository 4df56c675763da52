"""The specialization that a workload's key leads to, or the key of one that is to be added."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import types
from policygen.bindings.recorded import benchmark_of
from policygen.bindings.variants import as_slot, by_print, fits, kept_members, type_name, value_name
from policygen.errors import InputError
from policygen.headers.protocol import (
    EntryWrite,
    FamilySpot,
    NotKeptError,
    Spot,
    Tell,
    TuningTree,
    TypeName,
    can_name,
    site_of,
)
from policygen.headers.provenance import EXPLICIT, known_label
from policygen.headers.specializations.siblings import neighbour
from policygen.model.arch import arch_number, family_arch
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.edits import AddedMember, Content, Slot
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Entry, Family, spell


@dataclass(frozen=True, slots=True)
class EntryKey:
    """The slots of an entry, the condition that it needs, and those of its unsigned twin."""

    slots: tuple[Slot, ...]
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None


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


# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIERS = re.compile(r"^(?:::)?(?:\w+::)+")
_WORD = re.compile(r"\w+")


# What a specialization holds: a variant's values, or what a workload has now.


def values_content(binding: FamilyBinding, members: dict[str, str], text: str | None) -> Content:
    """The values, or what an entry inherits that has them, in the family's manner."""
    base = binding.base
    if base is not None and _fits(members, base.needs):
        constructor = next(name for name, rule in binding.members.items() if rule.delay)
        numbers_of = members[constructor].partition("<")[2].removesuffix(">")
        delay = [part.strip() for part in numbers_of.split(",")]
        known = {**members, "ns": delay[0], "l2w": delay[-1]}
        args = ", ".join(arg if arg == "{0}" else arg.format(**known) for arg in base.args)
        return Content("inherits", members, f"{base.name}<{args}>", text)
    return Content("values", members, None, text)


def _fits(members: Mapping[str, str], needs: Mapping[str, str]) -> bool:
    return all(members[name].partition("<")[0] == value for name, value in needs.items())


def kept_by_new(like: Family) -> Content:
    """What an entry of a new family holds, so that all stays as in the one before."""
    if _primary(like).body_span is None:
        return Content("empty", label=EXPLICIT)
    args = ", ".join(f"{{{position}}}" for position in range(len(like.parameters)))
    return Content("inherits", base=f"{like.name}<{args}>", label=EXPLICIT)


def kept_content(family: Family, now: Entry | None) -> Content | None:
    """What an entry says of itself; none where only the policy shows the values."""
    entry = now or _primary(family)
    if entry.inherits and not entry.members and (base := _base_of(family, entry)):
        return Content("inherits", base=base, label=EXPLICIT)
    if entry.inherits or (entry.members and entry.kind == "primary"):
        return None
    spelled = {m.name: _QUALIFIERS.sub("", m.spelling, count=1) for m in entry.members}
    if not spelled:
        return Content("empty", label=EXPLICIT)
    return Content("values", spelled, label=known_label(entry.labels))


def _primary(family: Family) -> Entry:
    return next(entry for entry in family.entries if entry.kind == "primary")


def _base_of(family: Family, entry: Entry) -> str | None:
    """What an entry inherits from, in terms of arguments; none where it says more than those."""
    names = [p.name for p in family.parameters] if entry.kind == "primary" else list(entry.args)
    own = entry.own_parameters
    used = [word for word in _WORD.findall(entry.inherits or "") if word in own]
    if any(word not in names for word in used):
        return None
    return _WORD.sub(
        lambda match: f"{{{names.index(match[0])}}}" if match[0] in own else match[0],
        entry.inherits or "",
    )


# The arguments under which an entry is written for a workload.


def general_key(family: Family, args: Sequence[str]) -> EntryKey:
    """The broadest key that CUB writes for such arguments: any type of this size and class."""
    literal = tuple(as_slot(p, arg) for p, arg in zip(family.parameters, args, strict=True))
    classes = [p.type for p in family.parameters if p.type in types().open_classes]
    open_ones = sum(f"{name}::no" in literal for name in classes)
    guarded = [position for position in type_positions(family) if _guard(args[position])]
    # The accumulator of a sum of 128-bit integers is one, too: one name tells enough.
    named = guarded[: max(1, open_ones)]
    unsized = any(slot and slot.endswith("::unknown") for slot in literal)
    if not named and (unsized or not any(literal)):
        named = type_positions(family)[:1]
    return _key(family, args, named)


def named_key(family: Family, args: Sequence[str], position: int) -> EntryKey:
    """The same with one of the types by name, for an entry beside a more general one."""
    general = general_key(family, args)
    named = [i for i in type_positions(family) if general.slots[i] is not None]
    return _key(family, args, sorted({*named, position}))


def type_positions(family: Family) -> list[int]:
    """Where a family's arguments are types."""
    return [i for i, parameter in enumerate(family.parameters) if parameter.kind == "type"]


def too_general(family: Family, key: EntryKey) -> str | None:
    """The parameter by which an entry would take every type of a size that is no number."""
    named = sum(key.slots[position] is not None for position in type_positions(family))
    for parameter, slot in zip(family.parameters, key.slots, strict=True):
        if parameter.type in types().open_classes and slot == f"{parameter.type}::no":
            if named == 0:
                return parameter.label
            named -= 1
    return None


def _key(family: Family, args: Sequence[str], named: Sequence[int]) -> EntryKey:
    found = tuple(
        _spelled(arg) if position in named else as_slot(parameter, arg)
        for position, (parameter, arg) in enumerate(zip(family.parameters, args, strict=True))
    )
    found = _as_open_as_siblings(family, found)
    guards = [guard for position in named if (guard := _guard(args[position]))]
    twins = {t.cpp: t.twin for t in types().types if t.twin}
    twin = tuple(twins.get(slot, slot) if slot else None for slot in found)
    return EntryKey(found, guards[0] if guards else None, twin if twin != found else None)


def _as_open_as_siblings(family: Family, key: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """A value that the closest sibling leaves open is left open here, too."""
    beside = neighbour(family, key)
    if beside is None:
        return key
    theirs = beside.entry.slots
    return tuple(
        None if slot is not None and other is None and parameter.kind == "value" else slot
        for slot, other, parameter in zip(key, theirs, family.parameters, strict=True)
    )


def _spelled(arg: str) -> str:
    """A type as headers call it: `__int128` is `__int128_t`."""
    if not can_name(arg):
        raise InputError(f"an entry cannot name the type {arg}", "The header does not know it.")
    return by_print().get(type_name(arg), type_name(arg))


def _guard(arg: str) -> str | None:
    """The condition under which CUB writes about a type."""
    spelled = by_print().get(type_name(arg), arg)
    return next((t.guard for t in types().types if t.cpp == spelled and t.guard), None)


# Entries that keep for later architectures what a change of an earlier one would take.


def keep_later(
    changes: Sequence[DeltaRow[Values]], sources: TuningTree, arch: str, tell: Tell
) -> list[EntryWrite]:
    """One entry in a later family for each key that would change; it has the values of before."""
    writes: list[EntryWrite] = []
    later = sorted({c.arch for c in changes if arch_number(c.arch) > arch_number(arch)})
    for other in sorted(later, key=arch_number):
        found = [change for change in changes if change.arch == other]
        told = tell([change.point for change in found], other)
        groups: dict[object, list[tuple[DeltaRow[Values], Specialization]]] = {}
        for change in found:
            benchmark = benchmark_of(change.benchmark, sources.cub.bindings)
            spot = family_spot(benchmark, told[change.point], sources, other)
            if spot.is_new or arch_number(spot.family.arch) <= arch_number(arch):
                reason = (
                    f"{change.name} on {other} would change, and no family of {other} can keep it"
                )
                raise NotKeptError([(change, reason)])
            groups.setdefault(spot.place, []).append((change, spot))
        for group in groups.values():
            try:
                writes.append(_kept([spot for _, spot in group], other))
            except InputError as error:
                reasons = [(change, error.message) for change, _ in group]
                raise NotKeptError(reasons) from error
    return writes


def _kept(spots: Sequence[Specialization], arch: str) -> EntryWrite:
    first = spots[0]
    members = [kept_members(s.site, s.binding, s.told.values, s.told.sizes) for s in spots]
    values = members[0]
    if values is None or any(other != values for other in members):
        raise InputError(f"{first.header}: one entry cannot keep for {arch} what its workloads had")
    if not first.entry and (parameter := too_general(first.family, first.key)):
        raise InputError(
            f"{first.header}: an entry that keeps for {arch} what its workloads had, for"
            f" {parameter} no, would take every other type of this size, too"
        )
    return EntryWrite(tuple(spots), Content("values", values), f"{arch} keeps what it had")
