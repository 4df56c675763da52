"""`policygen db import` of what rocPRIM's newer benchmarks write, and what can be done with it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.imported import imported, refused
from tests.cli.tuned import run
from tests.results import rocprim_files
from tests.results.primbench_files import KEYS, example, results, text_of

MERGE = "rocprim.device_merge"
SPACE = {"bs": [128, 256], "ipt": [8]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")


def rows(query):
    with closing(sqlite3.connect("run.db")) as connection:
        return connection.execute(query).fetchall()


def write(name, made):
    Path(name).write_text(text_of(made))
    return name


def test_a_file_becomes_a_database(capsys):
    told = imported(capsys, write("a.json", example()))
    assert told.splitlines() == [
        "rocPRIM  Instinct MI300X · gfx942",
        "  1 workload of 1 algorithm, 4 rows, 3 variants, 1 size",
        "  a.json: 1 of 5 runs was still noisy at the time limit, by 4.62 % at most",
        "  (specializations[1])",
        "  rocprim.device_merge: 1 workload, 3 variants, base is default_config",
        "  1 untimed: its items_per_second, 0, is not a rate, such as bs_256.ipt_4 (a.json:",
        "  specializations[2], device_merge key_type=int value_type=rocprim::empty_type)",
        "written to run.db",
    ]
    assert rows("SELECT * FROM gpus") == [("Instinct MI300X", "gfx942")]
    query = f'SELECT DISTINCT "key_type{{ct}}", "value_type{{ct}}", Elements FROM "{MERGE}.base"'
    assert rows(query) == [("int", "rocprim::empty_type", "134217728")]
    query = "SELECT program, base, size, entries, warmup FROM policygen_imports"
    assert rows(query) == [("primbench", "base", "134217728", 5, 0)]
    query = "SELECT algorithm, variant, kind, reason FROM policygen_failures"
    assert rows(query) == [
        (MERGE, "bs_256.ipt_4", "untimed", "its items_per_second, 0, is not a rate")
    ]
    assert {len(samples) > 0 for (samples,) in rows(f'SELECT samples FROM "{MERGE}.base"')} == {
        True
    }


def test_all_that_reads_databases_reads_it(capsys):
    imported(capsys, write("a.json", results(batches=True)))
    for command in ("info", "top", "report"):
        status, out, err = run(capsys, "db", command, "run.db")
        assert (status, err) == (0, "")
        assert MERGE in out
    _, out, _ = run(capsys, "db", "choose", "run.db", "--json")
    found = json.loads(out)["workloads"]
    assert [one["workload"]["key_type{ct}"] for one in found] == ["int", "rocprim::half"]
    assert {one["choice"]["decision"] for one in found} == {"use"}
    assert {one["choice"]["variant"] for one in found} == {"bs_256.ipt_8"}


def test_a_run_without_batches_has_its_noise_and_no_samples(capsys):
    told = imported(capsys, write("a.json", results(types=KEYS[:1])))
    assert "  5 rows without samples: their uncertainty is unknown" in told
    ((count, apart),) = rows("SELECT count(*), max(deviation) FROM policygen_deviations")
    assert count == 5
    assert 0 < apart < 1e-5
    for more, decision in (((), "keep base"), (("--without-samples",), "use")):
        _, out, _ = run(capsys, "db", "choose", "run.db", "--json", *more)
        (one,) = json.loads(out)["workloads"]
        assert one["choice"]["decision"] == decision
    document = json.loads(imported(capsys, "a.json", "--json"))
    percent = [
        one["noise_percent"] for one in json.loads(Path("a.json").read_text())["specializations"]
    ]
    assert document["workloads"][0]["deviation"] == pytest.approx(max(percent) / 100)


def test_runs_of_several_files_are_samples(capsys):
    names = []
    for seed in range(5):
        general = {"date": f"2026-03-01T1{seed}:00:00+00:00"}
        made = results(types=KEYS[:1], space=SPACE, seed=seed, general=general)
        names.append(write(f"{seed}.json", made))
    told = imported(capsys, *names)
    assert "3 rows, 2 variants, 1 size, 12 measurements combined with earlier ones" in " ".join(
        told.split()
    )
    assert "without samples" not in told
    _, out, _ = run(capsys, "db", "top", "run.db", "--json")
    (found,) = json.loads(out)["workloads"]
    assert all(one["interval"] for one in found["variants"] if one["variant"] != "base")


def test_what_is_told_of_a_file_stands_in_the_document(capsys):
    made = results(types=KEYS[:1], general={"library_build_type": "debug"}, noise=0.1)
    document = json.loads(imported(capsys, write("a.json", made), "--json"))
    (file,) = document["files"]
    assert file["program"] == "primbench, debug"
    assert file["notes"][0] == "a debug build: times of other builds may differ"
    assert file["notes"][1].startswith("5 of 5 runs were still noisy at the time limit, by ")


def test_a_file_that_is_still_written_is_read_as_far_as_it_goes(capsys):
    text = text_of(results(types=KEYS[:1]))
    Path("a.json").write_text(text[: text.index(',\n{"index": 3')])
    told = imported(capsys, "a.json", "--base", "bs=128,ipt=4")
    assert "  a.json: it is not closed: its run was still going, or it was truncated" in told
    assert "  a.json: 3 of 5 specializations are there" in told


def without_cfg(made):
    for one in made["specializations"]:
        del one["meta"]["cfg"]
    return made


def of_rocrand(made):
    for one in made["specializations"]:
        one["meta"] = {"algo": "device_api", "type": "u32", "cfg": {"blocks": 64, "threads": 256}}
    return made


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            without_cfg(results()),
            "a.json: specializations[0] meta: it has no cfg\n  rocPRIM's benchmarks write lvl,"
            " algo and cfg; those of other libraries do not.\n",
        ),
        (
            of_rocrand(results()),
            "a.json: specializations[0] meta: it does not name its lvl and its algo\n",
        ),
        (
            results(settings={"dry": True}),
            "a.json: is a dry run without measurements\n  Run it without --dry.\n",
        ),
        (
            results(general={"backend": {"name": "cuda"}, "gpu": {"name": "H100", "arch": "9.0"}}),
            "a.json: was measured with the backend 'cuda', but rocPRIM runs only with hip\n",
        ),
        (
            results(results_version="5.0.0"),
            "a.json: primbench's results of version 5.0.0; policygen supports 4.x\n",
        ),
    ],
)
def test_what_is_no_result_of_rocprim_is_refused(capsys, made, told):
    assert refused(capsys, write("a.json", made)).startswith(told)


def test_neither_old_and_new_benchmarks_nor_hot_and_cold_caches_are_compared(capsys):
    space = {"block": [1, 2]}
    old = rocprim_files.benchmarks({("merge", "key_type:int"): space})
    Path("old.json").write_text(rocprim_files.text_of(old))
    write("new.json", results(types=[{"key_type": "i32"}], space=space))
    told = refused(capsys, "new.json", "old.json", "--gpu", "MI300X")
    assert told.startswith("old.json: device_merge was measured by Google Benchmark, but in new.js")
    write("hot.json", results(types=[{"key_type": "i32"}], space=space, settings={"hot": True}))
    told = refused(capsys, "new.json", "hot.json")
    assert told.startswith("hot.json: device_merge was measured by primbench, hot, but in new.json")


def test_all_formats_are_named_where_a_file_is_of_none(capsys):
    Path("a.json").write_text("{}")
    assert "rocPRIM's primbench results" in " ".join(refused(capsys, "a.json").split())
