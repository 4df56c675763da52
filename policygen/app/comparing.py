"""Which workloads are compiled on each side of a change, and for which architectures."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen import tree
from policygen.app.base import Base
from policygen.app.filters import parse_archs
from policygen.app.kernel_tools import CodeMaker
from policygen.app.reading import read_tree
from policygen.app.touching import find_touch, meant
from policygen.errors import InputError, Problems
from policygen.model.arch import arch_number
from policygen.model.cub import Cub
from policygen.model.sass import Units
from policygen.model.selection import Spot
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.paths import nearby
from policygen.proof.sass.archs import left_alone, tuned, unread
from policygen.proof.sass.benchmarks import Checkout, absent, sources
from policygen.proof.sass.calls import Wanted, WorkloadUnit, calls, without_call
from policygen.proof.sites import nothing_bound
from policygen.report.console import plural
from policygen.source.files import read_bytes
from policygen.steps import Progress
from policygen.tree.changes import changed_files

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
        paths = {path.name: path for path in tree.tuning_headers(cub)}
        names = [n for n, data in base.replaced.items() if read_bytes(paths[n]) != data]
        return frozenset(names), []
    tunings = {path.parent for path in tree.tuning_headers(cub)}
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
