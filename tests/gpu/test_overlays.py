"""Variants of trees whose policies are no one's but CUB's: headers as an apply writes them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from policygen.errors import InputError
from policygen.gpu.opened import EntryWorkload
from policygen.gpu.space import Classifier, space_of
from policygen.trees.manifest import shipped
from tests.gpu.real import header_workload
from tests.gpu.test_distinct import by_force
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


@pytest.fixture(scope="module")
def topk():
    return header_workload("3.6.0", "cub.bench.topk.keys", KeyT="I32", OffsetT="I32")


@pytest.fixture(scope="module")
def reduce():
    return header_workload("3.0.1", "cub.bench.reduce.sum", T="I64", OffsetT="I32")


def headers_in(folders):
    tunings = [Path(folder) / shipped().tree.tunings for folder in folders]
    return {path.name: path.read_text() for folder in tunings for path in folder.iterdir()}


@pytest.mark.slow
def test_a_variant_is_a_header_that_the_compiler_heeds(topk):
    label = "ipt_6.tpb_192.ld_1"
    made = topk.headers(space_of(topk.benchmark), label)
    shown = {"threads": 192, "items": 6, "load_algorithm": "BLOCK_LOAD_WARP_TRANSPOSE"}
    assert shown.items() <= made.values.items()
    (text,) = headers_in(made.folders).values()
    assert label in text


@pytest.mark.slow
def test_a_variant_that_changes_nothing_is_base(topk):
    space = space_of(topk.benchmark)
    told = Classifier(space, topk).classify()
    (base,) = (one.label for one in told.distinct if one.is_base)
    assert base == "ipt_4.tpb_512.ld_2"
    assert topk.all_headers(space, [base])[base].folders == ()


@pytest.mark.slow
def test_what_is_no_variant_costs_itself_alone(topk):
    labels = ["ipt_99.tpb_512.ld_2", "ipt_4.tpb_512.ld_2"]
    found = topk.all_headers(space_of(topk.benchmark), labels)
    assert isinstance(found["ipt_99.tpb_512.ld_2"], InputError)
    assert found["ipt_4.tpb_512.ld_2"].folders == ()


@pytest.mark.slow
def test_what_the_compiler_does_not_heed_is_refused(topk):
    deaf = replace(topk, select=lambda *_: topk.spot.selected.values)
    label = "ipt_6.tpb_192.ld_1"
    differs = r"tuning_topk.cuh cannot express ipt_6.*threads 512, not 192,"
    with pytest.raises(InputError, match=differs):
        deaf.headers(space_of(topk.benchmark), label)


@pytest.mark.slow
def test_entries_come_to_policies_in_parts(reduce):
    """8 bytes: of 522 pairs 226 differ, as in trees that have public policies.

    29 blocks of threads with 3 items each cannot load vectors of 4.
    """
    classifier = Classifier(space_of(reduce.benchmark), reduce)
    found, refused = by_force(classifier.space, reduce)
    told = classifier.classify()
    assert {*told.refused} == {*refused} == {f"ipt_7.tpb_{n}.ipv_2" for n in range(128, 1025, 32)}
    assert {(one.label, *one.others) for one in told.distinct} == {*map(tuple, found.values())}
    assert classifier.counts().distinct == len(told.distinct) == 2 * 226 - 29


def test_a_tile_of_an_entry_has_to_fit():
    meant = header_workload("3.0.1", "cub.bench.partition.three_way", T="I64", OffsetT="I32")
    variant = {"trp": 1, "ipt": 12, "tpb": 1024, "ns": 0, "dcid": 0, "l2w": 0}
    with pytest.raises(InputError, match="98,304 bytes"):
        meant.policy(variant)
    assert meant.policy(variant | {"trp": 0})["threads"] == "1024"
    assert meant.policy(variant | {"tpb": 512})["threads"] == "512"


@slow
def test_an_entry_of_an_architecture_without_any_is_made(reduce):
    assert isinstance(reduce, EntryWorkload)
    label = "ipt_7.tpb_128.ipv_1"
    made = reduce.headers(space_of(reduce.benchmark), label)
    shown = {"threads": 128, "items": 3, "items_per_vec_load": 2, "load_modifier": "LOAD_DEFAULT"}
    assert shown.items() <= made.values.items()
    (text,) = headers_in(made.folders).values()
    assert "sm90_tuning" in text


def test_a_variant_must_get_its_values(monkeypatch):
    values = {"threads": 512}
    spot = SimpleNamespace(
        header="tuning_topk.cuh",
        selected=SimpleNamespace(values=values),
        unsaid=lambda *_: {},
    )
    known = SimpleNamespace(variant=lambda _: {"tpb": 192})
    monkeypatch.setattr(EntryWorkload, "expected", lambda *_: {"threads": 192})
    monkeypatch.setattr(EntryWorkload, "_changed_headers", lambda *_: {})
    deaf = EntryWorkload(spot, None, ("", ()), "sm90", None, None, lambda *_: values)
    with pytest.raises(InputError, match="cannot express tpb_192: the workload gets threads 512,"):
        deaf.headers(known, "tpb_192")
