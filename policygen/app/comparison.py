"""Selects the workloads to compile on each side of a change, and the architectures."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.app.change import Base, read_before
from policygen.app.filters import Filter, parse_archs
from policygen.app.resolve import ask_values
from policygen.app.session import Session
from policygen.errors import InputError, Problems, plural
from policygen.model.arch import arch_number
from policygen.model.machine_code import Units
from policygen.model.plans import Plan
from policygen.model.selection import EntryPlace, Spot
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.model.workload import Point, point_name
from policygen.opening import read_bytes
from policygen.paths import cache_folder
from policygen.portable import nearby
from policygen.process import threads, workers_of
from policygen.proof.changes import Touched, touched
from policygen.proof.kernel_build import KernelTools, Tools
from policygen.proof.kernel_calls import (
    Checkout,
    DeviceCall,
    WorkloadFilters,
    WorkloadUnit,
    calls,
    sources,
)
from policygen.proof.kernel_comparison import compile_sides
from policygen.proof.kernel_units import KernelCompiler, left_alone, tuned, unread
from policygen.proof.lexemes import first_difference
from policygen.proof.reading import ReadTree, read_tree
from policygen.proof.sites import nothing_bound
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import Workload
from policygen.steps import Progress
from policygen.trees.files import changed_files

EARLIER = "earlier"
_UNIT_WORDS = {"calls": "calls of the algorithms", "benchmarks": "the benchmarks' own sources"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The workloads selected on the command line."""

    pattern: re.Pattern[str]
    axes: Mapping[str, frozenset[str]]
    everything: bool
    checkout: Checkout | None = None
    """If set, the checkout's benchmarks are compiled instead of calls of the same algorithms."""

    @property
    def units(self) -> Units:
        """What is compiled."""
        return "calls" if self.checkout is None else "benchmarks"

    @property
    def named(self) -> bool:
        """Whether the selection is independent of what differs."""
        return bool(self.everything or self.pattern.pattern)


@dataclass(frozen=True, slots=True)
class Compiles:
    """What to compile on each side, and for which architectures."""

    cub: Cub
    base: Base | None
    before: Mapping[Point, WorkloadUnit]
    after: Mapping[Point, WorkloadUnit]
    units: Units
    archs: tuple[str, ...]
    spots: tuple[Spot, ...]
    """What to compile, in this order."""
    remarks: tuple[str, ...]
    headers: frozenset[str] | None = None
    """The tuning headers that differ; None if any benchmark may be affected."""
    changed: int = 0
    """The number of spots that get different values."""
    untouched: int = 0
    """The number of (workload, architecture) pairs that the change cannot touch."""
    meant: frozenset[Spot] = frozenset()
    """Workloads that different values were written for."""


def choose_compiles(
    cub: Cub, base: Base | None, chosen: Chosen, archs: Sequence[str], tools: KernelTools
) -> Compiles:
    """Selects the workloads to compile and the architectures."""
    headers, remarks = _changed_headers(cub, base)
    selection = WorkloadFilters(chosen.pattern, chosen.axes, None if chosen.named else headers)
    before: Mapping[Point, WorkloadUnit] = {}
    if base and base.cub:
        before, _ = _select_units(base.cub, base.includes, selection, chosen)
    after, reasons = _select_units(cub, cub.include_folders, selection, chosen)
    not_compilable = [f"{name} {why}: it is not compiled" for name, why in reasons.items()]
    if not (before or after) and (chosen.named or (chosen.axes and headers)):
        selected_headers = frozenset() if chosen.named else headers or frozenset()
        if not_compilable:
            message = "none of the chosen workloads can be compiled"
            raise InputError(message, "\n  ".join(not_compilable))
        raise nothing_bound(cub.bindings, chosen.pattern, chosen.axes, selected_headers)
    remarks += not_compilable
    if not archs or EARLIER in archs:
        remarks += tools.remarks
    if base and base.index:
        if base.index.units != chosen.units:
            raise InputError(
                f"{base.label}: the dumps are of {_UNIT_WORDS[base.index.units]}",
                "Compare them with --benchmarks."
                if chosen.checkout is None
                else "Compare them without --benchmarks.",
            )
        points = {point for point, _ in base.dumps}
        after = {point: unit for point, unit in after.items() if point in points}
    selected_archs = _archs(cub, base, archs, tools, headers)
    if base and base.index and not any((p, a) in base.dumps for p in after for a in selected_archs):
        raise InputError(f"{base.label}: the dumps contain none of the chosen workloads")
    all_points = dict.fromkeys([*after, *before])
    spots = tuple((point, arch) for arch in selected_archs for point in all_points)
    return Compiles(
        cub, base, before, after, chosen.units, selected_archs, spots, tuple(remarks), headers
    )


def narrowed(compiles: Compiles, progress: Progress | None) -> Compiles:
    """Drops workloads that the change cannot touch and puts those with changed values first.

    Keeps everything if it is unknown what the change touches.
    """
    base = compiles.base
    if base is None or base.cub is None or compiles.headers is None or compiles.units != "calls":
        return compiles
    touch = find_touch(compiles.cub, base, compiles.headers, compiles.archs, progress)
    planned = meant(base.plan)
    if touch is None:
        return replace(compiles, meant=planned)
    first = [spot for spot in compiles.spots if spot in touch.changed]
    remaining = (s for s in compiles.spots if touch.reaches(s) and s not in touch.changed)
    spots = (*first, *remaining)
    skipped = len(compiles.spots) - len(spots)
    remarks = compiles.remarks
    if skipped:
        share = f"{skipped:,} of {len(compiles.spots):,} workloads, times architectures,"
        remarks += (
            f"{share} are not compiled, because no change touches them (--all compiles them):"
            f" {touch.known}",
        )
    return replace(
        compiles, spots=spots, remarks=remarks, changed=len(first), untouched=skipped, meant=planned
    )


def part_of(compiles: Compiles, shard: tuple[int, int] | None) -> Compiles:
    """Returns one of several equal shards, as used in a workflow matrix."""
    if shard is None:
        return compiles
    number, count = shard
    spots = compiles.spots[number - 1 :: count]
    share = f"part {number} of {count}: {len(spots):,} of {len(compiles.spots):,} workloads, times"
    remarks = (*compiles.remarks, f"{share} architectures")
    changed = len(compiles.spots[: compiles.changed][number - 1 :: count])
    return replace(compiles, spots=spots, remarks=remarks, changed=changed)


def _select_units(
    cub: Cub, includes: tuple[str, ...], selection: WorkloadFilters, chosen: Chosen
) -> tuple[Mapping[Point, WorkloadUnit], Mapping[str, str]]:
    if chosen.checkout is None:
        return calls(cub, includes, selection)
    return sources(cub, includes, selection, chosen.checkout)


def _changed_headers(cub: Cub, base: Base | None) -> tuple[frozenset[str] | None, list[str]]:
    """Returns the tuning headers that differ.

    None if other files differ, which any benchmark may read.
    """
    if base is None or base.cub is None:
        return None, []
    if base.replaced:
        paths = {path.name: path for path in trees.tuning_headers(cub)}
        names = [n for n, data in base.replaced.items() if read_bytes(paths[n]) != data]
        return frozenset(names), []
    tunings = {path.parent for path in trees.tuning_headers(cub)}
    changed = changed_files(base.cub, cub)
    outside = [path for path in changed if path.parent not in tunings]
    if not outside:
        return frozenset(path.name for path in changed), []
    files = plural(len(outside), "file differs", "files differ")
    return None, [
        f"{files} that are not tuning headers ({nearby(outside[0])}): any benchmark may be affected"
    ]


def _archs(
    cub: Cub,
    base: Base | None,
    requested: Sequence[str],
    tools: KernelTools,
    headers: frozenset[str] | None,
) -> tuple[str, ...]:
    """Returns the named architectures, or by default those that the change should not affect."""
    selected = parse_archs([arch for arch in requested if arch != EARLIER])
    if unsupported := sorted(selected - set(tools.archs), key=arch_number):
        reasons = [
            f"{arch}: {tools.refusals[arch]}" for arch in unsupported if arch in tools.refusals
        ]
        raise InputError(
            f"this {tools.compiler} does not support {', '.join(unsupported)}",
            "\n  ".join([f"It supports {', '.join(tools.archs)}.", *reasons]),
        )
    if not requested and base and base.index:
        selected |= {arch for _, arch in base.dumps}
    elif not requested or EARLIER in requested:
        selected |= frozenset(_untouched_archs(cub, base, tools.archs, headers))
    return tuple(sorted(selected, key=arch_number))


def _untouched_archs(
    cub: Cub, base: Base | None, compilable: tuple[str, ...], headers: frozenset[str] | None
) -> tuple[str, ...]:
    """Returns the architectures that the change should leave unchanged."""
    if base is None or base.cub is None or headers is None:
        return compilable
    after = _scan(cub, headers)
    if base.plan is not None:
        return left_alone(base.plan, after, compilable)
    return unread(tuned(_scan(base.cub, headers), after), after, compilable)


def _scan(cub: Cub, names: frozenset[str]) -> list[TuningHeader]:
    tree = read_tree(cub, sorted(names)) if names else None
    if tree and tree.errors:
        raise Problems(tree.errors)
    return list(tree.headers) if tree else []


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Touch:
    """What a change of entries affects."""

    changed: frozenset[Spot]
    """Workloads that get different values."""
    untouched: frozenset[Spot]
    """Workloads that get the same values from entries that did not change. Nothing is known about
    workloads that the compiler did not resolve.
    """
    archs: frozenset[str]
    """The architectures that were resolved. On other architectures, no policy reads what changed.
    """
    known: str
    """The explanation why nothing else is affected."""

    def reaches(self, spot: Spot) -> bool:
        """Returns whether a workload must be compiled."""
        return spot[1] in self.archs and spot not in self.untouched


# Which workloads a change can touch.


def meant(plan: Plan | None) -> frozenset[Spot]:
    """Returns the workloads for which a plan wrote different values; their code should differ."""
    if plan is None:
        return frozenset()
    written = {(action.point, plan.options.arch) for action in plan.written}
    return frozenset(
        written | {(reached.point, reached.arch) for reached in plan.reached if not reached.kept}
    )


def find_touch(
    cub: Cub, base: Base, names: Iterable[str], archs: Sequence[str], progress: Progress | None
) -> Touch | None:
    """Finds what a change of these headers can touch; None if it can touch everything.

    It can touch everything if the headers differ outside of entries, or if the compiler cannot
    resolve a side.
    """
    header_names = sorted(names)
    if not header_names:
        return None
    before, after = read_before(base, header_names), read_tree(cub, header_names)
    if errors := (*before.errors, *after.errors):
        raise Problems(errors)
    entries = touched(before.headers, after.headers)
    if not entries or any(_differs_elsewhere(before, after, n, entries) for n in header_names):
        return None
    families = _affected_families(before, after, entries)
    sides = [*before.headers, *after.headers]
    # Only the compiler can tell which return statements a function reaches and which configs apply
    # to an architecture. One compile resolves all workloads.
    in_text = any(h.chains for h in sides) and not any(h.selectors for h in sides)
    unaffected = unread(families, sides, archs) if in_text else ()
    queried_archs = [arch for arch in archs if arch not in unaffected]
    names = frozenset(family.name for family in families)
    resolved = _resolve_sides(before, after, entries, names, queried_archs, progress)
    if resolved is None:
        return None
    scope = _explain_scope(entries, unaffected, queried_archs)
    return Touch(*resolved, frozenset(queried_archs), scope)


def _affected_families(
    before: ReadTree, after: ReadTree, entries: Sequence[Touched]
) -> tuple[Family, ...]:
    """Returns the families of touched entries, and those with entries that inherit from them."""
    families = [*_families(before), *_families(after)]
    names = frozenset(entry.family.name for entry in entries)
    while (
        inheriting := {f.name for f in families if any(_inherits(e, names) for e in f.entries)}
        - names
    ):
        names |= inheriting
    return tuple(family for family in families if family.name in names)


def _inherits(entry: Entry, names: frozenset[str]) -> bool:
    """Returns whether an entry inherits from a family.

    Compares whole words: `sm90_tuning` does not match `sm90_tuning_vals`.
    """
    return not names.isdisjoint(_WORD.findall(entry.inherits or ""))


def _resolve_sides(
    before: ReadTree,
    after: ReadTree,
    entries: Sequence[Touched],
    names: frozenset[str],
    archs: Sequence[str],
    progress: Progress | None,
) -> tuple[frozenset[Spot], frozenset[Spot]] | None:
    """Returns the workloads with changed values, and those that the change does not touch."""
    if not archs:
        return frozenset(), frozenset()
    where = Filter(archs=tuple(archs))
    rows_by_side = []
    for side in (before, after):
        resolution, errors = ask_values(side, where, progress=progress)
        if errors or resolution.unresolved:
            return None
        rows_by_side.append({(row.point, row.arch): row for row in resolution.rows})
    old, new = rows_by_side
    spots = frozenset(old.keys() | new.keys())
    same = {spot for spot in old.keys() & new.keys() if old[spot].values == new[spot].values}
    places = (
        {EntryPlace.of(c.family, c.before) for c in entries if c.before} | _heirs(before, names),
        {EntryPlace.of(c.family, c.after) for c in entries if c.after} | _heirs(after, names),
    )
    decided = {
        spot
        for spot in same
        for rows, touched_places in zip((old, new), places, strict=True)
        if rows[spot].entry in touched_places
    }
    return spots - same, frozenset(same - decided)


def _heirs(side: ReadTree, names: frozenset[str]) -> set[EntryPlace]:
    """Returns the entries that inherit from an affected family."""
    return {
        EntryPlace.of(family, entry)
        for family in _families(side)
        for entry in family.entries
        if _inherits(entry, names)
    }


def _families(side: ReadTree) -> list[Family]:
    return [family for header in side.headers for family in header.tunings]


def _differs_elsewhere(
    before: ReadTree, after: ReadTree, name: str, entries: Sequence[Touched]
) -> bool:
    """Returns whether a header differs outside of the touched entries."""
    own = [change for change in entries if change.family.header == name]
    old = _without_entries(before.paths[name], [change.before for change in own])
    new = _without_entries(after.paths[name], [change.after for change in own])
    return first_difference(name, old, new) is not None


def _without_entries(path: Path, entries: Iterable[Entry | None]) -> bytes:
    data = read_bytes(path)
    for start, end in sorted((entry.span for entry in entries if entry), reverse=True):
        data = data[:start] + data[end:]
    return data


def _explain_scope(
    entries: Sequence[Touched], unaffected: Sequence[str], queried: Sequence[str]
) -> str:
    words = [
        f"apart from {plural(len(entries), 'entry', 'entries')}, the headers have the same code on"
        " both sides"
    ]
    if unaffected:
        names = ", ".join(sorted(unaffected, key=arch_number))
        words.append(f"no policy of {names} reads their family")
    if queried:
        names = ", ".join(sorted(queried, key=arch_number))
        words.append(f"on {names} the compiler reports which entry decides, and its values")
    return "; ".join(words)


MANY = 40
"""Above this number of workloads, a note says how to filter them: each takes seconds of a core."""


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """What a change does to the machine code of workloads, on one architecture."""

    different: Mapping[Point, tuple[Workload, Workload]]
    """By workload: before and after."""
    same: tuple[Point, ...]
    refused: Mapping[Point, str]
    """Workloads that do not compile on a side, or that exist on one side only."""
    remarks: tuple[str, ...]
    entries: Mapping[Point, EntryPlace | None] | None = None
    """The entries that decide the workloads after the change; None if unknown."""
    said: Mapping[EntryPlace, float] = field(default_factory=dict)
    """Scores in comments of new or changed entries."""


# Which workloads have different machine code after a change.


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
    """Compiles what a change can touch, before and after it.

    With `everything`, compiles all workloads of the changed headers.
    """
    chosen = Chosen(re.compile(""), where.values, everything=False)
    tools = Tools.of(toolchain)
    compiles = choose_compiles(session.cub, base, chosen, (arch,), tools)
    if not everything:
        compiles = narrowed(compiles, session.progress)
    spots = [spot for spot in compiles.spots if where.pattern.match(spot[0][0])]
    if len(spots) > MANY:
        amount = plural(len(spots), "workload is", "workloads are")
        session.note(f"{amount} compiled before and after; choose among them with -R and -a")
    with threads(workers_of(jobs)) as executor:
        compiler = KernelCompiler(tools, cache_folder(), executor, session.progress)
        sides = compile_sides(compiles.before, compiles.after, spots, compiler)
    different, unchanged, refused = {}, [], {}
    for spot in spots:
        point = spot[0]
        if refusal := sides.refusal(spot):
            refused[point] = refusal.in_line
        elif sides.same_code(spot):
            unchanged.append(point)
        elif workloads := _workload_pair(compiles, point):
            different[point] = workloads
        else:
            refused[point] = f"only one side has {point_name(point)}"
    code = ChangedCode(different, tuple(unchanged), refused, compiles.remarks)
    if not different or not compiles.headers:
        return code  # other files may decide anything
    names = sorted(compiles.headers)
    after = read_tree(session.cub, names)
    resolution, errors = ask_values(after, Filter(archs=(arch,)), progress=session.progress)
    if errors or resolution.unresolved:
        return code
    rows = {row.point: row.entry for row in resolution.rows}
    changed = touched(read_before(base, names).headers, after.headers)
    scores = {
        change.place: change.after.scores[0]
        for change in changed
        if change.after and change.after.scores
    }
    return replace(code, entries=rows, said=scores)


def _workload_pair(compiles: Compiles, point: Point) -> tuple[Workload, Workload] | None:
    sides = compiles.before.get(point), compiles.after.get(point)
    calls = [unit for unit in sides if isinstance(unit, DeviceCall)]
    return (calls[0].workload, calls[1].workload) if len(calls) == 2 else None
