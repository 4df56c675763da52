"""The contents of tuning databases, scores of variants, and choices among them."""

from typing import Literal

from pydantic import Field, computed_field

from policygen.model.arch import Arch
from policygen.model.records import Derived, Document, Record

Verdict = Literal["better", "worse", "too close to call", "mixed"]
Decision = Literal["use", "keep base"]
ScoreOrigin = Literal["shrunken", "confirmed"]
"""Source of a score: the search's, corrected for selection bias, or an independent run's."""


class Interval(Record):
    """An interval with the requested confidence."""

    low: float
    high: float


class RunKey(Record):
    """What base and variant must share to be comparable."""

    gpu: str
    ctk: str
    cccl: str


class AtPoint(Record):
    """A runtime workload of a benchmark."""

    subbench: str
    point: dict[str, str]


class PointRatio(AtPoint):
    """One runtime workload: base's center divided by the variant's; above 1 is faster."""

    weight: float
    ratio: float
    interval: Interval | None = None


class ScoredVariant(Record):
    """One variant that was measured on all runtime workloads."""

    variant: str
    score: float
    min: float
    mean: float
    max: float
    interval: Interval | None = None
    verdict: Verdict | None = None
    worst: PointRatio | None = None
    slower: int | None = None
    """Runtime workloads that got slower by more than noise; null if samples were not examined."""
    loss: float | None = None
    """The slowdown of the worst of those: 0.08 is 8 %."""


class RejectedVariant(Record):
    """A top candidate that was not chosen, and why."""

    variant: str
    score: float | None
    reason: str


class Choice(Record):
    """The decision for a workload under the given rules."""

    decision: Decision
    variant: str | None
    score: float | None = None
    """The expected score of the variant; see `origin`."""
    reason: str
    rejected: tuple[RejectedVariant, ...] = ()
    raw_score: float | None = None
    """The score measured by the search."""
    origin: ScoreOrigin | None = None
    noise: float | None = None
    """The standard deviation of a score in one run."""
    noise_origin: str | None = None
    tried: int = 0
    """The number of completely measured variants, which determines the selection bias."""
    luck: float | None = None
    """The score that the best of them exceeds in 1 of 20 searches if all are as fast as base."""
    unconfirmed: bool = False
    """Whether it is chosen without confirmation by a run other than the search."""
    runs: int = 1
    """The number of combined runs of the search."""


class Measured(RunKey, Derived):
    """One compile-time workload, measured under one key in one database or several pooled ones."""

    algorithm: str
    workload: dict[str, str]
    databases: tuple[str, ...]
    """The database files; several if pooled."""
    arch: Arch | None = None
    """The GPU's architecture, if a database or the user states it."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def database(self) -> str:
        """The database files, joined by ` + ` if pooled."""
        return " + ".join(self.databases)


class RuntimeWorkload(AtPoint):
    """One runtime workload and its precision."""

    weight: float
    base: float
    """Seconds; the mean of the runs."""
    noise: float
    """The standard deviation of a ratio in one run."""


class Reasoning(Record):
    """The evidence behind a choice, for `db choose --why`."""

    runtime: tuple[RuntimeWorkload, ...]
    confirming: tuple[str, ...] = ()
    """Databases of confirming runs."""
    enough: float | None = None
    """The score that one confirming run must show for the best variant to be chosen."""
    runs: int | None = None
    """Confirming runs needed to detect a gain of 3 % in 4 of 5 searches; null: over nine."""


class ScoredWorkload(Measured):
    """The variants of a workload, the best first."""

    approximate: bool
    """The weights are based on the axis values present, because the declared ones are unknown."""
    runtime_workloads: int
    complete: int
    """The number of measured variants with base; `variants` may list fewer."""
    incomplete: int
    """Variants that were not measured on all runtime workloads."""
    declared: int | None = None
    """The number of runtime workloads of the declared axes; null if unknown."""
    missing: tuple[str, ...] = ()
    """Runtime workloads without base that variants were measured on or the benchmark declares."""
    variants: tuple[ScoredVariant, ...]
    choice: Choice | None = None
    reasoning: Reasoning | None = None
    base_differs: bool = False
    """Whether the compiler shows that base had different values than in the plan's tree."""

    @property
    def chosen(self) -> ScoredVariant | None:
        """The scores of the chosen variant; None if base is kept."""
        label = self.choice.variant if self.choice else None
        return next((variant for variant in self.variants if variant.variant == label), None)

    @property
    def is_used(self) -> bool:
        """Whether a variant is chosen for it."""
        return self.choice is not None and self.choice.decision == "use"


class Rules(Record):
    """When a variant is worth writing into a header; `[choose]` in `policygen.toml` sets them."""

    least_score: float = Field(default=1.015, gt=0, le=10)
    """The minimum score that is worth an entry, regardless of noise."""
    worst_allowed: float = Field(default=0.95, ge=0, le=1)
    """The lowest allowed ratio on any runtime workload."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Confidence of intervals, and of choosing none in a search without faster variants."""
    noise: float | None = Field(default=None, gt=0)
    """The standard deviation of a score in one run, instead of the estimate."""
    point_noise: float = Field(default=0.04, ge=0)
    """The relative difference of a runtime workload's center between two runs."""
    prefer_simple: bool = False
    without_samples: bool = False
    """Whether a variant may be chosen although without samples, its uncertainty is unknown."""
    candidates: int = Field(default=5, ge=1)
    """The number of best variants that get a reason."""
    holds: float = Field(default=1.06, gt=0)
    """The score above which nearly all choices from a single run were reproduced."""
    accept_unconfirmed: bool = False
    """Whether to write choices without confirmation even if their score is below `holds`."""


class DataWarning(Record):
    """An unusable part of a database; the rest is used."""

    database: str
    table: str | None
    message: str
    count: int = 1
    row: int | None = None
    """The first affected row."""

    def __str__(self) -> str:
        where = f"{self.database}: " + (f"{self.table}: " if self.table else "")
        row = f", row {self.row}" if self.row is not None else ""
        times = f" ({self.count:,}{row})" if self.count > 1 else f" (row {self.row})" if row else ""
        return f"{where}{self.message}{times}"


class DbTop(Document):
    """What `policygen db top --json` and `policygen db choose --json` print."""

    format: Literal["policygen/db-top/1"] = "policygen/db-top/1"
    rules: Rules
    alpha: float
    workloads: tuple[ScoredWorkload, ...]
    warnings: tuple[DataWarning, ...] = ()


class CoveredWorkload(Measured):
    """How much of the search space was measured for one workload."""

    covered: int
    """Completely measured variants of the search space, without base."""
    variants: int | None
    """The size of the search space; null if unknown."""
    share: float | None


class DbCoverage(Document):
    """What `policygen db coverage --json` prints."""

    format: Literal["policygen/db-coverage/1"] = "policygen/db-coverage/1"
    workloads: tuple[CoveredWorkload, ...]
    warnings: tuple[DataWarning, ...] = ()


class TableInfo(Record):
    """One sub-benchmark's table."""

    algorithm: str
    subbench: str
    rows: int
    unusable: int
    """Rows whose center is missing, not finite or not positive."""
    variants: int
    """Distinct variants, base not counted."""
    workloads: tuple[dict[str, str], ...]
    keys: tuple[RunKey, ...]
    axes: dict[str, tuple[str, ...]]
    """Runtime axes with the values present."""
    declared: bool
    """Whether the database has the declared values of the axes."""
    values: dict[str, dict[int, str]] = Field(default_factory=dict)
    """By parameter: the values, as JSON, that numbers in labels stand for."""


class FailureCount(Record):
    """Failed builds or runs of one benchmark: the databases name the variant, not the workload."""

    kind: Literal["build", "run"]
    algorithm: str
    code: str
    count: int


class DatabaseInfo(Record):
    """One file."""

    path: str
    sha256: str
    layout: str
    """`cccl`, `cub` (CCCL 2.2's column) or `nvbench`."""
    tables: tuple[TableInfo, ...]
    failures: tuple[FailureCount, ...]
    build_seconds: float | None
    run_seconds: float | None


class DbInfo(Document):
    """What `policygen db info --json` prints."""

    format: Literal["policygen/db-info/1"] = "policygen/db-info/1"
    databases: tuple[DatabaseInfo, ...]
    warnings: tuple[DataWarning, ...] = ()


class MergeConflict(Record):
    """A conflict between two files; the first one wins."""

    path: str
    table: str
    what: str
    """The variant and its workload, or the axis."""
    kept: str
    refused: str


class MergedTable(Record):
    """The merge result of one table."""

    table: str
    rows: int
    duplicates: int = 0
    """Rows that an earlier file has with the same center."""
    conflicts: int = 0
    unusable: int = 0
    """Rows without a valid GPU, version or variant."""


class MergeReport(Document):
    """What `policygen db merge --json` prints."""

    format: Literal["policygen/db-merge/1"] = "policygen/db-merge/1"
    out: str
    databases: tuple[str, ...]
    tables: tuple[MergedTable, ...]
    conflicts: tuple[MergeConflict, ...]
    unlisted: int
    """The number of conflicts that are not listed."""


class DbExport(Document):
    """What `policygen db export --json` prints."""

    format: Literal["policygen/db-export/1"] = "policygen/db-export/1"
    out: str
    databases: tuple[str, ...]
    rows: int


class DbPlot(Document):
    """What `policygen db plot --json` prints: what was plotted."""

    format: Literal["policygen/db-plot/1"] = "policygen/db-plot/1"
    out: str
    algorithm: str
    workload: dict[str, str]
    measured_on: RunKey
    databases: tuple[str, ...]
    parameters: tuple[str, str] | None
    """The parameters of a map of scores; null if ratios are plotted."""
    variants: tuple[str, ...]
    """The plotted variants."""
    panels: int
    """The number of runtime workloads, or of cells of the map."""
    warnings: tuple[DataWarning, ...] = ()
