"""Guarded returns as reviewed: what is written for two workloads of every writable benchmark.

Only the added lines are kept, they are policygen's own, and how many lines go.
UPDATE_GOLDENS=1 writes them anew.
"""

import os
from collections import defaultdict

import pytest

from policygen.model.workload import in_words
from tests.planning.test_every_family import same_for_all, winners
from tests.planning.test_goldens import GOLDENS, results, shown
from tests.planning.wanted import Planned, assert_taken_back
from tests.probing import changed_tree, root
from tests.tiers import slow

CASES = [("3.6.0", "sm90", "only"), ("3.5.0", "sm100", "later")]
SHARED = "ipt_18.tpb_256.ipv_1"
DELAY = "ns_500.dcid_1.l2w_700"
FIRST, SECOND = f"trp_1.ld_0.ipt_18.tpb_256.{DELAY}", f"trp_0.ld_1.ipt_16.tpb_384.{DELAY}"
KEYED = {"I32": f"ipt_14.tpb_512.{DELAY}.trp_1.ld_1", "F32": f"ipt_15.tpb_384.{DELAY}.trp_1.ld_1"}
BY_TYPE = {
    "split": (
        "sm100",
        {"collisions": "split"},
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
        {"narrow": True},
        {
            "select.if I32 false": FIRST,
            "select.if F32 false": None,
            "select.if I64 false": FIRST,
            "select.if F64 false": None,
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


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("name", BY_TYPE)
def test_returns_for_types_are_written_as_reviewed(name):
    arch, options, wanted = BY_TYPE[name]
    found = list(results(wanted, "3.6.0"))
    planned = Planned(root("3.6.0"), found, arch=arch, force=True, **options)
    assert_golden(planned, f"returns_{name}")


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
            "falls through to the same return. Let later architectures inherit: --reach later"
        )
