"""Workloads that do not get what was written for them, and those that lose what they had."""

from collections.abc import Sequence

from policygen.dialects.protocol import EntryWrite
from policygen.model.changes import changes as told_changes
from policygen.model.selection import Delta, Values
from policygen.model.workload import Point
from policygen.planning.decide import Decided
from policygen.planning.judge import WhyNot, differs
from policygen.planning.later import changed_elsewhere
from policygen.planning.places import PlacedResult
from policygen.planning.rivals import contradicts, other_algorithm


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
