"""The config of a workload in a table by hand: a case of it, one for types alone, or a copy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policygen.bindings.load import axis_type, is_constant
from policygen.dialects.configs.place import ConfigSpot
from policygen.dialects.protocol import TypeName
from policygen.errors import InputError
from policygen.model.arch import UNKNOWN
from policygen.model.bindings import BenchmarkBinding
from policygen.model.entry_text import Content
from policygen.model.plan import Target
from policygen.model.tuning import Entry, Family, Value

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
