"""Finds the specialization that a workload's key selects, or the key of a new one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import site_of, types
from policygen.bindings.recorded import benchmark_of
from policygen.bindings.variants import as_slot, by_print, fits, kept_members, type_name, value_name
from policygen.errors import InputError
from policygen.headers.comments import EXPLICIT, known_label
from policygen.headers.protocol import (
    EntryWrite,
    FamilySpot,
    NotKeptError,
    SelectionQuery,
    Spot,
    TuningTree,
    TypeName,
    can_name,
)
from policygen.headers.specializations.siblings import neighbour
from policygen.model.arch import arch_number, family_arch
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import AddedMember, Content, Entry, Family, Slot, spell


@dataclass(frozen=True, slots=True)
class EntryKey:
    """The slots of an entry, its preprocessor condition, and the slots of its unsigned twin."""

    slots: tuple[Slot, ...]
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None


@dataclass(frozen=True, slots=True)
class Specialization(FamilySpot):
    """A specialization of a family, for the key of a workload."""

    named_key: EntryKey | None = None
    """The key of an entry for one type alone."""
    known_key: list[EntryKey] = field(default_factory=list, compare=False)
    """Cache of the general key, which takes milliseconds to compute."""

    @property
    def is_new(self) -> bool:
        """Whether the header lacks the family."""
        return self.name != self.family.name

    @property
    def unsure(self) -> bool:
        """Whether the model is a later family, which may need declarations that follow."""
        return self.is_new and family_arch(self.name) < family_arch(self.family.name)

    @property
    def args(self) -> tuple[str, ...]:
        """The workload's key as the compiler prints it."""
        return self.selected.keys[self.family.name].args

    @property
    def entry(self) -> Entry | None:
        """The entry that currently has the key; None in a new family."""
        arch_entry = self.selected.keys[self.family.name].entry
        if self.named_key or arch_entry is None or self.is_new or arch_entry[1].kind == "primary":
            return None
        return arch_entry[1]

    @property
    def key(self) -> EntryKey:
        """The key of an added entry."""
        if self.named_key is not None:
            return self.named_key
        if not self.known_key:
            self.known_key.append(general_key(self.family, self.args))
        return self.known_key[0]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The arguments of an added entry."""
        return self.key.slots

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The arguments that are types, unless one is named already."""
        positions = () if self.named_key else type_positions(self.family)
        return {position: self.args[position] for position in positions}

    def naming(self, name: TypeName) -> Spot:
        """Restricts the entry to one type, beside a more general one."""
        assert isinstance(name, int), "it is an argument"
        return replace(self, named_key=named_key(self.family, self.args, name))

    @property
    def named(self) -> str:
        """The types that the entry names in addition to its usual arguments."""
        pairs = zip(self.key.slots, self.general.key.slots, strict=True)
        return ", ".join(slot for slot, other in pairs if slot and slot != other)

    @property
    def general(self) -> "Specialization":
        """The same spot without a type named for one workload alone."""
        return replace(self, named_key=None)

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added, if it would serve other workloads, too."""
        parameter = None if self.entry else too_general(self.family, self.key)
        return parameter and (
            f"an entry with {parameter} no would also match every other type of this size, because"
            " it does not name the type"
        )

    def saying(self, measured: BenchmarkBinding, reported: Values) -> Spot | None:
        """Adds members that the family's entries lack and that the policy must read."""
        rules, added = {}, {}
        for name, value in reported.items():
            member, rule = self.rule_for(measured, name)
            if rule is None or member in self.binding.members or name not in self.selected.kinds:
                return None
            rules[member] = rule
            added[member] = AddedMember(self.selected.kinds[name], spell(value))
        members = {**self.binding.members, **rules}
        binding = self.binding.model_copy(update={"members": members})
        return replace(self, binding=binding, added={**self.added, **added})

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """Returns the values, or a base to inherit them from."""
        content = Content("values", members, label=label)
        if not self.added:
            content = values_content(self.binding, members, label)
        return replace(content, types=self._types, added=self.added)

    @property
    def _types(self) -> dict[str, str]:
        """The types of members whose values the policy reports."""
        kinds = self.selected.kinds
        rules = self.binding.members.items()
        names = ((member, value_name(self.site, member, rule) or "") for member, rule in rules)
        return {member: kinds[name] for member, name in names if name in kinds}

    def kept(self, name: str) -> Content:
        """Returns the content of the entry that currently has the key."""
        current = self.general.entry
        if self.is_new:
            return kept_by_new(self.family)
        if content := kept_content(self.family, current):
            return content
        values = kept_members(self.site, self.binding, self.selected.values, self.selected.sizes)
        if values is None:
            raise InputError(f"no entry can keep the values of {name}")
        return Content("values", values)

    def takes(self, other: Spot) -> bool:
        """Tells whether the entry serves, or may serve, another workload that has no own entry."""
        if not isinstance(other, Specialization) or other.in_family != self.in_family:
            return False
        if self.entry is not None:
            return other.entry is self.entry
        return fits(other.family.parameters, self.key.slots, other.args)

    def lost(self, outcome: str) -> str:
        """Describes a workload that does not get the values written for it."""
        del outcome
        return "would be unreachable"


def family_spot(
    benchmark: BenchmarkBinding, selected: Selected, sources: TuningTree, arch: str
) -> Specialization:
    """Finds the place in the architecture's family, or in a new one modeled on an earlier family.

    If there is no earlier family, the newest one is the model: it has the most members.
    """
    algorithm, site = site_of(benchmark, sources.cub.bindings, "specializations")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    families = algorithm.families_at(site, [header])
    number = arch_number(arch)
    earlier = [pair for pair in families if arch_number(pair[1].arch) <= number]
    following = [
        pair
        for pair in families
        if any(entry.kind == "primary" and entry.body_span is None for entry in pair[1].entries)
    ]  # policies supply the defaults
    if not (earlier or following):
        raise InputError(
            f"{site.header} has no family of tunings for {arch} or an earlier architecture"
        )
    binding, family = max(earlier or following, key=lambda pair: arch_number(pair[1].arch))
    represented = {name for rule in binding.members.values() for name in rule.parameters}
    # Later versions of CUB state these members, so new entries can state them here, too.
    site_families = (row for row in algorithm.families if row.site == site.name)
    newest = max(site_families, key=lambda row: family_arch(row.name))
    later = {
        member: rule
        for member, rule in newest.members.items()
        if rule.parameters and not rule.parameters & represented
    }
    name = f"{arch}{family.name.removeprefix(family.arch)}"
    return Specialization(selected, site, binding, family, name, unsaid_members=later)


# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIERS = re.compile(r"^(?:::)?(?:\w+::)+")
_WORD = re.compile(r"\w+")


# Contents


def values_content(binding: FamilyBinding, members: dict[str, str], label: str | None) -> Content:
    """Returns the values, or a base that provides them, as the family does."""
    base = binding.base
    if base is not None and all(
        members[name].partition("<")[0] == value for name, value in base.needs.items()
    ):
        constructor = next(name for name, rule in binding.members.items() if rule.delay)
        delay_args = members[constructor].partition("<")[2].removesuffix(">")
        delay = [part.strip() for part in delay_args.split(",")]
        placeholders = {**members, "ns": delay[0], "l2w": delay[-1]}
        args = ", ".join(arg if arg == "{0}" else arg.format(**placeholders) for arg in base.args)
        return Content("inherits", members, f"{base.name}<{args}>", label)
    return Content("values", members, None, label)


def kept_by_new(model: Family) -> Content:
    """Returns content with which an entry of a new family behaves like the model family."""
    if _primary(model).body_span is None:
        return Content("empty", label=EXPLICIT)
    args = ", ".join(f"{{{position}}}" for position in range(len(model.parameters)))
    return Content("inherits", base=f"{model.name}<{args}>", label=EXPLICIT)


def kept_content(family: Family, current: Entry | None) -> Content | None:
    """Returns an entry's own content; None if only the policy reports the values."""
    entry = current or _primary(family)
    if entry.inherits and not entry.members and (base := _base_of(family, entry)):
        return Content("inherits", base=base, label=EXPLICIT)
    if entry.inherits or (entry.members and entry.kind == "primary"):
        return None
    values_by_member = {
        member.name: _QUALIFIERS.sub("", member.spelling, count=1) for member in entry.members
    }
    if not values_by_member:
        return Content("empty", label=EXPLICIT)
    return Content("values", values_by_member, label=known_label(entry.labels))


def _primary(family: Family) -> Entry:
    return next(entry for entry in family.entries if entry.kind == "primary")


def _base_of(family: Family, entry: Entry) -> str | None:
    """Returns an entry's base in terms of arguments; None if it depends on anything else."""
    base, own_names, names = entry.inherits or "", entry.own_parameters, list(entry.args)
    if entry.kind == "primary":
        names = [parameter.name for parameter in family.parameters]
    if any(word in own_names and word not in names for word in _WORD.findall(base)):
        return None
    placeholders = {name: f"{{{names.index(name)}}}" for name in own_names if name in names}
    return _WORD.sub(lambda match: placeholders.get(match[0], match[0]), base)


# Keys


def general_key(family: Family, args: Sequence[str]) -> EntryKey:
    """Returns CUB's broadest key for the arguments: any type of this size and class."""
    literal = tuple(map(as_slot, family.parameters, args))
    classes = (own.type for own in family.parameters if own.type in types().open_classes)
    open_count = sum(f"{name}::no" in literal for name in classes)
    guarded = [position for position in type_positions(family) if _guard(args[position])]
    # The accumulator of a sum of 128-bit integers is 128-bit, too: naming one type is enough.
    by_name = guarded[: max(1, open_count)]
    unsized = any(slot and slot.endswith("::unknown") for slot in literal)
    if not by_name and (unsized or not any(literal)):
        by_name = type_positions(family)[:1]
    return _key(family, args, by_name)


def named_key(family: Family, args: Sequence[str], position: int) -> EntryKey:
    """Returns the key with one type named, for an entry beside a more general one."""
    slots = general_key(family, args).slots
    by_name = (index for index in type_positions(family) if slots[index] is not None)
    return _key(family, args, sorted({*by_name, position}))


def type_positions(family: Family) -> list[int]:
    """Returns the positions of a family's type arguments."""
    return [index for index, own in enumerate(family.parameters) if own.kind == "type"]


def too_general(family: Family, key: EntryKey) -> str | None:
    """Returns the parameter for which an entry would take every non-arithmetic type of a size."""
    named_count = sum(key.slots[position] is not None for position in type_positions(family))
    for parameter, slot in zip(family.parameters, key.slots, strict=True):
        if parameter.type in types().open_classes and slot == f"{parameter.type}::no":
            if named_count == 0:
                return parameter.label
            named_count -= 1
    return None


def _key(family: Family, args: Sequence[str], by_name: Sequence[int]) -> EntryKey:
    slots = tuple(
        _spelled(arg) if position in by_name else as_slot(parameter, arg)
        for position, (parameter, arg) in enumerate(zip(family.parameters, args, strict=True))
    )
    slots = _as_open_as_siblings(family, slots)
    guards = [guard for position in by_name if (guard := _guard(args[position]))]
    twins = {type_info.cpp: type_info.twin for type_info in types().types if type_info.twin}
    twin = tuple(twins.get(slot, slot) if slot else None for slot in slots)
    return EntryKey(slots, guards[0] if guards else None, twin if twin != slots else None)


def _as_open_as_siblings(family: Family, key: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Leaves a value open if the closest sibling leaves it open."""
    closest = neighbour(family, key)
    if closest is None:
        return key
    sibling_slots = closest.entry.slots
    return tuple(
        None if slot is not None and sibling_slot is None and parameter.kind == "value" else slot
        for slot, sibling_slot, parameter in zip(key, sibling_slots, family.parameters, strict=True)
    )


def _spelled(arg: str) -> str:
    """Spells a type as headers do: `__int128` is `__int128_t`."""
    if not can_name(arg):
        raise InputError(f"an entry cannot name the type {arg}", "The header does not declare it.")
    return by_print().get(type_name(arg), type_name(arg))


def _guard(arg: str) -> str | None:
    """Returns the preprocessor condition under which CUB uses a type."""
    guards = {type_info.cpp: type_info.guard for type_info in types().types if type_info.guard}
    return guards.get(by_print().get(type_name(arg), arg))


# Entries that preserve values on later architectures


def keep_later(
    changes: Sequence[DeltaRow[Values]], sources: TuningTree, arch: str, tell: SelectionQuery
) -> list[EntryWrite]:
    """Writes one entry in a later family for each key that would change, with its old values."""
    writes: list[EntryWrite] = []
    archs = {change.arch for change in changes if arch_number(change.arch) > arch_number(arch)}
    for later_arch in sorted(archs, key=arch_number):
        arch_changes = [change for change in changes if change.arch == later_arch]
        selections = tell([change.point for change in arch_changes], later_arch)
        groups: dict[object, list[tuple[DeltaRow[Values], Specialization]]] = {}
        for change in arch_changes:
            benchmark = benchmark_of(change.benchmark, sources.cub.bindings)
            spot = family_spot(benchmark, selections[change.point], sources, later_arch)
            if spot.is_new or arch_number(spot.family.arch) <= arch_number(arch):
                reason = (
                    f"{change.name} on {later_arch} would change, and no family of {later_arch}"
                    " can keep its values"
                )
                raise NotKeptError([(change, reason)])
            groups.setdefault(spot.place, []).append((change, spot))
        for group in groups.values():
            try:
                writes.append(_keeping_write([spot for _, spot in group], later_arch))
            except InputError as error:
                reasons = [(change, error.message) for change, _ in group]
                raise NotKeptError(reasons) from error
    return writes


def _keeping_write(spots: Sequence[Specialization], arch: str) -> EntryWrite:
    first = spots[0]
    values, *others = (
        kept_members(spot.site, spot.binding, spot.selected.values, spot.selected.sizes)
        for spot in spots
    )
    if values is None or any(other_values != values for other_values in others):
        raise InputError(
            f"{first.header}: one entry cannot keep the values of all workloads on {arch}"
        )
    if not first.entry and (parameter := too_general(first.family, first.key)):
        raise InputError(
            f"{first.header}: an entry that keeps the values on {arch}, with {parameter} no, would"
            " also match every other type of this size"
        )
    return EntryWrite(tuple(spots), Content("values", values), f"{arch} keeps what it had")
