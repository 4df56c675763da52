"""Makes coverage of what the compiler selects."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from policygen.model.arch import arch_number
from policygen.model.audits import STATUSES, Cell, CellStatus, Fillable, Share, Turned, Unfilled
from policygen.model.plans import Action, Plan
from policygen.model.selection import Resolution, ResolvedRow, Spot, delta


def cells(resolution: Resolution) -> tuple[Cell, ...]:
    """Gives each workload on each architecture its status."""
    return tuple(_cell(row) for row in resolution.rows)


def shares(found: Sequence[Cell]) -> tuple[Share, ...]:
    """Counts the statuses of all benchmarks by architecture, then of each one."""
    counts: dict[tuple[str | None, str], Counter[CellStatus]] = {}
    for cell in found:
        for benchmark in (None, cell.benchmark):
            counts.setdefault((benchmark, cell.arch), Counter())[cell.status] += 1
    return tuple(
        Share(
            benchmark=benchmark,
            arch=arch,
            workloads=counter.total(),
            counts={status: counter[status] for status in STATUSES},
        )
        for (benchmark, arch), counter in sorted(
            counts.items(), key=lambda item: (item[0][0] or "", arch_number(item[0][1]))
        )
    )


def fillable(found: Iterable[Cell], plans: Iterable[Plan]) -> tuple[Fillable, ...]:
    """Lists what plans would write for cells that are not tuned; what pays most comes first."""
    could = [
        Fillable(**_for_cell(cell, action))
        for cell, action in _planned(found, plans)
        if action.written
    ]
    return tuple(sorted(could, key=lambda one: -one.score))


def unfilled(found: Iterable[Cell], plans: Iterable[Plan]) -> tuple[Unfilled, ...]:
    """Lists variants that plans reject for cells that are not tuned, and why."""
    rejected = [
        Unfilled(**_for_cell(cell, action), reason=action.reason)
        for cell, action in _planned(found, plans)
        if action.decision == "reject"
    ]
    return tuple(sorted(rejected, key=lambda one: -one.score))


def _planned(found: Iterable[Cell], plans: Iterable[Plan]) -> Iterator[tuple[Cell, Action]]:
    """The cells that are not tuned, and what plans say of a better variant."""
    missing = {(c.point, c.arch): c for c in found if c.status != "tuned"}
    for plan in plans:
        for action in plan.actions:
            cell = missing.get((action.point, plan.options.arch))
            if cell and action.variant and action.scores:
                yield cell, action


def _for_cell(cell: Cell, action: Action) -> dict[str, Any]:
    assert action.scores is not None
    return {
        "benchmark": cell.benchmark,
        "workload": cell.workload,
        "arch": cell.arch,
        "status": cell.status,
        "variant": action.variant,
        "score": action.scores[0],
        "databases": action.databases,
    }


def turned(before: Iterable[Cell], after: Iterable[Cell]) -> tuple[Turned, ...]:
    """Lists cells with another status; of workloads that one tree lacks those that are tuned."""
    old, new = _statuses(before), _statuses(after)
    order = {spot: number for number, spot in enumerate({**old, **new})}
    found = delta(old, new, _is_turned, None).changes
    return tuple(
        Turned(
            benchmark=one.benchmark,
            workload=dict(one.workload),
            arch=one.arch,
            before=one.before,
            after=one.after,
        )
        for one in sorted(
            found,
            key=lambda one: (one.benchmark, arch_number(one.arch), order[one.point, one.arch]),
        )
    )


def _is_turned(old: CellStatus | None, new: CellStatus | None) -> bool:
    return old != new and (None not in (old, new) or "tuned" in (old, new))


def _cell(row: ResolvedRow) -> Cell:
    status: CellStatus = row.status
    entry, reason = row.entry, None
    if row.status != "tuned" and row.passed is not None:
        status, entry = "unreachable", row.passed
    elif row.status != "tuned" and row.disabled is not None:
        status, entry, reason = "disabled", row.disabled.place, row.disabled.reason
    return Cell(
        benchmark=row.benchmark,
        workload=row.workload,
        arch=row.arch,
        status=status,
        since=row.since,
        entry=entry,
        reason=reason,
    )


def _statuses(found: Iterable[Cell]) -> dict[Spot, CellStatus | None]:
    return {(cell.point, cell.arch): cell.status for cell in found}
