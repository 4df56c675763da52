"""What was measured on a GPU: named variants beside base, with intervals and the noise."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.base import Document, Record
from policygen.model.cub import Cub
from policygen.model.labels import Variant
from policygen.model.results import Interval

MeasuredVerdict = Literal["faster", "slower", "equal"]
"""`equal`: the interval holds 1."""
FailureKind = Literal[
    "invalid", "base", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]
"""Why there is no score: the space forbids it, it comes to base's own policy, nvcc refuses it, its
results are not base's, it ends or blocks the process, asks for too much memory, or CUDA refuses
it."""
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
        """Whether every variant was measured and is right."""
        return not any(
            workload.problem or any(one.failed for one in workload.variants)
            for workload in self.workloads
        )
