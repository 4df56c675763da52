"""What CUB selects for workloads on architectures, and what differs between two selections."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from policygen.model.arch import arch_number
from policygen.model.tuning import Entry, Family, Value
from policygen.model.workload import Point, in_words

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
