"""A review of changes to tuning headers."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from policygen.errors import plural
from policygen.model.arch import Arch
from policygen.model.audits import Finding, Unreachable
from policygen.model.machine_code import VerifySass
from policygen.model.plans import Action
from policygen.model.records import Document, Record
from policygen.model.results import PointRatio, RejectedVariant, RunKey, ScoredVariant
from policygen.model.selection import Differing, Effect, EntryPlace, InputChange
from policygen.model.trees import Cub
from policygen.model.tuning import EntryKind, Value
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from policygen.model.workload import OfBenchmark, OnArch, Point

EntryChange = Literal["added", "changed", "removed"]
Merged = Mapping[tuple[Point, Arch], WorkloadPerformance]


class Evidence(OfBenchmark, RunKey):
    """Measurements of a workload with the written values."""

    scored: ScoredVariant
    runtime: tuple[PointRatio, ...]
    """By runtime workload: base's time divided by the variant's."""
    databases: tuple[str, ...]
    rejected: tuple[RejectedVariant, ...] = ()
    """The best other variants, each with the reason for its rejection."""


class Leak(Record):
    """An architecture on which an entry changes values although it is not meant for it."""

    arch: Arch
    workloads: int
    """The number of workloads that change there."""
    bound: str
    """The condition that would exclude this architecture and all later ones."""
    among: int = 1
    """The number of returns that may be responsible; computed values do not identify one."""


class ReviewedEntry(Record):
    """A changed entry."""

    change: EntryChange
    place: EntryPlace
    """Its place, or its previous place if it was removed."""
    arch: Arch
    """The architecture of its family."""
    kind: EntryKind
    before: dict[str, Value] | None
    after: dict[str, Value] | None
    asks: tuple[str, str] | None = None
    """Its conditions before and after, if they changed."""
    inherits: tuple[str | None, str | None] = (None, None)
    """What it inherits from, before and after; for a return, what it computes."""
    variant: str | None = None
    """The variant in its comment."""
    scores: tuple[float, ...] | None = None
    """The scores in its comment: score, minimum, mean, maximum."""
    decides: bool = True
    """Whether it decides any compiled workload."""
    reached: tuple[Differing, ...] = ()
    """The workloads that it changes."""
    leaks: tuple[Leak, ...] = ()
    """Known architectures besides its own where workloads change because of it."""
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    unreachable: Unreachable | None = None

    def gives(self, workload: OnArch) -> bool:
        """Returns whether it changes a workload's values, as current programs select them."""
        keys = ((row.point, row.arch) for row in self.reached if not row.legacy)
        return (workload.point, workload.arch) in keys


UNBOUND = "no binding covers this header, so the effect of its change is unknown"


class Uncovered(Record):
    """A part of a change that no compiled workload covers."""

    header: str
    line: int
    what: str
    by_machine_code: bool = False
    """Whether equal machine code of all workloads would cover it."""

    @property
    def where(self) -> str:
        """The place and what is uncovered."""
        return f"{self.header}:{self.line}: {self.what}"


class HeaderDiff(Record):
    """The changes of a header."""

    path: str
    diff: str
    """The unified diff."""


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
    """Workloads that change through the policies themselves, not through any of the entries."""
    compared: int
    """Workloads times architectures."""
    changed: int | None = None
    """How many of them change. This includes unlisted ones on future architectures between known
    ones. Null in older reviews.
    """
    databases: tuple[str, ...] = ()
    """The databases that were searched for the written values."""
    digests: tuple[str, ...] = ()
    """Their SHA-256 in the same order; empty if a database is missing."""
    actions: tuple[Action, ...] = ()
    """Actions of the applied plan that wrote nothing, with the reason."""
    effect: Effect | None = None
    sass: VerifySass | None = None
    performance: VerifyPerformance | None = None
    diffs: tuple[HeaderDiff, ...]
    commands: tuple[str, ...]
    """Commands that reproduce the review."""
    remarks: tuple[str, ...] = ()
    unprovable: tuple[Finding, ...] = ()
    """Places where the tree's headers depend on more than types and architecture."""
    uncovered: tuple[Uncovered, ...] = ()
    """Parts of the change that are not proven because no compiled workload covers them."""
    inputs: tuple[InputChange, ...] = ()
    """All inputs of selectors, and calls that no benchmark makes, that get other values."""
    inputs_compared: int = 0
    """Inputs and calls, times architectures."""
    reaches: tuple[Arch, ...] = ()
    """The architectures that entries may reach besides their own (`--reaches`)."""

    def allowing(self, reaches: Sequence[str]) -> Self:
        """Returns the same review with further architectures that entries may reach."""
        archs = tuple(dict.fromkeys((*self.reaches, *reaches)))
        return self.model_copy(update={"reaches": archs})

    @property
    def unjudged(self) -> tuple[Uncovered, ...]:
        """What is not proven, not even by the machine code of all workloads."""
        same_code = (
            self.sass is not None and self.sass.equal_everywhere and self.sass.base == self.base
        )
        return tuple(row for row in self.uncovered if not (row.by_machine_code and same_code))

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

    def leak_of(self, entry: ReviewedEntry) -> str | None:
        """Returns which architectures an entry reaches by mistake, and what stops it."""
        leaks = [leak for leak in entry.leaks if leak.arch not in self.reaches]
        if not leaks:
            return None
        subject = "the entry leaks"
        if (number := max(leak.among for leak in leaks)) > 1:
            subject = f"this or another of {number} returns that compute their values leaks"
        counts = {leak.arch: plural(leak.workloads, "workload") for leak in leaks}
        where = ", ".join(f"{arch} ({count})" for arch, count in counts.items())
        if len(counts) > 1 and len({*counts.values()}) == 1:
            where = f"{', '.join(counts)} ({leaks[0].workloads:,} each)"
        return (
            f"{subject} to {where}: {leaks[0].bound} stops it, and --reaches {','.join(counts)}"
            " allows it"
        )

    @property
    def failures(self) -> tuple[str, ...]:
        """Descriptions of everything that prevents a merge."""
        failures = [f"not proven: {uncovered.where}" for uncovered in self.unjudged]
        failures += [finding.where for finding in self.unprovable]
        if self.effect is not None and self.effect.wrong:
            failures.append(f"{len(self.effect.wrong)} workloads do not resolve as planned")
        failures += [
            f"{change.header}: {change.text}; no benchmark measures it:"
            f" --reaches {','.join(archs)} allows it"
            for change in self.inputs
            if (archs := [arch for arch in change.leaks if arch not in self.reaches])
        ]
        if self.sass is not None and self.sass.changed:
            failures.append("machine code differs where it should not")
        if self.performance is not None:
            failures += self.performance.failures
        for entry in self.entries:
            where = entry.place.where
            if entry.unreachable is not None:
                failures.append(f"{where} is never selected: {entry.unreachable.reason}")
            if leak := self.leak_of(entry):
                failures.append(f"{where}: {leak}")
            failures += [
                f"{where}: {finding.message}"
                for finding in entry.findings
                if finding.severity == "error"
            ]
        return tuple(failures)
