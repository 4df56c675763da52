"""Answers planning's questions: what a workload gets, and what a change does to all workloads."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import bound
from policygen.errors import EffectError, Problems
from policygen.headers.dialects import dialect_class
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_changed
from policygen.headers.selectors.branches import enable_returns
from policygen.headers.specializations.siblings import older
from policygen.model.arch import arch_number
from policygen.model.selection import (
    Delta,
    DeltaRow,
    InputChange,
    Resolution,
    Selected,
    Spot,
    Values,
    delta,
    differs,
    in_full,
)
from policygen.model.trees import Cub, Dialect
from policygen.model.tuning import Marked, used_families
from policygen.model.workload import Point
from policygen.opening import read_bytes
from policygen.process import threads
from policygen.proof.all_inputs import InputDelta, Side
from policygen.proof.ask import ask, compiler_of, replaces_files
from policygen.proof.other_calls import compare_all_inputs
from policygen.proof.probe import LibraryCompiler, QueriedTree, Selection
from policygen.proof.reading import ReadTree, older_tree, read_tree
from policygen.proof.sites import (
    AskedArchs,
    asked_archs,
    devices,
    marked_members,
    places,
    scaled_families,
    with_new,
    with_new_families,
)
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import BoundFamily, SiteQuery, overlay
from policygen.proof.unreachable import KeysSeen, explain
from policygen.steps import Progress
from policygen.trees.layout import tuning_headers

ALL = re.compile("")
UNTUNED = Selected({})


@dataclass(frozen=True, slots=True)
class SelectedSite:
    """What workloads select from a marked header on one architecture."""

    copy: Marked
    rows: Mapping[Point, Selected]
    read: Collection[str]
    """The families that the policy reads."""
    seen: KeysSeen


@dataclass(frozen=True, slots=True)
class Compiler:
    """Queries one tree, as it is or with some headers changed."""

    tree: ReadTree
    sources: TuningTree
    """The headers to compare with: those of the tree, or those before a change."""
    nvcc: Toolchain | LibraryCompiler
    progress: Progress | None = None
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Headers to query with other content than the tree has."""
    only: Dialect | None = None
    """Restricts queries to sites in this dialect; by default the tree's own is preferred."""
    copies: dict[tuple[str, bytes], Marked] = field(default_factory=dict)
    """Cache of marked copies of headers."""
    sites: dict[tuple[str, str, bytes, str], SelectedSite] = field(default_factory=dict)
    """Cache of selected sites, used to explain failures."""
    comparisons: dict[tuple[tuple[str, bytes], ...], Delta[Values]] = field(default_factory=dict)
    """Cache of comparisons."""
    inputs: dict[tuple[tuple[str, bytes], ...], InputDelta] = field(default_factory=dict)
    """Cache of comparisons for all inputs."""
    current: dict[Spot, Selected] = field(default_factory=dict, init=False)
    """Cache of the unchanged tree's policies for whole sites."""

    @property
    def toolchain(self) -> str:
        """The name of the compiler."""
        return self.nvcc.name

    @property
    def older(self) -> "Compiler":
        """The compiler for the tree as its older dispatchers see it."""
        tree = older_tree(self.tree, self.tree.paths)
        sources, dialect = replace(self.sources, cub=tree.cub), tree.cub.dialect
        nvcc = compiler_of(tree.cub)
        return Compiler(tree, sources, nvcc, self.progress, self.replaced, dialect)

    def mark(self, contents: Mapping[str, bytes]) -> dict[str, Marked]:
        """Returns marked copies of headers with some contents, by name."""
        cub = self.sources.cub
        for name, content in contents.items():
            if (name, content) not in self.copies:
                is_changed, path = content != self.sources.data[name], self.tree.paths[name]
                header = read_changed(path, content) if is_changed else self.sources.headers[name]
                members = marked_members(bound(cub.bindings), older(cub).dialect)
                members = with_new_families(members, header)
                marked = dialect_class(cub.dialect).mark(header, content, members)
                self.copies[name, content] = marked
        return {name: self.copies[name, content] for name, content in contents.items()}

    def tell(self, points: Sequence[Point], arch: str) -> dict[Point, Selected]:
        """Returns what workloads select on an architecture, and where their keys lead."""
        queries = self._queries_for(points)
        names = {query.site.header for query in queries}
        marked = self.mark({name: self.sources.data[name] for name in sorted(names)})
        key_queries = [
            self._keys(query, arch, marked[query.site.header], query.families) for query in queries
        ]
        # A later comparison needs the values of whole sites, which cost hardly more than a few
        # values.
        whole_sites = [
            self._question(self._whole_site(query), marked, self.sources.data) for query in queries
        ]
        for_values = [
            replace(query, archs=tuple(sorted({*query.archs, arch}, key=arch_number)))
            for query in whole_sites
        ]
        value_queries = self._without_cached(for_values)
        keys_only = [replace(query, values=False) for query in key_queries]
        selection = self._ask([*value_queries, *keys_only], {}, marked)
        if selection.errors:  # the whole site does not compile: the requested workloads still may
            checked = self._ask(key_queries, {}, marked).checked()
            return {point: row for (point, _), row in checked.by_point.items()}
        self._cache_values(value_queries, selection)
        selected = {}
        for point in (point for query in queries for point in query.points):
            row, whole = selection.rows.get((point, arch), UNTUNED), self.current[point.point, arch]
            selected[point.point] = replace(row, values=whole.values, fields=whole.fields)
        return selected

    def selects(self, changed: Mapping[str, bytes], point: Point, arch: str) -> Values:
        """Returns what one workload gets on an architecture with changed headers."""
        queries = [
            replace(query, archs=(arch,), families=()) for query in self._queries_for([point])
        ]
        return self._ask(queries, changed, {}).checked().by_point[point, arch].values

    def _without_cached(self, queries: Sequence[SiteQuery]) -> list[SiteQuery]:
        """Drops the architectures for which the values of the whole site are cached."""
        remaining = []
        for query in queries:
            spots = (spot for spot in query.spots if (spot[0].point, spot[1]) not in self.current)
            archs = {arch for _, arch in spots}
            remaining.append(replace(query, archs=tuple(a for a in query.archs if a in archs)))
        return [query for query in remaining if query.archs]

    def _cache_values(self, queries: Sequence[SiteQuery], selection: Selection) -> None:
        for query in queries:
            for point, arch in query.spots:
                if row := selection.rows.get((point, arch)):
                    self.current[point.point, arch] = row

    def _keys(
        self, query: SiteQuery, arch: str, copy: Marked, families: tuple[BoundFamily, ...]
    ) -> SiteQuery:
        """Asks where the keys of workloads lead, or which return decides them."""
        if query.site.is_selector:
            scaled = scaled_families(self.sources.cub.bindings, query)
            traits = copy.traits
            return replace(query, archs=(arch,), families=scaled, branches=True, traits=traits)
        return replace(query, archs=(arch,), families=families)

    def compare(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        """Compares all workloads of these headers on every architecture that has a policy."""
        key = tuple(sorted(changed.items()))
        if key not in self.comparisons:
            self.comparisons[key] = self._compared(changed)
        return self.comparisons[key]

    def take(
        self,
        changed: Mapping[str, bytes],
        before: Resolution,
        after: Resolution,
        inputs: InputDelta | None = None,
    ) -> None:
        """Caches the comparison of two resolutions if they contain everything that it needs."""
        if inputs is not None:
            self.inputs[tuple(sorted(changed.items()))] = inputs
        queries = self._questions(changed)
        spots = [(workload.point, arch) for query in queries for workload, arch in query.spots]
        sides = [
            {(row.point, row.arch): Selected(row.values, fields=row.fields) for row in side.rows}
            for side in (before, after)
        ]
        if all(spot in side for side in sides for spot in spots):
            old, new = ({spot: side[spot] for spot in spots} for side in sides)
            between = self._archs(changed).between
            self.comparisons[tuple(sorted(changed.items()))] = _delta(old, new, between)

    def _questions(self, changed: Mapping[str, bytes]) -> list[SiteQuery]:
        marked = self.mark(changed)
        queries = [self._question(query, marked, changed) for query in self._site_queries(changed)]
        # A header may declare families that no remaining policy selects.
        return [query for query in queries if query.archs]

    def _archs(self, changed: Mapping[str, bytes]) -> AskedArchs:
        """Finds where ranges of returns may begin or end, before and after a change."""
        if not self.nvcc.archs:  # its architectures are not the numbers that headers compare
            return AskedArchs(frozenset())
        contents = (data for name in changed for data in (self.sources.data[name], changed[name]))
        return asked_archs(contents, self.nvcc.archs)

    def _compared(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        queries = self._questions(changed)
        with threads(2) as pool:
            value_queries = self._without_cached(queries)
            pending = pool.submit(self._ask, value_queries, {}, {})
            new = self._ask(queries, changed, {})
        old = pending.result()
        if new.errors and not old.errors:
            raise EffectError([f"it does not compile: {error}" for error in new.errors])
        self._cache_values(value_queries, old.checked())
        after = new.checked().by_point
        before = {spot: self.current[spot] for spot in after}
        return _delta(before, after, self._archs(changed).between)

    def compare_inputs(self, changed: Mapping[str, bytes]) -> InputDelta:
        """Compares what all selectors and hubs return, for inputs of no benchmark, too."""
        key = tuple(sorted(changed.items()))
        if key not in self.inputs:
            if isinstance(self.nvcc, LibraryCompiler):
                return InputDelta()
            trees = (self._tree(self.replaced, {}), self._tree({**self.replaced, **changed}, {}))
            before, after = (Side.of(tree.includes) for tree in trees)
            self.inputs[key] = compare_all_inputs(
                changed, (before, after), self.sources.cub.bindings, self.nvcc, self.progress
            )
        return self.inputs[key]

    def input_changes(self, changed: Mapping[str, bytes]) -> Sequence[InputChange]:
        """Returns the inputs that get other values."""
        return self.compare_inputs(changed).changes

    def why_not(self, changed: Mapping[str, bytes], point: Point, arch: str) -> str:
        """Explains why a workload does not get what its entry in a changed header says."""
        queries = self._queries_for([point])
        if not queries:
            return "no benchmark of the tree has this workload"
        name = queries[0].site.header
        site = self._site(queries[0], changed, arch)
        row = site.rows[point]
        if queries[0].site.is_selector and row.entry is not None:
            family, entry = row.entry
            return f"the compiler selects what {name}:{entry.line} ({family.name}) returns"
        read = [key for name, key in row.keys.items() if name in site.read]
        for key in reversed(read):
            if key.entry and key.number != row.number:
                family, entry = key.entry
                return explain(site.copy.header, family, entry, key.number, site.seen).reason
        return "the compiler selects different values"

    def _site(self, query: SiteQuery, changed: Mapping[str, bytes], arch: str) -> SelectedSite:
        """Queries all workloads of a site: keys that lead elsewhere explain a policy's choices."""
        name, scope = query.site.header, query.site.scope
        content = changed.get(name, self.sources.data[name])
        cache_key = (query.site.name, name, content, arch)
        if cache_key in self.sites:
            return self.sites[cache_key]
        copy = self.mark({name: content})[name]
        whole_site = self._whole_site(query)
        declared = [family for family in copy.header.families if family.namespace == scope]
        families = with_new(whole_site.families, declared)
        keys_query = replace(self._keys(whole_site, arch, copy, families), values=False)
        selection = self._ask([keys_query], changed, {name: copy}).checked()
        read = used_families(copy.header.chains, scope, arch)
        seen = KeysSeen(
            {}, {}, {number: entry.line for number, (_, entry) in enumerate(copy.entries)}
        )
        for (workload, _), row in selection.rows.items():
            seen.look(row, read, workload.name)
        rows = {point: row for (point, _), row in selection.by_point.items()}
        self.sites[cache_key] = SelectedSite(copy, rows, read, seen)
        return self.sites[cache_key]

    def _whole_site(self, query: SiteQuery) -> SiteQuery:
        """Returns the query for all workloads of a site."""
        queries = self._site_queries([query.site.header])
        (whole_site,) = (candidate for candidate in queries if candidate.site == query.site)
        return whole_site

    def _ask(
        self,
        queries: Sequence[SiteQuery],
        changed: Mapping[str, bytes],
        marked: Mapping[str, Marked],
    ) -> Selection:
        tree = self._tree({**self.replaced, **changed}, marked)
        return ask(tree, queries, self.nvcc, progress=self.progress)

    def _tree(self, changed: Mapping[str, bytes], marked: Mapping[str, Marked]) -> QueriedTree:
        """The tree with changed headers: as overlay folders, or as replaced files."""
        folders = self.sources.cub.include_folders
        if replaces_files(self.sources.cub):
            paths = {path.name: str(path) for path in tuning_headers(self.sources.cub)}
            contents = {paths[name]: data for name, data in sorted(changed.items())}
            return QueriedTree(self.sources.cub.bindings, folders, marked, contents)
        overlays = (overlay(name, data) for name, data in sorted(changed.items()))
        return QueriedTree(self.sources.cub.bindings, (*overlays, *folders), marked)

    def _question(
        self, query: SiteQuery, marked: Mapping[str, Marked], changed: Mapping[str, bytes]
    ) -> SiteQuery:
        """Makes a query for a site on each architecture that has its own policy there.

        All other architectures get what the next older one gets. A policy selector, however, can
        distinguish any two architectures.
        """
        site, name = query.site, query.site.header
        sides = (self.sources.headers[name], marked[name].header)
        if site.is_selector:
            archs = {*self._archs({name: changed[name]}).ordered}
        elif site.inherits:
            chains = (chain for side in sides for chain in side.chains)
            own_chains = (chain for chain in chains if chain.namespace == site.scope)
            archs = {policy.arch for chain in own_chains for policy in chain.policies}
        else:
            names = {binding.name for binding, _ in query.families}
            families = (family for side in sides for family in side.families)
            # A table may mention the name of a new config.
            archs = {family.arch for family in families if family.name in names or site.table}
            archs |= devices(sides)
        return replace(query, archs=tuple(sorted(archs, key=arch_number)), families=())

    def _site_queries(self, header_names: Iterable[str] = ()) -> tuple[SiteQuery, ...]:
        headers = list(self.sources.headers.values())
        queries = places(self.sources.cub, headers, ALL, {}, frozenset(header_names))
        return tuple(query for query in queries if self.only in {None, query.site.dialect})

    def _queries_for(self, points: Sequence[Point]) -> tuple[SiteQuery, ...]:
        """Makes queries for only these workloads."""
        if not points:
            return ()
        selected = set(points)
        queries: list[SiteQuery] = []
        for query in self._site_queries():
            own = tuple(workload for workload in query.points if workload.point in selected)
            queries += [replace(query, points=own)] if own else []
        return tuple(queries)


def open_compiler(
    cub: Cub, names: Sequence[str] = (), *, progress: Progress | None = None
) -> Compiler:
    """Reads the headers of a tree, and returns a compiler for them."""
    tree = read_tree(cub, names)
    if tree.errors:
        raise Problems(tree.errors)
    return compiler_for(tree, progress=progress)


def compiler_for(tree: ReadTree, *, progress: Progress | None = None) -> Compiler:
    """Returns a compiler for a tree whose headers were read."""
    headers = {header.name: header for header in tree.headers}
    data = {name: read_bytes(path) for name, path in tree.paths.items()}
    return Compiler(tree, TuningTree(tree.cub, headers, data), compiler_of(tree.cub), progress)


def _delta(
    before: Mapping[Spot, Selected], after: Mapping[Spot, Selected], between: frozenset[str]
) -> Delta[Values]:
    """Compares whole policies; returns the bound values, and any other differences."""
    result = delta(before, after, differs, UNTUNED, between)
    rows = [(row, in_full(row.before, row.after)) for row in result.changes]
    changes = tuple(DeltaRow(row.benchmark, row.workload, row.arch, *sides) for row, sides in rows)
    return Delta(result.archs, result.compared, changes, result.between)


# Marked copies of the headers of a tree.


def marked_copies(tree: ReadTree, dialect: Dialect) -> dict[str, Marked]:
    """Returns marked copies of the headers that hold entries in a dialect."""
    members = marked_members(bound(tree.cub.bindings), dialect)
    reader = dialect_class(dialect)
    matching = (header for header in tree.headers if reader.read(header))
    return {header.name: reader.mark(header, tree.data(header), members) for header in matching}


def marked_for(tree: ReadTree, queries: Iterable[SiteQuery]) -> Mapping[str, Marked]:
    """Returns marked copies of headers, each in the dialect that decides its site."""
    copies = marked_copies(tree, tree.cub.dialect)
    if tree.cub.has_selectors:
        return copies
    dialects = {q.site.header: q.site.dialect for q in queries if q.site.is_selector}
    copies = {name: copy for name, copy in copies.items() if name not in dialects}
    selector_tree = replace(tree, headers=tuple(h for h in tree.headers if h.name in dialects))
    for dialect in dict.fromkeys(dialects.values()):
        copies |= marked_copies(selector_tree, dialect)
    return copies


def enabled_copies(tree: ReadTree) -> Mapping[str, Marked]:
    """Returns copies of headers in which commented-out guarded returns are enabled."""
    copies = (enable_returns(header, tree.data(header)) for header in tree.headers)
    return {copy.header.name: copy for copy in copies if copy.entries}
