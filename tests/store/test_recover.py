"""What a kill leaves when somebody edits before it is ended."""

import os
import sqlite3
from contextlib import closing

import pytest

from policygen.cli.main import main
from policygen.errors import InputError
from policygen.store import replacement
from policygen.store.applies import planned, undo
from policygen.store.journal import history
from tests.store.killing import killed_at
from tests.store.trees import WHEN, Tree, recover

# Of an apply of three files: make the store 2, begin 2, for each unlink and write, mark 2,
# rename 3, sync 2, mark 2.
PREPARED = 7
FIRST_RENAME = 13


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path)
    made.order = sorted(made.paths)
    return made


def renamed(tree, count):
    assert killed_at(FIRST_RENAME + count, tree.apply)
    by_path = dict(zip(tree.paths, tree.changes, strict=True))
    for n, path in enumerate(tree.order):
        change = by_path[path]
        assert path.read_bytes() == (change.after if n < count else change.before)


def states(tree):
    return [record.state for record in history(tree.store)]


@pytest.mark.parametrize(
    ("count", "edited", "outcome", "all_new"),
    [
        (0, [0], "put back", False),
        (0, [0, 1, 2], "put back", False),
        (1, [0], "finished", True),
        (1, [1], "put back", False),
        (1, [0, 2], "put back", False),
        (2, [0, 1], "finished", True),
        (3, [1], "finished", True),
        (3, [0, 1, 2], "finished", True),
    ],
)
def test_edited_files_stay_and_the_others_follow_them(tree, count, edited, outcome, all_new):
    renamed(tree, count)
    paths = [tree.order[n] for n in edited]
    for path in paths:
        path.write_bytes(b"edited")
    (one,) = recover(tree.store, tree.root)
    assert (one.outcome, one.edited) == (outcome, tuple(paths))
    for found, change in zip(tree.now, tree.changes, strict=True):
        whole = change.after if all_new else change.before
        assert found == (b"edited" if change.path in paths else whole)
    assert tree.others() == []
    assert states(tree) == ["applied" if all_new else "failed"]


@pytest.mark.parametrize("mark", ["a/b", "../x", "", "a\0", b"a"])
def test_a_mark_that_leads_elsewhere_is_damage(tree, capsys, mark):
    """It is a part of the names of the files that wait beside the headers."""
    renamed(tree, 1)
    with closing(sqlite3.connect(tree.store)) as connection, connection:
        connection.execute("UPDATE writes SET staged = ?", (mark,))
    assert main(["undo", "--store", str(tree.store)]) == 2
    assert "the store is damaged: " in capsys.readouterr().err


def test_who_goes_on_is_told_of_the_edit_once(tree):
    renamed(tree, 1)
    tree.order[1].write_bytes(b"edited")
    with pytest.raises(InputError) as failure:
        tree.apply()
    assert str(failure.value) == (
        f"{tree.order[1]}: edited after an interrupted apply and left unchanged; the apply is put"
        " back in all other files\n"
        "  Check whether the edit still fits, then run the command again."
    )
    with pytest.raises(InputError, match="was changed since it was read"):
        tree.apply()


def test_a_file_that_is_gone_counts_as_edited(tree):
    renamed(tree, 2)
    tree.order[2].unlink()
    (one,) = recover(tree.store, tree.root)
    assert (one.outcome, one.edited) == ("put back", (tree.order[2],))
    assert tree.others() == []


@pytest.mark.parametrize("lost", [False, True])
def test_what_was_staged_serves_where_it_is_whole(tree, lost, monkeypatch):
    renamed(tree, 1)
    (second, _) = tree.others()
    assert second.name.startswith(f".{tree.order[1].name}.")
    if lost:
        second.unlink()
    written = []
    original = replacement.write_file

    def write(path, *rest):
        written.append(path)
        original(path, *rest)

    monkeypatch.setattr(replacement, "write_file", write)
    (one,) = recover(tree.store, tree.root)
    assert one.outcome == "finished"
    assert written == ([second] if lost else [])
    assert tree.now == tree.new


def test_what_an_older_policygen_left_is_ended(tree):
    """It let files change places: the old contents waited beside the new ones."""
    renamed(tree, 1)
    (second, _) = tree.others()
    token = second.name.removeprefix(f".{tree.order[1].name}.")
    first = tree.order[0]
    (change,) = (change for change in tree.changes if change.path == first)
    first.with_name(f".{first.name}.{token}").write_bytes(change.before)
    (one,) = recover(tree.store, tree.root)
    assert (one.outcome, one.edited) == ("finished", ())
    assert tree.now == tree.new
    assert tree.others() == []


def test_what_cannot_be_finished_is_put_back(tree, monkeypatch):
    renamed(tree, 1)
    original = replacement.rename

    def rename(source, target):
        if target == tree.order[2]:
            raise PermissionError(13, "Permission denied")
        original(source, target)

    monkeypatch.setattr(replacement, "rename", rename)
    (one,) = recover(tree.store, tree.root)
    assert one.outcome == "put back"
    assert tree.now == tree.old
    assert tree.others() == []
    assert states(tree) == ["failed"]


def test_what_can_be_neither_waits_for_the_next_time(tree, monkeypatch):
    renamed(tree, 1)

    def rename(source, target):
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(replacement, "rename", rename)
    with pytest.raises(InputError, match="Read-only file system"):
        recover(tree.store, tree.root)
    assert states(tree) == ["committing"]
    monkeypatch.undo()
    (one,) = recover(tree.store, tree.root)
    assert one.outcome == "finished"
    assert tree.now == tree.new


def test_an_apply_that_never_came_to_be_is_told_before_another_one_is_undone(tree):
    tree.apply(title="first")
    assert killed_at(PREPARED, lambda: tree.apply(tree.further(), title="second"))
    with pytest.raises(InputError) as failure:
        planned(tree.store, None, 1)
    assert str(failure.value) == (
        "an apply or an undo was interrupted\n  Run policygen undo to complete it."
    )
    with pytest.raises(InputError) as failure:
        undo(tree.store, None, 1, WHEN)
    assert str(failure.value) == (
        "apply 2 (second) was interrupted; all of its files are restored\n"
        "  To undo the previous apply as well, undo again."
    )
    assert tree.now == tree.new
    undo(tree.store, None, 1, WHEN)
    assert tree.now == tree.old


def test_only_the_named_tree_is_recovered(tmp_path):
    one, two = Tree(tmp_path / "one"), Tree(tmp_path / "two")
    store = tmp_path / "p.db"
    assert killed_at(PREPARED, lambda: one.apply(store=store))
    two.apply(store=store)
    assert recover(store, two.root) == ()
    assert len(planned(store, two.root, 1)) == 1
    assert one.others() != []
    assert len(recover(store, one.root)) == 1
    assert one.others() == []
    assert recover(tmp_path / "none.db", one.root) == ()
