"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.protocol import EntryWrite, HeaderEdits, Spot, Tell, TuningTree
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.marks import Marked
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Family, TuningHeader


@dataclass(frozen=True, slots=True)
class Configs:
    """Configs for types on an architecture; none of another architecture is inherited."""

    sources: TuningTree
    arch: str
    below: str | None = None

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Those of a header, by name and architecture."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """The header as it is: the compiler tells where what it takes stands."""
        del members
        return Marked(header, data, ())

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses all: configs are read and asked for, and not written yet."""
        raise InputError(
            f"{benchmark.name}: policygen does not write rocPRIM's configs yet",
            "It reads them (policygen scan), and says what they select (policygen resolve).",
        )

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> Spot:
        """None: see `check`."""
        del told
        self.check(benchmark)
        raise NotImplementedError

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> None:
        """None: no architecture gets what another one has."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """None: see `check`."""
        raise NotImplementedError

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """None: no architecture gets what another one has."""
        del changes, tell
        return []
