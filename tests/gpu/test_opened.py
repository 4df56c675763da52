"""Workloads that are ready: variants as policies, or as changed headers."""

import pytest

from policygen.app import measured_workloads
from policygen.errors import InputError
from policygen.gpu.opened import OpenedWorkload
from tests.gpu.real import opened, policies

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
TOPK, RADIX = r"cub\.bench\.topk\.keys", "cub.bench.radix_sort.keys"


@pytest.fixture
def runs(monkeypatch):
    """No workload needs a binding that says how it runs."""
    monkeypatch.setattr(measured_workloads, "runs_of", lambda *_: ())


@pytest.mark.slow
def test_variants_are_policies_where_the_algorithm_takes_them():
    classifier = policies(RADIX, T="I16", OffsetT="I32")
    workload = OpenedWorkload(classifier.meaning, classifier.space, ())
    assert workload.name == "cub.bench.radix_sort.keys T=I16 OffsetT=I32"
    found = workload.candidates(["ipt_20.tpb_384", "ipt_19.tpb_512", "ipt_20.tpb_385"])
    (made,) = found.made
    assert (made.label, made.includes) == ("ipt_20.tpb_384", ())
    assert made.policy == classifier.policy({"ipt": 20, "tpb": 384})
    assert found.base == ("ipt_19.tpb_512",)
    assert found.refused == {
        "ipt_20.tpb_385": "tpb = 385 is outside of 128:1024:32, the range of"
        " cub.bench.radix_sort.keys. If a wider range was searched, name its source or"
        " cccl_meta_bench.csv with --bench."
    }


def test_variants_are_changed_headers_where_it_does_not(runs):
    axes = ("KeyT=I32", "OffsetT=I32", "OutOffsetT=I32")
    (workload,) = opened("3.6.0", TOPK, axes).values()
    found = workload.candidates(["ipt_6.tpb_192.ld_1", "ipt_4.tpb_512.ld_2", "ipt_99.tpb_512.ld_2"])
    (made,) = found.made
    assert (made.label, made.policy, len(made.includes)) == ("ipt_6.tpb_192.ld_1", None, 1)
    assert found.base == ("ipt_4.tpb_512.ld_2",)
    assert found.refused["ipt_99.tpb_512.ld_2"].startswith("ipt = 99 is outside of 1:24:1")


def test_a_family_that_is_not_there_is_told(runs):
    found = opened("2.8.2", r"cub\.bench\.adjacent_difference", ("T=I32",))
    assert all(isinstance(one, InputError) for one in found.values())
    assert {one.message for one in found.values()}
