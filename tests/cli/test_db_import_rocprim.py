"""`policygen db import` of rocPRIM's results, and all that can be done with what it writes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from policygen.app.db_import import import_results
from policygen.report.database_views import imported as view
from tests.cli.imported import imported, refused
from tests.cli.tuned import run
from tests.report.shown import lines as shown
from tests.results.rocprim_files import ALGORITHMS, REDUCE, aggregate, benchmarks, cache, text_of
from tests.results.tuner_files import write_cache
from tests.tiers import sampled

ROOT = Path(__file__).parent.parent.parent
INT = "rocprim.device_reduce"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def write(name, made):
    Path(name).write_text(text_of(made))
    return name


@pytest.fixture
def tuned():
    made = benchmarks(default=False)
    made["benchmarks"][3]["real_time"] = 0.0
    return write("tuned.json", made)


@pytest.fixture
def plain():
    chosen = {key: space for key, space in ALGORITHMS.items() if key[0] != "histogram"}
    return write("plain.json", benchmarks(chosen, seed=2, default="only", spelling="txt"))


def test_files_become_a_database_of_many_benchmarks(capsys, tuned, plain, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    told = imported(capsys, tuned, plain)
    assert told.splitlines() == [
        "rocPRIM  Instinct MI300X (8192, 304, eccon) · gfx942",
        "  5 workloads of 4 algorithms, 40 rows, 35 variants, 1 size",
        "  rocprim.device_merge_sort_block_sort: 1 workload, 4 variants, base is default_config",
        "  rocprim.device_radix_sort_onesweep: 1 workload, 8 variants, base is default_config",
        '    algorithm: 0 is "block_radix_rank_algorithm::basic",',
        '      2 is "block_radix_rank_algorithm::match"',
        "  rocprim.device_reduce: 2 workloads, 15 variants, base is default_config",
        '    method: 0 is "using_warp_reduce", 1 is "raking_reduce"',
        "  rocprim.device_scan: 1 workload, 8 variants, base is default_config",
        '    method: 0 is "block_scan_algorithm::using_warp_scan",',
        '      1 is "block_scan_algorithm::reduce_then_scan"',
        "  left out: rocprim.device_histogram[active_channels{ct}=3, channels{ct}=4,",
        "  value_type{ct}=uint8_t]: the current configuration is unknown",
        "  1 untimed: its time, 0.0, is not a plausible kernel time, such as bs_128.ipt_8.method_1",
        "  (tuned.json: benchmarks[3], device_reduce key_type=int)",
        "written to run.db",
    ]
    assert rows("run.db", "SELECT * FROM gpus") == [
        ("Instinct MI300X (8192, 304, eccon)", "gfx942")
    ]
    query = f'SELECT DISTINCT "key_type{{ct}}", "Elements" FROM "{INT}.base" ORDER BY 1'
    assert rows("run.db", query) == [("int", "33554432"), ("rocprim::half", "33554432")]
    query = "SELECT method, arch, sm_clock, memory_clock FROM policygen_sessions"
    assert rows("run.db", query) == [("import", "gfx942", 2100, 1300)]
    query = "SELECT algorithm, variant, kind, reason FROM policygen_failures"
    assert rows("run.db", query) == [
        (
            INT,
            "bs_128.ipt_8.method_1",
            "untimed",
            "its time, 0.0, is not a plausible kernel time",
        )
    ]
    query = "SELECT DISTINCT base, program, warmup FROM policygen_imports"
    assert rows("run.db", query) == [("base", "Google Benchmark", 0)]


def test_all_that_reads_databases_reads_it(capsys, tuned, plain):
    imported(capsys, tuned, plain)
    status, out, err = run(capsys, "db", "info", "run.db")
    assert (status, err) == (0, "")
    assert f"{INT}.base  17 rows · 8 variants · 2 workloads" in out
    assert '    method: 0 is "using_warp_reduce" · 1 is "raking_reduce"' in out.splitlines()
    status, out, _ = run(capsys, "db", "top", "run.db", "--json")
    assert (status, len(json.loads(out)["workloads"])) == (0, 5)
    status, out, _ = run(capsys, "db", "choose", "run.db", "--json")
    found = {
        (one["algorithm"], *one["workload"].values()): one for one in json.loads(out)["workloads"]
    }
    one = found[INT, "rocprim::half"]
    assert (status, one["arch"], one["choice"]["decision"]) == (0, "gfx942", "use")
    assert one["choice"]["variant"] == "bs_256.ipt_16.method_0"
    status, out, _ = run(capsys, "db", "report", "run.db")
    assert (status, "Base is a variant that the database does not name." in out) == (0, True)
    assert run(capsys, "db", "compare", "run.db", "run.db")[0] in {0, 2}
    assert run(capsys, "db", "export", "run.db", "-o", "rows.csv")[0] == 0


def test_merging_keeps_what_is_base_by_default(capsys):
    write("a.json", benchmarks({("reduce", "key_type:int"): {"bs": [64, 128]}}))
    write("b.json", benchmarks({("scan", "value_type:int"): {"bs": [64, 128]}}))
    for name in "ab":
        imported(capsys, f"{name}.json", out=f"{name}.db")
    assert run(capsys, "db", "merge", "a.db", "b.db", "-o", "all.db")[0] == 0
    query = "SELECT algorithm, base, file FROM policygen_imports ORDER BY 1"
    assert rows("all.db", query) == [
        (INT, "base", "a.json"),
        ("rocprim.device_scan", "base", "b.json"),
    ]
    assert run(capsys, "db", "choose", "all.db")[0] == 0


def test_the_document_lists_workloads(capsys, tuned, plain):
    found = json.loads(imported(capsys, tuned, plain, "--json"))
    assert (found["format"], found["library"]) == ("policygen/db-import/1", "rocprim")
    assert (found["rows"], found["variants"], len(found["workloads"])) == (40, 35, 5)
    one = found["workloads"][0]
    assert one == {
        "algorithm": "rocprim.device_merge_sort_block_sort",
        "workload": {"key_type{ct}": "int8_t", "value_type{ct}": "rocprim::empty_type"},
        "base": "base",
        "base_from": "default",
        "base_values": {},
        "sizes": ["33554432"],
        "variants": 4,
        "rows": 5,
        "without_samples": 0,
        "deviation": None,
    }
    assert (found["algorithm"], found["base"]) == (one["algorithm"], "base")
    assert found["failures"] == [
        {
            "kind": "untimed",
            "reason": "its time, 0.0, is not a plausible kernel time",
            "count": 1,
            "variants": ["bs_128.ipt_8.method_1"],
            "places": ["tuned.json: benchmarks[3], device_reduce key_type=int"],
        }
    ]
    (left,) = found["left_out"]
    assert (left["algorithm"], left["count"]) == ("rocprim.device_histogram", 1)
    assert [(one["kernel"], one["configurations"]) for one in found["files"]] == [
        (None, 40),
        (None, 5),
    ]


def test_means_alone_have_no_samples(capsys):
    made = benchmarks({("reduce", "key_type:int"): REDUCE}, only=True)
    told = imported(capsys, write("a.json", made))
    assert "  9 rows without samples: their uncertainty is unknown" in told
    ((count, apart),) = rows("run.db", "SELECT count(*), max(deviation) FROM policygen_deviations")
    assert (count, apart) == (9, pytest.approx(4e-6, rel=0.1))
    ((samples,),) = rows("run.db", f'SELECT max(samples) FROM "{INT}.base"')
    assert samples is None
    for more, decision in (((), "keep base"), (("--without-samples",), "use")):
        _, out, _ = run(capsys, "db", "choose", "run.db", "--json", *more)
        (one,) = json.loads(out)["workloads"]
        assert one["choice"]["decision"] == decision
    document = json.loads(imported(capsys, "a.json", "--json"))
    assert document["workloads"][0]["deviation"] == pytest.approx(0.002, rel=0.1)


def test_caches_of_the_tuner_are_joined(capsys):
    """Each has one time of a configuration: five runs make an interval."""
    names = [write(f"{seed}.json", cache(seed=seed)) for seed in range(1, 7)]
    said = ("--base", "block_size_x=128,ipt=4", "--gpu", "MI300X")
    told = imported(capsys, *names, *said).splitlines()
    assert told[:3] == [
        "rocPRIM  MI300X · gfx942",
        "  1 workload of 1 algorithm, 6 rows, 5 variants, 1 size, 30 measurements combined with"
        " earlier ones",
        "  rocprim.device_merge: 1 workload, 5 variants, base is what --base gives",
    ]
    _, out, _ = run(capsys, "db", "top", "run.db", "--json")
    (found,) = json.loads(out)["workloads"]
    known = {one["variant"]: one["interval"] for one in found["variants"]}
    assert known.pop("base") is None
    assert None not in known.values()
    assert rows("run.db", "SELECT DISTINCT base FROM policygen_imports") == [("bs_128.ipt_4",)]


def test_a_part_of_policygen_may_know_the_tree(tuned):
    def current(benchmark, workload, arch):
        assert arch == "gfx942"
        return (
            {"bs": "128", "ipt": "16", "method": "x::raking_reduce"}
            if "half" in str(workload)
            else None
        )

    document = import_results([tuned], Path("run.db"), current=current)
    (one,) = document.workloads
    assert (one.base, one.base_from) == ("bs_128.ipt_16.method_1", "tree")
    assert one.base_values == {"bs": "128", "ipt": "16", "method": '"raking_reduce"'}
    assert sum(left.count for left in document.left_out) == 5


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--name", "x"), "--name: files of a library already state it\n  Omit it.\n"),
        (("--type", "T=F32"), "--type: files of a library already state it\n"),
        (("--arch", "gfx90a"), "plain.json: was measured on gfx942, but --arch is gfx90a\n"),
        (("--gpu", "\x1b"), "--gpu '\\x1b' is not a GPU's name\n"),
        ((), "plain.json: no workload can be compared with a base: only default_config ran"),
    ],
)
def test_what_contradicts_files_is_refused(capsys, plain, given, told):
    assert refused(capsys, plain, *given).startswith(told)


def test_kernels_of_ones_own_are_imported_by_themselves(capsys, plain):
    write_cache("own.json")
    told = refused(capsys, plain, "own.json", "--base", "tile=1")
    assert told.startswith("own.json: is for your own kernel, but other files are for a libr")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Three hundred workloads of twelve algorithms, some left out, some that failed."""
    path = tmp_path_factory.mktemp("many")
    algorithms = {
        (f"algorithm{'abcdefghijkl'[n % 12]}", f"key_type:t{n}"): {"bs": [64, 128], "m": ["x", "y"]}
        for n in range(300)
    }
    made = benchmarks(algorithms, repetitions=1)
    for one in made["benchmarks"]:
        if "algorithmb" in one["name"] and "default_config" in one["name"]:
            one["real_time"] = 0.0
    (path / "many.json").write_text(text_of(made))
    return import_results([str(path / "many.json")], path / "run.db")


@pytest.mark.parametrize("width", sampled([80, 160], 80))
def test_many_workloads_stay_readable(many, width):
    told = list(shown(view(many, verbose=False, head=True), width))
    assert max(map(len, told)) <= width
    assert len(told) < 60
    assert told[1].strip().startswith("275 workloads of 11 algorithms, 1,375 rows, 1,100 variants")
    assert "  and 3 more algorithms, see them with -v" in told
    (left,) = many.left_out
    assert left.count == 25
    assert any("and 24 more workloads" in line for line in told) or width == 80
    assert len(list(shown(view(many, verbose=True, head=True), width))) > 275
    assert len(list(shown(view(many, verbose=False, head=False), width))) <= 3


def test_reasons_that_are_not_listed_are_counted(many):
    left = tuple(many.left_out[0].model_copy(update={"reason": f"r{n}"}) for n in range(10))
    sizes = tuple(one.model_copy(update={"size": "7", "count": 1}) for one in left[:1])
    more = many.model_copy(
        update={
            "left_out": (*sizes, *left),
            "other_failures": 2,
            "files": tuple(one.model_copy(update={"notes": ("cut off",)}) for one in many.files),
        }
    )
    told = "\n".join(shown(view(more, verbose=False, head=True), 160))
    assert "  and 75 more left out (-v says why)" in told
    assert "  and 2 more reasons" in told
    assert "key_type{ct}=t1] Elements=7: r0" in told
    assert "many.json: cut off" in told


def test_hostile_names_never_reach_sql(capsys):
    made = benchmarks({("reduce", "key_type:int"): {"bs": [64, 128]}})
    for name in ('a"; DROP TABLE subbenches; --', "a'b", "a]b", "variant", "A", "base", "a\0b"):
        text = json.dumps(made).replace("reduce", "x").replace('\\"x\\"', json.dumps(name)[1:-1])
        Path("a.json").write_text(text.replace("key_type", json.dumps(name)[1:-1]))
        status, _, err = run(capsys, "db", "import", "a.json", "-o", "run.db", "--force")
        assert status in {0, 2}
        assert "Traceback" not in err


@pytest.mark.parametrize("files", ["rocprim_*", "primbench_merge"])
def test_imported_results_lead_to_a_choice(files, capsys):
    paths = [str(path) for path in sorted((ROOT / "fixtures/tuners").glob(f"{files}.json"))]
    assert run(capsys, "db", "import", *paths, "-o", "run.db")[0] == 0
    assert run(capsys, "db", "choose", "run.db", "-q")[0] == 0


def test_aggregates_beside_repetitions_change_nothing(capsys):
    made = benchmarks({("reduce", "key_type:int"): {"bs": [64, 128]}})
    write("a.json", made)
    imported(capsys, "a.json", out="a.db")
    made["benchmarks"] = [one for one in made["benchmarks"] if one["run_type"] == "iteration"]
    made["benchmarks"].append(aggregate(made["benchmarks"][0]["name"], "cv", 0.5))
    write("b.json", made)
    imported(capsys, "b.json", out="b.db")
    query = f'SELECT variant, center, samples FROM "{INT}.base" ORDER BY 1'
    assert rows("a.db", query) == rows("b.db", query)
