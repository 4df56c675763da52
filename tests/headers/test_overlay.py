from dataclasses import replace

import pytest

from policygen.bindings.load import bound
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.headers.selectors.functions import find_aggregates, leaves, read_aggregate
from policygen.headers.user.policies import (
    _inherited,
    field_rules,
    overlay,
    qualified,
    selector_for,
    selectors_named,
)
from policygen.model.selection import Whole
from policygen.model.trees import BoundVersion
from policygen.model.workload import parse_label
from tests.emit.made import structs
from tests.planning.wanted import benchmark

pytestmark = pytest.mark.trees
VERSION = "3.6.0"
SELECTED = {
    "SelectAlgorithm": "::cub::SelectAlgorithm::lookback",
    "LookbackDelayAlgorithm": "::cub::LookbackDelayAlgorithm::no_delay",
    "ScanAlgorithm": "::cub::ScanAlgorithm::lookahead",
    "TransformAlgorithm": "::cub::TransformAlgorithm::ublkcp",
    "RadixSortAlgorithm": "::cub::RadixSortAlgorithm::onesweep",
    "detail::LoadPrefetch": "::cub::detail::LoadPrefetch::none",
    "bool": "true",
    "int": "1",
    "unsigned int": "2",
}
"""What CUB may select, by the type of the field; other enumerators stand in `cub` itself."""


def values(name, label, version=VERSION, **sizes):
    """The whole policy that a variant of a benchmark is."""
    one = selector_for(benchmark(version, name), BoundVersion(version))
    selects = read_aggregate(structs(version), one.selects)
    base = Whole({path: SELECTED.get(of, "::cub::X") for path, of in leaves(selects)}, {}, sizes)
    fields = read_aggregate(structs(version), one.selector.policy)
    return overlay(one, fields, base, one.benchmark, parse_label(label))


def changed(name, label, **more):
    """The fields that it changes."""
    return {
        p: v
        for p, v in values(name, label, **more).items()
        if v not in {*SELECTED.values(), "::cub::X"}
    }


def test_both_passes_of_a_reduction_get_what_was_measured():
    found = changed("reduce.sum", "ipt_20.tpb_512.ipv_2", AccumT=4)
    wanted = {
        "threads_per_block": "512",
        "items_per_thread": "20",
        "vec_size": "4",
        "reduce_algorithm": "::cub::BLOCK_REDUCE_WARP_REDUCTIONS",
        "load_modifier": "::cub::LOAD_DEFAULT",
    }
    assert found == {
        f"{of}.{name}": v for of in ("multi_tile", "single_tile") for name, v in wanted.items()
    }


def test_items_are_scaled_as_the_benchmark_scales_them_and_threads_are_cut_to_what_fits():
    found = values("reduce.sum", "ipt_20.tpb_1024.ipv_1", AccumT=16)
    assert found["multi_tile.items_per_thread"] == "5"
    assert found["multi_tile.threads_per_block"] == "640"


def test_a_delay_is_three_fields_and_one_without_a_magic_number_has_none():
    label = "trp_0.ld_0.ipt_7.tpb_128.ns_300.dcid_{}.l2w_500"
    found = values("select.if", label.format(1))
    delay = [found[f"lookback.lookback_delay.{n}"] for n in ("kind", "delay", "l2_write_latency")]
    assert delay == ["::cub::LookbackDelayAlgorithm::fixed_delay", "300", "500"]
    found = values("select.if", label.format(0))
    delay = [found[f"lookback.lookback_delay.{n}"] for n in ("kind", "delay", "l2_write_latency")]
    assert delay == ["::cub::LookbackDelayAlgorithm::no_delay", "0", "500"]


def test_partition_has_the_policy_of_select_under_other_names():
    found = values("partition.if", "trp_1.ld_1.ipt_7.tpb_128.ns_300.dcid_1.l2w_500")
    assert found["algorithm"] == "::cub::PartitionAlgorithm::lookback"
    assert found["lookback.threads_per_block"] == "128"
    assert "lookback._load_prefetch" not in found


def test_a_prefetch_that_no_entry_of_cub_can_hold_is_expressed():
    found = values("select.flagged", "trp_1.ld_1.ipt_7.tpb_128.ns_300.dcid_1.l2w_500.pf_3")
    assert found["lookback._load_prefetch"] == "::cub::detail::LoadPrefetch::bulk_l2"


def test_products_sums_and_biases():
    label = "tpb_128.bpt_3.tlevbpt_4.ltpb_192.lbbpt_8.ppb_1.wlt_64.blt_2048"
    label += ".blns_4.bldcid_1.bll2w_5.buns_8.budcid_2.bul2w_10"
    found = values("copy.memcpy", label)
    assert found["lookback.small_buffer.block_level_tile_size"] == str(192 * 8)
    found = values("scan.exclusive.sum.lookahead", "wrps_4.lbi_3.ipt_64.lbs_-1.bis_2")
    assert found["algorithm"] == "::cub::ScanAlgorithm::lookahead"
    assert found["lookahead.items_per_thread"] == "63"
    assert found["lookahead.lookahead_stages"] == "-1"
    found = values("transform.fib", "bif_-16.alg_1.tpb_256.unrl_3.pref_2.vsp2_2")
    assert found["min_bytes_in_flight"] == "-15"
    assert found["algorithm"] == "::cub::TransformAlgorithm::vectorized"
    assert found["vectorized.items_per_thread"] == "12"
    assert found["prefetch.prefetch_byte_stride"] == "64"


def test_what_a_variant_cannot_mean_is_refused():
    with pytest.raises(InputError, match="alg = 4 is invalid"):
        values("transform.fib", "bif_0.alg_4.tpb_256.unrl_3.pref_2.vsp2_2")


@pytest.mark.parametrize(
    ("label", "sizes", "told"),
    [
        (
            "ipt_20.tpb_1056.ipv_1",
            {"AccumT": 4},
            "multi_tile.threads_per_block = 1056 is impossible\n  A block has 1 to 1024 threads.",
        ),
        (
            "ipt_-19.tpb_256.ipv_1",
            {"AccumT": 4},
            "ipt = -19 is invalid\n  The value is a number of items.",
        ),
        (
            "ipt_20.tpb_256.ipv_1",
            {"AccumT": 1 << 20},
            "multi_tile.threads_per_block = 0 is impossible\n  A block has 1 to 1024 threads.",
        ),
    ],
)
def test_a_count_that_no_kernel_can_have_is_refused(label, sizes, told):
    with pytest.raises(InputError) as caught:
        values("reduce.sum", label, **sizes)
    assert str(caught.value) == told


def test_a_field_that_the_policy_lacks_is_refused(monkeypatch):
    def unknown(one):
        return {"nothing": field_rules(one)["algorithm"]}

    monkeypatch.setattr(
        "policygen.headers.user.policies.field_rules",
        lambda one: {"nothing": one.selector.members["algorithm"]},
    )
    with pytest.raises(InputError, match="RadixSortPolicy has no field nothing"):
        values("radix_sort.keys", "ipt_8.tpb_128", DominantT=4)


@pytest.mark.parametrize("version", ["3.5.0", "3.6.0"])
def test_rules_name_fields_of_public_policies(version):
    names = {s.name for a in bound(BoundVersion(version)) for s in a.selectors}
    assert names
    for name in names:
        serves = list(selectors_named(name, BoundVersion(version)))
        assert (
            len({(one.default, one.selects, one.selector.policy, one.roles) for one in serves}) == 1
        )
        fields = [path for path, _ in leaves(read_aggregate(structs(version), serves[0].selects))]
        for one in serves:
            for path in [*field_rules(one), *one.selector.copies, *one.selector.copies.values()]:
                assert any(f == path or f.startswith(f"{path}.") for f in fields), (name, path)
            labels = {rule.parameter for rule in field_rules(one).values()}
            labels |= {label for rule in field_rules(one).values() for label in rule.delay or ()}
            labels |= {str(r.times) for r in field_rules(one).values() if isinstance(r.times, str)}
            assert set(one.benchmark.parameters) <= labels, (one.benchmark.name, labels)


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        ("LOAD_CA", "::cub::LOAD_LDG", "::cub::LOAD_CA"),
        ("b", "::cub::E::a", "::cub::E::b"),
        ("7", "8", "7"),
        ("true", "false", "true"),
    ],
)
def test_an_enumerator_stands_in_the_scope_of_the_one_that_it_replaces(value, like, text):
    assert qualified(value, like) == text


def test_a_field_that_a_macro_of_the_users_decides_is_left_to_it():
    code = b"struct P\n{\n  int a;\n#if X\n  bool b = false;\n#else\n  bool b = true;\n#endif\n};\n"
    assert [field.name for field in read_aggregate(find_aggregates({"h": code}), "P")] == ["a"]


def test_a_policy_that_the_tree_does_not_have_is_an_error():
    with pytest.raises(InputError, match="the tree has no policy P"):
        read_aggregate({}, "P")


def test_a_benchmark_without_variants_or_a_member_without_a_field_is_refused():
    version = BoundVersion("3.6.0")
    topk = benchmark_of("cub.bench.topk.keys", version)
    fixed = topk.model_copy(update={"parameters": {}})
    with pytest.raises(InputError, match="the benchmark has no search space and therefore no"):
        selector_for(fixed, version)
    selector = selector_for(benchmark_of("cub.bench.radix_sort.keys", version), version)
    bare = replace(selector, site=selector.site.model_copy(update={"values": {}, "delay": ()}))
    with pytest.raises(InputError, match=r"tuning_radix_sort\.cuh: the policy has no \w+"):
        list(_inherited(bare))
