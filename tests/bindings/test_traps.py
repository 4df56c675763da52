"""Traps for whoever maps benchmarks to headers: what was got wrong before, one case for each.

Those that only the compiler can tell (empty specializations, accumulators, collisions, 128-bit
types, fall-through, the order of tests, spellings of delays) stand in tests/proof/test_resolve.py
and tests/proof/test_reach.py; those of databases and sources (ranges in preprocessor guards,
variants that do not compile) in tests/headers/benchmarks and tests/results.
"""

import re

import pytest

from policygen import trees
from policygen.bindings.load import axis_type, axis_values, bound, numbers
from policygen.bindings.variants import member_values
from policygen.errors import InputError
from policygen.headers.scan import scan_headers
from policygen.model.trees import BoundVersion
from policygen.model.workload import parse_label
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve
from tests.probing import read
from tests.real_trees import tree as cub_tree

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"]


def algorithm(name, version):
    (found,) = (a for a in bound(BoundVersion(version)) if a.algorithm == name)
    return found


def benchmark(name, version):
    (found,) = (
        b
        for a in bound(BoundVersion(version))
        for b in a.benchmarks
        if b.name == f"cub.bench.{name}"
    )
    return found


def family(algorithm_name, name, version, site=None):
    (found,) = (
        f
        for f in algorithm(algorithm_name, version).families
        if f.name == name and (site is None or f.site == site)
    )
    return found


@pytest.fixture(scope="module")
def headers():
    read = {}

    def of(version):
        if version not in read:
            root = cub_tree(version)
            scanned = scan_headers(trees.tuning_headers(trees.open_tree(root)))
            read[version] = {header.name: header for header in scanned.headers}
        return read[version]

    return of


def test_counts_of_select_are_plain_from_3_0_on_and_nominal_in_the_header():
    """ipt-scaling-select: 9 items of 8 bytes are written as 18."""
    variant = {"trp": 0, "ld": 0, "ipt": 9, "tpb": 256, "ns": 0, "dcid": 0, "l2w": 5}
    entry = family("select_if", "sm100_tuning", "3.0.1")
    sizes = {"InputT": 8}
    plain = member_values(entry, benchmark("select.if", "3.0.1"), variant, sizes)
    nominal = member_values(entry, benchmark("select.if", "2.8.2"), variant, sizes)
    assert (plain["nominal_4b_items"], nominal["nominal_4b_items"]) == ("18", "9")


def test_deterministic_reductions_are_measured_plainly_and_scaled_by_the_header():
    """ipt-scaling-deterministic: 5 items of 8 bytes are written as 10."""
    entry = family("reduce", "sm90_tuning", "3.2.0")
    values = member_values(
        entry, benchmark("reduce.deterministic", "3.2.0"), {"ipt": 5, "tpb": 128}, {"AccumT": 8}
    )
    assert values == {"items": "10", "threads": "128"}


@pytest.mark.parametrize("name", ["reduce.arg_extrema", "reduce.custom", "scan.exclusive.custom"])
def test_operators_without_a_family_are_not_writable(name):
    """ipt-scaling-arg_extrema: their values must not reach the family of sums."""
    found = benchmark(name, "3.0.1")
    assert not found.writable
    assert "no family takes" in (found.edit or "")


def test_the_vector_length_is_a_power_of_two():
    """ipv-exponent: entries that store the exponent are no example."""
    entry = family("reduce", "sm100_tuning", "3.0.1")
    values = member_values(
        entry,
        benchmark("reduce.sum", "3.0.1"),
        {"ipt": 16, "tpb": 512, "ipv": 2},
        {"AccumT": 4, "axis::T": 4},
    )
    assert values["items_per_vec_load"] == "4"


def test_the_key_is_that_of_the_librarys_accumulator():
    """accumulator-promotion: the role is what the operator makes of two values."""
    for name, role in (("reduce.sum", "axis::T"), ("reduce.by_key", "ValueT")):
        assert benchmark(name, "3.0.1").roles["AccumT"] == f"accumulator<OpT, {role}>"


def test_scan_is_keyed_by_accumulator_before_sm100_and_by_value_there():
    """scan-accum-vs-value."""
    for name in ("sm80_tuning", "sm90_tuning"):
        assert "classify_accum_size<AccumT>()" in family("scan", name, "3.0.1").args
    assert "classify_value_size<InputValueT>()" in family("scan", "sm100_tuning", "3.0.1").args


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.parametrize("version", VERSIONS)
def test_all_arguments_are_spelled_in_declared_order(version, headers):
    """opt-default-bug and enum-order-select: no default is relied on."""
    for found in bound(BoundVersion(version)):
        for bound_family in found.families:
            site = found.site(bound_family.site, "specializations")
            declared = [
                family
                for family in headers(version)[site.header].families
                if (family.namespace, family.name) == (f"cub::{site.namespace}", bound_family.name)
            ]
            assert [len(f.parameters) for f in declared] == [len(bound_family.args)]


def test_select_ignores_the_offset_and_partition_does_not():
    """select-offset."""
    assert benchmark("select.if", "3.0.1").roles["OffsetT"] == "::cuda::std::int32_t"
    assert benchmark("partition.if", "3.0.1").roles["OffsetT"] == "axis::OffsetT"
    assert benchmark("partition.three_way", "3.0.1").roles["OffsetT"] == "::cuda::std::int32_t"


def test_no_delay_takes_the_write_latency_alone():
    """no-delay-argument."""
    variant = {"trp": 1, "ipt": 9, "tpb": 256, "ns": 1900, "dcid": 0, "l2w": 840, "ld": 0}
    entry = family("scan_by_key", "sm100_tuning", "3.0.1")
    values = member_values(entry, benchmark("scan.exclusive.by_key", "3.0.1"), variant, {})
    assert values["delay_constructor"] == "no_delay_constructor_t<840>"


@pytest.mark.trees
def test_entries_without_a_label_are_known_by_their_arguments(headers):
    """missing-labels."""
    header = headers("3.0.1")["tuning_scan_by_key.cuh"]
    (found,) = (f for f in header.families if f.name == "sm100_tuning")
    unlabelled = [entry for entry in found.specializations if entry.variant is None]
    assert [entry.line for entry in unlabelled] == [802]
    assert unlabelled[0].args[3:5] == ("key_size::_2", "val_size::_8")


@pytest.mark.trees
def test_text_beside_a_label_is_no_part_of_it(headers):
    """label-noise: "(39_new/2.db)" stands between the variant and its scores."""
    header = headers("3.0.1")["tuning_select_if.cuh"]
    labels = {e.line: e for f in header.families for e in f.entries if e.variant}
    noisy = max(line for line in labels if line <= 1365)
    assert labels[noisy].variant.startswith("trp_")
    assert "/" not in labels[noisy].variant


@pytest.mark.trees
def test_what_is_commented_out_is_never_asked_for(headers):
    """commented-rejects: they have older shapes, and families of another arch."""
    for header in headers("3.0.1").values():
        for found in header.families:
            assert not any(entry.disabled for entry in found.specializations)


def test_members_have_an_order_for_each_family():
    """member-order."""
    assert next(iter(family("reduce_by_key", "sm80_tuning", "3.0.1").members)) == "threads"
    assert next(iter(family("reduce_by_key", "sm100_tuning", "3.0.1").members)) == "items"


@pytest.mark.parametrize("name", ["I128", "U128"])
def test_128_bit_types_know_their_guard(name):
    """int128-guards."""
    assert axis_type(name, BoundVersion("3.0.1")).guard == "_CCCL_HAS_INT128()"


def test_complex_numbers_were_renamed():
    """complex-rename."""
    assert axis_type("C64", BoundVersion("3.1.4")).cpp == "::cuda::std::complex<float>"
    assert axis_type("C64", BoundVersion("3.2.0")).cpp == "::cuda::std::complex<double>"
    assert axis_type("C32", BoundVersion("3.2.0")).cpp == "::cuda::std::complex<float>"
    with pytest.raises(InputError, match=r"CUB 3\.1\.4 has no type named 'C32'"):
        axis_type("C32", BoundVersion("3.1.4"))


def test_axes_were_renamed():
    """axis-renames."""
    assert benchmark("select.if", "2.8.2").renamed == {"InPlace": "MayAlias"}
    assert "OffsetT" not in benchmark("select.if", "3.6.0").axes
    assert "RunLengthT" not in benchmark("run_length_encode.encode", "3.0.1").axes
    assert "RunLengthT" in benchmark("run_length_encode.encode", "3.1.4").axes
    assert "RunLengthT" not in benchmark("run_length_encode.non_trivial_runs", "3.1.4").axes
    assert "RunLengthT" in benchmark("run_length_encode.non_trivial_runs", "3.2.0").axes
    assert "OffsetT" not in benchmark("merge.keys", "3.5.0").axes
    operations = [
        axis_values(benchmark("reduce.arg_extrema", v), "Operation", BoundVersion(v))
        for v in ("3.2.0", "3.5.0")
    ]
    assert operations == [("ArgMin", "ArgMax"), ("arg_min", "arg_max")]


def test_axes_are_named_without_their_decoration():
    """column-decoration."""
    axes = {
        axis
        for v in VERSIONS
        for a in bound(BoundVersion(v))
        for b in a.benchmarks
        for axis in b.axes
    }
    assert not any("{" in axis or "[" in axis for axis in axes)


def test_labels_may_hold_negative_values():
    """negative-values."""
    parameters = benchmark("scan.exclusive.sum.lookahead", "3.6.0").parameters
    assert parameters["lbs"] == "-2:2:1"
    assert dict(parse_label("wrps_4.lbi_2.ipt_88.lbs_-2.bis_-1")) == {
        "wrps": 4,
        "lbi": 2,
        "ipt": 88,
        "lbs": -2,
        "bis": -1,
    }


@pytest.mark.parametrize("version", ["3.5.0", "3.6.0"])
def test_both_dialects_are_bound_where_both_are_there(version):
    """parallel-dialects: neither consults the other."""
    for found in bound(BoundVersion(version)):
        for bound_family in found.families:
            assert found.site(bound_family.site, "specializations") is not None
            assert found.site(bound_family.site, "selectors") is not None


def test_fields_of_aggregates_are_read_by_name():
    """aggregate-order: it changed between versions, and no binding counts positions."""
    sites = [
        s for found in bound(BoundVersion("3.6.0")) for s in found.sites if s.dialect == "selectors"
    ]
    assert len(sites) > 20
    for site in sites:
        assert site.values
        assert not any(text.strip("+").isdigit() for text in site.values.values())


@pytest.mark.parametrize(("below", "since"), [("3.2.0", "3.5.0")])
def test_operators_are_classified_as_the_version_spells_it(below, since):
    """enum-rename."""
    assert "classify_op<OpT>()" in family("reduce", "sm100_tuning", below, "reduce").args
    assert "classify_op<OpT>" in family("reduce", "sm100_tuning", since).args
    assert family("scan", "sm80_tuning", since).args[0] == "classify_type<AccumT>"


@pytest.mark.parametrize("version", VERSIONS)
def test_run_length_encoding_has_two_families_of_each_name(version):
    """namespace-scope-dup."""
    found = algorithm("run_length_encode", version)
    names = [f.name for f in found.families]
    assert names.count("sm100_tuning") == 2
    spaces = {found.site(f.site, "specializations").namespace for f in found.families}
    assert spaces == {"detail::rle::encode", "detail::rle::non_trivial_runs"}


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_lookahead_shadows_lookback_on_sm100_and_with_older_compilers_not_on_sm120():
    """lookahead-shadowing and cc-ranges: a winner for lookback has no effect on 10.x."""
    found = read(cub_tree("3.6.0"), "scan")
    pattern = re.compile(r"cub\.bench\.scan\.exclusive\.sum$")
    asked = places(found.cub, found.headers, pattern, {"T": frozenset({"I8"})})
    toolchain = find_toolchain()
    told, _ = resolve(found.cub, asked, {}, ("sm90", "sm100", "sm120"), toolchain)
    algorithms = {(row.arch, row.values["algorithm"]) for row in told.rows}
    on_sm120 = "lookback" if numbers(toolchain.version) < (13, 4) else "lookahead"
    assert algorithms == {("sm90", "lookback"), ("sm100", "lookahead"), ("sm120", on_sm120)}
    assert {row.status for row in told.rows if row.arch == "sm100"} == {"tuned"}


def test_versions_are_compared_by_their_numbers():
    assert numbers("3.10.0") > numbers("3.9.0")
