"""Guarded returns of the trees with policy selectors get other values, and nothing else does."""

from collections import Counter

import pytest

from tests.planning.test_every_family import check, same_for_all, winners
from tests.planning.wanted import Planned
from tests.probing import changed_tree, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
# Why a workload gets nothing; all of them tell what decides it.
REASONS = (
    " has no return of its own for it: ",
    "no return with constants decides it in ",
    "CUB selects another algorithm for it than the one that was measured",
    "Thrust",
    "it has no entries",
)
UPDATED = {
    ("3.5.0", "sm90"): 150,
    ("3.5.0", "sm100"): 150,
    ("3.6.0", "sm90"): 150,
    ("3.6.0", "sm100"): 150,
    ("3.6.0", "sm107"): 50,
}


@pytest.mark.parametrize(("version", "arch"), UPDATED)
def test_every_return_that_decides_a_workload_is_updated(version, arch):
    planned = Planned(
        root(version), winners(version), together=same_for_all, arch=arch, force=True, reach="later"
    )
    check(planned)
    decisions = Counter(action.decision for action in planned.plan.actions)
    assert set(decisions) == {"update", "reject"}
    assert decisions["update"] > UPDATED[version, arch]
    left = [a.reason for a in planned.plan.actions if a.decision == "reject"]
    assert [reason for reason in left if not any(known in reason for known in REASONS)] == []
    changed = [a for a in planned.plan.actions if a.written]
    families = {
        (family.header, family.name)
        for header in planned.tree.headers
        for family in header.selectors
        if family.arch == arch
    }
    assert {(a.target.header, a.target.family) for a in changed} <= families


def test_later_architectures_that_fall_through_keep_a_return_from_being_changed():
    planned = Planned(
        root("3.6.0"), winners("3.6.0"), together=same_for_all, arch="sm90", force=True
    )
    check(planned)
    held = [a for a in planned.plan.actions if "falls through to the same return" in a.reason]
    assert len(held) > 50
    assert all(a.decision == "reject" for a in held)
    assert {one.arch for one in planned.plan.reached} <= {"sm90"}


def test_planned_again_nothing_is_left_to_write(tmp_path):
    wanted = winners("3.6.0")
    given = {"together": same_for_all, "arch": "sm100", "force": True, "reach": "later"}
    first = Planned(root("3.6.0"), wanted, **given)
    again = Planned(changed_tree(tmp_path, "3.6.0", first.after), wanted, **given)
    decisions = Counter(action.decision for action in again.plan.actions)
    assert set(decisions) == {"keep", "reject"}
    assert again.plan.edits == ()
