"""What the compiler tells of one workload on one architecture, for planning."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policygen.model.tuning import Entry, Family, Value
from policygen.model.workload import Point, in_words


@dataclass(frozen=True, slots=True)
class Lead:
    """Where a workload's key leads in one family."""

    args: tuple[str, ...]
    """The key, as the compiler prints it."""
    entry: tuple[Family, Entry] | None
    """The entry that the compiler takes for it; none where the family only declares itself."""


@dataclass(frozen=True, slots=True)
class Told:
    """One workload on one architecture."""

    values: Mapping[str, Value]
    shown: tuple[Family, Entry] | None
    """The entry that shows in the policy."""
    leads: Mapping[str, Lead]
    """By family."""
    sizes: Mapping[str, int]
    """Role → bytes."""
    traits: Mapping[str, Value] = field(default_factory=dict)
    """In the selector dialect: what the policy selector knows of the workload's types."""


@dataclass(frozen=True, slots=True)
class Change:
    """A workload that resolves to something else, on one architecture."""

    benchmark: str
    workload: tuple[tuple[str, str], ...]
    arch: str
    before: Mapping[str, Value]
    after: Mapping[str, Value]

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark, dict(self.workload))

    @property
    def point(self) -> Point:
        """What changes."""
        return self.benchmark, self.workload


@dataclass(frozen=True, slots=True)
class Compared:
    """All workloads of some headers, before and after a change."""

    archs: tuple[str, ...]
    workloads: int
    """Times architectures."""
    changes: tuple[Change, ...]
