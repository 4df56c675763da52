"""Benchmarks for CUB 2.8 to 3.4 compile; the policy of a hub is what the variant's label says."""

import pytest

from policygen.app.benchmarks import new_benchmark
from policygen.bindings import load
from policygen.model.trees import BoundVersion
from policygen.model.workload import parse_label
from tests.own.checkouts import EARLIER_HELPER, make_benchmarks, place_in
from tests.own.test_hub_benchmark import CALLS, FLAGS, TREES, called, workload_of
from tests.own.test_new_benchmark_compiles import compiles
from tests.tiers import sampled, slow, without

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
SIZES = "[[size]]\nelements = 65536\n"
SCAN = f'algorithm = "DeviceScan::ExclusiveScan"\n[types]\nT = "F64"\nOffsetT = "I32"\n{SIZES}'
PAIRS = f'algorithm = "DeviceRadixSort::SortPairs"\n[types]\nKeyT = "I8"\nValueT = "I64"\n{SIZES}'
REDUCE = f'algorithm = "DeviceReduce::Reduce"\n[types]\nT = "I16"\n{SIZES}'
SORT = f'algorithm = "DeviceMergeSort::SortKeysCopy"\n[types]\nT = "F64"\n{SIZES}'
DELAYED = "ns_592.dcid_4.l2w_835"
# What a variant is where the test asks for no other: something that fits.
VALUES = {
    "dcid": 1, "ns": 500, "l2w": 400, "bits": 6, "pt": 300, "ra": 3, "ipmw": 9, "ipsw": 5,
    "tpsw": 2, "tpmw": 5, "trp": 1, "strp": 1, "mtrp": 1, "ltpb": 256, "stpw": 2, "mtpw": 32,
    "sipt": 8, "mipt": 8, "lipt": 16, "ipt": 9, "rle": 1, "mem": 1, "laid": 2, "ipv": 1,
}  # fmt: skip
HUB = "N12policy_hub_t"
"""In a kernel's name: the source's own, outside of all namespaces; CUB 3.2 has one of that name."""
CASES = {
    "scan": (
        SCAN,
        f"ipt_22.tpb_256.{DELAYED}.trp_1.ld_1",
        "policy_hub_t<double>",
        "ScanPolicyT",
        {
            "BLOCK_THREADS": 256,
            "ITEMS_PER_THREAD": 11,
            "LOAD_ALGORITHM": "cub::BLOCK_LOAD_WARP_TRANSPOSE",
            "STORE_ALGORITHM": "cub::BLOCK_STORE_WARP_TRANSPOSE",
            "LOAD_MODIFIER": "cub::LOAD_CA",
        },
    ),
    "radix_sort": (
        PAIRS,
        "ipt_20.tpb_384",
        "policy_hub_t<unsigned, int8_t, int64_t>",
        "OnesweepPolicy",
        {"BLOCK_THREADS": 384, "ITEMS_PER_THREAD": 10, "RADIX_BITS": 8},
    ),
    "reduce": (
        REDUCE,
        "ipt_10.tpb_256.ipv_2",
        "policy_hub_t<int>",
        "ReducePolicy",
        {"BLOCK_THREADS": 256, "ITEMS_PER_THREAD": 10, "VECTOR_LOAD_LENGTH": 4},
    ),
    "merge_sort": (
        SORT,
        "trp_0.ld_1.ipt_12.tpb_7",
        "policy_hub_t<double>",
        "MergeSortPolicy",
        {
            "BLOCK_THREADS": 128,
            "ITEMS_PER_THREAD": 6,
            "LOAD_MODIFIER": "cub::LOAD_LDG",
            "LOAD_ALGORITHM": "cub::BLOCK_LOAD_DIRECT",
        },
    ),
    "flagged": (
        FLAGS,
        f"trp_0.ld_1.ipt_9.tpb_320.{DELAYED}",
        "policy_hub_t",
        "SelectIfPolicyT",
        {"BLOCK_THREADS": 320, "ITEMS_PER_THREAD": 9, "LOAD_MODIFIER": "cub::LOAD_CA"},
    ),
}
"""A workload, a variant, its hub, the policy in that, and what it is."""
EVERY = [(version, name) for version in TREES for name in CASES]
EARLIER = ("2.8.2", "3.1.4")


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    found = {
        version: make_benchmarks(tmp_path_factory.mktemp("cccl"), version) for version in TREES
    }
    for tree in found.values():
        (tree / "nvbench_helper.cuh").write_text(EARLIER_HELPER)
    return found


def lines_of(parameters, values):
    return [f"#define {one.macro} {values[one.label]}" for one in parameters]


@pytest.mark.parametrize(
    ("version", "name"),
    sampled(EVERY, left=[one for one in EVERY if one[0] in EARLIER]),
)
def test_the_policy_is_what_the_label_says(trees, tmp_path, version, name):
    """Counts for elements of 4 bytes are scaled, and others are as they stand."""
    text, label, hub, policy, fields = CASES[name]
    workload = tmp_path / f"{name}.toml"
    workload.write_text(text)
    source = place_in(trees[version], f"mine/{name}.cu")
    (one,) = new_benchmark(workload, source, force=True).benchmarks
    values = parse_label(label)
    assert list(values) == [each.label for each in one.parameters]
    lines = [*lines_of(one.parameters, values), f"#include <{source.name}>"]
    lines += [f"using chosen = {hub}::MaxPolicy::{policy};"]
    lines += [f"static_assert(chosen::{path} == {value});" for path, value in fields.items()]
    ptx = compiles(trees[version], source, "\n".join([*lines, ""]), tmp_path)
    assert HUB in ptx


@pytest.mark.slow
def test_base_has_cubs_own_hub(trees, tmp_path):
    workload = tmp_path / "sum.toml"
    workload.write_text(SCAN)
    source = place_in(trees["3.2.0"], "mine/base.cu")
    new_benchmark(workload, source)
    text = f"#define TUNE_BASE 1\n#include <{source.name}>\n"
    ptx = compiles(trees["3.2.0"], source, text, tmp_path)
    assert "10policy_hubI" in ptx
    assert HUB not in ptx


@slow
@pytest.mark.parametrize("base", without([True, False], True))
@pytest.mark.parametrize(
    ("version", "call"),
    without(CALLS, *(one for one in CALLS if one[0] != TREES[-1])),
    ids=called,
)
def test_every_algorithm_compiles(trees, tmp_path, version, call, base):
    (like,) = (
        one
        for each in load.bound(BoundVersion(version))
        for one in each.benchmarks
        if one.name == call.like
    )
    workload = tmp_path / "other.toml"
    workload.write_text(workload_of(call, like))
    source = place_in(trees[version], "every/other.cu")
    (one,) = new_benchmark(workload, source, force=True).benchmarks
    threads = "7" if "merge_sort" in call.like else "256"
    values = {each.label: VALUES.get(each.label, 0) for each in one.parameters} | {"tpb": threads}
    lines = ["#define TUNE_BASE 1"] if base else lines_of(one.parameters, values)
    text = "\n".join([*lines, f"#include <{source.name}>", ""])
    assert (HUB in compiles(trees[version], source, text, tmp_path)) is not base
