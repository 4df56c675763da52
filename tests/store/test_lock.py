import errno
import fcntl
import os
import stat
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
            f"another policygen is writing to {tmp_path}\n  Wait until it is done."
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
            f"cannot lock {tmp_path / name}: {words}\n  Name a tree that is there."
        )


def test_a_file_stands_in_for_a_folder_that_cannot_be_locked(tmp_path, monkeypatch):
    """NFS answers so."""
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(targets, "PATIENCE", 0.05)
    flock = fcntl.flock
    (tmp_path / "tree").mkdir()
    (tmp_path / "other").mkdir()

    def refuse(descriptor, operation):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse)
    with tree_lock(tmp_path / "tree"):
        with (
            pytest.raises(InputError, match="another policygen is writing to"),
            tree_lock(tmp_path / "tree/../tree"),
        ):
            pytest.fail("two hold the lock")
        with tree_lock(tmp_path / "other"):
            assert list((tmp_path / "tree").iterdir()) == []
