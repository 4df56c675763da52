"""A guarded return in which a result is written, or one that is not there yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policygen.bindings.words import words
from policygen.dialects.family_spot import FamilySpot
from policygen.dialects.protocol import Spot, TypeName
from policygen.dialects.provenance import EXPLICIT, known_label
from policygen.dialects.selectors.arch_blocks import ArchBlock
from policygen.dialects.selectors.arch_functions import ArchFunction
from policygen.dialects.selectors.conditions import simplest
from policygen.dialects.selectors.nearest import BeforeReturn, BesideReturn, EmptyCase, KnownReturn
from policygen.dialects.selectors.truth import Truth
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.entry_text import AddedMember, Content, Slot
from policygen.model.selection import Selected, Values
from policygen.model.tuning import Entry, spell


@dataclass(frozen=True, slots=True)
class NewReturn:
    """A guarded return that is to be written."""

    at: BesideReturn | EmptyCase | ArchBlock | ArchFunction | BeforeReturn
    facts: tuple[str, ...]
    """What holds where it stands: the same for all workloads that get it."""
    truth: Truth
    """Of the workload that it is for."""

    def naming(self, condition: str) -> "NewReturn":
        """The same for one type alone."""
        if isinstance(self.at, EmptyCase):
            raise InputError("there is no place for a return for one type alone")
        if isinstance(self.at, BeforeReturn):
            raise InputError("it is for one type already")
        at = replace(self.at, conditions=tuple(simplest((*self.at.conditions, condition))))
        return replace(self, at=at, facts=(*self.facts, condition))

    @property
    def bounded(self) -> bool:
        """Whether later architectures do not get to it."""
        return isinstance(self.at, ArchBlock | ArchFunction) and self.at.below is not None

    def takes(self, told: Selected) -> bool:
        """Whether another workload may get it, too."""
        truth = replace(self.truth, traits=told.traits)
        return all(truth.holds(fact) is not False for fact in self.facts)


@dataclass(frozen=True, slots=True)
class GuardedReturn(FamilySpot):
    """The return that decides a workload, or one that is to decide it."""

    fields: Mapping[str, str]
    """Value → what the return calls it."""
    new: NewReturn | None = None
    """One that is not there yet."""
    now: KnownReturn | None = None
    """The one that decides, where it changes."""
    truth: Truth | None = None
    """What is known of the workload."""
    enumerations: Mapping[str, str] = field(default_factory=dict)
    """What names a type, and the enumeration of its names."""

    @property
    def entry(self) -> Entry | None:
        """The one that decides; none where one is added."""
        lead = None if self.new else self.told.keys[self.family.name].entry
        return lead and lead[1]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The conditions of a return that is added."""
        return self.new.facts if self.new else ()

    @property
    def types(self) -> Mapping[TypeName, str]:
        """What it knows of the types of a workload."""
        return {name: str(self.told.traits[name]) for name in self.enumerations}

    def naming(self, name: TypeName) -> Spot:
        """Beside the one for all."""
        assert self.truth is not None, "its header was read"
        condition = f"{name} == {self.enumerations[str(name)]}::{self.truth.traits[str(name)]}"
        if self.new:
            return replace(self, new=self.new.naming(condition))
        assert self.now is not None, "a return that changes is there"
        facts = (*self.now.entry.args, condition)
        return replace(self, new=NewReturn(BeforeReturn(self.now, condition), facts, self.truth))

    @property
    def named(self) -> str:
        """The condition for one of the types."""
        return self.new.facts[-1] if self.new else ""

    @property
    def ahead(self) -> bool:
        """Whether it comes before what decides now."""
        return self.new is not None

    def saying(self, measured: BenchmarkBinding, shown: Values) -> Spot | None:
        """With values that returns of its function do not have: the policy has to take them."""
        like = self.new.at.beside.entry if self.new else self.entry
        if like is None:
            return None
        own = {member.name.rpartition(".")[2]: member.name for member in like.members}
        rules, fields, added = {}, {}, {}
        for name, value in shown.items():
            _, rule = self.rule_for(measured, name)
            path = self.site.values.get(name, "").rpartition(".")[2]
            if rule is None or not path or name in self.binding.members:
                return None
            if path not in own and name == words().values.algorithm:
                return None  # only a return that says it already is for another algorithm
            rules[name] = rule
            fields[name] = own.get(path, path)
            if path not in own:
                added[path] = AddedMember("", spell(value))
        binding = self.binding.model_copy(update={"members": {**self.binding.members, **rules}})
        return replace(
            self,
            binding=binding,
            fields={**self.fields, **fields},
            added={**self.added, **added},
        )

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values, and which of them its function does not tell yet."""
        return Content("values", members, label=label, added=self.added)

    def kept(self, name: str) -> Content:
        """The values of the return that is for all types, before it gets others."""
        if self.now is None:
            raise InputError(f"no return can keep what {name} has")
        return Content("values", {}, label=known_label(self.now.entry.labels) or EXPLICIT)

    def takes(self, other: Spot) -> bool:
        """Whether it decides another workload, or may."""
        if self.new and other.header == self.header:
            return self.new.takes(other.told)
        return Spot.takes(self, other)
