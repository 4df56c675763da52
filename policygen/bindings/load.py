"""Loads the files of `schemas/bindings/` and selects what holds for one version of CUB."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from policygen.cache import digest, keep, kept, written_by
from policygen.errors import InputError
from policygen.model import bindings as bindings_module
from policygen.model.arch import family_arch
from policygen.model.bindings import (
    AxisType,
    BenchmarkBinding,
    Binding,
    Call,
    FamilyBinding,
    HubBinding,
    LibraryTypes,
    OwnCallBinding,
    RunBinding,
    Scaling,
    SelectorBinding,
    Site,
    Types,
    Unit,
)
from policygen.model.own_workload import PREFIX
from policygen.model.records import grouped
from policygen.model.trees import BoundVersion, Dialect, OwnFile, Versioned, numbers, side_by_side
from policygen.model.tuning import Family, TuningHeader
from policygen.opening import MAX_TOML, load_toml, read_named
from policygen.rendering import folder
from policygen.settings import configured

Part = TypeVar("Part", bound=Versioned)
Loaded = TypeVar("Loaded", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Bound:
    """One algorithm in one version of CUB."""

    algorithm: str
    sites: tuple[Site, ...]
    families: tuple[FamilyBinding, ...]
    benchmarks: tuple[BenchmarkBinding, ...]
    calls: tuple[Call, ...]
    selectors: tuple[SelectorBinding, ...] = ()
    runs: tuple[RunBinding, ...] = ()
    own: tuple[OwnCallBinding, ...] = ()
    hubs: tuple[HubBinding, ...] = ()

    def families_at(
        self, site: Site, headers: Iterable[TuningHeader]
    ) -> tuple[tuple[FamilyBinding, Family], ...]:
        """Pairs the families that a site's policies read with their declarations in the headers."""
        declared = {
            family.name: family
            for header in headers
            if header.name == site.header
            for family in header.families
            if family.namespace == site.scope
        }
        rows = {family.name: family for family in self.families if family.site == site.name}
        names = dict.fromkeys([*(name for name in rows if name in declared), *declared])
        pairs = (
            (self._row_of(declared[name], site, rows, declared), declared[name]) for name in names
        )
        return tuple((row, family) for row, family in pairs if row is not None)

    def _row_of(
        self,
        family: Family,
        site: Site,
        rows: Mapping[str, FamilyBinding],
        declared: Mapping[str, Family],
    ) -> FamilyBinding | None:
        """Returns a family's own row, or that of the family that it was modeled on.

        The configs of a handwritten table extend their row's name.
        """
        if site.table:
            row = next((row for row in rows.values() if is_of(family.name, row)), None)
            return row and row.model_copy(update={"name": family.name})
        own_row = rows.get(family.name)
        if own_row and len(own_row.args) == len(family.parameters):
            return own_row
        suffix = family.name.removeprefix(family.arch)
        types = [parameter.type for parameter in family.parameters]
        similar = [
            row
            for row in rows.values()
            if row.name.endswith(suffix)
            and (other_family := declared.get(row.name))
            and other_family is not family
            and [parameter.type for parameter in other_family.parameters] == types
            and len(row.args) == len(types)
        ]
        if not similar:
            return own_row
        number = family_arch(family.name)
        # Prefer the newest of the older ones, else the newest of all.
        model = max(
            similar, key=lambda row: (family_arch(row.name) < number, family_arch(row.name))
        )
        return model.model_copy(update={"name": family.name})

    def site(self, name: str, dialect: Dialect) -> Site | None:
        """Returns the site where a call is decided in one dialect."""
        sites = (site for site in self.sites if (site.name, site.dialect) == (name, dialect))
        return next(sites, None)


def is_of(name: str, row: FamilyBinding) -> bool:
    """Returns whether a row binds a config of a handwritten table, such as `merge_config_900`."""
    return name.startswith(f"{row.name}_")


@dataclass(frozen=True, eq=False)
class BoundFile(OwnFile, ABC):
    """A user's file, and what it adds to the bindings of a version."""

    @abstractmethod
    def join(self, algorithms: tuple[Bound, ...], version: BoundVersion) -> tuple[Bound, ...]:
        """Returns a version's algorithms with what the file adds."""

    def added_types(self, version: BoundVersion) -> tuple[AxisType, ...]:
        """Returns the axis types that the file adds to those of a version."""
        del version
        return ()


@cache
def types() -> Types:
    """Returns the types of CUB's axis values, delay constructors and limits."""
    return _load(_folder() / "types.toml", Types)


def types_in(version: BoundVersion) -> tuple[AxisType, ...]:
    """Returns the axis types of CUB's benchmarks in a version."""
    return _covering(types().types, _nearest(version))


@cache
def library_types(library: str) -> Types | LibraryTypes:
    """Returns the axis types of a library's benchmarks."""
    path = _folder() / library / "types.toml"
    return _load(path, LibraryTypes) if path.is_file() else types()


@cache
def scaling(name: str) -> Scaling:
    """Returns how counts in a unit become items."""
    scalings = {candidate.name: candidate for candidate in types().scalings}
    if name not in scalings:
        raise InputError(f"unknown scaling {name!r}", f"Available: {', '.join(scalings)}")
    return scalings[name]


@cache
def bindings() -> tuple[Binding, ...]:
    """Returns all bound algorithms by name, user-provided ones last.

    A user's file may add benchmarks to an algorithm that is already bound.
    """
    paths = [path for path in _files() if path.name != "types.toml"]
    path_by_name: dict[str, Path] = {}
    binding_by_algorithm: dict[str, Binding] = {}
    for path in (*paths, *(own_paths := _own_paths())):
        binding = _load(path, Binding)
        if path in own_paths:
            binding = with_headers(binding, path.parent)
        _check_units(path, binding)
        names = [benchmark.name for benchmark in binding.benchmarks]
        previous = binding_by_algorithm.get(binding.algorithm)
        selects = binding.sites or binding.families or binding.selectors or binding.hubs
        if previous is None or selects:
            names.insert(0, binding.algorithm)
        for name in names:
            # A benchmark's versions share one file.
            if (first_path := path_by_name.setdefault(name, path)) != path:
                raise InputError(
                    f"{path}: {name} is already bound", f"Rename it: {first_path} has it."
                )
        if previous is not None:
            fields = ("benchmarks", "calls", "runs", "types")
            added = {name: getattr(previous, name) + getattr(binding, name) for name in fields}
            binding = previous.model_copy(update=added)
        binding_by_algorithm[binding.algorithm] = binding
    return tuple(binding_by_algorithm.values())


def identity() -> str:
    """Returns a digest of all binding files."""
    paths = [*_files(), *_own_paths(), folder("schemas") / "words.toml"]
    return digest(*(path.read_bytes() for path in paths))


def _check_units(path: Path, binding: Binding) -> None:
    """Raises if a unit has a scaling that CUB does not define."""
    members = [family.members for family in binding.families]
    members += [selector.members for selector in binding.selectors]
    units = [rule.unit for rules in members for rule in rules.values() if rule.unit]
    units += [unit for benchmark in binding.benchmarks for unit in benchmark.units.values()]
    for name in sorted({unit.scaling for unit in units}):
        try:
            scaling(name)
        except InputError as error:
            raise InputError(f"{path}: {error.message}", error.remedy) from error


def _own_paths() -> list[Path]:
    """Returns the user's binding files: the configured file, or those in the configured folder."""
    config = configured()
    if config is None or config.settings.bindings is None:
        return []
    path = config.path.parent / config.settings.bindings
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{config.path}: bindings: there is no folder or file {path}")
    return sorted(path.glob("*.toml"))


def _folder() -> Path:
    return folder("schemas") / "bindings"


def _files() -> list[Path]:
    """Returns CUB's files, then those of other libraries, each in its own folder."""
    return [*sorted(_folder().glob("*.toml")), *sorted(_folder().glob("*/*.toml"))]


def _load(path: Path, model: type[Loaded]) -> Loaded:
    """Loads a file as a model, cached because parsing TOML takes ten times as long."""
    key = digest(
        written_by(inspect.getmodule(model), bindings_module),
        read_named(path, MAX_TOML),
    )
    if (cached := kept("bindings", key)) is not None:
        with suppress(ValidationError):
            return model.model_validate_json(cached)
    loaded = load_toml(path, model)
    with suppress(OSError):  # without a writable cache, loading is only slower
        keep("bindings", key, loaded.model_dump_json(by_alias=True).encode())
    return loaded


@cache
def bound(version: BoundVersion) -> tuple[Bound, ...]:
    """Returns the algorithms of a CUB version as its headers are read, or of the nearest version.

    A user workload joins its algorithm's benchmarks; a user kernel is an algorithm by itself.
    """
    algorithms = bound_by_files(version)
    own = version.own
    return own.join(algorithms, version) if isinstance(own, BoundFile) else algorithms


def serving(
    selectors: Iterable[SelectorBinding], benchmarks: Iterable[BenchmarkBinding]
) -> tuple[SelectorBinding, ...]:
    """Extends each selector of a benchmark to the benchmarks that are modeled on it."""
    pairs = [(benchmark.name, benchmark.like) for benchmark in benchmarks]

    def extended(selector: SelectorBinding) -> SelectorBinding:
        modeled = (name for name, model in pairs if model in selector.benchmarks)
        return selector.model_copy(update={"benchmarks": (*selector.benchmarks, *modeled)})

    return tuple(map(extended, selectors))


def site_of(
    benchmark: BenchmarkBinding, version: BoundVersion, dialect: Dialect
) -> tuple[Bound, Site]:
    """Returns the benchmark's site in a dialect, and its algorithm."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, dialect)
            if site is not None:
                return algorithm, site
    raise InputError(f"{benchmark.name} has no family of tunings in CUB {version.plain}")


def sites_of(algorithm: Bound, dialect: Dialect) -> list[Site]:
    """Chooses a site for each name, preferably one in the tree's dialect."""
    names = dict.fromkeys(site.name for site in algorithm.sites)
    order = sorted(side_by_side(dialect), key=lambda candidate: candidate != dialect)
    sites = ((algorithm.site(name, candidate) for candidate in order) for name in names)
    chosen = (next((site for site in candidates if site is not None), None) for candidates in sites)
    return [site for site in chosen if site is not None]


def bound_by_files(version: BoundVersion) -> tuple[Bound, ...]:
    """Returns the algorithms from the binding files alone."""
    at = _nearest(version)
    algorithms = []
    for binding in (item for item in bindings() if item.library == version.library):
        name = binding.algorithm
        benchmarks = chosen(name, binding.benchmarks, at, version.text)
        if not benchmarks:
            continue
        hubs = (
            # With the functions that dispatch to them in this version
            hub.model_copy(update={"dispatches": _covering(hub.dispatches, at)})
            for hub in _covering(binding.hubs, at)
        )
        algorithm = Bound(
            name,
            chosen(name, binding.sites, at, version.text),
            chosen(name, binding.families, at, version.text),
            benchmarks,
            _covering(binding.calls, at),
            serving(_covering(binding.selectors, at), benchmarks),
            _covering(binding.runs, at),
            _covering(binding.own, at),
            tuple(hubs),
        )
        algorithms.append(algorithm)
    return tuple(algorithms)


def axis_type(name: str, version: BoundVersion) -> AxisType:
    """Resolves the value of a type axis in one version of CUB; `C64` has meant different types."""
    version_numbers, own = _nearest(version), version.own
    library_axis_types = library_types(version.library).types
    own_types = own.added_types(version) if isinstance(own, BoundFile) else ()
    further_types = (axis_type for binding in bindings() for axis_type in binding.types)
    for candidate in (*own_types, *library_axis_types, *further_types):
        if candidate.name == name and candidate.covers(version_numbers):
            return candidate
    raise InputError(f"CUB {version.plain} has no type named {name!r}")


def axis_values(call: Call, axis: str, version: BoundVersion) -> tuple[str, ...]:
    """Returns all values of an axis, with a group's name expanded."""
    values = call.axes[axis]
    if not isinstance(values, str):
        return values
    version_numbers = _nearest(version)
    for group in library_types(version.library).groups:
        if group.name == values and group.covers(version_numbers):
            return group.values
    raise InputError(f"CUB {version.plain} has no group of axis values named {values!r}")


def units_of(benchmark: BenchmarkBinding) -> tuple[Unit, ...]:
    """Returns the units of a benchmark in any version, since results may come from all of them.

    A user's workload has those of the benchmark that it resembles.
    """
    is_own = benchmark.name.startswith(PREFIX)
    return _units_of((is_own and benchmark.like) or benchmark.name)


@cache
def _units_of(name: str) -> tuple[Unit, ...]:
    return tuple(
        unit
        for binding in bindings()
        for candidate in binding.benchmarks
        if candidate.name == name
        for unit in candidate.units.values()
    )


def is_constant(value: str) -> bool:
    """Returns whether an axis value is a number or Boolean rather than a type."""
    return value in {"true", "false"} or value.lstrip("-").isdigit()


def is_tested(version: str) -> bool:
    """Returns whether the bindings were tested with this version of CUB."""
    return types().tested.covers(numbers(version))


def _nearest(version: BoundVersion) -> tuple[int, ...]:
    """Clamps a version to the oldest tested one."""
    oldest = library_types(version.library).tested.since
    return max(version.numbers, numbers(oldest or "0"))


def _covering(parts: Iterable[Part], version: tuple[int, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.covers(version))


# Rows of a tree whose headers do not match its version


@dataclass(frozen=True, slots=True)
class RowOverride:
    """A row that replaces the one for the version; no row if none holds."""

    row: int | None
    """Index in its group."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Member → its name in the tree."""

    def __str__(self) -> str:
        names = [f"{old}>{new}" for old, new in sorted(self.renamed.items())]
        return "|".join([NONE if self.row is None else str(self.row), *names])


Row = TypeVar("Row", bound=Versioned)


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives(Generic[Row]):
    """Rows with the same name; at most one applies."""

    name: str
    rows: tuple[Row, ...]


NONE = "none"


# Selection among rows with the same name
#
# A plain version selects rows by their range: `3.6.0`. Where a tree's headers do not match their
# version, the overriding rows follow it: `3.6.0+topk/site/topk/selectors=1`.


def groups(algorithm: str, rows: Iterable[Row]) -> Iterator[Alternatives[Row]]:
    """Groups rows of one kind by name, in their order in the file."""
    for name, peers in grouped(rows, lambda row: f"{algorithm}/{_name(row)}").items():
        yield Alternatives(name, tuple(peers))


def _name(row: Versioned) -> str:
    if isinstance(row, Site):
        return f"site/{row.name}/{row.dialect}"
    if isinstance(row, FamilyBinding):
        return f"family/{row.site}/{row.name}"
    assert isinstance(row, BenchmarkBinding)
    return f"benchmark/{row.name}"


def guess(rows: Iterable[Row], version: tuple[int, ...]) -> Row | None:
    """Returns the row for a version."""
    return next((row for row in rows if row.covers(version)), None)


def nearest_first(rows: Sequence[Row], version: tuple[int, ...]) -> list[Row]:
    """Sorts rows: the version's own, older ones, newer ones; `main` may lag behind its version."""
    ordered = sorted(rows, key=lambda row: numbers(row.since or "0"))
    current = [row for row in ordered if row.covers(version)]
    newer = [row for row in ordered if row.since and numbers(row.since) > version]
    older = [row for row in ordered if row not in current and row not in newer]
    return [*current, *reversed(older), *newer]


def as_read(version: str, overrides: Mapping[str, RowOverride]) -> str:
    """Returns a version followed by the rows that override its own."""
    parts = [f"{name}={row}" for name, row in sorted(overrides.items())]
    return f"{version}+{','.join(parts)}" if parts else version


@lru_cache(maxsize=64)
def read(version: str) -> dict[str, RowOverride]:
    """Parses the rows that override the version's own, by group."""
    rows = {}
    for part in filter(None, version.partition("+")[2].split(",")):
        name, _, row_text = part.partition("=")
        row, *names = row_text.split("|")
        pairs = (pair.partition(">") for pair in names)
        rows[name] = RowOverride(
            None if row == NONE else int(row), {old: new for old, _, new in pairs}
        )
    return rows


def chosen(
    algorithm: str, rows: Sequence[Row], at: tuple[int, ...], version: str
) -> tuple[Row, ...]:
    """Returns the rows that hold, in their order in the file."""
    overrides = read(version)
    if not overrides:
        return tuple(row for row in rows if row.covers(at))
    kept: dict[int, Row] = {}
    for group in groups(algorithm, rows):
        override = overrides.get(group.name)
        if override is None:
            kept |= {id(row): row for row in group.rows if row.covers(at)}
        elif override.row is not None:
            row = group.rows[override.row]
            kept[id(row)] = row
            if isinstance(row, Site) and override.renamed:
                kept[id(row)] = cast("Row", respelled(row, override.renamed))
    return tuple(kept[id(row)] for row in rows if id(row) in kept)


# policy.lookback_delay.kind, selected.lookahead.items_per_thread, other.algorithm
_PATH = re.compile(r"\b(policy|selected|other)((?:\.\w+)+)")
# TransformAlgorithm::prefetch
ENUMERATOR = re.compile(r"(?<![\w:])([A-Z]\w+)::(\w+)")
MemberPath = tuple[str, ...]


def respelled(site: Site, names: Mapping[str, str]) -> Site:
    """Returns a site with the tree's names; values that the tree lacks are left out."""
    policy = names.get(site.policy, site.policy)
    cut = len(policy.split(".")) if policy else 0

    def path(match: re.Match[str]) -> str:
        full = _path(site, match)
        for end in range(len(full), 0, -1):  # a delay is renamed as a whole
            if (renamed_path := names.get(".".join(full[:end]))) is not None:
                new = (*filter(None, renamed_path.split(".")), *full[end:])
                return ".".join([match[1], *(new[cut:] if match[1] == "policy" else new)])
        return match[0]

    def text(source: str) -> str:
        source = _PATH.sub(path, source)
        return ENUMERATOR.sub(lambda m: names.get(m[0], m[0]), source)

    def kept(expressions: Mapping[str, str]) -> dict[str, str]:
        return {
            name: text(expr)
            for name, expr in expressions.items()
            if all(names.get(".".join(path)) != "" for path in member_paths(site, expr))
        }

    return site.model_copy(
        update={
            "policy": policy,
            "values": kept(site.values),
            "types": kept(site.types),
            "delay": tuple(map(text, site.delay)) if site.delay else None,
            "setup": tuple(map(text, site.setup)),
            "support": tuple(map(text, site.support)),
        }
    )


def member_paths(site: Site, text: str) -> list[MemberPath]:
    """Returns the path of each member that a text reads, relative to the selected policy."""
    return [_path(site, match) for match in _PATH.finditer(text)]


def _path(site: Site, match: re.Match[str]) -> MemberPath:
    """Returns the path of a member in the selected policy."""
    parts = match[2].strip(".").split(".")
    inside = site.policy and match[1] == "policy"
    return tuple([*site.policy.split("."), *parts] if inside else parts)


UNPLAIN = set('<>"\\\n\r')
"""Characters that end a header's name or start something else."""


# The user's own files


def with_headers(binding: Binding, folder: Path) -> Binding:
    """Returns a user's binding with absolute paths for the headers that lie beside its file."""
    benchmarks = []
    for benchmark in binding.benchmarks:
        includes = tuple(_absolute_include(name, folder) for name in benchmark.includes)
        benchmarks.append(benchmark.model_copy(update={"includes": includes}))
    return binding.model_copy(update={"benchmarks": tuple(benchmarks)})


def _absolute_include(name: str, folder: Path) -> str:
    path = folder / name
    if not path.is_file():
        return name
    absolute = str(path.resolve())
    if UNPLAIN & set(absolute):
        raise InputError(
            f"the path of {path} has characters that a compiler or make treats specially",
            "Move it.",
        )
    return absolute
