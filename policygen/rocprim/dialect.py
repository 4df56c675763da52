"""rocPRIM's configs as a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.load import bound, is_of
from policygen.errors import InputError
from policygen.headers.protocol import (
    EntryWrite,
    HeaderEdits,
    NotKeptError,
    Spot,
    Tell,
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
from policygen.rocprim.edits import write_configs, write_pickers, write_tables
from policygen.rocprim.entries import by_hand
from policygen.rocprim.pickers import PICKER, find_pickers, gives_another, returns
from policygen.rocprim.placement import ConfigSpot, PickerSpot, TableSpot, with_formulas

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


# It has no member that tables would take for the config.
_TELLING = "::rocprim::kernel_config<{}, 1>"


# A copy of a header whose configs are the numbers of their entries, where nothing else tells.


def numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """The copy; what returns what another target has stays, and so returns the number of that."""
    if any(by_hand(family) for family, _ in entries):
        return _of_tables(data, entries)
    if not any(family.name.endswith(PICKER) for family, _ in entries):
        return data
    text = Text(name, data)
    numbers: Mapping[Span | None, int] = {e.inherits_span: n for n, (_, e) in enumerate(entries)}
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
        own = (one for one in returns(text, picker) if not gives_another(text.code, one.value))
        changes += [(one.value, str(numbers[one.value])) for one in own]
    return replaced(data, changes)


def _of_tables(data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Each config is the first of its numbers: in a table several architectures can have it."""
    numbers: dict[Span, int] = {}
    for number, (family, entry) in enumerate(entries):
        if by_hand(family) and entry.inherits_span is not None:
            numbers.setdefault(entry.inherits_span, number)
    return replaced(data, [(span, _TELLING.format(number)) for span, number in numbers.items()])


# Where the values of a workload go, in whichever form its config is spelled.


def config_spot(
    benchmark: BenchmarkBinding, told: Selected, sources: TuningTree, arch: str
) -> ConfigSpot:
    """Where the values of a workload go."""
    version = sources.cub.bindings
    algorithm, site = site_of(benchmark, version, "configs")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    mine = [one for one in algorithm.families if one.site == site.name]
    asked = site.hub.removeprefix("default_") if site.table else site.hub
    binding = next(one for one in mine if asked.startswith(f"{one.name}<"))
    families = tuple(
        f
        for f in header.families
        if (is_of(f.name, binding) if site.table else f.name == binding.name)
    )
    if not families:
        raise InputError(f"{site.header} has no {binding.name}")
    labels = {m: rule.parameter for m, rule in binding.members.items() if rule.parameter}
    called = {m: (benchmark.called.get(label, label), label) for m, label in labels.items()}
    common = (told, site, binding, arch, families, version, header.aggregates, header.needed)
    if not site.table:
        kind = PickerSpot if site.targets else ConfigSpot
        return kind(*common, called)
    spans = told.entry[1].arg_spans if told.entry else ()
    arguments = tuple(text_of(sources.data[site.header], span) for span in spans)
    return with_formulas(TableSpot(*common, called, benchmark=benchmark, arguments=arguments))


def copied(spot: ConfigSpot) -> ConfigSpot | None:
    """The same for its architecture alone; none where nothing of it is for others."""
    if not isinstance(spot, TableSpot) or spot.copied:
        return None
    return replace(spot, own=True)
