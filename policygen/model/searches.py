"""The result of a search on a GPU, and its progress events."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.measured import (
    FailureKind,
    MeasuredVerdict,
    PointNoise,
    RuntimeRatio,
    SkippedPoint,
)
from policygen.model.records import Document, Record
from policygen.model.results import DataWarning, Interval, RunKey
from policygen.model.trees import Cub
from policygen.model.workload import Variant

RungName = Literal["screening", "sharper", "last"]
"""Few samples of all variants; more of those that can still win; the finalists against base, in new
processes."""
Ended = Literal["exhausted", "budget", "count", "stopped"]
"""Why no more variants are tried: all were tried, time or the requested count is used up, or the
user stopped it."""


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
        """Whether all workloads were searched and all results agree with base's."""
        return not any(
            workload.problem or (workload.counts and workload.counts.wrong)
            for workload in self.workloads
        )


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


# `policygen search --replay`: how soon a strategy finds the best variants of fully measured spaces


class BestVariant(Record):
    """A variant and its score, by all that the database has of it."""

    variant: Variant
    score: float


class ReplayedWorkload(RunKey):
    """A workload of a benchmark, measured under one key."""

    benchmark: str
    workload: dict[str, str]


class ReplayedSpace(ReplayedWorkload):
    """What a database has of a space."""

    databases: tuple[str, ...]
    recorded: int
    """Variants that were measured on all runtime workloads; base is none."""
    product: int
    """As many as the values of all parameters make; the others count as invalid."""
    others: int
    """Variants with other parameters than most have: they are left out."""
    incomplete: int
    """Variants that were not measured on all runtime workloads."""
    sampled: bool
    """Whether there are samples: without them a strategy is told recorded scores."""
    approximate: bool
    """The weights come from the axis values present, for want of the declared ones."""
    starts: tuple[Variant, ...]
    """What the strategy began with, in the values that the space has; it need not be there."""
    best: BestVariant


class ReplayRun(ReplayedWorkload):
    """What a strategy did with a space, for one seed."""

    strategy: str
    seed: int
    evaluations: int
    """Variants that it asked for and the database has."""
    invalid: int
    """Variants that it asked for and the database lacks."""
    best: BestVariant | None
    """The best of those that were evaluated; none where nothing was."""
    curve: tuple[tuple[int, float], ...]
    """Evaluations, and the best score until then: where it rises, and at the end."""


class SearchReplay(Document):
    """The document."""

    format: Literal["policygen/search-replay/1"] = "policygen/search-replay/1"
    strategy: str
    batch: int
    """Variants that were asked for at once."""
    late: int
    """Batches that were asked for before one was told."""
    samples: int
    """Of each runtime workload, by which a strategy was told scores; 0: what was recorded."""
    spaces: tuple[ReplayedSpace, ...]
    runs: tuple[ReplayRun, ...]
    warnings: tuple[DataWarning, ...] = ()
