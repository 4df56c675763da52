"""Comparison of two runs, or two GPUs, on the same variants; and imports."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.results import Choice, DataWarning, Rules, RunKey, Verdict
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
    """What a side chooses, or its best variant where it keeps base, and how that does elsewhere."""

    variant: str
    chosen: bool
    score: float
    rank: int | None
    """Among the variants that both have; none where the other side has not measured it."""
    other_score: float | None = None
    other_rank: int | None = None
    costs: float | None = None
    """What it lacks to the other side's best, as a share of that: 0.01 is 1 %."""
    verdict: Verdict | None = None
    """The other side's, of this variant alone: none was looked for, so luck has no part."""
    says: Says | None = None
    """Of a choice; none where base is kept."""
    reason: str = ""


class ComparedSide(RunKey):
    """One side of a workload."""

    databases: tuple[str, ...]
    """Several are runs of it: scores are means over them."""
    variants: int
    """That were measured whole; base is none."""
    only: int
    """Of those, what the other side has not."""
    runtime_only: int
    """Runtime workloads that the other side has not: they do not count."""
    approximate: bool
    choice: Choice | None
    """None where a part of the runtime workloads is asked for."""
    winner: Winner | None


class ScoreDifference(Record):
    """The logarithm of B's score over A's, of all variants that both have."""

    shift: float
    """Its mean: base's own noise, or what another GPU or version makes of all variants."""
    spread: float | None
    """Its standard deviation; none with fewer than three variants."""
    expected: float
    """What the spread would be by noise alone, as the choices take it."""
    noise: float | None
    """A score's standard deviation in one run, by this; none where other things differ, too."""
    largest: float
    """The largest one but for the shift."""
    variant: str
    """Whose that is."""


class PointDifference(Record):
    """One runtime workload: the logarithm of B's ratio over A's, of all variants."""

    subbench: str
    point: dict[str, str]
    weight: float
    base_a: float
    """Seconds."""
    base_b: float
    shift: float
    spread: float | None
    expected: float


class RankOrder(Record):
    """Whether both have the variants in the same order."""

    spearman: float | None
    """None with fewer than three variants, or where all are alike."""
    best: int
    """As many as count as the best ones."""
    in_both: int
    """Of A's best ones, how many are among B's."""
    by_chance: float
    """How many that would be without any relation."""
    best_of_a: float | None
    """Spearman's coefficient of A's best ones alone."""
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
    """In what they were measured on; without any it is the same search, twice."""
    copy_of_rows: bool
    """Whether all that both have is the same to the bit: a copy is no second run."""
    agreement: Agreement | None
    order: RankOrder
    difference: ScoreDifference
    points: tuple[PointDifference, ...]
    """Runtime workloads that both have; weights are A's."""
    scores: tuple[PairedScore, ...]
    """Variants that both have, A's best first; base is none of them."""


class SideFiles(Record):
    """One side: its files, and what they were measured on."""

    databases: tuple[str, ...]
    keys: tuple[RunKey, ...]


class LoneWorkload(Record):
    """A workload of one side that nothing was compared with."""

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
    """A parameter of labels, with all values that were tuned."""

    name: str
    algorithm: str = ""
    """Whose it is."""
    numbered: bool
    """Whether a label has numbers that stand for its values, and not the values themselves."""
    values: dict[int, str]
    """What each number stands for, as JSON writes it."""


class ImportedFile(Record):
    """A file that was read."""

    path: str
    sha256: str
    program: str
    """Which tuner wrote it."""
    kernel: str | None
    device: str | None
    size: str
    configurations: int
    notes: tuple[str, ...] = ()


class ImportedFailure(Record):
    """Configurations without a time, for one reason."""

    kind: str
    reason: str
    count: int
    variants: tuple[Variant, ...]
    """Some of them."""
    places: tuple[str, ...] = ()
    """Where some of them stand: `reduce.json: benchmarks[12]`."""


class ImportedWorkload(Record):
    """An algorithm with values of its axes, as the database has it."""

    algorithm: str
    workload: dict[str, str]
    base: Variant
    """Its label; `base` where what a library has by default ran, and nobody says what that is."""
    base_from: Literal["option", "default", "tree"]
    """`--base`, a run of what the library has by default, or the entry that a tree has."""
    base_values: dict[str, str]
    sizes: tuple[str, ...]
    variants: int
    rows: int
    without_samples: int
    deviation: float | None = None
    """The largest share of a time that samples were apart which files have not kept."""


class ImportedLeftOut(Record):
    """Workloads that are in files and not in the database, for one reason."""

    algorithm: str
    reason: str
    count: int
    workload: dict[str, str]
    """One of them."""
    size: str
    """Of it; empty for all of them."""


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
    """The label of what stands as `base` in the database."""
    base_values: dict[str, str]
    """The same by parameter, as JSON writes values."""
    sizes: tuple[str, ...]
    variants: int
    """Those with a time on any size; base is none."""
    rows: int
    without_samples: int
    """Rows of which nothing but one time is known."""
    joined: int
    """Measurements beyond the first of a row."""
    warmup: int
    """As many first launches of each configuration do not count."""
    copies: int
    """Measurements that are copies of others, and left out."""
    parameters: tuple[ImportedParameter, ...]
    files: tuple[ImportedFile, ...]
    failures: tuple[ImportedFailure, ...]
    other_failures: int
    """How many more reasons there are."""
    library: str = ""
    """`rocprim`, where files are of its benchmarks; `algorithm` and `base` are of the first one."""
    workloads: tuple[ImportedWorkload, ...] = ()
    left_out: tuple[ImportedLeftOut, ...] = ()
