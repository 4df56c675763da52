"""`--legacy update` on the real trees: families get what their returns get, in one plan."""

import re
from collections import Counter

import pytest

from policygen.app.effect import Planned as PlannedTree
from policygen.app.effect import effect_of
from policygen.app.plan import with_families
from policygen.planning.saved import changed_headers
from tests.planning.test_every_family import same_for_all, winners
from tests.planning.wanted import Planned
from tests.probing import root
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, slow]
BENCHMARKS = {"cub.bench.histogram.even", "cub.bench.partition.three_way", "cub.bench.reduce.sum"}


@pytest.mark.parametrize(
    ("version", "arch", "reach", "written"),
    # No release has anything for sm120: returns and families are made for it.
    [
        ("3.5.0", "sm100", "later", 16),
        ("3.6.0", "sm100", "later", 16),
        ("3.6.0", "sm120", "only", 30),
    ],
)
def test_returns_and_families_are_written_with_the_same_values(version, arch, reach, written):
    wanted = [one for one in winners(version) if one.algorithm in BENCHMARKS]
    given = {"arch": arch, "force": True, "reach": reach, "legacy": "update"}
    own = Planned(root(version), wanted, together=same_for_all, **given)
    work = PlannedTree(own.plan, own.compiler)
    plan = with_families(work, own.planner, wanted)
    sides = [
        {a.point: (a.variant, a.after) for a in plan.actions if a.written and a.legacy == legacy}
        for legacy in (False, True)
    ]
    both = sides[0].keys() & sides[1].keys()
    same = {point for point in both if sides[0][point][0] == sides[1][point][0]}
    assert all(sides[0][point] == sides[1][point] for point in same)
    assert len(same) >= written
    assert {point[0] for point in same} == BENCHMARKS
    # A family serves other workloads than a return in places; what it says is named then.
    named = [remark for remark in plan.remarks if "differs from what is returned" in remark]
    assert bool(named) == bool(both - same)
    # What no return decides is not told once more for its family.
    rejected = {a.point for a in plan.actions if not a.legacy and a.decision == "reject"}
    assert not rejected & {a.point for a in plan.actions if a.legacy}
    effect = effect_of(plan, own.compiler, changed_headers(plan, own.data))
    assert [f"{one.name}: {one.reason}" for one in effect.wrong] == []
    roles = Counter((one.legacy, one.role) for one in effect.changed)
    assert [roles[legacy, "written"] for legacy in (False, True)] == [len(one) for one in sides]


def test_what_families_of_sm90_cannot_say_is_rejected_and_named():
    wanted = [one for one in winners("3.6.0") if one.algorithm == "cub.bench.histogram.even"]
    given = {"arch": "sm90", "force": True, "reach": "later", "legacy": "update"}
    own = Planned(root("3.6.0"), wanted, together=same_for_all, **given)
    work = PlannedTree(own.plan, own.compiler)
    plan = with_families(work, own.planner, wanted)
    families = [a for a in plan.actions if a.legacy]
    missing = re.compile(
        r"ipt_\S+: tuning_histogram.cuh:\d+: entries of sm90_tuning cannot have vec_size: 4 is not"
        r" an argument of their readers: it has vec_size 4, not [12]"
    )
    rejected = [a for a in families if a.decision == "reject"]
    assert rejected
    assert [one.reason for one in rejected if not missing.fullmatch(one.reason)] == []
    named = [remark for remark in plan.remarks if "differs from what is returned" in remark]
    assert named
    assert any("vec_size 4, returned " in remark for remark in named), named
