"""Which workloads a change can touch: those that need a compile, and how the others are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policygen.app.base import Base
from policygen.app.change import read_before
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.notes import Progress
from policygen.app.reading import ReadTree, read_tree
from policygen.app.resolve import ask_values
from policygen.errors import Problems
from policygen.model.arch import arch_number
from policygen.model.cub import Cub
from policygen.model.plan import Plan
from policygen.model.resolve import EntryPlace, Resolution, ResolvedRow
from policygen.model.selection import Spot
from policygen.model.tuning import Entry, Family
from policygen.model.workload import point_of
from policygen.proof.review import Touched, touched
from policygen.proof.sass.archs import unread
from policygen.report.console import plural
from policygen.source.code_diff import first_difference
from policygen.source.files import read_bytes


@dataclass(frozen=True, slots=True)
class Touch:
    """What a change of entries reaches."""

    changed: frozenset[Spot]
    """Workloads that get other values."""
    decided: frozenset[Spot]
    """Those that an entry decides which says something else, with the same values."""
    known: str
    """How it is known that it reaches nothing else."""

    @property
    def spots(self) -> frozenset[Spot]:
        """All that need a compile."""
        return self.changed | self.decided


def meant(plan: Plan | None) -> frozenset[Spot]:
    """The workloads for which a plan wrote other values, so that their code shall differ."""
    if plan is None:
        return frozenset()
    written = {(action.point, plan.options.arch) for action in plan.actions if action.written}
    return frozenset(written | {(one.point, one.arch) for one in plan.reached if not one.kept})


def find_touch(
    cub: Cub, base: Base, names: Iterable[str], archs: Sequence[str], progress: Progress | None
) -> Touch | None:
    """What a change of these headers can touch on some architectures; none where that is all.

    It is all where the headers differ outside of entries, or where the compiler cannot be asked.
    """
    wanted = sorted(names)
    if not wanted:
        return None
    before, after = read_before(base, wanted), read_tree(cub, wanted)
    if errors := (*before.errors, *after.errors):
        raise Problems(errors)
    entries = touched(before.headers, after.headers)
    if not entries or any(
        first_difference(name, _rest(before, name, entries), _rest(after, name, entries))
        is not None
        for name in wanted
    ):
        return None
    families = tuple({one.place: one.family for one in entries}.values())
    sides = [*before.headers, *after.headers]
    others = unread(families, sides, archs)
    asked = [arch for arch in archs if arch not in others]
    found = _asked(before, after, entries, asked, progress) if asked else ({}, {})
    if found is None:
        return None
    changed, decided = (frozenset(one) for one in found)
    return Touch(changed, decided, _known(entries, others, asked))


def _asked(
    before: ReadTree,
    after: ReadTree,
    entries: Sequence[Touched],
    archs: Sequence[str],
    progress: Progress | None,
) -> tuple[Iterable[Spot], Iterable[Spot]] | None:
    """The workloads with other values, and those that a changed entry decides."""
    where = Filter(archs=tuple(archs)) if archs else EVERYTHING
    told = []
    for side in (before, after):
        resolution, errors = ask_values(side, where, progress=progress)
        if errors or resolution.unresolved:
            return None
        told.append(_rows(resolution))
    old, new = told
    spots = old.keys() | new.keys()
    changed = {spot for spot in spots if _values(old, spot) != _values(new, spot)}
    places = _places(before, entries), _places(after, entries)
    decided = {
        spot
        for spot in spots
        for rows, mine in zip((old, new), places, strict=True)
        if spot in rows and rows[spot].entry in mine
    }
    return changed, decided - changed


def _rows(resolution: Resolution) -> Mapping[Spot, ResolvedRow]:
    return {(point_of(row.benchmark, row.workload), row.arch): row for row in resolution.rows}


def _values(rows: Mapping[Spot, ResolvedRow], spot: Spot) -> object:
    return rows[spot].values if spot in rows else None


def _places(side: ReadTree, entries: Sequence[Touched]) -> frozenset[EntryPlace]:
    """The entries of a side that say something else, and those that inherit from their family."""
    places = {EntryPlace.of(f, e) for f, e in _entries(side, entries)}
    names = {one.family.name for one in entries}
    heirs = {
        EntryPlace.of(family, entry)
        for header in side.headers
        for family in (*header.families, *header.selectors)
        for entry in family.entries
        if entry.inherits and any(name in entry.inherits for name in names)
    }
    return frozenset(places | heirs)


def _entries(side: ReadTree, entries: Sequence[Touched]) -> list[tuple[Family, Entry]]:
    """The touched entries as they stand on a side."""
    said = {id(entry) for one in entries for entry in (one.before, one.after) if entry}
    return [
        (family, entry)
        for header in side.headers
        for family in (*header.families, *header.selectors)
        for entry in family.entries
        if id(entry) in said
    ]


def _rest(side: ReadTree, name: str, entries: Sequence[Touched]) -> bytes:
    """A header without the touched entries."""
    data = read_bytes(side.paths[name])
    spans = sorted(e.span for f, e in _entries(side, entries) if f.header == name)
    for start, end in reversed(spans):
        data = data[:start] + data[end:]
    return data


def _known(entries: Sequence[Touched], others: Sequence[str], asked: Sequence[str]) -> str:
    words = [
        f"but for {plural(len(entries), 'entry', 'entries')} the headers are the same code on both"
        " sides"
    ]
    if others:
        names = ", ".join(sorted(others, key=arch_number))
        words.append(f"no policy of {names} reads their family")
    if asked:
        names = ", ".join(sorted(asked, key=arch_number))
        words.append(f"on {names} the compiler says which entry decides, and with which values")
    return "; ".join(words)
