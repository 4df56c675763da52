import pytest

from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList, ParameterRange, SubBenchmark
from policygen.report.terminal import wrap
from policygen.report.tree_views import NOTE
from policygen.report.tree_views import benchmarks as listed
from tests.report.shown import lines


def benchmark(name: str, count: int, *, complete: bool = True) -> Benchmark:
    axes = (
        Axis(name="T{ct}", kind="type", values=("I8", "I16"), spelling="types", complete=complete),
        Axis(
            name="Elements{io}[pow2]",
            kind="int64",
            flags="pow2",
            values=tuple(str(i) for i in range(30)),
            spelling="nvbench::range(0, 29)",
            conditions=("WHO()",),
        ),
    )
    return Benchmark(
        name=name,
        source="bench/a.cu",
        parameters=tuple(
            ParameterRange(macro=f"TUNE_{i}", label=f"p{i}", start=0, end=9999, step=1)
            for i in range(count)
        ),
        subbenches=(
            SubBenchmark(name="base", axes=axes, source="bench/a.cuh", line=7, conditions=("A",)),
        ),
    )


def shown(width: int, *benchmarks: Benchmark, verbose: bool = False) -> list[str]:
    document = BenchmarkList(benchmarks=benchmarks)
    found = lines(listed(document, width, verbose=verbose), width)
    return [line.rstrip() for line in found]


def test_a_wide_console_has_parameters_beside_names() -> None:
    assert shown(100, benchmark("cub.bench.a.b", 1), benchmark("cub.bench.long.name", 5)) == [
        "benchmark            parameters                              variants  workloads  runtime",
        "cub.bench.a.b        p0 0:9999:1                               10,000          2       30",
        "cub.bench.long.name  p0 0:9999:1, p1 0:9999:1, p2 0:9999:1,  1.00e+20          2       30",
        "                     p3 0:9999:1, p4 0:9999:1",
    ]


def test_a_narrow_console_has_parameters_below_names() -> None:
    rows = shown(
        60, benchmark("cub.bench.a.b", 0), benchmark("cub.bench.a.very.long.name.it.is", 3)
    )
    assert rows == [
        "benchmark / parameters          variants  workloads  runtime",
        "cub.bench.a.b                          0          2       30",
        "cub.bench.a.very.long.name.it.  1.00e+12          2       30",
        "is",
        "  p0 0:9999:1, p1 0:9999:1,",
        "  p2 0:9999:1",
    ]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_nothing_is_cut_at_any_width(width: int) -> None:
    rows = shown(width, benchmark("cub.bench.scan.applications.P1.a-name-of-some-length", 12))
    text = "".join("".join(row.split()) for row in rows)
    assert all(f"p{i}0:9999:1" in text for i in range(12))
    assert all(part in text for part in ("applications", "a-name-of-some-length", "1.00e+48"))
    assert all(len(row) <= width for row in rows)


def test_workloads_that_the_source_does_not_tell_are_marked() -> None:
    part = benchmark("cub.bench.part", 0, complete=False)
    sub = part.subbenches[0]
    none = sub.axes[0].model_copy(update={"values": ()})
    unknown = part.model_copy(
        update={"subbenches": (sub.model_copy(update={"axes": (none, sub.axes[1])}),)}
    )
    assert [row.split() for row in shown(100, part, unknown)][1:] == [
        ["cub.bench.part", "-", "0", "2+", "30"],
        ["cub.bench.part", "-", "0", "?", "30"],
        NOTE.split(),
    ]


def test_benchmarks_of_a_search_space_have_no_workloads() -> None:
    one = Benchmark(name="cub.bench.a", source="meta.csv", parameters=())
    assert shown(100, one)[1].split() == ["cub.bench.a", "-", "0", "-", "-"]


def test_details_list_sub_benchmarks_axes_and_conditions() -> None:
    one = benchmark("cub.bench.a", 0, complete=False)
    assert shown(60, one, verbose=True)[2:] == [
        NOTE,
        "",
        "cub.bench.a  bench/a.cu",
        "  base  bench/a.cuh:7",
        "    if A",
        "    T{ct}               I8 I16 + types",
        "    Elements{io}[pow2]  0 1 2 3 4 5 6 7 8 9 10 11 12 13 14",
        "                        15 16 17 18 19 20 21 22 23 24 25 26",
        "                        27 28 29",
        "                        if WHO()",
    ]


def test_lines_are_made_of_whole_parts() -> None:
    assert wrap(["aa", "bb", "cccccc", "d"], ", ", 7) == ["aa, bb,", "cccccc,", "d"]
    assert wrap([], ", ", 7) == []
