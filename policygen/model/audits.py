"""Coverage of workloads and architectures by tunings, and other audits."""

from collections import Counter
from typing import Literal, get_args

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.records import Document, Problem, Record
from policygen.model.selection import EntryPlace, Unresolved
from policygen.model.trees import Cub
from policygen.model.tuning import Family, PolicyChain
from policygen.model.workload import OnArch

CellStatus = Literal["tuned", "inherited", "default", "disabled", "unreachable", "unknown"]
"""How CUB determines the values of a workload on an architecture.

`tuned`: by an entry for it. `inherited`: by an entry for an earlier architecture. `default`: by
none. `disabled`: its entry is commented out. `unreachable`: a live entry has its key, but the
compiler does not select it. In these two cases `since` names what it gets instead. `unknown`: no
binding asks for the part of the policy that entries of the header are for.
"""
STATUSES: tuple[CellStatus, ...] = get_args(CellStatus)


class Cell(OnArch):
    """One workload on one architecture."""

    status: CellStatus
    since: Arch | None
    """The architecture that the values were tuned for; null for defaults."""
    entry: EntryPlace | None
    """The entry that decides the workload, or should."""
    reason: str | None = None
    """Why the entry does not decide it, as far as the header shows."""


class Share(Record):
    """The number of workloads per status on an architecture, for one benchmark or for all."""

    benchmark: str | None
    """Null: all benchmarks."""
    arch: Arch
    workloads: int
    counts: dict[CellStatus, int]

    def percent(self, statuses: tuple[CellStatus, ...]) -> float:
        """Returns the percentage of workloads with some statuses."""
        return 100 * sum(self.counts[status] for status in statuses) / self.workloads


class Fillable(OnArch):
    """An untuned cell, and what a database has for it."""

    status: CellStatus
    variant: str
    score: float
    databases: tuple[str, ...]


class Unfilled(Fillable):
    """An untuned cell, and a database's variant that `plan` rejects for it."""

    reason: str


TurnedKind = Literal["lost", "gained", "other", "only before", "only after"]
TURNED: tuple[TurnedKind, ...] = get_args(TurnedKind)
"""In order of importance to a release manager."""


class Turned(OnArch):
    """A cell whose status differs between two trees; null if a tree lacks the workload."""

    before: CellStatus | None
    after: CellStatus | None

    @property
    def kind(self) -> TurnedKind:
        """The kind of change; a workload that one tree lacks is neither gained nor lost."""
        if self.before is None or self.after is None:
            return "only after" if self.before is None else "only before"
        if self.before == "tuned":
            return "lost"
        return "gained" if self.after == "tuned" else "other"


class Compared(Record):
    """Coverage compared with another tree."""

    cub: Cub
    turned: tuple[Turned, ...]

    @property
    def ordered(self) -> list[Turned]:
        """The changes, most important first."""
        return sorted(self.turned, key=lambda turned: TURNED.index(turned.kind))

    @property
    def in_words(self) -> str:
        """A summary: `14 gained, 2 lost; tuned workloads that one tree alone has: 4 before`."""
        counts = Counter(turned.kind for turned in self.turned)
        text = f"{counts['gained']:,} gained, {counts['lost']:,} lost"
        if counts["other"]:
            text += f", {counts['other']:,} other changes"
        single_tree_counts = [(counts["only before"], "before"), (counts["only after"], "now")]
        if any(count for count, _ in single_tree_counts):
            counts_by_tree = ", ".join(
                f"{count:,} {when}" for count, when in single_tree_counts if count
            )
            text += f"; tuned workloads that only one tree has: {counts_by_tree}"
        return text


class Coverage(Document):
    """What `policygen audit coverage --json` prints."""

    format: Literal["policygen/audit-coverage/1"] = "policygen/audit-coverage/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    shares: tuple[Share, ...]
    """First all benchmarks by architecture, then each benchmark."""
    cells: tuple[Cell, ...]
    fillable: tuple[Fillable, ...] | None = None
    """What `apply` would write from the databases, best first; null if none was given."""
    unfilled: tuple[Unfilled, ...] = ()
    """What `apply` would not write, best first, and why."""
    compared: Compared | None = None
    remarks: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    problems: tuple[Problem, ...] = Field(default=())

    @property
    def totals(self) -> dict[str, Share]:
        """The shares of all benchmarks by architecture."""
        return {share.arch: share for share in self.shares if share.benchmark is None}


# Entries that no workload can select

Cause = Literal[
    "gate",
    "missing member",
    "inherits without",
    "empty",
    "shadowed",
    "argument",
    "key",
    "condition",
]
"""Why an entry is never selected.

`gate`: the key leads to it, but the policy does not consult the family there. `missing member`: it
lacks a member that the selection needs. `inherits without`: the entry that it inherits from lacks
it as well. `empty`: it has no members at all, which keeps its key from being tuned. `shadowed`:
another entry takes its keys. `argument`: one of its arguments never has this value. `key`: no
workload has this combination of arguments. `condition`: no workload reaches a guarded return.
"""


class Unreachable(EntryPlace):
    """An entry that no workload selects."""

    cause: Cause
    reason: str
    example: str | None = None
    """A workload with the entry's key, or inputs of a selector that would get its values."""


class CallOnly(EntryPlace):
    """An entry that some call selects, but no benchmark."""

    example: str


class Reach(Document):
    """What `policygen audit reach --json` prints."""

    format: Literal["policygen/audit-reach/1"] = "policygen/audit-reach/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    workloads: int
    """The number of workloads tried, counted once for all architectures."""
    entries: int
    reached: int
    unreachable: tuple[Unreachable, ...]
    call_only: tuple[CallOnly, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families without a binding, and functions that no workload reaches."""
    unknown: dict[str, int] = Field(default_factory=dict)
    """Header → number of entries that are unknown because workloads there do not compile."""
    remarks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


# `policygen audit lint`: values of tuning entries that cannot be intended

RuleName = Literal[
    "duplicate-key",
    "items-not-divisible-by-vector",
    "label-contradicts-values",
    "label-stores-exponent",
    "not-provable",
    "same-as-inherited",
    "score-of-other-gpu",
    "shared-memory-over-limit",
    "threads-not-warp-multiple",
    "threads-over-limit",
]
Severity = Literal["error", "warning", "note"]
"""Does not work; not intended; unnecessary."""


class Finding(Record):
    """A problem at one place in a header."""

    rule: RuleName
    severity: Severity
    header: str
    family: str
    """Empty if the finding concerns a whole header or an included file."""
    args: tuple[str, ...]
    line: int
    column: int
    message: str
    path: str
    text: str
    """The source line, for a caret below it."""
    width: int

    @property
    def where(self) -> str:
        """The place and the finding."""
        return f"{self.path}:{self.line}: {self.message}"


class LintReport(Document):
    """What `policygen audit lint --json` prints."""

    format: Literal["policygen/audit-lint/1"] = "policygen/audit-lint/1"
    cub: Cub
    off: tuple[RuleName, ...]
    """Rules that were switched off."""
    families: int
    entries: int
    """The number of live entries that were checked."""
    unbound: tuple[str, ...]
    """Families without a binding, so the meaning of their members is unknown."""
    findings: tuple[Finding, ...]
    counts: dict[RuleName, int]
    """The number of findings by rule."""
    problems: tuple[Problem, ...] = ()


# Differences between benchmark sources and bindings

Kind = Literal[
    "unbound benchmark",
    "unbound parameter",
    "missing parameter",
    "range",
    "order",
    "unbound axis",
    "missing axis",
    "axis values",
]
"""Unbound: missing in the binding. Missing: missing in the source."""


class BenchDifference(Record):
    """A difference between a benchmark's source and its binding."""

    benchmark: str
    source: str
    kind: Kind
    what: str
    """The parameter's label, or the axis without `{ct}`; `parameters` stands for all."""
    binding: tuple[str, ...]
    """Empty if the binding lacks it."""
    found: tuple[str, ...]
    """Empty if the source lacks it."""


class NotCompared(Record):
    """A part of a bound benchmark that its source does not determine."""

    benchmark: str
    source: str
    what: str
    """The axis without `{ct}`; `axes` stands for all."""


class BenchCheck(Document):
    """What `policygen bench --check --json` prints."""

    format: Literal["policygen/bench-check/1"] = "policygen/bench-check/1"
    cub: str | None
    """The benchmarks' version of CUB; null if unknown."""
    tested: bool
    """Whether the bindings were tested with that version."""
    version: str
    """The version of the bindings in the comparison."""
    compared: int
    """The number of CUB benchmarks with parameters or a binding."""
    differing: int
    unbound: int
    """How many of the differing ones have no binding."""
    untuned: int
    """The number of CUB benchmarks with neither parameters nor a binding."""
    others: int
    """The number of benchmarks that do not belong to CUB."""
    differences: tuple[BenchDifference, ...]
    """By benchmark and source; parameters before axes, each in the order of the source."""
    not_compared: tuple[NotCompared, ...] = ()
    """By benchmark and source."""
    problems: tuple[Problem, ...] = ()


# What tuning headers contain


class Scan(Document):
    """What `policygen scan --json` prints."""

    format: Literal["policygen/scan/1"] = "policygen/scan/1"
    cub: Cub
    families: tuple[Family, ...]
    chains: tuple[PolicyChain, ...]
    problems: tuple[Problem, ...] = ()
