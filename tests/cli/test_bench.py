# ruff: noqa: E501  a row of a table is one line
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from policygen.bindings import load
from policygen.cli.main import main
from policygen.model.bindings import BenchmarkBinding, Binding
from tests.headers.benchmarks.places import CHECKOUT, FIXTURES, write

Capture = pytest.CaptureFixture[str]
SUM = "cub/benchmarks/bench/sum/plain.cu"


def test_json_has_the_documented_shape(capsys: Capture) -> None:
    assert main(["bench", str(CHECKOUT / SUM), "--json"]) == 0
    output = capsys.readouterr()
    document = json.loads(output.out)
    assert output.err == ""
    assert document["format"] == "policygen/bench/1"
    assert document["problems"] == []
    [one] = document["benchmarks"]
    assert {"name", "source", "parameters", "variants", "subbenches", "ct_axes", "rt_axes"} == set(
        one
    )
    assert one["name"] == "cub.bench.sum.plain"
    assert one["variants"] == 18 * 29 * 9
    assert one["parameters"][2] == {
        "macro": "TUNE_BIAS",
        "label": "bias",
        "start": -16,
        "end": 16,
        "step": 4,
    }
    assert one["ct_axes"]["OffsetT{ct}"] == ["I32", "I64"]
    assert one["rt_axes"]["Elements{io}[pow2]"] == ["16", "20", "24", "28"]


def test_a_table_goes_to_standard_output(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["bench", str(FIXTURES / "meta.csv")]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert [line.split() for line in output.out.splitlines()][1:] == [
        ["cub.bench.odd.names", "-", "0", "-", "-"],
        ["cub.bench.sum.plain", "ipt", "8:24:8,", "bias", "-4:4:2", "15", "-", "-"],
    ]


def test_without_a_path_the_checkout_around_is_read_and_named(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT / "cub" / "cub")
    assert main(["bench", "--json"]) == 0
    output = capsys.readouterr()
    assert len(json.loads(output.out)["benchmarks"]) == 4
    assert output.err == f"benchmarks of {CHECKOUT.as_posix()}\n"


def test_cub_names_a_checkout(capsys: Capture) -> None:
    assert main(["bench", "--cub", str(CHECKOUT), "-q", "-v"]) == 0
    output = capsys.readouterr()
    assert "Elements{io}[pow2]  16 20 24 28" in output.out
    assert output.err == ""


def test_filters_cut_names_and_axes(capsys: Capture) -> None:
    arguments = ["-R", "cub.bench.sum", "-a", "T{ct}=[I8,F32]", "-a", "Entropy=1.000"]
    assert main(["bench", str(CHECKOUT), "--json", *arguments]) == 0
    [one] = json.loads(capsys.readouterr().out)["benchmarks"]
    assert one["ct_axes"] == {"T{ct}": ["I8", "F32"], "OffsetT{ct}": ["I32", "I64"]}
    assert one["rt_axes"]["Entropy"] == ["1.000"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-R", "("], "-R '(' is not a regular expression: missing ), unterminated subpattern at position 0"),
        (["-a", "T"], "-a 'T' is not of the form AXIS=VALUE"),
        (["-R", "cub.bench.sum", "-a", "Nope=1"], "-a Nope: none of these benchmarks has this axis\n  They have: Elements{io}[pow2], Entropy, OffsetT{ct}, T{ct}"),
        (["--cub", "nowhere"], "nowhere has no cub/benchmarks/bench\n  Toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout"),
        (["nowhere"], "nowhere does not exist"),
    ],
)  # fmt: skip
def test_wrong_usage_has_one_clear_message(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert main(["bench", "-q", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"policygen: error: {message}\n"


def test_the_good_files_are_shown_and_the_bad_ones_are_told(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path, "// %RANGE% TUNE_X x 9:8:1\n", "bench/a.cu")
    write(tmp_path, "NVBENCH_BENCH(f", "bench/b.cu")
    write(tmp_path, "// %RANGE% TUNE_X x 8:9:1\n", "bench/c.cu")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "bench", "--json"]) == 2
    output = capsys.readouterr()
    document = json.loads(output.out)
    assert [one["name"] for one in document["benchmarks"]] == ["cub.bench.c"]
    assert document["problems"] == [
        {"path": "bench/a.cu", "line": 1, "column": 21, "message": "the end 8 is before the start 9"},
        {"path": "bench/b.cu", "line": 1, "column": 14, "message": "'(' is never closed"},
    ]  # fmt: skip
    assert output.err == (
        "policygen: error: bench/a.cu:1:21: the end 8 is before the start 9\n"
        "  // %RANGE% TUNE_X x 9:8:1\n"
        "                      ^^^^^\n"
        "bench/b.cu:1:14: '(' is never closed\n"
        "  NVBENCH_BENCH(f\n"
        "               ^\n"
    )


def test_when_no_file_can_be_read_there_is_no_table(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, "/*", "bench/a.cu")
    assert main(["bench", str(path), "-R", "other"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"policygen: error: {path.as_posix()}:1:1: unterminated comment")


BLUR = "cub.bench.blur.rows"
NEWEST = "3.6.0"
"""The newest version in the manifest that the bindings were tried with."""
SOURCE = """
#include <nvbench_helper.cuh>
// %RANGE% TUNE_ITEMS ipt 7:24:1
// %RANGE% TUNE_THREADS tpb 128:1024:32
NVBENCH_BENCH_TYPES(rows, NVBENCH_TYPE_AXES(offset_types)).set_type_axes_names({"OffsetT{ct}"});
"""


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two benchmarks are bound, one of them before CUB 3.2 alone."""
    rows = BenchmarkBinding(
        name=BLUR,
        site="blur",
        parameters={"ipt": "7:24:1", "tpb": "128:1024:32"},
        axes={"OffsetT": "offsets"},
    )
    columns = rows.model_copy(update={"name": "cub.bench.blur.columns", "below": "3.2"})
    algorithm = Binding(algorithm="blur", benchmark=[rows, columns])
    monkeypatch.setattr(load, "bindings", lambda: (algorithm,))
    load.bound.cache_clear()
    yield
    load.bound.cache_clear()


def blur(folder: Path, source: str = SOURCE, version: int = 300000, name: str = "rows") -> str:
    write(folder, f"#define CUB_VERSION {version}\n", "cub/cub/version.cuh")
    write(folder, source, f"cub/benchmarks/bench/blur/{name}.cu")
    return str(folder)


@pytest.mark.usefixtures("bound")
def test_check_is_silent_about_what_the_bindings_know(capsys: Capture, tmp_path: Path) -> None:
    blur(tmp_path)
    assert main(["bench", "--check", "-q", "--cub", blur(tmp_path, name="columns")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "compared with the bindings for CUB 3.0.0",
        "2 benchmarks compared: 2 match their binding, 0 differ, 0 have none",
    ]


@pytest.mark.usefixtures("bound")
def test_check_names_what_differs_and_exits_with_1(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blur(tmp_path, SOURCE.replace("7:24:1", "7:23:1"), 300200)
    blur(tmp_path, SOURCE, 300200, "columns")
    blur(tmp_path, "NVBENCH_BENCH(none);", 300200, "none")
    write(tmp_path, "NVBENCH_BENCH(fill);", "thrust/benchmarks/bench/fill.cu")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--check", "cub/benchmarks/bench", "thrust/benchmarks/bench"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "cub.bench.blur.columns  cub/benchmarks/bench/blur/columns.cu",
        "  no binding: ipt=7:24:1 tpb=128:1024:32",
        "cub.bench.blur.rows  cub/benchmarks/bench/blur/rows.cu",
        "  ipt: 7:23:1, in the binding 7:24:1",
        "",
        "compared with the bindings for CUB 3.2.0",
        "2 benchmarks compared: 0 match their binding, 1 differ, 1 have none; 1 without"
        " parameters; 1 not of CUB",
    ]


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("TUNE_ITEMS ipt", "TUNE_ITEMS x", ["x: not in the binding: 7:24:1", "ipt: only in the binding: 7:24:1"]),
        ("ipt 7:24:1\n// %RANGE% TUNE_THREADS tpb 128:1024:32", "tpb 128:1024:32\n// %RANGE% TUNE_THREADS ipt 7:24:1", ["order: tpb ipt, in the binding ipt tpb"]),
        ("OffsetT{ct}", "T{ct}", ["axis T: not in the binding: I32 I64", "axis OffsetT: only in the binding: I32 I64"]),
        ("(offset_types)", "(nvbench::type_list<int8_t, int32_t>)", ["axis OffsetT: not in the binding: I8; only in the binding: I64"]),
        ("(offset_types)", "(nvbench::type_list<int32_t>)", ["axis OffsetT: only in the binding: I64"]),
    ],
)  # fmt: skip
def test_check_says_what_was_changed(
    capsys: Capture, tmp_path: Path, old: str, new: str, line: list[str]
) -> None:
    assert old in SOURCE
    assert main(["bench", "--check", blur(tmp_path, SOURCE.replace(old, new))]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[1 : printed.index("")] == [f"  {text}" for text in line]


@pytest.mark.usefixtures("bound")
def test_check_as_json_has_the_documented_shape(capsys: Capture, tmp_path: Path) -> None:
    root = blur(tmp_path, SOURCE.replace("128:1024:32", "128:512:32"), 300400)
    write(tmp_path, "/*", "cub/benchmarks/bench/bad.cu")
    assert main(["bench", "--check", "--json", root]) == 2
    output = capsys.readouterr()
    document = json.loads(output.out)
    [problem] = document.pop("problems")
    assert problem["message"] == "unterminated comment"
    assert "bad.cu:1:1: unterminated comment" in output.err
    assert document == {
        "format": "policygen/bench-check/1",
        "cub": "3.4.0",
        "tested": True,
        "version": "3.4.0",
        "compared": 1,
        "differing": 1,
        "unbound": 0,
        "untuned": 0,
        "others": 0,
        "differences": [
            {
                "benchmark": BLUR,
                "source": "rows.cu",
                "kind": "range",
                "what": "tpb",
                "binding": ["128:1024:32"],
                "found": ["128:512:32"],
            }
        ],
        "not_compared": [],
    }


@pytest.mark.usefixtures("bound")
def test_check_exits_with_1_after_json_that_has_differences(
    capsys: Capture, tmp_path: Path
) -> None:
    assert main(["bench", "--check", "--json", blur(tmp_path, version=300200, name="columns")]) == 1
    [one] = json.loads(capsys.readouterr().out)["differences"]
    assert (one["kind"], one["found"]) == ("unbound benchmark", ["ipt=7:24:1", "tpb=128:1024:32"])


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(
    ("revision", "told"),
    [
        ("v3.0.3", "compared with the bindings for CUB 3.0.3"),
        ("3.1.0-rc2", "compared with the bindings for CUB 3.1.0"),
        ("2.7.0", "the bindings were not tried with CUB 2.7.0: compared with the nearest, 2.8.0"),
        ("9.0.0", f"the bindings were not tried with CUB 9.0.0: compared with the nearest, {NEWEST}"),
        ("v3.0.3-12-gabcdef0", f"the version of CUB is unknown: compared with the newest, {NEWEST}"),
        ("571f2fc3bc", f"the version of CUB is unknown: compared with the newest, {NEWEST}"),
    ],
)  # fmt: skip
def test_a_search_space_is_checked_against_the_version_that_it_records(
    capsys: Capture, tmp_path: Path, revision: str, told: str
) -> None:
    row = f"{BLUR},TUNE_ITEMS|ipt=7:24:1,TUNE_THREADS|tpb=128:1024:32"
    path = write(tmp_path, f"cccl_revision,{revision}\n{row}\n", "meta.csv")
    assert main(["bench", "--check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"not compared, because the source does not show them: axes of {BLUR}",
        told,
        "1 benchmark compared: 1 match their binding, 0 differ, 0 have none",
    ]


@pytest.mark.usefixtures("bound")
def test_a_source_outside_of_a_checkout_is_checked_against_the_newest_version(
    capsys: Capture, tmp_path: Path
) -> None:
    path = write(tmp_path, SOURCE.replace("(offset_types)", "(unknown)"), "bench/blur/rows.cu")
    assert main(["bench", "--check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"not compared, because the source does not show them: values of axis OffsetT of {BLUR}",
        f"the version of CUB is unknown: compared with the newest, {NEWEST}",
        "1 benchmark compared: 1 match their binding, 0 differ, 0 have none",
    ]


def test_check_compares_one_version_of_cub_at_a_time(capsys: Capture, tmp_path: Path) -> None:
    other = write(tmp_path, SOURCE, "rows.cu")
    assert main(["bench", "--check", blur(tmp_path / "three"), str(other)]) == 2
    assert capsys.readouterr().err == (
        "policygen: error: these are benchmarks of several versions of CUB:\n"
        f"    3.0.0: {tmp_path.as_posix()}/three/cub/benchmarks/bench/blur/rows.cu\n"
        f"    unknown: {other.as_posix()}\n"
        "  Check one version at a time\n"
    )


def test_check_has_nothing_to_say_about_other_benchmarks(capsys: Capture) -> None:
    thrust = str(CHECKOUT / "thrust/benchmarks/bench")
    assert main(["bench", "--check", thrust]) == 2
    assert capsys.readouterr().err == (
        "policygen: error: none of these benchmarks is one of CUB's\n  Their names begin with"
        " cub.bench.\n"
    )


def test_check_compares_whole_axes(capsys: Capture) -> None:
    assert main(["bench", "--check", str(CHECKOUT), "-a", "T{ct}=I8"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "--check compares whole axes and cannot be combined with -a" in output.err


def test_when_no_file_can_be_read_nothing_is_checked(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, "/*", "bench/a.cu")
    assert main(["bench", "--check", str(path)]) == 2
    assert capsys.readouterr().out == ""
