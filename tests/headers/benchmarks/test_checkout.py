"""The fixtures under `fixtures/bench/checkout`, which have every construct in small."""

import pytest

from policygen.headers.benchmark_sources import read_benchmarks
from policygen.model.benchmarks import Axis, Benchmark
from tests.headers.benchmarks.places import CHECKOUT, checkout

ALL = {one.name: one for one in checkout().benchmarks}


def values(one: Benchmark, sub: int = 0) -> dict[str, tuple[str, ...]]:
    return {axis.name: axis.values for axis in one.subbenches[sub].axes}


def test_every_source_gives_a_benchmark_that_is_named_by_its_path() -> None:
    assert list(ALL) == [
        "cub.bench.odd.incomplete",
        "cub.bench.odd.names",
        "cub.bench.shuffle.deep.warp.lookahead",
        "cub.bench.sum.plain",
    ]


def test_a_registration_in_an_included_neighbour_belongs_to_the_benchmark() -> None:
    one = ALL["cub.bench.sum.plain"]
    assert [(p.label, p.start, p.end, p.step) for p in one.parameters] == [
        ("ipt", 7, 24, 1),
        ("tpb", 128, 1024, 32),
        ("bias", -16, 16, 4),
    ]
    assert [(s.name, s.line) for s in one.subbenches] == [("base", 9)]
    assert one.subbenches[0].source.endswith("cub/benchmarks/bench/sum/common.cuh")
    assert one.ct_axes == {
        "T{ct}": ("I8", "I128", "F32", "F64", "C32"),
        "OffsetT{ct}": ("I32", "I64"),
    }
    assert one.rt_axes == {
        "Elements{io}[pow2]": ("16", "20", "24", "28"),
        "Entropy": ("1.000", "0.201"),
    }
    assert (one.workloads, one.runtime_workloads) == (10, 8)


def test_macros_that_register_are_expanded_and_conditions_are_told() -> None:
    one = ALL["cub.bench.shuffle.deep.warp.lookahead"]
    assert [(s.name, s.line) for s in one.subbenches] == [("wide_left", 36), ("wide_right", 37)]
    assert values(one, 1) == {
        "KeyT{ct}": ("I8", "I16", "F16"),
        "InPlace{ct}": ("false", "true"),
        "Width{ct}": ("32", "64"),
        "Step{ct}": ("3", "5"),
        "Elements{io}[pow2]": ("25", "31"),
        "Order": ("2", "65536"),
    }
    assert one.subbenches[0].conditions == (
        "!(_CCCL_PP_COUNT(__CUDA_ARCH_LIST__) != 1)",
        "!(__CUDA_ARCH_LIST__ < 1000)",
    )
    assert one.subbenches[0].axes[0].conditions == (
        "_CCCL_HAS_NVFP16() && _CCCL_CTK_AT_LEAST(12, 2)",
    )
    assert all(axis.complete for sub in one.subbenches for axis in sub.axes)


def test_nvbench_names_what_has_no_name_and_prints_floats_its_way() -> None:
    one = ALL["cub.bench.odd.names"]
    assert [(sub.name, len(sub.axes)) for sub in one.subbenches] == [("unnamed", 5), ("simple", 0)]
    assert values(one) == {
        "T": ("I8", "I128", "F32"),
        "U": ("I8", "I16"),
        "At": ("1", "0.5", "0.0001"),
        "Share": ("0", "0.25", "0.5", "0.75", "1"),
        "Scale[pow2]": ("0", "1", "2"),
    }


def test_what_the_source_does_not_tell_is_incomplete_and_keeps_its_spelling() -> None:
    axes = ALL["cub.bench.odd.incomplete"].subbenches[0].axes
    known = ("I8", "SOME_NEW_FEATURE()")

    def told(axis: Axis) -> tuple[str, tuple[str, ...], str, bool]:
        return axis.name, axis.values, axis.spelling, axis.complete

    assert [told(axis) for axis in axes] == [
        ("T0", known[:1], "maybe", False),
        ("T1", ("fast", "Slow"), "modes", False),
        ("T2", ("own", "hidden", "elsewhere", "I64"), "local", False),
        ("T3", ("arg_min",), "picked", True),
        ("T4", (), "loop", False),
        ("T5", (), "std::tuple<int>", False),
        ("Sizes", (), "make_sizes()", False),
        ("Known", ("1", "3"), "{1, unknown, 3}", False),
        ("name_of_axis", ("a",), '{"a"}', False),
    ]
    assert axes[0].conditions == known[1:]
    assert axes[3].conditions == ("!(_CCCL_TILE_COMPILATION())",)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("cub/benchmarks/bench", list(ALL)),
        ("cub/benchmarks/bench/odd", ["cub.bench.odd.incomplete", "cub.bench.odd.names"]),
        ("cub/benchmarks/bench/sum/plain.cu", ["cub.bench.sum.plain"]),
        ("cub/benchmarks/bench/shuffle/base.h", ["cub.bench.shuffle.base"]),
        ("thrust/benchmarks/bench", ["thrust.bench.fill.basic"]),
    ],
)
def test_a_path_may_be_any_part_of_a_checkout(path: str, names: list[str]) -> None:
    document, errors = read_benchmarks([CHECKOUT / path])
    assert errors == ()
    assert [one.name for one in document.benchmarks] == names


def test_a_benchmark_that_two_paths_hold_is_told_once() -> None:
    document, _ = read_benchmarks([CHECKOUT, CHECKOUT / "cub/benchmarks/bench"])
    assert list(document.benchmarks) == list(ALL.values())
