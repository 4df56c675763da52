import errno
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygen.errors import InputError, PolicygenError
from policygen.store import journal, replacement, targets
from policygen.store.applies import apply, undo
from policygen.store.journal import history
from policygen.store.replacement import Change
from tests.store.trees import WHEN, Tree

SPACE = "Free some space, then run the command again."
READ_ONLY = "Make it writable, or work on a copy of the tree."


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def states(tree):
    return [record.state for record in history(tree.store)]


def untouched(tree):
    assert tree.now == tree.old
    assert tree.others() == []


def refused(tree, changes=None):
    with pytest.raises(PolicygenError) as failure:
        tree.apply(changes)
    return str(failure.value)


def fail_at(monkeypatch, operation, number, error):
    """Lets one operation fail at its n-th call, and all later ones where the number is negative."""
    original = getattr(replacement, operation)
    calls = []

    def failing(*args):
        calls.append(args)
        if len(calls) == number or (number < 0 and len(calls) >= -number):
            raise error
        original(*args)

    monkeypatch.setattr(replacement, operation, failing)


def test_an_apply_writes_all_files_and_is_remembered(tree):
    assert tree.apply(title="first") == 1
    assert tree.now == tree.new
    assert tree.others() == []
    assert tree.apply(tree.further()) == 2
    first, second = history(tree.store)
    assert first.model_dump() == {
        "id": 1,
        "root": tree.root,
        "title": "first",
        "document": "{}",
        "applied_at": WHEN,
        "state": "applied",
        "files": ("cub/f0/tuning_0.cuh", "cub/f0/tuning_2.cuh", "cub/f1/tuning_1.cuh"),
    }
    assert second.id == 2


def test_files_keep_their_mode_and_owner(tree, monkeypatch):
    tree.paths[0].chmod(0o755)
    owners = []
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    tree.apply()
    assert [stat.S_IMODE(p.stat().st_mode) for p in tree.paths] == [0o755, 0o640, 0o640]
    assert owners == [(os.getuid(), os.getgid())] * 3


def test_who_may_not_give_files_away_keeps_them(tree, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    tree.apply()
    assert tree.now == tree.new


def test_a_link_inside_of_the_tree_stays_and_its_target_is_replaced(tree):
    elsewhere = tree.root / "elsewhere/tuning_0.cuh"
    elsewhere.parent.mkdir()
    tree.paths[0].rename(elsewhere)
    tree.paths[0].symlink_to(elsewhere)
    tree.apply()
    assert tree.paths[0].is_symlink()
    assert elsewhere.read_bytes() == tree.new[0]
    undo(tree.store, None, 1, WHEN)
    assert tree.paths[0].is_symlink()
    assert elsewhere.read_bytes() == tree.old[0]
    assert list(elsewhere.parent.iterdir()) == [elsewhere]


def test_nothing_is_written_or_shown_through_a_link_that_leaves_the_tree(tree, tmp_path):
    """Also not when the link appears between an apply and its undo, which would show the edit."""
    secret = tmp_path / "elsewhere/secret"
    secret.parent.mkdir()
    secret.write_bytes(tree.old[0])
    path = tree.paths[0]
    path.unlink()
    path.symlink_to(secret)
    message = (
        f"{path} is not followed: a link points outside of the tree {tree.root}\n"
        "  Replace the link with the file, or name the tree that it belongs to."
    )
    assert refused(tree) == message
    assert secret.read_bytes() == tree.old[0]
    path.unlink()
    path.write_bytes(tree.old[0])
    tree.apply()
    path.unlink()
    path.symlink_to(secret)
    secret.write_bytes(b"token")
    with pytest.raises(InputError) as raised:
        undo(tree.store, None, 1, WHEN)
    assert str(raised.value) == message
    assert secret.read_bytes() == b"token"
    assert list(secret.parent.iterdir()) == [secret]


def test_a_tree_may_be_named_through_a_link(tree, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tree.root)
    through = [Change(link / p.relative_to(tree.root), b, a) for p, b, a in facts(tree)]
    assert apply(through, tree.store, link, "t", "{}", WHEN) == 1
    further = tree.further()
    assert apply(further[:1], tree.store, link, "t", "{}", WHEN) == 2
    assert [record.root for record in history(tree.store)] == [tree.root] * 2
    assert len(undo(tree.store, link, 2, WHEN)) == 2
    assert tree.now == tree.old


def facts(tree):
    return [(change.path, change.before, change.after) for change in tree.changes]


def test_one_of_several_hard_links_is_refused_by_name(tree, tmp_path):
    other = tmp_path / "other"
    os.link(tree.paths[0], other)
    assert refused(tree) == (
        f"{tree.paths[0]} has 2 hard links, and replacing it would break them\n"
        "  Copy the file and move the copy into its place."
    )
    untouched(tree)
    other.unlink()
    tree.apply()
    os.link(tree.paths[0], other)
    with pytest.raises(InputError, match="has 2 hard links"):
        undo(tree.store, None, 1, WHEN)
    assert tree.now == tree.new


def test_extended_attributes_survive(tree):
    os.setxattr(tree.paths[0], "user.origin", b"by hand\0")
    os.setxattr(tree.paths[1], "user.empty", b"")
    tree.apply()
    assert os.getxattr(tree.paths[0], "user.origin") == b"by hand\0"
    assert os.listxattr(tree.paths[1]) == ["user.empty"]
    assert os.listxattr(tree.paths[2]) == []
    os.setxattr(tree.paths[2], "user.later", b"1")
    undo(tree.store, None, 1, WHEN)
    assert tree.now == tree.old
    kept = [{n: os.getxattr(path, n) for n in os.listxattr(path)} for path in tree.paths]
    assert kept == [{"user.origin": b"by hand\0"}, {"user.empty": b""}, {"user.later": b"1"}]


def test_an_extended_attribute_that_cannot_be_kept_is_named(tree, monkeypatch):
    os.setxattr(tree.paths[2], "user.origin", b"1")

    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "setxattr", refuse)
    assert refused(tree) == (
        f"cannot write {tree.paths[2]}: Operation not permitted: its extended attribute"
        f" user.origin cannot be copied\n  {READ_ONLY}"
    )
    untouched(tree)


def test_a_disk_without_extended_attributes_has_none(tree, monkeypatch):
    def refuse(_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", refuse)
    tree.apply()
    assert tree.now == tree.new


def test_attributes_that_cannot_be_read_are_a_failure(tree, monkeypatch):
    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "listxattr", refuse)
    assert refused(tree).startswith(f"cannot read {tree.root}")
    untouched(tree)


def test_a_file_that_needs_nothing_is_not_written(tree):
    same = Change(tree.paths[0], tree.old[0], tree.old[0])
    before = tree.paths[0].stat().st_ino
    tree.apply([same, *tree.changes[1:]])
    assert tree.paths[0].stat().st_ino == before
    assert len(history(tree.store)[0].files) == 2
    message = "no file would change\n  There is nothing to apply."
    assert refused(tree, [Change(tree.paths[0], b"x", b"x")]) == message
    assert refused(tree, []) == message


def test_a_file_that_changed_since_is_named_and_nothing_is_written(tree):
    tree.paths[1].write_bytes(b"edited")
    assert refused(tree) == (
        f"{tree.paths[1]} was changed since it was read\n  Make the plan again; nothing was"
        " written."
    )
    assert tree.now == [tree.old[0], b"edited", tree.old[2]]
    assert history(tree.store) == ()


def test_all_files_that_cannot_be_changed_are_named_together(tree, monkeypatch):
    one, two, three = tree.paths
    one.unlink()
    two.unlink()
    two.mkdir()
    three.write_bytes(b"edited")
    assert refused(tree) == (
        f"{one} is missing\n  Restore it, or make the plan again.\n"
        f"{three} was changed since it was read\n  Make the plan again; nothing was written.\n"
        f"{two} is not a regular file\n  Restore it, or make the plan again."
    )
    assert "is missing" in refused(tree, [Change(three / "x", b"", b"x")])


@pytest.mark.parametrize("kind", ["loop", "fifo", "dangling"])
def test_what_is_no_regular_file_is_refused(tree, kind):
    path = tree.paths[0]
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "loop" else path.with_name("gone"))
    message = "Too many levels of symbolic links" if kind == "loop" else "is not a regular file"
    assert message in refused(tree)
    assert tree.others() == []


def test_a_file_outside_of_the_tree_is_refused(tree, tmp_path):
    outside = tmp_path / "outside.cuh"
    outside.write_bytes(b"x")
    assert refused(tree, [Change(outside, b"x", b"y")]) == (
        f"{outside} lies outside of {tree.root}\n  Name the tree that it belongs to."
    )


def test_a_file_that_would_change_twice_is_refused(tree):
    link = tree.paths[0].with_name("link.cuh")
    link.symlink_to(tree.paths[0])
    changes = [*tree.changes, Change(link, tree.old[0], b"other")]
    assert "would be changed twice\n  Combine the edits into one." in refused(tree, changes)
    link.unlink()
    untouched(tree)


def test_a_read_only_file_is_refused(tree, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != tree.paths[0])
    assert refused(tree) == f"{tree.paths[0]} is read-only\n  {READ_ONLY}"
    untouched(tree)
    assert states(tree) == []


@pytest.mark.parametrize(
    ("operation", "number", "code", "remedy"),
    [
        ("write_file", 1, errno.EROFS, READ_ONLY),
        ("write_file", 1, errno.EACCES, READ_ONLY),
        ("write_file", 3, errno.ENOSPC, SPACE),
        ("write_file", 2, errno.EDQUOT, SPACE),
        ("rename", 1, errno.EPERM, READ_ONLY),
        ("unlink", 1, errno.EPERM, READ_ONLY),
        ("rename", 3, errno.EIO, None),
        ("sync_folder", 1, errno.EIO, None),
    ],
)
def test_a_failure_of_the_disk_leaves_all_old(tree, monkeypatch, operation, number, code, remedy):
    fail_at(monkeypatch, operation, number, OSError(code, os.strerror(code)))
    text = refused(tree)
    assert text.startswith(f"cannot write {tree.root}/cub/f")
    assert text.partition("\n")[0].endswith(f": {os.strerror(code)}")
    assert text.partition("\n")[2] == (f"  {remedy}" if remedy else "")
    untouched(tree)
    assert states(tree) == ["failed"]
    monkeypatch.undo()
    assert tree.apply() == 2
    assert tree.now == tree.new


def test_an_interruption_puts_all_back(tree, monkeypatch):
    fail_at(monkeypatch, "rename", 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        tree.apply()
    untouched(tree)
    assert states(tree) == ["failed"]


def test_what_cannot_be_put_back_is_ended_by_the_next_command(tree, monkeypatch):
    fail_at(monkeypatch, "rename", -3, PermissionError(errno.EACCES, "Permission denied"))
    first, _, third = sorted(tree.paths)
    assert refused(tree) == (
        f"cannot write {third}: Permission denied\n  {READ_ONLY}\n"
        f"  cannot write {first}: Permission denied\n"
        "  Run the command again; it completes what was begun."
    )
    assert states(tree) == ["committing"]
    monkeypatch.undo()
    with pytest.raises(PolicygenError, match="was changed since it was read"):
        tree.apply()
    assert tree.now == tree.new
    assert states(tree) == ["applied"]


CHANGED = (
    "{} was changed while it was being replaced\n"
    "  All other files are unchanged. Run the command again."
)


def test_an_edit_while_files_are_replaced_stays(tree, monkeypatch):
    edited = sorted(tree.paths)[2]
    original = replacement.rename

    def rename(source, to):
        original(source, to)
        if to == sorted(tree.paths)[0]:
            edited.write_bytes(b"edited")

    monkeypatch.setattr(replacement, "rename", rename)
    assert refused(tree) == CHANGED.format(edited)
    assert edited.read_bytes() == b"edited"
    edited.write_bytes(tree.old[tree.paths.index(edited)])
    untouched(tree)


def test_a_store_that_cannot_take_the_beginning_leaves_all_old(tree, monkeypatch):
    mark = journal.Journal.mark

    def fail(self, write, state):
        if state in {"committing", "failed"}:
            raise InputError("database or disk is full")
        mark(self, write, state)

    monkeypatch.setattr(journal.Journal, "mark", fail)
    assert refused(tree) == "database or disk is full"
    untouched(tree)
    monkeypatch.undo()
    assert tree.apply() == 2
    assert states(tree) == ["failed", "applied"]


@pytest.mark.parametrize(("times", "state"), [(1, "applied"), (2, "committing")])
def test_a_store_that_cannot_take_the_end_is_no_failure_of_the_write(
    tree, monkeypatch, times, state
):
    mark = journal.Journal.mark
    failures = []

    def fail(self, write, state):
        if state == "done" and len(failures) < times:
            failures.append(state)
            raise InputError("disk I/O error")
        mark(self, write, state)

    monkeypatch.setattr(journal.Journal, "mark", fail)
    assert tree.apply() == 1
    assert tree.now == tree.new
    assert tree.others() == []
    assert states(tree) == [state]
    (undone,) = undo(tree.store, None, 1, WHEN)
    assert undone.applied.id == 1
    untouched(tree)


def test_what_another_store_left_half_done_is_refused(tree, tmp_path):
    left = tree.paths[0].with_name(f".{tree.paths[0].name}.0123456789abcdef.policygen")
    left.write_bytes(b"")
    text = refused(tree)
    assert text.startswith(
        f"{left} was left behind by an interrupted policygen, so tuning_0.cuh may be"
    )
    assert "Run policygen undo with the --store of that apply" in text
    left.unlink()
    tree.apply()


def test_a_folder_that_cannot_be_synced_is_no_failure(tree, monkeypatch):
    fsync = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    tree.apply()
    assert tree.now == tree.new


def test_a_folder_whose_sync_fails_is_a_failure(tree, monkeypatch):
    fsync = os.fsync

    def fail(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            monkeypatch.undo()
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    assert "Input/output error" in refused(tree)
    untouched(tree)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_disk_that_is_really_full_leaves_all_old(tmp_path):
    (tmp_path / "small").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path / "small")]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine does not let root mount")
    try:
        tree = Tree(tmp_path / "small")
        large = [Change(c.path, c.before, b"x" * 40_000) for c in tree.changes]
        with pytest.raises(InputError, match="No space left on device"):
            apply(large, tmp_path / "policygen.db", tree.root, "t", "{}", WHEN)
        untouched(tree)
        assert [r.state for r in history(tmp_path / "policygen.db")] == ["failed"]
    finally:
        subprocess.run(["umount", str(tmp_path / "small")], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_is_really_read_only_is_told():
    """Root writes everywhere; so it becomes somebody else, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        tree = Tree(Path(name).resolve())
        for path in tree.paths:
            os.chown(path, 65534, 65534)
            path.parent.chmod(0o555)
        child = os.fork()
        if child == 0:
            message = ""
            try:
                os.setuid(65534)
                os.environ["POLICYGEN_CACHE"] = f"{name}/cache"
                tree.apply()
            except PolicygenError as error:
                message = str(error)
            os._exit(0 if message.endswith(f": Permission denied\n  {READ_ONLY}") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        untouched(tree)
        assert states(tree) == ["failed"]


LINES = st.lists(st.binary(max_size=8), max_size=6).flatmap(
    lambda rows: st.sampled_from([b"\n", b"\r\n", b""]).map(lambda end: end.join(rows))
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(LINES, LINES, LINES), min_size=1, max_size=4))
def test_undo_is_the_inverse_of_apply(contents):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tree = Tree(folder, len(contents))
        paths = tree.paths
        for n, path in enumerate(paths):
            path.write_bytes(contents[n][0])
        steps = 0
        for step in (0, 1):
            changes = [
                Change(path, rows[step], rows[step + 1])
                for path, rows in zip(paths, contents, strict=True)
            ]
            if any(change.before != change.after for change in changes):
                tree.apply(changes)
                steps += 1
        assert tree.now == [rows[2] for rows in contents]
        if steps:
            undo(tree.store, None, steps, WHEN)
        assert tree.now == [rows[0] for rows in contents]
        assert tree.others() == []


def test_names_that_mean_something_to_a_pattern_are_names(tmp_path):
    path = tmp_path / "tree/[a]*.cuh"
    path.parent.mkdir()
    path.write_bytes(b"a")
    (path.parent / ".ab.cuh.0.policygen").write_bytes(b"of another file")
    apply([Change(path, b"a", b"b")], tmp_path / "p.db", path.parent, "t", "{}", WHEN)
    assert path.read_bytes() == b"b"
    left = targets.staged_name(path, "0")
    left.write_bytes(b"")
    with pytest.raises(InputError, match="was left behind by an interrupted policygen"):
        apply([Change(path, b"b", b"c")], tmp_path / "p.db", path.parent, "t", "{}", WHEN)
