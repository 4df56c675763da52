"""Workloads that do not get what was written for them, and those that lose what they had."""

import re
from collections.abc import Sequence
from math import log

from policygen.bindings.recorded import version_of
from policygen.headers.protocol import EntryWrite
from policygen.model.arch import arch_number, is_amd
from policygen.model.edits import changes as told_changes
from policygen.model.plans import Reached
from policygen.model.selection import Delta, DeltaRow, Values
from policygen.model.workload import Point
from policygen.planning.decide import Decided
from policygen.planning.judge import WhyNot, differs
from policygen.planning.places import PlacedResult, by_entry


def not_as_written(
    cases: Sequence[PlacedResult],
    outcome: Decided,
    compared: Delta[Values],
    arch: str,
    why_not: WhyNot,
) -> dict[Point, str]:
    """Workloads that do not get what was written for them, and why."""
    changes = {c.point: c for c in compared.changes if c.arch == arch}
    of_point = {case.measurement.point: case for case in cases}
    lost: dict[Point, str] = {}
    for action in outcome.actions:
        if not action.written:
            continue
        change = changes.get(action.point)
        after = change.after if change else action.before or {}
        if found := differs(after, action.after or {}):
            why = why_not(action.point, arch)
            lost[action.point] = f"{of_point[action.point].spot.lost(found)}: {why}"
    return lost


def harmed(
    cases: Sequence[PlacedResult], outcome: Decided, compared: Delta[Values], arch: str
) -> dict[Point, str]:
    """Workloads whose entry would take others that are to stay as they are.

    What a benchmark of another algorithm says of its call is no reason for it to stay.
    """
    written = {action.point for action in outcome.actions if action.written}
    chosen = [case for case in cases if case.measurement.point in written]
    stays = {c.measurement.point: c for c in cases if c.measurement.point not in written}
    found: dict[Point, str] = {}
    for change in compared.changes:
        if change.arch != arch or change.point not in stays:
            continue
        case, itself = stays[change.point], {change.point}
        if _another_algorithm(case, change.after, chosen):
            continue
        header = [write for write in outcome.writes if write.header == case.spot.header]
        takers = [write for write in header if write.spots[0].takes(case.spot)] or header
        others = points_of(takers) - itself or points_of(header) - itself or itself
        pairs = ", ".join(told_changes(change.before, change.after))
        found |= dict.fromkeys(others, f"would change {change.name}, which stays: {pairs}")
    return found


def strayed(outcome: Decided, compared: Delta[Values], arch: str) -> dict[Point, str]:
    """Workloads whose entry would change devices that have nothing to do with its target."""
    found: dict[Point, str] = {}
    for change in changed_elsewhere(compared, arch):
        writes = [write for write in outcome.writes if change.point in write.points]
        pairs = ", ".join(told_changes(change.before, change.after))
        reason = f"would change {change.name} on {change.arch}: {pairs}"
        found |= dict.fromkeys(points_of(writes or outcome.writes), reason)
    return found


def _another_algorithm(case: PlacedResult, after: Values, chosen: Sequence[PlacedResult]) -> bool:
    """Whether its call gets what another benchmark chose, of which its own says nothing."""
    other = contradicts(case.measurement.benchmark.always, after)
    return other and any(other_algorithm(case, one) for one in chosen)


def points_of(writes: Sequence[EntryWrite]) -> set[Point]:
    """The measured workloads that entries are written for."""
    return {point for write in writes for point in write.points}


_AXIS = re.compile(r"\baxis::(\w+)")
Cases = Sequence[PlacedResult]
Call = tuple[object, ...]


# Results of benchmarks that run different algorithms for the same call: one of them counts.
#
# `encode` and `encode.lookahead` of run-length encoding have the same base, which is what CUB
# selects
# for the call today. So their scores compare, and what is better for all calls of an entry
# counts.


def outranked(cases: Cases) -> dict[Point, str]:
    """Workloads that do not count, because another algorithm is better for the calls; and why."""
    found: dict[Point, str] = {}
    groups = by_entry(cases)
    while groups:
        one = _connected(groups.pop(0), groups)
        groups = [group for group in groups if group not in one]
        found |= _settled([case for group in one for case in group])
    return found


def other_algorithm(one: PlacedResult, two: PlacedResult) -> bool:
    """Whether the benchmarks of both always run something else: neither tells of the other."""
    return contradicts(one.measurement.benchmark.always, two.measurement.benchmark.always)


def contradicts(fixed: Values, values: Values) -> bool:
    """Whether some values are not what a benchmark fixes."""
    return any(values.get(name, value) != value for name, value in fixed.items())


def _connected(start: Cases, others: Sequence[Cases]) -> list[Cases]:
    """An entry's workloads, and those of all entries that other algorithms have for their calls."""
    found, left = [start], list(others)
    for group in found:
        near = [other for other in left if _compete(group, other)]
        left = [other for other in left if other not in near]
        found += near
    return found


def _compete(group: Cases, other: Cases) -> bool:
    if not other_algorithm(group[0], other[0]):
        return False
    calls = {_call(case) for case in group}
    return any(_call(case) in calls for case in other)


def _settled(cases: Cases) -> dict[Point, str]:
    """Of workloads whose calls one algorithm gets: those of the others, and why."""
    sides: list[list[PlacedResult]] = []
    for case in cases:
        side = next((one for one in sides if not other_algorithm(one[0], case)), None)
        if side is None:
            sides.append([case])
        else:
            side.append(case)
    wanted = [side for side in sides if any(case.used for case in side)]
    if len(sides) < 2 or not wanted:
        return {}
    if len(wanted) > 1 and len({_base(case) for side in wanted for case in side}) > 1:
        return {
            case.measurement.point: _other_base(wanted)
            for side in wanted
            for case in side
            if case.used
        }
    best = max(wanted, key=lambda side: (_gain(side, sides), _as_today(side)))
    return {
        case.measurement.point: _worse(case, best)
        for side in sides
        if side is not best
        for case in side
    }


def _gain(side: Cases, sides: Sequence[Cases]) -> float:
    """How much better it is than base, for the calls that all sides measured."""
    shared = set.intersection(*({_call(case) for case in one} for one in sides))
    gains = [log(_score(case)) for case in side if _call(case) in shared]
    return sum(gains) / len(gains)


def _as_today(side: Cases) -> bool:
    """Of equals that counts which the calls have today: nothing changes without a gain."""
    fixed, now = side[0].measurement.benchmark.always, side[0].spot.told.values
    return all(now.get(name) == value for name, value in fixed.items())


def _call(case: PlacedResult) -> Call:
    """What is called, and with which types."""
    one = case.measurement
    roles = {
        role: _AXIS.sub(lambda axis: one.workload.get(axis[1], axis[0]), text)
        for role, text in one.benchmark.roles.items()
    }
    return case.spot.header, one.benchmark.site, *sorted(roles.items())


def _base(case: PlacedResult) -> tuple[str, ...]:
    """What its score compares with."""
    one = case.measurement.scored
    return one.gpu, one.ctk, version_of(one.cccl)


def _other_base(sides: Sequence[Cases]) -> str:
    names = " and ".join(sorted(side[0].measurement.benchmark.name for side in sides))
    return (
        f"{names} were measured for the same calls on different GPUs or with different versions, "
        "so that their scores do not compare: give --db of one of them alone"
    )


def _score(case: PlacedResult) -> float:
    return (case.choice.score or 1.0) if case.used else 1.0


def _worse(case: PlacedResult, best: Cases) -> str:
    """Why a workload does not count beside what its call, or its entry's other calls, get."""
    same = [one for one in best if _call(one) == _call(case)]
    name = best[0].measurement.benchmark.name
    if not case.used:
        return f"{case.choice.reason}; its call gets what {name} found"
    if not same:
        return f"{name} is better for other calls of this entry"
    other = max(same, key=_score)
    scores = f"{_score(other):.4f} against {_score(case):.4f}"
    better = f"{name} is better for the calls of this entry"
    return f"{better}; for this one {other.choice.variant or 'base'} has {scores}"


# What a change reaches besides what was measured: this architecture, and later ones.


def changed_later(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on later architectures of which there are GPUs."""
    return [c for c in _behind(compared, arch) if c.arch not in compared.between]


def changed_between(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on later ones of which none is known: no policy can keep what they had."""
    return [c for c in _behind(compared, arch) if c.arch in compared.between]


def changed_elsewhere(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """What changes on others of AMD's, and not as devices do that share a target with this one."""
    if not is_amd(arch):
        return []
    shared = {id(change) for change in _behind(compared, arch)}
    return [c for c in compared.changes if c.arch != arch and id(c) not in shared]


def _behind(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    if not is_amd(arch):
        return [c for c in compared.changes if arch_number(c.arch) > arch_number(arch)]
    # None comes after another: a device without a target of its own has what another one has.
    mine = {c.point: (c.before, c.after) for c in compared.changes if c.arch == arch}
    others = (c for c in compared.changes if c.arch != arch)
    return [c for c in others if mine.get(c.point) == (c.before, c.after)]


def in_spite(change: DeltaRow[Values]) -> str:
    """That entries do not keep what they are for."""
    pairs = ", ".join(told_changes(change.before, change.after))
    return (
        f"{change.name} on {change.arch} would change in spite of the entries that are to"
        f" keep what later architectures have: {pairs}"
    )


def as_reached(change: DeltaRow[Values], *, kept: bool = False, between: bool = False) -> Reached:
    """A change that was not measured."""
    return Reached(
        benchmark=change.benchmark,
        workload=dict(change.workload),
        arch=change.arch,
        kept=kept,
        between=between,
    )
