"""`--legacy update` on the real trees: families get what their returns get, in one plan."""

from collections import Counter

import pytest

from policygen.cli.legacy import effect_of, with_families
from policygen.cli.planning import Work
from policygen.planning.plan import changed_headers
from tests.planning.test_every_family import same_for_all, winners
from tests.planning.wanted import Planned
from tests.probing import root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
BENCHMARKS = {"cub.bench.histogram.even", "cub.bench.partition.three_way", "cub.bench.reduce.sum"}


@pytest.mark.parametrize(("version", "written"), [("3.5.0", 16), ("3.6.0", 16)])
def test_returns_and_families_are_written_with_the_same_values(version, written):
    wanted = [one for one in winners(version) if one.algorithm in BENCHMARKS]
    given = {"arch": "sm100", "force": True, "reach": "later", "legacy": "update"}
    own = Planned(root(version), wanted, together=same_for_all, **given)
    work = Work(own.plan, own.tree, own.data, own.compiler)
    plan = with_families(work, own.planner, wanted, quiet=True)
    sides = [
        {a.point: (a.variant, a.after) for a in plan.actions if a.written and a.legacy == legacy}
        for legacy in (False, True)
    ]
    assert sides[0] == sides[1]
    assert len(sides[0]) >= written
    assert {point[0] for point in sides[0]} == BENCHMARKS
    # What no return decides is not told once more for its family.
    decisions = Counter((a.legacy, a.decision) for a in plan.actions)
    assert decisions[False, "reject"] > 0
    assert decisions[True, "reject"] == 0
    assert not [remark for remark in plan.remarks if "something else" in remark]
    effect = effect_of(plan, own.tree, own.compiler, changed_headers(plan, own.data), quiet=True)
    assert [f"{one.name}: {one.reason}" for one in effect.wrong] == []
    roles = Counter((one.legacy, one.role) for one in effect.changed)
    assert roles[False, "written"] == roles[True, "written"] == len(sides[0])


def test_what_families_of_sm90_cannot_say_is_rejected_and_named():
    wanted = [one for one in winners("3.6.0") if one.algorithm == "cub.bench.histogram.even"]
    given = {"arch": "sm90", "force": True, "reach": "later", "legacy": "update"}
    own = Planned(root("3.6.0"), wanted, together=same_for_all, **given)
    work = Work(own.plan, own.tree, own.data, own.compiler)
    plan = with_families(work, own.planner, wanted, quiet=True)
    families = [a for a in plan.actions if a.legacy]
    assert {action.decision for action in families} == {"reject"}
    assert all(
        a.reason == "sm90_tuning cannot say what was measured: it has vec_size 4 and not 1"
        for a in families
    )
    named = [remark for remark in plan.remarks if "something else" in remark]
    assert len(named) == len(families) > 0
    assert all("vec_size 4, returned 1" in remark for remark in named)
