"""The performance of a merged change on a GPU, for each workload before and after it."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from policygen.model.arch import Arch
from policygen.model.measured import SkippedPoint, VariantFailure
from policygen.model.records import Document, Record
from policygen.model.results import AtPoint
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


class RuntimePerformance(AtPoint):
    """One runtime workload: the time before divided by the time after; above 1 is faster."""

    weight: Size
    before_seconds: Size
    after_seconds: Size
    ratio: Size
    low: Size | None = None
    high: Size | None = None
    noise: Size | None = None
    """The standard deviation of a ratio between processes, including that of the side before
    against its own copy; null if each side has results of only one process.
    """
    verdict: PerformanceVerdict
    processes: int
    """The number of processes; for given results, that of the side with fewer."""
    quantiles: tuple[Size, ...] = ()
    """The ratio at each of the document's quantiles; null if there are too few samples."""


class WorkloadPerformance(OnArch):
    """One workload."""

    verdict: PerformanceVerdict
    entry: EntryPlace | None = None
    """The entry that decides it after the change, if known."""
    ratio: Size | None = None
    """The mean over its runtime workloads, with CCCL's weights."""
    low: Size | None = None
    high: Size | None = None
    noise: Size | None = None
    claimed: Finite | None = None
    """The score that the change claims."""
    least: Finite | None = None
    """The minimum ratio for which the claim holds."""
    holds: bool | None = None
    """Whether the claim holds within the measured uncertainty."""
    runtime: tuple[RuntimePerformance, ...] = ()
    skipped: tuple[SkippedPoint, ...] = ()
    failed: VariantFailure | None = None
    """The failure of the side after: different results, or it does not run."""
    problem: str | None = None
    """Why it cannot be measured."""

    @model_validator(mode="after")
    def _check_interval_and_claim(self) -> Self:
        """Checks that verdicts have an interval, and claims their threshold."""
        for names in (("low", "high"), ("claimed", "least", "holds")):
            missing = [name for name in names if getattr(self, name) is None]
            if missing and len(missing) < len(names):
                raise ValueError(
                    f"{', '.join(names)} must be given together: {', '.join(missing)} is missing"
                )
        has_interval = self.ratio is not None and self.low is not None
        if not has_interval and (self.claimed is not None or self.verdict in MEASURED):
            raise ValueError(f"it is {self.verdict}, but has no ratio with an interval")
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
    """An entry, and the results of the workloads that it decides after the change.

    Exactly one entry decides each workload, so measuring all together is the same as changing each
    entry by itself.
    """

    entry: EntryPlace | None
    """Null: CUB's choice where no entry decides."""
    verdict: PerformanceVerdict
    workloads: int
    faster: int
    slower: int
    """Workloads that are slower, or have a slower runtime workload."""
    ratio: Size
    """The mean of the workloads' ratios."""
    worst: str
    """The workload with the lowest ratio, as text."""
    worst_ratio: Size


class PerformanceNoise(Record):
    """The variation between the side before and its own copy, on which verdicts are based.

    For given results, the variation between processes of a side.
    """

    least: Size
    median: Size
    most: Size
    """Standard deviations of a ratio between processes, over runtime workloads."""
    processes: int
    """The largest number of processes of any workload."""


class VerifyPerformance(Document):
    """What `policygen verify-performance --json` prints."""

    format: Literal["policygen/verify-performance/1"] = "policygen/verify-performance/1"
    cub: Cub | None = None
    """Null if results were given and nothing was measured."""
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    before: str
    """Description of the side before."""
    after: str
    arch: Arch | None = None
    gpu: str | None = None
    """The GPU's name in databases."""
    driver: str | None = None
    toolchain: str | None = None
    tolerance: Size | None = None
    """The allowed slowdown as a fraction; null: the resolution of the measurement."""
    confidence: Size
    """The confidence that no verdict is faster or slower by chance, for all together."""
    noise: PerformanceNoise | None = None
    seed: int | None = None
    budget: Size | None = None
    database: str | None = None
    remarks: tuple[str, ...] = ()
    verdict: PerformanceVerdict
    """Slower if anything is; else undecided if anything is; else faster if anything is."""
    workloads: tuple[WorkloadPerformance, ...]
    entries: tuple[EntryPerformance, ...] = ()
    """The entries that decide the measured workloads; empty if any of them is unknown."""
    quantiles: tuple[Size, ...] = QUANTILES
    """The quantiles at which samples are compared."""
    seconds: Size = 0.0

    @model_validator(mode="after")
    def _check_quantiles(self) -> Self:
        for workload in self.workloads:
            if any(len(row.quantiles) not in {0, len(self.quantiles)} for row in workload.runtime):
                raise ValueError(f"{workload.name}: quantiles differ from those of the document")
        return self

    def too_slow(self, performance: RuntimePerformance | WorkloadPerformance) -> bool:
        """Returns whether something is slower than the tolerance allows."""
        if performance.verdict != "slower" or performance.ratio is None:
            return False
        return self.tolerance is None or performance.ratio < 1 - self.tolerance

    def slowed(self, workload: WorkloadPerformance) -> bool:
        """Returns whether a workload, or one of its runtime workloads, is too slow."""
        return self.too_slow(workload) or any(self.too_slow(row) for row in workload.runtime)

    @property
    def failures(self) -> tuple[str, ...]:
        """Descriptions of everything that is unknown or wrong."""
        tests: dict[str, Callable[[WorkloadPerformance], object]] = {
            "slower": self.too_slow,
            "slower in part": lambda row: self.slowed(row) and not self.too_slow(row),
            "less than claimed": lambda row: row.holds is False,
            "does not run as before": lambda row: row.failed,
            "not measured": lambda row: row.problem,
            "undecided": lambda row: row.open,
        }
        groups = {name: [*filter(fails, self.workloads)] for name, fails in tests.items()}
        return tuple(
            f"{name}: {_first_and_count(group)}" for name, group in groups.items() if group
        )

    @property
    def passes(self) -> bool:
        """Whether everything is known, nothing is too slow, and all claims hold."""
        return not self.failures


def _first_and_count(workloads: Sequence[WorkloadPerformance]) -> str:
    hidden = len(workloads) - 1
    suffix = f", and {hidden} more workload{'s' * (hidden > 1)}" if hidden else ""
    return f"{workloads[0].name} on {workloads[0].arch}{suffix}"
