"""What a search on a GPU found, and what it tells while it goes on."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.base import Document, Record
from policygen.model.cub import Cub
from policygen.model.labels import Variant
from policygen.model.measured import (
    FailureKind,
    MeasuredVerdict,
    PointNoise,
    RuntimeRatio,
    SkippedPoint,
)
from policygen.model.results import Interval

RungName = Literal["screening", "sharper", "last"]
"""Few samples of all; more of those that can still win; the finalists beside base, in fresh
processes."""
Ended = Literal["exhausted", "budget", "count", "stopped"]
"""Why no more variants are tried: all were, there is no time left, as many as were asked for were,
or somebody stopped it."""


class SearchFailure(Record):
    """How many variants failed in one way, and the words of the first."""

    kind: FailureKind
    count: int
    variant: Variant
    reason: str


class Finalist(Record):
    """One of those that were measured again, beside base, on samples that nothing was chosen by."""

    variant: Variant
    screened: float
    """Its score in the first rung, by which it was selected: luck is in it."""
    sharper: float | None = None
    score: float
    """Of the last rung: this is the result."""
    interval: Interval | None = None
    verdict: MeasuredVerdict | None = None
    runtime: tuple[RuntimeRatio, ...] = ()


class SearchedVariants(Record):
    """How many variants a workload has, and what became of those that were tried."""

    variants: int
    valid: int
    distinct: int
    tried: int
    """Different policies that were asked for, in all sessions."""
    measured: int
    failed: int
    """Those that nvcc or the GPU refuses, that crash, hang, or are wrong."""
    wrong: int


class SearchedWorkload(Record):
    """One workload."""

    benchmark: str
    workload: dict[str, str]
    strategy: str = ""
    counts: SearchedVariants | None = None
    base: Variant | None = None
    """The variant that says what CUB selects by itself, where one does."""
    best: Variant | None = None
    """The finalist that is faster than base beyond noise, and the fastest."""
    finalists: tuple[Finalist, ...] = ()
    failures: tuple[SearchFailure, ...] = ()
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    skipped: tuple[SkippedPoint, ...] = ()
    ended: Ended | None = None
    seconds: float = 0.0
    """Of the GPU's time."""
    problem: str | None = None
    """Why it was not searched."""


class Searched(Document):
    """What `policygen search --json` prints at last."""

    format: Literal["policygen/search/1"] = "policygen/search/1"
    cub: Cub
    arch: Arch
    toolchain: str
    driver: str
    gpu: str
    ctk: str
    cccl: str
    database: str
    seed: int
    budget: float | None
    """Seconds, of all sessions."""
    spent: float
    """Seconds, of all sessions."""
    workloads: tuple[SearchedWorkload, ...]
    seconds: float
    """Of this session."""

    @property
    def is_fine(self) -> bool:
        """Whether every workload was searched, and nothing computed what base does not."""
        return not any(one.problem or (one.counts and one.counts.wrong) for one in self.workloads)


class SearchEvent(Document):
    """A line of JSON while a search goes on."""

    format: Literal["policygen/search-event/1"] = "policygen/search-event/1"
    event: Literal["begun", "batch", "rung", "ended"]
    at: float
    """Seconds since the session began."""
    benchmark: str
    workload: dict[str, str]
    rung: RungName
    strategy: str
    tried: int
    distinct: int
    failed: int
    wrong: int
    best: Variant | None = None
    score: float | None = None
    """The best one's, of this rung."""
    interval: Interval | None = None
    left: float | None = None
    """Seconds of the budget."""
