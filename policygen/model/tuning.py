"""A tuning header's families, entries, members, provenance and policy chains, and its changes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch, arch_number, capability_number
from policygen.model.records import Record, Span
from policygen.untrusted import comment

# "class T", "typename... Ts", "int Size = 4"; not an unnamed "class"
_PARAMETER_DECLARATION = re.compile(r".*[\s.>*&](\w+)\s*(?:=.*)?$", re.DOTALL)
Value = bool | int | str
"""A constant if the header's text has one, else the spelling of an enumerator or type."""


def spell(value: Value) -> str:
    """Spells a value in C++."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def conjunction(facts: tuple[str, ...]) -> str:
    """Joins the conditions of a branch."""
    conditions = (
        f"({fact})" if "||" in fact and not fact.startswith("(") else fact for fact in facts
    )
    return " && ".join(conditions) or "otherwise"


def asks_more(facts: tuple[str, ...]) -> bool:
    """Returns whether a branch, unlike a default, depends on more than a compute capability."""
    return any(not fact.startswith("cc ") for fact in facts)


def entry_name(family: str, args: tuple[str, ...]) -> str:
    """Returns `sm90_tuning<float, …>`, or a function with the condition of its return."""
    if family.startswith("sm"):
        return f"{family}<{', '.join(args)}>"
    return f"{family}: {conjunction(args)}"


EntryKind = Literal["primary", "explicit", "partial", "branch"]


class TemplateParameter(Record):
    """One parameter of a family, as declared: `primitive_op PrimitiveOp = is_…<T>()`."""

    kind: Literal["type", "value", "template"]
    type: str
    name: str
    default: str | None
    spelling: str
    span: Span

    @property
    def label(self) -> str:
        """The name, or the type if CUB leaves it unnamed, as in `<class InputT, flagged>`."""
        return self.name or self.type


class Member(Record):
    """One `static constexpr` value or `using` alias of an entry."""

    name: str
    kind: Literal["value", "alias"]
    type: str
    """`int`, `BlockLoadAlgorithm`, …; `using` for an alias."""
    spelling: str
    value: Value | None
    """The constant; enumerators and types as spelled; else null."""
    span: Span
    value_span: Span


class Label(Record):
    """A variant as a comment records it: `ipt_20.tpb_512 1.013282  0.967525  1.015764  …`."""

    variant: str
    scores: tuple[float, ...]
    """Score, minimum, mean and maximum, as many as were typed."""
    rejected: bool
    """Whether the label belongs to commented-out values inside a live entry."""
    span: Span


class Entry(Record):
    """One specialization, or the primary template, with its byte span."""

    kind: EntryKind
    args: tuple[str, ...]
    """For a branch: its conditions in source order; earlier returns take precedence."""
    values: dict[str, Value]
    inherits: str | None
    guard: str | None
    disabled: bool
    variant: str | None
    scores: tuple[float, ...] | None
    line: int
    remarks: tuple[str, ...] = ()
    """Comments above or inside the entry; for a disabled entry they state the reason."""
    labels: tuple[Label, ...] = ()
    members: tuple[Member, ...] = ()
    template_parameters: tuple[str, ...] = ()
    """The parameters between `template <` and `>`."""
    layout: Literal["line", "block"] = "block"
    format_off: bool = False
    span: Span
    args_span: Span | None = None
    arg_spans: tuple[Span, ...] = ()
    inherits_span: Span | None = None
    body_span: Span | None = None
    """The span between the braces; null for a mere declaration."""
    comment_span: Span | None = None
    """The comment directly above, without a blank line in between."""
    guard_span: Span | None = None
    """The `#if` line of the innermost guard."""

    @property
    def own_parameters(self) -> dict[str, str]:
        """Its template parameters' declarations by name."""
        matches = ((_PARAMETER_DECLARATION.match(text), text) for text in self.template_parameters)
        return {match[1]: text for match, text in matches if match}

    @property
    def specific(self) -> bool:
        """Whether a branch depends on more than a compute capability; true for other entries."""
        return self.kind != "branch" or asks_more(self.args)

    @property
    def slots(self) -> tuple[str | None, ...]:
        """The arguments that a key must match; `None` for its own parameters, which match all."""
        own_parameters = self.own_parameters
        return tuple(None if arg in own_parameters else arg for arg in self.args)


class Family(Record):
    """All entries of one `smNN_*` template in one namespace of one header.

    For policy selectors: the guarded returns of one function for one architecture.
    """

    name: str
    arch: Arch
    header: str
    namespace: str
    parameters: tuple[TemplateParameter, ...]
    entries: tuple[Entry, ...]

    @property
    def path(self) -> tuple[str, str, str]:
        """Header, namespace and name: two families in one header can have the same name."""
        return self.header, self.namespace, self.name

    @property
    def primary(self) -> Entry | None:
        """The primary template, if it is in the header."""
        return next((entry for entry in self.entries if entry.kind == "primary"), None)

    @property
    def specializations(self) -> tuple[Entry, ...]:
        """The live explicit and partial specializations, which CUB can select."""
        return tuple(
            entry for entry in self.entries if entry.kind != "primary" and not entry.disabled
        )


class FamilyUse(Record):
    """Where a policy reads a family: `select_agent_policy<sm90_tuning<KeyT, …>>(0)`."""

    family: str
    args: tuple[str, ...]
    selection: str | None
    """The function, alias or struct template that receives the tuning; none when read directly."""
    reads: tuple[str, ...]
    """Members that the selection names; a tuning that lacks one is silently skipped."""
    fallback: str | None
    """What the other overload selects when a member is missing."""
    span: Span


class Policy(Record):
    """One `PolicyNNN` of a hub."""

    name: str
    arch: Arch
    predecessor: str | None
    """The policy for older architectures; null for the first of the chain."""
    bases: tuple[str, ...]
    """Other bases; a `DefaultPolicy` among them resets the tunings of earlier architectures."""
    uses: tuple[FamilyUse, ...]
    line: int
    span: Span


class PolicyChain(Record):
    """The policies of one hub, from the oldest architecture to the newest."""

    header: str
    namespace: str
    hub: str
    max_policy: str | None
    policies: tuple[Policy, ...]


class TuningHeader(Record):
    """The contents of one tuning header."""

    name: str
    families: tuple[Family, ...]
    chains: tuple[PolicyChain, ...]
    selectors: tuple[Family, ...] = ()
    """The guarded returns of the functions that choose a policy, a family for each architecture."""
    format_off: tuple[Span, ...] = ()
    """Regions between `// clang-format off` and `// clang-format on`."""
    aggregates: dict[str, tuple[tuple[str, str], ...]] = Field(default_factory=dict)
    """The structs that policies consist of, with the names and types of their fields."""
    needed: dict[str, int] = Field(default_factory=dict)
    """For rocPRIM: the number of required arguments of a config template."""

    @property
    def tunings(self) -> tuple[Family, ...]:
        """All families: those of specializations, then those of guarded returns."""
        return (*self.families, *self.selectors)


# "cc < ::cuda::compute_capability{11, 0}"
_BELOW = re.compile(r"cc\s*<\s*(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
ALWAYS = 1 << 16
"""A number greater than any of NVIDIA's architectures."""


# Architecture ranges of the returns of policy selectors


def ends(families: Iterable[Family]) -> dict[int, int]:
    """Maps the first architecture of returns to the first one to which they no longer apply.

    The bound of a function such as `get_sm107_tuning` is at its call.
    """
    end_by_start: dict[int, int] = {}
    for family in families:
        start = arch_number(family.arch)
        bounds = [bound for entry in family.entries for bound in upper_bounds(entry.args)]
        later_bounds = [bound for bound in bounds if bound > start]
        end_by_start[start] = max([*later_bounds, end_by_start.get(start, 0)])
    return {start: end or ALWAYS for start, end in end_by_start.items()}


def upper_bounds(facts: Iterable[str]) -> list[int]:
    """Returns the architectures from which on the facts of a return do not hold."""
    matches = (_BELOW.fullmatch(fact) for fact in facts)
    return [capability_number(match[1], match[2]) for match in matches if match]


def steps(families: Iterable[Family]) -> set[str]:
    """Returns the architectures at which another return may apply."""
    end_by_start = ends(families)
    return {f"sm{number}" for number in {*end_by_start, *end_by_start.values()} if number != ALWAYS}


# Values and families of policies

Aggregates = Mapping[str, tuple[tuple[str, str], ...]]


def leaf_paths(aggregates: Aggregates, name: str, within: str = "") -> Iterator[str]:
    """Yields the paths of a struct's values, including nested ones: `scan.threads`."""
    for member, type_name in aggregates.get(name, ()):
        inner = type_name.rpartition("::")[2]
        if inner in aggregates and inner != name:
            yield from leaf_paths(aggregates, inner, f"{within}{member}.")
        else:
            yield f"{within}{member}"


def used_families(chains: Sequence[PolicyChain], scope: str, arch: str) -> frozenset[str]:
    """Returns the families that an architecture's policy reads, according to the source."""
    number = arch_number(arch)
    for chain in (chain for chain in chains if chain.namespace == scope):
        fitting = [policy for policy in chain.policies if arch_number(policy.arch) <= number]
        if fitting:
            newest = max(fitting, key=lambda policy: arch_number(policy.arch))
            return frozenset(use.family for use in newest.uses)
    return frozenset()


# Changes: present and new text


class Edit(Record):
    """One splice. `old` is the expected text at the place, so that a changed file is detected."""

    span: Span
    old: str
    new: str
    reason: str


# Entries to write, before they are spelled

Slot = str | None
"""An argument as the header spells it; `None` if the entry accepts any."""


@dataclass(frozen=True, slots=True)
class Content:
    """An entry's contents: values, another entry's values, or none so that CUB falls back."""

    kind: Literal["values", "inherits", "empty"]
    values: dict[str, str] = field(default_factory=dict)
    """Member → value as spelled in C++ without namespaces."""
    base: str | None = None
    label: str | None = None
    """Its comment: the variant with its scores, or the reason for an entry without values."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Member → type according to the compiler; `using` for an alias."""
    added: Mapping[str, "AddedMember"] = field(default_factory=dict)
    """Members with values that the family's entries do not have yet."""

    def __post_init__(self) -> None:
        """Reduces a label to one line that is safe in a comment."""
        if self.label is not None:
            object.__setattr__(self, "label", comment(self.label))


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that entries of a family do not have yet."""

    type: str
    """`CacheLoadModifier`; `using` for an alias."""
    default: str
    """The policy's value for entries without it."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A specialization that the header does not have."""

    key: tuple[Slot, ...]
    content: Content
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None
    """The key of an entry for the unsigned type, which inherits from this one."""


# Values before and after a change


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """Describes each value that differs, including those that only one side has: `items 4 → 7`."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        f"{name} {spell(before.get(name, 'nothing'))} → {spell(after.get(name, 'nothing'))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


# A copy of a tuning header in which each entry is recognizable in the selected policy

ENTRY = "policygen_entry"
"""The member of a marked return's policy that holds its mark."""
STEP = 4096
"""Larger than any divisor in scaling by a type's size."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The copy; an entry's number is its index in `entries`."""

    header: TuningHeader
    data: bytes
    entries: tuple[tuple[Family, Entry], ...]
    traits: tuple[str, ...] = ()
    """A policy selector's facts about its types: the members that the copy reports."""

    def entry(self, items: object) -> int | None:
        """Returns the index of the entry that a policy's item count marks, if it is a mark."""
        if not isinstance(items, int) or items < STEP // 16:
            return None
        while items % 2 == 0:
            items //= 2
        number = items // 2
        return number if number < len(self.entries) else None


def mark(number: int) -> int:
    """Returns an odd multiple of a power of two; its odd factor survives scaling by a size."""
    return STEP * (2 * number + 1)
