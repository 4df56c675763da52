"""Computes the tuning coverage from what the compiler selects."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from policygen.model.arch import arch_number
from policygen.model.audits import STATUSES, Cell, CellStatus, Fillable, Share, Turned, Unfilled
from policygen.model.plans import Plan
from policygen.model.selection import Resolution, ResolvedRow


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


def planned(
    cells: Iterable[Cell], plans: Iterable[Plan]
) -> tuple[tuple[Fillable, ...], tuple[Unfilled, ...]]:
    """Lists what plans would write for untuned cells, and what they reject, best scores first."""
    untuned = {(cell.point, cell.arch): cell for cell in cells if cell.status != "tuned"}
    fillable: list[Fillable] = []
    unfilled: list[Unfilled] = []
    for plan in plans:
        for action in plan.actions:
            cell = untuned.get((action.point, plan.options.arch))
            if cell is None or not action.variant or not action.scores:
                continue
            facts: dict[str, Any] = {"arch": cell.arch, "status": cell.status}
            facts |= {"variant": action.variant, "score": action.scores[0]}
            facts |= {"databases": action.databases}
            if action.written:
                fillable.append(Fillable.of(cell.point, **facts))
            elif action.decision == "reject":
                unfilled.append(Unfilled.of(cell.point, **facts, reason=action.reason))
    fillable.sort(key=lambda row: -row.score)
    unfilled.sort(key=lambda row: -row.score)
    return tuple(fillable), tuple(unfilled)


def turned(before: Iterable[Cell], after: Iterable[Cell]) -> tuple[Turned, ...]:
    """Lists cells whose status changed; of workloads that only one tree has, the tuned ones."""
    old, new = ({(cell.point, cell.arch): cell.status for cell in side} for side in (before, after))
    spots = sorted({**old, **new}, key=lambda spot: (spot[0][0], arch_number(spot[1])))
    rows = (
        Turned.of(spot[0], arch=spot[1], before=old.get(spot), after=new.get(spot))
        for spot in spots
    )
    return tuple(row for row in rows if _is_turned(row.before, row.after))


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
