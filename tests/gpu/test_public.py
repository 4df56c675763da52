"""What variants mean for real policies of CUB 3.6.0: counts that are known, and by force."""

from dataclasses import replace

import pytest

from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.gpu.opened import takes_policies
from policygen.gpu.space import Classifier, SpaceCounts
from policygen.model.workload import as_label
from tests.gpu.real import policies, session
from tests.gpu.test_distinct import by_force
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
THREADS = range(128, 1025, 32)


@pytest.mark.parametrize(
    ("type_name", "pairs", "short"),
    [
        ("I8", 402, {}),
        ("F32", 402, {}),
        ("I64", 226, {3: [7]}),
        ("F64", 226, {3: [7]}),
        ("I128", 138, {2: range(8, 12), 3: range(12, 16)}),
    ],
)
def test_many_pairs_of_items_and_threads_are_the_same_after_scaling(type_name, pairs, short):
    """Of 522; 8-bit sums accumulate in 4 bytes. Each of two vector sizes makes a policy of it.

    2 or 3 items after scaling cannot be loaded as vectors of 4.
    """
    classifier = policies("cub.bench.reduce.sum", T=type_name, OffsetT="I32")
    told = classifier.classify()
    misaligned = {
        f"ipt_{items}.tpb_{threads}.ipv_2": f"{scaled} items of a thread"
        for scaled, all_items in short.items()
        for items in all_items
        for threads in THREADS
    }
    valid, distinct = 1044 - len(misaligned), 2 * pairs - len(short) * len(THREADS)
    assert classifier.counts() == SpaceCounts(1044, valid, distinct)
    assert (told.valid, len(told.distinct)) == (valid, distinct)
    assert {
        label: reason.partition(" are loaded as vectors of 4, which is misaligned")[0]
        for label, reason in told.refused.items()
    } == misaligned
    labels = [label for one in told.distinct for label in (one.label, *one.others)]
    assert sorted([*labels, *misaligned]) == sorted(map(as_label, classifier.space))
    pairs_of = {one.label.rpartition(".")[0] for one in told.distinct}
    assert len(pairs_of) == pairs


def test_parts_come_to_what_the_whole_does():
    classifier = policies("cub.bench.reduce.sum", T="F64", OffsetT="I32")
    found, refused = by_force(classifier.space, classifier.meaning)
    told = classifier.classify()
    assert {*told.refused} == {*refused} == {f"ipt_7.tpb_{threads}.ipv_2" for threads in THREADS}
    assert {(one.label, *one.others) for one in told.distinct} == {*map(tuple, found.values())}
    assert {tuple(sorted(one.policy.items())) for one in told.distinct} == {
        tuple(sorted(policy)) for policy in found
    }


LARGE = (
    "cub.bench.scan.exclusive.sum",
    "cub.bench.select.flagged",
    "cub.bench.copy.memcpy",
    "cub.bench.transform.fill",
    "cub.bench.segmented_sort.keys",
    "cub.bench.segmented_reduce.sum",
    "cub.bench.histogram.even",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(LARGE, LARGE[0]))
def test_parts_of_large_spaces_come_to_what_the_whole_does(name):
    classifier = policies(name)
    drawn = classifier.space.sample(300, seed=5)
    found, refused = by_force(drawn, classifier.meaning)
    told = classifier.classify(drawn)
    assert {*told.refused} == {*refused}
    assert {(one.label, *one.others) for one in told.distinct} == {*map(tuple, found.values())}
    counts = classifier.counts()
    assert counts.variants == classifier.space.count >= counts.valid >= counts.distinct > 1000


@pytest.mark.slow
def test_a_wait_for_nothing_ignores_how_long():
    classifier = policies("cub.bench.scan.exclusive.sum", T="I8", OffsetT="I32")
    variant = {"ipt": 16, "tpb": 256, "ns": 0, "dcid": 0, "l2w": 500, "trp": 1, "ld": 0}
    key = classifier.key
    assert key(variant) == key(variant | {"ns": 2000})
    assert key(variant) != key(variant | {"l2w": 505})
    assert key(variant | {"dcid": 1}) != key(variant | {"dcid": 1, "ns": 4})


@pytest.mark.slow
def test_a_tile_that_is_too_large_is_dropped_where_it_is_in_shared_memory():
    classifier = policies("cub.bench.scan.exclusive.sum", T="I8", OffsetT="I32")
    variant = {"ipt": 23, "tpb": 1024, "ns": 0, "dcid": 0, "l2w": 500, "trp": 1, "ld": 0}
    with pytest.raises(InputError) as refused:
        classifier.key(variant)
    assert refused.value.message == (
        "544 threads x 23 items x 4 bytes = 50,048 bytes,"
        " which BLOCK_LOAD_WARP_TRANSPOSE keeps in shared memory"
    )
    assert classifier.key(variant | {"trp": 0})
    counts = classifier.counts()
    assert counts == SpaceCounts(2_065_165_632, 1_855_484_064, 1_374_687_136)


@pytest.mark.parametrize(
    ("type_name", "changes", "violated"),
    [
        ("I32", {"ipt": 7, "tpb": 512, "bits": 6}, "((1 << bits) / 2 + 1) * 4 * tpb < 49152"),
        ("I32", {"ipt": 22, "tpb": 256, "bits": 6}, None),
        ("I32", {"ipt": 24, "tpb": 256, "bits": 6}, None),
        ("I32", {"ipt": 23, "tpb": 512, "bits": 5}, None),
        ("I64", {"ipt": 23, "tpb": 512, "bits": 5}, "ipt * tpb * KeyT <= 49152"),
    ],
)
def test_what_violates_a_constraint_is_refused(type_name, changes, violated):
    classifier = policies("cub.bench.segmented_sort.keys", T=type_name, OffsetT="I32")
    told = classifier.classify([classifier.possible()[0] | changes])
    assert [*told.refused.values()] == ([f"it violates {violated}"] if violated else [])


def test_parameters_of_a_constraint_are_counted_together():
    whole = policies("cub.bench.segmented_sort.keys", T="I64", OffsetT="I32")
    ranges = whole.space.ranges
    first = {label: ranges[label][:1] for label in ranges.keys() - {"ipt", "tpb", "bits"}}
    classifier = Classifier(replace(whole.space, only=first), whole.meaning)
    found, refused = by_force(classifier.space, whole.meaning)
    assert classifier.counts() == SpaceCounts(2610, 2610 - len(refused), len(found))
    assert 1000 < len(refused) < 2610


@pytest.mark.slow
def test_a_tile_that_has_another_place_is_not_dropped():
    counts = policies("cub.bench.select.if").counts()
    assert counts.valid == counts.variants


@pytest.mark.slow
def test_a_variant_that_is_base_is_told():
    told = policies("cub.bench.radix_sort.keys", T="I16", OffsetT="I32").classify()
    assert [one.label for one in told.distinct if one.is_base] == ["ipt_19.tpb_512"]


@pytest.mark.parametrize(
    ("version", "name", "takes"),
    [
        ("3.6.0", "cub.bench.reduce.sum", True),
        ("3.6.0", "cub.bench.topk.keys", False),
        ("3.2.0", "cub.bench.reduce.sum", False),
    ],
)
def test_a_policy_is_public_or_not(version, name, takes):
    cub = session(version).cub
    assert takes_policies(cub, benchmark_of(name, cub.bindings)) is takes
