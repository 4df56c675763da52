"""A review of changes to tuning headers."""

from collections.abc import Mapping
from typing import Literal

from policygen.model.arch import Arch
from policygen.model.audits import Finding, Unreachable
from policygen.model.machine_code import VerifySass
from policygen.model.plans import Action
from policygen.model.records import Document, Record
from policygen.model.results import PointRatio, RejectedVariant, RunKey, ScoredVariant
from policygen.model.selection import Differing, Effect, EntryPlace
from policygen.model.trees import Cub
from policygen.model.tuning import EntryKind, Value
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from policygen.model.workload import OnArch, Point, in_words, point_of

EntryChange = Literal["added", "changed", "removed"]
Merged = Mapping[tuple[Point, Arch], WorkloadPerformance]


class Evidence(RunKey):
    """What a database says of a workload with the values that were written."""

    benchmark: str
    workload: dict[str, str]
    scored: ScoredVariant
    runtime: tuple[PointRatio, ...]
    """By runtime workload: base's time over the variant's."""
    databases: tuple[str, ...]
    rejected: tuple[RejectedVariant, ...] = ()
    """The best of the other variants, each with the reason."""

    @property
    def point(self) -> Point:
        """The workload as a key."""
        return point_of(self.benchmark, self.workload)

    @property
    def name(self) -> str:
        """The workload in words."""
        return in_words(self.benchmark, self.workload)


class ReviewedEntry(Record):
    """An entry that says something else than before."""

    change: EntryChange
    place: EntryPlace
    """Where it stands; one that was removed: where it stood."""
    arch: Arch
    """Of its family."""
    kind: EntryKind
    before: dict[str, Value] | None
    after: dict[str, Value] | None
    asks: tuple[str, str] | None = None
    """What it is for, before and after, where that is another thing now."""
    inherits: tuple[str | None, str | None] = (None, None)
    """What it takes all else from, before and after; of a return, what it computes."""
    variant: str | None = None
    """As its comment has it."""
    scores: tuple[float, ...] | None = None
    """As its comment has them: score, minimum, mean, maximum."""
    decides: bool = True
    """Whether any workload that was asked is decided by it."""
    reached: tuple[Differing, ...] = ()
    """The workloads that get other values by it."""
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    unreachable: Unreachable | None = None

    def gives(self, workload: OnArch) -> bool:
        """Returns whether it changes a workload's values, as current programs select them."""
        keys = ((row.point, row.arch) for row in self.reached if not row.legacy)
        return (workload.point, workload.arch) in keys


class Uncovered(Record):
    """Where a change touches what no workload was asked about."""

    header: str
    line: int
    what: str

    @property
    def where(self) -> str:
        """The place and what is uncovered."""
        return f"{self.header}:{self.line}: {self.what}"


class HeaderDiff(Record):
    """What was changed in a header."""

    path: str
    diff: str
    """Unified."""


class Review(Document):
    """What `policygen review --json` prints."""

    format: Literal["policygen/review/1"] = "policygen/review/1"
    cub: Cub
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    base: str
    toolchain: str
    archs: tuple[Arch, ...]
    entries: tuple[ReviewedEntry, ...]
    others: tuple[Differing, ...] = ()
    """Workloads that get other values by none of the entries: by the policies themselves."""
    compared: int
    """Workloads times architectures."""
    changed: int | None = None
    """How many of them get other values: also those between known architectures that get the same
    as on the one before, which are not listed. None in reviews of before."""
    databases: tuple[str, ...] = ()
    """Where was looked for what was written."""
    actions: tuple[Action, ...] = ()
    """Of the plan that was applied: those that wrote nothing, with the reason."""
    effect: Effect | None = None
    sass: VerifySass | None = None
    performance: VerifyPerformance | None = None
    diffs: tuple[HeaderDiff, ...]
    commands: tuple[str, ...]
    """What reproduces it."""
    remarks: tuple[str, ...] = ()
    unprovable: tuple[Finding, ...] = ()
    """Where the tree's headers depend on more than types and architecture."""
    uncovered: tuple[Uncovered, ...] = ()
    """What is not proven, as nobody was asked."""

    @property
    def merged(self) -> Merged:
        """Measured performance of the merged change by workload and architecture."""
        workloads = self.performance.workloads if self.performance else ()
        return {
            (workload.point, workload.arch): workload
            for workload in workloads
            if workload.ratio is not None
        }

    def entry_of(self, workload: WorkloadPerformance) -> ReviewedEntry | None:
        """Returns the entry that changes a workload's values."""
        return next((entry for entry in self.entries if entry.gives(workload)), None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Descriptions of everything that prevents a merge."""
        failures = [f"not proven: {uncovered.where}" for uncovered in self.uncovered]
        failures += [finding.where for finding in self.unprovable]
        if self.effect is not None and self.effect.wrong:
            failures.append(f"{len(self.effect.wrong)} workloads do not resolve as planned")
        if self.sass is not None and self.sass.changed:
            failures.append("machine code differs where it should not")
        if self.performance is not None:
            failures += self.performance.failures
        for entry in self.entries:
            where = f"{entry.place.header}:{entry.place.line}"
            if entry.unreachable is not None:
                failures.append(f"{where} is never selected: {entry.unreachable.reason}")
            failures += [
                f"{where}: {finding.message}"
                for finding in entry.findings
                if finding.severity == "error"
            ]
        return tuple(failures)
