"""Finds entries that no workload can select, by checking which marks ever appear in a policy."""

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
    """Which entries are selected, and which are not."""

    wanted: Collection[EntryPlace] | None = None
    """The entries of interest; None for all."""
    workloads: int = 0
    entries: int = 0
    unreachable: tuple[Unreachable, ...] = ()
    call_only: tuple[CallOnly, ...] = ()
    """Entries that are selected only by calls that no benchmark makes."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Header → number of entries without a verdict, because some workloads could not be queried."""
    archs: tuple[str, ...] = ()
    errors: tuple[PolicygenError, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families without a binding, and functions that no workload reaches."""

    def wants(self, family: Family, entry: Entry) -> bool:
        """Whether an entry is of interest."""
        return self.wanted is None or EntryPlace.of(family, entry) in self.wanted


@dataclass(slots=True)
class Sightings:
    """Which workload selected each entry of a header; entries by number."""

    by_benchmark: dict[int, str] = field(default_factory=dict)
    by_call: dict[int, str] = field(default_factory=dict)

    def note(self, number: int, point: Workload, arch: str) -> None:
        """Records the first workload that selects an entry, as its example."""
        is_benchmark = isinstance(point.call, BenchmarkBinding)
        examples = self.by_benchmark if is_benchmark else self.by_call
        examples.setdefault(number, f"{point.name} on {arch}")


def reach_all(
    cub: Cub,
    headers: Sequence[TuningHeader],
    copies: Mapping[Dialect, Mapping[str, Marked]],
    toolchain: Toolchain | HostCompiler,
    *,
    wanted: Collection[EntryPlace] | None = None,
    progress: Progress | None = None,
) -> Reachability:
    """Finds the entries that are never selected, in all dialects of a tree.

    If only some entries are `wanted`, the others are neither counted nor reported.
    """
    result = Reachability(wanted=wanted)
    for dialect, marked in copies.items():
        queries = tried_sites(cub, headers, dialect)
        if dialect not in OF_FUNCTIONS:
            result.unasked += unasked(headers, queries)
        if marked:
            _add_reachability(result, cub, queries, marked, toolchain, progress)
    return result


def reach(
    cub: Cub, queries: Sequence[Asked], marked: Mapping[str, Marked], toolchain: Toolchain
) -> Reachability:
    """Finds the entries that some workloads never select."""
    result = Reachability()
    _add_reachability(result, cub, queries, marked, toolchain, None)
    return result


def tried_sites(cub: Cub, headers: Sequence[TuningHeader], dialect: Dialect) -> tuple[Asked, ...]:
    """Makes the queries for a dialect's sites with entries, on the archs that differ there."""
    chains = {chain.namespace: chain for header in headers for chain in header.chains}
    selectors = {header.name: header.selectors for header in headers if header.selectors}
    aggregates = {header.name: header.aggregates for header in headers}
    queries = []
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
                archs = (
                    _reading_archs(chain, families) if site.inherits else _own_archs(headers, site)
                )
            elif site.is_selector and site.header in selectors:
                archs = steps(selectors[site.header])
            else:
                continue
            points = _tried_points(algorithm, site, cub.bindings)
            ordered = tuple(sorted(archs, key=arch_number))
            query = Asked(site, points, ordered, families, values=False, problem=problem)
            declared = aggregates.get(site.header, {})
            queries.append(replace(query, branches=site.is_selector, aggregates=declared))
    return tuple(queries)


def unasked(headers: Sequence[TuningHeader], tried: Sequence[Asked]) -> tuple[str, ...]:
    """Lists families with specializations but no binding, about which nothing is known."""
    bound_names = {
        (query.site.scope, binding.name) for query in tried for binding, _ in query.families
    }
    return tuple(
        dict.fromkeys(
            f"{family.namespace}::{family.name}"
            for header in headers
            for family in header.families
            if family.specializations and (family.namespace, family.name) not in bound_names
        )
    )


def _add_reachability(
    result: Reachability,
    cub: Cub,
    queries: Sequence[Asked],
    marked: Mapping[str, Marked],
    toolchain: Toolchain | HostCompiler,
    progress: Progress | None,
) -> None:
    """Asks which entry each workload selects, and explains the entries that none selects."""
    tree = AskedTree(cub.bindings, cub.include_folders, marked)
    queries = [
        query for query in queries if any(starmap(result.wants, marked[query.site.header].entries))
    ]
    selection = ask(tree, queries, toolchain, progress=progress)
    for group in _group_by_entries(queries):
        _count_entries(result, group, marked[group[0].site.header], selection.rows)
    # The same workload may be queried for the old dispatcher and for the new one.
    result.workloads = max(result.workloads, sum(len(query.points) for query in queries))
    archs = {arch for query in queries for arch in query.archs}
    result.archs = tuple(sorted({*result.archs, *archs}, key=arch_number))
    result.errors += selection.errors
    result.unknown = dict(sorted(result.unknown.items()))
    result.unreachable = tuple(sorted(result.unreachable, key=_order))
    result.call_only = tuple(sorted(result.call_only, key=_order))


def _group_by_entries(queries: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Groups sites that share entries: those of one header, if its entries are returns."""
    by_header: dict[str, list[Asked]] = {}
    for query in queries:
        if query.site.is_selector:
            by_header.setdefault(query.site.header, []).append(query)
        else:
            yield [query]
    yield from by_header.values()


def _count_entries(
    result: Reachability,
    queries: Sequence[Asked],
    copy: Marked,
    rows: Mapping[tuple[Workload, str], Selected],
) -> None:
    """Counts the entries of some sites: selected by benchmarks, only by other calls, or never."""
    sightings, seen = _sightings(queries, copy, rows)
    complete = all(spot in rows for query in queries for spot in query.spots)
    functions = {
        copy.entries[entry_number][0].name
        for entry_number in (*sightings.by_benchmark, *sightings.by_call)
    }
    for number in _candidate_numbers(queries, copy):
        family, entry = copy.entries[number]
        if not result.wants(family, entry):
            continue
        function = f"{family.namespace}::{family.name}"
        if entry.kind == "branch" and complete and family.name not in functions:
            result.unasked = tuple(dict.fromkeys((*result.unasked, function)))
            continue
        result.entries += 1
        if number in sightings.by_benchmark:
            continue
        if number in sightings.by_call:
            result.call_only += (CallOnly.of(family, entry, example=sightings.by_call[number]),)
        elif complete:
            result.unreachable += (explain(copy.header, family, entry, number, seen),)
        else:
            result.unknown[family.header] = result.unknown.get(family.header, 0) + 1


def _sightings(
    queries: Sequence[Asked], copy: Marked, rows: Mapping[tuple[Workload, str], Selected]
) -> tuple[Sightings, KeysSeen]:
    """Records the selected entry of each workload, and where its keys lead."""
    lines = {number: entry.line for number, (_, entry) in enumerate(copy.entries)}
    sightings, seen = (
        Sightings(),
        KeysSeen({}, {}, lines, UNMET.get(queries[0].site.dialect, OF_RETURNS)),
    )
    for query in queries:
        chains, scope = copy.header.chains, query.site.scope
        read = {arch: used_families(chains, scope, arch) for arch in query.archs}
        for point, arch in query.spots:
            row = rows.get((point, arch), UNANSWERED)
            if row.number is not None:
                sightings.note(row.number, point, arch)
            seen.look(row, read[arch], f"{point.name} on {arch}")
    return sightings, seen


def _candidate_numbers(queries: Sequence[Asked], copy: Marked) -> list[int]:
    """Returns the entries that some sites may select: specializations, or returns for keys."""
    names = {(query.site.scope, binding.name) for query in queries for binding, _ in query.families}
    return [
        number
        for number, (family, entry) in enumerate(copy.entries)
        if (
            entry.specific  # a default tests only the compute capability
            if entry.kind == "branch" and not names
            else entry.kind != "primary" and (family.namespace, family.name) in names
        )
    ]


def _tried_points(algorithm: Bound, site: Site, version: str) -> tuple[Workload, ...]:
    """Lists the workloads to try at a site: those of benchmarks, and of other calls."""
    calls = [*algorithm.benchmarks, *algorithm.calls]
    site_calls = (call for call in calls if call.site == site.name)
    return tuple(point for call in site_calls for point in workloads(call, version))


def _reading_archs(chain: PolicyChain | None, families: Sequence[BoundFamily]) -> set[str]:
    """Returns the archs whose policies read one of the families."""
    names = {binding.name for binding, _ in families}
    return {
        policy.arch
        for policy in (chain.policies if chain else ())
        if any(use.family in names for use in policy.uses)
    }


def _own_archs(headers: Sequence[TuningHeader], site: Site) -> set[str]:
    """Returns the archs for which a header has a family of its own."""
    own_headers = (header for header in headers if header.name == site.header)
    return {family.arch for header in own_headers for family in header.families}


def _order(row: Unreachable | CallOnly) -> tuple[str, int]:
    return row.header, row.line
