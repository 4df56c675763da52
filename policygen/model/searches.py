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
from policygen.model.results import Choice, DataWarning, Interval, Rules, RunKey, Verdict
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


# The report on a search: its result, confidence, course and failures.

QUANTILES = (0.01, *(step / 20 for step in range(1, 20)), 0.99)
"""Quantiles at which base's times are compared with a variant's."""
Origin = Literal["search", "measure", "import", "rows"]
"""The source of what is known: a search's own tables, those of `policygen measure`, those of an
import, or rows of results without further information."""
FailedKind = FailureKind | Literal["build", "run"]
"""`build` and `run` are from CCCL's logs, which have a code and no reason."""


class StepTime(Record):
    """What something took, each time that it was done."""

    step: str
    count: int
    seconds: float


class ReportedSession(Record):
    """When and on what it was measured."""

    database: str
    started: str
    ended: str | None = None
    """None: it goes on, or was killed."""
    seconds: float | None = None
    policygen: str = ""
    ctk: str = ""
    cccl: str = ""
    gpu: str = ""
    card: str = ""
    arch: str = ""
    driver: str = ""
    nvcc: str = ""
    method: str = ""
    seed: int | None = None
    sm_clock: int | None = None
    """MHz."""
    memory_clock: int | None = None
    power_limit: float | None = None
    """Watts."""
    repeated: int = 0
    throttled: int = 0
    restarts: int = 0
    steps: tuple[StepTime, ...] = ()
    """Those that took longest."""
    other_steps: StepTime | None = None
    """All others."""


class SearchRun(Record):
    """What a session says of its search of a workload."""

    strategy: str
    seed: int | None = None
    variants: str = ""
    """A number, which may be larger than programs count; so are the next two."""
    valid: str = ""
    distinct: str = ""
    base: Variant | None = None
    budget: float | None = None
    """Seconds."""
    spent: float = 0.0
    ended: Ended | None = None
    """None: it goes on, or was killed."""


class TriedVariant(Record):
    """A variant's score when it was measured first, beside base."""

    variant: Variant
    score: float
    rung: RungName | None = None
    """The last one that it was in."""
    evaluation: int | None = None
    """Its place in the order in which they were measured, from 1."""
    seconds: float | None = None
    """Of the search of the workload until it was measured."""


class BestSoFar(Record):
    """Where the best score rose."""

    evaluation: int
    seconds: float | None
    variant: Variant
    score: float


class RungSpan(Record):
    """When a rung's samples were taken, in a session."""

    rung: RungName
    start: float
    """Seconds of the search of the workload."""
    end: float


class SearchCurve(Record):
    """How the best score rose."""

    evaluations: int
    seconds: float | None
    """Until the last sample; none where rows tell no time."""
    best: tuple[BestSoFar, ...]
    spans: tuple[RungSpan, ...] = ()


class PointQuantiles(Record):
    """Base's time over a variant's at each of the quantiles of the document."""

    subbench: str
    point: dict[str, str]
    ratios: tuple[float, ...]


class ReportedFinalist(Record):
    """One of the best, as it was measured at last."""

    variant: Variant
    score: float
    interval: Interval | None = None
    verdict: MeasuredVerdict | Verdict | None = None
    processes: int | None = None
    """Over which its interval is made."""
    screened: float | None = None
    """By which it was chosen: luck is in it."""
    rank: int | None = None
    """By that, among all that were measured."""
    sharper: float | None = None
    close: bool = False
    """Whether its interval reaches that of the first one."""
    runtime: tuple[RuntimeRatio, ...] = ()
    quantiles: tuple[PointQuantiles, ...] = ()


class FailureGroup(Record):
    """Variants that failed in one way."""

    kind: FailedKind
    reason: str
    count: int
    variants: tuple[str, ...]
    """The first ones."""


class VariantCounts(Record):
    """What became of those that were tried."""

    tried: int
    measured: int
    """On all runtime workloads."""
    incomplete: int
    failed: int
    """`wrong` are not among them."""
    wrong: int


class ReportedWorkload(RunKey):
    """One workload."""

    algorithm: str
    workload: dict[str, str]
    databases: tuple[str, ...]
    arch: Arch | None = None
    origin: Origin
    searches: tuple[SearchRun, ...] = ()
    runtime_workloads: int
    declared: int | None = None
    """How many there should be; none where that is not known."""
    approximate: bool = False
    """The weights come from the axis values present, for want of the declared ones."""
    counts: VariantCounts
    base: Variant | None = None
    """The variant that says what CUB selects by itself, where one does."""
    best: Variant | None = None
    """The finalist that is faster than base beyond noise, and the fastest; of rows alone what `db
    choose` takes."""
    rung: RungName | None = None
    """Of the finalists' scores; none where there are no rungs."""
    finalists: tuple[ReportedFinalist, ...] = ()
    """The best one first."""
    other_finalists: int = 0
    """How many more there are, all slower."""
    control: ReportedFinalist | None = None
    """Base beside itself, measured as the finalists are."""
    choice: Choice | None = None
    """That of `db choose`."""
    curve: SearchCurve | None = None
    """None where no order is known."""
    variants: tuple[TriedVariant, ...] = ()
    """In the order in which they were measured where that is known, else the best one first."""
    unlisted: int = 0
    """Variants that were measured, and are too many to be listed: the slowest ones."""
    failures: tuple[FailureGroup, ...] = ()
    """Those of most variants."""
    other_failures: int = 0
    """Groups that are too many to be listed."""
    failed_variants: tuple[Variant, ...] = ()
    """The first ones, by which figures show where variants fail."""
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    """The standard deviation of base's score against itself from process to process."""


class SearchReport(Document):
    """What `policygen db report --json` prints."""

    format: Literal["policygen/search-report/1"] = "policygen/search-report/1"
    databases: tuple[str, ...]
    rules: Rules
    quantiles: tuple[float, ...] = QUANTILES
    sessions: tuple[ReportedSession, ...] = ()
    other_sessions: int = 0
    """How many more there are."""
    workloads: tuple[ReportedWorkload, ...]
    warnings: tuple[DataWarning, ...] = ()
