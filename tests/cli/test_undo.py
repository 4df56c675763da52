import json
import subprocess

import jsonschema
import pytest

from policygen.cli.main import main
from policygen.model.machine import Undo
from policygen.store.replacement import Change
from tests.store.killing import killed_at
from tests.store.trees import Tree


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Two applies in a tree; the second one changes a file of the first."""
    tree = Tree(tmp_path)
    version = tree.root / "cub/version.cuh"
    version.write_text("#define CUB_VERSION 300100\n")
    (tree.root / "cub/cub.cuh").write_text("")
    monkeypatch.chdir(tmp_path)
    tree.apply(title="scan on sm100")
    tree.apply(tree.further()[1:2], title="reduce on sm90 [beta]")
    tree.newest = tree.now
    return tree


def run(capsys, *arguments):
    status = main(["undo", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_last_apply_is_taken_back(tree, capsys):
    assert run(capsys) == (
        0,
        "apply 2: reduce on sm90 [beta]\n"
        "  of 2026-09-01 12:00 UTC\n"
        "  restored tree/cub/f1/tuning_1.cuh\n",
        "",
    )
    assert tree.now == tree.new
    status, out, _ = run(capsys, "-q")
    assert status == 0
    assert out == (
        "  restored tree/cub/f0/tuning_0.cuh\n"
        "  restored tree/cub/f0/tuning_2.cuh\n"
        "  restored tree/cub/f1/tuning_1.cuh\n"
    )
    assert tree.now == tree.old
    assert run(capsys) == (
        2,
        "",
        "policygen: error: nothing to undo: policygen.db records no apply that can be undone\n"
        "  If another store recorded it, name that store: --store FILE\n",
    )


def test_several_are_taken_back_at_once_newest_first(tree, capsys):
    status, out, _ = run(capsys, "--steps", "2", "-v")
    assert status == 0
    assert [row for row in out.splitlines() if "apply" in row or "to " in row] == [
        "apply 2: reduce on sm90 [beta]",
        f"  to {tree.root}",
        "apply 1: scan on sm100",
        f"  to {tree.root}",
    ]
    assert tree.now == tree.old


def test_a_diff_writes_nothing_and_git_can_apply_it(tree, capfdbinary):
    assert main(["undo", "--diff", "--steps", "2"]) == 0
    diff = capfdbinary.readouterr().out
    assert tree.now == tree.newest
    assert diff.count(b"diff --git a/cub/") == 3
    environment = {"GIT_CEILING_DIRECTORIES": str(tree.root.parent), "PATH": "/usr/bin:/bin"}
    subprocess.run(["git", "apply", "-"], cwd=tree.root, input=diff, check=True, env=environment)
    assert tree.now == tree.old


def test_a_diff_names_files_as_git_does(tree, capsys):
    subprocess.run(["git", "init", "-q"], cwd=tree.root.parent, check=True)
    _, out, _ = run(capsys, "--diff")
    assert out.startswith("diff --git a/tree/cub/f1/tuning_1.cuh b/tree/cub/f1/tuning_1.cuh\n")


def test_check_tells_whether_there_is_something_and_writes_nothing(tree, capsys):
    status, out, _ = run(capsys, "--check")
    assert status == 1
    assert out.endswith("  would restore tree/cub/f1/tuning_1.cuh\n")
    assert run(capsys, "--check", "--diff")[0] == 1
    assert tree.now == tree.newest
    assert run(capsys, "--steps", "2", "-q")[0] == 0
    assert run(capsys, "--check") == (0, "nothing to undo\n", "")
    assert run(capsys, "--check", "-q") == (0, "", "")
    assert run(capsys, "--check", "--store", "none.db")[0] == 0
    assert run(capsys, "--diff")[0] == 2


def test_json_is_one_document(tree, capsys):
    status, out, _ = run(capsys, "--json", "--check")
    assert status == 1
    document = Undo.model_validate_json(out)
    assert not document.written
    assert document.to_json() + "\n" == out
    status, out, err = run(capsys, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "format": "policygen/undo/1",
        "written": True,
        "applies": [
            {
                "apply": 2,
                "title": "reduce on sm90 [beta]",
                "applied_at": "2026-09-01T12:00:00Z",
                "root": "tree",
                "files": ["cub/f1/tuning_1.cuh"],
            }
        ],
    }
    jsonschema.validate(json.loads(out), Undo.model_json_schema(mode="serialization"))
    assert run(capsys, "--json", "--diff")[0] == 2


def test_a_tree_can_be_named(tree, capsys, tmp_path):
    other = Tree(tmp_path / "other")
    other.apply(store=tree.store)
    status, out, _ = run(capsys, "--cub", str(tree.root))
    assert status == 0
    assert out.startswith("apply 2: ")
    status, _, err = run(capsys, "--cub", str(tmp_path / "none"))
    assert status == 2
    assert "none" in err


def test_an_edit_since_is_shown_and_nothing_is_written(tree, capsys):
    tree.paths[1].write_bytes(b"edited\xff\n" + tree.newest[1])
    for mode in ((), ("--diff",), ("--check",)):
        status, out, err = run(capsys, *mode)
        assert (status, out) == (2, "")
        assert "tuning_1.cuh: edited since apply 2 (reduce on sm90 [beta])\n" in err
        assert "\n  +edited\\xff\n" in err
    assert tree.paths[1].read_bytes() == b"edited\xff\n" + tree.newest[1]


def test_what_was_interrupted_is_ended_first(tree, capsys):
    changes = [Change(p, now, b"last") for p, now in zip(tree.paths, tree.now, strict=True)]
    assert killed_at(12, lambda: tree.apply(changes, title="last"))
    assert run(capsys, "--check")[0] == 2
    status, out, _ = run(capsys)
    assert status == 0
    assert out.startswith("apply 3: last\n")
    assert tree.now == tree.newest
    assert tree.others() == sorted(tree.root / f"cub/{n}.cuh" for n in ("cub", "version"))
