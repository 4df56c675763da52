"""Measurements on a GPU: named variants against base, with intervals and noise."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.results import AtPoint, Interval
from policygen.model.trees import Cub
from policygen.model.workload import OfBenchmark, OnArch, Variant

MeasuredVerdict = Literal["faster", "slower", "equal"]
"""`equal`: the interval contains 1."""
FailureKind = Literal[
    "invalid", "base", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]
"""Why there is no score: the search space forbids it, it has base's own policy, nvcc rejects it,
its results differ from base's, it crashes or hangs, it needs too much memory, or CUDA rejects it.
"""
Method = Literal["events", "nvbench"]


class RuntimeRatio(AtPoint):
    """One runtime workload: base's time divided by the variant's; above 1 is faster."""

    weight: float
    seconds: float
    base_seconds: float
    ratio: float
    interval: Interval | None = None


class VariantFailure(Record):
    """Why a variant has no score."""

    kind: FailureKind
    reason: str


class MeasuredVariant(Record):
    """One variant."""

    variant: Variant
    score: float | None = None
    interval: Interval | None = None
    verdict: MeasuredVerdict | None = None
    runtime: tuple[RuntimeRatio, ...] = ()
    failed: VariantFailure | None = None


class PointNoise(AtPoint):
    """Variation of base on a runtime workload."""

    seconds: float
    """Base's time in seconds."""
    between: float | None
    """The relative standard deviation of its time between processes."""
    beside: float
    """The standard deviation of base's ratio to itself within a process."""


class SkippedPoint(Record):
    """A runtime workload that was not measured."""

    point: dict[str, str]
    reason: str
    """Whether the benchmark skips it, or the GPU has too little memory."""


class MeasuredWorkload(OfBenchmark):
    """One workload, with its variants in the order given."""

    variants: tuple[MeasuredVariant, ...]
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    """The standard deviation of base's score against itself between processes."""
    skipped: tuple[SkippedPoint, ...] = ()
    repeated: int = 0
    """Samples that were repeated because the GPU was throttled."""
    throttled: int = 0
    """Samples that were still throttled."""
    restarts: int = 0
    """Processes that were restarted after a crash or hang."""
    known: int = 0
    """Rows that were already in the database."""
    problem: str | None = None
    """Why it was not measured."""


class MeasuredVariants(Document):
    """What `policygen measure --json` prints."""

    format: Literal["policygen/measure/1"] = "policygen/measure/1"
    cub: Cub
    arch: Arch
    toolchain: str
    driver: str
    gpu: str
    """The GPU's name in databases."""
    ctk: str
    cccl: str
    method: Method
    processes: int
    """The number of fresh processes, from which intervals are computed."""
    rounds: int
    """Rounds per process."""
    seed: int
    database: str | None
    workloads: tuple[MeasuredWorkload, ...]
    seconds: float
    """Total time in seconds."""
    compiling: float
    """Of those, the seconds until everything was compiled."""

    @property
    def is_fine(self) -> bool:
        """Whether all variants were measured and correct."""
        return not any(
            workload.problem or any(variant.failed for variant in workload.variants)
            for workload in self.workloads
        )


# `policygen measure --compile-only`: variants, and which of them compile

How = Literal["policies", "headers"]
"""Kind of variant: a policy passed to the algorithm, or an edit of CUB's own header."""


class FailedVariant(Record):
    """A variant that cannot be measured."""

    variant: Variant
    reason: str
    """The message of policygen or of the compiler."""


class CompiledSpace(OnArch):
    """The variants of a workload."""

    how: How
    variants: int
    """The number of variants in the search space, or of those named."""
    valid: int
    """Variants allowed by CUB's limits and by the architecture's shared memory."""
    distinct: int
    """Valid variants with different policies."""
    asked: int
    """Distinct variants that were to be compiled."""
    compiled: int
    base: tuple[Variant, ...] = ()
    """Variants equal to CUB's own choice, which need no compile."""
    failed: tuple[FailedVariant, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    """Rule → the number of variants that it forbids, among those checked one by one."""


class Unmeasured(OnArch):
    """A workload that cannot be measured."""

    reason: str


class MeasureCompile(Document):
    """What `policygen search --replay --json` prints."""

    format: Literal["policygen/measure-compile/1"] = "policygen/measure-compile/1"
    cub: Cub
    toolchain: str
    arch: Arch
    seed: int | None = None
    """The seed for drawing variants; null if all distinct ones were compiled."""
    workloads: tuple[CompiledSpace, ...]
    unmeasured: tuple[Unmeasured, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether everything that was requested compiles."""
        return not self.unmeasured and not any(workload.failed for workload in self.workloads)


# Strategies of a kernel by size: the fastest ones, their lead and their resources

MatrixVerdict = Literal["best", "close", "slower", "not known"]
"""`close`: its interval includes the best time. `not known`: too few processes."""


class KernelUse(Record):
    """The GPU resources of a launch."""

    registers: int
    spilled: int
    """Local memory per thread in bytes: arrays and spilled registers."""
    shared: int
    """Shared memory per block in bytes."""
    block: int
    grid: int
    occupancy: float
    """Theoretical occupancy: the fraction of a multiprocessor's threads in resident blocks."""
    achieved: float | None = None
    """Achieved occupancy as reported by ncu."""


class MatrixCell(Record):
    """The best variant of a strategy at a size."""

    strategy: str
    size: str
    variant: str
    tried: int
    """The number of variants of the strategy measured at this size."""
    seconds: float
    """The mean over processes of the median time."""
    interval: Interval | None
    """The 95 % interval; null for a single process."""
    ratio: float
    """The best time at this size divided by this time."""
    ratio_interval: Interval | None
    verdict: MatrixVerdict
    bandwidth: float | None = None
    """Bytes per second."""
    share: float | None = None
    """The fraction of a copy kernel's bandwidth on the same GPU."""
    use: KernelUse | None = None


class KernelMatrix(Record):
    """A kernel on a GPU."""

    kernel: str
    gpu: str
    by: str
    """The parameter whose values are compared."""
    strategies: tuple[str, ...]
    sizes: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    peak: float | None
    """The bandwidth of a copy kernel in bytes per second, reads and writes."""

    def cell(self, strategy: str, size: str) -> MatrixCell | None:
        """Returns the measurement of a strategy at a size."""
        matches = (cell for cell in self.cells if (cell.strategy, cell.size) == (strategy, size))
        return next(matches, None)


class StrategyMatrix(Document):
    """What `policygen db matrix --json` prints."""

    format: Literal["policygen/matrix/1"] = "policygen/matrix/1"
    databases: tuple[str, ...]
    kernels: tuple[KernelMatrix, ...]
