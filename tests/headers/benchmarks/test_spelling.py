"""C++ of bindings as a benchmark's source says it."""

from types import SimpleNamespace

import pytest

from policygen.errors import InputError
from policygen.gpu import benchmark_policy
from policygen.gpu.benchmark_policy import filled, in_style, source_names
from policygen.model.bindings import BenchmarkBinding, BufferBinding, MemberRule, RunBinding, Unit

BENCHMARK = BenchmarkBinding(
    name="cub.bench.mine",
    site="scan",
    axes={"T": ("I8",), "OffsetT": ("I32",), "InPlace": ("true",), "Op": ("f",)},
    parameters={},
    roles={
        "InputT": "axis::T",
        "OpT": "axis::Op",
        "AccumT": "accumulator<OpT, InputT>",
        "OffsetT": "offset<axis::OffsetT>",
        "ValueT": "NullType",
        "KeyT": "AccumT",
    },
    constants={"MayAlias": "axis::InPlace", "Channels": "4"},
)
RUN = RunBinding(
    benchmarks=("cub.bench.mine",),
    axes={"Elements{io}[pow2]": ("16",), "MaxSegSize": ("4",), "Entropy": ("1.000",)},
    sizes={"num_items": "Elements", "runs": "Elements / MaxSegSize"},
    buffers={"in": BufferBinding(type="InputT", count="Elements")},
    function="f",
    arguments="in",
)
NAMES = source_names(BENCHMARK, RUN, {"InPlace": "true"}, "Op", {})


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("static_cast<const InputT*>(in)", "static_cast<const T*>(d_in)"),
        ("static_cast<OffsetT>(num_items)", "static_cast<offset_t>(elements)"),
        ("static_cast<axis::OffsetT>(runs)", "static_cast<OffsetT>(runs)"),
        ("OpT{}, axis::Op{}, AccumT{}", "op_t{}, op_t{}, accum_t{}"),
        ("Channels * MayAlias", "4 * InPlace::value"),
        ("a.in + x->in + mine::in + in::b", "a.in + x->in + mine::in + in::b"),
        ("KeyT, ValueT, NullType", "key_t, cub::NullType, cub::NullType"),
        ("ascending{}, less_than<InputT>{MaxSegSize}", "less_t{}, less_then_t<T>{max_seg_size}"),
    ],
)
def test_names_of_a_binding_are_those_of_the_source(text, spelled):
    assert NAMES.spell(text) == spelled


def test_roles_that_others_need_are_needed():
    assert NAMES.needed(["InputT{}"]) == set()
    assert NAMES.needed(["KeyT{}"]) == {"KeyT", "AccumT"}
    assert NAMES.needed(["f(AccumT{})"]) == {"AccumT"}
    assert in_style("InputValueT") == "input_value_t"


@pytest.mark.parametrize(
    ("fill", "init"),
    [
        (None, "(elements)"),
        ("uniform(to, count)", " = generate(elements)"),
        ("uniform(to, count, 337)", " = generate(elements, bit_entropy::_0_337)"),
        (
            "uniform(to, count, Entropy, InputT{}, f<int, 2>(1, 2))",
            " = generate(elements, entropy, T{}, f<int, 2>(1, 2))",
        ),
        (
            "power_law_offsets(to, runs, Elements)",
            " = generate.power_law.segment_offsets(elements, runs)",
        ),
    ],
)
def test_a_generator_is_one_of_ccls(fill, init):
    buffer = BufferBinding(type="InputT", count="Elements", fill=fill)
    assert filled("in", buffer, NAMES).init == init


@pytest.mark.parametrize("fill", ["none(to, count)", "uniform(to, count, 1, 2)", "uniform"])
def test_contents_that_no_generator_makes_are_refused(fill):
    buffer = BufferBinding(type="InputT", count="Elements", fill=fill)
    with pytest.raises(InputError, match=r"cannot generate the contents of keys: (none|uniform)"):
        filled("keys", buffer, NAMES)


def writer(**units):
    selector = SimpleNamespace(
        selector=SimpleNamespace(policy="TopkPolicy", copies={}),
        selects="TopkPolicy",
        default="",
        benchmark=SimpleNamespace(units=units),
    )
    return benchmark_policy._Writer(selector, (), {"ipt": "TUNE_ITEMS"})


def test_a_field_that_the_policy_lacks_is_named(monkeypatch):
    rules = {"items": MemberRule(parameter="ipt")}
    monkeypatch.setattr(benchmark_policy, "field_rules", lambda _: rules)
    with pytest.raises(InputError, match="TopkPolicy has no field items"):
        list(writer().lines())


def test_a_scaling_that_cub_has_no_function_for_is_named():
    unit = Unit(scaling="nominal_4b_unbounded", of="KeyT")
    told = "CUB has no function for the scaling nominal_4b_unbounded"
    with pytest.raises(InputError, match=told):
        writer(ipt=unit)._scaled("items", MemberRule(parameter="ipt"), {}, {})
