"""Measured workloads with what the compiler tells of them, grouped by the entry that decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from policygen.bindings.expected import expected_values
from policygen.bindings.variant import member_values
from policygen.dialects.selectors.conditions import simplest
from policygen.dialects.selectors.fronts import Front
from policygen.dialects.selectors.nearest import Inside, Left, Nearest, Reached
from policygen.dialects.selectors.truth import Truth
from policygen.dialects.selectors.twins import Twin
from policygen.errors import InputError
from policygen.model.bindings import FamilyBinding, MemberRule, Site
from policygen.model.facts import Told
from policygen.model.plan import Action, Target
from policygen.model.results import Choice
from policygen.model.tuning import Entry, Family, Value
from policygen.planning.keys import EntryKey, general_key, named_key, type_positions
from policygen.planning.measured import Measurement


@dataclass(frozen=True, slots=True)
class NewReturn:
    """A guarded return that is to be written."""

    at: Nearest | Left | Front | Twin | Inside
    facts: tuple[str, ...]
    """What holds where it stands: the same for all workloads that get it."""
    truth: Truth
    """Of the workload that it is for."""

    def naming(self, condition: str) -> "NewReturn":
        """The same for one type alone."""
        if isinstance(self.at, Left):
            raise InputError("there is no place for a return for one type alone")
        if isinstance(self.at, Inside):
            raise InputError("it is for one type already")
        at = replace(self.at, conditions=tuple(simplest((*self.at.conditions, condition))))
        return replace(self, at=at, facts=(*self.facts, condition))

    @property
    def bounded(self) -> bool:
        """Whether later architectures do not get to it."""
        return isinstance(self.at, Front | Twin) and self.at.below is not None

    def takes(self, told: Told) -> bool:
        """Whether another workload may get it, too."""
        truth = replace(self.truth, traits=told.traits)
        return all(truth.holds(fact) is not False for fact in self.facts)

    @property
    def like(self) -> Entry:
        """The return whose manner it has."""
        return self.at.beside.entry


@dataclass(frozen=True, slots=True)
class Destination:
    """The family that an architecture's policy reads, or is to read, for a site."""

    site: Site
    binding: FamilyBinding
    family: Family
    """In the header; for a new architecture the one that it is made after."""
    name: str
    """`sm120_tuning`."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """In the selector dialect: value → what the return calls it."""
    new: NewReturn | None = None
    """In the selector dialect: a return that is not there yet."""
    now: Reached | None = None
    """In the selector dialect: the return that decides, where it changes."""
    truth: Truth | None = None
    """In the selector dialect: what is known of the workload."""
    types: Mapping[str, str] = field(default_factory=dict)
    """In the selector dialect: what names a type, and the enumeration of its names."""
    unsaid: Mapping[str, MemberRule] = field(default_factory=dict)
    """What later families say, and this one leaves to its policy: the load modifier of sm90."""

    def naming(self, trait: str) -> "Destination":
        """A return for one of the types alone, beside the one for all."""
        assert self.truth is not None, "it is a return"
        condition = f"{trait} == {self.types[trait]}::{self.truth.traits[trait]}"
        if self.new:
            return replace(self, new=self.new.naming(condition))
        assert self.now is not None, "a return that changes is there"
        facts = (*self.now.entry.args, condition)
        return replace(self, new=NewReturn(Inside(self.now, condition), facts, self.truth))

    @property
    def is_new(self) -> bool:
        """Whether the header does not have it yet."""
        return self.name != self.family.name

    @property
    def place(self) -> tuple[str, str, str]:
        """What is the same for all entries of the family."""
        return self.family.header, self.family.namespace, self.name


SpotLike = TypeVar("SpotLike", bound="Spot")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a workload's values would be written."""

    told: Told
    to: Destination

    @property
    def args(self) -> tuple[str, ...]:
        """The workload's key, as the compiler prints it."""
        return self.to.new.facts if self.to.new else self.told.leads[self.to.family.name].args

    @property
    def entry(self) -> Entry | None:
        """The entry that has the key now; none in a family that is new."""
        if self.to.new:
            return None
        lead = self.told.leads[self.to.family.name].entry
        if lead is None or self.to.is_new or lead[1].kind == "primary":
            return None
        return lead[1]

    @property
    def key(self) -> EntryKey:
        """Under which an entry would be added."""
        return EntryKey(self.args) if self.to.new else general_key(self.to.family, self.args)

    @property
    def header(self) -> str:
        """Where it would be written."""
        return self.to.family.header

    @property
    def place(self) -> object:
        """What is the same for all workloads of one entry."""
        entry = self.entry
        return *self.to.place, entry.span if entry else self.key.slots


@dataclass(frozen=True, slots=True)
class Case(Spot):
    """One measured workload and where its result would be written."""

    measurement: Measurement

    @property
    def types(self) -> Mapping[int | str, str]:
        """The types by which it can be told from others: arguments, or traits."""
        if self.to.fields:
            return {name: str(self.told.traits[name]) for name in self.to.types}
        return {place: self.args[place] for place in type_positions(self.to.family)}

    def naming(self, place: int | str) -> tuple["Case", EntryKey]:
        """It in an entry or a return for one of its types, and the key of that."""
        if not isinstance(place, str):
            return self, named_key(self.to.family, self.args, place)
        case = replace(self, to=self.to.naming(place))
        return case, case.key

    @property
    def choice(self) -> Choice:
        """What the rules say of its variants."""
        return self.measurement.choice

    def target(self, named: EntryKey | None = None) -> Target:
        """The entry that decides it, now or afterwards; one that names its type where there is."""
        entry = None if named else self.entry
        slots = (named or self.key).slots if entry is None else entry.args
        return Target(
            header=self.to.family.header,
            namespace=self.to.family.namespace,
            family=self.to.name,
            args=tuple(slot or "·" for slot in slots),
            line=entry.line if entry else None,
        )

    def rejected(self, reason: str) -> Action:
        """It stays as it is."""
        return self.measurement.rejected(reason, self.target(), self.told.values)

    def members(self, label: str) -> dict[str, str]:
        """The values of an entry for one of the variants."""
        parameters = self.measurement.parameters(label)
        then = self.measurement.recorded.benchmark
        for name, value in then.fixed.items():
            if parameters.get(name, value) != value:
                raise InputError(
                    f"{self.header} has no place for {name}, and stands for {name}_{value}"
                )
        return member_values(self.to.binding, then, parameters, self.told.sizes)

    def expected(self, members: Mapping[str, str], label: str) -> dict[str, Value]:
        """What its policy shows when it takes these values, and is what was measured."""
        shown = expected_values(self.to.site, self.to.binding, members, self.told.sizes)
        return {**self.unsaid(label), **shown}

    def unsaid(self, label: str) -> dict[str, Value]:
        """The values of a variant that its policy shows, and no member of an entry says."""
        measured = self.measurement.parameters(label)
        rules = {m: r for m, r in self.to.unsaid.items() if r.parameters <= measured.keys()}
        like = self.to.binding.model_copy(update={"members": rules})
        then = self.measurement.recorded.benchmark
        members = member_values(like, then, measured, self.told.sizes)
        wanted = expected_values(self.to.site, like, members, self.told.sizes)
        return {name: value for name, value in wanted.items() if name in self.told.values}

    def has(self, members: Mapping[str, str], label: str) -> bool:
        """Whether its policy shows these values now."""
        wanted = self.expected(members, label)
        return all(self.told.values.get(name) == value for name, value in wanted.items())


def by_entry(cases: Sequence[SpotLike]) -> list[list[SpotLike]]:
    """Workloads that one entry decides, in the order of their first."""
    groups: dict[object, list[SpotLike]] = {}
    for case in cases:
        groups.setdefault(case.place, []).append(case)
    return list(groups.values())
