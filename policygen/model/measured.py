"""Measurements on a GPU: named variants against base, with intervals and noise."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.results import Interval
from policygen.model.trees import Cub
from policygen.model.workload import OnArch, Variant

MeasuredVerdict = Literal["faster", "slower", "equal"]
"""`equal`: the interval contains 1."""
FailureKind = Literal[
    "invalid", "base", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]
"""Why there is no score: the search space forbids it, it has base's own policy, nvcc rejects it,
its results differ from base's, it ends or blocks the process, it needs too much memory, or CUDA
rejects it."""
Method = Literal["events", "nvbench"]


class RuntimeRatio(Record):
    """One runtime workload: base's time over the variant's; over 1 is faster."""

    subbench: str
    point: dict[str, str]
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


class PointNoise(Record):
    """How far runs of base are from each other on a runtime workload."""

    subbench: str
    point: dict[str, str]
    seconds: float
    """What base takes."""
    between: float | None
    """The standard deviation of its time from process to process, as a share of it."""
    beside: float
    """That of the ratio of base to itself within a process."""


class SkippedPoint(Record):
    """A runtime workload that is not measured."""

    point: dict[str, str]
    reason: str
    """The benchmark skips it, or the GPU has not enough memory."""


class MeasuredWorkload(Record):
    """One workload, its variants in the order in which they were named."""

    benchmark: str
    workload: dict[str, str]
    variants: tuple[MeasuredVariant, ...]
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    """The standard deviation of base's score against itself from process to process."""
    skipped: tuple[SkippedPoint, ...] = ()
    repeated: int = 0
    """Samples that were taken again, as the GPU was throttled."""
    throttled: int = 0
    """Samples that were throttled still."""
    restarts: int = 0
    """Processes that were started anew, as one had crashed or hung."""
    known: int = 0
    """Rows that were in the database already."""
    problem: str | None = None
    """Why nothing of it was measured."""


class MeasuredVariants(Document):
    """What `policygen measure --json` prints."""

    format: Literal["policygen/measure/1"] = "policygen/measure/1"
    cub: Cub
    arch: Arch
    toolchain: str
    driver: str
    gpu: str
    """As databases name it."""
    ctk: str
    cccl: str
    method: Method
    processes: int
    """Fresh processes, over which intervals are made."""
    rounds: int
    """In each process."""
    seed: int
    database: str | None
    workloads: tuple[MeasuredWorkload, ...]
    seconds: float
    """Of all."""
    compiling: float
    """Seconds of those until all was compiled."""

    @property
    def is_fine(self) -> bool:
        """Whether all variants were measured and correct."""
        return not any(
            workload.problem or any(variant.failed for variant in workload.variants)
            for workload in self.workloads
        )


# `policygen measure --compile-only`: variants, and which of them compile

How = Literal["policies", "headers"]
"""What a variant is: a policy passed to the algorithm, or a change of CUB's own header."""


class FailedVariant(Record):
    """A variant that cannot be measured."""

    variant: Variant
    reason: str
    """What policygen says of it, or the compiler."""


class CompiledSpace(OnArch):
    """The variants of a workload."""

    how: How
    variants: int
    """Those of the search space, or those that were named."""
    valid: int
    """Those that CUB's limits and the shared memory of the architecture allow."""
    distinct: int
    """Those of them whose policies differ."""
    asked: int
    """The distinct ones that were compiled, or were to be."""
    compiled: int
    base: tuple[Variant, ...] = ()
    """Those that are what CUB selects by itself; they need no compile."""
    failed: tuple[FailedVariant, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    """Rule → how many variants it forbids, of those that were looked at one by one."""


class Unmeasured(OnArch):
    """A workload that cannot be measured."""

    reason: str


class MeasureCompile(Document):
    """The document."""

    format: Literal["policygen/measure-compile/1"] = "policygen/measure-compile/1"
    cub: Cub
    toolchain: str
    arch: Arch
    seed: int | None = None
    """By which variants were drawn, where not all distinct ones were compiled."""
    workloads: tuple[CompiledSpace, ...]
    unmeasured: tuple[Unmeasured, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether everything that was requested compiles."""
        return not self.unmeasured and not any(workload.failed for workload in self.workloads)


# Strategies of a kernel by size: the fastest ones, their lead and their resources

MatrixVerdict = Literal["best", "close", "slower", "not known"]
"""`close`: its interval reaches the best time. `not known`: there are too few processes."""


class KernelUse(Record):
    """What a launch takes of a GPU."""

    registers: int
    spilled: int
    """Bytes of a thread that lie in memory: arrays, and registers that were spilled."""
    shared: int
    """Bytes of a block."""
    block: int
    grid: int
    occupancy: float
    """The share of a multiprocessor's threads that fitting blocks take."""
    achieved: float | None = None
    """The share that was at work, on average, as ncu counted it."""


class MatrixCell(Record):
    """The best variant of a strategy at a size."""

    strategy: str
    size: str
    variant: str
    tried: int
    """Variants of the strategy that were measured there."""
    seconds: float
    """The mean of the medians of processes."""
    interval: Interval | None
    """Of 95 %; none where there is one process."""
    ratio: float
    """The time of the best at this size, over this one's."""
    ratio_interval: Interval | None
    verdict: MatrixVerdict
    bandwidth: float | None = None
    """Bytes in a second."""
    share: float | None = None
    """Of what a copy reaches on the same GPU."""
    use: KernelUse | None = None


class KernelMatrix(Record):
    """A kernel on a GPU."""

    kernel: str
    gpu: str
    by: str
    """The parameter whose values are compared as sets."""
    strategies: tuple[str, ...]
    sizes: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    peak: float | None
    """Bytes in a second that a copy reads and writes."""

    def cell(self, strategy: str, size: str) -> MatrixCell | None:
        """Returns the measurement of a strategy at a size."""
        matches = (cell for cell in self.cells if (cell.strategy, cell.size) == (strategy, size))
        return next(matches, None)


class StrategyMatrix(Document):
    """What `policygen db matrix --json` prints."""

    format: Literal["policygen/matrix/1"] = "policygen/matrix/1"
    databases: tuple[str, ...]
    kernels: tuple[KernelMatrix, ...]
