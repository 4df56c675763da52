"""Compares what two trees select for their workloads."""

from policygen.model.resolve import Comparison, Differing, Resolution, ResolvedRow
from policygen.model.selection import Spot, Values, delta, with_unnamed


def compare_resolutions(before: Resolution, after: Resolution) -> Comparison:
    """Lists the workloads whose values differ, or that one tree lacks.

    Of benchmarks that one side did not answer nothing is said but this: they are `unresolved`.
    """
    sides = [_rows(side) for side in (before, after)]
    lost = {one.benchmark for side in (before, after) for one in side.unresolved}
    both = sides[0].keys() & sides[1].keys()
    known = [
        {spot: row for spot, row in side.items() if spot in both or spot[0][0] not in lost}
        for side in sides
    ]
    found = delta(known[0], known[1], _unlike, None)
    pairs = ((one.before, one.after) for one in found.changes)
    return Comparison(
        before=before.cub,
        after=after.cub,
        toolchain=after.toolchain,
        archs=after.archs,
        compared=found.compared,
        different=tuple(_differing(old, new) for old, new in pairs),
        remarks=tuple(dict.fromkeys((*before.remarks, *after.remarks))),
        unresolved=tuple(dict.fromkeys((*before.unresolved, *after.unresolved))),
    )


def _rows(resolution: Resolution) -> dict[Spot, ResolvedRow | None]:
    return {
        ((row.benchmark, tuple(sorted(row.workload.items()))), row.arch): row
        for row in resolution.rows
    }


def _unlike(old: ResolvedRow | None, new: ResolvedRow | None) -> bool:
    return old is None or new is None or bool(_changed(old, new))


def _changed(old: ResolvedRow, new: ResolvedRow) -> tuple[str, ...]:
    # A value that one tree does not know, as the lookahead's, says nothing about the other.
    before, after = _in_full(old, new)
    return tuple(name for name in after if name in before and before[name] != after[name])


def _in_full(old: ResolvedRow, new: ResolvedRow) -> tuple[Values, Values]:
    return with_unnamed(old.values, old.fields, new.values, new.fields)


def _differing(old: ResolvedRow | None, new: ResolvedRow | None) -> Differing:
    row = new or old
    assert row is not None
    before, after = old and old.values, new and new.values
    if old and new:
        before, after = (dict(side) for side in _in_full(old, new))
    return Differing(
        benchmark=row.benchmark,
        workload=row.workload,
        arch=row.arch,
        before=before,
        after=after,
        changed=_changed(old, new) if old and new else (),
        entry_before=old.entry if old else None,
        entry_after=new.entry if new else None,
        passed=tuple(side.passed for side in (new, old) if side and side.passed),
    )
