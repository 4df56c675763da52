"""The config of a workload's types on an architecture, or where one goes."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.variants import member_values
from policygen.errors import InputError
from policygen.headers.protocol import Spot, TypeName
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.edits import Content
from policygen.model.plans import Target
from policygen.model.tuning import Entry, Family, Member, Value, spell

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """An argument of a config: a type, or a number."""

    name: str
    size: int | None
    """In bytes; none where nobody says it."""
    floating: bool = False


@dataclass(frozen=True, slots=True)
class ConfigSpot(Spot):
    """A config for some types on an architecture."""

    site: Site
    binding: FamilyBinding
    arch: str
    families: tuple[Family, ...]
    """Those of the config, an architecture each."""
    version: str
    """Of the library, as bindings have it."""
    parameters: Mapping[str, tuple[tuple[str, str], ...]]
    """Those of templates of configs, by name."""
    needed: Mapping[str, int]
    """How many of them need an argument."""
    called: Mapping[str, tuple[str, ...]]
    """Value → what comments may call it."""

    @property
    def header(self) -> str:
        """Where it is written."""
        return self.site.header

    @property
    def entry(self) -> Entry | None:
        """The one that the compiler takes, where it is one for the architecture."""
        if self.told.entry is None:
            return None
        family, entry = self.told.entry
        return entry if family.arch == self.arch and entry.kind == "branch" else None

    @property
    def args(self) -> tuple[str, ...]:
        """The types of the workload."""
        found = self.told.keys.get(self.binding.name)
        return found.args if found else ()

    @property
    def alike(self) -> tuple[Family, Entry]:
        """The config of the same types on another architecture, which an added one is like."""
        types = [self._facts(arg) for arg in self.args]
        for family in sorted(self.families, key=self._nearness):
            for entry in family.entries:
                # Each calls its parameters as it likes.
                asked = dict(zip(self._typed(entry), types, strict=False))
                if entry.kind == "branch" and holds(entry.args, asked):
                    return family, entry
        raise InputError(
            f"{self.header}: no architecture has a config for {', '.join(self.args)}",
            "Write one by hand; policygen gives it other values.",
        )

    @property
    def target(self) -> Target:
        """The entry that decides the workload, now or afterwards."""
        entry = self.entry
        return Target(
            header=self.header,
            namespace=self.site.scope,
            family=f"{self.binding.name} {self.arch}",
            args=entry.args if entry else self.args,
            line=entry.line if entry else None,
        )

    @property
    def place(self) -> object:
        """What is the same for all workloads of one entry."""
        entry = self.entry
        alike = self.args if entry or self.too_broad else self.alike[1].args
        return self.header, self.binding.name, entry.span if entry else alike

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added."""
        if self.entry is not None:
            return None
        try:
            _ = self.alike
        except InputError as error:
            return error.in_line
        return None

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The values of an entry for a variant of the benchmark as it was measured."""
        said = {name for rule in self.binding.members.values() for name in rule.parameters}
        if lost := [name for name in variant if name not in said and name not in measured.fixed]:
            raise InputError(f"{self.header} has no place for {', '.join(lost)}")
        return member_values(self.binding, measured, variant, {})

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the config shows with these values."""
        return {name: _value(text) for name, text in members.items()}

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """What the config shows when it has the values that are wanted.

        One that is added has all else as the one that it is like says it; what that leaves to the
        template is not known.
        """
        if self.entry is not None or not wanted or self.too_broad:
            return {**self.told.values, **wanted}
        said = {m.name: m.value for m in self.said(self.alike[1], wanted)}
        shown = {n: v for n, v in said.items() if v is not None and n in self.told.values}
        return {**shown, **wanted}

    def said(self, entry: Entry, wanted: Collection[str]) -> tuple[Member, ...]:
        """What an entry that is like another one says: up to the last value that is wanted.

        What was measured leaves the rest to the template, where that has defaults.
        """
        least = max((self.needed.get(name, 0) for name in self.site.configs), default=0)
        places = [place for place, one in enumerate(entry.members) if one.name in wanted]
        tops = [one.name.partition(".")[0] for one in entry.members]
        needed = [place for place, top in enumerate(tops) if len({*tops[: place + 1]}) <= least]
        return entry.members[: max([*places, *needed], default=-1) + 1]

    def left_out(self, entry: Entry, values: Mapping[str, str]) -> dict[str, str]:
        """What an entry leaves out and does not have as it is wanted."""
        own = {member.name for member in entry.members}
        return {n: v for n, v in values.items() if n not in own and self._now(n) != v}

    def argument(self, kind: str, value: str | None, name: str) -> str:
        """A value as an argument of a type: what is wanted, else what the workload has now."""
        text = self._now(name) if value is None else value
        number = text.lstrip("-").isdigit() or text in _TRUTH
        return text if number else f"{kind}::{text}"

    def _now(self, name: str) -> str:
        return spell(self.told.values.get(name, ""))

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values; rocPRIM's comments tell no scores."""
        del label
        return Content("values", members)

    def _typed(self, entry: Entry) -> Sequence[str]:
        """What an entry calls the types that it is for."""
        return tuple(entry.own_parameters)

    def _facts(self, arg: str) -> TypeFacts:
        if is_constant(arg):
            return TypeFacts(arg, None)
        known = axis_type(arg, self.version)
        return TypeFacts(arg, known.size, floating=known.floating)

    def _nearness(self, family: Family) -> tuple[bool, bool]:
        """One of its own before what is for all others; one with a name as long first."""
        return family.arch == UNKNOWN, len(family.arch) != len(self.arch)


def _value(text: str) -> Value:
    if text.lstrip("-").isdigit():
        return int(text)
    return _TRUTH.get(text, text)


# Whether what a config asks for holds for types of which size and kind are known.


def holds(facts: Sequence[str], types: Mapping[str, TypeFacts]) -> bool:
    """Whether all facts are known to hold; `types` has arguments by parameter."""
    return all(_holds(fact, types) for fact in facts)


def _holds(fact: str, types: Mapping[str, TypeFacts]) -> bool:
    if match := _TRAIT.fullmatch(fact):
        known = types.get(match[2])
        return known is not None and known.floating == (not match[1])
    if match := _SIZE.fullmatch(fact):
        known = types.get(match[1])
        size = None if known is None else known.size
        return size is not None and bool(_COMPARED[match[2]](size, int(match[3])))
    if match := _SAME.fullmatch(fact):
        known = types.get(match[2])
        same = known is not None and _last(known.name) == _last(match[3])
        return known is not None and same == (not match[1])
    if match := _NUMBER.fullmatch(fact):
        known = types.get(match[1])
        return known is not None and known.name == match[2]
    return False


_COMPARED = {
    "<=": int.__le__,
    ">=": int.__ge__,
    "==": int.__eq__,
    "<": int.__lt__,
    ">": int.__gt__,
}


def _last(name: str) -> str:
    return name.rpartition("::")[2]


_NUMBER = re.compile(r"(\w+)\s*==\s*(\d+)")
_SIZE = re.compile(r"sizeof\((\w+)\)\s*(<=|>=|==|<|>)\s*(\d+)")
_SAME = re.compile(r"(!?)\s*(?:std::)?is_same<(\w+),\s*([\w:]+)>::value")
_TRAIT = re.compile(r"(!?)\s*is_floating_point<(\w+)>")


@dataclass(frozen=True, slots=True)
class PickerSpot(ConfigSpot):
    """A return of a picker for some types, or of one that is to be added for a target."""

    @property
    def alike(self) -> tuple[Family, Entry]:
        """What the workload has now, where that is a return for its types; else as any config."""
        found = self.told.entry
        if found is not None and found[1].kind == "branch":
            return found
        return super(PickerSpot, self).alike

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added."""
        if self.entry is None and self.arch == UNKNOWN:
            return "what no target is for has what another target has: tune that one"
        others = [f.arch for f in self.families if arch_and_gpu(f.arch)[0] == self.arch]
        if self.entry is None and others and self.arch not in others:
            return f"its targets are of GPUs: say which was measured, --arch {others[0]}"
        return super(PickerSpot, self).too_broad

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """What the workload has when it has the values that are wanted."""
        if self.told.entry is not None and self.told.entry[1].kind == "branch":
            return {**self.told.values, **wanted}
        return super(PickerSpot, self).afterwards(wanted)

    def said(self, entry: Entry, wanted: Collection[str]) -> tuple[Member, ...]:
        """All that an entry says: a copy of it leaves nothing out."""
        del wanted
        return entry.members

    def _typed(self, entry: Entry) -> Sequence[str]:
        """All of its parameters but the target."""
        return tuple(entry.own_parameters)[1:]


_AXIS = "axis::"
_TYPES = ("class", "typename")


@dataclass(frozen=True, slots=True)
class TableSpot(ConfigSpot):
    """A case of a config by hand, which several types and architectures may have."""

    benchmark: BenchmarkBinding = field(kw_only=True)
    arguments: tuple[str, ...] = field(kw_only=True)
    """Those of the specialization that the case stands in; none of a template for all types."""
    asked: tuple[str, ...] = field(default=(), kw_only=True)
    """The roles whose types a case of its own names; none where a case that is there changes."""
    own: bool = field(default=False, kw_only=True)
    """Whether the architecture gets a copy, as others have the same config."""

    @property
    def entry(self) -> Entry | None:
        """The case whose values change; none where one is added."""
        found = self.told.entry
        return found[1] if found and not self.asked and not self.copied else None

    @property
    def decided(self) -> tuple[Family, Entry]:
        """The case that the compiler takes."""
        assert self.told.entry is not None, "too_broad says where there is none"
        return self.told.entry

    @property
    def copied(self) -> bool:
        """Whether the architecture has no config that is its own."""
        found = self.told.entry
        return self.own or found is None or found[0].arch != self.arch

    @property
    def args(self) -> tuple[str, ...]:
        """The types of the workload."""
        return next((found.args for found in self.told.keys.values()), ())

    @property
    def target(self) -> Target:
        """The case that decides the workload, now or afterwards."""
        found, entry = self.told.entry, self.entry
        name = self.copy_name if self.copied else found[0].name if found else self.binding.name
        return Target(
            header=self.site.header,
            namespace=self.site.scope,
            family=f"{name} {self.arch}",
            args=entry.args if entry else self.args,
            line=entry.line if entry else None,
        )

    @property
    def copy_name(self) -> str:
        """What a copy for the architecture is called."""
        return f"{self.binding.name}_{self.arch}"

    @property
    def place(self) -> object:
        """What is the same for all workloads of one case."""
        found = self.told.entry
        types = tuple(self.given[role] for role in self.asked)
        return self.header, self.binding.name, found[1].span if found else self.args, types

    @property
    def too_broad(self) -> str | None:
        """Why nothing can be added."""
        if self.told.entry is None:
            return f"no case of {self.header} is known to decide it"
        if self.arch == UNKNOWN and self.entry is None:
            return "the last row is for all architectures without one: say which was measured"
        return None

    @property
    def given(self) -> Mapping[str, str]:
        """What the workload has for each role of the table."""
        axes = dict(zip(self.benchmark.axes, self.args, strict=False))
        named = ((role, self.benchmark.roles.get(role, "")) for role in self.binding.args)
        return {
            role: axes[text.removeprefix(_AXIS)]
            for role, text in named
            if text.removeprefix(_AXIS) in axes
        }

    @property
    def free(self) -> Mapping[str, str]:
        """The roles that the case leaves open, each with the name of its parameter."""
        _, entry = self.decided
        own = tuple(entry.own_parameters)
        pairs = zip(self.binding.args, self.arguments or own, strict=False)
        return {role: name for role, name in pairs if name in own and role in self.given}

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The types by which the workload can be told from others, and all of them together."""
        if self.told.entry is None or self.asked:
            return {}
        found: dict[TypeName, str] = {r: _plain(self.given[r]) for r in self.free}
        if len(found) > 1:
            found[" ".join(self.free)] = " ".join(found.values())
        return found

    def naming(self, name: TypeName) -> "TableSpot":
        """Of a case for some of its types alone."""
        return replace(self, asked=tuple(str(name).split()))

    @property
    def named(self) -> str:
        """The types that its case names."""
        return ", ".join(_plain(self.given[role]) for role in self.asked)

    @property
    def narrower(self) -> "TableSpot | None":
        """Of a case for all of its types; none where it names them already."""
        return None if self.told.entry is None or self.exact else self.naming(" ".join(self.free))

    @property
    def condition(self) -> str:
        """What a case of its own asks for, besides what the case asks that decides now."""
        parts = []
        for role in self.asked:
            name, value = self.free[role], self.given[role]
            if is_constant(value):
                parts.append(f"{name} == {value}")
            else:
                parts.append(f"std::is_same<{name}, {axis_type(value, self.version).cpp}>::value")
        return " && ".join(parts)

    @property
    def exact(self) -> bool:
        """Whether its case names all that is open, and so decides nothing else."""
        return set(self.asked) == set(self.free)

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """What the workload has when it has the values that are wanted."""
        return {**self.told.values, **wanted}

    def kept(self, name: str) -> Content:
        """A case for its types that has what it had."""
        del name
        return Content("values", {})

    def left_out(self, entry: Entry, values: Mapping[str, str]) -> dict[str, str]:
        """What a case leaves out and does not have as it is wanted.

        What is left out can follow from what is said: where that changes, all of it is said.
        """
        found = super(TableSpot, self).left_out(entry, values)
        if all(self._now(name) == value for name, value in values.items()):
            return found
        names = {member.name for member in entry.members}
        config = (entry.inherits or "").partition("<")[0].rpartition("::")[2].strip()
        kinds = dict(self.parameters.get(config, ()))
        if any(kind in _TYPES for name, kind in kinds.items() if name not in names):
            return found
        return {**found, **{n: v for n, v in values.items() if n in kinds and n not in names}}

    def argument(self, kind: str, value: str | None, name: str) -> str:
        """A value as an argument; a config in a config is none."""
        if kind in _TYPES:
            raise InputError(f"{self.header}: {name} has to be said before", "Write it by hand.")
        return super(TableSpot, self).argument(kind, value, name)


# The config of a workload in a table by hand: a case of it, one for types alone, or a copy.


def with_formulas(spot: TableSpot) -> TableSpot:
    """For its types alone, where the case that it has computes values for all of them."""
    if spot.told.entry is None:
        return spot
    _, entry = spot.told.entry
    names = spot.binding.members.keys()
    computed = any(member.value is None for member in entry.members if member.name in names)
    return replace(spot, asked=tuple(spot.free)) if computed and spot.free else spot


def _plain(value: str) -> str:
    return value.rpartition("::")[2]
