"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.load import bound, is_of
from policygen.errors import InputError
from policygen.headers.protocol import (
    Dialect,
    EntryWrite,
    HeaderEdits,
    Notation,
    NotKeptError,
    SelectionQuery,
    Spot,
    site_of,
)
from policygen.headers.spelling import replaced, text_of
from policygen.headers.text import Text
from policygen.model.bindings import BenchmarkBinding
from policygen.model.edits import Marked
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rocprim.config_edits import write_configs, write_tables
from policygen.rocprim.entries import by_hand
from policygen.rocprim.pickers import PICKER, find_pickers, gives_another, returns
from policygen.rocprim.placement import ConfigSpot, PickerSpot, TableSpot, with_formulas
from policygen.rocprim.structs import declaring, read_configs, tree_archs, tree_gpus


@dataclass(frozen=True, slots=True)
class Configs(Dialect):
    """Configs for types on an architecture; nothing is inherited from other architectures."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Returns the configs of a header, by name and architecture."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Makes pickers return entry numbers; the compiler reports locations of templates."""
        del members
        entries = tuple((family, entry) for family in header.families for entry in family.entries)
        return Marked(header, _numbered(header.name, data, entries), entries)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark whose config is missing in the tree."""
        self.place(benchmark, Selected({}))

    def place(self, benchmark: BenchmarkBinding, selected: Selected) -> ConfigSpot:
        """Returns the place of a workload's values, in any form of config."""
        sources, version = self.sources, self.sources.cub.bindings
        algorithm, site = site_of(benchmark, version, "configs")
        header = sources.headers.get(site.header)
        if header is None:
            raise InputError(f"the tree has no {site.header}")
        hub = site.hub.removeprefix("default_") if site.table else site.hub
        binding = next(
            family_binding
            for family_binding in algorithm.families
            if family_binding.site == site.name and hub.startswith(f"{family_binding.name}<")
        )
        families = tuple(
            family
            for family in header.families
            if (is_of(family.name, binding) if site.table else family.name == binding.name)
        )
        if not families:
            raise InputError(f"{site.header} has no {binding.name}")
        labels = ((member, rule.parameter) for member, rule in binding.members.items())
        names_in_comments = {
            member: (benchmark.called.get(label, label), label) for member, label in labels if label
        }
        place = (selected, site, binding, self.arch, families)
        common = (*place, version, header.aggregates, header.needed, names_in_comments)
        if not site.table:
            return PickerSpot(*common) if site.targets else ConfigSpot(*common)
        spans = selected.entry[1].arg_spans if selected.entry else ()
        arguments = tuple(text_of(sources.data[site.header], span) for span in spans)
        return with_formulas(TableSpot(*common, benchmark=benchmark, arguments=arguments))

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> ConfigSpot | None:
        """Returns a spot for the architecture's copy of a handwritten config, if it is shared."""
        del benchmark
        if isinstance(spot, TableSpot) and not spot.copied:
            return replace(spot, own=True)
        return None

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Writes values of existing configs, and new configs for the architecture."""
        write = write_tables if isinstance(writes[0].spots[0], TableSpot) else write_configs
        return write(self.sources.headers[name], self.sources.data[name], writes, self.arch)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Keeps nothing: devices share targets on purpose; handwritten configs are copied."""
        del tell
        tables = self._benchmarks_of_tables()
        shared_changes = [
            (change, f"{change.name} has the same config on {change.arch}")
            for change in changes
            if change.benchmark in tables
        ]
        if shared_changes:
            raise NotKeptError(shared_changes)
        return []

    def _benchmarks_of_tables(self) -> set[str]:
        """Returns the benchmarks that a handwritten table decides."""
        return {
            binding.name
            for algorithm in bound(self.sources.cub.bindings)
            for binding in algorithm.benchmarks
            if (site := algorithm.site(binding.site, "configs")) and site.table
        }


NOTATION = Notation(
    read=read_configs, declaring=declaring, dialect=Configs, archs=tree_archs, gpus=tree_gpus
)
# It has no member that tables would mistake for the config.
_NUMBERED_CONFIG = "::rocprim::kernel_config<{}, 1>"


# A copy of a header whose configs are entry numbers, where the compiler reports no location.


def _numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Returns the copy; returns that call another target's picker stay and yield its number."""
    if any(by_hand(family) for family, _ in entries):
        return _number_tables(data, entries)
    if not any(family.name.endswith(PICKER) for family, _ in entries):
        return data
    text = Text(name, data)
    numbers: Mapping[Span | None, int] = {
        e.inherits_span: number for number, (_, e) in enumerate(entries)
    }
    changes: list[tuple[Span, str]] = []
    for picker in find_pickers(text):
        if picker.returned is None:
            raise text.error(
                picker.name_span.start,
                f"{picker.name}: cannot determine what it returns",
                width=len(picker.name),
                remedy="Expected: -> std::enable_if_t<std::is_same_v<Target, …>, TYPE>",
            )
        changes.append((picker.returned, "int"))
        changes += [
            (picker_return.value, str(numbers[picker_return.value]))
            for picker_return in returns(text, picker)
            if not gives_another(text.code, picker_return.value)
        ]
    return replaced(data, changes)


def _number_tables(data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Gives each config its first number: in a table several architectures can share it."""
    numbers: dict[Span, int] = {}
    for number, (family, entry) in enumerate(entries):
        if by_hand(family) and entry.inherits_span is not None:
            numbers.setdefault(entry.inherits_span, number)
    return replaced(
        data, [(span, _NUMBERED_CONFIG.format(number)) for span, number in numbers.items()]
    )
