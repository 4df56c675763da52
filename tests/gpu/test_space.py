from dataclasses import replace
from itertools import islice

import pytest

from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.gpu.space import space_of
from policygen.model.benchmarks import ParameterRange
from policygen.model.trees import BoundVersion
from policygen.model.workload import as_label, parse_label
from tests.gpu.pretended import REDUCE, space

SCAN = benchmark_of("cub.bench.scan.exclusive.sum", BoundVersion("3.6.0"))
COPY = benchmark_of("cub.bench.copy.memcpy", BoundVersion("3.6.0"))


def test_a_space_is_counted_and_not_gone_through():
    assert space_of(REDUCE).count == 18 * 29 * 2
    assert space_of(SCAN).count == 2_065_165_632
    assert space_of(COPY).count == 3_760_702_057_682_851_332_096


def test_the_order_of_a_space_is_that_of_its_numbers():
    found = space(ipt="1:3:1", tpb="32:64:32")
    assert list(found) == [found.at(index) for index in range(found.count)]
    assert found.at(1) == {"ipt": 1, "tpb": 64}
    assert found.at(5) == {"ipt": 3, "tpb": 64}


@pytest.mark.parametrize("index", [-1, 6])
def test_there_is_no_variant_beside_the_space(index):
    with pytest.raises(IndexError):
        space(ipt="1:3:1", tpb="32:64:32").at(index)


def test_the_first_variants_of_a_large_space_are_there_at_once():
    assert len(list(islice(space_of(COPY), 10))) == 10


@pytest.mark.parametrize("benchmark", [REDUCE, SCAN, COPY])
@pytest.mark.parametrize("count", [1, 100, 700])
def test_a_sample_has_different_variants_and_is_the_same_for_a_seed(benchmark, count):
    known = space_of(benchmark)
    first, again, other = (known.sample(count, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({as_label(one) for one in first}) == count
    assert all(one[label] in known.ranges[label] for one in first for label in known.labels)


def test_a_sample_of_more_than_there_are_is_all():
    known = space(ipt="1:3:1", tpb="32:64:32")
    assert known.sample(6, 1) == known.sample(60, 1) == list(known)


def test_a_space_that_is_given_stands_for_the_one_of_the_binding():
    given = ParameterRange(macro="TUNE_ITEMS", label="ipt", start=30, end=40, step=5)
    found = space_of(REDUCE, [given])
    assert found.count == 3
    assert [one.macro for one in found.given] == ["TUNE_ITEMS"]
    assert found.variant("ipt_35") == {"ipt": 35}
    assert not any(one.macro for one in space_of(REDUCE).given)


def test_a_parameter_that_the_bindings_do_not_know_is_refused():
    given = ParameterRange(macro="TUNE_X", label="x", start=1, end=2, step=1)
    with pytest.raises(InputError, match=r"has no parameter x\n  It has: ipt, tpb, ipv"):
        space_of(REDUCE, [given])


def test_a_benchmark_without_parameters_has_no_space():
    bare = REDUCE.model_copy(update={"parameters": {}})
    with pytest.raises(InputError, match="has no search space"):
        space_of(bare)


def test_a_label_is_read_in_any_order():
    known = space_of(REDUCE)
    assert list(known.variant("tpb_512.ipv_1.ipt_16").items()) == [
        ("ipt", 16),
        ("tpb", 512),
        ("ipv", 1),
    ]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("ipt_16.tpb_512", "does not name ipv"),
        ("ipt_16.tpb_513.ipv_1", "tpb = 513 is outside of 128:1024:32"),
        ("ipt_16.tpb_512.ipv_1.x_2", "has no parameter 'x'"),
        ("fast", "'fast' is not a variant label"),
    ],
)
def test_a_label_that_is_no_variant_is_refused(label, words):
    with pytest.raises(InputError, match=words):
        space_of(REDUCE).variant(label)


def test_what_is_made_a_label_is_read_again():
    values = {"ipt": 19, "bif": -4}
    assert as_label(values) == "ipt_19.bif_-4"
    assert parse_label(as_label(values)) == values


def test_only_some_values_of_a_range_may_be_meant():
    found = replace(space(ipt="1:16:3", tpb="32:96:32"), only={"ipt": (1, 4, 16)})
    assert found.count == 9
    assert found.ranges["ipt"] == (1, 4, 16)
    assert list(found) == [found.at(index) for index in range(9)]
    assert {one["ipt"] for one in found.sample(99, seed=1)} == {1, 4, 16}
    assert found.at(8) == {"ipt": 16, "tpb": 96}
