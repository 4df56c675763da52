"""Finds what a change to headers affects: entries, and workloads that change."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from operator import attrgetter

from policygen.bindings.words import ladder
from policygen.headers.selectors.arch_blocks import capability_of
from policygen.model.arch import arch_number
from policygen.model.audits import Finding, Unreachable
from policygen.model.reviews import Evidence, Leak, ReviewedEntry
from policygen.model.selection import Differing, EntryPlace
from policygen.model.tuning import Entry, Family, TuningHeader, entry_name, upper_bounds
from policygen.model.workload import Point
from policygen.proof.lint_subject import bases_of

Key = tuple[object, ...]
"""Identifies an entry independently of its position in the file."""
_KEY = attrgetter("header", "family", "args")
"""What findings and places have of it."""


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
    tuned: str | None = None
    """The architecture of the plan that was applied."""
    headers: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The headers that decide a benchmark's workloads."""


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
    functions = {key[:3] for key in old} & {key[:3] for key in new}
    return [change for change in changed + removed if not _is_empty_return(change, functions)]


def _moved_from(family: Family, entry: Entry, removed: list[Touched]) -> Entry | None:
    """Finds a removed entry with the same content, whose condition has changed."""
    if not (entry.members or entry.inherits):
        return None  # without members or a base, its content does not identify it
    for candidate in removed:
        before = candidate.before
        if candidate.family.path == family.path and before and _content(before) == _content(entry):
            removed.remove(candidate)
            return before
    return None


def inherited(headers: Sequence[TuningHeader]) -> dict[EntryPlace, list[EntryPlace]]:
    """Lists what live entries of families inherit from, closest first."""
    return {
        EntryPlace.of(family, entry): list(starmap(EntryPlace.of, bases_of(header, family, entry)))
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
        bases = context.bases.get(row.entry_after, ()) if row.entry_after else ()
        candidates = (
            (after, row.entry_after),
            (before, row.entry_before),
            *((after, base) for base in bases),
            # A workload may take a broader entry's values even though this entry has its key.
            *((side, place) for place in row.passed for side in (after, before)),
        )
        change = next((side[place] for side, place in candidates if place in side), None)
        if change is None:
            unassigned.append(row)
        else:
            reached.setdefault(id(change), []).append(row)
    reviews = []
    for change in entries:
        rows, decides = reached.get(id(change), []), change.place not in undecided
        reviews.append(_reviewed(change, rows, context, decides=decides))
    return tuple(_with_computed_leaks(reviews, unassigned, context)), tuple(unassigned)


def _reviewed(
    change: Touched, rows: Sequence[Differing], context: ReviewContext, *, decides: bool
) -> ReviewedEntry:
    place = change.place
    points = {row.point for row in rows}
    key = _KEY(place)
    own = (row for row in context.unreachable if _KEY(row) == key)
    unreachable = (row for row in own if row.line == place.line)
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
        leaks=tuple(_leaks(change, rows, context)),
        evidence=tuple(item for item in context.evidence if item.point in points),
        findings=tuple(row for row in context.findings if _KEY(row) == key),
        unreachable=next(unreachable, None),
    )


def _leaks(change: Touched, rows: Sequence[Differing], context: ReviewContext) -> Iterator[Leak]:
    """Finds known architectures besides its own where an entry changes workloads.

    A return that names no architecture is for all of them.
    """
    is_planned = any(row.arch == context.tuned for row in rows)
    own_arch = context.tuned if is_planned and context.tuned else change.family.arch
    if not is_planned and not change.in_family and own_arch == ladder()[0]:
        return
    decided = [
        row
        for row in rows
        if row.entry_after
        and change.place in (row.entry_after, *context.bases.get(row.entry_after, ()))
    ]
    for arch in ladder():
        points = {row.point for row in decided if row.arch == arch}
        if points and arch != own_arch:
            yield Leak(arch=arch, workloads=len(points), bound=_bound(change, own_arch, arch))


# "cc >= ::cuda::compute_capability{10, 7}"
_SINCE = re.compile(r"cc\s*>=?\s*((?:::)?(?:\w+::)*compute_capability)\{")


def _bound(change: Touched, own_arch: str, arch: str) -> str:
    """Returns what keeps a later architecture from an entry, spelled as the header does."""
    if arch_number(arch) < arch_number(own_arch):
        return f"an entry for {own_arch} alone"
    if change.in_family:
        later_family = f"{arch}{change.family.name.removeprefix(change.family.arch)}"
        return f"an entry of {later_family} with the values before"
    return _upper_bound((fact for entry in change.family.entries for fact in entry.args), arch)


def _upper_bound(facts: Iterable[str], arch: str) -> str:
    spelling = next((match[1] for fact in facts if (match := _SINCE.match(fact))), None)
    return f"cc < {capability_of(spelling or '::cuda::compute_capability', arch)}"


def _with_computed_leaks(
    entries: Sequence[ReviewedEntry], unassigned: Sequence[Differing], context: ReviewContext
) -> Iterator[ReviewedEntry]:
    """Adds the leaks of returns that compute their values, in which no entry shows.

    Of several such returns for one architecture, the first one in the header gets the leaks.
    """
    points: dict[int, dict[str, set[Point]]] = {}
    siblings: dict[int, int] = {}
    for row in unassigned:
        headers = context.headers.get(row.benchmark, ())
        own = (entry for entry in entries if entry.place.header in headers)
        candidates = [entry for entry in own if _may_compute(entry, row.arch)]
        own_arch = max((entry.arch for entry in candidates), key=arch_number, default=row.arch)
        if row.arch in (own_arch, context.tuned) or row.arch not in ladder():
            continue
        group = [entry for entry in candidates if entry.arch == own_arch]
        points.setdefault(id(group[0]), {}).setdefault(row.arch, set()).add(row.point)
        siblings[id(group[0])] = len(group)
    for entry in entries:
        leaks = []
        for arch in sorted(points.get(id(entry), ()), key=arch_number):
            bound, count = _upper_bound(entry.place.args, arch), len(points[id(entry)][arch])
            leaks.append(Leak(arch=arch, workloads=count, bound=bound, among=siblings[id(entry)]))
        yield entry.model_copy(update={"leaks": tuple(leaks)}) if leaks else entry


def _may_compute(entry: ReviewedEntry, arch: str) -> bool:
    """Whether a return of an architecture may compute values for the same or a later one."""
    return (
        entry.kind == "branch"
        and entry.inherits[1] is not None
        and not entry.reached
        and entry.arch != ladder()[0]
        and arch_number(entry.arch) <= arch_number(arch)
        and all(arch_number(arch) < bound for bound in upper_bounds(entry.place.args))
    )


def _asks(change: Touched) -> tuple[str, str] | None:
    if change.before is None or change.after is None:
        return None
    keys = []
    for entry in (change.before, change.after):
        guard = f" #if {entry.guard}" if entry.guard else ""
        keys.append(f"{entry_name(change.family.name, entry.args)}{guard}")
    before, after = keys
    return (before, after) if before != after else None


def _entries(headers: Sequence[TuningHeader]) -> Iterator[tuple[Key, tuple[Family, Entry]]]:
    seen: Counter[Key] = Counter()
    for header in headers:
        for family in header.tunings:
            for entry in family.entries:
                if not entry.disabled:
                    key = (*family.path, entry.slots, entry.guard)
                    # A function may have several returns with the same conditions.
                    yield (*key, seen[key]), (family, entry)
                    seen[key] += 1


def _is_empty_return(change: Touched, functions: Collection[Key]) -> bool:
    """Whether the entry leaves a function without values, so that what decided before decides.

    That is a final `return {};`, and each other one of a function that only one side has.
    """
    if change.in_family or (change.place.args and change.family.path in functions):
        return False
    entries = filter(None, (change.before, change.after))
    return not any(entry.values or entry.inherits for entry in entries)


def _content(entry: Entry) -> Mapping[str, object]:
    return {"values": entry.values, "inherits": entry.inherits}


def named_variants(entries: Sequence[Touched], different: Sequence[Differing]) -> dict[Point, str]:
    """Returns the variant of each workload according to its entry's comment."""
    variants = {
        change.place: change.after.variant for change in entries if change.after is not None
    }
    labels = ((row.point, variants.get(row.entry_after)) for row in different if row.entry_after)
    return {point: label for point, label in labels if label}
