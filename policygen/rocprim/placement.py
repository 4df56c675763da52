"""The config of a workload's types on an architecture, or the place for a new one."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.variants import member_values
from policygen.errors import InputError
from policygen.headers.expressions import evaluate
from policygen.headers.protocol import Spot, TypeName
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.plans import Target
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Content, Entry, Family, Member, Value, spell

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """An argument of a config: a type, or a number."""

    name: str
    size: int | None
    """In bytes; None if unknown."""
    floating: bool = False


@dataclass(frozen=True, slots=True)
class ConfigSpot(Spot):
    """A config for some types on an architecture."""

    site: Site
    binding: FamilyBinding
    arch: str
    families: tuple[Family, ...]
    """The families of the config, one per architecture."""
    version: BoundVersion
    """The library's version, as in the bindings."""
    parameters: Mapping[str, tuple[tuple[str, str], ...]]
    """Parameters of config templates, by name."""
    needed: Mapping[str, int]
    """The number of parameters without a default."""
    called: Mapping[str, tuple[str, ...]]
    """Value → its possible names in comments."""

    @property
    def header(self) -> str:
        """The header that holds it."""
        return self.site.header

    @property
    def entry(self) -> Entry | None:
        """The entry that the compiler selects, if it belongs to the architecture."""
        if self.selected.entry is None:
            return None
        family, entry = self.selected.entry
        return entry if family.arch == self.arch and entry.kind == "branch" else None

    @property
    def args(self) -> tuple[str, ...]:
        """The types of the workload."""
        key = self.selected.keys.get(self.binding.name)
        return key.args if key else ()

    @property
    def alike(self) -> tuple[Family, Entry]:
        """The config of the same types on another architecture, which a new one copies."""
        types = [self._facts(arg) for arg in self.args]
        # Dedicated families before the shared one, and names of equal length first
        for family in sorted(
            self.families, key=lambda own: (own.arch == UNKNOWN, len(own.arch) != len(self.arch))
        ):
            for entry in family.entries:
                # Each entry names its parameters as it likes.
                types_by_parameter = dict(zip(self._typed(entry), types, strict=False))
                if entry.kind == "branch" and holds(entry.args, types_by_parameter):
                    return family, entry
        raise InputError(
            f"{self.header}: no architecture has a config for {', '.join(self.args)}",
            "Write one by hand; policygen can then change its values.",
        )

    @property
    def family(self) -> str:
        """The name of the config that decides the workload, now or after the edit."""
        return self.binding.name

    @property
    def target(self) -> Target:
        """The entry that decides the workload, now or after the edit."""
        entry = self.entry
        return Target(
            header=self.header,
            namespace=self.site.scope,
            family=f"{self.family} {self.arch}",
            args=entry.args if entry else self.args,
            line=entry.line if entry else None,
        )

    @property
    def place(self) -> object:
        """A key that is equal for all workloads of one entry."""
        entry = self.entry
        similar_args = self.args if entry or self.too_broad else self.alike[1].args
        return self.header, self.binding.name, entry.span if entry else similar_args

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added, or None."""
        if self.entry is not None:
            return None
        try:
            _ = self.alike
        except InputError as error:
            return error.in_line
        return None

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns the values of an entry for a variant of the benchmark as measured."""
        known_parameters = {
            name for rule in self.binding.members.values() for name in rule.parameters
        }
        if unknown := [
            name for name in variant if name not in known_parameters and name not in measured.fixed
        ]:
            raise InputError(f"{self.header} has no place for {', '.join(unknown)}")
        return member_values(self.binding, measured, variant, {})

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """Returns the config's values with these members."""
        return {
            name: int(text) if text.lstrip("-").isdigit() else _TRUTH.get(text, text)
            for name, text in members.items()
        }

    def afterwards(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the config's values after the edit.

        An added config takes all other values from the one it copies; values left to template
        defaults are unknown.
        """
        if self.entry is not None or not changed or self.too_broad:
            return {**self.selected.values, **changed}
        entry_values = {member.name: member.value for member in self.said(self.alike[1], changed)}
        known_values = {
            name: value
            for name, value in entry_values.items()
            if value is not None and name in self.selected.values
        }
        return {**known_values, **changed}

    def said(self, entry: Entry, wanted_members: Collection[str]) -> tuple[Member, ...]:
        """Returns the members that a copy of an entry states: up to the last wanted value.

        The rest is left to the template's defaults, as it was measured.
        """
        least_arguments = max((self.needed.get(name, 0) for name in self.site.configs), default=0)
        places = [
            place for place, member in enumerate(entry.members) if member.name in wanted_members
        ]
        top_names = [member.name.partition(".")[0] for member in entry.members]
        needed = [
            place
            for place, _top in enumerate(top_names)
            if len({*top_names[: place + 1]}) <= least_arguments
        ]
        return entry.members[: max([*places, *needed], default=-1) + 1]

    def left_out(self, entry: Entry, values: Mapping[str, str]) -> dict[str, str]:
        """Returns wanted values that the entry omits and that differ from the current ones."""
        own_names = {member.name for member in entry.members}
        return {
            name: value
            for name, value in values.items()
            if name not in own_names and self._now(name) != value
        }

    def argument(self, kind: str, value: str | None, name: str) -> str:
        """Formats an argument: the wanted value, else the workload's current one."""
        text = self._now(name) if value is None else value
        number = text.lstrip("-").isdigit() or text in _TRUTH
        return text if number else f"{kind}::{text}"

    def _now(self, name: str) -> str:
        return spell(self.selected.values.get(name, ""))

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """Returns the values; rocPRIM's comments contain no scores."""
        del label
        return Content("values", members)

    def _typed(self, entry: Entry) -> Sequence[str]:
        """Returns the entry's names for its types."""
        return tuple(entry.own_parameters)

    def _facts(self, arg: str) -> TypeFacts:
        if is_constant(arg):
            return TypeFacts(arg, None)
        axis = axis_type(arg, self.version)
        return TypeFacts(arg, axis.size, floating=axis.floating)


# Evaluating the conditions of a config for types of known size and kind.


# "is_floating_point<Key>", "sizeof(Key)", "std::is_same<Key, int>::value", "Key" of "Key == 8"
_TERM = re.compile(
    r"is_floating_point<(?P<floating>\w+)>|sizeof\((?P<sized>\w+)\)"
    r"|(?:std::)?is_same<(?P<same>\w+),\s*(?P<type>[\w:]+)>::value|\b(?P<number>[A-Za-z_]\w*)\b"
)


def holds(facts: Sequence[str], types: Mapping[str, TypeFacts]) -> bool:
    """Returns whether all facts are known to hold; `types` has arguments by parameter."""

    def term(match: re.Match[str]) -> str:
        own = types.get(match["floating"] or match["sized"] or match["same"] or match["number"])
        value: object = None
        if own and match["floating"]:
            value = int(own.floating)
        elif own and match["same"]:
            value = int(unqualified(own.name) == unqualified(match["type"]))
        elif own:
            value = own.size if match["sized"] else own.name if own.name.isdecimal() else None
        return "unknown" if value is None else str(value)

    return all(evaluate(_TERM.sub(term, fact), lambda _: None) for fact in facts)


@dataclass(frozen=True, slots=True)
class PickerSpot(ConfigSpot):
    """A return of a picker for some types, or of one that is to be added for a target."""

    @property
    def alike(self) -> tuple[Family, Entry]:
        """The workload's current return if it is for its types; else as for any config."""
        selected = self.selected.entry
        if selected is not None and selected[1].kind == "branch":
            return selected
        return super(PickerSpot, self).alike

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added, or None."""
        if self.entry is None and self.arch == UNKNOWN:
            return "devices without a target use the config of another target; tune that target"
        sibling_archs = [
            family.arch for family in self.families if arch_and_gpu(family.arch)[0] == self.arch
        ]
        if self.entry is None and sibling_archs and self.arch not in sibling_archs:
            return f"its targets are GPUs; name the measured one: --arch {sibling_archs[0]}"
        return super(PickerSpot, self).too_broad

    def afterwards(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the workload's values after the edit."""
        if self.selected.entry is not None and self.selected.entry[1].kind == "branch":
            return {**self.selected.values, **changed}
        return super(PickerSpot, self).afterwards(changed)

    def said(self, entry: Entry, wanted_members: Collection[str]) -> tuple[Member, ...]:
        """Returns all members: a copy omits nothing."""
        del wanted_members
        return entry.members

    def _typed(self, entry: Entry) -> Sequence[str]:
        """Returns all parameters except the target."""
        return tuple(entry.own_parameters)[1:]


_AXIS = "axis::"
_TYPES = ("class", "typename")


@dataclass(frozen=True, slots=True)
class TableSpot(ConfigSpot):
    """A case of a config written by hand, which several types and architectures may share."""

    benchmark: BenchmarkBinding = field(kw_only=True)
    arguments: tuple[str, ...] = field(kw_only=True)
    """The arguments of the specialization that contains the case; empty in a template for all
    types."""
    asked: tuple[str, ...] = field(default=(), kw_only=True)
    """The roles whose types a new case names; empty if an existing case changes."""
    own: bool = field(default=False, kw_only=True)
    """Whether the architecture gets a copy, as others share the config."""

    @property
    def entry(self) -> Entry | None:
        """The case whose values change; None if one is added."""
        selected = self.selected.entry
        return selected[1] if selected and not self.asked and not self.copied else None

    @property
    def decided(self) -> tuple[Family, Entry]:
        """The case that the compiler selects."""
        assert self.selected.entry is not None, "too_broad says where there is none"
        return self.selected.entry

    @property
    def copied(self) -> bool:
        """Whether the architecture lacks a config of its own."""
        selected = self.selected.entry
        return self.own or selected is None or selected[0].arch != self.arch

    @property
    def args(self) -> tuple[str, ...]:
        """The types of the workload."""
        return next((key.args for key in self.selected.keys.values()), ())

    @property
    def family(self) -> str:
        """The name of the config with the case that decides the workload, or of its copy."""
        return self.copy_name if self.copied else self.decided[0].name

    @property
    def copy_name(self) -> str:
        """The name of a copy for the architecture."""
        return f"{self.binding.name}_{self.arch}"

    @property
    def place(self) -> object:
        """A key that is equal for all workloads of one case."""
        selected = self.selected.entry
        types = tuple(self.given[role] for role in self.asked)
        return self.header, self.binding.name, selected[1].span if selected else self.args, types

    @property
    def too_broad(self) -> str | None:
        """Why nothing can be added, or None."""
        if self.selected.entry is None:
            return f"no known case of {self.header} decides it"
        if self.arch == UNKNOWN and self.entry is None:
            return "the last row is for all architectures without their own; name the measured one"
        return None

    @property
    def given(self) -> Mapping[str, str]:
        """The workload's type for each role of the table."""
        axes = dict(zip(self.benchmark.axes, self.args, strict=False))
        texts_by_role = ((role, self.benchmark.roles.get(role, "")) for role in self.binding.args)
        return {
            role: axes[text.removeprefix(_AXIS)]
            for role, text in texts_by_role
            if text.removeprefix(_AXIS) in axes
        }

    @property
    def free(self) -> Mapping[str, str]:
        """The roles that the case leaves open, each with the name of its parameter."""
        _, entry = self.decided
        own_parameters = tuple(entry.own_parameters)
        pairs = zip(self.binding.args, self.arguments or own_parameters, strict=False)
        return {role: name for role, name in pairs if name in own_parameters and role in self.given}

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The types that distinguish the workload from others, and all of them together."""
        if self.selected.entry is None or self.asked:
            return {}
        types: dict[TypeName, str] = {role: unqualified(self.given[role]) for role in self.free}
        if len(types) > 1:
            types[" ".join(self.free)] = " ".join(types.values())
        return types

    def naming(self, name: TypeName) -> "TableSpot":
        """Returns the spot of a case for some of its types only."""
        return replace(self, asked=tuple(str(name).split()))

    @property
    def named(self) -> str:
        """The types that its case names."""
        return ", ".join(unqualified(self.given[role]) for role in self.asked)

    @property
    def narrower(self) -> "TableSpot | None":
        """The spot of a case for all of its types; None if it names them already."""
        return (
            None if self.selected.entry is None or self.exact else self.naming(" ".join(self.free))
        )

    @property
    def condition(self) -> str:
        """The condition of a new case, in addition to that of the case that decides now."""
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
        """Whether its case names all open types, and so decides nothing else."""
        return set(self.asked) == set(self.free)

    def afterwards(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the workload's values after the edit."""
        return {**self.selected.values, **changed}

    def kept(self, name: str) -> Content:
        """Returns a case for its types with its current values."""
        del name
        return Content("values", {})

    def left_out(self, entry: Entry, values: Mapping[str, str]) -> dict[str, str]:
        """Returns wanted values that a case omits and that differ from the current ones.

        Omitted values may depend on stated ones: if those change, all are stated.
        """
        omitted = super(TableSpot, self).left_out(entry, values)
        names = {member.name for member in entry.members}
        config = unqualified((entry.inherits or "").partition("<")[0]).strip()
        kinds = dict(self.parameters.get(config, ()))
        unstated = kinds.keys() - names
        is_changed = any(self._now(name) != value for name, value in values.items())
        if is_changed and not any(kinds[name] in _TYPES for name in unstated):
            omitted |= {name: value for name, value in values.items() if name in unstated}
        return omitted

    def argument(self, kind: str, value: str | None, name: str) -> str:
        """Formats an argument; a nested config cannot be one."""
        if kind in _TYPES:
            raise InputError(
                f"{self.header}: the config {name} would have to be written first",
                "Write both by hand.",
            )
        return super(TableSpot, self).argument(kind, value, name)


# Configs in tables written by hand: an existing case, one for some types, or a copy.


def with_formulas(spot: TableSpot) -> TableSpot:
    """Narrows a spot to its types if its case computes values for all of them."""
    if spot.selected.entry is None:
        return spot
    _, entry = spot.selected.entry
    names = spot.binding.members.keys()
    computed = any(member.value is None for member in entry.members if member.name in names)
    return replace(spot, asked=tuple(spot.free)) if computed and spot.free else spot


def unqualified(name: str) -> str:
    """Returns a type without its qualifiers."""
    return name.rpartition("::")[2]
