import os
import time

import pytest

from policygen.errors import InputError
from policygen.store import targets
from policygen.store.targets import tree_lock


def test_a_tree_is_locked_by_one_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "PATIENCE", 0.05)
    with tree_lock(tmp_path):
        with pytest.raises(InputError) as failure, tree_lock(tmp_path):
            pytest.fail("two hold the lock")
        assert str(failure.value) == (
            f"another policygen is writing to {tmp_path}\n  Wait until it has finished."
        )
    with tree_lock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_writer_waits_for_the_one_before(tmp_path):
    ready, locked = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with tree_lock(tmp_path):
                os.write(locked, b".")
                time.sleep(0.2)
        finally:
            os._exit(0)
    os.read(ready, 1)
    start = time.monotonic()
    with tree_lock(tmp_path):
        assert time.monotonic() - start > 0.05
    os.waitpid(child, 0)


def test_a_tree_that_is_gone_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for name, words in (("gone", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(InputError) as failure, tree_lock(tmp_path / name):
            pytest.fail("there is nothing to lock")
        assert str(failure.value) == (
            f"cannot lock {tmp_path / name}: {words}\n  Name a tree that exists."
        )


def test_a_tree_has_one_lock_however_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "PATIENCE", 0.05)
    (tmp_path / "tree").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("tree")
    with tree_lock(tmp_path / "tree"):
        for name in ("tree/../tree", "link"):
            with (
                pytest.raises(InputError, match="another policygen is writing to"),
                tree_lock(tmp_path / name),
            ):
                pytest.fail("two hold the lock")
        with tree_lock(tmp_path / "other"):
            assert list((tmp_path / "tree").iterdir()) == []


def test_a_cache_that_cannot_hold_a_lock_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file/cache"))
    with (
        pytest.raises(InputError, match="Set POLICYGEN_CACHE to a folder that can be written"),
        tree_lock(tmp_path),
    ):
        pytest.fail("nothing is locked")
