# ruff: noqa: E501  the text of a header
"""Where a result goes in a tree with policy selectors, with a compiler that is pretended."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from policygen.bindings.load import bound, site_of
from policygen.bindings.variants import newest_family
from policygen.errors import InputError
from policygen.headers.dialects import Selectors
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_header
from policygen.headers.selectors import return_edits
from policygen.headers.selectors.arch_blocks import AddedFields, _type, added_fields
from policygen.headers.selectors.guarded_returns import GuardedReturn, NewReturn
from policygen.headers.selectors.nearest import EmptyCase, HeaderReturns
from policygen.headers.text import Text
from policygen.model.bindings import FamilyBinding
from policygen.model.plans import Options
from policygen.model.records import Span
from policygen.model.selection import Delta, Selected
from policygen.model.trees import BoundVersion
from policygen.model.tuning import AddedMember
from policygen.planning.measured import measurements
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from tests.planning.pretend import CUB
from tests.planning.wanted import benchmark, no_common_variant, scored

TREE = CUB.model_copy(update={"dialect": "selectors", "version": "3.6.0"})
HEADER = """\
struct ScanLookbackPolicy
{
  int threads_per_block;
  int items_per_thread;
};
constexpr auto make_mem_scaled_lookback_scan_policy(
  int nominal_4b_threads_per_block, int nominal_4b_items_per_thread, int accum_size, BlockLoadAlgorithm load_algorithm,
  CacheLoadModifier load_modifier, BlockStoreAlgorithm store_algorithm, BlockScanAlgorithm scan_algorithm,
  LookbackDelayPolicy delay_constructor) -> ScanLookbackPolicy
{
  return ScanLookbackPolicy{1, 2};
}
constexpr auto get_sm100_tuning(compute_capability cc, int size) -> ScanLookbackPolicy
{
  if (size == 1)
  {
    return make_mem_scaled_lookback_scan_policy(
      512, 18, accum_size, BLOCK_LOAD_DIRECT, LOAD_CA, BLOCK_STORE_DIRECT, BLOCK_SCAN_WARP_SCANS, {a::b, 1, 2});
  }
  if (size == 2)
  {
    return ScanLookbackPolicy{512, 19};
  }
  return make_mem_scaled_lookback_scan_policy(size);
}
"""
LABEL = "ipt_20.tpb_256.ns_404.dcid_1.l2w_710.trp_1.ld_1"
SUM = benchmark("3.6.0", "scan.exclusive.sum")
(FAMILY,) = read_header("tuning_scan.cuh", HEADER.encode()).selectors


def measured():
    wanted = [scored(SUM, {"T": "I8", "OffsetT": "I32"}, LABEL, "3.6.0", "any")]
    (found,), _ = measurements(wanted, BoundVersion("3.6.0"), "sm100", force=True)
    return found, wanted


def told(number):
    shown = None if number is None else (FAMILY, FAMILY.entries[number])
    return Selected({"threads": 512}, shown, {}, {"AccumT": 4})


def returns(arch, data=b""):
    return Selectors(TuningTree(TREE, {"tuning_scan.cuh": FAMILY}, {"tuning_scan.cuh": data}), arch)


def test_values_have_the_names_of_what_is_called():
    one, _ = measured()
    to = returns("sm100").decides(one.benchmark, told(0))
    assert to.fields == {
        "threads": "nominal_4b_threads_per_block",
        "items": "nominal_4b_items_per_thread",
        "delay_constructor": "delay_constructor",
        "load_algorithm": "load_algorithm",
        "store_algorithm": "store_algorithm",
        "load_modifier": "load_modifier",
    }
    assert to.new is None
    # Counts are scaled by the function that is called.
    assert to.binding.members["items"].unit.of == "AccumT"


@pytest.mark.parametrize(
    ("number", "arch", "message"),
    [
        (None, "sm100", "no return with constants decides it in tuning_scan.cuh; its values are computed"),
        (0, "sm120", "sm120 has no return of its own for it; tuning_scan.cuh:17 (get_sm100_tuning for sm100)"),
        (
            1,
            "sm100",
            "tuning_scan.cuh:22 (get_sm100_tuning) returns no delay_constructor: CUB selects a"
            " different",
        ),
    ],
)  # fmt: skip
def test_what_has_no_return_to_change_is_told(number, arch, message):
    one, _ = measured()
    with pytest.raises(InputError) as raised:
        returns(arch).decides(one.benchmark, told(number))
    assert str(raised.value).startswith(message)


class Silent:
    """A compiler that refuses a header."""

    toolchain = "nvcc"

    def tell(self, points, arch):
        return {}

    def compare(self, changed):
        return Delta((), 0, ())


def test_a_header_that_the_compiler_refuses_is_told():
    _, wanted = measured()
    sources = TuningTree(TREE, {}, {})
    made = Planner(sources, Options(arch="sm100", force=True), Silent(), no_common_variant)
    (action,) = made.plan(wanted).actions
    assert (action.decision, action.reason) == ("reject", "its header does not compile")


def test_what_is_not_writable_is_told_with_the_edit():
    one = benchmark("3.6.0", "transform.fib")
    wanted = [scored(one, {}, "ipt_7.tpb_256", "3.6.0", "any")]
    made = Planner(
        TuningTree(TREE, {}, {}), Options(arch="sm100", force=True), Silent(), no_common_variant
    )
    (action,) = made.plan(wanted).actions
    edit = one.edit.removesuffix(".")
    told = f"policygen cannot write entries for this benchmark; edit {edit}"
    assert action.reason == told


def test_a_header_that_is_not_utf_8_gets_no_new_returns():
    one, _ = measured()
    data = HEADER.encode().replace(b"512, 19", b"512, 19 /* \xff */")
    with pytest.raises(InputError, match=r"tuning_scan\.cuh:22 is not UTF-8"):
        returns("sm120", data).beside(one.benchmark, told(None))


FLAGGED = benchmark("3.6.0", "select.flagged")
PREFETCHED = "trp_1.ld_0.ipt_12.tpb_256.ns_404.dcid_1.l2w_710.pf_{}"


@pytest.mark.parametrize(("prefetch", "message"), [(0, None), (3, "no member for pf and implies")])
def test_what_a_header_has_no_place_for_must_be_what_it_stands_for(prefetch, message):
    label = PREFETCHED.format(prefetch)
    wanted = [scored(FLAGGED, {"T": "I8", "InPlace": "false"}, label, "3.6.0", "any")]
    (one,), _ = measurements(wanted, BoundVersion("3.6.0"), "sm100", force=True)
    algorithm, site = site_of(one.benchmark, BoundVersion("3.6.0"), "selectors")
    known = newest_family(algorithm, site).members
    rules = {name: rule.model_copy(update={"unit": None}) for name, rule in known.items()}
    binding = FamilyBinding(site="select", name="f", args=(), members=rules)
    case = PlacedResult(GuardedReturn(told(0), site, binding, FAMILY, "f", {}), one)
    with pytest.raises(InputError, match=message) if message else nullcontext():
        assert case.members(label).keys() == rules.keys()


def code(text=HEADER):
    return HeaderReturns(Text("tuning_scan.cuh", text.encode()), (FAMILY,))


def test_a_field_that_no_place_can_give_a_value_is_refused():
    header, added = code(), {"pf": AddedMember("", "LOAD_LDG")}
    with pytest.raises(InputError) as caught:
        added_fields(header, FAMILY.entries[0], added)
    function = "make_mem_scaled_lookback_scan_policy"
    assert str(caught.value) == f"tuning_scan.cuh:17: {function} has no place for pf"
    with pytest.raises(InputError, match=r"cuh: policies declare pf with 0 types, not with one"):
        _type(header, "pf")
    made = next(one for one in header.deciding if one.name == function)
    fields = AddedFields(header.structs[made.returns], added, made)
    with pytest.raises(InputError) as caught:
        fields._end_of_values(header.text, made, "threads_per_block")
    assert str(caught.value) == (
        f"tuning_scan.cuh:6: {function} has no place for threads_per_block: it must have one"
        " return, which lists the values before it"
    )
    with pytest.raises(InputError) as caught:
        fields.read(header.text, Span(0, len(header.text.data)), "sm100_tuning")
    assert str(caught.value) == (
        "tuning_scan.cuh:1: ScanLookbackPolicy cannot get a field pf: LOAD_LDG is not among the"
        " values computed from the struct"
    )


def test_a_return_that_cannot_be_for_one_type_or_keep_values_is_refused():
    with pytest.raises(InputError, match="a case without returns cannot get one for a single type"):
        NewReturn(EmptyCase(None, Span(0, 0), ()), ()).naming("T == type_t::int8")
    spot = GuardedReturn(told(0), None, None, FAMILY, "f", {})
    with pytest.raises(InputError, match=r"no return can keep the values of T=I8"):
        spot.kept("T=I8")


def test_what_selects_another_algorithm_or_returns_before_is_refused():
    one, _ = measured()
    scan = f"namespace cub\n{{\nnamespace detail::scan\n{{\n{HEADER}}}\n}}\n"

    def refused(text, *values):
        selected = Selected(dict.fromkeys(values, 1), None, {}, {"AccumT": 4}, traits={"size": 8})
        header = read_header("tuning_scan.cuh", text.encode())
        sources = TuningTree(TREE, {header.name: header}, {header.name: text.encode()})
        with pytest.raises(InputError) as caught:
            Selectors(sources, "sm100").beside(one.benchmark, selected)
        return str(caught.value)

    other = "CUB selects a different algorithm for it than the measured one"
    assert refused(scan, "threads") == other
    early = "  if (size == 8)\n  {\n    return ScanLookbackPolicy{1, 2};\n  }\n  if (size == 1)\n"
    names = ("threads", "items", "delay_constructor", "load_algorithm", "store_algorithm")
    assert refused(scan.replace("  if (size == 1)\n", early), *names, "load_modifier") == (
        "tuning_scan.cuh:21 returns a policy for it before the returns of sm100 are reached"
    )


def test_a_policy_in_front_needs_a_function_that_can_test_the_workload():
    bench = next(b for a in bound(BoundVersion("3.6.0")) for b in a.benchmarks if b.first)
    _, site = site_of(bench, BoundVersion("3.6.0"), "selectors")
    sources = TuningTree(TREE, {site.header: read_header(site.header, b"")}, {site.header: b""})
    place = Selectors(sources, "sm100")
    with pytest.raises(InputError, match=rf"{site.header} has no \S+ that can test "):
        place.first(bench, told(None), (bench.name, ()))


def test_a_value_that_neither_the_compiler_nor_a_binding_gives_is_refused():
    text, selected = Text("tuning_scan.cuh", b""), SimpleNamespace(fields=None)
    with pytest.raises(InputError, match="the compiler does not show all values that f returns"):
        list(return_edits._leaf_values(text, SimpleNamespace(name="f", selected=selected), None))
    with pytest.raises(InputError, match=r"tuning_scan\.cuh: no binding describes a\.b of f"):
        return_edits._spelled(text, SimpleNamespace(name="f"), "a.b", "Lookback", None)
