"""An apply that was killed between two headers: every command that opens the tree says so first."""

import sqlite3
from contextlib import closing

import pytest

from policygen.cli.main import main
from policygen.store.journal import history
from policygen.store.replacement import Change
from policygen.store.targets import tree_lock
from tests.store.killing import killed_at
from tests.store.trees import Tree
from tests.trees.toys import make_root

TUNINGS = "cub/device/dispatch/tuning"
# Of an apply of four files, as in tests/store/test_recover.py: the second rename.
BETWEEN = 16


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """One of four headers is new."""
    made = Tree(tmp_path, 0)
    make_root(made.root)
    folder = made.root / TUNINGS
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name in ("a", "b", "c", "d"):
        path = folder / f"tuning_{name}.cuh"
        before = b"namespace cub {}\n"
        path.write_bytes(before)
        made.changes.append(Change(path, before, before + b"// new\n"))
    monkeypatch.chdir(tmp_path)
    for name in ("POLICYGEN_CONFIG", "POLICYGEN_CUB_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def killed(tree):
    assert killed_at(BETWEEN, tree.apply)
    assert [now != old for now, old in zip(tree.now, tree.old, strict=True)] == [True, *[False] * 3]
    return tree


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def told(tree, store=""):
    return (
        f"an apply was interrupted: 1 of 4 headers of {tree.root} are new\n"
        f"  policygen undo{store} undoes it, policygen apply --finish{store} completes it.\n"
    )


READING = [
    ("scan",),
    ("audit", "lint"),
    ("headers", "path"),
    ("scan", f"tree/{TUNINGS}/tuning_a.cuh"),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_who_reads_is_told_first_and_goes_on(killed, capsys, command):
    named = () if "tree/" in command[-1] else ("--cub", killed.root)
    _, _, err = run(capsys, *command, *named)
    assert err.startswith(f"policygen: warning: {told(killed)}")


WHOLE = [
    ("review",),
    ("verify-effect",),
    ("verify-sass",),
    ("apply", "--plan", "plan.json"),
]


@pytest.mark.parametrize("command", WHOLE, ids=" ".join)
def test_nothing_is_said_of_a_change_that_is_half_there(killed, capsys, command):
    """Not that nothing was applied, least of all."""
    plan = killed.root.parent / "plan.json"
    plan.write_text(EMPTY)
    assert run(capsys, *command, "--cub", killed.root) == (
        2,
        "",
        f"policygen: error: {told(killed)}",
    )
    assert killed.now[1:] == killed.old[1:]


EMPTY = """{"format": "policygen/plan/2", "toolchain": "", "options": {"arch": "sm90"},
 "actions": [], "files": [],
 "cub": {"root": "", "version": "3.0.1", "dialect": "specializations", "found": ""}}"""


def test_the_store_that_is_named_is_asked(killed, capsys):
    killed.store.rename("other.db")
    _, _, err = run(capsys, "review", "--cub", killed.root, "--store", "other.db")
    assert err == f"policygen: error: {told(killed, ' --store other.db')}"


def test_what_is_left_in_the_tree_tells_where_the_store_is_not_known(killed, capsys):
    killed.store.unlink()
    (left, *_) = sorted((killed.root / TUNINGS).glob(".*"))
    _, _, err = run(capsys, "review", "--cub", killed.root)
    assert err == (
        f"policygen: error: {left} was left behind by an interrupted policygen; the headers may be"
        " only partly written\n  policygen undo --store FILE undoes it, policygen apply --finish"
        " --store FILE completes it.\n"
        "  If its store no longer exists, check the headers and delete the file.\n"
    )


def test_a_write_that_goes_on_is_no_interrupted_one(killed, capsys):
    with tree_lock(killed.root):
        _, _, err = run(capsys, "review", "--cub", killed.root)
    assert err == (
        f"policygen: error: another policygen is writing to {killed.root}\n"
        "  Wait until it has finished.\n"
    )


def test_finish_completes_it(killed, capsys):
    status, out, err = run(capsys, "apply", "--finish")
    assert (status, err) == (0, "")
    rows = ["finished apply 1: scan on sm100"]
    rows += [f"  written {path}" for path in killed.paths]
    assert out == "\n".join([*rows, "to prove it: policygen verify-effect\n"])
    assert killed.now == killed.new
    assert run(capsys, "scan", "--cub", killed.root)[2].find("interrupted") < 0
    assert run(capsys, "undo", "-q")[0] == 0
    assert killed.now == killed.old


def test_undo_takes_it_back(killed, capsys):
    assert run(capsys, "undo", "-q")[0] == 0
    assert killed.now == killed.old
    assert run(capsys, "scan", "--cub", killed.root)[2].find("interrupted") < 0


def test_an_edit_stands_in_the_way_of_finishing(killed, capsys):
    path = killed.paths[2]
    path.write_bytes(b"edited")
    before = killed.now
    assert run(capsys, "apply", "--finish", "--cub", killed.root) == (
        2,
        "",
        f"policygen: error: {path}: edited after an interrupted apply, so the apply cannot be"
        " completed\n  Run policygen undo: it restores all other files and keeps the edit.\n",
    )
    assert killed.now == before


def test_there_must_be_something_to_finish(tree, capsys):
    message = "  If another store recorded it, name that store: --store FILE\n"
    for more, where in (((), ""), (("--cub", tree.root), f" to {tree.root}")):
        assert run(capsys, "apply", "--finish", *more) == (
            2,
            "",
            "policygen: error: nothing to finish: policygen.db records no interrupted"
            f" apply{where}\n{message}",
        )
    tree.apply()
    assert run(capsys, "apply", "--finish")[0] == 2


def test_finish_stands_alone(killed, capsys):
    for more in (("--db", "x"), ("--plan", "x"), ("--check",), ("--diff",), ("--no-prove",)):
        status, _, err = run(capsys, "apply", "--finish", *more)
        assert status == 2
        assert err.startswith("policygen: error: --finish cannot be combined with --db, --arch")
    assert killed.now != killed.new


def test_an_interrupted_undo_is_ended_by_undo(tree, capsys):
    tree.apply()
    # The store is there already.
    assert killed_at(BETWEEN - 2, lambda: main(["undo", "-q"]))
    status, _, err = run(capsys, "review", "--cub", tree.root)
    assert (status, err) == (
        2,
        f"policygen: error: an undo was interrupted: 1 of 4 headers of {tree.root} are unchanged\n"
        "  policygen undo completes it.\n",
    )
    status, _, err = run(capsys, "apply", "--finish")
    assert (status, err) == (
        2,
        "policygen: error: an undo was interrupted, not an apply\n  Run policygen undo to"
        " complete it.\n",
    )
    assert run(capsys, "undo", "-q")[0] == 0
    assert tree.now == tree.old


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\0" + b"x" * 100])
def test_a_store_of_something_else_says_nothing(tree, capsys, data):
    tree.store.write_bytes(data)
    assert "interrupted" not in run(capsys, "scan", "--cub", tree.root)[2]
    assert tree.store.read_bytes() == data


def test_looking_writes_nothing_to_a_store(killed, capsys):
    data, when = killed.store.read_bytes(), killed.store.stat().st_mtime_ns
    run(capsys, "scan", "--cub", killed.root)
    assert (killed.store.read_bytes(), killed.store.stat().st_mtime_ns) == (data, when)
    assert sorted(path.name for path in killed.root.parent.iterdir()) == ["policygen.db", "tree"]


def test_a_store_that_names_what_is_no_header_is_damaged(tree, capsys, tmp_path):
    """A store of a stranger's checkout: undo would write to the files that it names."""
    victim = tmp_path / "profile"
    victim.write_bytes(tree.new[0])
    tree.apply()
    for name in ("../profile", str(victim), "profile"):
        connection = sqlite3.connect(tree.store)
        with closing(connection), connection:
            connection.execute("UPDATE written_files SET path = ? WHERE rowid = 1", (name,))
        status, _, err = run(capsys, "undo")
        assert status == 2
        assert f"the store is damaged: {name} is not a header of a tree\n" in err
    assert victim.read_bytes() == tree.new[0]
    assert [record.state for record in history(tree.store)] == ["applied"]
