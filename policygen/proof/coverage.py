"""Computes the tuning coverage from what the compiler selects."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from policygen.model.arch import arch_number
from policygen.model.audits import STATUSES, Cell, CellStatus, Fillable, Share, Turned, Unfilled
from policygen.model.plans import Action, Plan
from policygen.model.selection import Resolution, ResolvedRow, Spot, delta


def cells(resolution: Resolution) -> tuple[Cell, ...]:
    """Returns each workload's status on each architecture."""
    return tuple(_cell(row) for row in resolution.rows)


def shares(cells: Sequence[Cell]) -> tuple[Share, ...]:
    """Counts the statuses by architecture: of all benchmarks, then of each."""
    counts: dict[tuple[str | None, str], Counter[CellStatus]] = {}
    for cell in cells:
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


def fillable(cells: Iterable[Cell], plans: Iterable[Plan]) -> tuple[Fillable, ...]:
    """Lists what plans would write for untuned cells, the best score first."""
    candidates = (
        Fillable.of(cell.point, **facts)
        for cell, action, facts in _planned_for_untuned(cells, plans)
        if action.written
    )
    return tuple(sorted(candidates, key=lambda candidate: -candidate.score))


def unfilled(cells: Iterable[Cell], plans: Iterable[Plan]) -> tuple[Unfilled, ...]:
    """Lists the variants that plans reject for untuned cells, with the reasons."""
    rejected = (
        Unfilled.of(cell.point, **facts, reason=action.reason)
        for cell, action, facts in _planned_for_untuned(cells, plans)
        if action.decision == "reject"
    )
    return tuple(sorted(rejected, key=lambda row: -row.score))


def _planned_for_untuned(
    cells: Iterable[Cell], plans: Iterable[Plan]
) -> Iterator[tuple[Cell, Action, dict[str, Any]]]:
    """Yields the untuned cells for which a plan has a better variant: its action, and the facts."""
    untuned = {(cell.point, cell.arch): cell for cell in cells if cell.status != "tuned"}
    for plan in plans:
        for action in plan.actions:
            cell = untuned.get((action.point, plan.options.arch))
            if cell and action.variant and action.scores:
                facts: dict[str, Any] = {"arch": cell.arch, "status": cell.status}
                facts |= {
                    "variant": action.variant,
                    "score": action.scores[0],
                    "databases": action.databases,
                }
                yield cell, action, facts


def turned(before: Iterable[Cell], after: Iterable[Cell]) -> tuple[Turned, ...]:
    """Lists cells whose status changed; of workloads that only one tree has, the tuned ones."""
    old, new = _statuses(before), _statuses(after)
    order = {spot: number for number, spot in enumerate({**old, **new})}
    changes = delta(old, new, _is_turned, None).changes
    return tuple(
        Turned.of(change.point, arch=change.arch, before=change.before, after=change.after)
        for change in sorted(
            changes,
            key=lambda change: (
                change.benchmark,
                arch_number(change.arch),
                order[change.point, change.arch],
            ),
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


def _statuses(cells: Iterable[Cell]) -> dict[Spot, CellStatus | None]:
    return {(cell.point, cell.arch): cell.status for cell in cells}
