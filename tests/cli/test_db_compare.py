"""`policygen db compare` as it is typed."""

import json
import time

import pytest

from fixtures.databases.generate import generate
from policygen.model.databases import DbCompare
from policygen.outputs import is_ours
from tests.cli.test_db import nvbench, run
from tests.results.build import Builder, simple
from tests.results.measured import MEASURED

TWO = {"16": 2.0, "20": 2.0}


@pytest.fixture
def two(tmp_path, monkeypatch):
    """A search, and a later one that finds something else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    variants = {f"ipt_{i}": {"16": 2.0 + i / 50, "20": 2.0 + i / 40} for i in range(2, 6)}
    simple(tmp_path / "a.db", base=TWO, ipt_1={"16": 1.6, "20": 1.6}, **variants)
    simple(tmp_path / "b.db", base=TWO, ipt_1={"16": 2.4, "20": 2.4}, **variants)
    return "a.db", "b.db"


def test_it_prints_tables_and_exits_with_0(two, capsys):
    status, out, err = run(capsys, "compare", *two)
    assert (status, err) == (0, "")
    assert out.startswith("A  a.db\n   G (1, 2, eccon) · ctk 13.0 · cccl v3.0\nB  b.db\n")
    told = "B contradicts A's ipt_1: a runtime workload at 0.8333, less than is allowed"
    assert told in out.replace("\n  ", " ")
    assert "1 workload in both: a choice is contradicted for 1\n" in out


def test_json_is_one_document_of_its_own_format(two, capsys):
    status, out, err = run(capsys, "compare", *two, "--json")
    assert (status, err) == (0, "")
    found = DbCompare.model_validate(json.loads(out))
    assert (found.a.databases, found.b.databases) == (("a.db",), ("b.db",))
    assert found.workloads[0].agreement == "contradicts"
    assert found.workloads[0].a.databases == ("a.db",)


def test_a_value_that_one_side_has_can_be_selected(two, capsys, tmp_path):
    simple(tmp_path / "c.db", base=TWO | {"24": 2.0}, ipt_2=TWO | {"24": 1.0})
    for axis in ("Elements", "Elements{io}[pow2]"):
        selected = ("-a", f"{axis}=[16,24]")
        assert run(capsys, "compare", "a.db", "c.db", *selected)[::2] == (0, "")
        assert run(capsys, "compare", "a.db", "b.db", *selected)[::2] == (
            2,
            "policygen: error: no workload has Elements = 24\n  Elements is one of 16, 20.\n",
        )


@pytest.mark.parametrize("name", ["a.svg", "A.HTML"])
def test_a_plot_is_written_besides_what_is_printed(two, capsys, tmp_path, name):
    _, plain, _ = run(capsys, "compare", *two)
    assert run(capsys, "compare", *two, "-o", name) == (0, f"{plain}written to {name}\n", "")
    assert (tmp_path / name).stat().st_size > 5000
    assert is_ours(tmp_path / name)
    status, out, _ = run(capsys, "compare", *two, "-o", name, "--json")
    assert (status, json.loads(out)["format"]) == (0, "policygen/db-compare/1")
    _, out, _ = run(capsys, "compare", *two, "-o", name, "-q")
    assert "written to" not in out
    assert "order:" not in out


@pytest.mark.parametrize("more", [[], ["--json"], ["-v"], ["-q"]])
def test_what_is_printed_goes_to_a_file_of_another_name(two, capsys, tmp_path, more):
    _, out, _ = run(capsys, "compare", *two, *more)
    assert run(capsys, "compare", *two, *more, "-o", "a.txt") == (0, "", "")
    assert (tmp_path / "a.txt").read_text() == out


def test_files_that_policygen_did_not_make_stay(two, capsys, tmp_path):
    for name in ("a.svg", "a.html", "a.txt", "a.db"):
        before = (tmp_path / name).read_bytes() if name == "a.db" else b"mine"
        (tmp_path / name).write_bytes(before)
        status, out, err = run(capsys, "compare", *two, "-o", name)
        assert (status, out) == (2, "")
        kept = "is a database" if name == "a.db" else "exists already and"
        assert err.startswith(f"policygen: error: {name}: {kept}")
        assert (tmp_path / name).read_bytes() == before
    assert run(capsys, "compare", *two, "-o", "a.html", "--force")[0] == 0


def test_an_input_is_not_forced_away(two, capsys, tmp_path):
    (tmp_path / "space.csv").write_text("ctk_version,13.0\n")
    given = ("--bench", "space.csv", "-o", "space.csv", "--force")
    status, _, err = run(capsys, "compare", *two, *given)
    assert (status, err) == (
        2,
        "policygen: error: space.csv: is one of the inputs\n  Name another file.\n",
    )
    status, _, _ = run(capsys, "compare", *two, "-o", "b.db", "--force")
    assert status == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.db", "none.db"], "none.db: cannot be read: No such file or directory"),
        (["a.db", "*.none"], "no file matches '*.none'\n"),
        (["a.db", "text"], "text: neither a tuning database nor an NVBench result\n"),
        (["a.db", "b.db", "-R", "zzz"], "nothing matches\n  List the contents with: "),
        (["a.db", "b.db", "-R", "demo"], "nothing matches\n  -R matches from the start of "),
        (["a.db", "b.db", "-a", "X=1"], "-a X: there is no such axis\n  Available: "),
        (["a.db", "b.db", "-a", "T=I8"], "no workload has T = I8\n  T is one of "),
        (["a.db", "b.db", "--worst", "2"], "--worst 2.0: it should be less than or equal to 1"),
        (["a.db", "b.db", "-o", "a.pdf"], "a.pdf: a plot cannot be written as .pdf\n"),
        (
            ["a.db", "b.db", "-o", "a.png"],
            "a.png: a plot cannot be written as .png\n  The name must end with .svg or .html.\n",
        ),
        (["a.db", "c.db"], "A and B have nothing in common\n  A has cub.bench.demo[T{ct}=I32].\n"),
    ],
)
def test_what_cannot_be_done_is_told(two, capsys, tmp_path, arguments, message):
    (tmp_path / "text").write_text("hello")
    Builder(tmp_path / "c.db").table().rows("base", TWO, "I8")
    status, out, err = run(capsys, "compare", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")


def test_it_takes_two_sides_and_no_third(two, capsys):
    assert run(capsys, "compare", "a.db")[0] == 2
    assert run(capsys, "compare", *two, "b.db")[0] == 2


def test_the_rules_and_the_filters_are_those_of_the_other_commands(two, capsys):
    _, out, _ = run(capsys, "compare", *two, "--json", "--least-score", "1.3")
    found = json.loads(out)
    assert found["rules"]["least_score"] == 1.3
    assert found["workloads"][0]["agreement"] == "both keep base"
    _, out, _ = run(capsys, "compare", *two, "--json", "-R", "cub.bench", "-a", "Elements=16")
    (one,) = json.loads(out)["workloads"]
    assert (len(one["points"]), one["agreement"]) == (1, None)


def test_what_is_unusable_is_a_warning_and_the_rest_is_compared(two, capsys, tmp_path):
    Builder(tmp_path / "b.db").row("ipt_9", -1.0, "I32", "16")
    status, _, err = run(capsys, "compare", *two)
    assert status == 0
    assert err.startswith("policygen: warning: b.db: cub.bench.demo.base: rows with an impossible")


def test_results_of_nvbench_are_a_side(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, seconds in (("a", 1.0), ("b", 1.2)):
        nvbench(tmp_path / folder, "one/result.json", 2.0, "bin/cub.bench.reduce.sum.base")
        nvbench(tmp_path / folder, "ipt_7/result.json", seconds, "cub.bench.reduce.sum.variant")
    status, out, _ = run(capsys, "compare", "a/*/result.json", "b/*/result.json", "--json")
    (found,) = json.loads(out)["workloads"]
    assert (status, found["scores"]) == (0, [{"variant": "ipt_7", "a": 2.0, "b": 2 / 1.2}])
    assert found["a"]["databases"] == ["a/one/result.json", "a/ipt_7/result.json"]


def test_inputs_are_left_alone(two, capsys, tmp_path):
    before = [(tmp_path / name).read_bytes() for name in two]
    run(capsys, "compare", *two, "-o", "a.html")
    assert [(tmp_path / name).read_bytes() for name in two] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "a.html", "b.db"]


def test_measured_databases_agree_with_themselves(capsys):
    path = MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db"
    status, out, err = run(capsys, "compare", path, path)
    assert (status, err) == (0, "")
    assert "2 workloads of B are copies of A's, bit for bit" in out.replace("\n  ", " ")


@pytest.mark.slow
def test_many_rows_take_seconds(tmp_path, capsys):
    """88 thousand rows on each side take two seconds; per row in Python they would take minutes."""
    for seed in (1, 2):
        generate(tmp_path / f"{seed}.db", workloads=4, variants=522, runtime=12, seed=seed)
    began = time.process_time()
    status, _, _ = run(capsys, "compare", tmp_path / "1.db", tmp_path / "2.db", "--json")
    assert (status, time.process_time() - began < 10) == (0, True)
