import sqlite3
from contextlib import closing

import pytest

from policygen.errors import EditedError, InputError, Problems
from policygen.store.applies import apply, net_changes, planned, settle, undo
from policygen.store.journal import history
from policygen.store.replacement import Change
from tests.results import stored
from tests.store.trees import WHEN, Tree


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_undo_takes_back_one_apply_after_the_other(tree):
    tree.apply()
    tree.apply(tree.further()[:1])
    (second,) = undo(tree.store, None, 1, WHEN)
    assert (second.applied.id, second.applied.state) == (2, "undone")
    assert [change.path for change in second.changes] == tree.paths[:1]
    assert tree.now == tree.new
    (first,) = undo(tree.store, tree.root, 1, WHEN)
    assert first.applied.id == 1
    assert tree.now == tree.old
    assert [record.state for record in history(tree.store)] == ["undone", "undone"]
    with pytest.raises(InputError) as failure:
        undo(tree.store, None, 1, WHEN)
    assert str(failure.value) == (
        f"nothing to undo: {tree.store} records no apply that can be undone\n"
        "  If another store recorded it, name that store: --store FILE"
    )


def test_several_applies_are_taken_back_in_one_go(tree):
    tree.apply()
    tree.apply(tree.further()[:2])
    tree.apply([Change(tree.paths[2], tree.new[2], b"last")])
    expected = planned(tree.store, None, 3)
    assert undo(tree.store, None, 3, WHEN) == expected
    assert [step.applied.id for step in expected] == [3, 2, 1]
    assert tree.now == tree.old


def test_what_was_undone_can_be_applied_and_undone_again(tree):
    for number in (1, 2, 3):
        assert tree.apply() == number
        undo(tree.store, None, 1, WHEN)
        assert tree.now == tree.old


def test_steps_that_cancel_each_other_write_nothing(tree):
    tree.apply()
    tree.apply([Change(c.path, c.after, c.before) for c in tree.changes])
    inodes = [path.stat().st_ino for path in tree.paths]
    assert net_changes(planned(tree.store, None, 2)) == ()
    undo(tree.store, None, 2, WHEN)
    assert [path.stat().st_ino for path in tree.paths] == inodes
    assert [record.state for record in history(tree.store)] == ["undone", "undone"]


def test_a_file_that_was_edited_since_is_shown_and_nothing_is_undone(tree):
    tree.apply()
    tree.paths[1].write_bytes(tree.new[1].replace(b"four", b"5"))
    edited = tree.now
    with pytest.raises(EditedError) as failure:
        undo(tree.store, None, 1, WHEN)
    assert failure.value.exit_code == 2
    assert str(failure.value) == (
        f"{tree.paths[1]}: edited since apply 1 (scan on sm100)\n"
        "  @@ -999,4 +999,4 @@\n"
        "   new\r\n"
        "   new\r\n"
        "   \ufeffthree\n"
        "  -four\n"
        "  \\ No newline at end of file\n"
        "  +5\n"
        "  \\ No newline at end of file\n"
        "  Nothing was undone. Save the edit elsewhere, revert it, then undo again."
    )
    assert tree.now == edited
    assert [record.state for record in history(tree.store)] == ["applied"]


def test_a_large_edit_is_cut_and_says_so(tree):
    tree.apply()
    tree.paths[1].write_bytes(b"")
    with pytest.raises(EditedError) as failure:
        undo(tree.store, None, 1, WHEN)
    rows = str(failure.value).split("\n")
    assert rows[-2] == "  ... and 964 more lines"
    assert len(rows) == 43


def test_all_files_that_stand_in_the_way_are_named(tree):
    tree.apply()
    tree.apply(tree.further())
    tree.paths[0].write_bytes(b"edited")
    tree.paths[1].unlink()
    with pytest.raises(Problems) as failure:
        undo(tree.store, None, 2, WHEN)
    edited, missing = failure.value.errors
    assert "edited since apply 2" in str(edited)
    assert str(missing).startswith(f"{tree.paths[1]} is missing\n")


def test_an_edit_between_two_applies_stops_the_second_step_only(tree):
    tree.apply()
    tree.paths[0].write_bytes(b"edited")
    tree.apply([Change(tree.paths[0], b"edited", b"applied")])
    with pytest.raises(EditedError, match="edited before the next apply and after apply 1"):
        undo(tree.store, None, 2, WHEN)
    undo(tree.store, None, 1, WHEN)
    assert tree.now == [b"edited", *tree.new[1:]]


def test_more_steps_than_there_are_is_refused(tree):
    tree.apply()
    for steps, message in (
        (2, "2 steps cannot be undone: there are 1"),
        (0, "0 steps cannot be undone\n  Give a number from 1."),
    ):
        with pytest.raises(InputError) as failure:
            undo(tree.store, None, steps, WHEN)
        assert str(failure.value) == message
    assert tree.now == tree.new


def test_trees_of_one_store_are_undone_each_by_itself(tmp_path):
    one, two = Tree(tmp_path / "one"), Tree(tmp_path / "two")
    one.apply(store=tmp_path / "p.db")
    two.apply(store=tmp_path / "p.db")
    with pytest.raises(InputError) as failure:
        undo(tmp_path / "p.db", None, 2, WHEN)
    assert str(failure.value) == (
        f"the last 2 applies are to different trees: {one.root}, {two.root}\n  Name one with --cub."
    )
    (undone,) = undo(tmp_path / "p.db", one.root, 1, WHEN)
    assert undone.applied.root == one.root
    assert (one.now, two.now) == (one.old, two.new)
    with pytest.raises(InputError, match=f"records no apply to {one.root} that can be undone"):
        undo(tmp_path / "p.db", one.root, 1, WHEN)
    undo(tmp_path / "p.db", None, 1, WHEN)
    assert two.now == two.old


def test_a_store_that_is_not_there_is_not_made(tree):
    with pytest.raises(InputError, match="nothing to undo"):
        undo(tree.store, None, 1, WHEN)
    assert planned(tree.store, None, 1) == ()
    assert history(tree.store) == ()
    assert not tree.store.exists()


def test_a_newest_apply_that_is_another_when_the_lock_is_held_is_told(tmp_path, monkeypatch):
    one, two = Tree(tmp_path / "one"), Tree(tmp_path / "two")
    one.apply(store=tmp_path / "p.db")

    def apply_another(*_):
        monkeypatch.setattr("policygen.store.applies.settle", settle)
        two.apply(store=one.store)
        return ()

    monkeypatch.setattr("policygen.store.applies.settle", apply_another)
    monkeypatch.setattr(two, "store", tmp_path / "p.db")
    one.store = tmp_path / "p.db"
    with pytest.raises(InputError, match=f"the newest apply is now to {two.root}"):
        undo(tmp_path / "p.db", None, 1, WHEN)
    assert (one.now, two.now) == (one.new, two.new)


def test_an_apply_that_somebody_undid_meanwhile_is_not_undone_again(tree, monkeypatch):
    tree.apply()

    def settle(journal, root):
        connection = sqlite3.connect(tree.store)
        with closing(connection), connection:
            connection.execute("UPDATE writes SET state = 'failed'")
        return ()

    monkeypatch.setattr("policygen.store.applies.settle", settle)
    with pytest.raises(InputError, match="nothing to undo"):
        undo(tree.store, None, 1, WHEN)


def test_contents_that_were_damaged_in_the_store_are_never_written(tree):
    tree.apply()
    connection = sqlite3.connect(tree.store)
    with closing(connection), connection:
        connection.execute("UPDATE written_files SET before = x'00' WHERE path LIKE '%_1.cuh'")
    with pytest.raises(InputError) as failure:
        undo(tree.store, None, 1, WHEN)
    assert str(failure.value) == (
        f"{tree.store}: the store is damaged: the stored contents of cub/f1/tuning_1.cuh are"
        " damaged\n  Move it away; policygen will create a new one."
    )
    assert tree.now == tree.new


def test_an_old_store_learns_to_remember(tree):
    from policygen.results.decisions import Store

    Store.open(tree.store).close()
    assert apply(tree.changes, tree.store, tree.root, "t", "{}", WHEN) == 1
    assert stored.history(tree.store) == []
