"""`policygen db import`, and all that can be done with what it writes."""

import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from policygen.app.db_import import _find_binding
from policygen.errors import InputError
from policygen.gpu.database_writer import _check_method, open_writer
from tests.cli.tuned import run
from tests.results.tuner_files import BASE, document, failed, t4_document, text_of, write_cache

ROOT = Path(__file__).parent.parent.parent
BEST = "block_size_x_128.tile_4"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def imported(capsys, *given, out="run.db", base=BASE):
    status, printed, err = run(capsys, "db", "import", *given, "-o", out, "--base", base)
    assert (status, err) == (0, ""), err
    return printed


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_cache_becomes_a_database(capsys, tmp_path):
    write_cache("a.json")
    assert imported(capsys, "a.json").splitlines() == [
        "own.vector_add  H200 · sm90",
        "  base is block_size_x_256.tile_1",
        "  9 rows, 8 variants, 1 size",
        "  the first launch is treated as warm-up and ignored; --warmup 0 counts all",
        "written to run.db",
    ]
    assert rows("run.db", 'SELECT DISTINCT "Elements", gpu, ctk FROM "own.vector_add.base"') == [
        ("1000000", "H200", "")
    ]
    assert rows("run.db", "SELECT * FROM gpus") == [("H200", "sm90")]
    assert rows("run.db", "SELECT algorithm, base, file, size FROM policygen_imports") == [
        ("own.vector_add", "block_size_x_256.tile_1", "a.json", "1000000")
    ]
    # The median of the other samples counts, and not the mean, which the first launch spoils.
    ((center,),) = rows(
        "run.db", "SELECT center FROM \"own.vector_add.base\" WHERE variant = 'base'"
    )
    base = document()["cache"]["256,1"]
    assert center == pytest.approx(sorted(base["times"][1:])[15] / 1000, rel=1e-3)
    assert base["time"] / 1000 > center * 1.05


def test_the_first_launch_of_few_does_not_hide_a_winner(capsys):
    """Kernel Tuner takes seven times by default, and the first launch loads the code."""
    write_cache("a.json", count=7)
    for more, decision in (((), "use"), (("--warmup", "0"), "keep base")):
        imported(capsys, "a.json", "--force", *more)
        _, out, _ = run(capsys, "db", "choose", "run.db", "--json")
        assert json.loads(out)["workloads"][0]["choice"]["decision"] == decision
        query = 'SELECT DISTINCT length(samples) > 0 FROM "own.vector_add.base"'
        assert rows("run.db", query) == [(1,)]
    assert rows("run.db", "SELECT warmup FROM policygen_imports") == [(0,)]


def test_sizes_are_runtime_workloads(capsys):
    write_cache("a.json", 1_000_000)
    write_cache("b.json", (4096, 4096, 1))
    told = imported(capsys, "a.json", "b.json", "-v")
    assert "  Elements=1000000\n  Elements=4096x4096\n" in told
    _, out, _ = run(capsys, "db", "top", "run.db", "--json")
    (found,) = json.loads(out)["workloads"]
    best = found["variants"][0]
    assert (best["variant"], best["min"] > 1.4) == (BEST, True)


@pytest.fixture
def database(capsys):
    write_cache("a.json", 1_000_000, 1)
    write_cache("b.json", 30_000_000, 1)
    made = document(30_000_000, 2)
    made["cache"]["256,4"] = failed({"block_size_x": 256, "tile": 4}, "RuntimeFailedConfig")
    Path("c.json").write_text(text_of(made))
    imported(capsys, "a.json", "b.json")
    imported(capsys, "a.json", "c.json", out="second.db")


def test_info_counts_what_was_imported(capsys, database):
    status, out, err = run(capsys, "db", "info", "second.db")
    assert (status, err) == (0, "")
    assert "own.vector_add.base  17 rows · 8 variants · 1 workload" in out
    assert "Elements: 1000000 30000000" in out
    assert "1 failed run of own.vector_add, code 3" in out


def test_top_and_choose_find_the_best(capsys, database):
    status, out, _ = run(capsys, "db", "top", "run.db")
    assert status == 0
    assert out.splitlines()[2].split()[0] == BEST
    status, out, _ = run(capsys, "db", "choose", "run.db", "--json")
    (found,) = json.loads(out)["workloads"]
    assert (found["arch"], found["choice"]["decision"]) == ("sm90", "use")
    assert found["choice"]["variant"] == BEST
    assert found["choice"]["score"] == pytest.approx(1.44, abs=0.02)


def test_a_later_run_confirms(capsys, database):
    status, out, _ = run(capsys, "db", "choose", "run.db", "--confirm", "second.db", "--json")
    (found,) = json.loads(out)["workloads"]
    assert (status, found["choice"]["unconfirmed"]) == (0, False)


def test_rows_are_exported(capsys, database, tmp_path):
    assert run(capsys, "db", "export", "run.db", "-o", "rows.csv")[0] == 0
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == 1 + 18
    assert lines[0].endswith(",Elements")


def test_the_report_names_base_and_what_failed(capsys, database, tmp_path):
    status, out, err = run(capsys, "db", "report", "second.db")
    assert (status, err) == (0, "")
    assert "Base is block_size_x_256.tile_1." in out
    assert "1 variant failed." in out
    assert "1 error: Kernel Tuner: it fails when it runs" in out
    assert "measured side by side" not in out
    assert run(capsys, "db", "report", "run.db", "-o", "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "policygen did not make these measurements" in page


def test_two_imports_are_compared_and_plotted(capsys, database):
    status, out, _ = run(capsys, "db", "compare", "run.db", "second.db")
    assert (status, out.count("same variant")) == (0, 2), out
    assert run(capsys, "db", "plot", "run.db", "-o", "plot.svg")[0] == 0
    assert run(capsys, "search", "--replay", "run.db", "--variants", "4")[0] == 0


def test_merging_keeps_what_numbers_stand_for(capsys):
    space = {"block_size_x": [64, 128], "type": ["float", "half"]}
    base = "block_size_x=64,type=float"
    write_cache("a.json", 1_000_000, space=space)
    write_cache("b.json", 2_000_000, space=space)
    imported(capsys, "a.json", out="a.db", base=base)
    imported(capsys, "b.json", out="b.db", base=base)
    status, out, _ = run(capsys, "db", "merge", "a.db", "b.db", "-o", "all.db")
    assert (status, "own.vector_add.base: 8 rows" in out) == (0, True)
    query = "SELECT parameter, value, text FROM policygen_values ORDER BY 1, 2"
    assert rows("all.db", query) == [("type", 0, '"float"'), ("type", 1, '"half"')]
    _, out, _ = run(capsys, "db", "info", "all.db")
    assert '    type: 0 is "float" · 1 is "half"' in out.splitlines()
    query = "SELECT session, file, base FROM policygen_imports ORDER BY 2"
    assert rows("all.db", query) == [
        (1, "a.json", "block_size_x_64.type_0"),
        (2, "b.json", "block_size_x_64.type_0"),
    ]
    assert run(capsys, "db", "top", "all.db")[0] == 0


def test_two_types_of_a_kernel_have_a_base_each(capsys):
    for name, base in (("F32", BASE), ("F64", "block_size_x=64,tile=1")):
        write_cache(f"{name}.json")
        imported(capsys, f"{name}.json", "--type", f"T={name}", out=f"{name}.db", base=base)
    assert run(capsys, "db", "merge", "F32.db", "F64.db", "-o", "all.db")[0] == 0
    _, out, _ = run(capsys, "db", "report", "F64.db", "F32.db")
    told = [row for row in out.splitlines() if row.startswith("Base is")]
    assert told == ["Base is block_size_x_256.tile_1.", "Base is block_size_x_64.tile_1."]
    _, out, _ = run(capsys, "db", "choose", "all.db", "--json")
    found = json.loads(out)["workloads"]
    assert [one["workload"] for one in found] == [{"T{ct}": "F32"}, {"T{ct}": "F64"}]


@pytest.mark.parametrize(
    "command",
    [
        ("top", "a.db", "b.db"),
        ("choose", "a.db", "--confirm", "b.db"),
        ("compare", "a.db", "b.db"),
        ("merge", "a.db", "b.db", "-o", "all.db"),
        ("report", "a.db", "b.db"),
    ],
)
@pytest.mark.parametrize(
    ("types", "base", "told"),
    [
        (
            ["half", "float"],
            "type=half",
            'b.db: type_0 of own.vector_add stands for "half" there, but for "float" in a.db',
        ),
        ([0, 1], "type=0", "b.db: values of type of own.vector_add are their own numbers there"),
        (
            ["float", "half"],
            "type=half",
            "b.db: base of own.vector_add is block_size_x_64.type_1 there, but"
            " block_size_x_64.type_0 in a.db",
        ),
    ],
)
def test_databases_whose_labels_mean_other_things_are_not_compared(
    capsys, command, types, base, told
):
    """A label would be two variants."""
    for name, values, of in (("a", ["float", "half"], "type=float"), ("b", types, base)):
        write_cache(f"{name}.json", space={"block_size_x": [64], "type": values})
        imported(capsys, f"{name}.json", out=f"{name}.db", base=of)
    status, out, err = run(capsys, "db", *command)
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {told}")


def test_t4_results_are_imported_where_the_rest_is_said(capsys, tmp_path):
    (tmp_path / "t4.json").write_text(json.dumps(t4_document()))
    given = ("t4.json", "--name", "add", "--size", "1000000", "--gpu", "H200 (6144, 132, eccon)")
    told = imported(capsys, *given, "--ctk", "13.0")
    assert told.startswith("own.add  H200 (6144, 132, eccon) · sm90 · ctk 13.0\n")
    _, out, _ = run(capsys, "db", "choose", "run.db", "--json")
    assert json.loads(out)["workloads"][0]["choice"]["variant"] == BEST
    write_cache("a.json")
    given = ("--gpu", "H200 (6144, 132, eccon)", "--ctk", "13.0", "--name", "own.add")
    imported(capsys, "a.json", *given, out="same.db")
    query = 'SELECT variant, round(center, 12) FROM "own.add.base" ORDER BY 1'
    assert rows("run.db", query) == rows("same.db", query)


def test_everything_that_is_not_said_is_asked_for_at_once(capsys):
    made = document("callable", kernel="add<float>", device="")
    del made["problem_size"]
    Path("a.json").write_text(text_of(made))
    status, out, err = run(capsys, "db", "import", "a.json", "-o", "run.db")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "policygen: error: a.json: 'add<float>' is not a valid name for results",
        "  Name it with letters, digits and underscores: --name my_kernel",
        "a.json: does not state the GPU",
        "  Name it as other databases do: --gpu 'H200 (6144, 132, eccon)', or: --gpu H200",
        "a.json: does not state the problem size",
        "  Name it: --size 1000000, or --size 4096x4096",
        "a.json: does not state the baseline configuration",
        "  Name it: --base 'block_size_x=64,tile=1'",
    ]
    given = ("--name", "add", "--gpu", "B400", "--size", "10")
    status, _, err = run(capsys, "db", "import", "a.json", "-o", "run.db", *given, "--base", BASE)
    assert (status, err.splitlines()) == (
        2,
        [
            "policygen: error: the architecture of B400 is unknown",
            "  Name it: --arch sm90",
        ],
    )
    imported(capsys, "a.json", *given, "--arch", "11.0")
    assert rows("run.db", "SELECT * FROM gpus") == [("B400", "sm110")]


def test_a_database_is_replaced_where_it_is_forced_alone(capsys):
    write_cache("a.json")
    imported(capsys, "a.json")
    status, _, err = run(capsys, "db", "import", "a.json", "-o", "run.db", "--base", BASE)
    assert (status, "exists already" in err) == (2, True)
    imported(capsys, "a.json", "--force")
    status, _, err = run(capsys, "db", "import", "a.json", "-o", "a.json", "--base", BASE)
    assert (status, "is one of the inputs" in err) == (2, True)
    status, _, err = run(
        capsys, "db", "import", "a.json", "-o", "b.db", "--base", BASE, "--ctk", "\x1b[2J"
    )
    assert (status, "\x1b" not in err) == (2, True)


def test_nothing_is_measured_into_what_was_imported(capsys):
    """Times that were taken in different ways are not compared."""
    write_cache("a.json")
    imported(capsys, "a.json")
    about = SimpleNamespace(key=("", "", "H200"), method="events")
    with open_writer(Path("run.db")) as writer, pytest.raises(InputError, match="method import"):
        _check_method(writer, about)


def test_the_document_tells_all_of_it(capsys):
    write_cache("a.json")
    document = json.loads(imported(capsys, "a.json", "--json"))
    assert document["format"] == "policygen/db-import/1"
    assert document["base_values"] == {"block_size_x": "256", "tile": "1"}
    assert (document["rows"], document["variants"], document["failures"]) == (9, 8, [])
    assert document["parameters"][1] == {
        "name": "tile",
        "algorithm": "own.vector_add",
        "numbered": False,
        "values": {"1": "1", "2": "2", "4": "4"},
    }


def test_an_imported_cache_leads_to_a_choice(capsys, monkeypatch):
    Path("fixtures").symlink_to(ROOT / "fixtures")
    page = (ROOT / "docs/guide-kernels.md").read_text("utf-8")
    (command,) = re.findall(r"^\$ policygen (db import .* -o mine.db)$", page, re.M)
    assert run(capsys, *shlex.split(command))[0] == 0
    _, out, _ = run(capsys, "db", "choose", "mine.db", "-q")
    assert "use block_size_x_128.order_1.use_ldg_1  score 1.375774 (" in out


def test_parameters_are_those_of_the_benchmarks_own_site():
    for name in ("cub.bench.run_length_encode.non_trivial_runs", "cub.bench.reduce.sum"):
        binding, families = _find_binding(name)
        assert {family.site for family in families} == {binding.site}
    assert _find_binding("cub.bench.none") is None
