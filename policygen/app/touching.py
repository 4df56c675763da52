"""Which workloads a change can touch: those that need a compile, and how the others are known."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policygen.app.base import Base
from policygen.app.change import read_before
from policygen.app.filters import Filter
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
from policygen.steps import Progress

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Touch:
    """What a change of entries reaches."""

    changed: frozenset[Spot]
    """Workloads that get other values."""
    decided: frozenset[Spot]
    """Those that an entry decides which says something else, with the same values."""
    asked: frozenset[Spot]
    """What the compiler was asked about; of the same architectures nothing is known of others."""
    archs: frozenset[str]
    """The architectures that were asked about; no policy of the others reads what changed."""
    known: str
    """How it is known that it reaches nothing else."""

    def reaches(self, spot: Spot) -> bool:
        """Whether a workload needs a compile."""
        if spot[1] not in self.archs:
            return False
        return spot in self.changed or spot in self.decided or spot not in self.asked


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
    families = _heirs(before, after, entries)
    sides = [*before.headers, *after.headers]
    # Which returns a function gets to, and which configs are for an architecture, is for the
    # compiler to say: one compile tells of all.
    in_text = any(h.chains for h in sides) and not any(h.selectors for h in sides)
    others = unread(families, sides, archs) if in_text else ()
    asked = [arch for arch in archs if arch not in others]
    names = frozenset(family.name for family in families)
    found = _asked(before, after, entries, names, asked, progress)
    if found is None:
        return None
    changed, decided, known = found
    return Touch(changed, decided, known, frozenset(asked), _known(entries, others, asked))


def _heirs(before: ReadTree, after: ReadTree, entries: Sequence[Touched]) -> tuple[Family, ...]:
    """The families of touched entries, and those with entries that inherit from one of them."""
    every = [
        family
        for side in (before, after)
        for header in side.headers
        for family in (*header.families, *header.selectors)
    ]
    names = frozenset(one.family.name for one in entries)
    while more := {f.name for f in every if any(_inherits(e, names) for e in f.entries)} - names:
        names |= more
    return tuple(family for family in every if family.name in names)


def _inherits(entry: Entry, names: frozenset[str]) -> bool:
    """Whether it names one of some families: `sm90_tuning` is no part of `sm90_tuning_vals`."""
    return not names.isdisjoint(_WORD.findall(entry.inherits or ""))


def _asked(
    before: ReadTree,
    after: ReadTree,
    entries: Sequence[Touched],
    names: frozenset[str],
    archs: Sequence[str],
    progress: Progress | None,
) -> tuple[frozenset[Spot], frozenset[Spot], frozenset[Spot]] | None:
    """The workloads with other values, those that a changed entry decides, and all."""
    nothing: frozenset[Spot] = frozenset()
    if not archs:
        return nothing, nothing, nothing
    where = Filter(archs=tuple(archs))
    told = []
    for side in (before, after):
        resolution, errors = ask_values(side, where, progress=progress)
        if errors or resolution.unresolved:
            return None
        told.append(_rows(resolution))
    old, new = told
    spots = frozenset(old.keys() | new.keys())
    changed = frozenset(spot for spot in spots if _values(old, spot) != _values(new, spot))
    places = _places(before, entries, names), _places(after, entries, names)
    decided = frozenset(
        spot
        for spot in spots
        for rows, mine in zip((old, new), places, strict=True)
        if spot in rows and rows[spot].entry in mine
    )
    return changed, decided - changed, spots


def _rows(resolution: Resolution) -> Mapping[Spot, ResolvedRow]:
    return {(point_of(row.benchmark, row.workload), row.arch): row for row in resolution.rows}


def _values(rows: Mapping[Spot, ResolvedRow], spot: Spot) -> object:
    return rows[spot].values if spot in rows else None


def _places(
    side: ReadTree, entries: Sequence[Touched], names: frozenset[str]
) -> frozenset[EntryPlace]:
    """The entries of a side that say something else, and those that inherit from their family."""
    places = {EntryPlace.of(f, e) for f, e in _entries(side, entries)}
    heirs = {
        EntryPlace.of(family, entry)
        for header in side.headers
        for family in (*header.families, *header.selectors)
        for entry in family.entries
        if _inherits(entry, names)
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
