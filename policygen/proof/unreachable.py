"""Finds entries that no workload can select, by looking which marks ever show in a policy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap

from policygen.bindings.load import Bound, bound
from policygen.errors import InputError, PolicygenError
from policygen.model.arch import arch_number
from policygen.model.audits import CallOnly, Unreachable
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.edits import Marked
from policygen.model.selection import EntryPlace, Selected
from policygen.model.trees import OF_FUNCTIONS, Cub, Dialect
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader, steps
from policygen.proof.ask import ask
from policygen.proof.causes import OF_RETURNS, UNMET, KeysSeen, explain
from policygen.proof.probe import Asked, AskedTree, workloads
from policygen.proof.sites import bound_families
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import BoundFamily, Workload
from policygen.proof.values import used_families
from policygen.rocprim.host import HostCompiler
from policygen.steps import Progress

UNANSWERED = Selected({})


@dataclass(slots=True)
class Reachability:
    """What showed, and what did not."""

    wanted: Collection[EntryPlace] | None = None
    """The entries that are asked about, where these are not all."""
    workloads: int = 0
    entries: int = 0
    unreachable: tuple[Unreachable, ...] = ()
    call_only: tuple[CallOnly, ...] = ()
    """Entries that are selected by calls which no benchmark makes."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Header → entries that were not seen where not every workload could be asked for."""
    archs: tuple[str, ...] = ()
    errors: tuple[PolicygenError, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families that no binding knows, and functions that no workload comes to."""

    def wants(self, family: Family, entry: Entry) -> bool:
        """Whether an entry is asked about."""
        return self.wanted is None or EntryPlace.of(family, entry) in self.wanted


@dataclass(slots=True)
class Sightings:
    """Who selected each entry of one header; entries by number."""

    by_benchmark: dict[int, str] = field(default_factory=dict)
    by_call: dict[int, str] = field(default_factory=dict)

    def note(self, number: int, point: Workload, arch: str) -> None:
        """Notes the first workload that selects an entry, as its example."""
        bench = isinstance(point.call, BenchmarkBinding)
        by = self.by_benchmark if bench else self.by_call
        by.setdefault(number, f"{point.name} on {arch}")


def reach_all(
    cub: Cub,
    headers: Sequence[TuningHeader],
    copies: Mapping[Dialect, Mapping[str, Marked]],
    toolchain: Toolchain | HostCompiler,
    *,
    wanted: Collection[EntryPlace] | None = None,
    progress: Progress | None = None,
) -> Reachability:
    """Finds what is never selected in a tree's dialects: families, the selectors beside them.

    Where only some entries are `wanted`, the others are neither counted nor told.
    """
    found = Reachability(wanted=wanted)
    for dialect, marked in copies.items():
        asked = tried_sites(cub, headers, dialect)
        if dialect not in OF_FUNCTIONS:
            found.unasked += unasked(headers, asked)
        if marked:
            _reach(found, cub, asked, marked, toolchain, progress)
    return found


def reach(
    cub: Cub, asked: Sequence[Asked], marked: Mapping[str, Marked], toolchain: Toolchain
) -> Reachability:
    """Finds what is never selected by some workloads."""
    found = Reachability()
    _reach(found, cub, asked, marked, toolchain, None)
    return found


def tried_sites(cub: Cub, headers: Sequence[TuningHeader], dialect: Dialect) -> tuple[Asked, ...]:
    """Finds the sites of a dialect whose entries the tree has, with the archs that differ there."""
    chains = {chain.namespace: chain for header in headers for chain in header.chains}
    selectors = {header.name: header.selectors for header in headers if header.selectors}
    aggregates = {header.name: header.aggregates for header in headers}
    found = []
    for algorithm in bound(cub.bindings):
        for site in algorithm.sites:
            if site.dialect != dialect:
                continue
            problem: InputError | None = None
            families: tuple[BoundFamily, ...] = ()
            try:
                families = bound_families(algorithm, site, headers)
            except InputError as error:
                problem = error
            if families or problem:
                chain = chains.get(site.scope)
                archs = _reading(chain, families) if site.inherits else _own(headers, site)
            elif site.is_selector and site.header in selectors:
                archs = steps(selectors[site.header])
            else:
                continue
            points = _tried_points(algorithm, site, cub.bindings)
            ordered = tuple(sorted(archs, key=arch_number))
            asked = Asked(site, points, ordered, families, values=False, problem=problem)
            declared = aggregates.get(site.header, {})
            found.append(replace(asked, branches=site.is_selector, aggregates=declared))
    return tuple(found)


def unasked(headers: Sequence[TuningHeader], tried: Sequence[Asked]) -> tuple[str, ...]:
    """Lists families with specializations that no binding knows: nothing is said about them."""
    asked = {(place.site.scope, binding.name) for place in tried for binding, _ in place.families}
    return tuple(
        dict.fromkeys(
            f"{family.namespace}::{family.name}"
            for header in headers
            for family in header.families
            if family.specializations and (family.namespace, family.name) not in asked
        )
    )


def _reach(
    found: Reachability,
    cub: Cub,
    asked: Sequence[Asked],
    marked: Mapping[str, Marked],
    toolchain: Toolchain | HostCompiler,
    progress: Progress | None,
) -> None:
    """Asks for every workload which entry shows, and explains those that never do."""
    tree = AskedTree(cub.bindings, cub.include_folders, marked)
    asked = [p for p in asked if any(starmap(found.wants, marked[p.site.header].entries))]
    told = ask(tree, asked, toolchain, progress=progress)
    for places in _together(asked):
        _count(found, places, marked[places[0].site.header], told.rows)
    # A workload is tried for the old dispatcher and for the new one.
    found.workloads = max(found.workloads, sum(len(place.points) for place in asked))
    archs = {arch for place in asked for arch in place.archs}
    found.archs = tuple(sorted({*found.archs, *archs}, key=arch_number))
    found.errors += told.errors
    found.unknown = dict(sorted(found.unknown.items()))
    found.unreachable = tuple(sorted(found.unreachable, key=_order))
    found.call_only = tuple(sorted(found.call_only, key=_order))


def _together(asked: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Groups the sites that share their entries: those of a header where these are returns."""
    by_header: dict[str, list[Asked]] = {}
    for place in asked:
        if place.site.is_selector:
            by_header.setdefault(place.site.header, []).append(place)
        else:
            yield [place]
    yield from by_header.values()


def _count(
    found: Reachability,
    places: Sequence[Asked],
    copy: Marked,
    rows: Mapping[tuple[Workload, str], Selected],
) -> None:
    """Counts the entries of some sites: selected by benchmarks, by other calls alone, or never."""
    by, seen = _sightings(places, copy, rows)
    complete = all(spot in rows for place in places for spot in place.spots)
    functions = {copy.entries[n][0].name for n in (*by.by_benchmark, *by.by_call)}
    for number in _numbers(places, copy):
        family, entry = copy.entries[number]
        if not found.wants(family, entry):
            continue
        function = f"{family.namespace}::{family.name}"
        if entry.kind == "branch" and complete and family.name not in functions:
            found.unasked = tuple(dict.fromkeys((*found.unasked, function)))
            continue
        found.entries += 1
        if number in by.by_benchmark:
            continue
        if number in by.by_call:
            found.call_only += (CallOnly.of(family, entry, example=by.by_call[number]),)
        elif complete:
            found.unreachable += (explain(copy.header, family, entry, number, seen),)
        else:
            found.unknown[family.header] = found.unknown.get(family.header, 0) + 1


def _sightings(
    places: Sequence[Asked], copy: Marked, rows: Mapping[tuple[Workload, str], Selected]
) -> tuple[Sightings, KeysSeen]:
    """Notes what shows for the workloads of some sites, and where their keys lead."""
    lines = {number: entry.line for number, (_, entry) in enumerate(copy.entries)}
    by, seen = Sightings(), KeysSeen({}, {}, lines, UNMET.get(places[0].site.dialect, OF_RETURNS))
    for place in places:
        chains, scope = copy.header.chains, place.site.scope
        read = {arch: used_families(chains, scope, arch) for arch in place.archs}
        for point, arch in place.spots:
            row = rows.get((point, arch), UNANSWERED)
            if row.number is not None:
                by.note(row.number, point, arch)
            seen.look(row, read[arch], f"{point.name} on {arch}")
    return by, seen


def _numbers(places: Sequence[Asked], copy: Marked) -> list[int]:
    """Numbers the entries that some sites may select: specializations, or returns for keys."""
    names = {(p.site.scope, binding.name) for p in places for binding, _ in p.families}
    return [
        number
        for number, (family, entry) in enumerate(copy.entries)
        if (
            entry.specific  # a default asks for a compute capability alone
            if entry.kind == "branch" and not names
            else entry.kind != "primary" and (family.namespace, family.name) in names
        )
    ]


def _tried_points(algorithm: Bound, site: Site, version: str) -> tuple[Workload, ...]:
    """Lists what is tried at a site: the workloads of benchmarks, and of further calls."""
    calls = [*algorithm.benchmarks, *algorithm.calls]
    mine = (call for call in calls if call.site == site.name)
    return tuple(point for call in mine for point in workloads(call, version))


def _reading(chain: PolicyChain | None, families: Sequence[BoundFamily]) -> set[str]:
    """Finds the archs whose policies read one of the families."""
    names = {binding.name for binding, _ in families}
    return {
        policy.arch
        for policy in (chain.policies if chain else ())
        if any(use.family in names for use in policy.uses)
    }


def _own(headers: Sequence[TuningHeader], site: Site) -> set[str]:
    """Finds the archs that a header has something of its own for."""
    mine = (header for header in headers if header.name == site.header)
    return {family.arch for header in mine for family in header.families}


def _order(found: Unreachable | CallOnly) -> tuple[str, int]:
    return found.header, found.line
