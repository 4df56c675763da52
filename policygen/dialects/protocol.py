"""What a dialect does: all else asks this, and never how an entry is spelled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.cub import Cub
from policygen.model.edit import Edit
from policygen.model.entry_text import Content
from policygen.model.marks import Marked
from policygen.model.plan import Target
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Entry, Family, TuningHeader, Value
from policygen.model.workload import Point

Tell = Callable[[Sequence[Point], str], Mapping[Point, Selected]]
"""What the compiler selects for workloads on an architecture."""
TypeName = int | str
"""One of the types that a workload is told from others by: an argument, or what names a type."""


@dataclass(frozen=True, slots=True)
class TuningTree:
    """A tree: what its headers hold, and their bytes."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Spot(ABC):
    """Where the values of a workload go: the entry that has it, or one that is to be added."""

    told: Selected

    @property
    @abstractmethod
    def target(self) -> Target:
        """The entry that decides the workload, now or afterwards."""

    @property
    @abstractmethod
    def header(self) -> str:
        """Where it is written."""

    @property
    @abstractmethod
    def entry(self) -> Entry | None:
        """The one whose values change; none where one is added."""

    @property
    @abstractmethod
    def place(self) -> object:
        """What is the same for all workloads of one entry."""

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The types by which the workload can be told from others."""
        return {}

    def naming(self, name: TypeName) -> "Spot":
        """Of an entry for one of its types alone."""
        raise NotImplementedError(name)

    @property
    def named(self) -> str:
        """The type that its entry names, besides what it names anyway."""
        return ""

    @property
    def general(self) -> "Spot":
        """The same where nothing needs to be written for one of the types."""
        return self

    @property
    def narrower(self) -> "Spot | None":
        """Of an entry that names its types, where the one that it has decides others, too."""
        return None

    @property
    def ahead(self) -> bool:
        """Whether what is added comes before what decides now, and takes all that it not names."""
        return False

    @property
    def unsure(self) -> bool:
        """Whether a header with what is added may not compile."""
        return self.ahead

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added: it would take others, too."""
        return None

    @property
    def alone(self) -> bool:
        """Whether a reason needs no names of the others that its entry decides."""
        return False

    @abstractmethod
    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The values of an entry for a variant of the benchmark as it was measured."""

    @abstractmethod
    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """What the policy shows with these values."""

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """The values of a variant that the policy shows, and no member of an entry says."""
        del measured, variant
        return {}

    def saying(self, measured: BenchmarkBinding, shown: Values) -> "Spot | None":
        """The same with an entry that says more of a variant; none where none can.

        `shown` has by value what the policy gives an entry that does not say it.
        """
        del measured, shown
        return None

    def afterwards(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        """What the policy shows when it has the values that are wanted."""
        return {**self.told.values, **wanted}

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """What an entry with these values holds."""
        return Content("values", members, label=label)

    def kept(self, name: str) -> Content:
        """What gives the workload what it has now, where a broader entry would take it."""
        raise InputError(f"no entry can keep what {name} has")

    def takes(self, other: "Spot") -> bool:
        """Whether what is written here decides another workload, or may."""
        return other.place == self.place

    def lost(self, found: str) -> str:
        """That the workload does not get what is written for it, but what was found."""
        return f"would have {found}"


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """One entry to write, and the workloads that it is for."""

    spots: tuple[Spot, ...]
    content: Content
    reason: str
    points: frozenset[Point] = frozenset()
    """The workloads that were measured."""

    @property
    def header(self) -> str:
        """Where it is written."""
        return self.spots[0].header


@dataclass(slots=True)
class HeaderEdits:
    """What changes in one header."""

    edits: list[Edit] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)


class Dialect(Protocol):
    """One way to spell tunings, in the headers of one tree and for one architecture."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """The entries of a header that are spelled so, by family."""

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """A copy of a header in which each entry can be recognised; `members` carry the marks."""

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark that has no place, whatever is selected for its workloads."""

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> Spot:
        """The entry of a workload, or where one goes."""

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> Spot | None:
        """The same where later architectures do not get to it; none where there is no such."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Entries as edits of a header; those for one place are one edit."""

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """Entries that keep for later architectures what a change would take; refused or none."""


class NotKeptError(Exception):
    """Workloads that no entry can keep as they are for later architectures, and why not each."""

    def __init__(self, told: Sequence[tuple[DeltaRow[Values], str]]) -> None:
        super().__init__(told[0][1])
        self.told = told
