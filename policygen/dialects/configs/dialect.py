"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.configs.numbered import numbered
from policygen.dialects.configs.picker_write import write_pickers
from policygen.dialects.configs.place import ConfigSpot, PickerSpot, config_spot
from policygen.dialects.configs.write import write_configs
from policygen.dialects.protocol import EntryWrite, HeaderEdits, Spot, Tell, TuningTree
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
        """Pickers return numbers; of what is inherited the compiler tells where it stands."""
        del members
        entries = tuple((family, entry) for family in header.families for entry in family.entries)
        return Marked(header, numbered(header.name, data, entries), entries)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark whose config the tree does not have."""
        config_spot(benchmark, Selected({}), self.sources, self.arch)

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> ConfigSpot:
        """The config of a workload, or where one goes."""
        return config_spot(benchmark, told, self.sources, self.arch)

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> None:
        """None: no architecture gets what another one has."""

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Values of configs that are there, and further ones for the architecture."""
        written = write_pickers if isinstance(writes[0].spots[0], PickerSpot) else write_configs
        return written(self.sources.headers[name], self.sources.data[name], writes, self.arch)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """None: no architecture gets what another one has."""
        del changes, tell
        return []
