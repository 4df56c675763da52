"""Guarded returns as reviewed: what is written for two workloads of every writable benchmark.

Only the added lines are kept, they are policygen's own, and how many lines go.
UPDATE_GOLDENS=1 writes them anew.
"""

import os
from collections import defaultdict
from itertools import product

import pytest

from policygen.model.workload import in_words
from tests.planning.test_every_family import same_for_all, winners
from tests.planning.test_goldens import GOLDENS, results, shown
from tests.planning.wanted import Planned, assert_taken_back
from tests.probing import changed_tree, root
from tests.tiers import sampled, slow

CASES = [("3.6.0", "sm90", "only"), ("3.5.0", "sm100", "later")]
SHARED = "ipt_18.tpb_256.ipv_1"
DELAY = "ns_500.dcid_1.l2w_700"
NO_DELAY = "ns_60.dcid_0.l2w_155"
LOOKAHEAD = "ipt_16.cw_8.krs_4.prs_3.pll_4.dpll_3.dmrt_128.fst_48"
FIRST, SECOND = f"trp_1.ld_0.ipt_18.tpb_256.{DELAY}", f"trp_0.ld_1.ipt_16.tpb_384.{DELAY}"
KEYED = {"I32": f"ipt_14.tpb_512.{DELAY}.trp_1.ld_1", "F32": f"ipt_15.tpb_384.{DELAY}.trp_1.ld_1"}
BY_TYPE = {
    "split": (
        "sm100",
        {"collisions": "split", "reach": "later"},
        {
            # Beside a return that is there, in a `case`, new ones, and in a block of their own.
            "select.if I32 false": FIRST,
            "select.if F32 false": SECOND,
            **{f"scan.exclusive.by_key {key} I32 I32": won for key, won in KEYED.items()},
            "select.if I64 false": FIRST,
            "select.if F64 false": SECOND,
        },
    ),
    "narrow": (
        "sm100",
        {},
        {
            "select.if I32 false": FIRST,
            "select.if F32 false": None,
            "select.if I64 false": FIRST,
            "select.if F64 false": None,
        },
    ),
    "apart": (
        "sm107",
        {},
        {
            # By what the selector knows of them: a type, and a size that a function is given.
            "reduce.arg_extrema I8 arg_min": "ipt_18.tpb_256.ipv_1",
            "reduce.arg_extrema I16 arg_min": "ipt_17.tpb_288.ipv_1",
            "reduce.arg_extrema F32 arg_max": "ipt_16.tpb_320.ipv_1",
            "reduce.min I64 I32": "ipt_18.tpb_256.ipv_1",
            "reduce.min I64 I64": "ipt_16.tpb_320.ipv_1",
            # Minima and maxima of one type: nothing tells them apart.
            "reduce.arg_extrema F64 arg_min": "ipt_18.tpb_256.ipv_1",
            "reduce.arg_extrema F64 arg_max": "ipt_16.tpb_320.ipv_1",
        },
    ),
    "prefetch": (
        "sm107",
        {"reach": "later"},
        {"select.flagged I32 false": f"trp_1.ld_0.ipt_18.tpb_256.{DELAY}.pf_3"},
    ),
    "nested": (
        "sm107",
        {},
        {
            # Keys of a size without a `case`: one with a `switch` of its own, as the others have.
            "scan.exclusive.by_key I16 I32 I32": KEYED["I32"],
            "scan.exclusive.by_key I16 I64 I32": KEYED["F32"],
            "scan.exclusive.by_key I64 I16 I32": KEYED["I32"],
        },
    ),
    "raw": (
        "sm107",
        {},
        {
            # What parameters are in these returns is no family's: counts as they were measured.
            "adjacent_difference.subtract_left I32 I32": "ipt_16.tpb_256",
            "reduce.arg_extrema I32 arg_min": "ipt_18.tpb_256.ipv_1",
            "reduce.arg_extrema I32 arg_max": "ipt_18.tpb_256.ipv_1",
            "reduce.arg_minmax F64": "ipt_18.tpb_256.ipv_1",
            "topk.keys I32 I64 I64": "ipt_8.tpb_256.ld_1",
            "scan.exclusive.sum.lookahead I8 I64": "wrps_2.lbi_4.ipt_64.lbs_1.bis_-1",
            "scan.exclusive.sum.lookahead I16 I64": "wrps_2.lbi_4.ipt_64.lbs_1.bis_-1",
            "scan.exclusive.sum.lookahead I32 I64": "wrps_2.lbi_4.ipt_64.lbs_1.bis_-1",
            # In the group of its key's size; for a size without one before what ends all pairs.
            "radix_sort.pairs I16 I32 I32": "ipt_16.tpb_480",
            "radix_sort.pairs I32 I64 I64": "ipt_16.tpb_480",
            # By another algorithm than CUB's choice: the return says so.
            "run_length_encode.encode F32 I32 I32": f"ipt_8.tpb_256.trp_1.ld_1.{NO_DELAY}",
        },
    ),
    "first": (
        "sm100",
        {},
        {
            # CUB computes all of these: a return comes first in the function.
            "find_if.base I8 I32": "ld_1.ipt_12.tpb_8",
            "find_if.base F64 I32": "ld_0.ipt_12.tpb_8",
            "merge.keys I32": "trp_1.ld_3.ipt_12.tpb_8",
            "merge_sort.pairs I32 I8 I32": "trp_1.ld_0.ipt_12.tpb_8",
            "segmented_scan.sum I64 I32": "ipt_8.tpb_256.trp_1.ld_1.spb_512",
            "reduce.deterministic F64 I32": "ipt_12.tpb_256",
            "reduce.arg_extrema I64 arg_max": "ipt_18.tpb_256.ipv_1",
            "run_length_encode.encode.lookahead I32 I32 I32": LOOKAHEAD,
            "run_length_encode.encode.lookahead I32 I32 I64": LOOKAHEAD.replace("16", "24", 1),
            # Large keys have a formula unless the caller says otherwise, as sm107's does.
            "radix_sort.keys F32 I32": "ipt_16.tpb_480",
            # Behind the block of a later architecture, as there is none of an earlier one.
            "adjacent_difference.subtract_left I32 I32": "ipt_16.tpb_256",
        },
    ),
    "switched": (
        "sm120",
        {"reach": "later"},
        {
            # What is new is in a `switch` where its model is.
            "scan.exclusive.by_key I8 I32 I32": KEYED["I32"],
            "scan.exclusive.by_key I8 I64 I32": KEYED["F32"],
            "scan.exclusive.by_key I32 I32 I32": KEYED["I32"],
            # A function that leaves where its model does.
            "reduce.sum F32 I32": SHARED,
            "reduce.sum I64 I32": SHARED,
            "reduce.sum I64 I64": "ipt_19.tpb_512.ipv_1",
        },
    ),
    "crossed": (
        "sm90",
        {"collisions": "split"},
        {
            # Two members tell them apart, and neither does alone.
            f"partition.if I8 {offset} {distinct}": f"{FIRST.replace('18', str(items))}"
            for items, (offset, distinct) in enumerate(
                product(("I32", "I64"), ("false", "true")), 15
            )
        },
    ),
    "bounded": (
        "sm90",
        {"collisions": "split"},
        {"select.if I64 false": FIRST, "select.if F64 false": SECOND},
    ),
}


def first_and_last(wanted):
    """Two workloads of each benchmark."""
    found = defaultdict(list)
    for one in wanted:
        found[one.algorithm].append(one)
    return [one for group in found.values() for one in (group[0], group[-1])]


@slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(("version", "arch", "reach"), CASES)
def test_returns_are_written_as_reviewed_once_and_taken_back(tmp_path, version, arch, reach):
    wanted = first_and_last(winners(version))
    given = {"together": same_for_all, "arch": arch, "force": True, "reach": reach}
    planned = Planned(root(version), wanted, **given)
    assert_golden(planned, f"returns_{version}_{arch}")
    assert_taken_back(planned.data, planned.after)
    again = Planned(changed_tree(tmp_path, version, planned.after), wanted, **given)
    assert again.plan.edits == ()


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("name", sampled(BY_TYPE, "raw", "nested", "crossed", "bounded"))
def test_returns_for_types_are_written_as_reviewed(name):
    arch, options, wanted = BY_TYPE[name]
    found = list(results(wanted, "3.6.0"))
    planned = Planned(root("3.6.0"), found, arch=arch, force=True, **options)
    assert_golden(planned, f"returns_{name}")


@pytest.mark.trees
@pytest.mark.nvcc
def test_a_return_that_came_first_is_an_entry_from_then_on(tmp_path):
    given = {"arch": "sm100", "force": True}
    first = list(results({"merge_sort.keys I32 I32": "trp_1.ld_0.ipt_12.tpb_8"}, "3.6.0"))
    planned = Planned(root("3.6.0"), first, **given)
    assert {*planned.decisions.values()} == {"add"}
    assert_taken_back(planned.data, planned.after)
    tree = changed_tree(tmp_path, "3.6.0", planned.after)
    assert Planned(tree, first, **given).plan.edits == ()
    other = {
        "merge_sort.keys I32 I32": "trp_0.ld_1.ipt_10.tpb_9",
        "merge_sort.keys I64 I32": "trp_1.ld_0.ipt_12.tpb_8",
    }
    again = Planned(tree, list(results(other, "3.6.0")), **given)
    assert [*again.decisions.values()] == ["update", "add"]
    assert again.effect().wrong == ()
    (after,) = again.after.values()
    assert b"if (key_size == 8)" in after
    assert after.count(b"compute_capability{10, 0}") == 1


@pytest.mark.trees
@pytest.mark.nvcc
def test_parts_of_a_policy_that_are_equal_stay_equal(tmp_path):
    given = {"arch": "sm100", "force": True}
    first = {"reduce.arg_extrema I64 arg_max": "ipt_18.tpb_256.ipv_1"}
    planned = Planned(root("3.6.0"), list(results(first, "3.6.0")), **given)
    tree = changed_tree(tmp_path, "3.6.0", planned.after)
    other = {
        "reduce.arg_extrema I64 arg_max": "ipt_12.tpb_128.ipv_2",
        "reduce.arg_extrema I32 arg_max": "ipt_20.tpb_224.ipv_1",
    }
    again = Planned(tree, list(results(other, "3.6.0")), **given)
    assert [*again.decisions.values()] == ["update", "add"]
    assert again.effect().wrong == ()
    (after,) = again.after.values()
    for counts in (b"128, 12, 4", b"224, 20, 2"):
        policy = b"ReducePassPolicy{%b, BLOCK_REDUCE_WARP_REDUCTIONS, LOAD_DEFAULT}" % counts
        assert after.count(policy) == 2


def assert_golden(planned, name):
    assert planned.effect().wrong == ()
    path = GOLDENS / f"{name}.txt"
    text = shown(planned)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.trees
@pytest.mark.nvcc
def test_each_workload_that_later_architectures_share_is_told_by_its_own_name():
    found = list(results({"reduce.sum F32 I32": SHARED, "reduce.sum F16 I32": SHARED}, "3.6.0"))
    planned = Planned(root("3.6.0"), found, arch="sm100", force=True)
    reasons = {in_words(one.benchmark, one.workload): one.reason for one in planned.plan.actions}
    assert set(planned.decisions.values()) == {"reject"}
    assert len(reasons) == 2
    for name, reason in reasons.items():
        assert reason.startswith(f"{name} on sm10"), reason
        assert reason.endswith(
            "falls through to the same return. Let later architectures inherit:"
            " --reaches sm103,sm107,sm110,sm120,sm121"
        )
