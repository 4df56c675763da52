"""Whether what was measured as base is what the tree selects now."""

from policygen.errors import InputError
from policygen.model.selection import Selected
from policygen.model.trees import BoundVersion
from policygen.planning.measured import base_remarks, measurements, with_bases
from tests.planning.pretend import SUM_INT, SUMS, planner, summed, sums, want

LABEL = "ipt_20.tpb_256.ipv_2"
TREE = BoundVersion("3.0.1")
I32, C64, F32 = summed("I32"), summed("C64"), summed("F32")


class Then:
    """A tree of another version: what its base was."""

    def __init__(self, values):
        self.values, self.asked = values, []

    def tell(self, points, arch):
        self.asked.append((tuple(points), arch))
        return {p: Selected(self.values[p], None, {}, {}) for p in points if p in self.values}


def made(*wanted, version="3.0.0"):
    oracle = sums(SUMS + SUM_INT, types=("I32", "F32", "C64"))
    return planner(oracle).plan([want(point, label, version=version) for point, label in wanted])


def test_a_version_that_is_not_at_hand_is_told():
    assert base_remarks(made((I32, LABEL)), TREE, {}) == [
        "the results are from CCCL 3.0.0, but the tree is CUB 3.0.1; whether both have the same"
        " base is unknown; --measured-on TREE compares them"
    ]


def test_the_same_version_needs_no_remark():
    assert base_remarks(made((I32, LABEL), version="3.0.1"), TREE, {}) == []


def test_another_base_is_told_for_each_workload_with_one_question():
    plan = made((I32, LABEL), (F32, None))
    then = Then({I32: {"items": 12, "threads": 512}, F32: dict(plan.actions[1].before)})
    assert base_remarks(plan, TREE, {"3.0.0": then}) == [
        "cub.bench.reduce.sum T=I32 OffsetT=I32: base was measured with different values (3.0.0:"
        " items 12, here 16)"
    ]
    assert then.asked == [((I32, F32), "sm100")]


def test_values_that_only_one_version_has_are_not_compared():
    assert base_remarks(made((I32, None)), TREE, {"3.0.0": Then({I32: {"more": 1}})}) == []


def test_workloads_that_the_measured_tree_does_not_tell_of_are_counted():
    found = base_remarks(made((I32, None), (F32, None)), TREE, {"3.0.0": Then({I32: {}})})
    assert found == ["whether base is the same as in CUB 3.0.0 is unknown for 1 of 2 workloads"]


def test_a_type_is_asked_for_by_its_name_of_then():
    """complex<float> was C64 in CUB 3.0, and is C32 in 3.2."""
    plan = made((C64, LABEL), version="3.0.0").model_copy(update={"remarks": ()})
    asked = summed("C32")
    then = Then({asked: {"items": 1}})
    action = plan.actions[0].model_copy(update={"cccl": "v3.2.0"})
    found = base_remarks(plan.model_copy(update={"actions": (action,)}), TREE, {"3.2.0": then})
    assert then.asked == [((asked,), "sm100")]
    assert [remark.startswith("cub.bench.reduce.sum T=C64") for remark in found] == [True]


def test_a_workload_that_the_measured_version_had_not_is_not_known():
    plan = made((I32, LABEL))
    action = plan.actions[0].model_copy(update={"benchmark": "cub.bench.new"})
    then = Then({})
    found = base_remarks(plan.model_copy(update={"actions": (action,)}), TREE, {"3.0.0": then})
    assert found == ["whether base is the same as in CUB 3.0.0 is unknown for 1 of 1 workloads"]


def test_a_measured_tree_that_cannot_be_compiled_is_told():
    then = Then({})

    def tell(points, arch):
        raise InputError("nvcc refuses it", "Install another.")

    then.tell = tell
    assert base_remarks(made((I32, None)), TREE, {"3.0.0": then}) == [
        "whether base is as in CUB 3.0.0 could not be checked: nvcc refuses it"
    ]


def test_what_was_rejected_unseen_is_not_compared():
    plan = made((I32, LABEL))
    odd = plan.actions[0].model_copy(update={"before": None, "cccl": "tip of main"})
    assert base_remarks(plan.model_copy(update={"actions": (odd,)}), TREE, {}) == []


def counts(bases, *versions, tree="3.0.1"):
    """Which of several versions speaks for a workload of a tree."""
    oracle = sums(SUMS + SUM_INT, types=("I32", "F32", "C64"))
    results = with_bases(
        [want(I32, LABEL, version=v) for v in versions], oracle, BoundVersion(tree), bases, "sm100"
    )
    (known,), refused = measurements(results, BoundVersion(tree), "sm100", force=False)
    return known.scored.cccl, {one.cccl: action.reason for one, action in refused}


def test_of_several_versions_the_nearest_with_the_base_of_the_tree_speaks_for_it():
    now = dict(made((I32, LABEL)).actions[0].before)
    same, other = Then({I32: now}), Then({I32: {"items": 12, "threads": 512}})
    assert counts({}, "2.8.0", "3.0.0", "3.2.0")[0] == "v3.0.0"
    assert counts({"2.8.0": same, "3.0.0": other}, "2.8.0", "3.0.0", "3.2.0")[0] == "v3.2.0"
    assert counts({"2.8.0": same, "3.0.0": other}, "2.8.0", "3.0.0") == (
        "v2.8.0",
        {
            "v3.0.0": "measured again with v2.8.0, CUDA 13.0.88, B200, with the tree's values as"
            " its base; that result counts"
        },
    )
    assert counts({"3.0.0": other}, "3.0.0")[0] == "v3.0.0"
    assert other.asked == [((I32,), "sm100")] * 2


def test_a_base_that_nobody_tells_is_not_held_against_a_version():
    silent = Then({})
    assert counts({"3.0.0": silent}, "2.8.0", "3.0.0")[0] == "v3.0.0"

    def tell(points, arch):
        raise InputError("nvcc refuses it", "Install another.")

    silent.tell = tell
    assert counts({"3.0.0": silent}, "2.8.0", "3.0.0")[0] == "v3.0.0"
