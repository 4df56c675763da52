"""Finds workloads that miss their planned values, and unmeasured workloads that would change."""

import re
from collections.abc import Mapping, Sequence
from math import log

from policygen.bindings.recorded import version_of
from policygen.headers.protocol import points_of
from policygen.model.arch import arch_number, is_amd
from policygen.model.selection import Delta, DeltaRow, Values
from policygen.model.tuning import changes as told_changes
from policygen.model.workload import Point
from policygen.planning.judge import WhyNot, differs
from policygen.planning.places import Decided, PlacedResult, by_entry


def not_as_written(
    cases: Sequence[PlacedResult],
    outcome: Decided,
    after: Mapping[Point, Values],
    arch: str,
    why_not: WhyNot,
) -> dict[Point, str]:
    """Returns the workloads that do not get what was written for them, with the reasons."""
    case_by_point = {case.measurement.point: case for case in cases}
    reasons: dict[Point, str] = {}
    for action in outcome.actions:
        if not action.written:
            continue
        if mismatches := differs(after[action.point], action.after or {}):
            reason = why_not(action.point, arch)
            reasons[action.point] = f"{case_by_point[action.point].spot.lost(mismatches)}: {reason}"
    return reasons


def harmed(
    cases: Sequence[PlacedResult], outcome: Decided, compared: Delta[Values], arch: str
) -> dict[Point, str]:
    """Returns written workloads whose entry would also change workloads that must stay the same.

    A workload may change when another algorithm's benchmark chose what its call gets.
    """
    written = {action.point for action in outcome.actions if action.written}
    chosen = [case for case in cases if case.measurement.point in written]
    unwritten = {
        case.measurement.point: case for case in cases if case.measurement.point not in written
    }
    reasons: dict[Point, str] = {}
    for change in compared.changes:
        if change.arch != arch or change.point not in unwritten:
            continue
        case, own_point = unwritten[change.point], {change.point}
        contradicted = contradicts(case.measurement.benchmark.always, change.after)
        if contradicted and any(other_algorithm(case, chosen_case) for chosen_case in chosen):
            continue
        header_writes = [write for write in outcome.writes if write.header == case.spot.header]
        takers = [
            write for write in header_writes if write.spots[0].takes(case.spot)
        ] or header_writes
        affected = (
            points_of(takers) - own_point or points_of(header_writes) - own_point or own_point
        )
        pairs = ", ".join(told_changes(change.before, change.after))
        reason = f"would change {change.name}, which must not change: {pairs}"
        reasons |= dict.fromkeys(affected, reason)
    return reasons


def strayed(outcome: Decided, compared: Delta[Values], arch: str) -> dict[Point, str]:
    """Returns written workloads whose entry would change devices unrelated to the target."""
    reasons: dict[Point, str] = {}
    if not is_amd(arch):
        return reasons
    # Other devices may share a target with this one.
    shared = {id(change) for change in changed_later(compared, arch)}
    for change in compared.changes:
        if change.arch == arch or id(change) in shared:
            continue
        writes = [write for write in outcome.writes if change.point in write.points]
        pairs = ", ".join(told_changes(change.before, change.after))
        reason = f"would change {change.name} on {change.arch}: {pairs}"
        reasons |= dict.fromkeys(points_of(writes or outcome.writes), reason)
    return reasons


_AXIS = re.compile(r"\baxis::(\w+)")
Cases = Sequence[PlacedResult]
Call = tuple[object, ...]


# Benchmarks that run different algorithms for the same call: only one of them counts.
#
# `encode` and `encode.lookahead` of run-length encoding have the same base, which is what CUB
# selects for the call today. Their scores are therefore comparable, and the algorithm that is
# better over all calls of an entry wins.


def outranked(cases: Cases) -> dict[Point, str]:
    """Returns the workloads for which another algorithm is better, with the reasons."""
    reasons: dict[Point, str] = {}
    groups = by_entry(cases)
    while groups:
        component = _connected(groups.pop(0), groups)
        groups = [group for group in groups if group not in component]
        reasons |= _resolve_competition([case for group in component for case in group])
    return reasons


def other_algorithm(first: PlacedResult, second: PlacedResult) -> bool:
    """Whether two benchmarks always run different algorithms: neither measures the other's."""
    return contradicts(first.measurement.benchmark.always, second.measurement.benchmark.always)


def contradicts(always: Values, values: Values) -> bool:
    """Whether any of the values contradicts one that a benchmark fixes."""
    return any(values.get(name, value) != value for name, value in always.items())


def _connected(start: Cases, groups: Sequence[Cases]) -> list[Cases]:
    """Returns an entry's workloads, and those of all entries that compete for the same calls."""
    component, remaining = [start], list(groups)
    for group in component:
        neighbors = [candidate for candidate in remaining if _compete(group, candidate)]
        remaining = [candidate for candidate in remaining if candidate not in neighbors]
        component += neighbors
    return component


def _compete(group: Cases, other_group: Cases) -> bool:
    if not other_algorithm(group[0], other_group[0]):
        return False
    calls = {_call(case) for case in group}
    return any(_call(case) in calls for case in other_group)


def _resolve_competition(cases: Cases) -> dict[Point, str]:
    """Returns the workloads that lose to the best algorithm for their calls, with the reasons."""
    sides: list[list[PlacedResult]] = []
    for case in cases:
        side = next((members for members in sides if not other_algorithm(members[0], case)), None)
        if side is None:
            sides.append([case])
        else:
            side.append(case)
    contenders = [side for side in sides if any(case.used for case in side)]
    if len(sides) < 2 or not contenders:
        return {}
    if len(contenders) > 1 and len({_base(case) for side in contenders for case in side}) > 1:
        names = " and ".join(sorted(side[0].measurement.benchmark.name for side in contenders))
        incomparable = (
            f"{names} were measured for the same calls on different GPUs or with different"
            " versions, so their scores are not comparable: give --db only for one of them"
        )
        return {
            case.measurement.point: incomparable
            for side in contenders
            for case in side
            if case.used
        }
    best = max(contenders, key=lambda side: (_gain(side, sides), _is_current_algorithm(side)))
    return {
        case.measurement.point: _outranked_reason(case, best)
        for side in sides
        if side is not best
        for case in side
    }


def _gain(side: Cases, sides: Sequence[Cases]) -> float:
    """Returns the mean log speedup over base, for the calls that all sides measured."""
    shared = set.intersection(*({_call(case) for case in side_cases} for side_cases in sides))
    gains = [log(_score(case)) for case in side if _call(case) in shared]
    return sum(gains) / len(gains)


def _is_current_algorithm(side: Cases) -> bool:
    """Whether the calls run this algorithm today. It wins ties: nothing changes without a gain."""
    always, current = side[0].measurement.benchmark.always, side[0].spot.selected.values
    return all(current.get(name) == value for name, value in always.items())


def _call(case: PlacedResult) -> Call:
    """Returns what is called, and with which types."""
    measurement = case.measurement
    roles = {
        role: _AXIS.sub(lambda axis: measurement.workload.get(axis[1], axis[0]), text)
        for role, text in measurement.benchmark.roles.items()
    }
    return case.spot.header, measurement.benchmark.site, *sorted(roles.items())


def _base(case: PlacedResult) -> tuple[str, ...]:
    """Returns what the score was measured against."""
    scored = case.measurement.scored
    return scored.gpu, scored.ctk, version_of(scored.cccl)


def _score(case: PlacedResult) -> float:
    return (case.choice.score or 1.0) if case.used else 1.0


def _outranked_reason(case: PlacedResult, best: Cases) -> str:
    """Says why a workload loses to the algorithm that its entry's calls get."""
    same_call = [candidate for candidate in best if _call(candidate) == _call(case)]
    name = best[0].measurement.benchmark.name
    if not case.used:
        return f"{case.choice.reason}; its call gets the result of {name}"
    if not same_call:
        return f"{name} is better for other calls of this entry"
    best_case = max(same_call, key=_score)
    scores = f"{_score(best_case):.4f} against {_score(case):.4f}"
    better = f"{name} is better for the calls of this entry"
    return f"{better}; for this one {best_case.choice.variant or 'base'} has {scores}"


# Changes beyond the measured workloads: on this architecture, and on later ones.


def changed_later(compared: Delta[Values], arch: str) -> list[DeltaRow[Values]]:
    """Returns the changes on later architectures; of AMD's, on devices that share a target."""
    if not is_amd(arch):
        return [
            change for change in compared.changes if arch_number(change.arch) > arch_number(arch)
        ]
    own_changes = {
        change.point: (change.before, change.after)
        for change in compared.changes
        if change.arch == arch
    }
    other_changes = (change for change in compared.changes if change.arch != arch)
    return [
        change
        for change in other_changes
        if own_changes.get(change.point) == (change.before, change.after)
    ]


def in_spite(change: DeltaRow[Values]) -> str:
    """Says that the pinning entries do not preserve what they are meant to."""
    pairs = ", ".join(told_changes(change.before, change.after))
    return (
        f"{change.name} on {change.arch} would change despite the entries that should keep the"
        f" values of later architectures: {pairs}"
    )
