# ruff: noqa: E501  a row of a table is one line
import pytest

from policygen.bindings.load import Bound
from policygen.bindings.source_check import check, compare, nearest, not_compared
from policygen.errors import InputError
from policygen.model.audits import NotCompared
from policygen.model.benchmarks import Axis, Benchmark, ParameterRange, SubBenchmark
from policygen.model.bindings import BenchmarkBinding

NAME = "cub.bench.blur.rows"
PARAMETERS = "ipt=7:24:1 tpb=128:1024:32 ns=0:2048:4"
AXES = {"T{ct}": "I8 F32", "OffsetT{ct}": "I32 I64", "InPlace{ct}": "false true"}
BINDING = BenchmarkBinding(
    name=NAME,
    site="blur",
    parameters={"ipt": "7:24:1", "tpb": "128:1024:32", "ns": "0:2048:4"},
    axes={"T": ("I8", "F32"), "OffsetT": "offsets", "InPlace": ("false", "true")},
    renamed={"InPlace": "MayAlias"},
    ignored=("CounterT",),
)
BOUND = Bound("blur", sites=(), families=(), benchmarks=(BINDING,), calls=())


def parameter(text: str) -> ParameterRange:
    label, _, span = text.partition("=")
    start, end, step = map(int, span.split(":"))
    return ParameterRange(macro=f"TUNE_{label}", label=label, start=start, end=end, step=step)


def sub(
    axes: dict[str, str], incomplete: str = "", name: str = "base", types: tuple[str, ...] = ()
) -> SubBenchmark:
    return SubBenchmark(
        name=name,
        source="bench/rows.cuh",
        line=7,
        axes=tuple(
            Axis(
                name=axis,
                kind="type" if "{ct}" in axis or axis in types else "string",
                values=tuple(values.split()),
                spelling="list",
                complete=axis != incomplete,
            )
            for axis, values in axes.items()
        ),
    )


def benchmark(parameters: str = PARAMETERS, *subs: SubBenchmark, name: str = NAME) -> Benchmark:
    return Benchmark(
        name=name,
        source="bench/rows.cu",
        parameters=tuple(map(parameter, parameters.split())),
        subbenches=subs or (sub(AXES),),
    )


def differences(one: Benchmark, binding: BenchmarkBinding | None = BINDING) -> list[tuple]:
    return [
        (d.kind, d.what, " ".join(d.binding), " ".join(d.found))
        for d in compare(one, binding, "3.0.0")
    ]


def test_type_axes_that_the_benchmark_does_not_name_are_compared() -> None:
    plain = {name.replace("{ct}", ""): values for name, values in AXES.items()}
    types = tuple(plain)
    assert differences(benchmark(PARAMETERS, sub(plain, types=types))) == []
    other = differences(benchmark(PARAMETERS, sub({**plain, "T": "I8"}, types=types)))
    assert other == [("axis values", "T", "I8 F32", "I8")]


def without(axis: str) -> dict[str, str]:
    return {name: values for name, values in AXES.items() if name != axis}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (f"{PARAMETERS} ld=0:1:1", [("unbound parameter", "ld", "", "0:1:1")]),
        ("ipt=7:24:1 tpb=128:1024:32", [("missing parameter", "ns", "0:2048:4", "")]),
        ("ipt=7:25:1 tpb=128:1024:32 ns=0:2048:4", [("range", "ipt", "7:24:1", "7:25:1")]),
        ("ipt=7:24:1 tpb=128:1024:64 ns=0:2048:4", [("range", "tpb", "128:1024:32", "128:1024:64")]),
        ("ipt=7:24:1 tpb=128:1024:32 ns=-4:2048:4", [("range", "ns", "0:2048:4", "-4:2048:4")]),
        ("tpb=128:1024:32 ipt=7:24:1 ns=0:2048:4", [("order", "parameters", "ipt tpb ns", "tpb ipt ns")]),
        # What only one has is told by itself, and is no change of order.
        ("ipt=7:24:1 ld=0:1:1 ns=0:2048:4", [("unbound parameter", "ld", "", "0:1:1"), ("missing parameter", "tpb", "128:1024:32", "")]),
        ("ns=0:2048:4 ld=0:1:1 ipt=7:9:1", [("unbound parameter", "ld", "", "0:1:1"), ("range", "ipt", "7:24:1", "7:9:1"), ("missing parameter", "tpb", "128:1024:32", ""), ("order", "parameters", "ipt ns", "ns ipt")]),
        ("", [("missing parameter", "ipt", "7:24:1", ""), ("missing parameter", "tpb", "128:1024:32", ""), ("missing parameter", "ns", "0:2048:4", "")]),
    ],
)  # fmt: skip
def test_tells_changed_parameters(parameters: str, expected: list[tuple]) -> None:
    assert differences(benchmark(parameters)) == expected


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (AXES | {"BinT{ct}": "I32"}, [("unbound axis", "BinT", "", "I32")]),
        (without("OffsetT{ct}"), [("missing axis", "OffsetT", "I32 I64", "")]),
        (AXES | {"T{ct}": "I8 F32 F64"}, [("axis values", "T", "I8 F32", "I8 F32 F64")]),
        (AXES | {"T{ct}": "I8"}, [("axis values", "T", "I8 F32", "I8")]),
        (AXES | {"OffsetT{ct}": "U32 U64"}, [("axis values", "OffsetT", "I32 I64", "U32 U64")]),
        # Both names at once: the old one is another axis then.
        (AXES | {"MayAlias{ct}": "true"}, [("unbound axis", "MayAlias", "", "true")]),
        (without("InPlace{ct}") | {"MayAlias{ct}": "true"}, [("axis values", "InPlace", "false true", "true")]),
        # A runtime axis of the name is not the axis.
        (without("T{ct}") | {"T": "I8 F32"}, [("missing axis", "T", "I8 F32", "")]),
    ],
)  # fmt: skip
def test_tells_changed_axes(axes: dict[str, str], expected: list[tuple]) -> None:
    assert differences(benchmark(PARAMETERS, sub(axes))) == expected


@pytest.mark.parametrize(
    "axes",
    [
        pytest.param(AXES, id="equal"),
        pytest.param(dict(reversed(AXES.items())), id="another order of axes"),
        pytest.param(AXES | {"T{ct}": "F32 I8"}, id="another order of values"),
        pytest.param(without("InPlace{ct}") | {"MayAlias{ct}": "true false"}, id="an older name"),
        pytest.param(AXES | {"CounterT{ct}": "I32"}, id="an ignored axis"),
        pytest.param(AXES | {"Elements{io}[pow2]": "16 20", "Bins": "32"}, id="runtime axes"),
    ],
)
def test_leaves_alone(axes: dict[str, str]) -> None:
    assert differences(benchmark(PARAMETERS, sub(axes))) == []


def test_an_ignored_axis_may_have_values_and_may_be_missing() -> None:
    ignoring = BINDING.model_copy(update={"ignored": ("T",)})
    assert differences(benchmark(PARAMETERS, sub(without("T{ct}"))), ignoring) == []
    changed = benchmark(PARAMETERS, sub(AXES | {"T{ct}": "I8"}))
    assert differences(changed, ignoring) == [("axis values", "T", "I8 F32", "I8")]


def test_a_benchmark_without_a_binding_tells_its_parameters() -> None:
    assert differences(benchmark(), None) == [("unbound benchmark", "parameters", "", PARAMETERS)]


def test_what_all_sub_benchmarks_repeat_is_told_once() -> None:
    more, less = AXES | {"T{ct}": "I8"}, without("T{ct}")
    one = benchmark(PARAMETERS, sub(more), sub(more, name="other"), sub(less, name="third"))
    assert differences(one) == [
        ("axis values", "T", "I8 F32", "I8"),
        ("missing axis", "T", "I8 F32", ""),
    ]


def test_values_that_the_source_does_not_tell_are_not_compared() -> None:
    open_axes = AXES | {"T{ct}": "I8 __float128"}
    one = benchmark(PARAMETERS, sub(open_axes, "T{ct}"), sub(open_axes, "T{ct}", "other"))
    assert differences(one) == []
    assert list(not_compared(one)) == [
        NotCompared(benchmark=NAME, source="bench/rows.cu", what="T")
    ]


def test_a_source_without_axes_is_compared_by_its_parameters_alone() -> None:
    one = benchmark().model_copy(update={"subbenches": ()})
    assert differences(one) == []
    assert [part.what for part in not_compared(one)] == ["axes"]


def test_a_group_of_values_that_nobody_knows_is_an_error() -> None:
    wrong = BINDING.model_copy(update={"axes": {"T": "nothing"}})
    with pytest.raises(InputError, match="no group of axis values named 'nothing'"):
        compare(benchmark(), wrong, "3.0.0")


def test_the_document_counts_and_is_sorted() -> None:
    checked = check(
        [BOUND],
        [
            benchmark(name="thrust.bench.fill"),
            benchmark(name="cub.bench.zoom"),
            benchmark("ipt=7:24:1"),
            benchmark().model_copy(update={"source": "another/rows.cu", "subbenches": ()}),
            benchmark("", name="cub.bench.untuned"),
            benchmark(name="cub.bench.add").model_copy(update={"subbenches": ()}),
        ],
        "3.0.0",
        "3.0.0",
    )
    assert (checked.cub, checked.tested, checked.version) == ("3.0.0", True, "3.0.0")
    assert (checked.compared, checked.differing, checked.unbound) == (4, 3, 2)
    assert (checked.untuned, checked.others) == (1, 1)
    assert [(d.benchmark, d.what) for d in checked.differences] == [
        ("cub.bench.add", "parameters"),
        (NAME, "tpb"),
        (NAME, "ns"),
        ("cub.bench.zoom", "parameters"),
    ]
    assert [(one.source, one.what) for one in checked.not_compared] == [("another/rows.cu", "axes")]


@pytest.mark.parametrize(
    ("cub", "version"),
    [("3.0.0", "3.0.0"), ("3.6.2", "3.6.2"), ("2.7.0", "2.8.0"), ("9.0.0", "3.10.1"), (None, "3.10.1")],
)  # fmt: skip
def test_the_nearest_tested_version_is_taken(
    cub: str | None, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = "policygen.bindings.source_check.is_tested"
    monkeypatch.setattr(tested, lambda one: one not in {"2.7.0", "9.0.0", "9.1.0"})
    assert nearest(cub, ("3.9.0", "3.10.1", "9.1.0", "3.2.0")) == version


@pytest.mark.parametrize("cub", [None, "2.7.0"])
def test_a_version_that_was_not_tested_is_never_called_tested(cub: str | None) -> None:
    checked = check([BOUND], [benchmark()], cub, "2.8.0")
    assert (checked.cub, checked.tested, checked.version) == (cub, False, "2.8.0")
