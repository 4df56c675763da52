"""Which workloads CUB treats differently in two trees."""

from policygen.model.resolve import Comparison, Differing, Resolution, ResolvedRow


def compare_resolutions(before: Resolution, after: Resolution) -> Comparison:
    """The workloads whose values differ, or that one tree lacks; in the order of the new tree."""
    old, new = _rows(before), _rows(after)
    keys = {**new, **old}
    different = [
        found for key in keys if (found := _difference(old.get(key), new.get(key))) is not None
    ]
    return Comparison(
        before=before.cub,
        after=after.cub,
        toolchain=after.toolchain,
        archs=after.archs,
        compared=len(keys),
        different=tuple(different),
        remarks=tuple(dict.fromkeys((*before.remarks, *after.remarks))),
        unresolved=tuple(dict.fromkeys((*before.unresolved, *after.unresolved))),
    )


def _rows(resolution: Resolution) -> dict[tuple[object, ...], ResolvedRow]:
    return {
        (row.benchmark, tuple(sorted(row.workload.items())), row.arch): row
        for row in resolution.rows
    }


def _difference(old: ResolvedRow | None, new: ResolvedRow | None) -> Differing | None:
    if old and new:
        # A value that one tree does not know, as the lookahead's, says nothing about the other.
        names = [name for name in new.values if name in old.values]
        changed = tuple(name for name in names if old.values[name] != new.values[name])
        if not changed:
            return None
    else:
        changed = ()
    row = new or old
    assert row is not None
    return Differing(
        benchmark=row.benchmark,
        workload=row.workload,
        arch=row.arch,
        before=old.values if old else None,
        after=new.values if new else None,
        changed=changed,
        entry_before=old.entry if old else None,
        entry_after=new.entry if new else None,
    )
