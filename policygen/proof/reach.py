"""Finds entries that no workload can select, by looking which marks ever show in a policy."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from policygen.bindings.load import Bound, bound
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Cub
from policygen.model.marks import Marked
from policygen.model.reach import CallOnly, Unreachable
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader
from policygen.model.workload import axes, in_words
from policygen.proof.causes import Seen, explain
from policygen.proof.compile import Progress
from policygen.proof.probe import Answered, Asked, Tree, ask, shown, workloads
from policygen.proof.resolve import used_families
from policygen.proof.sites import bound_families
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import BoundFamily, Workload


@dataclass(frozen=True, slots=True)
class Reached:
    """What showed, and what did not."""

    workloads: int
    entries: int
    unreachable: tuple[Unreachable, ...]
    call_only: tuple[CallOnly, ...]
    unknown: Mapping[str, int]
    """Header → entries that were not seen where not every workload could be asked for."""
    archs: tuple[str, ...]
    errors: tuple[PolicygenError, ...]
    unasked: tuple[str, ...] = ()
    """Families that no binding knows, and functions that no workload comes to."""


@dataclass(slots=True)
class Sightings:
    """Who selected each entry of one header; entries by number."""

    by_benchmark: dict[int, str] = field(default_factory=dict)
    by_call: dict[int, str] = field(default_factory=dict)

    def note(self, number: int, point: Workload, arch: str) -> None:
        """A workload selects an entry; the first one is its example."""
        bench = isinstance(point.call, BenchmarkBinding)
        by = self.by_benchmark if bench else self.by_call
        if number not in by:
            by[number] = seen_on(point, arch)


@dataclass(slots=True)
class Tally:
    """Entries that are selected by benchmarks, by other calls alone, or never."""

    entries: int = 0
    unreachable: list[Unreachable] = field(default_factory=list)
    call_only: list[CallOnly] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)

    def count(
        self,
        number: int,
        family: Family,
        entry: Entry,
        seen: Sightings,
        never: Callable[[], Unreachable] | None,
    ) -> None:
        """One entry; `never` says why nothing selects it, where every workload was answered."""
        self.entries += 1
        if number in seen.by_benchmark:
            return
        if number in seen.by_call:
            self.call_only.append(CallOnly.of(family, entry, example=seen.by_call[number]))
        elif never:
            self.unreachable.append(never())
        else:
            self.unknown[family.header] = self.unknown.get(family.header, 0) + 1

    def reached(
        self, tried: Sequence[Asked], told: Answered, unasked: Iterable[str] = ()
    ) -> Reached:
        """All that was counted, by header and line."""
        return Reached(
            workloads=sum(len(place.points) for place in tried),
            entries=self.entries,
            unreachable=tuple(sorted(self.unreachable, key=order)),
            call_only=tuple(sorted(self.call_only, key=order)),
            unknown=self.unknown,
            archs=tuple(sorted({a for place in tried for a in place.archs}, key=arch_number)),
            errors=told.errors,
            unasked=tuple(unasked),
        )


def all_told(place: Asked, told: Answered) -> bool:
    """Whether every workload of a site was answered on every architecture."""
    return all(told.of(p, arch, marked=True) for p in place.points for arch in place.archs)


def seen_on(point: Workload, arch: str) -> str:
    """A workload and an architecture in words."""
    return f"{describe(point)} on {arch}"


def tried_points(algorithm: Bound, site: Site, version: str) -> tuple[Workload, ...]:
    """What is tried at a site: the workloads of benchmarks, and of further calls."""
    calls = [*algorithm.benchmarks, *algorithm.calls]
    mine = (call for call in calls if call.site == site.name)
    return tuple(point for call in mine for point in workloads(call, version))


def tried_sites(cub: Cub, headers: Sequence[TuningHeader]) -> tuple[Asked, ...]:
    """Every site whose families the tree has, on the archs whose policies read them."""
    chains = {chain.namespace: chain for header in headers for chain in header.chains}
    found = []
    for algorithm in bound(cub.version):
        for site in algorithm.sites:
            families = bound_families(algorithm, site, headers)
            if site.dialect != "specializations" or not families:
                continue
            points = tried_points(algorithm, site, cub.version)
            archs = _reading(chains.get(site.scope), families)
            found.append(Asked(site, points, archs, families, values=False))
    return tuple(found)


def reach(
    cub: Cub,
    tried: Sequence[Asked],
    marked: Mapping[str, Marked],
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
) -> Reached:
    """Asks for every workload which entry shows, and explains those that never do."""
    told = ask(
        tried,
        Tree(cub.version, cub.include_folders, marked),
        toolchain,
        progress=progress,
    )
    tally = Tally()
    for place in tried:
        copy = marked[place.site.header]
        lines = {number: entry.line for number, (_, entry) in enumerate(copy.entries)}
        sightings, seen = Sightings(), Seen({}, {}, lines)
        chains, scope = copy.header.chains, place.site.scope
        read = {arch: used_families(chains, scope, arch) for arch in place.archs}
        for point in place.points:
            for arch in place.archs:
                if row := told.of(point, arch, marked=True):
                    _note(place, point, arch, row, copy, read[arch], sightings, seen)
        complete = all_told(place, told)
        for number, family, entry in _of(place, copy):
            why = partial(explain, copy.header, family, entry, number, seen) if complete else None
            tally.count(number, family, entry, sightings, why)
    return tally.reached(tried, told)


def _note(
    place: Asked,
    point: Workload,
    arch: str,
    row: Sequence[str],
    copy: Marked,
    read: Collection[str],
    sightings: Sightings,
    seen: Seen,
) -> None:
    found = shown(place.families, point, row, copy)
    if found.entry is not None:
        sightings.note(found.entry, point, arch)
    for family, key in found.keys.items():
        if family in read:
            seen.note(family, key, found.entry, seen_on(point, arch))


def describe(point: Workload) -> str:
    """A workload in words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
    if isinstance(point.call, BenchmarkBinding):
        return in_words(point.call.name, point.values)
    return " ".join(axes(point.values))


def _of(place: Asked, copy: Marked) -> list[tuple[int, Family, Entry]]:
    """The specializations of a site's families, with their numbers."""
    names = {binding.name for binding, _ in place.families}
    return [
        (number, family, entry)
        for number, (family, entry) in enumerate(copy.entries)
        if family.name in names and family.namespace == place.site.scope and entry.kind != "primary"
    ]


def _reading(chain: PolicyChain | None, families: Sequence[BoundFamily]) -> tuple[str, ...]:
    """The archs whose policies read one of the families."""
    names = {binding.name for binding, _ in families}
    archs = {
        policy.arch
        for policy in (chain.policies if chain else ())
        if any(use.family in names for use in policy.uses)
    }
    return tuple(sorted(archs, key=arch_number))


def order(found: Unreachable | CallOnly) -> tuple[str, int]:
    """By header and line."""
    return found.header, found.line


def unasked(headers: Sequence[TuningHeader], tried: Sequence[Asked]) -> tuple[str, ...]:
    """Families with specializations that no binding knows: nothing is said about them."""
    asked = {(place.site.scope, binding.name) for place in tried for binding, _ in place.families}
    return tuple(
        f"{family.namespace}::{family.name}"
        for header in headers
        for family in header.families
        if family.specializations and (family.namespace, family.name) not in asked
    )
