"""A kill at every write, rename, sync and commit leaves old or new, and undo works."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from policygen.errors import InputError, PolicygenError
from policygen.store import replacement
from policygen.store.applies import complete, undo
from policygen.store.journal import history
from tests.store.killing import killed_at, kills
from tests.store.trees import WHEN, Tree, recover
from tests.tiers import slow


@pytest.fixture
def tmp_path():
    """In memory where that can be: a process is killed here, not the machine."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name).resolve()


def numbered(folder, count):
    def prepare(number):
        return Tree(folder / str(number), count)

    return prepare


def each_is_old_or_new(tree):
    for path, change in zip(tree.paths, tree.changes, strict=True):
        assert path.read_bytes() in {change.before, change.after}
    assert all(path.suffix == ".policygen" for path in tree.others())


def all_are_old_or_new(tree):
    assert tree.now in (tree.old, tree.new)
    assert tree.others() == []
    assert {path.stat().st_mode & 0o777 for path in tree.paths} == {0o640}


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_an_apply_that_is_killed_leaves_old_or_new(tmp_path, count, torn):
    ended = set()
    for tree in kills(numbered(tmp_path, count), Tree.apply, torn):
        each_is_old_or_new(tree)
        recovered = recover(tree.store, tree.root)
        all_are_old_or_new(tree)
        new = tree.now == tree.new
        states = [record.state for record in history(tree.store)]
        assert states in ([["applied"]] if new else [[], ["failed"]])
        ended |= {(one.kind, one.applies, one.outcome, one.edited) for one in recovered}
        assert recover(tree.store, tree.root) == ()
        if not new:
            tree.apply()
        (undone,) = undo(tree.store, None, 1, WHEN)
        assert undone.applied.title == "scan on sm100"
        assert tree.now == tree.old
        all_are_old_or_new(tree)
    assert ended == {("apply", (1,), "put back", ()), ("apply", (1,), "finished", ())}


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True])
def test_an_undo_of_several_steps_that_is_killed_leaves_old_or_new(tmp_path, torn):
    def prepare(number):
        tree = Tree(tmp_path / str(number))
        tree.apply()
        tree.apply(tree.further()[:2])
        tree.newest = tree.now
        return tree

    outcomes = set()
    for tree in kills(prepare, lambda tree: undo(tree.store, tree.root, 2, WHEN), torn):
        for found, old, new in zip(tree.now, tree.old, tree.newest, strict=True):
            assert found in {old, new}
        recovered = recover(tree.store, tree.root)
        assert tree.now in (tree.old, tree.newest)
        assert tree.others() == []
        states = [record.state for record in history(tree.store)]
        assert states == ["undone" if tree.now == tree.old else "applied"] * 2
        outcomes |= {(one.kind, one.applies, one.outcome) for one in recovered}
        if tree.now != tree.old:
            undo(tree.store, tree.root, 2, WHEN)
        assert tree.now == tree.old
    assert outcomes == {("undo", (2, 1), "put back"), ("undo", (2, 1), "finished")}


@slow
def test_a_recovery_that_is_killed_can_be_recovered(tmp_path):
    for first in range(1, 100):
        if not killed_at(first, Tree(tmp_path / f"try{first}", 2).apply):
            break
        for second in range(1, 100):
            tree = Tree(tmp_path / f"{first}-{second}", 2)
            assert killed_at(first, tree.apply)
            done = not killed_at(second, lambda tree=tree: recover(tree.store, tree.root))
            each_is_old_or_new(tree)
            recover(tree.store, tree.root)
            all_are_old_or_new(tree)
            if done:
                break
    assert first > 10


def test_a_roll_back_that_is_killed_can_be_recovered(tmp_path, monkeypatch):
    rename = replacement.rename
    calls = []

    def third_fails(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(replacement, "rename", third_fails)

    def action(tree):
        with suppress(InputError):
            tree.apply()

    for tree in kills(numbered(tmp_path, 3), action):
        each_is_old_or_new(tree)
        recover(tree.store, tree.root)
        all_are_old_or_new(tree)


@pytest.mark.slow
def test_an_apply_that_was_killed_can_be_completed(tmp_path):
    completed = 0
    for tree in kills(numbered(tmp_path, 3), Tree.apply, torn=True):
        begun = bool(history(tree.store)) and history(tree.store)[0].state != "applied"
        assert [r.id for r in complete(tree.store, tree.root)] == [1] * begun
        completed += begun
        if history(tree.store):
            assert tree.now == tree.new
            assert tree.others() == []
            undo(tree.store, None, 1, WHEN)
        assert tree.now == tree.old
    assert completed > 10


def test_a_completion_that_is_killed_can_be_completed(tmp_path):
    for number in range(1, 100):
        tree = Tree(tmp_path / str(number), 3)
        assert killed_at(14, tree.apply)
        done = not killed_at(number, lambda tree=tree: complete(tree.store, tree.root))
        each_is_old_or_new(tree)
        complete(tree.store, tree.root)
        assert tree.now == tree.new
        assert tree.others() == []
        if done:
            break
    assert number > 10


@pytest.mark.slow
def test_the_command_after_a_kill_ends_what_was_begun(tmp_path):
    ends = set()
    for tree in kills(numbered(tmp_path, 3), Tree.apply):
        if not history(tree.store):
            continue
        try:
            undo(tree.store, None, 1, WHEN)
            ends.add("undone")
        except InputError as error:
            ends.add(str(error).partition("\n")[0])
        assert tree.now == tree.old
        assert tree.others() == []
        tree.apply()
        assert tree.now == tree.new
    message = "apply 1 (scan on sm100) was interrupted; all of its files are restored"
    assert ends == {"undone", message}


@pytest.mark.slow
def test_an_undo_that_was_interrupted_is_ended_and_no_more_is_undone(tmp_path):
    for number in range(1, 100):
        tree = Tree(tmp_path / str(number))
        tree.apply()
        tree.apply(tree.further())
        if not killed_at(number, lambda tree=tree: undo(tree.store, None, 1, WHEN)):
            break
        states = [record.state for record in history(tree.store)]
        if states == ["applied", "undone"]:
            continue
        (undone,) = undo(tree.store, None, 1, WHEN)
        assert (undone.applied.id, undone.applied.state) == (2, "undone")
        assert tree.now == tree.new
    assert number > 10


def race(tree, changes, store, ready):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.read(ready, 1)
            tree.apply(changes, store=store)
            status = 0
        except PolicygenError as error:
            status = 2 if "was changed since it was read" in str(error) else 3
        finally:
            os._exit(status)
    return child


@pytest.mark.parametrize("stores", [("a.db", "a.db"), ("a.db", "b.db")])
def test_two_that_apply_at_once_never_mix(tmp_path, stores):
    for number in range(8):
        tree = Tree(tmp_path / str(number), 3)
        ready, go = os.pipe()
        wanted = [tree.changes, [type(c)(c.path, c.before, b"other") for c in tree.changes]]
        children = [
            race(tree, changes, tree.root.parent / store, ready)
            for changes, store in zip(wanted, stores, strict=True)
        ]
        os.write(go, b"12")
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(ends) == [0, 2]
        assert tree.now == [change.after for change in wanted[ends.index(0)]]
        assert tree.others() == []
        os.close(ready)
        os.close(go)
