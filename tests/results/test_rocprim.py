"""What rocPRIM's benchmarks and its tuner write: each file is read, or refused with its place."""

import math
from pathlib import Path

import numpy as np
import pytest

from policygen.errors import PolicygenError
from policygen.results.tuners import suites
from policygen.results.tuners.formats import TunedFailure, TunedTimes
from policygen.results.tuners.points import spelled_alike
from policygen.results.tuners.suites import (
    SuiteFacts,
    gather_suite,
    suite_arch,
    suite_gpu,
    suite_sizes,
)
from policygen.rocprim import result_names
from tests.results import tuner_files
from tests.results.rocprim_files import (
    ALGORITHMS,
    EXAMPLES,
    REDUCE,
    SIZE,
    UPDATE,
    aggregate,
    benchmarks,
    cache,
    name_of,
    row,
    text_of,
)
from tests.results.tuned_read import read, refused

ONE = {("reduce", "key_type:int"): {"bs": [128, 256], "ipt": [8]}}
NAME = name_of("reduce", "key_type:int", {"bs": 64, "ipt": 4}, "json")
MERGE = "block_size_x=128,ipt=4"


def gathered(tmp_path, *made, **facts):
    return gather_suite(
        read(tmp_path, *made), SuiteFacts(**{"gpu": "MI300X", "arch": "gfx942", **facts})
    )


def unsaid(tmp_path, *made, **facts):
    with pytest.raises(PolicygenError) as error:
        gathered(tmp_path, *made, **facts)
    return str(error.value).replace(f"{tmp_path}/", "")


def rows(*more, **context):
    made = benchmarks(ONE, repetitions=1, **context)
    made["benchmarks"] += more
    return made


def entry(tmp_path, *more):
    """What is said of the configuration that the rows are of."""
    (found,) = read(tmp_path, rows(*more))
    return [one for one in found.entries if one.values == {"bs": 64, "ipt": 4}]


def test_a_file_says_many_kernels(tmp_path):
    found = read(tmp_path, benchmarks())
    assert [(one.kernel, dict(one.workload)) for one in found] == [
        ("device_reduce", {"key_type": "int"}),
        ("device_reduce", {"key_type": "rocprim::half"}),
        ("device_scan", {"exclusive": "true", "value_type": "float"}),
        (
            "device_radix_sort_onesweep",
            {"key_type": "int", "value_type": "custom_type<int,int>"},
        ),
        (
            "device_merge_sort_block_sort",
            {"key_type": "int8_t", "value_type": "rocprim::empty_type"},
        ),
        ("device_histogram", {"active_channels": "3", "channels": "4", "value_type": "uint8_t"}),
    ]
    first = found[0]
    assert (first.library, first.program, first.arch) == ("rocprim", "Google Benchmark", "gfx942")
    assert first.device == "AMD Instinct MI300X (8192, 304, eccon)"
    assert (first.size, first.clocks, len(first.entries)) == (str(SIZE), (2100, 1300), 9)
    base, one = first.entries[:2]
    assert (base.is_default, dict(base.values), one.is_default) == (True, {}, False)
    assert one.values == {"bs": 128, "ipt": 8, "method": "raking_reduce"}
    assert len(one.outcome.samples) == 5
    assert one.outcome.mean is None
    assert one.work == pytest.approx(10 * SIZE)


@pytest.mark.parametrize("spelling", ["json", "txt"])
@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_all_spellings_and_units_say_the_same(tmp_path, spelling, unit):
    made = benchmarks(spelling=spelling)
    scale = {"ns": 1e6, "us": 1e3, "ms": 1.0, "s": 1e-3}[unit]
    for one in made["benchmarks"]:
        one |= {"time_unit": unit, "real_time": one["real_time"] * scale}
    for one, other in zip(read(tmp_path, made), read(tmp_path, benchmarks()), strict=True):
        assert (one.kernel, one.workload) == (other.kernel, other.workload)
        for here, there in zip(one.entries, other.entries, strict=True):
            assert here.values == there.values
            assert here.outcome.samples == pytest.approx(there.outcome.samples)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"real_time": 0}, "its time, 0, is not a plausible kernel time"),
        ({"real_time": -2.0}, "its time, -2.0, is not a plausible kernel time"),
        ({"real_time": math.nan}, "its time, NaN, is not a plausible kernel time"),
        ({"real_time": math.inf}, "its time, Infinity, is not a plausible kernel time"),
        ({"real_time": 10**400}, "its time, a number of more than 63 bits, is not a plausible"),
        ({"real_time": "2"}, "its time, '2', is not a plausible kernel time"),
        ({"real_time": None}, "its time, null, is not a plausible kernel time"),
        ({"time_unit": "weeks"}, "its time_unit, 'weeks', is not a unit"),
        ({"time_unit": []}, "its time_unit, a list, is not a unit"),
        ({"items_per_second": 0.0}, "its items_per_second, 0.0, is not a rate"),
        ({"bytes_per_second": 0}, "its bytes_per_second, 0, is not a rate"),
        ({"bytes_per_second": math.inf}, "its bytes_per_second, Infinity, is not a rate"),
        ({"bytes_per_second": 10**400}, "its bytes_per_second, a number of more than 63 bits"),
        ({"items_per_second": True}, "its items_per_second, true, is not a rate"),
        ({"error_occurred": True, "error_message": "out\x1b[2J"}, "Google Benchmark: out\\x1b[2J"),
        ({"error_occurred": True}, "Google Benchmark: it failed"),
        ({"skipped": True, "skip_message": "too large"}, "Google Benchmark: too large"),
    ],
)
def test_what_is_no_time_is_no_measurement(tmp_path, cells, reason):
    """Also where other repetitions have one."""
    (found,) = entry(tmp_path, row(NAME, 1.0), {**row(NAME, 1.0), **cells}, row(NAME, 1.0))
    assert isinstance(found.outcome, TunedFailure)
    assert found.outcome.reason.startswith(reason)
    assert found.place == "benchmarks[4]"


def test_a_row_without_a_time_is_no_measurement(tmp_path):
    made = row(NAME, 1.0)
    del made["real_time"]
    (found,) = entry(tmp_path, made)
    assert found.outcome == TunedFailure("untimed", "it has no time")


def test_aggregates_count_where_there_is_nothing_else(tmp_path):
    both = (aggregate(NAME, "mean", 7.0), aggregate(NAME, "stddev", 0.5))
    (found,) = entry(tmp_path, row(NAME, 2.0), row(NAME, 4.0), *both)
    assert found.outcome == TunedTimes(None, (0.002, 0.004))
    (found,) = entry(tmp_path, *both)
    assert found.outcome == TunedTimes(0.007, (), 0.0005)
    bare = [{**one, "run_type": None} for one in both]
    for one in bare:
        del one["run_type"], one["aggregate_name"]
    (found,) = entry(tmp_path, *bare)
    assert found.outcome == TunedTimes(0.007, (), 0.0005)
    (found,) = entry(tmp_path, aggregate(NAME, "median", 7.0))
    assert found.outcome == TunedFailure("untimed", "it has no time")
    (found,) = entry(tmp_path, {**aggregate(NAME, "mean", 7.0), "real_time": 0.0})
    assert found.outcome.reason.startswith("its time, 0.0, is not a plausible")
    (found,) = entry(tmp_path, both[0])
    assert found.outcome.deviation is None


def test_a_mean_does_not_heal_repetitions_that_failed(tmp_path):
    broken = {**row(NAME, 1.0), "real_time": 0.0}
    (found,) = entry(tmp_path, broken, aggregate(NAME, "mean", 1.0))
    assert isinstance(found.outcome, TunedFailure)


CHANGES = [
    ({"context": []}, "0.json: context is a list, not an object"),
    ({"benchmarks": {}}, "0.json: benchmarks is an object, not a list"),
    ({"benchmarks": []}, "0.json: there is no benchmark\n"),
    ({"benchmarks": [7]}, "0.json: benchmarks[0] is a number, not an object"),
    ({"benchmarks": [{}]}, "0.json: benchmarks[0] name is nothing, not a string"),
    (
        {"benchmarks": [row("device,reduce,int,<256>/manual_time", 1.0)]},
        "0.json: benchmarks[0] is called 'device,reduce,int,<256>/manual_time': it does not name"
        " what ran\n  Names that say it are written with: --name_format json",
    ),
    (
        {"benchmarks": [row("{\x1b\u202e}", 1.0)]},
        "0.json: benchmarks[0] is called '{\\x1b\\u202e}'",
    ),
]


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_what_is_no_result_is_refused_with_its_place(tmp_path, change, told):
    assert refused(tmp_path, {**rows(), **change}).startswith(told)


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (
            {"hdp_gcn_arch_name": "sm_90"},
            "context hdp_gcn_arch_name, 'sm_90', is not an AMD architecture",
        ),
        ({"hdp_gcn_arch_name": 942}, "context hdp_gcn_arch_name is a number, not a string"),
        ({"hdp_name": "x\x1b[2J"}, "context hdp_name is not a name of at most 200 visible"),
        ({"date": ["x"]}, "context date is a list, not a string"),
    ],
)
def test_a_context_is_checked(tmp_path, context, told):
    assert refused(tmp_path, rows(**context)).startswith(f"0.json: {told}")


@pytest.mark.parametrize(
    ("context", "device", "arch"),
    [
        ({}, "AMD Instinct MI300X (8192, 304, eccon)", "gfx942"),
        ({"hdp_ecc_enabled": "0"}, "AMD Instinct MI300X (8192, 304, eccoff)", "gfx942"),
        ({"hdp_ecc_enabled": None}, "AMD Instinct MI300X (8192, 304)", "gfx942"),
        ({"hdp_memory_bus_width": "x"}, "AMD Instinct MI300X", "gfx942"),
        ({"hdp_name": ""}, "gfx942 (8192, 304, eccon)", "gfx942"),
        ({"hdp_gcn_arch_name": None, "gcnArchName": "gfx90a"}, None, "gfx90a"),
        ({"hdp_gcn_arch_name": "", "hdp_name": None}, None, None),
    ],
)
def test_a_context_names_the_gpu(tmp_path, context, device, arch):
    (found,) = read(tmp_path, rows(**context))
    assert found.arch == arch
    assert device is None or found.device == device


def test_clocks_that_no_gpu_has_are_left_out(tmp_path):
    (found,) = read(tmp_path, rows(hdp_clock_rate="9" * 18, hdp_memory_clock_rate=[]))
    assert found.clocks == (0, 0)


def test_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(result_names, "MOST_ENTRIES", 2)
    assert refused(tmp_path, rows()) == "0.json: more than 2 benchmarks"
    monkeypatch.undo()
    monkeypatch.setattr(suites, "MOST_WORKLOADS", 5)
    told = unsaid(tmp_path, benchmarks())
    assert told.startswith("0.json: 6 workloads, but at most 5 are read\n  Import some of them")
    monkeypatch.setattr(suites, "MOST_ALGORITHMS", 4)
    assert unsaid(tmp_path, benchmarks()).startswith("0.json: 5 algorithms, but at most 4 are re")


def test_axes_of_an_algorithm_are_bounded(tmp_path):
    several = {
        ("reduce", ",".join(f"a{start}{n}:1" for n in range(9))): {"bs": [1, 2]} for start in "xy"
    }
    told = "0.json: device_reduce has 18 axes in all files, but at most 16 are possible"
    assert unsaid(tmp_path, benchmarks(several)) == told


def test_deep_json_has_one_message(tmp_path):
    made = text_of(rows()).replace('"threads": 1', '"threads": ' + "[" * 200_000)
    assert refused(tmp_path, made).startswith("0.json: nested more deeply than the limit of 64")


def test_a_cache_of_the_tuner_names_itself(tmp_path):
    (found,) = read(tmp_path, cache())
    assert (found.library, found.program, found.kernel) == (
        "rocprim",
        "Kernel Tuner",
        "device_merge",
    )
    assert found.workload == {"key_type": "rocprim::int128_t", "value_type": "rocprim::empty_type"}
    assert (found.device, found.arch, found.size) == (None, "gfx942", str(SIZE))
    (found,) = read(tmp_path, cache(gpu="mi300x"))
    assert found.device == "mi300x"


def test_a_cache_without_its_keys_is_one_of_an_own_kernel(tmp_path):
    (found,) = read(tmp_path, tuner_files.document())
    assert found.library == ""
    made = tuner_files.document(space={"algo_name": [1], "arch_name": [2]})
    (found,) = read(tmp_path, made)
    assert (found.library, found.kernel) == ("", "vector_add")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"algo_name": "A B"},
            "0.json: 'A B' is not the name of an algorithm\n  Its tuner writes names",
        ),
        ({"algo_name": None}, "0.json: '' is not the name of an algorithm"),
        ({"arch_name": "sm90"}, "0.json: arch_name, 'sm90', is not an AMD architecture"),
        ({"key_type": "in;t"}, "0.json: key_type, 'in;t', is not a type or number"),
        ({"gpu": 3}, "0.json: gpu is a number, not a string"),
    ],
)
def test_a_cache_is_checked(tmp_path, more, told):
    assert refused(tmp_path, cache(**more)).startswith(told)


def test_layouts_of_segments_are_sizes(tmp_path):
    space = {"ipt": [4, 8], "segment_count": [10, 100], "segment_length": [30]}
    made = cache(algorithm="device_segmented_radix_sort", space=space)
    found = read(tmp_path, made)
    assert [(one.size, list(one.parameters), len(one.entries)) for one in found] == [
        ("10x30", ["ipt"], 2),
        ("100x30", ["ipt"], 2),
    ]
    (kernel,) = gathered(tmp_path, made, base="ipt=4").kernels
    assert set(kernel.sizes.values()) == {"10x30", "100x30"}
    alone = cache(space={"segment_count": [10]})
    assert refused(tmp_path, alone) == "0.json: it has no parameter besides segment_count"
    odd = cache(space={"ipt": [4], "segment_count": ["many"]})
    assert refused(tmp_path, odd).startswith("0.json: cache '4,many': segment_count, 'many', is no")


def test_a_run_by_default_is_base(tmp_path):
    found = gathered(tmp_path, benchmarks())
    assert {one.base_from for one in found.kernels} == {"default"}
    assert (len(found.kernels), found.left_out, found.refused) == (6, (), ())
    kernel = next(one for one in found.kernels if one.algorithm == "rocprim.device_reduce")
    assert (kernel.base, kernel.warmup, kernel.workload) == ("base", 0, {"key_type{ct}": "int"})
    assert [one.label for one in kernel.points][:2] == ["base", "bs_128.ipt_8.method_0"]
    assert all(len(one.samples) == 5 for one in kernel.points)


def test_base_may_stand_in_another_file(tmp_path):
    tuned, plain = benchmarks(default=False), benchmarks(seed=2, default="only", spelling="txt")
    found = gathered(tmp_path, tuned, plain)
    assert len(found.kernels) == 6
    assert {len(one.files) for one in found.kernels} == {2}


def test_words_have_the_same_numbers_whatever_comes_first(tmp_path):
    turned = {key: {**space} for key, space in ALGORITHMS.items()}
    turned["reduce", "key_type:int"]["method"] = ["using_warp_reduce", "other", "raking_reduce"]
    one, other = benchmarks(), benchmarks(turned, seed=3)
    spaces = [
        {kernel.algorithm: kernel.space for kernel in gathered(tmp_path, *files).kernels}
        for files in ((one, other), (other, one))
    ]
    assert spaces[0] == spaces[1]
    (method,) = [one for one in spaces[0]["rocprim.device_reduce"].parameters if not one.plain]
    assert method.numbers == {'"other"': 0, '"raking_reduce"': 1, '"using_warp_reduce"': 2}


def test_repeated_runs_are_joined_and_copies_are_none(tmp_path):
    found = gathered(tmp_path, benchmarks(ONE), benchmarks(ONE, seed=2), benchmarks(ONE))
    (kernel,) = found.kernels
    assert [len(one.samples) for one in kernel.points] == [10, 10, 10]
    assert kernel.copies == 3


def test_a_tree_says_what_is_in_use(tmp_path):
    asked = []

    def current(benchmark, workload, arch):
        asked.append((benchmark, dict(workload), arch))
        return {"bs": "256", "ipt": "16", "method": "block_reduce_algorithm::raking_reduce"}

    only = {("reduce", "key_type:int"): REDUCE}
    (kernel,) = gathered(tmp_path, benchmarks(only, default=False), current=current).kernels
    assert asked == [("rocprim.device_reduce", {"key_type": "int"}, "gfx942")]
    assert (kernel.base, kernel.base_from) == ("bs_256.ipt_16.method_0", "tree")
    assert [one.label for one in kernel.points].count("base") == 1
    # A run by default counts first, and the tree says what it was.
    (kernel,) = gathered(tmp_path, benchmarks(only), current=current).kernels
    assert (kernel.base, kernel.base_from) == ("bs_256.ipt_16.method_0", "default")
    assert len(kernel.points) == 9


@pytest.mark.parametrize(
    ("entry", "base", "told"),
    [
        ({"bs": "64"}, "", "the current configuration was not measured: bs=64"),
        ({"bs": "128", "x": "1"}, "", None),
        ({}, "", "the current configuration was not measured: "),
        (
            None,
            "",
            "the current configuration is unknown\n  Also give the results of the benchmarks'",
        ),
        (None, "bs=128", None),
        (None, "bs_128.ipt_8", None),
        (None, "bs=64", "--base: bs has no value '64' in what was tuned"),
        ({"bs": "64"}, "bs=128", None),
        (
            {"bs": "64"},
            "x=1",
            "the current configuration was not measured: bs=64; --base 'x=1' does not",
        ),
    ],
)
def test_base_is_what_is_in_use_or_what_is_said(tmp_path, entry, base, told):
    made = benchmarks(ONE, default=False)
    facts = {"base": base, "current": lambda *_: entry}
    if told is None:
        (kernel,) = gathered(tmp_path, made, **facts).kernels
        assert kernel.base == "bs_128.ipt_8"
    else:
        start = "0.json: no workload can be compared with a base: "
        assert unsaid(tmp_path, made, **facts).startswith(start + told)


@pytest.mark.parametrize(
    ("known", "text", "same"),
    [
        ('"using_warp_reduce"', "block_reduce_algorithm::using_warp_reduce", True),
        ('"::rocprim::block_scan_algorithm::using_warp_scan"', "using_warp_scan", True),
        ('"::rocprim::a::b"', "rocprim::a::b", True),
        ('"warp_reduce"', "using_warp_reduce", False),
        ("true", "1", True),
        ("16", "16", True),
        ("16", "6", False),
    ],
)
def test_a_word_may_have_more_namespaces(known, text, same):
    assert spelled_alike(known, text) == same


def test_a_word_that_may_be_two_is_none(tmp_path):
    space = {"bs": [128], "method": ["a::x", "b::x"]}
    made = benchmarks({("reduce", "key_type:int"): space}, default=False)
    told = unsaid(tmp_path, made, current=lambda *_: {"bs": "128", "method": "x"})
    assert "the current configuration was not measured: bs=128, method=x" in told


def test_a_workload_without_base_is_left_out_with_its_reason(tmp_path):
    tuned = benchmarks(default=False)
    plain = benchmarks({("reduce", "key_type:int"): REDUCE, **ONE}, seed=2, default="only")
    alone = benchmarks({("merge", "key_type:int"): REDUCE}, default="only")
    found = gathered(tmp_path, tuned, plain, alone)
    assert [(one.algorithm, one.workload) for one in found.kernels] == [
        ("rocprim.device_reduce", {"key_type{ct}": "int"})
    ]
    assert {(one.algorithm, one.reason) for one in found.left_out} == {
        ("rocprim.device_merge", "only default_config ran"),
        *(
            (f"rocprim.device_{name}", "the current configuration is unknown")
            for name in ("reduce", "scan", "histogram", "merge_sort_block_sort")
        ),
        ("rocprim.device_radix_sort_onesweep", "the current configuration is unknown"),
    }


def test_a_base_that_failed_is_none(tmp_path):
    made = benchmarks(ONE)
    for one in made["benchmarks"][:5]:
        one["real_time"] = 0.0
    told = unsaid(tmp_path, made)
    assert "default_config has no time: its time, 0.0, is not a plausible kernel time" in told
    (kernel,) = gathered(tmp_path, made, base="bs=128").kernels
    assert (kernel.base, kernel.base_from) == ("bs_128.ipt_8", "option")
    assert {one.label for one in kernel.points} == {"base", "bs_256.ipt_8"}
    assert all(one.failure is None for one in kernel.points)


def test_zero_never_wins(tmp_path):
    made = benchmarks(ONE)
    for one in made["benchmarks"][-8:]:
        one["real_time"] = 0.0
    (found,) = read(tmp_path, made)
    assert sum(isinstance(one.outcome, TunedFailure) for one in found.entries) == 5
    result = gathered(tmp_path, made)
    (kernel,) = result.kernels
    assert [one.label for one in kernel.points if one.failure is None] == ["base", "bs_128.ipt_8"]
    assert [one.place.rpartition("/")[2] for one in result.refused[:2]] == [
        "0.json: benchmarks[16], device_reduce key_type=int",
        "0.json: benchmarks[17], device_reduce key_type=int",
    ]
    assert {one.label for one in result.refused} == {"bs_256.ipt_8"}
    assert np.isnan(kernel.points[-1].center)


def test_a_file_of_nothing_but_zeros_is_refused(tmp_path):
    made = benchmarks(ONE)
    for one in made["benchmarks"]:
        one["real_time"] = 0.0
    told = unsaid(tmp_path, benchmarks(ONE), made)
    assert told == (
        "1.json: no configuration has a time: its time, 0.0, is not a plausible kernel time"
    )
    broken = cache()
    for cells in broken["cache"].values():
        cells |= {"time": math.inf, "times": [math.inf]}
    assert "Infinity among its times is not a plausible" in unsaid(tmp_path, broken, base=MERGE)


def test_a_base_without_a_time_is_none(tmp_path):
    made = benchmarks(ONE, default=False)
    for one in made["benchmarks"][:5]:
        one["real_time"] = 0.0
    assert "--base bs=128 was not measured" in unsaid(tmp_path, made, base="bs=128")
    told = unsaid(tmp_path, made, current=lambda *_: {"bs": "128"})
    assert "the current configuration was not measured: bs=128" in told


def test_variants_that_failed_leave_nothing_to_compare(tmp_path):
    made = benchmarks(ONE)
    for one in made["benchmarks"][8:]:
        one["real_time"] = 0.0
    assert "only base has a time" in unsaid(tmp_path, made)


def test_base_of_other_input_is_none(tmp_path):
    made = benchmarks(ONE)
    for one in made["benchmarks"][:8]:
        one["items_per_second"] /= 2
    told = unsaid(tmp_path, made)
    assert "base processed 167,772,160 items per run, but configurations" in told
    for one in made["benchmarks"][:8]:
        del one["items_per_second"]
    assert len(gathered(tmp_path, made).kernels) == 1


def test_a_size_without_base_is_left_out(tmp_path):
    large = benchmarks(ONE, seed=2, default=False, size="2048")
    found = gathered(tmp_path, benchmarks(ONE), large)
    (kernel,) = found.kernels
    assert kernel.sizes == {0: str(SIZE)}
    assert {one.size for one in kernel.points} == {str(SIZE)}
    ((left,),) = [found.left_out]
    assert (left.size, left.reason) == ("2048", "base was not measured on this size")


def test_two_ways_to_measure_are_not_mixed(tmp_path):
    google = benchmarks({("merge", "key_type:int"): {"block_size_x": [128], "ipt": [4]}})
    told = unsaid(tmp_path, google, cache())
    assert told.startswith(
        "1.json: device_merge was measured by Kernel Tuner, but in 0.json by Google Benchmark:"
    )
    found = gathered(tmp_path, benchmarks(ONE), cache(), base=MERGE)
    assert [one.algorithm for one in found.kernels] == [
        "rocprim.device_merge",
        "rocprim.device_reduce",
    ]


def test_other_parameters_are_another_database(tmp_path):
    other = benchmarks({("reduce", "key_type:int"): {"bs": [128], "vec": [1]}})
    told = unsaid(tmp_path, benchmarks(ONE), other)
    assert told.startswith("1.json: has the parameters 'bs', 'vec', not 'bs', 'ipt', for dev")


def test_axes_that_a_file_leaves_out_are_filled(tmp_path):
    keys = {("merge", "key_type:int"): {"bs": [128, 256]}}
    pairs = {
        ("merge", "key_type:int,value_type:empty_type,nth:small"): {"bs": [128, 256]},
        ("merge", "key_type:int,value_type:int,nth:half"): {"bs": [128, 256]},
    }
    found = gathered(tmp_path, benchmarks(keys), benchmarks(pairs))
    assert [tuple(one.workload.values()) for one in found.kernels] == [
        ("int", "half", "int"),
        ("int", "none", "rocprim::empty_type"),
        ("int", "small", "rocprim::empty_type"),
    ]


def test_all_is_of_one_gpu_and_architecture(tmp_path):
    same = read(tmp_path, rows(), cache())
    assert suite_arch(same, "") == suite_arch(same, "gfx942") == "gfx942"
    with pytest.raises(PolicygenError, match="was measured on gfx942, but --arch is gfx90a"):
        suite_arch(same, "gfx90a")
    with pytest.raises(PolicygenError, match="does not state the GPU, but"):
        suite_gpu(same, "", "gfx942")
    assert suite_gpu(same, "MI300X", "gfx942") == "MI300X"
    with pytest.raises(PolicygenError, match="is not a GPU's name"):
        suite_gpu(same, "x\n", "gfx942")
    assert suite_gpu(same[:1], "", "gfx942") == "Instinct MI300X (8192, 304, eccon)"
    assert suite_gpu(same[1:], "", "gfx942") == "gfx942"
    mixed = read(tmp_path, rows(), rows(hdp_gcn_arch_name="gfx90a", hdp_name="AMD MI210"))
    with pytest.raises(PolicygenError, match=r"was measured on gfx90a, but .* on gfx942"):
        suite_arch(mixed, "")
    with pytest.raises(PolicygenError, match=r"was measured on 'AMD MI210.* but .* on 'AMD Inst"):
        suite_gpu(mixed, "", "gfx942")
    none = read(tmp_path, rows(hdp_gcn_arch_name=None))
    assert suite_arch(none, "gfx942") == "gfx942"
    with pytest.raises(PolicygenError, match="does not state the GPU's architecture"):
        suite_arch(none, "")


def test_a_size_is_asked_for_where_files_have_none(tmp_path):
    made = read(tmp_path, rows(size=None), rows(size="x"), rows())
    with pytest.raises(PolicygenError) as error:
        suite_sizes(made, "")
    assert str(error.value).count("does not state the problem size") == 2
    suite_sizes(made, "1000")
    with pytest.raises(PolicygenError, match="is not a size"):
        suite_sizes(made, "many")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_what_the_script_writes(name):
    path = Path(__file__).parent.parent.parent / "fixtures/tuners" / name
    assert path.read_text() == text_of(EXAMPLES[name]()), UPDATE
