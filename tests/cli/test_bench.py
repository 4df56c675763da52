# ruff: noqa: E501  a row of a table is one line
import json
from pathlib import Path

import pytest

from policygen.cli.main import main
from tests.source.benchmarks.places import CHECKOUT, FIXTURES, write

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
        (["-R", "("], "-R '(' is no regular expression: missing ), unterminated subpattern at position 0"),
        (["-a", "T"], "-a 'T' is not of the form AXIS=VALUE"),
        (["-R", "cub.bench.sum", "-a", "Nope=1"], "-a Nope: none of these benchmarks has such an axis\n  they have: Elements{io}[pow2], Entropy, OffsetT{ct}, T{ct}"),
        (["--cub", "nowhere"], "nowhere has no cub/benchmarks/bench\n  toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout"),
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
    assert output.err.startswith(f"policygen: error: {path.as_posix()}:1:1: comment without an end")
