# ruff: noqa: E501  a row of a table is one line
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen import trees
from policygen.bindings.load import Bound, bindings, bound, scaling
from policygen.bindings.variants import (
    member_values,
    newest_family,
    threads_that_fit,
    unscaled,
    variant_parameters,
    within_limits,
)
from policygen.errors import InputError
from policygen.headers.scan import scan_headers
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Unit
from policygen.model.trees import BoundVersion
from policygen.model.tuning import TuningHeader
from policygen.proof.lint_subject import base_of
from tests.real_trees import tree as cub_tree

SIZES = (1, 2, 4, 8, 16)
COUNTS = range(1, 33)


def nominal_4b(count: int, size: int) -> int:
    """`Nominal4BItemsToItems`: `min(n, max(1, n*4/size))`."""
    return min(count, max(1, count * 4 // size))


def mem_bound(count: int, size: int) -> int:
    """`MemBoundScaling`: `max(1, min(n*4/size, 2n))`."""
    return max(1, min(count * 4 // size, 2 * count))


def reg_bound(count: int, size: int) -> int:
    """`RegBoundScaling`: `max(1, n*4/max(4,size))`."""
    return max(1, count * 4 // max(4, size))


FORMULAS = [nominal_4b, mem_bound, reg_bound]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("size", SIZES)
def test_a_count_stands_for_as_many_items_as_cub_computes(formula, size: int) -> None:
    for count in COUNTS:
        assert scaling(formula.__name__).items(count, size) == formula(count, size)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("size", SIZES)
def test_the_least_count_for_items_is_found_or_there_is_none(formula, size: int) -> None:
    for items in COUNTS:
        counts = [count for count in range(1, 32 * 16 + 1) if formula(count, size) == items]
        if counts:
            assert unscaled(formula.__name__, items, size) == counts[0]
        else:
            with pytest.raises(InputError):
                unscaled(formula.__name__, items, size)


def test_which_items_have_no_count() -> None:
    """Small types get twice the items when memory bounds them: an odd number cannot be written."""
    refused = []
    for formula in FORMULAS:
        for size in SIZES:
            for items in COUNTS:
                try:
                    unscaled(formula.__name__, items, size)
                except InputError:
                    refused.append((formula, size, items))
    odd = [items for items in COUNTS if items % 2 and items > 1]
    impossible = [(mem_bound, size, items) for size in (1, 2) for items in (1, *odd)]
    assert refused == impossible


@given(st.sampled_from(FORMULAS), st.integers(1, 200), st.integers(1, 64))
def test_what_is_written_is_what_was_measured(formula, count: int, size: int) -> None:
    name = formula.__name__
    items = scaling(name).items(count, size)
    assert scaling(name).items(unscaled(name, items, size), size) == items


@pytest.mark.parametrize(
    ("threads", "items", "size", "expected"),
    [
        (256, 12, 4, 256),
        (1024, 24, 4, 512),
        (1024, 12, 16, 256),
        (512, 25, 8, 256),
        (512, 7, 16, 448),
    ],
)
def test_threads_are_fewer_where_shared_memory_ends(
    threads: int, items: int, size: int, expected: int
) -> None:
    assert threads_that_fit(threads, items, size) == expected
    warps = -(-(48 * 1024 // (size * items)) // 32)
    assert expected == min(threads, 32 * warps)


# What CUB selects, by version.


def algorithm(name: str, version: str) -> Bound:
    (found,) = [one for one in bound(BoundVersion(version)) if one.algorithm == name]
    return found


def family(one: Bound, name: str, site: str = "") -> FamilyBinding:
    (found,) = [f for f in one.families if f.name == name and site in ("", f.site)]
    return found


def benchmark(one: Bound, name: str) -> BenchmarkBinding:
    (found,) = [b for b in one.benchmarks if b.name == f"cub.bench.{name}"]
    return found


def parsed(variant: str) -> dict[str, int]:
    """`ipt_19.tpb_512`."""
    pairs = (part.rpartition("_") for part in variant.split("."))
    return {label: int(value) for label, _, value in pairs}


def values(
    name: str, version: str, tuning: str, bench: str, variant: str, sizes: dict[str, int], site=""
) -> dict[str, str]:
    one = algorithm(name, version)
    found = family(one, tuning, site)
    assert list(member_values(found, benchmark(one, bench), parsed(variant), sizes)) == list(
        found.members
    )
    return member_values(found, benchmark(one, bench), parsed(variant), sizes)


SELECT = "trp_1.ld_1.ipt_10.tpb_384.ns_564.dcid_1.l2w_720"


@pytest.mark.parametrize(
    "bench", ["select.if", "select.flagged", "select.unique", "partition.if", "partition.flagged"]
)
@pytest.mark.parametrize(
    ("version", "size", "nominal"),
    [
        # From 3.0 on the benchmark counts plainly, and the header for elements of four bytes.
        ("3.0.1", 1, 10), ("3.0.1", 2, 10), ("3.0.1", 4, 10), ("3.0.1", 8, 20), ("3.0.1", 16, 40),
        ("3.6.0", 1, 10), ("3.6.0", 4, 10), ("3.6.0", 8, 20), ("3.6.0", 16, 40),
        # Before, both counted for elements of four bytes.
        ("2.8.2", 1, 10), ("2.8.2", 4, 10), ("2.8.2", 8, 10), ("2.8.2", 16, 10),
    ],
)  # fmt: skip
def test_select_and_partition(bench: str, version: str, size: int, nominal: int) -> None:
    assert values("select_if", version, "sm100_tuning", bench, SELECT, {"InputT": size}) == {
        "threads": "384",
        "nominal_4b_items": str(nominal),
        "load_algorithm": "BLOCK_LOAD_WARP_TRANSPOSE",
        "load_modifier": "LOAD_CA",
        "delay_constructor": "fixed_delay_constructor_t<564, 720>",
    }


@pytest.mark.parametrize("size", SIZES)
def test_older_families_of_select_count_plainly(size: int) -> None:
    found = values("select_if", "3.0.1", "sm90_tuning", "select.if", SELECT, {"InputT": size})
    assert found["items"] == "10"
    assert "load_modifier" not in found


@pytest.mark.parametrize(("size", "items"), [(4, 10), (8, 20)])
@pytest.mark.parametrize("tuning", ["sm86_tuning", "sm90_tuning"])
def test_deterministic_reductions_double_their_items_for_doubles(
    tuning: str, size: int, items: int
) -> None:
    """The benchmark does not scale, the header does."""
    found = values(
        "reduce", "3.2.0", tuning, "reduce.deterministic", "ipt_10.tpb_512", {"AccumT": size}
    )
    assert found == {"items": str(items), "threads": "512"}


@pytest.mark.parametrize(
    ("size", "accumulator", "items"),
    [(4, 4, 16), (8, 8, 16), (16, 16, 16), (1, 4, 32), (2, 4, 32), (1, 1, 16)],
)
@pytest.mark.parametrize(("ipv", "vector"), [(0, 1), (1, 2), (2, 4), (5, 32)])
def test_sums(size: int, accumulator: int, items: int, ipv: int, vector: int) -> None:
    """Sums of small integers accumulate in int, and `ipv` is the exponent of a vector's length."""
    sizes = {"axis::T": size, "AccumT": accumulator}
    variant = f"ipt_16.tpb_512.ipv_{ipv}"
    assert values("reduce", "3.0.1", "sm100_tuning", "reduce.sum", variant, sizes) == {
        "items": str(items),
        "threads": "512",
        "items_per_vec_load": str(vector),
    }


SCAN = "ipt_18.tpb_288.ns_716.dcid_{dcid}.l2w_785.trp_{trp}.ld_0"


@pytest.mark.parametrize(("trp", "suffix"), [(0, "DIRECT"), (1, "WARP_TRANSPOSE")])
def test_one_parameter_decides_two_members(trp: int, suffix: str) -> None:
    sizes = {"InputValueT": 1, "AccumT": 1, "axis::T": 1}
    variant = SCAN.format(dcid=5, trp=trp)
    assert values("scan", "3.0.1", "sm100_tuning", "scan.exclusive.sum", variant, sizes) == {
        "items": "18",
        "threads": "288",
        "delay_constructor": "exponential_backon_jitter_window_constructor_t<716, 785>",
        "load_algorithm": f"BLOCK_LOAD_{suffix}",
        "store_algorithm": f"BLOCK_STORE_{suffix}",
        "load_modifier": "LOAD_DEFAULT",
    }


DELAYS = [
    "no_delay_constructor_t<785>",
    "fixed_delay_constructor_t<716, 785>",
    "exponential_backoff_constructor_t<716, 785>",
    "exponential_backoff_jitter_constructor_t<716, 785>",
    "exponential_backoff_jitter_window_constructor_t<716, 785>",
    "exponential_backon_jitter_window_constructor_t<716, 785>",
    "exponential_backon_jitter_constructor_t<716, 785>",
    "exponential_backon_constructor_t<716, 785>",
]


@pytest.mark.parametrize(("dcid", "spelled"), list(enumerate(DELAYS)))
def test_delay_constructors(dcid: int, spelled: str) -> None:
    """The one without a delay takes the write latency alone."""
    rule = MemberRule(delay=("dcid", "ns", "l2w"))
    assert filled(rule, {"dcid": dcid, "ns": 716, "l2w": 785}) == spelled


# Rules of one member.


def filled(
    rule: MemberRule,
    variant: dict[str, int],
    measured: Unit | None = None,
    *,
    member: str = "member",
    **sizes: int,
) -> str:
    one = FamilyBinding(site="x", name="sm90_tuning", args=(), members={member: rule})
    units = {} if measured is None else {str(rule.parameter): measured}
    bench = BenchmarkBinding(name="x", site="x", parameters={}, units=units)
    return member_values(one, bench, variant, sizes)[member]


def ipt(scaling: str | None) -> MemberRule:
    return MemberRule(parameter="ipt", unit=unit(scaling))


def unit(scaling: str | None, of: str = "T") -> Unit | None:
    return None if scaling is None else Unit.model_validate({"scaling": scaling, "of": of})


def test_a_constant_needs_no_parameter() -> None:
    assert filled(MemberRule(constant="RADIX_BITS"), {}) == "RADIX_BITS"


@pytest.mark.parametrize("written", [None, "nominal_4b", "mem_bound", "reg_bound"])
@pytest.mark.parametrize("measured", [None, "nominal_4b", "mem_bound", "reg_bound"])
@pytest.mark.parametrize("size", SIZES)
def test_the_header_gets_what_gives_as_many_items(
    written: str | None, measured: str | None, size: int
) -> None:
    plain = {formula.__name__: formula for formula in FORMULAS} | {None: lambda count, _: count}
    for count in COUNTS:
        try:
            text = filled(ipt(written), {"ipt": count}, unit(measured), T=size)
        except InputError:
            possible = {plain[written](n, size) for n in range(1, 1025)}
            assert plain[measured](count, size) not in possible
        else:
            assert plain[written](int(text), size) == plain[measured](count, size)
            if written == measured:
                assert text == str(count)


def test_units_of_two_roles_are_one_when_their_sizes_are() -> None:
    rule = MemberRule(parameter="ipt", unit=unit("mem_bound", "AccumT"))
    measured = unit("mem_bound", "T")
    assert filled(rule, {"ipt": 7}, measured, T=8, AccumT=8) == "7"
    assert filled(rule, {"ipt": 7}, measured, T=1, AccumT=4) == "14"


@pytest.mark.parametrize("member", ["threads", "threads_per_block", "one.threads_per_block"])
def test_threads_stay_as_they_are(member: str) -> None:
    rule = MemberRule(parameter="bs", unit=unit("mem_bound"))
    assert filled(rule, {"bs": 512}, member=member) == "512"
    assert filled(rule, {"bs": 512}, unit("nominal_4b", "U"), member=member, T=8) == "512"


CHOICES = MemberRule(parameter="trp", choices=("BLOCK_LOAD_DIRECT", "BLOCK_LOAD_WARP_TRANSPOSE"))
POWER = MemberRule(parameter="ipv", power_of_two=True)
DELAY = MemberRule(delay=("dcid", "ns", "l2w"))


@pytest.mark.parametrize(
    ("rule", "variant", "sizes", "message"),
    [
        (ipt("mem_bound"), {"ipt": 7}, {"T": 1}, "no count of nominal items gives 7 items of 1 bytes\n  The header cannot express this variant."),
        (ipt("mem_bound"), {"ipt": 1}, {"T": 2}, "no count of nominal items gives 1 items of 2 bytes\n  The header cannot express this variant."),
        (ipt("reg_bound"), {"ipt": 0}, {"T": 8}, "no count of nominal items gives 0 items of 8 bytes\n  The header cannot express this variant."),
        (ipt("reg_bound"), {"ipt": -3}, {"T": 8}, "no count of nominal items gives -3 items of 8 bytes\n  The header cannot express this variant."),
        (ipt("mem_bound"), {"ipt": 7}, {"U": 1}, "the size of T is unknown"),
        (ipt(None), {"tpb": 7, "ns": 1}, {}, "the variant has no parameter 'ipt'\n  It has: tpb, ns"),
        (CHOICES, {"trp": 2}, {}, "trp = 2 is invalid\n  It has: 0 (BLOCK_LOAD_DIRECT), 1 (BLOCK_LOAD_WARP_TRANSPOSE)"),
        (CHOICES, {"trp": -1}, {}, "trp = -1 is invalid\n  It has: 0 (BLOCK_LOAD_DIRECT), 1 (BLOCK_LOAD_WARP_TRANSPOSE)"),
        (DELAY, {"dcid": 8, "ns": 1, "l2w": 2}, {}, "no delay constructor has the id 8"),
        (DELAY, {"dcid": -1, "ns": 1, "l2w": 2}, {}, "no delay constructor has the id -1"),
        (DELAY, {"dcid": 1, "l2w": 2}, {}, "the variant has no parameter 'ns'\n  It has: dcid, l2w"),
        (POWER, {"ipv": -1}, {}, "ipv = -1 is invalid\n  The value is the exponent of a power of two."),
        (POWER, {"ipv": 31}, {}, "ipv = 31 is invalid\n  The value is the exponent of a power of two."),
    ],
)  # fmt: skip
def test_a_variant_that_cannot_be_written_is_refused(
    rule: MemberRule, variant: dict[str, int], sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        filled(rule, variant, **sizes)
    assert str(raised.value) == message


def test_a_measured_unit_needs_a_size_too() -> None:
    with pytest.raises(InputError, match="the size of U is unknown"):
        filled(ipt(None), {"ipt": 7}, unit("mem_bound", "U"), T=4)


# The order of members in the headers.


def bound_families(version: str) -> list:
    return [
        pytest.param(version, one.algorithm, f.site, f.name, id=f"{version} {one.algorithm} {f.site} {f.name}")
        for one in bound(BoundVersion(version))
        for f in one.families
    ]  # fmt: skip


def orders_of(header, found, members):
    """How the entries order their members; where none has its own, how their bases do."""
    places = [(found, entry) for entry in found.specializations]
    while not any(entry.members for _, entry in places):
        places = [base_of(header, *place) for place in places if place[1].inherits]
    return {
        tuple(m.name for m in entry.members if m.name in members)
        for _, entry in places
        if entry.members
    }


@cache
def headers_of(version: str) -> tuple[TuningHeader, ...]:
    """Those of a tree, read once for all families."""
    return scan_headers(trees.tuning_headers(trees.open_tree(cub_tree(version)))).headers


@pytest.mark.trees
@pytest.mark.parametrize(
    ("version", "name", "site", "tuning"), bound_families("3.0.1") + bound_families("3.6.0")
)
def test_members_come_in_the_order_of_the_header(
    version: str, name: str, site: str, tuning: str
) -> None:
    one = algorithm(name, version)
    binding = family(one, tuning, site)
    place = one.site(site, "specializations")
    headers = headers_of(version)
    (header, found), *others = [
        (header, f)
        for header in headers
        for f in header.families
        if (f.header, f.namespace, f.name) == (place.header, f"cub::{place.namespace}", tuning)
    ]
    assert others == []
    orders = orders_of(header, found, binding.members)
    assert tuple(binding.members) in orders
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(binding.members))}
    layouts = [entry.layout for entry in found.specializations]
    assert binding.layout == max(("block", "line"), key=layouts.count)


LOOK = BenchmarkBinding(
    name="cub.bench.look", site="look", parameters={"ipt": "7:24:1", "lbs": "-2:2:2"}
)


@pytest.mark.parametrize(
    ("label", "values"),
    [("ipt_7.lbs_-2", {"ipt": 7, "lbs": -2}), ("lbs_0.ipt_24", {"lbs": 0, "ipt": 24})],
)
def test_a_label_of_the_search_space_is_its_values(label, values):
    assert variant_parameters(LOOK, label) == values


OUTSIDE = "If a wider range was searched, name its source or cccl_meta_bench.csv with --bench."


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("ipt_6.lbs_0", f"ipt = 6 is outside of 7:24:1, the range of cub.bench.look\n  {OUTSIDE}"),
        (
            "ipt_-19.lbs_0",
            f"ipt = -19 is outside of 7:24:1, the range of cub.bench.look\n  {OUTSIDE}",
        ),
        ("ipt_7.lbs_1", f"lbs = 1 is outside of -2:2:2, the range of cub.bench.look\n  {OUTSIDE}"),
        ("ipt_7.tpb_1", "cub.bench.look has no parameter 'tpb'\n  It has: ipt, lbs"),
        ("ipt_7\n//_1", "'ipt_7\\x0a//_1' is not a variant label\n  For example: ipt_19.tpb_512"),
        ("base", "'base' is not a variant label\n  For example: ipt_19.tpb_512"),
    ],
)
def test_what_a_benchmark_cannot_mean_is_refused(label, told):
    with pytest.raises(InputError) as caught:
        variant_parameters(LOOK, label)
    assert str(caught.value) == told


def test_a_search_space_that_is_given_may_be_another_one():
    space = (ParameterRange(macro="TUNE_IPT", label="ipt", start=30, end=40, step=5),)
    assert variant_parameters(LOOK, "ipt_35.lbs_0", space) == {"ipt": 35, "lbs": 0}
    assert variant_parameters(LOOK, "ipt_7.lbs_0", space) == {"ipt": 7, "lbs": 0}
    with pytest.raises(InputError, match="ipt = 31 is outside of 7:24:1"):
        variant_parameters(LOOK, "ipt_31.lbs_0", space)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("threads", "0"),
        ("threads", "1025"),
        ("a.b.threads_per_block", "-1"),
        ("threads_per_warp", "64"),
        ("items", "0"),
        ("items_per_thread", "-19"),
        ("vec_size", "0"),
        ("delay", "-4"),
    ],
)
def test_what_no_kernel_can_have_is_refused_whatever_was_searched(member, value):
    with pytest.raises(InputError, match=f"^{member} = {value} is impossible\n  "):
        within_limits(member, value)


@pytest.mark.parametrize(
    ("member", "value"),
    [("threads", "1"), ("threads", "1024"), ("items", "400"), ("lookahead_stages", "-2"),
     ("load_algorithm", "BLOCK_LOAD_DIRECT"), ("delay", "0")],
)  # fmt: skip
def test_what_may_be_stays(member, value):
    assert within_limits(member, value) == value


def test_a_delay_and_a_count_of_a_variant_are_within_limits():
    rules = {
        "threads": MemberRule(parameter="tpb"),
        "delay_constructor": MemberRule(delay=("dcid", "ns", "l2w")),
    }
    family = FamilyBinding(site="look", name="sm90_tuning", args=(), members=rules)
    variant = {"tpb": 128, "dcid": 1, "ns": -4, "l2w": 5}
    with pytest.raises(InputError, match="delay = -4 is impossible"):
        member_values(family, LOOK, variant, {})
    with pytest.raises(InputError, match="threads = 2048 is impossible"):
        member_values(family, LOOK, {**variant, "ns": 4, "tpb": 2048}, {})


@pytest.mark.parametrize("text", ["7:24", "7:24:0", "a:b:c", "7:24:1\n", "9999999999:1:1"])
def test_a_range_of_a_binding_is_three_numbers(text):
    with pytest.raises(ValueError, match=r"parameters\.ipt"):
        BenchmarkBinding(name="cub.bench.look", site="look", parameters={"ipt": text})


def test_all_ranges_of_the_bindings_hold_their_bounds():
    for algorithm in bindings():
        for one in algorithm.benchmarks:
            for label, text in one.parameters.items():
                start, end, step = map(int, text.split(":"))
                values = one.values(label)
                assert (values[0], values.step) == (start, step)
                assert 0 <= end - values[-1] < step


def test_a_header_without_bound_families_is_named():
    algorithm, site = SimpleNamespace(families=()), SimpleNamespace(header="tuning_blur.cuh")
    with pytest.raises(InputError) as caught:
        newest_family(algorithm, site)
    assert str(caught.value) == "the bindings describe no tunings of tuning_blur.cuh"
