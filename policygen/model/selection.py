"""What CUB selects for workloads on architectures, and what differs between two selections."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from policygen.model.arch import Arch, arch_number
from policygen.model.records import Document, Problem, Record
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, Value, entry_name
from policygen.model.workload import OnArch, Point, in_words

Spot = tuple[Point, str]
"""A workload on an architecture."""
Values = Mapping[str, Value]
WHOLE = "policy"
"""What the type of a policy is called, where its arguments are its values."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class FamilyKey:
    """The arguments with which a policy asks a family, and the entry that they lead to."""

    args: tuple[str, ...]
    """As the compiler prints them."""
    entry: tuple[Family, Entry] | None = None
    """None where the family only declares itself."""
    number: int = -1
    """The entry's, in a marked header."""


@dataclass(frozen=True, slots=True)
class PolicyFields:
    """All that a policy holds, also what no binding names."""

    values: Values
    """Path → number, of an aggregate; of other policies their type with its arguments."""
    shown: frozenset[str]
    """Those that values of a binding show."""

    def unlike(self, other: "PolicyFields") -> tuple[str, ...]:
        """The fields of both that differ, but for those that do so as what a binding shows.

        CUB gives several parts of a policy the same: `single_tile` has what `multi_tile` has.
        """
        both = [name for name in self.values if name in other.values]
        pairs = {name: (self.values[name], other.values[name]) for name in both}
        differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        known = {(_last(name), pair) for name, pair in differ.items() if name in self.shown}
        return tuple(name for name, pair in differ.items() if (_last(name), pair) not in known)


def is_named(field: str) -> bool:
    """Whether it is known what a field is called."""
    return field != WHOLE and "[" not in field


def _last(path: str) -> str:
    return path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Selected:
    """What one workload gets on one architecture."""

    values: Values
    """Empty where they were not asked for, or where their unit does not compile."""
    entry: tuple[Family, Entry] | None = None
    """The entry that shows in the policy, where entries were asked for."""
    keys: Mapping[str, FamilyKey] = field(default_factory=dict)
    """By family."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Role → bytes, of the roles whose sizes scale a count."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Value → the type that a member with it has, where entries declare members."""
    traits: Values = field(default_factory=dict)
    """Of a policy selector: what it knows of the workload's types."""
    number: int | None = None
    """That of the entry, in a marked header."""
    since: str | None = None
    """Where a policy is a return: the arch since which it is the same; none for defaults."""
    fields: PolicyFields | None = None
    """All of the policy; none where it was not asked for, or cannot be taken apart."""


def differs(before: Selected, after: Selected) -> bool:
    """Whether two policies differ in anything."""
    return in_full(before, after) != (before.values, before.values)


def in_full(before: Selected, after: Selected) -> tuple[Values, Values]:
    """The values of both, with those fields that differ and that no binding names."""
    return with_unnamed(before.values, before.fields, after.values, after.fields)


def with_unnamed(
    old: Values, before: PolicyFields | None, new: Values, after: PolicyFields | None
) -> tuple[Values, Values]:
    """The same of values and fields that are kept apart."""
    if before is None or after is None:
        return old, new
    names = [name for name in before.unlike(after) if is_named(name) or old == new]
    first = {**old, **{name: before.values[name] for name in names}}
    return first, {**new, **{name: after.values[name] for name in names}}


@dataclass(frozen=True, slots=True)
class DeltaRow(Generic[Row]):
    """What two selections say of a workload on an architecture."""

    benchmark: str
    workload: tuple[tuple[str, str], ...]
    arch: str
    before: Row
    after: Row

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark, dict(self.workload))

    @property
    def point(self) -> Point:
        """What changes."""
        return self.benchmark, self.workload


@dataclass(frozen=True, slots=True)
class Delta(Generic[Row]):
    """What differs between two selections."""

    archs: tuple[str, ...]
    compared: int
    """Workloads times architectures."""
    changes: tuple[DeltaRow[Row], ...]
    between: frozenset[str] = frozenset()
    """Those of the architectures that stand for an interval in which no GPU is known."""


def delta(
    before: Mapping[Spot, Row],
    after: Mapping[Spot, Row],
    unlike: Callable[[Row, Row], bool],
    absent: Row,
    between: frozenset[str] = frozenset(),
) -> Delta[Row]:
    """Compares two selections, in the order of the later; `absent` stands for what one lacks."""
    changes = []
    spots = {**after, **before}
    for spot in spots:
        was, now = before.get(spot, absent), after.get(spot, absent)
        if unlike(was, now):
            (benchmark, workload), arch = spot
            changes.append(DeltaRow(benchmark, workload, arch, was, now))
    archs = sorted({arch for _, arch in spots}, key=arch_number)
    return Delta(tuple(archs), len(spots), tuple(changes), between & {*archs})


# Which values CUB selects for a workload on an architecture, and where they come from.

Status = Literal["tuned", "inherited", "default"]


class EntryPlace(Record):
    """An entry, by where it stands."""

    header: str
    namespace: str = ""
    family: str
    args: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        """In words."""
        return entry_name(self.family, self.args)

    @classmethod
    def of(cls, family: Family, entry: Entry, **more: Any) -> Self:
        """The place of an entry; `more` is what a kind of it tells besides."""
        return cls(
            header=family.header,
            namespace=family.namespace,
            family=family.name,
            args=entry.args,
            line=entry.line,
            **more,
        )


class DisabledEntry(EntryPlace):
    """An entry that is commented out, or excluded by `#if 0`."""

    reason: str | None
    """What the header says about it."""

    @property
    def place(self) -> EntryPlace:
        """Where it stands."""
        return EntryPlace(**self.model_dump(include=set(EntryPlace.model_fields)))


class ResolvedRow(OnArch):
    """One workload on one architecture."""

    values: dict[str, Value]
    entry: EntryPlace | None
    status: Status
    since: Arch | None = None
    """The arch that the values were tuned for; none for defaults."""
    note: str | None = None
    """What the headers' text suggests and the compiler does not confirm."""
    passed: EntryPlace | None = None
    """The entry that has the workload's key and is not selected."""
    disabled: DisabledEntry | None = None
    """An entry that would decide the workload if it were not disabled."""
    fields: SkipJsonSchema[PolicyFields | None] = Field(default=None, exclude=True, repr=False)
    """All of the policy, for comparisons; it is no part of the document."""


class Unresolved(Record):
    """A benchmark that could not be asked about, and why."""

    benchmark: str
    reason: str
    header: str = ""
    """The one that decides it."""


class Resolution(Document):
    """What `policygen resolve --json` prints."""

    format: Literal["policygen/resolve/1"] = "policygen/resolve/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    rows: tuple[ResolvedRow, ...]
    remarks: tuple[str, ...] = ()
    """Of the tree and the bindings: a version of CUB that they were not tried with."""
    unresolved: tuple[Unresolved, ...] = ()
    problems: tuple[Problem, ...] = ()


class Differing(OnArch):
    """One workload whose values differ between two trees; none where a tree lacks it."""

    before: dict[str, Value] | None
    after: dict[str, Value] | None
    changed: tuple[str, ...]
    """The names of the values that differ."""
    entry_before: EntryPlace | None = None
    entry_after: EntryPlace | None = None
    passed: SkipJsonSchema[tuple[EntryPlace, ...]] = Field(default=(), exclude=True, repr=False)
    """Entries that have the workload's key before or after, and are not selected; no part of the
    document."""
    legacy: bool = False
    """Whether it is what struct families beside a policy selector give."""


class Comparison(Document):
    """What `policygen resolve --compare TREE --json` prints."""

    format: Literal["policygen/resolve-compare/1"] = "policygen/resolve-compare/1"
    before: Cub
    after: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    compared: int
    """Workloads times architectures."""
    different: tuple[Differing, ...]
    remarks: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()


# What a change of the headers does to what CUB selects.

Role = Literal["written", "shared", "later"]
"""Why a workload may change.

`written`: it is one that was tuned. `shared`: the same entry decides it. `later`: it inherits, and
was allowed to.
"""


class Changed(OnArch):
    """A workload that resolves to something else, as it shall."""

    role: Role
    before: dict[str, Value]
    after: dict[str, Value]
    legacy: bool = False
    """Whether it is what a struct family beside a policy selector gives."""


class Wrong(OnArch):
    """A workload that does not resolve to what it shall."""

    reason: str
    before: dict[str, Value] | None = None
    after: dict[str, Value] | None = None
    legacy: bool = False
    """Whether it is what a struct family beside a policy selector gives."""

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32 on sm90`."""
        by = " by struct families" if self.legacy else ""
        return f"{super().name} on {self.arch}{by}"


class Effect(Document):
    """What `policygen verify-effect --json` prints."""

    format: Literal["policygen/effect/1"] = "policygen/effect/1"
    cub: Cub
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    toolchain: str
    headers: tuple[str, ...]
    archs: tuple[Arch, ...]
    between: tuple[Arch, ...] = ()
    """Those of which no GPU is known: each stands for all up to the next that is known."""
    compared: int
    """Workloads times architectures."""
    changed: tuple[Changed, ...]
    wrong: tuple[Wrong, ...] = ()

    @property
    def covered(self) -> str:
        """The architectures in words: one by one, where nothing lies between them."""
        if not self.between:
            return ", ".join(self.archs)
        first, *_, last = (arch for arch in self.archs if arch not in self.between)
        return f"{first} to {last}, and all between and after them"
