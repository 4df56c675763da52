"""Comparison of two runs, or two GPUs, on the same variants; and imports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.results import AtPoint, Choice, DataWarning, DbPlot, Rules, RunKey, Verdict
from policygen.model.workload import Variant

Says = Literal["holds", "not confirmed", "contradicts", "not measured"]
"""What one side's data says about the other side's choice.

`not confirmed`: the rules would not choose it from both sides' data, but noise can explain that;
`contradicts`: it is slower than base beyond noise, or a runtime workload loses too much.
"""
Agreement = Literal[
    "same variant", "both keep base", "holds", "not confirmed", "contradicts", "not measured"
]
"""Whether both sides choose alike; if not, the worse statement about the other's choice."""


class Winner(Record):
    """A side's choice, or its best variant if it keeps base, and how it ranks on the other side."""

    variant: str
    chosen: bool
    score: float
    rank: int | None
    """Rank among the variants that both have; null if the other side did not measure it."""
    other_score: float | None = None
    other_rank: int | None = None
    costs: float | None = None
    """How far it is behind the other side's best, as a fraction: 0.01 is 1 %."""
    verdict: Verdict | None = None
    """The other side's verdict on this variant, which it did not select: no selection bias."""
    says: Says | None = None
    """What the other side says of a choice; null if base is kept."""
    reason: str = ""


class ComparedSide(RunKey):
    """One side of a workload."""

    databases: tuple[str, ...]
    """Several files are repeated runs; scores are their means."""
    variants: int
    """Variants that were measured on all runtime workloads, without base."""
    only: int
    """Of those, the variants that the other side lacks."""
    runtime_only: int
    """Runtime workloads that the other side lacks; they are ignored."""
    approximate: bool
    choice: Choice | None
    """None if only part of the runtime workloads is selected."""
    winner: Winner | None


class ScoreDifference(Record):
    """The distribution of log(B's score / A's score) over the variants that both have."""

    shift: float
    """Its mean: base's own noise, or an effect of the GPU or version common to all variants."""
    spread: float | None
    """Its standard deviation; null for fewer than three variants."""
    expected: float
    """The spread expected from noise alone, as assumed by choices."""
    noise: float | None
    """The resulting standard deviation of a score in one run; null if anything else differs."""
    largest: float
    """The largest difference after subtracting the shift."""
    variant: str
    """The variant with that difference."""


class PointDifference(AtPoint):
    """One runtime workload: log(B's ratio / A's ratio) over all variants."""

    weight: float
    base_a: float
    """Seconds."""
    base_b: float
    shift: float
    spread: float | None
    expected: float


class RankOrder(Record):
    """How well the order of the variants agrees."""

    spearman: float | None
    """Null for fewer than three variants, or if all scores are equal."""
    best: int
    """The number of variants that count as best."""
    in_both: int
    """How many of A's best variants are among B's best."""
    by_chance: float
    """The number expected by chance."""
    best_of_a: float | None
    """Spearman's coefficient of only A's best variants."""
    best_of_b: float | None


class PairedScore(Record):
    """A variant's score on both sides."""

    variant: str
    a: float
    b: float


class ComparedWorkload(Record):
    """A workload that both sides have."""

    algorithm: str
    workload: dict[str, str]
    a: ComparedSide
    b: ComparedSide
    differs: tuple[Literal["gpu", "ctk", "cccl"], ...]
    """Which of GPU, toolkit and CCCL differ; if none, the search was repeated."""
    copy_of_rows: bool
    """Whether all common rows are bitwise equal: a copy is not a second run."""
    agreement: Agreement | None
    order: RankOrder
    difference: ScoreDifference
    points: tuple[PointDifference, ...]
    """Runtime workloads that both have, with A's weights."""
    scores: tuple[PairedScore, ...]
    """Variants that both have, A's best first, without base."""


class SideFiles(Record):
    """One side: its files, and where they were measured."""

    databases: tuple[str, ...]
    keys: tuple[RunKey, ...]


class LoneWorkload(Record):
    """A workload that only one side has."""

    algorithm: str
    workload: dict[str, str]


class DbCompare(Document):
    """What `policygen db compare --json` prints."""

    format: Literal["policygen/db-compare/1"] = "policygen/db-compare/1"
    a: SideFiles
    b: SideFiles
    rules: Rules
    workloads: tuple[ComparedWorkload, ...]
    only_a: tuple[LoneWorkload, ...]
    only_b: tuple[LoneWorkload, ...]
    warnings: tuple[DataWarning, ...] = ()


# Imports


class ImportedParameter(Record):
    """A parameter of variant labels, with all its tuned values."""

    name: str
    algorithm: str = ""
    """The algorithm that has the parameter."""
    numbered: bool
    """Whether labels contain numbers that stand for the values."""
    values: dict[int, str]
    """What each number stands for, as JSON."""


class ImportedFile(Record):
    """A file that was read."""

    path: str
    sha256: str
    program: str
    """The tuner that wrote it."""
    kernel: str | None
    device: str | None
    size: str
    configurations: int
    notes: tuple[str, ...] = ()


class ImportedFailure(Record):
    """Configurations without a time, grouped by reason."""

    kind: str
    reason: str
    count: int
    variants: tuple[Variant, ...]
    """Examples."""
    places: tuple[str, ...] = ()
    """Places of some examples: `reduce.json: benchmarks[12]`."""


class ImportedWorkload(Record):
    """An algorithm with its axis values, as in the database."""

    algorithm: str
    workload: dict[str, str]
    base: Variant
    """Its label; `base` if the library's default ran and its values are unknown."""
    base_from: Literal["option", "default", "tree"]
    """From `--base`, from a run of the library's default, or from a tree's entry."""
    base_values: dict[str, str]
    sizes: tuple[str, ...]
    variants: int
    rows: int
    without_samples: int
    deviation: float | None = None
    """The largest relative spread of samples that the files do not contain."""


class ImportedLeftOut(Record):
    """Workloads of the files that the database lacks, grouped by reason."""

    algorithm: str
    reason: str
    count: int
    workload: dict[str, str]
    """An example."""
    size: str
    """Its size; empty for all sizes."""


class DbImport(Document):
    """What `policygen db import --json` prints."""

    format: Literal["policygen/db-import/1"] = "policygen/db-import/1"
    out: str
    algorithm: str
    workload: dict[str, str]
    gpu: str
    arch: Arch
    ctk: str
    cccl: str
    base: Variant
    """The label of the configuration stored as `base`."""
    base_values: dict[str, str]
    """Its values by parameter, as JSON."""
    sizes: tuple[str, ...]
    variants: int
    """Variants with a time on any size, without base."""
    rows: int
    without_samples: int
    """Rows with a single time instead of samples."""
    joined: int
    """Repeated measurements that were combined with the first."""
    warmup: int
    """The number of first launches of each configuration ignored as warm-up."""
    copies: int
    """Ignored measurements that are copies of others."""
    parameters: tuple[ImportedParameter, ...]
    files: tuple[ImportedFile, ...]
    failures: tuple[ImportedFailure, ...]
    other_failures: int
    """The number of further reasons."""
    library: str = ""
    """`rocprim` for results of its benchmarks; `algorithm` and `base` are the first workload's."""
    workloads: tuple[ImportedWorkload, ...] = ()
    left_out: tuple[ImportedLeftOut, ...] = ()


# What a plot of one workload is drawn from.


@dataclass(frozen=True, slots=True)
class PointRatios:
    """Ratios of times at each quantile on one runtime workload, such as base over variants."""

    subbench: str
    point: Mapping[str, str]
    ratios: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class WorkloadPlot:
    """Ratios of variants to base, or scores over two parameters, as the document says."""

    title: str
    document: DbPlot
    points: Sequence[PointRatios] = ()
    cells: Mapping[tuple[int, int], Sequence[float]] = field(default_factory=dict)
    """Scores by the values of the two parameters."""
