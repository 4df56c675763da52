"""Which benchmarks a checkout has, and what a variant of one is to CCCL's build."""

import re
from dataclasses import replace

import pytest

from policygen.errors import InputError, Problems
from policygen.gpu.checkout import CheckoutBenchmark, open_checkout
from policygen.model.benchmarks import Axis, Benchmark, SubBenchmark
from policygen.model.trees import BoundVersion
from tests.gpu.own_checkout import NAME, SOURCE, make_checkout
from tests.probing import root

pytestmark = pytest.mark.trees
WORKLOAD = {"T{ct}": "F32", "OffsetT{ct}": "I32"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_checkout(tmp_path_factory.mktemp("cccl") / "cccl")


@pytest.fixture(scope="module")
def opened(folder):
    return open_checkout(folder, re.compile("cub.bench.reduce"))


def test_a_checkout_tells_its_benchmarks_and_what_they_include(folder, opened):
    assert list(opened.benchmarks) == [NAME]
    one = opened.benchmarks[NAME]
    assert one.source.as_posix() == "reduce/sum.cu"
    # The other axis has one type, whatever is defined.
    assert one.narrowed == {"T"}
    assert opened.helper == folder / "nvbench_helper/nvbench_helper/nvbench_helper.cu"
    assert opened.includes[0] == str(folder / "cub")
    assert str(opened.helper.parent) in opened.includes
    assert str(folder / "cub/benchmarks/bench") in opened.includes
    assert one.declared[NAME, "base", "Elements{io}[pow2]"] == ("16", "20", "24", "28")


def test_a_variant_is_its_macros_and_the_types_of_the_workload(opened):
    text = opened.benchmarks[NAME].text("ipt_9.tpb_128", WORKLOAD, BoundVersion("3.0.1"))
    assert text == (
        "#define TUNE_ITEMS 9\n#define TUNE_THREADS 128\n#define TUNE_T float\n"
        "#include <reduce/sum.cu>\n"
    )
    assert (
        opened.benchmarks[NAME]
        .text("base", WORKLOAD, BoundVersion("3.0.1"))
        .startswith("#define TUNE_BASE 1\n#define TUNE_T float\n")
    )


def test_types_that_come_from_a_header_bring_it(opened):
    axes = [
        Axis(name=f"{name}{{ct}}", kind="type", values=values, spelling="list")
        for name, values in (("T", ("F16", "F32")), ("OffsetT", ("4", "8")), ("U", ("mine",)))
    ]
    sub = SubBenchmark(name="base", axes=tuple(axes), source="a.cu", line=1)
    known = opened.benchmarks[NAME]
    one = replace(
        known,
        benchmark=known.benchmark.model_copy(update={"subbenches": (sub,)}),
        narrowed=frozenset({"T", "OffsetT", "U"}),
    )
    text = one.text(
        "base", {"T{ct}": "F16", "OffsetT{ct}": "4", "U{ct}": "mine"}, BoundVersion("3.5.0")
    )
    assert text.startswith("#define TUNE_BASE 1\n#include <cuda_fp16.h>\n")
    assert "#define TUNE_OffsetT ::cuda::std::integral_constant<decltype(4), 4>\n" in text
    # What has one type is not narrowed to it, whether anybody knows the type or not.
    assert "TUNE_U" not in text


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("fast", "'fast' is not a variant label"),
        (
            "ipt_9",
            "ipt_9 is not a variant of cub.bench.reduce.sum, which has the parameters ipt, tpb",
        ),
        ("ipt_9.tpb_1.ns_1", "which has the parameters ipt, tpb"),
    ],
)
def test_a_variant_has_all_parameters_and_no_others(opened, label, words):
    with pytest.raises(InputError, match=words):
        opened.benchmarks[NAME].macros(label)


def test_without_parameters_the_message_says_so():
    one = CheckoutBenchmark(
        Benchmark(
            name="cub.bench.plain",
            source="plain.cu",
            parameters=(),
            subbenches=(SubBenchmark(name="base", axes=(), source="plain.cu", line=1),),
        ),
        source=None,
        narrowed=frozenset(),
    )
    assert one.declared == {}
    with pytest.raises(InputError, match="which has the parameters none"):
        one.macros("ipt_1")


def test_axes_of_all_sub_benchmarks_are_declared():
    axis = Axis(name="N{io}", kind="int64", values=("1", "2"), spelling="list")
    subs = [SubBenchmark(name=n, axes=(axis,), source="a.cu", line=1) for n in ("keys", "pairs")]
    whole = Benchmark(name="b", source="a.cu", parameters=(), subbenches=tuple(subs))
    one = CheckoutBenchmark(whole, source=None, narrowed=frozenset())
    assert one.declared == {
        ("b", "keys", "N{io}"): ("1", "2"),
        ("b", "pairs", "N{io}"): ("1", "2"),
    }


def test_a_name_that_no_benchmark_has_is_told(folder):
    with pytest.raises(InputError, match=r"-R 'cub\.bench\.scan' does not match the start of"):
        open_checkout(folder, re.compile("cub.bench.scan"))


def test_a_source_that_cannot_be_read_is_told(tmp_path):
    wrong = SOURCE.replace("7:24:1", "7:24")
    folder = make_checkout(tmp_path / "cccl", wrong)
    with pytest.raises(Problems, match=r"sum\.cu:2"):
        open_checkout(folder, re.compile(""))


def test_what_is_no_whole_checkout_is_told(tmp_path):
    with pytest.raises(InputError, match="name a CCCL checkout"):
        open_checkout(root("3.0.1"), re.compile(""))
    folder = make_checkout(tmp_path / "cccl")
    (folder / "nvbench_helper/nvbench_helper/nvbench_helper.cu").unlink()
    with pytest.raises(InputError, match=r"nvbench_helper\.cu"):
        open_checkout(folder, re.compile(""))
