"""The contents of tuning databases, scores of variants, and choices among them."""

from typing import Literal

from pydantic import Field, computed_field

from policygen.model.arch import Arch
from policygen.model.records import Derived, Document, Record

Verdict = Literal["better", "worse", "too close to call", "mixed"]
Decision = Literal["use", "keep base"]
ScoreOrigin = Literal["shrunken", "confirmed"]
"""A search's score corrected for likely luck, or that of a run that the choice did not use."""


class Interval(Record):
    """Where a value lies with the asked confidence."""

    low: float
    high: float


class RunKey(Record):
    """What base and variant must have in common to be compared."""

    gpu: str
    ctk: str
    cccl: str


class PointRatio(Record):
    """One runtime workload: base's center over the variant's; over 1 is faster."""

    subbench: str
    point: dict[str, str]
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
    """Runtime workloads that got slower beyond noise; none when samples were not looked at."""
    loss: float | None = None
    """By how much the worst of those got slower: 0.08 is 8 %."""


class RejectedVariant(Record):
    """A candidate among the top ones that was not chosen, and why."""

    variant: str
    score: float | None
    reason: str


class Choice(Record):
    """What to do for a workload, under the stated rules."""

    decision: Decision
    variant: str | None
    score: float | None = None
    """What is expected of the variant: see `origin`."""
    reason: str
    rejected: tuple[RejectedVariant, ...] = ()
    raw_score: float | None = None
    """As the search measured it."""
    origin: ScoreOrigin | None = None
    noise: float | None = None
    """The standard deviation of a score in one run."""
    noise_origin: str | None = None
    tried: int = 0
    """Variants that were measured whole: the best one is the luckiest of so many."""
    luck: float | None = None
    """What the best of so many exceeds in one search of twenty, if all are as fast as base."""
    unconfirmed: bool = False
    """Whether it is chosen, and no run but the search that found it says so."""
    runs: int = 1
    """Runs of the search that are combined."""


class Measured(RunKey, Derived):
    """One compile-time workload, measured under one key in one database or several pooled ones."""

    algorithm: str
    workload: dict[str, str]
    databases: tuple[str, ...]
    """The files; several when they are pooled."""
    arch: Arch | None = None
    """The GPU's architecture, where a database or the user says it."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def database(self) -> str:
        """The files, joined by ` + ` when they are pooled."""
        return " + ".join(self.databases)


class RuntimeWorkload(Record):
    """One runtime workload, and how well it is known."""

    subbench: str
    point: dict[str, str]
    weight: float
    base: float
    """Seconds; the mean of the runs."""
    noise: float
    """The standard deviation of a ratio in one run."""


class Reasoning(Record):
    """What a choice was made from, for `db choose --why`."""

    runtime: tuple[RuntimeWorkload, ...]
    confirming: tuple[str, ...] = ()
    """Databases of confirming runs."""
    enough: float | None = None
    """What one confirming run of the best variant has to say for it to be chosen."""
    runs: int | None = None
    """As many confirming runs as find a gain of 3 % in four of five searches; none: over nine."""


class ScoredWorkload(Measured):
    """The variants of a workload, the best first."""

    approximate: bool
    """The weights come from the axis values present, for want of the declared ones."""
    runtime_workloads: int
    complete: int
    """Variants that were, base included; `variants` may hold fewer."""
    incomplete: int
    """Variants that were not measured on all runtime workloads."""
    declared: int | None = None
    """Runtime workloads that the declared axes make; none where they are not known."""
    missing: tuple[str, ...] = ()
    """What base was not measured on, although variants were or the benchmark declares it."""
    variants: tuple[ScoredVariant, ...]
    choice: Choice | None = None
    reasoning: Reasoning | None = None
    base_differs: bool = False
    """Whether the compiler says that base had other values there than in the tree of a plan."""


class Rules(Record):
    """When a variant is worth writing into a header; `[choose]` in `policygen.toml` sets them."""

    least_score: float = Field(default=1.015, gt=0, le=10)
    """What is gained has to be worth an entry, noise or none."""
    worst_allowed: float = Field(default=0.95, ge=0, le=1)
    """The least ratio of any runtime workload."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Of intervals, and that a search where nothing is faster than base finds nothing."""
    noise: float | None = Field(default=None, gt=0)
    """The standard deviation of a score in one run, in place of what is known of it."""
    point_noise: float = Field(default=0.04, ge=0)
    """Centers of single runtime workloads differ by as much between two runs."""
    prefer_simple: bool = False
    without_samples: bool = False
    """Whether a variant may be chosen although no samples tell how sure its score is."""
    candidates: int = Field(default=5, ge=1)
    """How many of the best are told with a reason."""
    holds: float = Field(default=1.06, gt=0)
    """Scores from which on nearly all of those that one run chose were found again."""
    accept_unconfirmed: bool = False
    """Whether to write what only the search that found it says, also under `holds`."""


class DataWarning(Record):
    """Something in a database that cannot be used, while the rest can."""

    database: str
    table: str | None
    message: str
    count: int = 1
    row: int | None = None
    """The first row that it was found in."""

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
    """Complete variants that belong to the search space; base is none."""
    variants: int | None
    """The size of the search space; none where it is not known."""
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
    """The database has the declared values of the axes."""
    values: dict[str, dict[int, str]] = Field(default_factory=dict)
    """By parameter what the numbers in labels stand for, as JSON, where they are no values."""


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
    """Two files that say different things of the same; the first one counts."""

    path: str
    table: str
    what: str
    """The variant and its workload, or the axis."""
    kept: str
    refused: str


class MergedTable(Record):
    """What became of one table's rows."""

    table: str
    rows: int
    duplicates: int = 0
    """Rows that an earlier file has with the same center."""
    conflicts: int = 0
    unusable: int = 0
    """Rows that name no GPU, version or variant, or one that is no label or no text."""


class MergeReport(Document):
    """What `policygen db merge --json` prints."""

    format: Literal["policygen/db-merge/1"] = "policygen/db-merge/1"
    out: str
    databases: tuple[str, ...]
    tables: tuple[MergedTable, ...]
    conflicts: tuple[MergeConflict, ...]
    unlisted: int
    """Conflicts that are counted and not listed."""


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
    """Of a map of scores; none where ratios are plotted."""
    variants: tuple[str, ...]
    """Whose ratios are plotted."""
    panels: int
    """Runtime workloads, or cells of a map."""
    warnings: tuple[DataWarning, ...] = ()
