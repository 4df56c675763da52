"""The result of a search on a GPU, and its progress events."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.measured import (
    FailureKind,
    MeasuredVerdict,
    PointNoise,
    RuntimeRatio,
    SkippedPoint,
)
from policygen.model.records import Document, Record
from policygen.model.results import AtPoint, Choice, DataWarning, Interval, Rules, RunKey, Verdict
from policygen.model.trees import Cub
from policygen.model.workload import OfBenchmark, Variant

RungName = Literal["screening", "sharper", "last"]
"""Few samples of all variants; more of those that can still win; the finalists against base, in new
processes."""
Ended = Literal["exhausted", "budget", "count", "stopped"]
"""Why the search ended: all variants were tried, the time or the requested number was used up, or
the user stopped it.
"""


class SearchFailure(Record):
    """The number of variants that failed for one reason, with the first message."""

    kind: FailureKind
    count: int
    variant: Variant
    reason: str


MemcheckOutcome = Literal["error", "clean", "base", "not run"]
"""`error`: base passes but the variant does not; `base`: base itself fails."""


class Memcheck(Record):
    """The memcheck result of one of several variants that fail in the same way."""

    variant: Variant
    outcome: MemcheckOutcome
    words: str = ""
    """The first error with its frame, or why it was not run."""
    in_cub: bool = False
    """Whether base passes and the error is in a frame of CUB."""


FailedKind = FailureKind | Literal["build", "run"]
"""`build` and `run` come from CCCL's logs, which have an exit code but no reason."""


class FailureGroup(Record):
    """Variants that failed for the same reason."""

    kind: FailedKind
    reason: str
    count: int
    variants: tuple[str, ...]
    """The first variants."""
    memcheck: Memcheck | None = None
    """The memcheck result of a finding; null if not run."""


class Finalist(Record):
    """A finalist, measured again next to base on samples that no choice has used."""

    variant: Variant
    screened: float
    """Its score in the first rung, which contains selection bias."""
    sharper: float | None = None
    score: float
    """The score of the last rung, which is the result."""
    interval: Interval | None = None
    verdict: MeasuredVerdict | None = None
    runtime: tuple[RuntimeRatio, ...] = ()


class SearchedVariants(Record):
    """Counts of a workload's variants, and the outcome of those that were tried."""

    variants: int
    valid: int
    distinct: int
    tried: int
    """The number of different policies tried, over all sessions."""
    measured: int
    failed: int
    """Variants that nvcc or the GPU rejects, that crash or hang, or that are wrong."""
    wrong: int


class SearchedWorkload(OfBenchmark):
    """One workload."""

    strategy: str = ""
    counts: SearchedVariants | None = None
    base: Variant | None = None
    """The variant equal to CUB's own choice; null if there is none."""
    best: Variant | None = None
    """The fastest finalist that beats base by more than noise."""
    finalists: tuple[Finalist, ...] = ()
    failures: tuple[SearchFailure, ...] = ()
    findings: tuple[FailureGroup, ...] = ()
    """Variants that compute other results than base or fail on the GPU, by reason."""
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    skipped: tuple[SkippedPoint, ...] = ()
    ended: Ended | None = None
    seconds: float = 0.0
    """The fraction of time in which the GPU was busy."""
    problem: str | None = None
    """Why it was not searched."""


class Searched(Document):
    """What `policygen search --json` prints at the end."""

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
    """Seconds, over all sessions."""
    spent: float
    """Seconds, over all sessions."""
    workloads: tuple[SearchedWorkload, ...]
    seconds: float
    """Seconds of this session."""

    @property
    def is_fine(self) -> bool:
        """Whether all workloads were searched and all results agree with base's."""
        return not any(
            workload.problem or (workload.counts and workload.counts.wrong)
            for workload in self.workloads
        )


class CampaignGroup(Record):
    """Workloads of a benchmark in a campaign."""

    benchmark: str
    """`reduce.sum`."""
    axes: tuple[str, ...] = ()
    """As for `-a`: `T=[I32,F32]`; without any, all workloads of the benchmark."""
    weight: float = Field(default=1.0, gt=0)
    """How much a gain counts: how often it is used, and more where CUB has no tuning."""


class Campaign(Record):
    """What `policygen campaign` searches: a TOML file."""

    workload: tuple[CampaignGroup, ...] = Field(min_length=1)


class SearchEvent(Document):
    """A line of JSON during a search."""

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
    """The best score of this rung."""
    interval: Interval | None = None
    left: float | None = None
    """Remaining seconds of the budget."""


# `policygen search --replay`: how soon a strategy finds the best variants of fully measured spaces


class BestVariant(Record):
    """A variant and what a search maximizes, from all samples of the database."""

    variant: Variant
    score: float
    """Its score, or its lowest ratio if the rule does not allow that."""


class ReplayedWorkload(OfBenchmark, RunKey):
    """A workload of a benchmark, measured under one key."""


class ReplayedSpace(ReplayedWorkload):
    """The contents of a recorded search space."""

    databases: tuple[str, ...]
    recorded: int
    """The number of variants measured on all runtime workloads, without base."""
    product: int
    """The number of combinations of all parameter values; those not recorded count as invalid."""
    others: int
    """Ignored variants with different parameters than most."""
    incomplete: int
    """Variants that were not measured on all runtime workloads."""
    sampled: bool
    """Whether there are samples; otherwise a strategy sees recorded scores."""
    approximate: bool
    """The weights are based on the axis values present, because the declared ones are unknown."""
    starts: tuple[Variant, ...]
    """The start of the strategy, in values of the space; it may be unrecorded."""
    best: BestVariant


class ReplayRun(ReplayedWorkload):
    """The run of a strategy on a space with one seed."""

    strategy: str
    seed: int
    evaluations: int
    """The number of requested variants that the database has."""
    invalid: int
    """The number of requested variants that the database lacks."""
    best: BestVariant | None
    """The best evaluated variant; null if none was."""
    curve: tuple[tuple[int, float], ...]
    """Pairs of evaluations and the best score so far, at each rise and at the end."""


class SearchReplay(Document):
    """What `policygen search --replay --json` prints."""

    format: Literal["policygen/search-replay/1"] = "policygen/search-replay/1"
    strategy: str
    batch: int
    """Variants per batch."""
    samples: int
    """Samples per runtime workload behind the scores that a strategy sees; 0: recorded scores."""
    spaces: tuple[ReplayedSpace, ...]
    runs: tuple[ReplayRun, ...]
    warnings: tuple[DataWarning, ...] = ()


# The report on a search: its result, confidence, course and failures.

QUANTILES = (0.01, *(step / 20 for step in range(1, 20)), 0.99)
"""Quantiles at which base's times are compared with a variant's."""
Origin = Literal["search", "measure", "import", "rows"]
"""The source of the information: tables of a search, of `policygen measure`, or of an import, or
only rows of results.
"""


class StepTime(Record):
    """The time spent in one kind of step."""

    step: str
    count: int
    seconds: float


class ReportedSession(Record):
    """When and on which machine it was measured."""

    database: str
    started: str
    ended: str | None = None
    """Null: still running, or killed."""
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
    """The steps that took longest."""
    other_steps: StepTime | None = None
    """The time of all other steps."""


class SearchRun(Record):
    """A session's record of its search of a workload."""

    strategy: str
    seed: int | None = None
    variants: str = ""
    """A decimal number that may exceed 64 bits, like the next two."""
    valid: str = ""
    distinct: str = ""
    base: Variant | None = None
    budget: float | None = None
    """Seconds."""
    spent: float = 0.0
    ended: Ended | None = None
    """Null: still running, or killed."""


class TriedVariant(Record):
    """A variant's score when first measured."""

    variant: Variant
    score: float
    rung: RungName | None = None
    """The last rung that it reached."""
    evaluation: int | None = None
    """Its position in the order of measurement, from 1."""
    seconds: float | None = None
    """Seconds of the workload's search until it was measured."""


class BestSoFar(Record):
    """A point where the best score rose."""

    evaluation: int
    seconds: float | None
    variant: Variant
    score: float


class RungSpan(Record):
    """The time span of a rung's samples in a session."""

    rung: RungName
    start: float
    """Seconds of the search of the workload."""
    end: float


class SearchCurve(Record):
    """The convergence of the best score."""

    evaluations: int
    seconds: float | None
    """Seconds until the last sample; null if rows record no time."""
    best: tuple[BestSoFar, ...]
    spans: tuple[RungSpan, ...] = ()


class PointQuantiles(AtPoint):
    """Base's time divided by a variant's, at each of the document's quantiles."""

    ratios: tuple[float, ...]


class ReportedFinalist(Record):
    """One of the best variants, with its final measurement."""

    variant: Variant
    score: float
    interval: Interval | None = None
    verdict: MeasuredVerdict | Verdict | None = None
    processes: int | None = None
    """The number of processes behind its interval."""
    screened: float | None = None
    """The score by which it was selected, which contains selection bias."""
    rank: int | None = None
    """Its rank by that score among all measured variants."""
    sharper: float | None = None
    close: bool = False
    """Whether its interval overlaps that of the first."""
    runtime: tuple[RuntimeRatio, ...] = ()
    quantiles: tuple[PointQuantiles, ...] = ()


class VariantCounts(Record):
    """The outcome of the variants that were tried."""

    tried: int
    measured: int
    """Variants measured on all runtime workloads."""
    incomplete: int
    failed: int
    """Failed variants, without the `wrong` ones."""
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
    """The declared number of runtime workloads; null if unknown."""
    approximate: bool = False
    """The weights are based on the axis values present, because the declared ones are unknown."""
    counts: VariantCounts
    base: Variant | None = None
    """The variant equal to CUB's own choice; null if there is none."""
    best: Variant | None = None
    """The fastest finalist that beats base by more than noise; for rows, what `db choose` takes."""
    rung: RungName | None = None
    """The rung of the finalists' scores; null if there are no rungs."""
    finalists: tuple[ReportedFinalist, ...] = ()
    """The finalists, best first."""
    other_finalists: int = 0
    """The number of further, slower ones."""
    control: ReportedFinalist | None = None
    """Base compared with itself, measured like the finalists."""
    choice: Choice | None = None
    """The choice of `db choose`."""
    curve: SearchCurve | None = None
    """Null if the order is unknown."""
    variants: tuple[TriedVariant, ...] = ()
    """In the order of measurement if known, else best first."""
    unlisted: int = 0
    """The number of measured variants that are not listed, the slowest ones."""
    findings: tuple[FailureGroup, ...] = ()
    """Variants that compute other results than base or fail on the GPU, by reason."""
    failures: tuple[FailureGroup, ...] = ()
    """The reasons with the most variants."""
    other_failures: int = 0
    """The number of reasons that are not listed."""
    failed_variants: tuple[Variant, ...] = ()
    """The first failed variants, for figures of where variants fail."""
    noise: tuple[PointNoise, ...] = ()
    score_noise: float | None = None
    """The standard deviation of base's score against itself between processes."""


class SearchReport(Document):
    """What `policygen db report --json` prints."""

    format: Literal["policygen/search-report/1"] = "policygen/search-report/1"
    databases: tuple[str, ...]
    rules: Rules
    quantiles: tuple[float, ...] = QUANTILES
    sessions: tuple[ReportedSession, ...] = ()
    other_sessions: int = 0
    """The number of further ones."""
    workloads: tuple[ReportedWorkload, ...]
    warnings: tuple[DataWarning, ...] = ()
