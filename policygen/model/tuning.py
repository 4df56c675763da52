"""What a tuning header holds: families, entries, members, provenance, policy chains."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch, arch_number
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.records import Document, Problem, Record, Span
from policygen.model.trees import Cub
from policygen.model.workload import Point

# "class T", "typename... Ts", "int Size = 4"; not "class" alone
_DECLARED = re.compile(r".*[\s.>*&](\w+)\s*(?:=.*)?$", re.DOTALL)
Value = bool | int | str
"""A constant where the header's text has one, else the spelling of an enumerator or a type."""


def spell(value: Value) -> str:
    """A value as C++ spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def conjunction(facts: tuple[str, ...]) -> str:
    """What a branch asks for as one condition."""
    told = (f"({f})" if "||" in f and not f.startswith("(") else f for f in facts)
    return " && ".join(told) or "otherwise"


def asks_more(facts: tuple[str, ...]) -> bool:
    """Whether a branch asks for more than a compute capability; else it is a default."""
    return any(not fact.startswith("cc ") for fact in facts)


def entry_name(family: str, args: tuple[str, ...]) -> str:
    """`sm90_tuning<float, …>`, or a function with what its return asks for."""
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
        """What to call it: CUB leaves some parameters unnamed, as in `<class InputT, flagged>`."""
        return self.name or self.type


class Member(Record):
    """One `static constexpr` value or `using` alias of an entry."""

    name: str
    kind: Literal["value", "alias"]
    type: str
    """`int`, `BlockLoadAlgorithm`, …; `using` for an alias."""
    spelling: str
    value: Value | None
    """The constant that it spells; an enumerator or a type is its own spelling; else none."""
    span: Span
    value_span: Span


class Label(Record):
    """A variant as a comment records it: `ipt_20.tpb_512 1.013282  0.967525  1.015764  …`."""

    variant: str
    scores: tuple[float, ...]
    """Score, minimum, mean and maximum, as many as were typed."""
    rejected: bool
    """The label belongs to values that are commented out inside a live entry."""
    span: Span


class Entry(Record):
    """One specialization, or the primary template, with the bytes that it stands in."""

    kind: EntryKind
    args: tuple[str, ...]
    """Of a branch: what must hold, in the order of the source; an earlier return comes first."""
    values: dict[str, Value]
    inherits: str | None
    guard: str | None
    disabled: bool
    variant: str | None
    scores: tuple[float, ...] | None
    line: int
    remarks: tuple[str, ...] = ()
    """Free text above or inside the entry; for a disabled one it says why."""
    labels: tuple[Label, ...] = ()
    members: tuple[Member, ...] = ()
    template_parameters: tuple[str, ...] = ()
    """What stands between `template <` and `>`, parameter by parameter."""
    layout: Literal["line", "block"] = "block"
    format_off: bool = False
    span: Span
    args_span: Span | None = None
    arg_spans: tuple[Span, ...] = ()
    inherits_span: Span | None = None
    body_span: Span | None = None
    """Between the braces; none for a template that is declared only."""
    comment_span: Span | None = None
    """The comment directly above, without a blank line between."""
    guard_span: Span | None = None
    """The `#if` line of the innermost guard."""

    @property
    def own_parameters(self) -> dict[str, str]:
        """Its template parameters by name, each as it is declared."""
        found = ((_DECLARED.match(text), text) for text in self.template_parameters)
        return {match[1]: text for match, text in found if match}

    @property
    def specific(self) -> bool:
        """Whether a branch asks for more than a compute capability; others are entries anyway."""
        return self.kind != "branch" or asks_more(self.args)

    @property
    def slots(self) -> tuple[str | None, ...]:
        """Its arguments, none for its own parameters: what a key must have to be its."""
        own = self.own_parameters
        return tuple(None if arg in own else arg for arg in self.args)


class Family(Record):
    """All entries of one `smNN_*` template in one namespace of one header.

    Of policy selectors: the guarded returns of one function for one architecture.
    """

    name: str
    arch: Arch
    header: str
    namespace: str
    parameters: tuple[TemplateParameter, ...]
    entries: tuple[Entry, ...]

    @property
    def specializations(self) -> tuple[Entry, ...]:
        """The live explicit and partial specializations: what CUB can select."""
        return tuple(e for e in self.entries if e.kind != "primary" and not e.disabled)


class FamilyUse(Record):
    """Where a policy reads a family: `select_agent_policy<sm90_tuning<KeyT, …>>(0)`."""

    family: str
    args: tuple[str, ...]
    selection: str | None
    """The function, alias or struct template that receives the tuning; none when read directly."""
    reads: tuple[str, ...]
    """Members that the selection names: a tuning that lacks one is skipped without a word."""
    fallback: str | None
    """What the other overload selects when a member is missing."""
    span: Span


class Policy(Record):
    """One `PolicyNNN` of a hub."""

    name: str
    arch: Arch
    predecessor: str | None
    """The policy that older architectures get; none for the first of the chain."""
    bases: tuple[str, ...]
    """Other bases: a `DefaultPolicy` among them resets what an earlier arch had tuned."""
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
    """All that one tuning header holds."""

    name: str
    families: tuple[Family, ...]
    chains: tuple[PolicyChain, ...]
    selectors: tuple[Family, ...] = ()
    """The guarded returns of the functions that choose a policy, a family for each architecture."""
    format_off: tuple[Span, ...] = ()
    """Regions between `// clang-format off` and `// clang-format on`."""
    aggregates: dict[str, tuple[tuple[str, str], ...]] = Field(default_factory=dict)
    """The structs that policies are made of, each with its fields' names and types."""
    needed: dict[str, int] = Field(default_factory=dict)
    """Of rocPRIM: how many arguments a template of configs needs; others have defaults."""


class Scan(Document):
    """What `policygen scan --json` prints."""

    format: Literal["policygen/scan/1"] = "policygen/scan/1"
    cub: Cub
    families: tuple[Family, ...]
    chains: tuple[PolicyChain, ...]
    problems: tuple[Problem, ...] = ()


# "cc < ::cuda::compute_capability{11, 0}"
_BELOW = re.compile(r"cc\s*<\s*(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
ALWAYS = 1 << 16
"""A number that no architecture has."""


# For which architectures the returns of policy selectors are.


def ends(families: Iterable[Family]) -> dict[int, int]:
    """Where the returns that are for an architecture end: before which one, by number.

    A function such as `get_sm107_tuning` has its bound where it is called.
    """
    found: dict[int, int] = {}
    for family in families:
        start = arch_number(family.arch)
        bounds = [
            int(f"{match[1]}{match[2]}")
            for entry in family.entries
            for fact in entry.args
            if (match := _BELOW.fullmatch(fact))
        ]
        above = [bound for bound in bounds if bound > start]
        found[start] = max([*above, found.get(start, 0)])
    return {start: end or ALWAYS for start, end in found.items()}


def steps(families: Iterable[Family]) -> set[str]:
    """The architectures at which another return may decide."""
    found = ends(families)
    return {f"sm{number}" for number in {*found, *found.values()} if number != ALWAYS}


def own(number: int, families: Iterable[Family], target: int) -> bool:
    """Whether a later architecture has returns besides those of an earlier one."""
    return any(target < start <= number < end for start, end in ends(families).items())


# Whole policies, as the compiler tells them: every field of what a selector returns.


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a selector for the workloads of one benchmark."""

    site: Site
    benchmark: BenchmarkBinding
    selector: str
    """The policy selector, in terms of the workload's roles."""
    fields: tuple[str, ...]
    """Paths in the policy: `multi_tile.items_per_thread`."""
    roles: tuple[str, ...] = ()
    """Those whose types or values are told, too."""
    sized: tuple[str, ...] = ()
    """Those whose sizes are told."""
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """What a selector returns for a workload on an architecture, spelled as in C++."""

    fields: Mapping[str, str]
    roles: Mapping[str, str]
    sizes: Mapping[str, int]


Policies = Mapping[tuple[Point, str], Whole]
"""By workload and architecture."""
