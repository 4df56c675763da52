"""Finds what a change to headers affects: entries, and workloads that get other values."""

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
from policygen.proof.sites import bound_headers
from policygen.proof.unreachable import bases_of

Key = tuple[object, ...]
"""Identifies an entry independently of its position in the file."""


@dataclass(frozen=True, slots=True)
class Touched:
    """An entry that differs between the two sides, or exists on only one of them."""

    family: Family
    before: Entry | None
    after: Entry | None

    @property
    def in_family(self) -> bool:
        """Whether the entry belongs to a struct family, and is not a guarded return."""
        return all(entry.kind != "branch" for entry in self.family.entries)

    @property
    def place(self) -> EntryPlace:
        """Where the entry stands, or stood before."""
        entry = self.after or self.before
        assert entry is not None
        return EntryPlace.of(self.family, entry)


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Other facts about a tree, by the place of an entry."""

    evidence: Sequence[Evidence]
    findings: Sequence[Finding]
    unreachable: Sequence[Unreachable]
    bases: Mapping[EntryPlace, Sequence[EntryPlace]] = field(default_factory=dict)
    """What an entry inherits from, closest first."""


def touched(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> list[Touched]:
    """Lists the live entries that differ, in the order of the headers; removed ones last."""
    old, new = dict(_entries(before)), dict(_entries(after))
    removed = [
        Touched(family, entry, None) for key, (family, entry) in old.items() if key not in new
    ]
    changed = []
    for key, (family, entry) in new.items():
        if key not in old:
            changed.append(Touched(family, _moved_from(family, entry, removed), entry))
        elif _content(old[key][1]) != _content(entry):
            changed.append(Touched(family, old[key][1], entry))
    return [change for change in changed + removed if not _is_empty_return(change)]


def _moved_from(family: Family, entry: Entry, removed: list[Touched]) -> Entry | None:
    """Finds a removed entry with the same content, whose condition has changed."""
    entry_place = (family.header, family.namespace, family.name)
    for candidate in removed:
        candidate_place = (
            candidate.family.header,
            candidate.family.namespace,
            candidate.family.name,
        )
        if (
            candidate_place == entry_place
            and candidate.before
            and _content(candidate.before) == _content(entry)
        ):
            if not (entry.members or entry.inherits):
                continue  # without members or a base, its content does not identify it
            removed.remove(candidate)
            return candidate.before
    return None


def inherited(headers: Sequence[TuningHeader]) -> dict[EntryPlace, list[EntryPlace]]:
    """Lists what live entries of families inherit from, closest first."""
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
    context: ReviewContext,
    undecided: Collection[EntryPlace] = (),
) -> tuple[tuple[ReviewedEntry, ...], tuple[Differing, ...]]:
    """Assigns the differing workloads to the entries that cause them.

    Returns the reviewed entries, and the differences that no entry explains.
    """
    after = {change.place: change for change in entries if change.after is not None}
    before = {
        EntryPlace.of(change.family, change.before): change
        for change in entries
        if change.before is not None
    }
    reached: dict[int, list[Differing]] = {}
    unassigned = []
    for row in different:
        change = after.get(row.entry_after) if row.entry_after else None
        change = change or (before.get(row.entry_before) if row.entry_before else None)
        bases = context.bases.get(row.entry_after, ()) if row.entry_after else ()
        change = change or next((after[base] for base in bases if base in after), None)
        # A workload may take a broader entry's values even though this entry has its key.
        passed_over = (
            side[place] for place in row.passed for side in (after, before) if place in side
        )
        change = change or next(passed_over, None)
        if change is None:
            unassigned.append(row)
        else:
            reached.setdefault(id(change), []).append(row)
    reviews = tuple(
        _reviewed(
            change, reached.get(id(change), []), context, decides=change.place not in undecided
        )
        for change in entries
    )
    return reviews, tuple(unassigned)


def _reviewed(
    change: Touched, rows: Sequence[Differing], context: ReviewContext, *, decides: bool
) -> ReviewedEntry:
    place = change.place
    points = {row.point for row in rows}
    key = (place.header, place.family, place.args)
    entry = change.after or change.before
    assert entry is not None
    return ReviewedEntry(
        change="removed" if change.after is None else "changed" if change.before else "added",
        place=place,
        arch=change.family.arch,
        kind=entry.kind,
        before=change.before.values if change.before else None,
        after=change.after.values if change.after else None,
        asks=_asks(change),
        inherits=(
            change.before.inherits if change.before else None,
            change.after.inherits if change.after else None,
        ),
        variant=entry.variant,
        scores=entry.scores,
        decides=decides,
        reached=tuple(rows),
        evidence=tuple(item for item in context.evidence if item.point in points),
        findings=tuple(
            finding
            for finding in context.findings
            if (finding.header, finding.family, finding.args) == key
        ),
        unreachable=next(
            (
                item
                for item in context.unreachable
                if (item.header, item.family, item.args, item.line) == (*key, place.line)
            ),
            None,
        ),
    )


def _asks(change: Touched) -> tuple[str, str] | None:
    if change.before is None or change.after is None:
        return None
    before, after = (
        " ".join(
            [
                entry_name(change.family.name, entry.args),
                *([f"#if {entry.guard}"] if entry.guard else []),
            ]
        )
        for entry in (change.before, change.after)
    )
    return (before, after) if before != after else None


def _entries(headers: Sequence[TuningHeader]) -> Iterator[tuple[Key, tuple[Family, Entry]]]:
    seen: Counter[Key] = Counter()
    for header in headers:
        for family in (*header.families, *header.selectors):
            for entry in family.entries:
                if not entry.disabled:
                    place = (family.header, family.namespace, family.name)
                    key = (*place, entry.slots, entry.guard)
                    # A function may have several returns with the same conditions.
                    yield (*key, seen[key]), (family, entry)
                    seen[key] += 1


def _is_empty_return(change: Touched) -> bool:
    """Whether the entry is a function's final `return {};`, which is reached if nothing matches."""
    return not (change.in_family or change.place.args) and not any(
        value
        for entry in (change.before, change.after)
        if entry
        for value in _content(entry).values()
    )


def _content(entry: Entry) -> Mapping[str, object]:
    return {"values": entry.values, "inherits": entry.inherits}


# Compares what two trees select.


def compare_resolutions(before: Resolution, after: Resolution) -> Comparison:
    """Lists the workloads whose values differ, or that only one tree has.

    Benchmarks that one side could not resolve are reported as `unresolved` only.
    """
    sides = [_rows(side) for side in (before, after)]
    unresolved_names = {
        unresolved.benchmark for side in (before, after) for unresolved in side.unresolved
    }
    common = sides[0].keys() & sides[1].keys()
    comparable = [
        {
            spot: row
            for spot, row in side.items()
            if spot in common or spot[0][0] not in unresolved_names
        }
        for side in sides
    ]
    result = delta(comparable[0], comparable[1], _is_different, None)
    pairs = ((row.before, row.after) for row in result.changes)
    return Comparison(
        before=before.cub,
        after=after.cub,
        toolchain=after.toolchain,
        archs=after.archs,
        compared=result.compared,
        different=tuple(_differing(old, new) for old, new in pairs),
        remarks=tuple(dict.fromkeys((*before.remarks, *after.remarks))),
        unresolved=tuple(dict.fromkeys((*before.unresolved, *after.unresolved))),
    )


def _rows(resolution: Resolution) -> dict[Spot, ResolvedRow | None]:
    return {
        ((row.benchmark, tuple(sorted(row.workload.items()))), row.arch): row
        for row in resolution.rows
    }


def _is_different(old: ResolvedRow | None, new: ResolvedRow | None) -> bool:
    return old is None or new is None or bool(_changed(old, new))


def _changed(old: ResolvedRow, new: ResolvedRow) -> tuple[str, ...]:
    # A field that only one tree has, such as the lookahead's, is not compared.
    before, after = _all_values(old, new)
    return tuple(name for name in after if name in before and before[name] != after[name])


def _all_values(old: ResolvedRow, new: ResolvedRow) -> tuple[Values, Values]:
    return with_unnamed(old.values, old.fields, new.values, new.fields)


def _differing(old: ResolvedRow | None, new: ResolvedRow | None) -> Differing:
    row = new or old
    assert row is not None
    before, after = old and old.values, new and new.values
    if old and new:
        before, after = (dict(side) for side in _all_values(old, new))
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


# Finds changes that no bound workload covers, so that their effect is not known.


def uncovered_headers(
    names: Iterable[str], version: str, differs: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds changed headers without a binding; `differs` returns the first changed line."""
    for name in sorted({*names} - bound_headers(version)):
        if line := differs(name):
            yield Uncovered(header=name, line=line, what=UNBOUND)


def unanswered(
    before: Sequence[Resolution], after: Sequence[Resolution], lines: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers that one side could not resolve; `lines` returns where their code differs."""
    names_by_reason: dict[tuple[str, str], set[str]] = {}
    for side, when in ((before, "before"), (after, "after")):
        for unresolved in (unresolved for document in side for unresolved in document.unresolved):
            names_by_reason.setdefault(
                (unresolved.header, f"{when} the change {unresolved.reason}"), set()
            ).add(unresolved.benchmark)
    for (header, reason), names in sorted(names_by_reason.items()):
        message = f"not answered: {', '.join(sorted(names))}: {reason}"
        yield Uncovered(header=header, line=lines(header) or 1, what=message)


def unread(errors: Iterable[SourceError]) -> Iterator[Uncovered]:
    """Reports headers that cannot be parsed, so that their entries are not known."""
    for error in errors:
        message = f"it cannot be read, nothing is known of its entries: {error.message}"
        yield Uncovered(header=PurePath(error.path).name, line=error.line, what=message)


def undecided(
    entries: Sequence[Touched],
    sides: Sequence[Resolution],
    inherited: Mapping[EntryPlace, Sequence[EntryPlace]] | None = None,
) -> set[EntryPlace]:
    """Finds live entries that decide none of the bound workloads.

    An entry that others inherit from shows in what these decide; an entry that takes all its values
    from its own family shows in what the base decides. A return that tests only the compute
    capability is a default, not a workload's entry.
    """
    decided = {row.entry for side in sides for row in side.rows}
    decided |= {
        base for place, bases in (inherited or {}).items() if place in decided for base in bases
    }
    bases = {
        _base(change.after.inherits) for change in entries if change.after and change.after.inherits
    }
    returns = all(side.cub.has_returns for side in sides)
    return {
        change.place
        for change in entries
        if change.after is not None
        and change.after.kind != "primary"
        and change.after.specific
        and not _shows_elsewhere(change.family, change.after, returns=returns)
        and change.place not in decided
        and change.family.name not in bases
    }


def _shows_elsewhere(family: Family, entry: Entry, *, returns: bool) -> bool:
    """Whether its values come from its own family, or from a return that computes them."""
    if entry.inherits is None:
        return False
    return (entry.kind == "branch" and returns) or _base(entry.inherits) == family.name


def _base(inherits: str) -> str:
    """`sm90_tuning` of `detail::sm90_tuning<T, primitive_op::yes>`."""
    return inherits.partition("<")[0].rpartition("::")[2].strip()


def uncovered_entries(entries: Sequence[ReviewedEntry]) -> Iterator[Uncovered]:
    """Finds entries that decide no bound workload, although they could be selected."""
    for entry in entries:
        if not entry.decides and entry.unreachable is None:
            message = f"{entry.place.name} {UNDECIDED}"
            yield Uncovered(header=entry.place.header, line=entry.place.line, what=message)
