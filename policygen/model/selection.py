"""CUB's selections for workloads on architectures, and differences between two of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from policygen.errors import plural
from policygen.model.arch import Arch, arch_number
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.records import Document, Problem, Record
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, Value, entry_name
from policygen.model.workload import OnArch, Point, in_words

Spot = tuple[Point, str]
"""A workload on an architecture."""
Values = Mapping[str, Value]
ANY_OTHER = "other"
"""The type trait of types that CUB has no name for."""
WHOLE = "policy"
"""The name of a policy's type, if its arguments are the values."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class FamilyKey:
    """The arguments with which a policy uses a family, and the entry that they select."""

    args: tuple[str, ...]
    """The arguments, as printed by the compiler."""
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
    """The fields that a binding exposes as values."""

    def unlike(self, other: "PolicyFields") -> tuple[str, ...]:
        """Returns the fields that differ other than through a field that a binding exposes.

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
    """Role → size in bytes, for roles that scale a count."""
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

Status = Literal["tuned", "inherited", "default", "unknown"]
"""`unknown`: entries of the header cannot show in what its bindings ask for."""


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

    @property
    def where(self) -> str:
        """Header and line: `tuning_scan.cuh:42`."""
        return f"{self.header}:{self.line}"

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
    """What the text of the headers suggests but the compiler does not confirm."""
    passed: EntryPlace | None = None
    """The entry that has the workload's key but is not selected."""
    disabled: DisabledEntry | None = None
    """An entry that would decide the workload if it were not disabled."""
    fields: SkipJsonSchema[PolicyFields | None] = Field(default=None, exclude=True, repr=False)
    """The complete policy, for comparisons; not part of the document."""


class Unresolved(Record):
    """A benchmark that could not be resolved, and why."""

    benchmark: str
    reason: str
    header: str = ""
    """The entry that decides it."""


def asked_of(toolchain: str, conditions: Sequence[str]) -> list[str]:
    """Says on one line what the headers ask of the compiler: another can select otherwise."""
    text = f"with {toolchain}; another compiler can select otherwise: {'; '.join(conditions)}"
    return [text] if conditions else []


class Resolution(Document):
    """What `policygen resolve --json` prints."""

    format: Literal["policygen/resolve/1"] = "policygen/resolve/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    rows: tuple[ResolvedRow, ...]
    remarks: tuple[str, ...] = ()
    """Remarks, for example about a CUB version that the bindings were not tested with."""
    conditions: tuple[str, ...] = ()
    """Conditions on the compiler in the headers: another compiler may select other values."""
    unresolved: tuple[Unresolved, ...] = ()
    problems: tuple[Problem, ...] = ()


class Differing(OnArch):
    """A workload with different values in two trees; null if a tree lacks it."""

    before: dict[str, Value] | None
    after: dict[str, Value] | None
    changed: tuple[str, ...]
    """The names of the values that differ."""
    entry_before: EntryPlace | None = None
    entry_after: EntryPlace | None = None
    passed: SkipJsonSchema[tuple[EntryPlace, ...]] = Field(default=(), exclude=True, repr=False)
    """Entries with the workload's key that are not selected; not part of the document."""
    legacy: bool = False
    """Whether the values come from struct families next to a policy selector."""


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


class InputChange(Record):
    """Inputs of a policy selector, or calls of an algorithm, that get other values."""

    header: str
    selector: str
    """`reduce::policy_selector`, or the hub of a chain of policies."""
    archs: tuple[Arch, ...]
    conditions: tuple[str, ...]
    """What the inputs have in common: `accum_size is 4`. None if all inputs change."""
    values: dict[str, str]
    """Field → values before and after: `256 → 416`."""
    examples: tuple[str, ...] = ()
    """Benchmarks' workloads among them; none if no benchmark measures these inputs."""
    leaks: tuple[Arch, ...] = ()
    """The architectures on which the change is not meant to have an effect."""

    @property
    def text(self) -> str:
        """What changes, where, and how, without the examples."""
        where = " and ".join(self.conditions) or "all inputs"
        values = ", ".join(f"{name} {change}" for name, change in self.values.items())
        return f"{self.selector} on {', '.join(self.archs)}: {where}: {values}"

    def is_measured(self, headers: Collection[str]) -> bool:
        """Returns whether results for some headers measure some of the inputs."""
        return bool(self.examples) and self.header in headers and not self.leaks

    @property
    def measured_by(self) -> str:
        """Benchmarks' workloads among the inputs, in words."""
        if not self.examples:
            return "no benchmark"
        more = f" and {len(self.examples) - 1:,} more" if len(self.examples) > 1 else ""
        return f"{self.examples[0]}{more}"


# Effects of a change of the headers

Role = Literal["written", "shared", "later"]
"""Why a workload may change. `written`: it was tuned. `shared`: the same entry decides it. `later`:
it inherits, as allowed.
"""


class Changed(OnArch):
    """A workload that changed as intended."""

    role: Role
    before: dict[str, Value]
    after: dict[str, Value]
    legacy: bool = False
    """Whether the values come from a struct family next to a policy selector."""


class Wrong(OnArch):
    """A workload that does not resolve as intended."""

    reason: str
    before: dict[str, Value] | None = None
    after: dict[str, Value] | None = None
    legacy: bool = False
    """Whether the values come from a struct family next to a policy selector."""

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
    """Architectures without a known GPU; each stands for all up to the next known one."""
    compared: int
    """Workloads times architectures."""
    changed: tuple[Changed, ...]
    wrong: tuple[Wrong, ...] = ()
    conditions: tuple[str, ...] = ()
    """What the changed headers ask of the compiler: the proof is for its answers."""
    inputs: tuple[InputChange, ...] = ()
    """All inputs of selectors, and calls that no benchmark makes, that get other values."""
    inputs_compared: int = 0
    """Inputs and calls, times architectures."""
    unknown: tuple[str, ...] = ()
    """Selectors that could not be compared for all inputs, with the reasons."""

    @property
    def failures(self) -> tuple[str, ...]:
        """What the change does and was not to do."""
        leaks = (
            f"{change.text}; the results do not measure {', '.join(change.leaks)}"
            for change in self.inputs
            if change.leaks
        )
        wrong = (f"{failure.name}: {failure.reason}" for failure in self.wrong)
        return (*wrong, *leaks)

    @property
    def covered(self) -> str:
        """The architectures in words: listed unless there are others between them."""
        if not self.between:
            return ", ".join(self.archs)
        first, *_, last = (arch for arch in self.archs if arch not in self.between)
        return f"{first} to {last}, and all architectures between and after them"

    @property
    def summary(self) -> str:
        """The outcome: `1 workload changed as written, 431 as before (nvcc 13.2.86; …)`."""
        written = sum(workload.role == "written" for workload in self.changed)
        parts = [f"{plural(written, 'workload')} changed as written"]
        if other_count := len(self.changed) - written:
            parts.append(f"{other_count} that share an entry or inherit")
        if self.wrong:
            parts.append(f"{len(self.wrong)} wrong")
        if leaks := sum(bool(change.leaks) for change in self.inputs):
            parts.append(f"{leaks} leaking to other architectures")
        same = self.compared - len(self.changed) - len(self.wrong)
        parts.append(f"{same:,} as before")
        others = {row.selector for row in self.inputs if not row.is_measured(self.headers)}
        parts += [f"{', '.join(sorted(others))} changed, too"] if others else []
        text = ", ".join(parts)
        return f"{text} ({self.toolchain}; {self.covered})"


# Whole policies according to the compiler: all fields of a selector's result


@dataclass(frozen=True, slots=True)
class Question:
    """A query to a policy selector for the workloads of one benchmark."""

    site: Site
    benchmark: BenchmarkBinding
    selector: str
    """The policy selector, in terms of the workload's roles."""
    fields: tuple[str, ...]
    """Paths in the policy, such as `multi_tile.items_per_thread`."""
    roles: tuple[str, ...] = ()
    """Roles whose types or values to return, too."""
    arguments: tuple[tuple[str, bool], ...] = ()
    """C++ in terms of roles to return, too, and whether it is a type."""
    sized: tuple[str, ...] = ()
    """Roles whose sizes to return."""
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """A selector's result for a workload on an architecture, spelled as in C++."""

    fields: Mapping[str, str]
    roles: Mapping[str, str]
    sizes: Mapping[str, int]
    arguments: tuple[str, ...] = ()


Policies = Mapping[tuple[Point, str], Whole]
"""By workload and architecture."""
