"""Finds what a change of headers touches: entries, and the workloads that get other values."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from policygen.errors import SourceError
from policygen.model.audits import Finding, Unreachable
from policygen.model.reviews import Evidence, ReviewedEntry, Uncovered
from policygen.model.selection import (
    Comparison,
    Differing,
    EntryPlace,
    Resolution,
    ResolvedRow,
    Spot,
    Values,
    delta,
    with_unnamed,
)
from policygen.model.tuning import Entry, Family, TuningHeader, entry_name
from policygen.proof.causes import bases_of
from policygen.proof.sites import bound_headers

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


# Compares what two trees select for their workloads.


def compare_resolutions(before: Resolution, after: Resolution) -> Comparison:
    """Lists the workloads whose values differ, or that one tree lacks.

    Of benchmarks that one side did not answer nothing is said but this: they are `unresolved`.
    """
    sides = [_rows(side) for side in (before, after)]
    lost = {one.benchmark for side in (before, after) for one in side.unresolved}
    both = sides[0].keys() & sides[1].keys()
    known = [
        {spot: row for spot, row in side.items() if spot in both or spot[0][0] not in lost}
        for side in sides
    ]
    found = delta(known[0], known[1], _unlike, None)
    pairs = ((one.before, one.after) for one in found.changes)
    return Comparison(
        before=before.cub,
        after=after.cub,
        toolchain=after.toolchain,
        archs=after.archs,
        compared=found.compared,
        different=tuple(_differing(old, new) for old, new in pairs),
        remarks=tuple(dict.fromkeys((*before.remarks, *after.remarks))),
        unresolved=tuple(dict.fromkeys((*before.unresolved, *after.unresolved))),
    )


def _rows(resolution: Resolution) -> dict[Spot, ResolvedRow | None]:
    return {
        ((row.benchmark, tuple(sorted(row.workload.items()))), row.arch): row
        for row in resolution.rows
    }


def _unlike(old: ResolvedRow | None, new: ResolvedRow | None) -> bool:
    return old is None or new is None or bool(_changed(old, new))


def _changed(old: ResolvedRow, new: ResolvedRow) -> tuple[str, ...]:
    # A value that one tree does not know, as the lookahead's, says nothing about the other.
    before, after = _in_full(old, new)
    return tuple(name for name in after if name in before and before[name] != after[name])


def _in_full(old: ResolvedRow, new: ResolvedRow) -> tuple[Values, Values]:
    return with_unnamed(old.values, old.fields, new.values, new.fields)


def _differing(old: ResolvedRow | None, new: ResolvedRow | None) -> Differing:
    row = new or old
    assert row is not None
    before, after = old and old.values, new and new.values
    if old and new:
        before, after = (dict(side) for side in _in_full(old, new))
    return Differing(
        benchmark=row.benchmark,
        workload=row.workload,
        arch=row.arch,
        before=before,
        after=after,
        changed=_changed(old, new) if old and new else (),
        entry_before=old.entry if old else None,
        entry_after=new.entry if new else None,
        passed=tuple(side.passed for side in (new, old) if side and side.passed),
    )


UNBOUND = "no binding covers this header: what its change selects is not known"
UNDECIDED = "decides no workload that is bound: what its change selects is not known"


# Finds what a change touches and no bound workload tells of: what it selects is not known.


def uncovered_headers(
    names: Iterable[str], version: str, differs: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers that no binding names; `differs` tells the line at which their code does."""
    for name in sorted({*names} - bound_headers(version)):
        if line := differs(name):
            yield Uncovered(header=name, line=line, what=UNBOUND)


def unanswered(
    before: Sequence[Resolution], after: Sequence[Resolution], lines: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers of which one side does not answer; `lines` tells where their code differs."""
    found: dict[tuple[str, str], set[str]] = {}
    for side, when in ((before, "before"), (after, "after")):
        for one in (one for document in side for one in document.unresolved):
            found.setdefault((one.header, f"{when} the change {one.reason}"), set()).add(
                one.benchmark
            )
    for (header, why), names in sorted(found.items()):
        told = f"not answered: {', '.join(sorted(names))}: {why}"
        yield Uncovered(header=header, line=lines(header) or 1, what=told)


def unread(errors: Iterable[SourceError]) -> Iterator[Uncovered]:
    """Tells headers that cannot be read: which entries they have is not known."""
    for one in errors:
        what = f"it cannot be read, nothing is known of its entries: {one.message}"
        yield Uncovered(header=PurePath(one.path).name, line=one.line, what=what)


def undecided(
    entries: Sequence[Touched],
    sides: Sequence[Resolution],
    inherited: Mapping[EntryPlace, Sequence[EntryPlace]] | None = None,
) -> set[EntryPlace]:
    """Finds live entries that decide none of the workloads that were asked.

    One that others inherit from shows in what these decide, and one for another type that takes all
    from an entry of its family in what this decides; a return that asks for a compute capability
    alone is a default, which is no workload's entry.
    """
    decided = {row.entry for side in sides for row in side.rows}
    decided |= {
        base for one, bases in (inherited or {}).items() if one in decided for base in bases
    }
    bases = {_base(one.after.inherits) for one in entries if one.after and one.after.inherits}
    returns = all(side.cub.has_returns for side in sides)
    return {
        one.place
        for one in entries
        if one.after is not None
        and one.after.kind != "primary"
        and one.after.specific
        and not _is_told_elsewhere(one.family, one.after, returns=returns)
        and one.place not in decided
        and one.family.name not in bases
    }


def _is_told_elsewhere(family: Family, entry: Entry, *, returns: bool) -> bool:
    """Whether it has its values from another of its family, or is a return that computes them."""
    if entry.inherits is None:
        return False
    return (entry.kind == "branch" and returns) or _base(entry.inherits) == family.name


def _base(inherits: str) -> str:
    """`sm90_tuning` of `detail::sm90_tuning<T, primitive_op::yes>`."""
    return inherits.partition("<")[0].rpartition("::")[2].strip()


def uncovered_entries(entries: Sequence[ReviewedEntry]) -> Iterator[Uncovered]:
    """Finds entries that decide nothing that was asked, and can be selected."""
    for one in entries:
        if not one.decides and one.unreachable is None:
            what = f"{one.place.name} {UNDECIDED}"
            yield Uncovered(header=one.place.header, line=one.place.line, what=what)
