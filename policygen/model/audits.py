"""Coverage of workloads and architectures by tunings, and other audits."""

from collections import Counter
from typing import Literal, get_args

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.records import Document, Problem, Record
from policygen.model.selection import EntryPlace, Unresolved
from policygen.model.trees import Cub
from policygen.model.workload import OnArch

CellStatus = Literal["tuned", "inherited", "default", "disabled", "unreachable"]
"""How CUB determines the values of a workload on an architecture.

`tuned`: by an entry for it. `inherited`: by an entry for an earlier architecture. `default`: by
none. `disabled`: its entry is commented out. `unreachable`: a live entry has its key, but the
compiler does not select it. In the last two cases `since` says what it gets instead.
"""
STATUSES: tuple[CellStatus, ...] = get_args(CellStatus)


class Cell(OnArch):
    """One workload on one architecture."""

    status: CellStatus
    since: Arch | None
    """The architecture that the values were tuned for; none for defaults."""
    entry: EntryPlace | None
    """The entry that decides, or the one that should."""
    reason: str | None = None
    """Why an entry does not decide, as far as the header says."""


class Share(Record):
    """How many workloads of a benchmark, or of all, have which status on an architecture."""

    benchmark: str | None
    """None: of all."""
    arch: Arch
    workloads: int
    counts: dict[CellStatus, int]

    def percent(self, statuses: tuple[CellStatus, ...]) -> float:
        """Returns the percentage of workloads with some statuses."""
        return 100 * sum(self.counts[status] for status in statuses) / self.workloads


class Fillable(OnArch):
    """A cell that is not tuned, and what a database has for it."""

    status: CellStatus
    variant: str
    score: float
    databases: tuple[str, ...]


class Unfilled(Fillable):
    """A cell that is not tuned, and a variant of a database that `plan` rejects for it."""

    reason: str


TurnedKind = Literal["lost", "gained", "other", "only before", "only after"]
TURNED: tuple[TurnedKind, ...] = get_args(TurnedKind)
"""In order of importance to a release manager."""


class Turned(OnArch):
    """A cell whose status is another in another tree; none where that tree lacks the workload."""

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
    """What became of another tree's coverage."""

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
            text += f"; tuned workloads that one tree alone has: {counts_by_tree}"
        return text


class Coverage(Document):
    """What `policygen audit coverage --json` prints."""

    format: Literal["policygen/audit-coverage/1"] = "policygen/audit-coverage/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    shares: tuple[Share, ...]
    """Of all benchmarks by architecture, then of each one."""
    cells: tuple[Cell, ...]
    fillable: tuple[Fillable, ...] | None = None
    """What `apply` would write of databases, the best first; none when none was given."""
    unfilled: tuple[Unfilled, ...] = ()
    """What it would not write, the best first, and why."""
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
lacks a member that the selection names. `inherits without`: what it inherits from lacks it, too.
`empty`: it has no members at all, which keeps its key from being tuned. `shadowed`: another entry
takes its keys. `argument`: one of its arguments never has this value. `key`: no workload has this
combination of arguments. `condition`: no workload reaches a guarded return.
"""


class Unreachable(EntryPlace):
    """An entry that no workload selects."""

    cause: Cause
    reason: str
    example: str | None = None
    """A workload that has the entry's key, and what it gets instead."""


class CallOnly(EntryPlace):
    """An entry that some call selects, and no benchmark."""

    example: str


class Reach(Document):
    """What `policygen audit reach --json` prints."""

    format: Literal["policygen/audit-reach/1"] = "policygen/audit-reach/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    workloads: int
    """How many were tried, architectures not counted."""
    entries: int
    reached: int
    unreachable: tuple[Unreachable, ...]
    call_only: tuple[CallOnly, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families that no binding knows, and functions that no workload comes to."""
    unknown: dict[str, int] = Field(default_factory=dict)
    """Header → entries of which nothing is known, as the compiler refused workloads there."""
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
    """One place in a header, and what is wrong there."""

    rule: RuleName
    severity: Severity
    header: str
    family: str
    """Empty where a header is meant, or a file that it includes."""
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
    """Rules that were not asked."""
    families: int
    entries: int
    """Live entries that were judged."""
    unbound: tuple[str, ...]
    """Families without a binding: how their members are counted and labelled is not known."""
    findings: tuple[Finding, ...]
    counts: dict[RuleName, int]
    """Findings of each rule that was asked."""
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
    """One thing that a benchmark's source and its binding say differently."""

    benchmark: str
    source: str
    kind: Kind
    what: str
    """The parameter's label, or the axis without `{ct}`; `parameters` for all of them."""
    binding: tuple[str, ...]
    """Empty where the binding does not know it."""
    found: tuple[str, ...]
    """Empty where the source does not have it."""


class NotCompared(Record):
    """A part of a bound benchmark that its source leaves open."""

    benchmark: str
    source: str
    what: str
    """The axis without `{ct}`; `axes` for all of them."""


class BenchCheck(Document):
    """What `policygen bench --check --json` prints."""

    format: Literal["policygen/bench-check/1"] = "policygen/bench-check/1"
    cub: str | None
    """The version of CUB that the benchmarks are of; none where nothing tells it."""
    tested: bool
    """Whether the bindings were tried with that version."""
    version: str
    """The version whose bindings they were compared with."""
    compared: int
    """CUB's benchmarks that have parameters or a binding."""
    differing: int
    unbound: int
    """Those of the differing ones that no binding knows."""
    untuned: int
    """CUB's benchmarks that have neither parameters nor a binding."""
    others: int
    """Benchmarks that are not CUB's."""
    differences: tuple[BenchDifference, ...]
    """By benchmark and source; parameters before axes, each in the order of the source."""
    not_compared: tuple[NotCompared, ...] = ()
    """By benchmark and source."""
    problems: tuple[Problem, ...] = ()
