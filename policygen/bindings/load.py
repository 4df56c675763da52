"""The files of `schemas/bindings/`, and what of them holds for one version of CUB."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from policygen.bindings.fit import chosen
from policygen.bindings.own_kernels import KernelMaker, taken_kernel
from policygen.bindings.own_workloads import OwnBinding, call_named, serving, taken
from policygen.bindings.words import ladder
from policygen.cache import digest, keep, kept, written_by
from policygen.errors import InputError
from policygen.model import bindings as bindings_module
from policygen.model import own_workload
from policygen.model.arch import family_arch
from policygen.model.bindings import (
    AxisType,
    BenchmarkBinding,
    Binding,
    Call,
    FamilyBinding,
    HubBinding,
    LibraryTypes,
    RunBinding,
    Scaling,
    SelectorBinding,
    Site,
    Types,
    Unit,
)
from policygen.model.own_workload import OwnCallBinding
from policygen.model.trees import Dialect, Versioned, library_of, numbers, plain
from policygen.opening import read_named
from policygen.rendering import folder
from policygen.settings import MOST, configured, load_toml

if TYPE_CHECKING:
    from policygen.model.tuning import Family, TuningHeader

Part = TypeVar("Part", bound=Versioned)
Loaded = TypeVar("Loaded", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Bound:
    """One algorithm, as one version of CUB has it."""

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
        self, site: Site, headers: "Iterable[TuningHeader]"
    ) -> "tuple[tuple[FamilyBinding, Family], ...]":
        """The families that a site's policies read, as far as some headers declare them."""
        declared = {
            family.name: family
            for header in headers
            if header.name == site.header
            for family in header.families
            if family.namespace == site.scope
        }
        rows = {one.name: one for one in self.families if one.site == site.name}
        names = [*(n for n in rows if n in declared), *(n for n in declared if n not in rows)]
        pairs = (
            (self._row_of(declared[name], site, rows, declared), declared[name]) for name in names
        )
        known = ((row, family) for row, family in pairs if row is not None)
        return tuple(sorted(known, key=lambda pair: names.index(pair[0].name)))

    def _row_of(
        self,
        family: "Family",
        site: Site,
        rows: Mapping[str, FamilyBinding],
        declared: "Mapping[str, Family]",
    ) -> FamilyBinding | None:
        """The row of a family; what a table by hand names is called as its row, with more."""
        if not site.table:
            return self._row_for(family, rows, declared)
        row = next((row for row in rows.values() if is_of(family.name, row)), None)
        return row and row.model_copy(update={"name": family.name})

    def _row_for(
        self,
        family: "Family",
        rows: Mapping[str, FamilyBinding],
        declared: "Mapping[str, Family]",
    ) -> FamilyBinding | None:
        """A family's own row; of one that was made after another in the header the other's."""
        own = rows.get(family.name)
        if own and len(own.args) == len(family.parameters):
            return own
        end = family.name.removeprefix(family.arch)
        types = [parameter.type for parameter in family.parameters]
        alike = [
            row
            for row in rows.values()
            if row.name.endswith(end)
            and (other := declared.get(row.name))
            and other is not family
            and [parameter.type for parameter in other.parameters] == types
            and len(row.args) == len(types)
        ]
        if not alike:
            return own
        number = family_arch(family.name)
        # The newest of those before it, else the newest of all.
        like = max(alike, key=lambda row: (family_arch(row.name) < number, family_arch(row.name)))
        return like.model_copy(update={"name": family.name})

    def site(self, name: str, dialect: Dialect) -> Site | None:
        """Where a call is decided, in one dialect."""
        for site in self.sites:
            if site.name == name and site.dialect == dialect:
                return site
        return None


def is_of(name: str, row: FamilyBinding) -> bool:
    """Whether a config that a table by hand names is bound by a row: `merge_config_900`."""
    return name.startswith(f"{row.name}_")


@cache
def types() -> Types:
    """What axis values and delay constructors are called."""
    return _load(_folder() / "types.toml", Types)


@cache
def library_types(library: str) -> Types | LibraryTypes:
    """The types that the axes of a library's benchmarks have."""
    path = _folder() / library / "types.toml"
    return _load(path, LibraryTypes) if path.is_file() else types()


@cache
def scaling(name: str) -> Scaling:
    """How counts of a unit become items."""
    for candidate in types().scalings:
        if candidate.name == name:
            return candidate
    known = ", ".join(one.name for one in types().scalings)
    raise InputError(f"no scaling is called {name!r}", f"There are: {known}")


@cache
def bindings() -> tuple[Binding, ...]:
    """Every algorithm that is bound, by name; those of one's own come last.

    A file of one's own can give further benchmarks to an algorithm that is bound.
    """
    paths = [path for path in _files() if path.name != "types.toml"]
    found: dict[str, Path] = {}
    made: dict[str, Binding] = {}
    for path in (*paths, *(mine := _own())):
        binding = _load(path, Binding)
        if path in mine:
            binding = with_headers(binding, path.parent)
        _check_units(path, binding)
        names = [one.name for one in binding.benchmarks]
        known = made.get(binding.algorithm)
        if known is None or not is_joined(binding):
            names.insert(0, binding.algorithm)
        for name in names:
            # Versions of a benchmark stand in one file.
            if (other := found.setdefault(name, path)) != path:
                raise InputError(f"{path}: {name} is bound already", f"by {other}; rename it")
        made[binding.algorithm] = binding if known is None else joined(known, binding)
    return tuple(made.values())


def identity() -> str:
    """Names the content of all files of bindings."""
    paths = [*_files(), *_own(), folder("schemas") / "words.toml"]
    maker = taken()
    own = "" if maker is None else f"{maker.name} {maker.given.model_dump_json()}"
    if (kernel := taken_kernel()) is not None:
        own += f"{kernel.name} {kernel.given.model_dump_json()}"
    return digest(own, *(path.read_bytes() for path in paths))


def _check_units(path: Path, binding: Binding) -> None:
    """Raises at a unit of a scaling that CUB does not have."""
    members = [one.members for one in binding.families]
    members += [one.members for one in binding.selectors]
    units = [rule.unit for rules in members for rule in rules.values() if rule.unit]
    units += [unit for one in binding.benchmarks for unit in one.units.values()]
    for name in sorted({unit.scaling for unit in units}):
        try:
            scaling(name)
        except InputError as error:
            raise InputError(f"{path}: {error.message}", error.remedy) from error


def _own() -> list[Path]:
    """The files of the folder that the user's settings name, or the one file."""
    config = configured()
    if config is None or config.settings.bindings is None:
        return []
    place = config.path.parent / config.settings.bindings
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InputError(f"{config.path}: bindings: there is no folder {place}, and no file")
    return sorted(place.glob("*.toml"))


def _folder() -> Path:
    return folder("schemas") / "bindings"


def _files() -> list[Path]:
    """CUB's, then those of other libraries, each in a folder of its own."""
    return [*sorted(_folder().glob("*.toml")), *sorted(_folder().glob("*/*.toml"))]


def _load(path: Path, model: type[Loaded]) -> Loaded:
    """A file as a model; reading TOML takes ten times as long as what was read of it before."""
    key = digest(
        written_by(inspect.getmodule(model), bindings_module, own_workload), read_named(path, MOST)
    )
    if (known := kept("bindings", key)) is not None:
        with suppress(ValidationError):
            return model.model_validate_json(known)
    found = load_toml(path, model)
    with suppress(OSError):  # a cache that cannot be written costs speed, nothing else
        keep("bindings", key, found.model_dump_json(by_alias=True).encode())
    return found


@cache
def bound(version: str) -> tuple[Bound, ...]:
    """What holds for a version of CUB, as its headers are read; else for the nearest version.

    A workload of one's own stands among its algorithm's benchmarks, a kernel is one more.
    """
    found = _bound(version)
    if (kernel := taken_kernel()) is not None:
        return (*found, _of_kernel(kernel))
    own = own_binding(version)
    return found if own is None else tuple(_with_own(one, own) for one in found)


def _bound(version: str) -> tuple[Bound, ...]:
    """The same of the files alone."""
    at, library = _nearest(version), library_of(version)
    found = []
    for binding in bindings():
        if binding.library != library:
            continue
        name = binding.algorithm
        benchmarks = chosen(name, binding.benchmarks, at, version)
        if benchmarks:
            found.append(
                Bound(
                    name,
                    chosen(name, binding.sites, at, version),
                    chosen(name, binding.families, at, version),
                    benchmarks,
                    _covering(binding.calls, at),
                    serving(_covering(binding.selectors, at), benchmarks),
                    _covering(binding.runs, at),
                    _covering(binding.own, at),
                    tuple(_hubs(binding.hubs, at)),
                )
            )
    return tuple(found)


@cache
def own_binding(version: str) -> OwnBinding | None:
    """The workload of one's own that was taken, as a benchmark of a version of CUB."""
    maker = taken()
    if maker is None or library_of(version) != "cub":
        return None
    every = _bound(version)
    later = [one for binding in bindings() for one in binding.own]
    known = [one for each in every for one in each.own]
    call = call_named(maker.given.algorithm, known, later, plain(version))
    (algorithm,) = (each for each in every if call in each.own)
    like = next(one for one in algorithm.benchmarks if one.name == call.like)
    runs = [one for one in algorithm.runs if like.name in one.benchmarks]
    covering = _covering(types().types, _nearest(version))
    return replace(maker, known=covering).make(call, like, runs)


def _of_kernel(maker: KernelMaker) -> Bound:
    """A kernel of one's own as an algorithm; its families are for whatever its header tunes."""
    families = tuple(map(maker.family, ladder()))
    return Bound(
        maker.name,
        maker.sites(),
        families,
        maker.benchmarks,
        (),
        runs=tuple(maker.runs()),
    )


def _with_own(algorithm: Bound, own: OwnBinding) -> Bound:
    if own.like not in algorithm.benchmarks:
        return algorithm
    return replace(
        algorithm,
        benchmarks=(*algorithm.benchmarks, own.benchmark),
        selectors=serving(algorithm.selectors, [own.benchmark]),
        runs=(*algorithm.runs, own.run),
    )


def axis_type(name: str, version: str) -> AxisType:
    """A value of a type axis, as one version of CUB means it: `C64` is not always the same."""
    at, own = _nearest(version), own_binding(version)
    known = library_types(library_of(version)).types
    for candidate in (*(own.types if own else ()), *known, *_further_types()):
        if candidate.name == name and candidate.covers(at):
            return candidate
    raise InputError(f"no type is called {name!r} in CUB {plain(version)}")


def _further_types() -> Iterator[AxisType]:
    """Those that files of bindings bring along."""
    return (one for binding in bindings() for one in binding.types)


def axis_values(call: Call, axis: str, version: str) -> tuple[str, ...]:
    """The values of one axis, written out."""
    values = call.axes[axis]
    if not isinstance(values, str):
        return values
    at = _nearest(version)
    for group in library_types(library_of(version)).groups:
        if group.name == values and group.covers(at):
            return group.values
    raise InputError(f"no group of axis values is called {values!r} in CUB {plain(version)}")


@cache
def units_of(benchmark: str) -> tuple[Unit, ...]:
    """What a benchmark counts in, in any version: results of all of them are understood."""
    if (maker := taken()) is not None and benchmark == maker.name:
        every = [one for binding in bindings() for one in binding.own]
        return units_of(call_named(maker.given.algorithm, every).like)
    return tuple(
        unit
        for binding in bindings()
        for one in binding.benchmarks
        if one.name == benchmark
        for unit in one.units.values()
    )


def is_constant(value: str) -> bool:
    """Whether a value of an axis is a number or a truth value, and names no type."""
    return value in {"true", "false"} or value.lstrip("-").isdigit()


def is_tested(version: str) -> bool:
    """Whether the bindings were tried with this version of CUB."""
    return types().tested.covers(numbers(version))


def _nearest(version: str) -> tuple[int, ...]:
    """A version that is older than all that were tried counts as the oldest of those."""
    oldest = library_types(library_of(version)).tested.since
    return max(numbers(version), numbers(oldest or "0"))


def _hubs(hubs: Iterable[HubBinding], at: tuple[int, ...]) -> Iterator[HubBinding]:
    """Those of a version, with what dispatches to them there."""
    for hub in _covering(hubs, at):
        yield hub.model_copy(update={"dispatches": _covering(hub.dispatches, at)})


def _covering(parts: Iterable[Part], at: tuple[int, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.covers(at))


UNPLAIN = set('<>"\\\n\r')
"""What ends the name of a header, or begins something else."""


# Files of one's own that give further benchmarks to an algorithm that CUB's bindings have.


def is_joined(binding: Binding) -> bool:
    """Whether a file leaves it to another one where policies are selected."""
    return not (binding.sites or binding.families or binding.selectors or binding.hubs)


def joined(binding: Binding, more: Binding) -> Binding:
    """An algorithm with the benchmarks of another file, how they run, and their types."""
    return binding.model_copy(
        update={
            "benchmarks": (*binding.benchmarks, *more.benchmarks),
            "calls": (*binding.calls, *more.calls),
            "runs": (*binding.runs, *more.runs),
            "types": (*binding.types, *more.types),
        }
    )


def with_headers(binding: Binding, folder: Path) -> Binding:
    """A file of one's own with the whole paths of the headers that lie beside it."""
    return binding.model_copy(
        update={
            "benchmarks": tuple(
                one.model_copy(update={"includes": tuple(_found(n, folder) for n in one.includes)})
                for one in binding.benchmarks
            )
        }
    )


def _found(name: str, folder: Path) -> str:
    path = folder / name
    if not path.is_file():
        return name
    whole = str(path.resolve())
    if UNPLAIN & set(whole):
        raise InputError(f"the path of {path} has other than plain letters", "Move it.")
    return whole
