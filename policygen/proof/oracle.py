"""Answers what planning asks: what a workload gets, and what a change does to all of them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.errors import EffectError
from policygen.model.arch import arch_number
from policygen.model.edits import Marked
from policygen.model.selection import (
    Delta,
    DeltaRow,
    Resolution,
    Selected,
    Spot,
    Values,
    delta,
    differs,
    in_full,
)
from policygen.model.trees import Cub, Dialect
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.process import threads
from policygen.proof.ask import ask
from policygen.proof.causes import KeysSeen, explain
from policygen.proof.probe import Asked, AskedTree, Selection
from policygen.proof.sites import (
    AskedArchs,
    asked_archs,
    devices,
    places,
    scaled_families,
    with_new,
)
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import BoundFamily, overlay
from policygen.proof.values import used_families
from policygen.rocprim.host import HostCompiler
from policygen.steps import Progress
from policygen.trees.layout import tuning_headers

ALL = re.compile("")
UNTUNED = Selected({})
Mark = Callable[[Mapping[str, bytes]], Mapping[str, Marked]]
"""Marked copies of headers, by name; the caller knows how to read them."""


@dataclass(frozen=True, slots=True)
class SelectedSite:
    """What workloads select of a marked header, on one architecture."""

    copy: Marked
    rows: Mapping[Point, Selected]
    read: Collection[str]
    """The families that the policy reads."""
    seen: KeysSeen


@dataclass(frozen=True, slots=True)
class Compiler:
    """Answers about one tree, as it is or with some of its headers changed."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]
    nvcc: Toolchain | HostCompiler
    mark: Mark
    progress: Progress | None = None
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Headers that are asked about with other content than the tree has."""
    only: Dialect | None = None
    """Where CUB decides in this dialect; else in the tree's own, where there is a site of it."""
    sites: dict[tuple[str, str, bytes, str], SelectedSite] = field(default_factory=dict)
    """What was asked before, to say why not."""
    comparisons: dict[tuple[tuple[str, bytes], ...], Delta[Values]] = field(default_factory=dict)
    """What was compared before."""
    current: dict[Spot, Selected] = field(default_factory=dict, init=False)
    """The policies of whole sites that the tree was asked for before, as it is."""

    @property
    def toolchain(self) -> str:
        """Names the compiler."""
        return self.nvcc.name

    def tell(self, points: Sequence[Point], arch: str) -> dict[Point, Selected]:
        """Asks what is selected for workloads on an architecture, and where their keys lead."""
        asked = self._asked(points)
        names = {place.site.header for place in asked}
        marked = self.mark({name: self.data[name] for name in sorted(names)})
        questions = [
            self._keys(place, arch, marked[place.site.header], place.families) for place in asked
        ]
        # A comparison needs the values of whole sites, which cost hardly more than those of a few.
        whole = [self._question(self._whole(place), marked, self.data) for place in asked]
        unknown = self._unknown([replace(one, archs=_with(one.archs, arch)) for one in whole])
        keys = [replace(one, values=False) for one in questions]
        told = self._ask([*unknown, *keys], {}, marked)
        if told.errors:  # where not all workloads compile, those that are asked for may
            found = self._ask(questions, {}, marked).checked()
            return {point: row for (point, _), row in found.by_point.items()}
        self._learn(unknown, told)
        return {
            point.point: replace(
                told.rows.get((point, arch), UNTUNED),
                values=self.current[point.point, arch].values,
                fields=self.current[point.point, arch].fields,
            )
            for place in asked
            for point in place.points
        }

    def selects(self, changed: Mapping[str, bytes], point: Point, arch: str) -> Values:
        """Asks what one workload gets on an architecture with changed headers, and nothing else."""
        asked = [replace(place, archs=(arch,), families=()) for place in self._asked([point])]
        return self._ask(asked, changed, {}).checked().by_point[point, arch].values

    def _unknown(self, asked: Sequence[Asked]) -> list[Asked]:
        """Leaves out the architectures whose values are known for a whole site."""
        left = [
            replace(
                one,
                archs=tuple(
                    a
                    for a in one.archs
                    if not self.current.keys() >= {(point.point, a) for point in one.points}
                ),
            )
            for one in asked
        ]
        return [one for one in left if one.archs]

    def _learn(self, asked: Sequence[Asked], told: Selection) -> None:
        for one in asked:
            for point, arch in one.spots:
                if row := told.rows.get((point, arch)):
                    self.current[point.point, arch] = row

    def _keys(
        self, place: Asked, arch: str, copy: Marked, families: tuple[BoundFamily, ...]
    ) -> Asked:
        """Asks where the keys of workloads lead, or which return decides them."""
        if place.site.is_selector:
            scaled = scaled_families(self.cub.bindings, place)
            traits = copy.traits
            return replace(place, archs=(arch,), families=scaled, branches=True, traits=traits)
        return replace(place, archs=(arch,), families=families)

    def compare(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        """Compares all workloads of these headers on every arch that has a policy."""
        key = tuple(sorted(changed.items()))
        if key not in self.comparisons:
            self.comparisons[key] = self._compared(changed)
        return self.comparisons[key]

    def take(self, changed: Mapping[str, bytes], before: Resolution, after: Resolution) -> None:
        """Compares two resolutions, and asks nothing again, where they hold all that is asked."""
        asked = self._questions(changed)
        spots = [(workload.point, arch) for one in asked for workload, arch in one.spots]
        sides = [
            {(r.point, r.arch): Selected(r.values, fields=r.fields) for r in side.rows}
            for side in (before, after)
        ]
        if all(spot in side for side in sides for spot in spots):
            old, new = ({spot: side[spot] for spot in spots} for side in sides)
            between = self._archs(changed).between
            self.comparisons[tuple(sorted(changed.items()))] = _delta(old, new, between)

    def _questions(self, changed: Mapping[str, bytes]) -> list[Asked]:
        marked = self.mark(changed)
        asked = [self._question(place, marked, changed) for place in self._all(changed)]
        # A header may declare families whose policies are gone: nothing selects by them.
        return [one for one in asked if one.archs]

    def _archs(self, changed: Mapping[str, bytes]) -> AskedArchs:
        """Finds where the returns of headers may begin or end, before a change and after it."""
        if not self.nvcc.archs:  # what it is asked for is no number that a header compares
            return AskedArchs(frozenset())
        contents = (data for name in changed for data in (self.data[name], changed[name]))
        return asked_archs(contents, self.nvcc.archs)

    def _compared(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        asked = self._questions(changed)
        with threads(2) as pool:
            unknown = self._unknown(asked)
            told = pool.submit(self._ask, unknown, {}, {})
            new = self._ask(asked, changed, {})
        old = told.result()
        if new.errors and not old.errors:
            raise EffectError([f"it does not compile: {error}" for error in new.errors])
        self._learn(unknown, old.checked())
        after = new.checked().by_point
        before = {spot: self.current[spot] for spot in after}
        return _delta(before, after, self._archs(changed).between)

    def why_not(self, changed: Mapping[str, bytes], point: Point, arch: str) -> str:
        """Explains why a workload does not get what its entry in a changed header says."""
        asked = self._asked([point])
        if not asked:
            return "no benchmark of the tree has this workload"
        name = asked[0].site.header
        site = self._site(asked[0], changed, arch)
        row = site.rows[point]
        if asked[0].site.is_selector and row.entry is not None:
            family, entry = row.entry
            return f"the compiler takes what {name}:{entry.line} ({family.name}) returns"
        read = [key for name, key in row.keys.items() if name in site.read]
        for key in reversed(read):
            if key.entry and key.number != row.number:
                family, entry = key.entry
                return explain(site.copy.header, family, entry, key.number, site.seen).reason
        return "the compiler takes other values"

    def _site(self, place: Asked, changed: Mapping[str, bytes], arch: str) -> SelectedSite:
        """Asks about all workloads of a site: what a policy wants shows in those that it takes."""
        name, scope = place.site.header, place.site.scope
        content = changed.get(name, self.data[name])
        known = (place.site.name, name, content, arch)
        if known in self.sites:
            return self.sites[known]
        copy = self.mark({name: content})[name]
        everything = self._whole(place)
        declared = [f for f in copy.header.families if f.namespace == scope]
        families = with_new(everything.families, declared)
        asked = replace(self._keys(everything, arch, copy, families), values=False)
        told = self._ask([asked], changed, {name: copy}).checked()
        read = used_families(copy.header.chains, scope, arch)
        seen = KeysSeen({}, {}, {i: e.line for i, (_, e) in enumerate(copy.entries)})
        for (workload, _), row in told.rows.items():
            seen.look(row, read, workload.name)
        rows = {point: row for (point, _), row in told.by_point.items()}
        self.sites[known] = SelectedSite(copy, rows, read, seen)
        return self.sites[known]

    def _whole(self, place: Asked) -> Asked:
        """Gives a site all of its workloads."""
        (found,) = (p for p in self._all([place.site.header]) if p.site == place.site)
        return found

    def _ask(
        self,
        asked: Sequence[Asked],
        changed: Mapping[str, bytes],
        marked: Mapping[str, Marked],
    ) -> Selection:
        tree = self._tree({**self.replaced, **changed}, marked)
        return ask(tree, asked, self.nvcc, progress=self.progress)

    def _tree(self, changed: Mapping[str, bytes], marked: Mapping[str, Marked]) -> AskedTree:
        """The tree with changed headers: in folders before it, or in the place of its files."""
        folders = self.cub.include_folders
        if self.nvcc.replaces_files:
            paths = {path.name: str(path) for path in tuning_headers(self.cub)}
            contents = {paths[name]: data for name, data in sorted(changed.items())}
            return AskedTree(self.cub.bindings, folders, marked, contents)
        overlays = (overlay(name, data) for name, data in sorted(changed.items()))
        return AskedTree(self.cub.bindings, (*overlays, *folders), marked)

    def _question(
        self, place: Asked, after: Mapping[str, Marked], changed: Mapping[str, bytes]
    ) -> Asked:
        """Asks about a site on each arch that has a policy of its own there.

        All others get what the next older one gets: a chain of policies tells no more apart.
        A policy selector can tell any two architectures apart.
        """
        name = place.site.header
        if place.site.is_selector:
            return replace(place, archs=self._archs({name: changed[name]}).ordered, families=())
        if not place.site.inherits:
            names = {binding.name for binding, _ in place.families}
            sides = (self.headers[name], after[name].header)
            every = (family for side in sides for family in side.families)
            # A table may get the name of a config that is new.
            families = (f for f in every if f.name in names or place.site.table)
            archs = {family.arch for family in families} | devices(sides)
            return replace(place, archs=tuple(sorted(archs, key=arch_number)), families=())
        archs = {
            policy.arch
            for header in (self.headers[name], after[name].header)
            for chain in header.chains
            if chain.namespace == place.site.scope
            for policy in chain.policies
        }
        return replace(place, archs=tuple(sorted(archs, key=arch_number)), families=())

    def _all(self, names: Iterable[str]) -> tuple[Asked, ...]:
        return self._places(frozenset(names))

    def _places(self, names: frozenset[str] = frozenset()) -> tuple[Asked, ...]:
        found = places(self.cub, list(self.headers.values()), ALL, {}, names)
        return tuple(p for p in found if self.only in {None, p.site.dialect})

    def _asked(self, points: Sequence[Point]) -> tuple[Asked, ...]:
        """Finds the sites of some workloads, with these alone."""
        if not points:
            return ()
        wanted = set(points)
        kept = [
            replace(place, points=tuple(p for p in place.points if p.point in wanted))
            for place in self._places()
        ]
        return tuple(place for place in kept if place.points)


def _delta(
    before: Mapping[Spot, Selected], after: Mapping[Spot, Selected], between: frozenset[str]
) -> Delta[Values]:
    """Compares whole policies, and tells the values that a binding names, and what else differs."""
    found = delta(before, after, differs, UNTUNED, between)
    rows = [(row, in_full(row.before, row.after)) for row in found.changes]
    changes = tuple(DeltaRow(row.benchmark, row.workload, row.arch, *sides) for row, sides in rows)
    return Delta(found.archs, found.compared, changes, found.between)


def _with(archs: Sequence[str], arch: str) -> tuple[str, ...]:
    return tuple(sorted({*archs, arch}, key=arch_number))
