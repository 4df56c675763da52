"""The performance of a merged change on a GPU, for each workload before and after it."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from policygen.model.arch import Arch
from policygen.model.measured import SkippedPoint, VariantFailure
from policygen.model.records import Document, Record
from policygen.model.searches import QUANTILES
from policygen.model.selection import EntryPlace
from policygen.model.trees import Cub
from policygen.model.workload import OnArch

PerformanceVerdict = Literal["faster", "equal", "slower", "undecided", "same-code"]
"""`equal`: the interval contains 1 and is as narrow as requested. `undecided`: it is too wide, or
time ran out. `same-code`: the machine code is unchanged, so nothing was measured."""
MEASURED = frozenset({"faster", "equal", "slower"})
"""Verdicts that follow from an interval."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RuntimePerformance(Record):
    """One runtime workload: what it took before over what it takes after; over 1 is faster."""

    subbench: str
    point: dict[str, str]
    weight: Size
    before_seconds: Size
    after_seconds: Size
    ratio: Size
    low: Size | None = None
    high: Size | None = None
    noise: Size | None = None
    """The standard deviation of a ratio from process to process, as the side before against its own
    copy shows it, too; none where results of one process a side were given."""
    verdict: PerformanceVerdict
    processes: int
    """Of the side that has fewer, where results were given."""
    quantiles: tuple[Size, ...] = ()
    """The same ratio at each quantile of the document; none where there are too few samples."""


class WorkloadPerformance(OnArch):
    """One workload."""

    verdict: PerformanceVerdict
    entry: EntryPlace | None = None
    """What decides it after the change, where that is known."""
    ratio: Size | None = None
    """The mean of its runtime workloads, as CCCL weighs them."""
    low: Size | None = None
    high: Size | None = None
    noise: Size | None = None
    claimed: Finite | None = None
    """The score for which the change was written."""
    least: Finite | None = None
    """What it must be at least, so that the claim holds."""
    holds: bool | None = None
    """Whether it is as high as that, as far as one can see."""
    runtime: tuple[RuntimePerformance, ...] = ()
    skipped: tuple[SkippedPoint, ...] = ()
    failed: VariantFailure | None = None
    """What is wrong with the side after: it computes something else, or does not run."""
    problem: str | None = None
    """Why it cannot be measured."""

    @model_validator(mode="after")
    def _check_interval_and_claim(self) -> Self:
        """Checks that verdicts have an interval, and claims their threshold."""
        for names in (("low", "high"), ("claimed", "least", "holds")):
            missing = [name for name in names if getattr(self, name) is None]
            if missing and len(missing) < len(names):
                raise ValueError(f"{', '.join(names)} stand together: no {', '.join(missing)}")
        has_interval = self.ratio is not None and self.low is not None
        if not has_interval and (self.claimed is not None or self.verdict in MEASURED):
            raise ValueError(f"it is {self.verdict}, and has no ratio with an interval")
        return self

    @property
    def open(self) -> bool:
        """Whether more processes are needed for a verdict."""
        return self.verdict == "undecided" and not self.failed and not self.problem

    @property
    def within(self) -> float | None:
        """The maximum relative difference between both sides."""
        if self.low is None or self.high is None:
            return None
        return max(self.high - 1, 1 - self.low)


class EntryPerformance(Record):
    """An entry, and what became of the workloads that it decides after the change.

    Each is decided by one entry alone: that they were measured together is as if each entry had
    been changed by itself.
    """

    entry: EntryPlace | None
    """None: what CUB selects where no entry says anything."""
    verdict: PerformanceVerdict
    workloads: int
    faster: int
    slower: int
    """Workloads that are, or have a runtime workload that is."""
    ratio: Size
    """The mean of their ratios."""
    worst: str
    """The workload with the least one, in words."""
    worst_ratio: Size


class PerformanceNoise(Record):
    """How far the side before is from its own copy: what verdicts are measured by.

    Where results were given, how far processes of a side are from each other.
    """

    least: Size
    median: Size
    most: Size
    """Standard deviations of a ratio from process to process, over runtime workloads."""
    processes: int
    """The most that one was measured in."""


class VerifyPerformance(Document):
    """What `policygen verify-performance --json` prints."""

    format: Literal["policygen/verify-performance/1"] = "policygen/verify-performance/1"
    cub: Cub | None = None
    """None where results were given, and nothing was measured."""
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    before: str
    """What is compared with, in words."""
    after: str
    arch: Arch | None = None
    gpu: str | None = None
    """As databases name it."""
    driver: str | None = None
    toolchain: str | None = None
    tolerance: Size | None = None
    """The share by which a workload may be slower; none: as far as the noise lets one see."""
    confidence: Size
    """That no verdict is faster or slower by chance, all of them together."""
    noise: PerformanceNoise | None = None
    seed: int | None = None
    budget: Size | None = None
    database: str | None = None
    remarks: tuple[str, ...] = ()
    verdict: PerformanceVerdict
    """Slower where anything is; undecided where something is not known; faster where something is,
    and nothing is slower."""
    workloads: tuple[WorkloadPerformance, ...]
    entries: tuple[EntryPerformance, ...] = ()
    """Those that decide what was measured; nothing where that is not known of each."""
    quantiles: tuple[Size, ...] = QUANTILES
    """Of the samples of runtime workloads."""
    seconds: Size = 0.0

    @model_validator(mode="after")
    def _check_quantiles(self) -> Self:
        for workload in self.workloads:
            if any(len(row.quantiles) not in {0, len(self.quantiles)} for row in workload.runtime):
                raise ValueError(f"{workload.name}: other quantiles than the document has")
        return self

    def too_slow(self, performance: RuntimePerformance | WorkloadPerformance) -> bool:
        """Returns whether something is slower than the tolerance allows."""
        if performance.verdict != "slower" or performance.ratio is None:
            return False
        return self.tolerance is None or performance.ratio < 1 - self.tolerance

    def slowed(self, workload: WorkloadPerformance) -> bool:
        """Returns whether a workload, or one of its runtime workloads, is too slow."""
        return self.too_slow(workload) or any(self.too_slow(row) for row in workload.runtime)

    def _is_partly_too_slow(self, workload: WorkloadPerformance) -> bool:
        return self.slowed(workload) and not self.too_slow(workload)

    @property
    def failures(self) -> tuple[str, ...]:
        """Descriptions of everything that is unknown or wrong."""
        workloads = self.workloads
        groups = (
            ("slower", [workload for workload in workloads if self.too_slow(workload)]),
            (
                "slower in part",
                [workload for workload in workloads if self._is_partly_too_slow(workload)],
            ),
            (
                "less than was claimed",
                [workload for workload in workloads if workload.holds is False],
            ),
            ("does not run as before", [workload for workload in workloads if workload.failed]),
            ("not measured", [workload for workload in workloads if workload.problem]),
            ("not decided", [workload for workload in workloads if workload.open]),
        )
        return tuple(f"{label}: {_first_and_count(group)}" for label, group in groups if group)

    @property
    def passes(self) -> bool:
        """Whether everything is known, nothing is too slow, and all claims hold."""
        return not self.failures


def _first_and_count(workloads: Sequence[WorkloadPerformance]) -> str:
    hidden = len(workloads) - 1
    suffix = f", and {hidden} more workload{'s' * (hidden > 1)}" if hidden else ""
    return f"{workloads[0].name} on {workloads[0].arch}{suffix}"
