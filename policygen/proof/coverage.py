"""Coverage, out of what the compiler selects."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from policygen.model.arch import arch_number
from policygen.model.coverage import STATUSES, Cell, CellStatus, Fillable, Share, Turned
from policygen.model.plan import Plan
from policygen.model.resolve import Resolution, ResolvedRow

Spot = tuple[object, str]
"""A workload on an architecture."""


def cells(resolution: Resolution) -> tuple[Cell, ...]:
    """Each workload on each architecture."""
    return tuple(_cell(row) for row in resolution.rows)


def shares(found: Sequence[Cell]) -> tuple[Share, ...]:
    """Of all benchmarks by architecture, then of each one."""
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
    """What plans would write for cells that are not tuned; what pays most comes first."""
    missing = {(c.point, c.arch): c for c in found if c.status != "tuned"}
    could = []
    for plan in plans:
        for action in plan.actions:
            cell = missing.get((action.point, plan.options.arch))
            if cell and action.written and action.variant and action.scores:
                could.append(
                    Fillable(
                        benchmark=cell.benchmark,
                        workload=cell.workload,
                        arch=cell.arch,
                        status=cell.status,
                        variant=action.variant,
                        score=action.scores[0],
                        databases=action.databases,
                    )
                )
    return tuple(sorted(could, key=lambda one: -one.score))


def turned(before: Iterable[Cell], after: Iterable[Cell]) -> tuple[Turned, ...]:
    """The cells whose status is another; of workloads that one tree lacks those that are tuned."""
    old, new = _by_spot(before), _by_spot(after)
    found = []
    for spot in {**old, **new}:
        then, now = old.get(spot), new.get(spot)
        one = then or now
        assert one is not None
        statuses = (then.status if then else None, now.status if now else None)
        whole = then is not None and now is not None
        if statuses[0] != statuses[1] and (whole or "tuned" in statuses):
            found.append(
                Turned(
                    benchmark=one.benchmark,
                    workload=one.workload,
                    arch=one.arch,
                    before=statuses[0],
                    after=statuses[1],
                )
            )
    return tuple(sorted(found, key=lambda one: (one.benchmark, arch_number(one.arch))))


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


def _by_spot(found: Iterable[Cell]) -> Mapping[Spot, Cell]:
    return {(cell.point, cell.arch): cell for cell in found}
