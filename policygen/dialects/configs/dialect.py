"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.load import bound
from policygen.dialects.configs.numbered import numbered
from policygen.dialects.configs.picker_write import write_pickers
from policygen.dialects.configs.place import ConfigSpot, PickerSpot
from policygen.dialects.configs.spots import config_spot, copied
from policygen.dialects.configs.table_place import TableSpot
from policygen.dialects.configs.table_write import write_tables
from policygen.dialects.configs.write import write_configs
from policygen.dialects.protocol import (
    EntryWrite,
    HeaderEdits,
    NotKeptError,
    Spot,
    Tell,
    TuningTree,
)
from policygen.model.bindings import BenchmarkBinding
from policygen.model.marks import Marked
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Family, TuningHeader

_WRITERS = {ConfigSpot: write_configs, PickerSpot: write_pickers, TableSpot: write_tables}


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

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> ConfigSpot | None:
        """Of a config by hand a copy for the architecture; others have none to share."""
        del benchmark
        assert isinstance(spot, ConfigSpot), "it is a config"
        return copied(spot)

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Values of configs that are there, and further ones for the architecture."""
        written = _WRITERS[type(writes[0].spots[0])]
        return written(self.sources.headers[name], self.sources.data[name], writes, self.arch)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: Tell) -> list[EntryWrite]:
        """None: devices share targets on purpose, and configs by hand are copied before that."""
        del tell
        told = [(one, shared(one)) for one in changes if self._by_hand(one.benchmark)]
        if told:
            raise NotKeptError(told)
        return []

    def _by_hand(self, benchmark: str) -> bool:
        """Whether a table by hand decides a benchmark."""
        version = self.sources.cub.bindings
        return any(
            one.name == benchmark and (site := algorithm.site(one.site, "configs")) and site.table
            for algorithm in bound(version)
            for one in algorithm.benchmarks
        )


def shared(change: DeltaRow[Values]) -> str:
    """That an architecture has the same config."""
    return f"{change.name} has the same config on {change.arch}"
