"""What a dialect does: all else asks this, and never how an entry is spelled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policygen.bindings.load import Bound, bound
from policygen.bindings.variants import (
    by_print,
    expected_values,
    member_values,
    type_name,
    value_name,
)
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.edits import AddedMember, Content, Edit, Marked, Slot
from policygen.model.plans import Target
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.trees import Cub, plain
from policygen.model.trees import Dialect as trees_Dialect
from policygen.model.tuning import Entry, Family, TuningHeader, Value, spell
from policygen.model.workload import Point

Tell = Callable[[Sequence[Point], str], Mapping[Point, Selected]]
"""What the compiler selects for workloads on an architecture."""
TypeName = int | str
"""One of the types that a workload is told from others by: an argument, or what names a type."""


@dataclass(frozen=True, slots=True)
class TuningTree:
    """A tree: what its headers hold, and their bytes."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Spot(ABC):
    """Where the values of a workload go: the entry that has it, or one that is to be added."""

    told: Selected

    @property
    @abstractmethod
    def target(self) -> Target:
        """The entry that decides the workload, now or afterwards."""

    @property
    @abstractmethod
    def header(self) -> str:
        """Where it is written."""

    @property
    @abstractmethod
    def entry(self) -> Entry | None:
        """The one whose values change; none where one is added."""

    @property
    @abstractmethod
    def place(self) -> object:
        """What is the same for all workloads of one entry."""

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The types by which the workload can be told from others."""
        return {}

    def naming(self, name: TypeName) -> "Spot":
        """Of an entry for one of its types alone."""
        raise NotImplementedError(name)

    @property
    def named(self) -> str:
        """The type that its entry names, besides what it names anyway."""
        return ""

    @property
    def general(self) -> "Spot":
        """The same where nothing needs to be written for one of the types."""
        return self

    @property
    def narrower(self) -> "Spot | None":
        """Of an entry that names its types, where the one that it has decides others, too."""
        return None

    @property
    def ahead(self) -> bool:
        """Whether what is added comes before what decides now, and takes all that it not names."""
        return False

    @property
    def unsure(self) -> bool:
        """Whether a header with what is added may not compile."""
        return self.ahead

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added: it would take others, too."""
        return None

    @property
    def alone(self) -> bool:
        """Whether a reason needs no names of the others that its entry decides."""
        return False

    @abstractmethod
    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The values of an entry for a variant of the benchmark as it was measured."""

    @abstractmethod
    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the policy shows with these values."""

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """The values of a variant that the policy shows, and no member of an entry says."""
        del measured, variant
        return {}

    def saying(self, measured: BenchmarkBinding, shown: Values) -> "Spot | None":
        """The same with an entry that says more of a variant; none where none can.

        `shown` has by value what the policy gives an entry that does not say it.
        """
        del measured, shown
        return None

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """What the policy shows when it has the values that are wanted."""
        return {**self.told.values, **wanted}

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """What an entry with these values holds."""
        return Content("values", members, label=label)

    def kept(self, name: str) -> Content:
        """What gives the workload what it has now, where a broader entry would take it."""
        raise InputError(f"no entry can keep what {name} has")

    def takes(self, other: "Spot") -> bool:
        """Whether what is written here decides another workload, or may."""
        return other.place == self.place

    def lost(self, found: str) -> str:
        """That the workload does not get what is written for it, but what was found."""
        return f"would have {found}"


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """One entry to write, and the workloads that it is for."""

    spots: tuple[Spot, ...]
    content: Content
    reason: str
    points: frozenset[Point] = frozenset()
    """The workloads that were measured."""

    @property
    def header(self) -> str:
        """Where it is written."""
        return self.spots[0].header


@dataclass(slots=True)
class HeaderEdits:
    """What changes in one header."""

    edits: list[Edit] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)


class Dialect(Protocol):
    """One way to spell tunings, in the headers of one tree and for one architecture."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """The entries of a header that are spelled so, by family."""

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """A copy of a header in which each entry can be recognised; `members` carry the marks."""

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark that has no place, whatever is selected for its workloads."""

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> Spot:
        """The entry of a workload, or where one goes."""

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> Spot | None:
        """The same where later architectures do not get to it; none where there is no such."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Entries as edits of a header; those for one place are one edit."""

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """Entries that keep for later architectures what a change would take; refused or none."""


class NotKeptError(Exception):
    """Workloads that no entry can keep as they are for later architectures, and why not each."""

    def __init__(self, told: Sequence[tuple[DeltaRow[Values], str]]) -> None:
        super().__init__(told[0][1])
        self.told = told


# What is the same for entries of all families of a tree: parameters become members and values.


@dataclass(frozen=True, slots=True)
class FamilySpot(Spot, ABC):
    """A place in a family of a header."""

    site: Site
    binding: FamilyBinding
    family: Family
    """In the header; for a new one the family that it is made after."""
    name: str
    """`sm120_tuning`."""
    unsaid_members: Mapping[str, MemberRule] = field(default_factory=dict, kw_only=True)
    """What later families say, and this one leaves to its policy: the load modifier of sm90."""
    added: Mapping[str, AddedMember] = field(default_factory=dict, kw_only=True)
    """Members that entries are made to say, and that the policy does not read yet."""

    @property
    def header(self) -> str:
        """Where it is written."""
        return self.family.header

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """What an entry that is added asks for."""

    @property
    def target(self) -> Target:
        """The entry that decides the workload, now or afterwards."""
        entry = self.entry
        return Target(
            header=self.family.header,
            namespace=self.family.namespace,
            family=self.name,
            args=tuple(slot or "·" for slot in (entry.args if entry else self.slots)),
            line=entry.line if entry else None,
        )

    @property
    def place(self) -> object:
        """What is the same for all workloads of one entry."""
        entry = self.entry
        return *self.in_family, entry.span if entry else self.slots

    @property
    def in_family(self) -> tuple[str, str, str]:
        """What is the same for all entries of the family."""
        return self.family.header, self.family.namespace, self.name

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The values of an entry for a variant of the benchmark as it was measured."""
        rules = (*self.unsaid_members.values(), *self.binding.members.values())
        said = {name for rule in rules for name in rule.parameters}
        if lost := [name for name in variant if name not in said and name not in measured.fixed]:
            raise InputError(f"{self.header} has no place for {', '.join(lost)}")
        for name, value in measured.fixed.items():
            if name not in said and variant.get(name, value) != value:
                raise InputError(
                    f"{self.header} has no place for {name}, and stands for {name}_{value}"
                )
        return member_values(self.binding, measured, variant, self.told.sizes)

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """The values of a variant that the policy shows, and no member of an entry says."""
        rules = {m: r for m, r in self.unsaid_members.items() if r.parameters <= variant.keys()}
        like = self.binding.model_copy(update={"members": rules})
        members = member_values(like, measured, variant, self.told.sizes)
        wanted = {
            **measured.always,
            **expected_values(self.site, like, members, self.told.sizes),
        }
        said = {value_name(self.site, *rule) for rule in self.binding.members.items()}
        return {n: v for n, v in wanted.items() if n in self.told.values and n not in said}

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """Without the values of another algorithm than the one that is wanted."""
        found = {**self.told.values, **wanted}
        used = self.site.used_by.get(str(wanted.get(words().values.algorithm)))
        if used is None:
            return found
        others = {name for names in self.site.used_by.values() for name in names} - {*used}
        return {name: value for name, value in found.items() if name not in others}

    def rule_for(self, measured: BenchmarkBinding, name: str) -> tuple[str, MemberRule | None]:
        """How an entry says a value that its family leaves to the policy, and by which member."""
        for member, rule in self.unsaid_members.items():
            if value_name(self.site, member, rule) == name:
                return member, rule
        constant = measured.always.get(name)
        return name, None if constant is None else MemberRule(constant=spell(constant))

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the policy shows with these values."""
        return expected_values(self.site, self.binding, members, self.told.sizes)


ANY_OTHER = "other"
"""The type of all that CUB has no name for."""


# Types that entries can name.


def can_name(arg: str) -> bool:
    """Whether an entry can name a type that the compiler prints."""
    known = type_name(arg) in by_print() or arg.replace(" ", "").isidentifier()
    return known and arg != ANY_OTHER


Insertion = tuple[int, str, str]
"""Where it goes, what, and why."""


# Text that goes to one place of a header as one edit.


def with_insertions(edits: Iterable[Edit], insertions: Iterable[Insertion]) -> list[Edit]:
    """Edits with what is inserted besides, in the order of the header."""
    found = list(edits)
    added: dict[int, list[tuple[str, str]]] = {}
    for at, text, reason in insertions:
        added.setdefault(at, []).append((text, reason))
    for at, texts in added.items():
        # The label that an update puts above its entry stands behind a new entry at that place.
        there = [edit for edit in found if edit.span == (at, at)]
        found = [edit for edit in found if edit not in there]
        for edit in there:
            _add(texts, edit)
        joined = _joined([text for text, _ in texts])
        reason = "; ".join(dict.fromkeys(reason for _, reason in texts))
        found.append(Edit(span=Span(at, at), old="", new=joined, reason=reason))
    return sorted(found, key=lambda edit: edit.span)


def _add(texts: list[tuple[str, str]], edit: Edit) -> None:
    """What an edit puts to the place of insertions; a blank line that they have is not doubled."""
    first, last = texts[0][0], texts[-1][0]
    blank = not edit.new.strip()
    if blank and (first.startswith(edit.new * 2) or last.endswith(edit.new * 2)):
        return
    at = 0 if blank and first.startswith(edit.new) else len(texts)
    texts.insert(at, (edit.new, edit.reason))


def _joined(texts: Iterable[str]) -> str:
    """One behind the other; the blank line between two is not doubled."""
    found = ""
    for text in texts:
        line = "\r\n" if text.startswith("\r\n") else "\n"
        if text.startswith(line * 2) and found.endswith(line):
            found = found.removesuffix(line)
        found += text
    return found


# Where CUB decides a benchmark's workloads, in each dialect.


def site_of(
    benchmark: BenchmarkBinding, version: str, dialect: trees_Dialect
) -> tuple[Bound, Site]:
    """The site in a dialect, and the algorithm that it is of."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, dialect)
            if site is not None:
                return algorithm, site
    raise InputError(f"{benchmark.name} has no family of tunings in CUB {plain(version)}")
