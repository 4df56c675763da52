"""Which workloads are compiled on each side of a change, and for which architectures."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.app.change import Base, read_before
from policygen.app.compilers import CodeMaker, nvcc_maker
from policygen.app.filters import Filter, parse_archs
from policygen.app.reading import ReadTree, read_tree
from policygen.app.resolve import ask_values
from policygen.app.session import Session
from policygen.errors import InputError, Problems
from policygen.headers.text import read_bytes
from policygen.model.arch import arch_number
from policygen.model.machine_code import Units
from policygen.model.plans import Plan
from policygen.model.selection import EntryPlace, Resolution, ResolvedRow, Spot
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.model.workload import Point, in_words, point_of
from policygen.paths import cache_folder, nearby
from policygen.proof.changes import Touched, touched
from policygen.proof.kernel_calls import (
    Checkout,
    DeviceCall,
    Wanted,
    WorkloadUnit,
    absent,
    calls,
    sources,
    without_call,
)
from policygen.proof.kernel_comparison import compile_sides
from policygen.proof.kernel_units import KernelCompiler, left_alone, tuned, unread, workers
from policygen.proof.lexemes import first_difference
from policygen.proof.sites import nothing_bound
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import Workload
from policygen.report.console import plural
from policygen.steps import Progress
from policygen.trees.files import changed_files

EARLIER = "earlier"
_NAMED = {"calls": "calls of the algorithms", "benchmarks": "the benchmarks' own sources"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is asked for by name."""

    pattern: re.Pattern[str]
    axes: Mapping[str, frozenset[str]]
    everything: bool
    checkout: Checkout | None = None
    """Compiles its benchmarks, instead of calls of the same algorithms."""

    @property
    def units(self) -> Units:
        """What is compiled."""
        return "calls" if self.checkout is None else "benchmarks"

    @property
    def named(self) -> bool:
        """Whether it does not depend on what differs."""
        return bool(self.everything or self.pattern.pattern)


@dataclass(frozen=True, slots=True)
class Compiles:
    """What is compiled on each side, for which architectures."""

    cub: Cub
    base: Base | None
    before: Mapping[Point, WorkloadUnit]
    after: Mapping[Point, WorkloadUnit]
    units: Units
    archs: tuple[str, ...]
    spots: tuple[Spot, ...]
    """What is compiled, in this order."""
    remarks: tuple[str, ...]
    headers: frozenset[str] | None = None
    """The tuning headers that differ; none where any benchmark may be affected."""
    changed: int = 0
    """Of the spots those that get other values."""
    untouched: int = 0
    """Workloads, times architectures, that the change cannot touch."""
    meant: frozenset[Spot] = frozenset()
    """Workloads that other values were written for."""


def choose_compiles(
    cub: Cub, base: Base | None, chosen: Chosen, archs: Sequence[str], maker: CodeMaker
) -> Compiles:
    """Which workloads are compiled, and for which architectures."""
    headers, remarks = _changed_headers(cub, base)
    wanted = Wanted(chosen.pattern, chosen.axes, None if chosen.named else headers)
    before = _units(base.cub, base.includes, wanted, chosen) if base and base.cub else {}
    after = _units(cub, cub.include_folders, wanted, chosen)
    if not (before or after) and (chosen.named or (chosen.axes and headers)):
        asked = frozenset() if chosen.named else headers or frozenset()
        if lost := _left_out(cub, wanted, chosen):
            raise InputError("nothing that is asked for can be compiled", "\n  ".join(lost))
        raise nothing_bound(cub.bindings, chosen.pattern, chosen.axes, asked)
    remarks += _left_out(cub, wanted, chosen)
    if not archs or EARLIER in archs:
        remarks += maker.remarks
    if base and base.index:
        if base.index.units != chosen.units:
            raise InputError(
                f"{base.label}: they are of {_NAMED[base.index.units]}",
                "Compare them with --benchmarks."
                if chosen.checkout is None
                else "Compare them without --benchmarks.",
            )
        points = {point for point, _ in base.dumps}
        after = {point: unit for point, unit in after.items() if point in points}
    wanted_archs = _archs(cub, base, archs, maker, headers)
    if base and base.index and not any((p, a) in base.dumps for p in after for a in wanted_archs):
        raise InputError(f"{base.label}: the dumps hold nothing of what is asked")
    every = dict.fromkeys([*after, *before])
    spots = tuple((point, arch) for arch in wanted_archs for point in every)
    return Compiles(
        cub, base, before, after, chosen.units, wanted_archs, spots, tuple(remarks), headers
    )


def narrowed(compiles: Compiles, progress: Progress | None) -> Compiles:
    """What the change can touch, what it changes first; all where that is not known."""
    base = compiles.base
    if base is None or base.cub is None or compiles.headers is None or compiles.units != "calls":
        return compiles
    touch = find_touch(compiles.cub, base, compiles.headers, compiles.archs, progress)
    mine = meant(base.plan)
    if touch is None:
        return replace(compiles, meant=mine)
    first = [spot for spot in compiles.spots if spot in touch.changed]
    others = (s for s in compiles.spots if touch.reaches(s) and s not in touch.changed)
    spots = (*first, *others)
    left = len(compiles.spots) - len(spots)
    remarks = compiles.remarks
    if left:
        of = f"{left:,} of {len(compiles.spots):,} workloads, times architectures,"
        remarks += (f"{of} are not compiled, as no change touches them (--all): {touch.known}",)
    return replace(
        compiles, spots=spots, remarks=remarks, changed=len(first), untouched=left, meant=mine
    )


def part_of(compiles: Compiles, shard: tuple[int, int] | None) -> Compiles:
    """One part of several with the same work, as a matrix of a workflow has it."""
    if shard is None:
        return compiles
    number, count = shard
    spots = compiles.spots[number - 1 :: count]
    told = f"part {number} of {count}: {len(spots):,} of {len(compiles.spots):,} workloads, times"
    remarks = (*compiles.remarks, f"{told} architectures")
    changed = len(compiles.spots[: compiles.changed][number - 1 :: count])
    return replace(compiles, spots=spots, remarks=remarks, changed=changed)


def _units(
    cub: Cub, includes: tuple[str, ...], wanted: Wanted, chosen: Chosen
) -> Mapping[Point, WorkloadUnit]:
    if chosen.checkout is None:
        return calls(cub, includes, wanted)
    return sources(cub, includes, wanted, chosen.checkout)


def _left_out(cub: Cub, wanted: Wanted, chosen: Chosen) -> list[str]:
    """What is asked for and cannot be compiled."""
    if chosen.checkout is None:
        reasons = without_call(cub, wanted)
    else:
        why = f"is not in {chosen.checkout.folder}"
        reasons = dict.fromkeys(absent(cub, wanted, chosen.checkout), why)
    return [f"{name} {why}: it is not compiled" for name, why in reasons.items()]


def _changed_headers(cub: Cub, base: Base | None) -> tuple[frozenset[str] | None, list[str]]:
    """The tuning headers that differ; none where other files do, which any benchmark may read."""
    if base is None or base.cub is None:
        return None, []
    if base.replaced:
        paths = {path.name: path for path in trees.tuning_headers(cub)}
        names = [n for n, data in base.replaced.items() if read_bytes(paths[n]) != data]
        return frozenset(names), []
    tunings = {path.parent for path in trees.tuning_headers(cub)}
    found = changed_files(base.cub, cub)
    others = [path for path in found if path.parent not in tunings]
    if not others:
        return frozenset(path.name for path in found), []
    files = plural(len(others), "file differs", "files differ")
    return None, [
        f"{files} that are no tuning headers ({nearby(others[0])}): any benchmark may be affected"
    ]


def _archs(
    cub: Cub,
    base: Base | None,
    given: Sequence[str],
    maker: CodeMaker,
    headers: frozenset[str] | None,
) -> tuple[str, ...]:
    """Those that are named, with all that the change should not reach."""
    named = parse_archs([arch for arch in given if arch != EARLIER])
    if lost := sorted(named - set(maker.archs), key=arch_number):
        reasons = [f"{arch}: {maker.refusals[arch]}" for arch in lost if arch in maker.refusals]
        raise InputError(
            f"this {maker.compiler} does not compile for {', '.join(lost)}",
            "\n  ".join([f"It compiles for {', '.join(maker.archs)}.", *reasons]),
        )
    if not given and base and base.index:
        named |= {arch for _, arch in base.dumps}
    elif not given or EARLIER in given:
        named |= frozenset(_untouched(cub, base, maker.archs, headers))
    return tuple(sorted(named, key=arch_number))


def _untouched(
    cub: Cub, base: Base | None, compilable: tuple[str, ...], headers: frozenset[str] | None
) -> tuple[str, ...]:
    """The architectures that the change should leave as they are."""
    if base is None or base.cub is None or headers is None:
        return compilable
    after = _scanned(cub, headers)
    if base.plan is not None:
        return left_alone(base.plan, after, compilable)
    return unread(tuned(_scanned(base.cub, headers), after), after, compilable)


def _scanned(cub: Cub, names: frozenset[str]) -> list[TuningHeader]:
    found = read_tree(cub, sorted(names)) if names else None
    if found and found.errors:
        raise Problems(found.errors)
    return list(found.headers) if found else []


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


# Which workloads a change can touch: those that need a compile, and how the others are known.


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


MANY = 40
"""Workloads, above which it is said how to choose among them: each takes seconds of a core."""


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """What a change does to the machine code of workloads, on one architecture."""

    different: Mapping[Point, tuple[Workload, Workload]]
    """By workload: before and after."""
    same: tuple[Point, ...]
    refused: Mapping[Point, str]
    """Those that do not compile on a side, or that one side alone has."""
    remarks: tuple[str, ...]
    entries: Mapping[Point, EntryPlace | None] | None = None
    """What decides them after the change; none where it is not known."""
    said: Mapping[EntryPlace, float] = field(default_factory=dict)
    """The scores that comments of entries say which are new, or say something else."""


# Which workloads have other machine code after a change, and which have the same.


def find_changed_code(
    session: Session,
    base: Base,
    where: Filter,
    arch: str,
    toolchain: Toolchain,
    *,
    everything: bool = False,
    jobs: int | None = None,
) -> ChangedCode:
    """Compiles what a change can touch, before and after it; `everything`: all of its headers."""
    whole = Filter((), "", where.axes, ())
    chosen = Chosen(whole.pattern, whole.values, everything=False)
    maker = nvcc_maker(toolchain)
    compiles = choose_compiles(session.cub, base, chosen, (arch,), maker)
    if not everything:
        compiles = narrowed(compiles, session.progress)
    spots = [spot for spot in compiles.spots if where.pattern.match(spot[0][0])]
    if len(spots) > MANY:
        lot = plural(len(spots), "workload is", "workloads are")
        session.note(f"{lot} compiled before and after: -R and -a choose among them")
    with workers(jobs) as executor:
        folder: Path = cache_folder()
        compiler = KernelCompiler(maker.tools, folder, executor, session.progress)
        sides = compile_sides(compiles.before, compiles.after, spots, compiler)
    different, same, refused = {}, [], {}
    for spot in spots:
        point = spot[0]
        if why := sides.refusal(spot):
            refused[point] = why.in_line
        elif sides.same_code(spot):
            same.append(point)
        elif both := _both(compiles, point):
            different[point] = both
        else:
            refused[point] = f"one side alone has {in_words(point[0], dict(point[1]))}"
    code = ChangedCode(different, tuple(same), refused, compiles.remarks)
    if not different or not compiles.headers:
        return code  # other files may decide anything
    names = sorted(compiles.headers)
    after = read_tree(session.cub, names)
    told, errors = ask_values(after, Filter(archs=(arch,)), progress=session.progress)
    if errors or told.unresolved:
        return code
    rows = {point_of(row.benchmark, row.workload): row.entry for row in told.rows}
    changed = touched(read_before(base, names).headers, after.headers)
    said = {one.place: one.after.scores[0] for one in changed if one.after and one.after.scores}
    return replace(code, entries=rows, said=said)


def _both(compiles: Compiles, point: Point) -> tuple[Workload, Workload] | None:
    sides = compiles.before.get(point), compiles.after.get(point)
    calls = [one for one in sides if isinstance(one, DeviceCall)]
    return (calls[0].workload, calls[1].workload) if len(calls) == 2 else None
