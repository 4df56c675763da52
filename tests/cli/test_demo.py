import shlex
import shutil
from pathlib import Path

import pytest

from policygen.app import demo as steps_of
from policygen.cli import demo
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.trees.fetched import make_current
from tests.cli.tuned import run
from tests.probing import TUNINGS, changed_tree, header
from tests.real_trees import tree as cub_tree
from tests.trees.places import empty_machine

HEADER = "tuning_radix_sort.cuh"
COMMANDS = ["db choose", "plan", "apply", "verify-effect", "verify-sass", "undo"]


def commands(out):
    """What was printed to be typed."""
    return [shlex.split(row)[2:] for row in out.splitlines() if row.startswith("$ policygen ")]


def steps(cub=None):
    return [arguments for _, arguments in steps_of.demo_steps(cub, Path("here"))]


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_whole_loop_runs_and_the_tree_is_as_it_was(capsys, workplace, tmp_path):
    before = header("3.0.1", HEADER)
    tree = changed_tree(tmp_path, "3.0.1", {HEADER: before})
    status, out, _ = run(capsys, "demo", "--cub", tree)
    assert status == 0
    assert (tree / TUNINGS / HEADER).read_bytes() == before
    assert sorted(path.name for path in (tree / TUNINGS).iterdir() if path.is_file()) == sorted(
        path.name for path in (cub_tree("3.0.1") / TUNINGS).iterdir()
    )
    assert out.startswith(
        f"{demo.MADE_UP}\n1. Which variants are worth it? (These measurements are invented.)\n$"
        " policygen db"
    )
    assert "\n2. What would change, and why? (The scores are invented.)\n$ policygen plan" in out
    typed = commands(out)
    assert [" ".join(c)[: len(known)] for c, known in zip(typed, COMMANDS, strict=True)] == COMMANDS
    words = " ".join(out.split())
    assert (
        "4 workloads: 1 updated, 2 left to the fallback, 1 rejected; 4 edits in 1 header" in words
    )
    assert "proof: 1 workload changed as written" in words
    assert "SASS: of 4 kernels 4 equal (sm100)" in words
    assert f"restored {tree}/{TUNINGS}/{HEADER}" in words
    assert sorted(path.name for path in Path("policygen-demo").iterdir()) == [
        "plan.json",
        "policygen.db",
        "run.db",
    ]
    check_typed(capsys, typed, tree / TUNINGS / HEADER, before)


def check_typed(capsys, typed, path, before):
    """Each command that was printed does the same when it is typed."""
    for arguments in typed:
        assert main(arguments) == 0
        assert (path.read_bytes() != before) == (
            arguments[0] in {"apply", "verify-effect", "verify-sass"}
        )
    capsys.readouterr()


@pytest.mark.trees
@pytest.mark.nvcc
def test_it_stops_where_a_command_finds_something(capsys, monkeypatch, tree, three):
    check = ["apply", "--check", "--db", str(three), "--arch", "sm90", "--cub", "tree"]
    monkeypatch.setattr(
        demo, "demo_steps", lambda *_: iter([("Check", check), ("Never", ["nope"])])
    )
    status, out, _ = run(capsys, "demo", "--cub", tree)
    assert status == 1
    assert out.startswith(f"{demo.MADE_UP}\n1. Check\n$ policygen apply --check")
    assert "Never" not in out


@pytest.mark.trees
def test_on_a_machine_without_cub_it_obtains_one_first(tmp_path, monkeypatch):
    places = empty_machine(tmp_path, monkeypatch)
    found = steps_of.demo_steps(None, Path("here"))
    assert next(found)[1] == ["headers", "fetch", "3.0.1"]
    (places.headers / "3.0.1").symlink_to(cub_tree("3.0.1"))
    make_current(places.headers, "3.0.1")
    rest = [arguments for _, arguments in found]
    assert [" ".join(c)[: len(known)] for c, known in zip(rest, COMMANDS, strict=True)] == COMMANDS
    assert [arguments[0] for arguments in rest if "--cub" in arguments] == ["apply"]


@pytest.mark.trees
def test_inside_a_checkout_the_fetched_tree_is_named(tmp_path, monkeypatch):
    """The checkout would be found first, and be written to."""
    places = empty_machine(tmp_path, monkeypatch)
    (places.headers / "3.0.1").symlink_to(cub_tree("3.0.1"))
    make_current(places.headers, "3.0.1")
    assert [arguments[0] for arguments in steps() if "--cub" in arguments] == ["apply"]
    shutil.copytree(cub_tree("3.0.1") / "cub", places.work / "cub")
    assert steps()[1][5:7] == ["--cub", "3.0.1"]


def test_a_tree_that_is_named_is_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, plan, apply, verify, sass, _ = steps("a tree")
    assert all(arguments[arguments.index("--cub") + 1] == "a tree" for arguments in (plan, apply))
    assert "a tree" in verify
    assert "a tree" in sass


def test_a_folder_that_cannot_be_made_is_told(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    status, out, err = run(capsys, "demo", "--cub", tmp_path, "--folder", "file/demo")
    assert (status, out) == (2, f"{demo.MADE_UP}\n")
    assert err.startswith("policygen: error: cannot write file/demo/run.db: ")


def test_the_database_is_made_anew(tmp_path):
    path = tmp_path / "run.db"
    steps_of.write_database(path)
    made = path.read_bytes()
    path.write_bytes(made + b"older")
    steps_of.write_database(path)
    assert path.read_bytes() == made
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match=r"run\.db: exists already, and is not a database"):
        steps_of.write_database(path)
    assert path.read_bytes() == b"something else"
