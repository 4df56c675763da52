"""The config of a workload's types on an architecture, or where one goes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.variant import member_values
from policygen.dialects.configs.asked import TypeFacts, holds
from policygen.dialects.protocol import Spot
from policygen.errors import InputError
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.entry_text import Content
from policygen.model.plan import Target
from policygen.model.tuning import Entry, Family, Member, Value, spell

_TRUTH = {"true": True, "false": False}


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


def _value(text: str) -> Value:
    if text.lstrip("-").isdigit():
        return int(text)
    return _TRUTH.get(text, text)
