"""What is written for others names no path of the machine that it was written on."""

import json
import tempfile
from pathlib import Path

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from tests.cli.tuned import THREE, database, run, tuned, writable_tree
from tests.probing import header, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
ONE = ("-R", f"{THREE}$", "-a", "T{ct}=I32", "-a", "OffsetT{ct}=I32")
SPACE = """#include <nvbench_helper.cuh>
// %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1
NVBENCH_BENCH_TYPES(keys, NVBENCH_TYPE_AXES(all_types)).set_name("base");
"""


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder to stand in; the tree and the databases are elsewhere, and named with full paths."""
    (tmp_path / "here").mkdir()
    (tmp_path / "data").mkdir()
    writable_tree(tmp_path)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def written(places, capsys):
    """Runs a command and looks at all that it writes, to standard output and below the folder."""
    forbidden = {str(places), str(Path.home()), tempfile.gettempdir() + "/"}

    def write(*words, status=0):
        found, out, err = run(capsys, *words)
        assert found == status, err
        files = [path for path in Path().rglob("*") if path.is_file() and ".db" not in path.name]
        for name, text in ((path.name, path.read_text()) for path in files):
            assert [one for one in forbidden if one in text] == [], name
        assert [one for one in forbidden if one in out] == [], words
        assert out or files
        return out

    return write


@pytest.mark.slow
def test_no_document_of_a_tree_or_of_databases_names_one(places, written):
    tree, old = root("3.0.1"), places / "tree"
    data = database(places / "data/run.db")
    more = database(places / "data/more.db", {("I64", "I32"): None})
    source = places / "data/base.cu"
    source.write_text(SPACE)
    on_tree = ("--cub", tree, "--json")
    written("scan", "three_way_partition", *on_tree)
    written("resolve", *on_tree, *ONE, "--arch", "sm90")
    written("resolve", *on_tree, *ONE, "--arch", "sm90", "--compare", old)
    written("audit", "lint", "three_way_partition", *on_tree)
    written("audit", "reach", "three_way_partition", "--arch", "sm80", *on_tree)
    for form in ("csv", "md", "html"):
        kept = ("--format", form, "-o", f"coverage.{form}")
        written("audit", "coverage", "--cub", tree, *ONE, "--db", data, "--arch", "sm90", *kept)
    written("audit", "coverage", *on_tree, *ONE, "--db", data, "--arch", "sm90", "-o", "all.json")
    written("bench", source, "--json")
    written("db", "info", data, more, "--json")
    written("db", "top", data, more, "--json")
    written("db", "choose", data, "--json")
    written("db", "coverage", data, "--bench", source, "--json")
    written("db", "merge", data, more, "-o", places / "data/both.db", "--json", status=1)
    written("db", "export", data, "-o", "rows.csv")


@pytest.mark.slow
def test_no_document_of_a_change_names_one(places, written):
    tree, data = places / "tree", database(places / "data/run.db")
    there = ("--cub", tree)
    given = ("--db", data, "--arch", "sm90")
    written("plan", *there, *given, "--json", "-o", "plan.json")
    written("apply", *there, *given, "--patch", "change.patch", "--no-prove", "-q")
    written("apply", *there, "--plan", "plan.json", "--json")
    effect = written("verify-effect", *there, "--json")
    Path("effect.json").write_text(effect)
    sass = written("verify-sass", *there, *ONE, "--arch", "sm80", "--json", "--diffs", "kernels")
    Path("sass.json").write_text(sass)
    for form in ("md", "html", "json"):
        proofs = ("--effect", "effect.json", "--sass", "sass.json")
        written("review", *there, *proofs, "--format", form, "-o", f"review.{form}")
    evidence = json.loads(Path("review.json").read_text())["entries"]
    assert [one["evidence"][0]["scored"]["variant"] for one in evidence if one["evidence"]]
    written("review", *there, "--annotate", "github", "-o", "annotations.txt")
    written("verify-sass", *there, *ONE, "--arch", "sm80", "--save", "dumps", "--json")
    written("status", *there, "--json")
    written("doctor", *there, "--json")
    written("undo", *there, "--json")


def test_no_header_of_a_user_names_one(places, written):
    data, won = places / "data/run.db", {("F32", "I32"): "ipt_20.tpb_512.ipv_2"}
    benchmark_database(data, "cub.bench.reduce.sum", "3.6.0", GPUS["sm90"], won)
    given = ("--db", data, "--arch", "sm90", "--no-prove", "--json")
    written("emit", "--cub", root("3.6.0"), *given, "-o", "tuned.cuh")
    assert ": run.db\n" in Path("tuned.cuh").read_text()


def test_a_plan_finds_its_tree_again_from_another_folder(places, written, monkeypatch):
    tree, data = places / "tree", database(places / "data/run.db")
    written("plan", "--cub", tree, "--db", data, "--arch", "sm90", "-q", "-o", "plan.json")
    plan = json.loads(Path("plan.json").read_text())
    assert plan["cub"]["root"] == "../tree"
    assert plan["actions"][0]["databases"] == ["../data/run.db"]
    (places / "there").mkdir()
    monkeypatch.chdir(places / "there")
    written("apply", "--cub", "../tree", "--plan", "../here/plan.json", "-q")
    assert tuned(tree).read_bytes() != header("3.0.1", tuned(tree).name)


def test_a_plan_for_another_tree_is_refused(places, capsys):
    tree, data = places / "tree", database(places / "data/run.db")
    run(capsys, "plan", "--cub", tree, "--db", data, "--arch", "sm90", "-q", "-o", "plan.json")
    given = ("apply", "--plan", "plan.json", "-q", "--cub")
    assert run(capsys, *given, root("3.1.4")) == (
        2,
        "",
        "policygen: error: the plan is for CUB 3.0.1, but the tree is CUB 3.1.4\n"
        "  Make the plan again, or name its tree with --cub.\n",
    )
    tuned(tree).write_bytes(tuned(tree).read_bytes() + b"\n")
    assert run(capsys, *given, tree) == (
        2,
        "",
        f"policygen: error: {tuned(tree).name} is not the file that the plan was made for\n"
        "  Make the plan again, or name its tree with --cub.\n",
    )


@pytest.mark.slow
def test_a_database_that_a_plan_names_and_that_is_not_here_is_asked_for(
    places, written, monkeypatch
):
    tree, data = places / "tree", database(places / "data/run.db")
    written("plan", "--cub", tree, "--db", data, "--arch", "sm90", "-q", "-o", "plan.json")
    (places / "far/away").mkdir(parents=True)
    monkeypatch.chdir(places / "far/away")
    written("apply", "--cub", tree, "--plan", "../../here/plan.json", "-q")
    out = written("review", "--cub", tree)
    assert "missing database: ../data/run.db; name it with --db" in out
    assert "Not measured: " not in written("review", "--cub", tree, "--db", data)
