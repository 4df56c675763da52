"""What `policygen search --replay` prints: how soon a strategy finds the best of whole spaces."""

from typing import Literal

from policygen.model.base import Document, Record
from policygen.model.labels import Variant
from policygen.model.results import DataWarning, RunKey


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
