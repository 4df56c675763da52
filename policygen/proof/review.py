"""Finds what a change of headers touches: entries, and the workloads that get other values."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.model.lint import Finding
from policygen.model.reach import Unreachable
from policygen.model.resolve import Differing, EntryPlace
from policygen.model.review import Evidence, ReviewedEntry
from policygen.model.tuning import Entry, Family, TuningHeader, entry_name
from policygen.proof.inheritance import bases_of

Key = tuple[object, ...]
"""What an entry is known by, wherever it stands."""


@dataclass(frozen=True, slots=True)
class Touched:
    """An entry that says something else on one side, or is not there."""

    family: Family
    before: Entry | None
    after: Entry | None

    @property
    def in_family(self) -> bool:
        """Whether it is an entry of a struct family, and no guarded return."""
        return all(entry.kind != "branch" for entry in self.family.entries)

    @property
    def place(self) -> EntryPlace:
        """Where it stands, or stood."""
        entry = self.after or self.before
        assert entry is not None
        return EntryPlace.of(self.family, entry)


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of a tree, by the place of an entry."""

    evidence: Sequence[Evidence]
    findings: Sequence[Finding]
    unreachable: Sequence[Unreachable]
    bases: Mapping[EntryPlace, Sequence[EntryPlace]] = field(default_factory=dict)
    """What an entry inherits from, the closest first."""


def touched(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> list[Touched]:
    """Lists the live entries that differ, in the order of the headers; those that are gone last."""
    old, new = dict(_entries(before)), dict(_entries(after))
    gone = [Touched(family, entry, None) for key, (family, entry) in old.items() if key not in new]
    found = []
    for key, (family, entry) in new.items():
        if key not in old:
            found.append(Touched(family, _moved(family, entry, gone), entry))
        elif _said(old[key][1]) != _said(entry):
            found.append(Touched(family, old[key][1], entry))
    return [one for one in found + gone if not _gives_up(one)]


def _moved(family: Family, entry: Entry, gone: list[Touched]) -> Entry | None:
    """Finds the entry that is gone and said the same of other arguments: its condition changed."""
    place = (family.header, family.namespace, family.name)
    for one in gone:
        theirs = (one.family.header, one.family.namespace, one.family.name)
        if theirs == place and one.before and _said(one.before) == _said(entry):
            if not (entry.members or entry.inherits):
                continue  # it says nothing that would tell it
            gone.remove(one)
            return one.before
    return None


def inherited(headers: Sequence[TuningHeader]) -> dict[EntryPlace, list[EntryPlace]]:
    """Lists what live entries of families inherit from, the closest first."""
    return {
        EntryPlace.of(family, entry): [
            EntryPlace.of(*base) for base in bases_of(header, family, entry)
        ]
        for header in headers
        for family in header.families
        for entry in family.entries
        if entry.inherits and not entry.disabled
    }


def reviewed(
    entries: Sequence[Touched],
    different: Sequence[Differing],
    known: Known,
    undecided: Collection[EntryPlace] = (),
) -> tuple[tuple[ReviewedEntry, ...], tuple[Differing, ...]]:
    """Gives each entry what it reaches, and lists what differs by none of them."""
    after = {one.place: one for one in entries if one.after is not None}
    before = {EntryPlace.of(o.family, o.before): o for o in entries if o.before is not None}
    reached: dict[int, list[Differing]] = {}
    others = []
    for row in different:
        one = after.get(row.entry_after) if row.entry_after else None
        one = one or (before.get(row.entry_before) if row.entry_before else None)
        bases = known.bases.get(row.entry_after, ()) if row.entry_after else ()
        one = one or next((after[base] for base in bases if base in after), None)
        # One that has the key and is not selected still takes it from broader ones.
        sides = (side[place] for place in row.passed for side in (after, before) if place in side)
        one = one or next(sides, None)
        if one is None:
            others.append(row)
        else:
            reached.setdefault(id(one), []).append(row)
    found = tuple(
        _reviewed(one, reached.get(id(one), []), known, decides=one.place not in undecided)
        for one in entries
    )
    return found, tuple(others)


def _reviewed(
    one: Touched, rows: Sequence[Differing], known: Known, *, decides: bool
) -> ReviewedEntry:
    place = one.place
    points = {row.point for row in rows}
    same = (place.header, place.family, place.args)
    entry = one.after or one.before
    assert entry is not None
    return ReviewedEntry(
        change="removed" if one.after is None else "changed" if one.before else "added",
        place=place,
        arch=one.family.arch,
        kind=entry.kind,
        before=one.before.values if one.before else None,
        after=one.after.values if one.after else None,
        asks=_asks(one),
        inherits=(
            one.before.inherits if one.before else None,
            one.after.inherits if one.after else None,
        ),
        variant=entry.variant,
        scores=entry.scores,
        decides=decides,
        reached=tuple(rows),
        evidence=tuple(e for e in known.evidence if e.point in points),
        findings=tuple(f for f in known.findings if (f.header, f.family, f.args) == same),
        unreachable=next(
            (
                u
                for u in known.unreachable
                if (u.header, u.family, u.args, u.line) == (*same, place.line)
            ),
            None,
        ),
    )


def _asks(one: Touched) -> tuple[str, str] | None:
    if one.before is None or one.after is None:
        return None
    first, last = (
        " ".join([entry_name(one.family.name, e.args), *([f"#if {e.guard}"] if e.guard else [])])
        for e in (one.before, one.after)
    )
    return (first, last) if first != last else None


def _entries(headers: Sequence[TuningHeader]) -> Iterator[tuple[Key, tuple[Family, Entry]]]:
    seen: Counter[Key] = Counter()
    for header in headers:
        for family in (*header.families, *header.selectors):
            for entry in family.entries:
                if not entry.disabled:
                    place = (family.header, family.namespace, family.name)
                    key = (*place, entry.slots, entry.guard)
                    # A function may return under the same conditions several times.
                    yield (*key, seen[key]), (family, entry)
                    seen[key] += 1


def _gives_up(one: Touched) -> bool:
    """Whether it is the end of a function that found nothing: `return {};`, whatever is asked."""
    return not (one.in_family or one.place.args) and not any(
        said for entry in (one.before, one.after) if entry for said in _said(entry).values()
    )


def _said(entry: Entry) -> Mapping[str, object]:
    return {"values": entry.values, "inherits": entry.inherits}
