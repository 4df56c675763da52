"""Guarded returns of the trees with policy selectors get other values, and nothing else does."""

from collections import Counter

import pytest

from policygen.headers.scan import read_header
from tests.planning.test_every_family import check, same_for_all, winners
from tests.planning.wanted import Planned
from tests.probing import changed_tree, root
from tests.tiers import slow, thorough, without

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
# Why a workload gets nothing; all of them tell what decides it.
REASONS = (
    "has its conditions except for a size or a type",
    " that can test ",  # an earlier selector has no such member
    "CUB selects a different algorithm for it than the measured one",
    "returns a policy for it before the returns of",
    "the variant means different values for each of them",
    " has no member for pf and implies pf_0",
    "would change ",
    "would have ",
    "Thrust",
    "lookahead is better for ",
    "encode is better for ",
    "CUB has this algorithm only on sm100 and later",
    "it has no entries",
)
# At least so many are updated, and so many added.
WRITTEN = {
    ("3.5.0", "sm90", "only"): (140, 140),
    ("3.6.0", "sm90", "only"): (140, 190),
    ("3.6.0", "sm100", "later"): (155, 110),
    ("3.6.0", "sm107", "later"): (90, 100),
    ("3.6.0", "sm120", "only"): (0, 330),
}


CHOSEN = {("3.6.0", "sm90", "only")}
"""A plan of a whole tree takes minutes."""


@slow
@pytest.mark.parametrize(("version", "arch", "reach"), without(WRITTEN, *WRITTEN.keys() - CHOSEN))
def test_every_return_is_updated_or_added(version, arch, reach):
    planned = Planned(
        root(version), winners(version), together=same_for_all, arch=arch, force=True, reach=reach
    )
    check(planned)
    decisions = Counter(action.decision for action in planned.plan.actions)
    assert set(decisions) <= {"update", "add", "reject"}
    updated, added = WRITTEN[version, arch, reach]
    assert decisions["update"] >= updated
    assert decisions["add"] >= added
    left = [a.reason for a in planned.plan.actions if a.decision == "reject"]
    assert [reason for reason in left if not any(known in reason for known in REASONS)] == []
    if reach == "only":
        assert {one.arch for one in planned.plan.reached if not one.between} <= {arch}
    _check_families(planned, arch)
    _check_layout(planned)


def _check_families(planned, arch):
    """What is written reads as a return of the architecture, and nothing else appears."""
    before = {f"{f.header} {f.name} {f.arch}": f for h in planned.tree.headers for f in h.selectors}
    after = {
        f"{f.header} {f.name} {f.arch}": f
        for name, data in planned.after.items()
        for f in read_header(name, data).selectors
    }
    others = [name for name in after if not name.endswith(f" {arch}")]
    # A function that only computed had no returns that ask for something.
    decided = {(f.header, f.name) for f in before.values()}
    for name in others:
        family = after[name]
        if (family.header, family.name) in decided:
            assert len(family.entries) == len(before[name].entries)
    added = sum(
        len(f.entries) - len(before[n].entries) if n in before else len(f.entries)
        for n, f in after.items()
        if n not in others
    )
    assert added > 0 or all(a.decision != "add" for a in planned.plan.actions)


def _check_layout(planned):
    """No line that is new is longer than clang-format lets it be, none ends with a blank."""
    for name, data in planned.after.items():
        old = set(planned.data[name].splitlines())
        new = [row for row in data.splitlines() if row not in old]
        assert [row for row in new if len(row) > 120 or row != row.rstrip()] == []


@thorough
def test_planned_again_nothing_is_left_to_write(tmp_path):
    wanted = winners("3.6.0")
    given = {"together": same_for_all, "arch": "sm100", "force": True, "reach": "later"}
    first = Planned(root("3.6.0"), wanted, **given)
    again = Planned(changed_tree(tmp_path, "3.6.0", first.after), wanted, **given)
    decisions = Counter(action.decision for action in again.plan.actions)
    assert set(decisions) == {"keep", "reject"}
    assert again.plan.edits == ()
    written = {a.point for a in first.plan.actions if a.written}
    assert written <= {a.point for a in again.plan.actions if a.decision == "keep"}
