"""What `resolve` finds out, against translation units that were written by hand."""

import re
from dataclasses import replace

import pytest

from policygen.proof.oracle import marked_copies
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve
from tests.probing import STORE, read, root
from tests.tiers import sampled
from tests.toolchain import compile_to_ptx

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

PLUS = "::cuda::std::plus<>"
HUB = "detail::{}::policy_hub<{}>::MaxPolicy::ActivePolicy::{}".format
SELECTOR = "detail::{}::policy_selector_from_types<{}>".format

# What the public API passes on, read in the dispatchers: a benchmark, its workload, the policy of
# the hub in 3.0.1, and in 3.6.0 the selector and the part of what it returns.
SAMPLES = [
    (
        "histogram.even",
        {"SampleT": "I8"},
        HUB("histogram", "signed char, int, 1, 1, true", "AgentHistogramPolicyT"),
        (SELECTOR("histogram", "signed char, int, 1, 1, true"), ""),
    ),
    (
        "radix_sort.pairs",
        {"KeyT": "I8", "ValueT": "I16", "OffsetT": "I32"},
        HUB("radix", "signed char, short, unsigned", "OnesweepPolicy"),
        (SELECTOR("radix_sort", "signed char, short, unsigned"), ".onesweep"),
    ),
    (
        "reduce.sum",
        {"T": "F32", "OffsetT": "I32"},
        HUB("reduce", f"float, unsigned, {PLUS}", "ReducePolicy"),
        (SELECTOR("reduce", f"float, unsigned, {PLUS}"), ".multi_tile"),
    ),
    (
        "reduce.by_key",
        {"KeyT": "I16", "ValueT": "I32"},
        HUB("reduce_by_key", f"{PLUS}, int, short", "ReduceByKeyPolicyT"),
        (SELECTOR("reduce_by_key", f"{PLUS}, int, short"), ".lookback"),
    ),
    (
        "run_length_encode.encode",
        {"T": "I32", "OffsetT": "I32", "RunLengthT": "I32"},
        HUB("rle::encode", "int, int", "ReduceByKeyPolicyT"),
        (SELECTOR("rle::encode", "int, int, int*, int*, int*, int*, int"), ".lookback"),
    ),
    (
        "run_length_encode.non_trivial_runs",
        {"T": "F64", "OffsetT": "I32", "RunLengthT": "I32"},
        HUB("rle::non_trivial_runs", "int, double", "RleSweepPolicyT"),
        (SELECTOR("rle::non_trivial_runs", "int, double"), ".lookback"),
    ),
    (
        "scan.exclusive.sum",
        {"T": "I8", "OffsetT": "I32"},
        HUB("scan", f"signed char, signed char, int, unsigned, {PLUS}", "ScanPolicyT"),
        (SELECTOR("scan", f"signed char*, signed char*, int, unsigned, {PLUS}"), ".lookback"),
    ),
    (
        "scan.exclusive.by_key",
        {"KeyT": "I64", "ValueT": "I8"},
        HUB("scan_by_key", f"long*, int, signed char, {PLUS}", "ScanByKeyPolicyT"),
        (SELECTOR("scan_by_key", f"long, int, signed char, {PLUS}"), ".lookback"),
    ),
    (
        "select.if",
        {"T": "I32", "InPlace": "false"},
        HUB("select", "int, NullType, int, false, SelectImpl::Select", "SelectIfPolicyT"),
        (SELECTOR("select", "int*, NullType*, int*, int, SelectImpl::Select"), ".lookback"),
    ),
    (
        "partition.flagged",
        {"T": "F32", "OffsetT": "I64", "DistinctPartitions": "false"},
        HUB("select", "float, bool, long, false, SelectImpl::Partition", "SelectIfPolicyT"),
        (SELECTOR("select", "float*, bool*, float*, long, SelectImpl::Partition"), ".lookback"),
    ),
    (
        "partition.three_way",
        {"T": "I16", "OffsetT": "I32"},
        HUB("three_way_partition", "short, int", "ThreeWayPartitionPolicy"),
        (SELECTOR("three_way_partition", "short, int"), ".lookback"),
    ),
    (
        "select.unique_by_key",
        {"KeyT": "I32", "ValueT": "F32"},
        HUB("unique_by_key", "int, float", "UniqueByKeyPolicyT"),
        (SELECTOR("unique_by_key", "int, float"), ""),
    ),
]

TRAPS = [
    ("radix_sort.keys", {"T": "I32"}),
    ("reduce.sum", {"T": "I8", "OffsetT": "I32"}),
    ("reduce.sum", {"T": "I32", "OffsetT": "I32"}),
    ("reduce.sum", {"T": "C64"}),
    ("reduce.sum", {"T": "I64"}),
    ("reduce.min", {"T": "I8", "OffsetT": "I32"}),
    ("reduce.by_key", {"KeyT": "I16", "ValueT": "F32"}),
    ("scan.exclusive.sum", {"T": "I16", "OffsetT": "I32"}),
    ("scan.exclusive.sum", {"T": "I32", "OffsetT": "I32"}),
    ("scan.exclusive.sum", {"T": "F32", "OffsetT": "I32"}),
    ("scan.exclusive.sum", {"T": "F64", "OffsetT": "I64"}),
    ("scan.exclusive.sum", {"T": "I128", "OffsetT": "I32"}),
    ("select.flagged", {"T": "I8"}),
    ("select.if", {"T": "F32"}),
    ("select.if", {"T": "I128", "InPlace": "false"}),
    ("histogram.even", {"SampleT": "I16"}),
    ("partition.three_way", {"T": "F32", "OffsetT": "I64"}),
    ("select.unique_by_key", {"KeyT": "I8", "ValueT": "I8"}),
]

# value → member of an agent's policy, and of what a selector returns
OLD = {
    "threads": "BLOCK_THREADS",
    "items": "ITEMS_PER_THREAD",
    "load_algorithm": "LOAD_ALGORITHM",
    "load_modifier": "LOAD_MODIFIER",
    "store_algorithm": "STORE_ALGORITHM",
    "rank_algorithm": "RANK_ALGORITHM",
    "radix_bits": "RADIX_BITS",
    "items_per_vec_load": "VECTOR_LOAD_LENGTH",
    "reduce_algorithm": "BLOCK_ALGORITHM",
    "rle_compress": "IS_RLE_COMPRESS",
    "mem_preference": "MEM_PREFERENCE",
    "work_stealing": "IS_WORK_STEALING",
    "vec_size": "VEC_SIZE",
    "store_with_time_slicing": "STORE_WARP_TIME_SLICING",
}
NEW = {name: name for name in OLD} | {
    "threads": "threads_per_block",
    "items": "items_per_thread",
    "items_per_vec_load": "vec_size",
    "work_stealing": "use_work_stealing",
    "load_prefetch": "_load_prefetch",
}
HEADERS = {
    "3.0.1": "histogram radix_sort reduce reduce_by_key run_length_encode scan scan_by_key"
    " select_if three_way_partition unique_by_key",
    "3.6.0": "histogram radix_sort reduce reduce_by_key rle_encode rle_non_trivial_runs scan"
    " scan_by_key select_if three_way_partition unique_by_key",
}
ARCHS = {"3.0.1": ("sm90", "sm100", "sm103"), "3.6.0": ("sm90", "sm100")}


@pytest.fixture(scope="session", params=ARCHS)
def version(request):
    return request.param


@pytest.fixture(scope="session")
def resolved():
    """A function: the rows of all samples in a version, asked once for all tests."""
    known = {}

    def ask(version):
        if version not in known:
            known[version] = _ask(version)
        return known[version]

    return ask


def _ask(version):
    assert str(root(version)).startswith(STORE)
    tree = read(root(version))
    wanted = [*((name, workload) for name, workload, *_ in SAMPLES), *TRAPS]
    asked = []
    for place in places(tree.cub, tree.headers, re.compile(""), {}):
        points = tuple(p for p in place.points if any(_is(p, *each) for each in wanted))
        if points:
            asked.append(replace(place, points=points))
    found, errors = resolve(
        tree.cub, asked, marked_copies(tree, tree.cub.dialect), ARCHS[version], find_toolchain()
    )
    assert (errors, found.unresolved) == ((), ())
    return found.rows


def _is(point, name, workload):
    return point.call.name == f"cub.bench.{name}" and all(
        point.values.get(axis, value) == value for axis, value in workload.items()
    )


def one(rows, name, workload, arch):
    """The row of a workload; one that several rows fit is a mistake of the test."""
    (found,) = [
        row
        for row in rows
        if row.benchmark == f"cub.bench.{name}"
        and row.arch == arch
        and all(row.workload.get(axis, value) == value for axis, value in workload.items())
    ]
    return found


def spelled(name, value):
    if isinstance(value, bool):
        return str(value).lower()
    scoped = {
        "algorithm": f"decltype(selected.algorithm)::{value}",
        "load_prefetch": f"decltype(policy._load_prefetch)::{value}",
    }
    return scoped.get(name, str(value))


def delay(value):
    """`fixed_delay_constructor_t<350, 450>` as the selectors have it."""
    kind, args = re.fullmatch(r"(\w+)_constructor_t<([\d, ]+)>", value).groups()
    ns, l2w = args.split(", ") if "," in args else ("0", args)
    return f"LookbackDelayPolicy{{LookbackDelayAlgorithm::{kind}, {ns}, {l2w}}}"


def old_assertions(values):
    for name, value in values.items():
        if name == "delay_constructor":
            yield (f"::cuda::std::is_same_v<policy::detail::delay_constructor_t, detail::{value}>")
        else:
            pixels = name == "items" and "vec_size" in values
            member = "PIXELS_PER_THREAD" if pixels else OLD[name]
            yield f"policy::{member} == {spelled(name, value)}"


LOOKAHEAD = {"lookahead_warps": "reduce_and_scan_warps", "lookahead_items": "items_per_thread"}


def new_assertions(values, name):
    for value_name, value in values.items():
        if value_name == "delay_constructor":
            yield f"policy.lookback_delay == {delay(value)}"
        elif value_name == "algorithm":
            yield f"selected.algorithm == {spelled(value_name, value)}"
        elif value_name.startswith("lookahead_") or value_name == "block_idx_stages":
            member = LOOKAHEAD.get(value_name, value_name)
            if name.startswith("run_length"):
                member = value_name.removeprefix("lookahead_")
            yield f"selected.lookahead.{member} == {value}"
        else:
            pixels = value_name == "items" and "rle_compress" in values
            member = "pixels_per_thread" if pixels else NEW[value_name]
            yield f"policy.{member} == {spelled(value_name, value)}"


def unit(version, arch, rows):
    """A translation unit that holds when, and only when, CUB selects what the rows say."""
    yield from (
        f"#include <cub/device/dispatch/tuning/tuning_{name}.cuh>"
        for name in HEADERS[version].split()
    )
    yield "#include <cuda/std/functional>\n#include <cuda/std/type_traits>\nCUB_NAMESPACE_BEGIN"
    for number, (name, workload, hub, (selector, part)) in enumerate(SAMPLES):
        values = one(rows, name, workload, arch).values
        yield f"namespace sample_{number} {{"
        if version == "3.0.1":
            yield f"using policy = {hub};"
            assertions = old_assertions(values)
        else:
            major, minor = divmod(int(arch[2:]), 10)
            yield f"constexpr auto selected = {selector}{{}}"
            yield f"(::cuda::compute_capability{{{major}, {minor}}});"
            yield f"constexpr auto policy = selected{part};"
            assertions = new_assertions(values, name)
        yield from (f'static_assert({text}, "{name}");' for text in assertions)
        yield "}"
    yield "CUB_NAMESPACE_END"


@pytest.mark.slow
@pytest.mark.parametrize("arch", sampled(["sm90", "sm100"], "sm100"))
def test_units_written_by_hand_agree(resolved, version, arch, tmp_path):
    source = tmp_path / "agree.cu"
    source.write_text("\n".join(unit(version, arch, resolved(version))))
    assert source.read_text().count("static_assert") > 60
    done = compile_to_ptx(source, root(version), arch.replace("sm", "sm_"))
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.slow
def test_a_value_that_is_not_selected_is_refused(resolved, version, tmp_path):
    """The check above can fail: for each algorithm."""
    source = tmp_path / "wrong.cu"
    text = "\n".join(unit(version, "sm100", resolved(version)))
    # Where lookahead is selected, there are no threads to be wrong.
    members = "BLOCK_THREADS|threads_per_block|reduce_and_scan_warps|compute_warps"
    changed = re.sub(rf"({members}) == (\d+)", r"\1 == \g<2>1", text)
    source.write_text(changed)
    done = compile_to_ptx(source, root(version), "sm_100")
    assert done.returncode != 0
    refused = re.findall(r'static assertion failed with "([\w.]+)"', done.stderr)
    assert sorted(refused) == sorted(name for name, *_ in SAMPLES)


def key(row):
    return row.entry and (row.entry.family, row.entry.args)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workload", "arch", "status", "since", "family"),
    [
        ("histogram.even", {"SampleT": "I8"}, "sm90", "tuned", "sm90", "sm90_tuning"),
        ("histogram.even", {"SampleT": "I8"}, "sm103", "inherited", "sm100", "sm100_tuning"),
        ("partition.three_way", {"T": "I16"}, "sm100", "inherited", "sm90", "sm90_tuning"),
        ("reduce.sum", {"T": "F32"}, "sm90", "default", None, None),
        ("reduce.sum", {"T": "F32"}, "sm103", "inherited", "sm100", "sm100_tuning"),
        ("reduce.min", {"T": "I8"}, "sm100", "default", None, None),
    ],
)
def test_a_status_says_for_which_arch_the_values_were_tuned(
    resolved, name, workload, arch, status, since, family
):
    row = one(resolved("3.0.1"), name, workload, arch)
    assert (row.status, row.since, row.entry and row.entry.family) == (status, since, family)


@pytest.mark.parametrize(
    ("name", "workload", "arch", "status", "since", "family"),
    [
        ("reduce.sum", {"T": "F32", "OffsetT": "I32"}, "sm90", "default", None, None),
        ("reduce.sum", {"T": "F32", "OffsetT": "I32"}, "sm100", "tuned", "sm100", "get_sm100_tuning"),  # noqa: E501
        ("partition.three_way", {"T": "I16"}, "sm100", "inherited", "sm90", "get_lookback_policy"),
        ("scan.exclusive.sum", {"T": "I8"}, "sm90", "tuned", "sm90", "operator()"),
    ],
)  # fmt: skip
def test_in_the_selector_dialect_the_entry_is_a_guarded_return(
    resolved, name, workload, arch, status, since, family
):
    row = one(resolved("3.6.0"), name, workload, arch)
    assert (row.status, row.since) == (status, since)
    assert (row.entry and row.entry.family.removeprefix("policy_selector::")) == family


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workload", "args"),
    [
        (
            "histogram.even",
            {"SampleT": "I8"},
            "true, SampleT, 1, 1, counter_size::_4, primitive_sample::yes, sample_size::_1",
        ),
        (
            "scan.exclusive.sum",
            {"T": "I8"},
            "ValueT, AccumT, OffsetT, op_type::plus, primitive_accum::yes, offset_size::_4,"
            " value_size::_1",
        ),
        (
            "select.unique_by_key",
            {"KeyT": "I8", "ValueT": "I8"},
            "KeyT, ValueT, primitive_key::yes, primitive_val::yes, key_size::_1, val_size::_1",
        ),
        (
            "select.flagged",
            {"T": "I8", "InPlace": "false"},
            "Input, flagged::yes, keep_rejects::no, offset_size::_4, primitive::yes,"
            " input_size::_1, may_alias::no, DistinctPartitions",
        ),
        ("radix_sort.pairs", {"KeyT": "I8", "ValueT": "I16"}, "ValueT, 1, 2, 4"),
        (
            "reduce.sum",
            {"T": "I64", "OffsetT": "I32"},
            "T, OffsetT, op_type::plus, offset_size::_4, accum_size::_8",
        ),
    ],
)
def test_the_examples_of_the_map_have_their_entries(resolved, name, workload, args):
    row = one(resolved("3.0.1"), name, workload, "sm100")
    assert ", ".join(row.entry.args) == args
    text = (root("3.0.1") / "cub/device/dispatch/tuning" / row.entry.header).read_text()
    assert row.entry.family in "".join(text.splitlines()[row.entry.line - 1 : row.entry.line + 2])


@pytest.mark.parametrize(
    ("name", "workload", "note"),
    [
        ("radix_sort.keys", {"T": "I32", "OffsetT": "I32"}, r"tuning_radix_sort\.cuh:\d+ \(sm100_"),
        ("reduce.by_key", {"KeyT": "I16", "ValueT": "F32"}, r"tuning_reduce_by_key\.cuh:\d+ "),
        ("scan.exclusive.sum", {"T": "F64", "OffsetT": "I64"}, r"tuning_scan\.cuh:\d+ "),
        ("run_length_encode.non_trivial_runs", {"T": "F64"}, r"tuning_run_length_encode\.cuh:\d+ "),
    ],
)
def test_an_entry_that_has_the_key_and_is_not_selected_is_named(resolved, name, workload, note):
    row = one(resolved("3.0.1"), name, workload, "sm100")
    assert re.match(note, row.note)
    assert row.note.endswith(" has this key but is not selected")
    assert row.status in {"default", "inherited"}
    assert one(resolved("3.0.1"), name, workload, "sm90").note is None


def test_an_empty_specialization_falls_back_to_the_arch_before(resolved):
    """Trap 1: the entry is there on purpose, and its line is named."""
    old, new = (
        one(resolved("3.0.1"), "reduce.by_key", {"KeyT": "I16", "ValueT": "F32"}, arch)
        for arch in ("sm90", "sm100")
    )
    assert (new.status, new.since) == ("inherited", "sm90")
    assert (new.values, new.entry) == (old.values, old.entry)
    line = int(re.search(r":(\d+) ", new.note)[1])
    header = root("3.0.1") / "cub/device/dispatch/tuning/tuning_reduce_by_key.cuh"
    text = " ".join(header.read_text().splitlines()[line - 1 : line + 2])
    assert re.search(r"sm100_tuning<KeyT, float, .*>\s*\{\};?", text)


def test_sums_of_small_integers_accumulate_in_int(resolved):
    """Traps 6 and 7: the library's key, not the one that the benchmark measured."""
    rows = resolved("3.0.1")
    small, whole = (one(rows, "reduce.sum", {"T": t, "OffsetT": "I32"}, "sm100") for t in T_SUM)
    assert small.values == whole.values
    assert one(rows, "reduce.min", {"T": "I8"}, "sm100").values != small.values
    on_90 = [
        one(rows, "scan.exclusive.sum", {"T": t, "OffsetT": "I32"}, "sm90")
        for t in ("I8", "I16", "I32")
    ]
    assert {key(row) for row in on_90} == {
        ("sm90_tuning", ("T", "primitive_op::yes", "primitive_accum::yes", "accum_size::_4"))
    }
    on_100 = [
        one(rows, "scan.exclusive.sum", {"T": t, "OffsetT": "I32"}, "sm100").entry.args[-1]
        for t in ("I8", "I16", "I32")
    ]
    assert on_100 == ["value_size::_1", "value_size::_2", "value_size::_4"]


T_SUM = ("I8", "I32")


def test_the_offset_type_of_select_is_no_part_of_the_key(resolved):
    """Trap 9: the benchmark says I64, the library always takes 32 bits."""
    row = one(resolved("3.0.1"), "select.if", {"T": "I32", "InPlace": "false"}, "sm100")
    assert row.workload["OffsetT"] == "I64"
    assert "offset_size::_4" in row.entry.args
    three = one(resolved("3.0.1"), "partition.three_way", {"T": "F32", "OffsetT": "I64"}, "sm100")
    assert "offset_size::_4" in three.entry.args


def test_types_of_one_size_share_an_entry_unless_it_names_a_type(resolved):
    """Trap 10."""
    rows = resolved("3.0.1")
    sums = {t: one(rows, "scan.exclusive.sum", {"T": t, "OffsetT": "I32"}, "sm100") for t in FOUR}
    assert sums["I32"].entry == sums["F32"].entry
    older = {t: one(rows, "scan.exclusive.sum", {"T": t, "OffsetT": "I32"}, "sm90") for t in FOUR}
    assert older["F32"].entry.args[0] == "float"
    assert older["I32"].entry.args[0] == "T"
    selected = [one(rows, "select.if", {"T": t, "InPlace": "false"}, "sm100").entry for t in FOUR]
    assert selected[0] == selected[1]


FOUR = ("I32", "F32")


def test_a_complex_number_is_called_as_the_version_calls_it(resolved):
    """Trap 18: C64 is complex<float> up to CUB 3.1; its size is that of I64."""
    rows = resolved("3.0.1")
    for offset in ("I32", "I64"):
        twins = [
            one(rows, "reduce.sum", {"T": t, "OffsetT": offset}, "sm100").entry
            for t in ("I64", "C64")
        ]
        assert twins[0] == twins[1]
    later = {row.workload["T"] for row in resolved("3.6.0") if "reduce.sum" in row.benchmark}
    assert "C64" not in later


def test_values_in_place_have_entries_of_their_own(resolved):
    """Trap 19 is about the name of this axis; sm90 does not know the difference."""
    rows = resolved("3.0.1")
    apart = [one(rows, "select.flagged", {"T": "I8", "InPlace": x}, "sm100") for x in BOTH]
    assert ["may_alias::yes" in row.entry.args for row in apart] == [False, True]
    same = [one(rows, "select.flagged", {"T": "I8", "InPlace": x}, "sm90") for x in BOTH]
    assert same[0].entry == same[1].entry


BOTH = ("false", "true")


def test_128_bit_integers_are_not_primitive(resolved):
    """Trap 17: they need entries that name them, and have none on sm100."""
    rows = resolved("3.0.1")
    row = one(rows, "select.if", {"T": "I128", "InPlace": "false"}, "sm100")
    assert (row.status, row.since) == ("inherited", "sm90")
    assert row.entry.args[0] == "__int128_t"
    assert "primitive::no" in row.entry.args


def test_a_key_without_a_newer_entry_falls_through_to_the_older_one(resolved):
    """Trap 26: in the selectors from block to block, in the hubs by fallback."""
    for version in ("3.0.1", "3.6.0"):
        row = one(resolved(version), "histogram.even", {"SampleT": "I16"}, "sm100")
        assert (row.status, row.since) == ("inherited", "sm90")
        assert row.values["threads"] == 960


def test_a_named_type_comes_before_its_size(resolved):
    """Trap 27: a test for 4 bytes in front would take all floats."""
    for version in ("3.0.1", "3.6.0"):
        rows = resolved(version)
        named = one(rows, "reduce.sum", {"T": "F32", "OffsetT": "I32"}, "sm100")
        other = one(rows, "reduce.sum", {"T": "I32", "OffsetT": "I32"}, "sm100")
        assert (named.status, other.status) == ("tuned", "default")
        assert named.values != other.values


@pytest.mark.slow
def test_delays_are_spelled_in_one_way(resolved, version):
    """Trap 33: headers write detail:: before some of them, and selectors have enumerators."""
    delays = {row.values.get("delay_constructor") for row in resolved(version)} - {None}
    assert len(delays) > 5
    assert all(re.fullmatch(r"\w+_constructor_t<[\d, ]+>", delay) for delay in delays)


@pytest.mark.slow
def test_rows_are_sorted_by_benchmark_and_arch(resolved, version):
    rows = [(row.benchmark, int(row.arch[2:])) for row in resolved(version)]
    assert rows == sorted(rows)
