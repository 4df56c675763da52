"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.load import bound, is_of
from policygen.errors import InputError
from policygen.headers.protocol import (
    EntryWrite,
    HeaderEdits,
    NotKeptError,
    SelectionQuery,
    Spot,
    TuningTree,
    site_of,
)
from policygen.headers.spelling import replaced, text_of
from policygen.headers.text import Text
from policygen.model.bindings import BenchmarkBinding
from policygen.model.edits import Marked
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rocprim.config_edits import write_configs, write_pickers, write_tables
from policygen.rocprim.entries import by_hand
from policygen.rocprim.pickers import PICKER, find_pickers, gives_another, returns
from policygen.rocprim.placement import ConfigSpot, PickerSpot, TableSpot, with_formulas

_WRITERS = {ConfigSpot: write_configs, PickerSpot: write_pickers, TableSpot: write_tables}


@dataclass(frozen=True, slots=True)
class Configs:
    """Configs for types on an architecture; nothing is inherited from other architectures."""

    sources: TuningTree
    arch: str
    below: str | None = None

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Returns the configs of a header, by name and architecture."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Makes pickers return entry numbers; the compiler reports locations of templates."""
        del members
        entries = tuple((family, entry) for family in header.families for entry in family.entries)
        return Marked(header, numbered(header.name, data, entries), entries)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark whose config is missing in the tree."""
        config_spot(benchmark, Selected({}), self.sources, self.arch)

    def place(self, benchmark: BenchmarkBinding, selected: Selected) -> ConfigSpot:
        """Returns the config of a workload, or the place for a new one."""
        return config_spot(benchmark, selected, self.sources, self.arch)

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> ConfigSpot | None:
        """Returns a copy for the architecture of a handwritten config; others are not shared."""
        del benchmark
        assert isinstance(spot, ConfigSpot), "it is a config"
        return copied(spot)

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Writes values of existing configs, and new configs for the architecture."""
        written = _WRITERS[type(writes[0].spots[0])]
        return written(self.sources.headers[name], self.sources.data[name], writes, self.arch)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Keeps nothing: devices share targets on purpose; handwritten configs are copied."""
        del tell
        shared_changes = [
            (change, shared(change)) for change in changes if self._by_hand(change.benchmark)
        ]
        if shared_changes:
            raise NotKeptError(shared_changes)
        return []

    def _by_hand(self, benchmark: str) -> bool:
        """Returns whether a handwritten table decides a benchmark."""
        version = self.sources.cub.bindings
        return any(
            binding.name == benchmark
            and (site := algorithm.site(binding.site, "configs"))
            and site.table
            for algorithm in bound(version)
            for binding in algorithm.benchmarks
        )


def shared(change: DeltaRow[Values]) -> str:
    """Reports that an architecture shares the config."""
    return f"{change.name} has the same config on {change.arch}"


# It has no member that tables would mistake for the config.
_NUMBERED_CONFIG = "::rocprim::kernel_config<{}, 1>"


# A copy of a header whose configs are entry numbers, where the compiler reports no location.


def numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
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
                f"{picker.name}: cannot tell what it returns",
                width=len(picker.name),
                remedy="Expected: -> std::enable_if_t<std::is_same_v<Target, …>, TYPE>",
            )
        changes.append((picker.returned, "int"))
        own_returns = (
            picker_return
            for picker_return in returns(text, picker)
            if not gives_another(text.code, picker_return.value)
        )
        changes += [
            (picker_return.value, str(numbers[picker_return.value]))
            for picker_return in own_returns
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


# The place of a workload's values, in any form of config.


def config_spot(
    benchmark: BenchmarkBinding, selected: Selected, sources: TuningTree, arch: str
) -> ConfigSpot:
    """Returns the place of a workload's values."""
    version = sources.cub.bindings
    algorithm, site = site_of(benchmark, version, "configs")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    site_families = [
        family_binding for family_binding in algorithm.families if family_binding.site == site.name
    ]
    hub = site.hub.removeprefix("default_") if site.table else site.hub
    binding = next(
        family_binding
        for family_binding in site_families
        if hub.startswith(f"{family_binding.name}<")
    )
    families = tuple(
        family
        for family in header.families
        if (is_of(family.name, binding) if site.table else family.name == binding.name)
    )
    if not families:
        raise InputError(f"{site.header} has no {binding.name}")
    labels = {member: rule.parameter for member, rule in binding.members.items() if rule.parameter}
    names_in_comments = {
        member: (benchmark.called.get(label, label), label) for member, label in labels.items()
    }
    common = (selected, site, binding, arch, families, version, header.aggregates, header.needed)
    if not site.table:
        kind = PickerSpot if site.targets else ConfigSpot
        return kind(*common, names_in_comments)
    spans = selected.entry[1].arg_spans if selected.entry else ()
    arguments = tuple(text_of(sources.data[site.header], span) for span in spans)
    return with_formulas(
        TableSpot(*common, names_in_comments, benchmark=benchmark, arguments=arguments)
    )


def copied(spot: ConfigSpot) -> ConfigSpot | None:
    """Returns a spot for a copy of the config; None if it is not shared."""
    if not isinstance(spot, TableSpot) or spot.copied:
        return None
    return replace(spot, own=True)
