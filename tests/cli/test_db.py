import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.results.nvbench import is_results
from tests.results.build import ALGORITHM, Builder, simple
from tests.results.stored import history

GPU = "Demo H200 (6144, 132, eccon)"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    demo_database(path)
    return path


@pytest.fixture
def demo(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return shutil.copy(made, tmp_path / "demo.db")


def run(capsys, *arguments):
    status = main(["db", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def document(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_the_demo_tells_its_story(demo, capsys):
    found = document(capsys, "choose", demo)
    assert [
        (w["workload"]["T{ct}"], w["choice"]["decision"], w["choice"]["variant"])
        for w in found["workloads"]
    ] == [
        ("I8", "use", "ipt_19.tpb_384"),
        ("I16", "keep base", None),
        ("I32", "use", "ipt_19.tpb_256"),
        ("I64", "keep base", None),
    ]
    loud = found["workloads"][2]["choice"]["rejected"][0]
    assert loud["variant"] == "ipt_23.tpb_384"
    assert loud["reason"].endswith("Entropy=0.201 at 0.5791, under 0.95")
    assert {w["approximate"] for w in found["workloads"]} == {False}


def test_top_has_the_documented_shape(demo, capsys):
    found = document(capsys, "top", demo, "--top", "2", "-a", "T{ct}=I32")
    (workload,) = found["workloads"]
    keys = {"algorithm", "workload", "gpu", "ctk", "cccl", "database", "variants"}
    assert keys <= set(workload)
    assert workload["database"] == demo.name
    assert [(v["variant"], v["verdict"]) for v in workload["variants"]] == [
        ("ipt_23.tpb_384", "mixed"),
        ("ipt_19.tpb_256", "better"),
    ]
    assert {"variant", "score", "min", "mean", "max"} <= set(workload["variants"][0])


@pytest.mark.parametrize("command", ["top", "choose", "coverage", "info"])
def test_people_get_words_and_programs_json(demo, capsys, command):
    status, out, err = run(capsys, command, demo)
    assert (status, err) == (0, "")
    assert "cub.bench.radix_sort.keys" in out
    assert GPU in out
    assert document(capsys, command, demo)["format"].startswith("policygen/db-")


def test_coverage_knows_the_search_space_from_a_file_of_any_name(demo, capsys, tmp_path):
    space = tmp_path / "whatever.txt"
    space.write_text(
        "ctk_version,13.0\ncccl_revision,v3.0.3\n"
        "cub.bench.radix_sort.keys,TUNE_ITEMS_PER_THREAD|ipt=11:23:4,TUNE_THREADS|tpb=256:512:128\n"
    )
    for arguments in ((demo, space), (demo, "--bench", space)):
        found = document(capsys, "coverage", *arguments)
        assert [(w["covered"], w["variants"]) for w in found["workloads"]] == [(11, 12)] * 4


def test_bench_sources_declare_axes(demo, capsys, tmp_path):
    path = simple(tmp_path / "one.db", base={"16": 2.0}, ipt_1={"16": 1.0})
    source = tmp_path / "bench/demo.cu"
    source.parent.mkdir()
    source.write_text(
        "NVBENCH_BENCH_TYPES(f, NVBENCH_TYPE_AXES(nvbench::type_list<int>))\n"
        '  .set_name("base").set_type_axes_names({"T{ct}"})\n'
        '  .add_int64_power_of_two_axis("Elements{io}", nvbench::range(16, 28, 4));\n'
    )
    assert document(capsys, "top", path)["workloads"][0]["approximate"]
    assert not document(capsys, "top", path, "--bench", source)["workloads"][0]["approximate"]


def test_rules_come_from_the_configuration_and_the_command_line(demo, capsys, tmp_path):
    (tmp_path / "policygen.toml").write_text("[choose]\nleast_score = 1.1\n")
    own = ("--config", tmp_path / "policygen.toml")
    status, out, err = run(capsys, "choose", demo, "--json")
    assert (status, json.loads(out)["rules"]["least_score"]) == (0, 1.015)
    assert err == f"policygen: note: {own[1]} is not read; --config {own[1]} reads it\n"
    found = document(capsys, "choose", demo, *own)
    assert found["rules"]["least_score"] == 1.1
    assert {w["choice"]["decision"] for w in found["workloads"]} == {"keep base"}
    found = document(capsys, "choose", demo, *own, "--least-score", "1.001", "--worst", "0.5")
    assert [w["choice"]["variant"] for w in found["workloads"]] == [
        *("ipt_19.tpb_384", None, "ipt_23.tpb_384", None)
    ]


def test_decisions_can_be_kept(demo, capsys, tmp_path):
    run(capsys, "choose", demo, "--record", "policygen.db")
    first = history(tmp_path / "policygen.db")[0].row
    assert (first.workload["T{ct}"], first.variant) == ("I8", "ipt_19.tpb_384")
    assert first.sources[0].path == str(demo)


def test_alpha_is_cccls(demo, capsys):
    found = document(capsys, "top", demo, "--alpha", "0.0001", "-a", "T{ct}=I64")
    assert "base" not in {v["variant"] for w in found["workloads"] for v in w["variants"]}


def test_merging_reports_conflicts_and_touches_no_source(demo, capsys, tmp_path):
    other = shutil.copy(demo, tmp_path / "other.db")
    with sqlite3.connect(other) as db:
        table = '"cub.bench.radix_sort.keys.base"'
        last = f"SELECT MAX(rowid) FROM {table} WHERE variant != 'base'"
        db.execute(f"UPDATE {table} SET center = center * 2 WHERE rowid = ({last})")
    db.close()
    before = demo.read_bytes(), other.read_bytes()
    status, out, _ = run(capsys, "merge", demo, other, "-o", "all.db")
    assert status == 1
    assert "cub.bench.radix_sort.keys.base: 384 rows (383 duplicate, 1 in conflict)\n" in out
    assert "conflict in cub.bench.radix_sort.keys.base: " in out
    assert out.endswith("2 databases merged into all.db\n")
    assert (demo.read_bytes(), other.read_bytes()) == before
    _, out, _ = run(capsys, "merge", demo, other, "-o", "all.db", "--force", "--json")
    assert len(json.loads(out)["conflicts"]) == 1
    assert run(capsys, "merge", demo, "-o", "all.db")[0] == 2
    assert run(capsys, "merge", demo, "-o", "new.db", "-q")[1] == ""


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_rows_can_be_exported(demo, capsys, tmp_path, name):
    assert run(capsys, "export", demo, "-o", name)[1] == f"384 rows written to {name}\n"
    assert (tmp_path / name).stat().st_size > 1000
    assert run(capsys, "export", demo, "-o", name, "-q")[1] == ""


def test_an_export_is_told_as_json_and_with_its_sources(demo, capsys):
    status, out, err = run(capsys, "export", demo, "-o", "rows.csv", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "format": "policygen/db-export/1",
        "out": "rows.csv",
        "databases": ["demo.db"],
        "rows": 384,
    }
    _, out, _ = run(capsys, "export", demo, "-o", "rows.csv", "-v")
    assert out == f"384 rows written to rows.csv\n  {demo}\n"


@pytest.mark.slow
def test_a_plot_is_told_as_json_and_in_words(demo, capsys):
    one = ("plot", demo, "-a", "T{ct}=I32", "-o", "a.svg")
    status, out, err = run(capsys, *one, "--json")
    found = json.loads(out)
    assert (status, err, found["format"]) == (0, "", "policygen/db-plot/1")
    assert (found["workload"]["T{ct}"], found["measured_on"]["gpu"], found["out"]) == (
        "I32",
        GPU,
        "a.svg",
    )
    assert (found["variants"], found["panels"], found["parameters"]) == (
        ["ipt_23.tpb_384"],
        8,
        None,
    )
    found = json.loads(run(capsys, *one, "--map", "ipt,tpb", "--json")[1])
    assert (found["variants"], found["panels"], found["parameters"]) == ([], 11, ["ipt", "tpb"])
    assert run(capsys, *one, "-v")[1].endswith(
        "  ipt_23.tpb_384 on 8 runtime workloads\nwritten to a.svg\n"
    )
    assert "  11 scores over ipt and tpb\n" in run(capsys, *one, "--map", "ipt,tpb", "-v")[1]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ratio.svg", []),
        pytest.param(
            "variants.svg",
            ["--variant", "ipt_19.tpb_256", "--variant", "ipt_23.tpb_384"],
            marks=pytest.mark.slow,
        ),
        ("map.svg", ["--map", "ipt,tpb"]),
    ],
)
def test_plots_are_written_to_a_path(demo, capsys, tmp_path, name, more):
    status, out, err = run(capsys, "plot", demo, "-a", "T{ct}=I32", "-o", name, *more)
    assert (status, out, err) == (0, f"written to {name}\n", "")
    assert (tmp_path / name).stat().st_size > 5000
    assert run(capsys, "plot", demo, "-a", "T{ct}=I32", "-o", name, *more, "-q")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["top", "none.db"], "none.db: cannot be read: No such file or directory"),
        (["top", "-a", "X=1", "demo.db"], "-a X: there is no such axis\n  Available: "),
        (["top", "-R", "cub.bench.none", "demo.db"], "nothing matches\n  List the contents with: "),
        (
            ["top", "--confidence", "2", "demo.db"],
            "--confidence 2.0: it should be less than 1\n",
        ),
        (
            ["top", "-a", "T=I9", "demo.db"],
            "no workload has T = I9\n  T is one of I16, I32, I64, I8.\n",
        ),
        (
            ["top", "-a", "T{ct}=[I8,I9]", "demo.db"],
            "no workload has T = I9\n  T is one of I16, I32, I64, I8.\n",
        ),
        (
            ["plot", "-a", "T=[I8,I9]", "demo.db", "-o", "a.svg"],
            "no workload has T = I9\n  T is one of ",
        ),
        (["coverage", "-a", "T=[I8,I9]", "demo.db"], "no workload has T = I9\n  T is one of "),
        (["report", "-a", "T=[I8,I9]", "demo.db"], "no workload has T = I9\n  T is one of "),
        (
            ["choose", "-R", ".*keys", "-a", "T=I8", "-a", "Entropy=[9]", "demo.db"],
            "no workload has Entropy = 9\n  Entropy is one of 0.201, 1.000.\n",
        ),
        (["choose", "--prefer-simple", "demo.db"], "--prefer-simple needs --current\n"),
        (["info", "-a", "T=1", "demo.db"], "db info takes no -a"),
        (["info", "-R", "zzz", "demo.db"], "nothing matches\n"),
        (["coverage", "-R", "zzz", "demo.db"], "nothing matches\n"),
        (["top", "binary"], "binary: neither a tuning database nor an NVBench result\n"),
        (["choose", "--current", "foo", "demo.db"], "--current 'foo' is not a variant label\n"),
        (
            ["plot", "demo.db", "-a", "T{ct}=I8", "-o", "demo.db"],
            "demo.db: is a database and",
        ),
        (
            ["export", "demo.db", "-o", "rows.xls"],
            "rows.xls: the name of an export must end with .csv or ",
        ),
        (["plot", "demo.db", "-o", "a.svg"], "4 workloads match, but a plot shows one:\n    cub."),
        (["plot", "demo.db", "-R", "none", "-o", "a.svg"], "nothing matches\n"),
        (["plot", "demo.db", "-a", "T{ct}=I8", "--map", "ipt", "-o", "a.svg"], "--map 'ipt' is"),
        (["plot", "demo.db", "-a", "T{ct}=I8", "--map", "a,b", "-o", "a.svg"], "no variant has"),
        (["plot", "demo.db", "-a", "T{ct}=I8", "--variant", "x", "-o", "a.svg"], "variant 'x' was"),
        (["plot", "demo.db", "-a", "T{ct}=I8", "-o", "a.gif"], "a.gif"),
        (
            ["plot", "demo.db", "-a", "T{ct}=I8", "-o", "a.png"],
            "a.png: a plot cannot be written as .png\n  The name must end with .svg.\n",
        ),
        (["coverage", "space.csv"], "no database given\n"),
    ],
)
def test_what_cannot_be_done_is_told(demo, capsys, tmp_path, arguments, message):
    (tmp_path / "binary").write_bytes(b"\0\1")
    (tmp_path / "space.csv").write_text("ctk_version,13\ncccl_revision,v\ncub.bench.x\n")
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")


def test_more_workloads_than_fit_are_counted(tmp_path, capsys):
    built = Builder(tmp_path / "many.db").table()
    for index in range(12):
        built.row("base", 1.0, f"I{index}", "16")
    _, _, err = run(capsys, "plot", tmp_path / "many.db", "-o", "a.svg")
    assert "and 2 more\n" in err


def test_what_is_unusable_is_a_warning_and_the_rest_is_shown(tmp_path, capsys):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0}, ipt_2={"16": -1.0})
    status, out, err = run(capsys, "top", path)
    assert status == 0
    assert "ipt_1" in out
    assert err == (
        f"policygen: warning: {path}: {ALGORITHM}.base:"
        " rows with an impossible kernel time as their center are ignored (row 3)\n"
    )


def nvbench(folder, name, gpu_time, argv, gpu="NVIDIA G"):
    axes = [
        {
            "name": "Elements{io}",
            "type": "int64",
            "flags": "pow2",
            "values": [{"input_string": "16", "description": "", "value": 65536}],
        }
    ]
    summary = {
        "tag": "nv/cold/time/gpu/mean",
        "name": "GPU Time",
        "data": [{"name": "value", "type": "float64", "value": str(gpu_time)}],
    }
    state = {
        "name": "s",
        "device": 0,
        "is_skipped": False,
        "axis_values": [{"name": "Elements{io}", "type": "int64", "value": "65536"}],
        "summaries": [summary],
    }
    device = {
        "id": 0,
        "name": gpu,
        "global_memory_bus_width": 1,
        "number_of_sms": 2,
        "ecc_state": True,
    }
    made = {
        "meta": {"argv": [argv], "version": {}},
        "devices": [device],
        "benchmarks": [{"name": "base", "devices": [0], "axes": axes, "states": [state]}],
    }
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made))
    return path


def test_nvbench_results_are_a_pair_of_base_and_variant(tmp_path, capsys):
    base = nvbench(tmp_path, "one/result.json", 2.0, "bin/cub.bench.reduce.sum.base")
    variant = nvbench(tmp_path, "ipt_7/result.json", 1.0, "bin/cub.bench.reduce.sum.variant")
    found = document(capsys, "top", base, variant)
    (workload,) = found["workloads"]
    assert [(v["variant"], v["score"]) for v in workload["variants"]] == [
        ("ipt_7", pytest.approx(2.0)),
        ("base", pytest.approx(1.0)),
    ]
    assert workload["database"] == "one/result.json + ipt_7/result.json"
    named = document(capsys, "top", variant, "--base", base)
    assert named["workloads"][0]["variants"] == workload["variants"]


def test_a_warning_names_the_nvbench_results(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = nvbench(Path(), "one/result.json", 2.0, "bin/cub.bench.reduce.sum.base")
    variants = [
        nvbench(Path(), f"{label}/result.json", time, "bin/cub.bench.reduce.sum.variant")
        for label, time in (("ipt_7", 1.0), ("ipt_8", 1e-20))
    ]
    words = "cub.bench.reduce.sum.base: rows with an impossible kernel time as their center are"
    for command in ("top", "choose", "coverage", "report"):
        status, _, err = run(capsys, command, base, *variants)
        assert (status, err) == (0, f"policygen: warning: ipt_8/result.json: {words} ignored\n")
    variants += [nvbench(Path(), "ipt_9/result.json", 1e-20, "bin/cub.bench.reduce.sum.variant")]
    names = "one/result.json, ipt_7/result.json, ipt_8/result.json, ipt_9/result.json"
    assert run(capsys, "top", base, *variants)[2].startswith(
        f"policygen: warning: {names}: {words}"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ipt_7/result.json"], "0 of 1 NVBench results are baselines\n"),
        (["one/result.json"], "there is a baseline, but no variant to compare with it"),
    ],
)
def test_an_nvbench_pair_needs_both(tmp_path, capsys, monkeypatch, arguments, message):
    nvbench(tmp_path, "one/result.json", 2.0, "bin/cub.bench.reduce.sum.base")
    nvbench(tmp_path, "ipt_7/result.json", 1.0, "bin/cub.bench.reduce.sum.variant")
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "top", *arguments)
    assert (status, err.startswith(f"policygen: error: {message}")) == (2, True)


def test_what_a_plan_names_is_looked_into_only_where_it_holds_results(demo, tmp_path):
    """A plan and a store can be strangers'; what they name could be anything of the machine."""
    secret = tmp_path / "config.json"
    secret.write_text('{"auths": {"registry": "secret"}}')
    os.mkfifo(tmp_path / "fifo")
    names = (demo, secret, tmp_path / "fifo", tmp_path / "none", tmp_path)
    assert [is_results(path) for path in names] == [True, False, False, False, False]
