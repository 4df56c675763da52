"""CUB's selections for workloads on architectures, and differences between two of them."""

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
"""The name of a policy's type where its arguments are its values."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class FamilyKey:
    """The arguments with which a policy uses a family, and the entry that they select."""

    args: tuple[str, ...]
    """As the compiler prints them."""
    entry: tuple[Family, Entry] | None = None
    """`None` if the family is only declared."""
    number: int = -1
    """The entry's number in a marked header."""


@dataclass(frozen=True, slots=True)
class PolicyFields:
    """All fields of a policy, including those that no binding names."""

    values: Values
    """Path → number for an aggregate; the type with its arguments for other policies."""
    shown: frozenset[str]
    """The fields that a binding shows as values."""

    def unlike(self, other: "PolicyFields") -> tuple[str, ...]:
        """Returns the fields that differ, except as a field that a binding shows does.

        CUB repeats values in several parts of a policy, such as `single_tile` and `multi_tile`.
        """
        common = [name for name in self.values if name in other.values]
        pairs = {name: (self.values[name], other.values[name]) for name in common}
        differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        explained = {(_last(name), pair) for name, pair in differ.items() if name in self.shown}
        return tuple(name for name, pair in differ.items() if (_last(name), pair) not in explained)


def is_named(field: str) -> bool:
    """Returns whether the name of a field is known."""
    return field != WHOLE and "[" not in field


def _last(path: str) -> str:
    return path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Selected:
    """The policy of one workload on one architecture."""

    values: Values
    """Empty if they were not requested, or if their translation unit does not compile."""
    entry: tuple[Family, Entry] | None = None
    """The entry that shows in the policy, if entries were requested."""
    keys: Mapping[str, FamilyKey] = field(default_factory=dict)
    """By family."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Role → bytes for the roles whose sizes scale a count."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Value → type of its member, where entries declare members."""
    traits: Values = field(default_factory=dict)
    """For a policy selector, its facts about the workload's types."""
    number: int | None = None
    """The entry's number in a marked header."""
    since: str | None = None
    """For a return, the architecture since which the policy is the same; `None` for defaults."""
    fields: PolicyFields | None = None
    """The whole policy; `None` if it was not requested or cannot be decomposed."""


def differs(before: Selected, after: Selected) -> bool:
    """Returns whether two policies differ in anything."""
    return in_full(before, after) != (before.values, before.values)


def in_full(before: Selected, after: Selected) -> tuple[Values, Values]:
    """Returns the values of both, with the differing fields that no binding names."""
    return with_unnamed(before.values, before.fields, after.values, after.fields)


def with_unnamed(
    old: Values, before: PolicyFields | None, new: Values, after: PolicyFields | None
) -> tuple[Values, Values]:
    """Like `in_full`, for values and fields that are stored separately."""
    if before is None or after is None:
        return old, new
    names = [name for name in before.unlike(after) if is_named(name) or old == new]
    old_with_unnamed = {**old, **{name: before.values[name] for name in names}}
    return old_with_unnamed, {**new, **{name: after.values[name] for name in names}}


@dataclass(frozen=True, slots=True)
class DeltaRow(Generic[Row]):
    """The results of two selections for a workload on an architecture."""

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
        """The workload as a key."""
        return self.benchmark, self.workload


@dataclass(frozen=True, slots=True)
class Delta(Generic[Row]):
    """Differences between two selections."""

    archs: tuple[str, ...]
    compared: int
    """Workloads times architectures."""
    changes: tuple[DeltaRow[Row], ...]
    between: frozenset[str] = frozenset()
    """The architectures that stand for an interval without known GPUs."""


def delta(
    before: Mapping[Spot, Row],
    after: Mapping[Spot, Row],
    unlike: Callable[[Row, Row], bool],
    absent: Row,
    between: frozenset[str] = frozenset(),
) -> Delta[Row]:
    """Compares two selections in the order of the later one; `absent` stands for a missing row."""
    changes = []
    all_spots = {**after, **before}
    for spot in all_spots:
        row_before, row_after = before.get(spot, absent), after.get(spot, absent)
        if unlike(row_before, row_after):
            (benchmark, workload), arch = spot
            changes.append(DeltaRow(benchmark, workload, arch, row_before, row_after))
    archs = sorted({arch for _, arch in all_spots}, key=arch_number)
    return Delta(tuple(archs), len(all_spots), tuple(changes), between & {*archs})


# Selected values and where they come from

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
        """The entry's name."""
        return entry_name(self.family, self.args)

    @classmethod
    def of(cls, family: Family, entry: Entry, **extra: Any) -> Self:
        """Returns the place of an entry; `extra` are the fields of a subclass."""
        return cls(
            header=family.header,
            namespace=family.namespace,
            family=family.name,
            args=entry.args,
            line=entry.line,
            **extra,
        )


class DisabledEntry(EntryPlace):
    """An entry that is commented out, or excluded by `#if 0`."""

    reason: str | None
    """What the header says about it."""

    @property
    def place(self) -> EntryPlace:
        """The place without the fields of the subclass."""
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


# Effects of a change of the headers

Role = Literal["written", "shared", "later"]
"""Why a workload may change.

`written`: it was tuned. `shared`: the same entry decides it. `later`: it inherits, and was allowed
to.
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
        suffix = " by struct families" if self.legacy else ""
        return f"{super().name} on {self.arch}{suffix}"


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
        """The architectures in words: listed unless there are others between them."""
        if not self.between:
            return ", ".join(self.archs)
        first, *_, last = (arch for arch in self.archs if arch not in self.between)
        return f"{first} to {last}, and all between and after them"
