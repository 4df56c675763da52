"""A GPU is one measurement's at a time, whoever else may write where its lock is."""

import os
import stat

import pytest

from policygen.errors import InputError
from policygen.gpu import machine
from policygen.gpu.machine import SESSION, WORKER, BusyGpuError, gpu_lock

UUID = "GPU-5f3b"


def test_the_second_is_told_who_has_it(tmp_path):
    with gpu_lock(UUID, folder=tmp_path):
        with pytest.raises(BusyGpuError) as caught, gpu_lock(UUID, folder=tmp_path):
            pass
        with gpu_lock("GPU-other", folder=tmp_path), gpu_lock(UUID, WORKER, folder=tmp_path):
            pass
    assert str(caught.value) == (
        f"another measurement is running on {UUID}: process {os.getpid()} of user {os.getuid()}\n"
        "  Wait until it has finished, or choose another GPU."
    )
    with gpu_lock(UUID, folder=tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "policygen-GPU-5f3b.session",
            "policygen-GPU-5f3b.worker",
            "policygen-GPU-other.session",
        ]


def test_who_waits_gets_it(tmp_path, monkeypatch):
    """The first lets go while the second sleeps."""
    first = gpu_lock(UUID, folder=tmp_path)
    first.__enter__()
    monkeypatch.setattr(machine.time, "sleep", lambda _: first.__exit__(None, None, None))
    with gpu_lock(UUID, patience=300.0, folder=tmp_path):
        assert (tmp_path / "policygen-GPU-5f3b.session").read_text().startswith("process ")


def test_all_users_may_lock_the_same_file(tmp_path):
    before = os.umask(0o077)
    try:
        with gpu_lock(UUID, folder=tmp_path):
            mode = (tmp_path / "policygen-GPU-5f3b.session").stat().st_mode
    finally:
        os.umask(before)
    assert stat.S_IMODE(mode) == 0o666


def test_a_file_that_may_only_be_read_is_locked_too(tmp_path, monkeypatch):
    """Linux refuses to make a file in a folder for all, where another user's stands already."""
    path = tmp_path / "policygen-GPU-5f3b.session"
    path.write_text("process 1 of user 2\x1b[2J\nand more")
    opened = os.open

    def guarded(name, flags, *mode):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, *mode)

    monkeypatch.setattr(machine.os, "open", guarded)
    with (
        gpu_lock(UUID, folder=tmp_path),
        pytest.raises(BusyGpuError) as caught,
        gpu_lock(UUID, folder=tmp_path),
    ):
        pass
    assert caught.value.message.endswith("process 1 of user 2\\x1b[2J")


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_what_is_no_file_is_not_touched(tmp_path, kind):
    path, other = tmp_path / "policygen-GPU-5f3b.session", tmp_path / "other"
    other.write_text("not to be lost")
    if kind == "link":
        path.symlink_to(other)
    elif kind == "second name":
        path.hardlink_to(other)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    words = "the lock of a GPU cannot be used"
    with pytest.raises(InputError, match=words) as caught, gpu_lock(UUID, folder=tmp_path):
        pass
    assert f"Remove {path}." in str(caught.value)
    assert other.read_text() == "not to be lost"


@pytest.mark.parametrize("uuid", ["../../etc/passwd", "a/b", "", "GPU " * 50, "GPU\n"])
def test_a_uuid_is_no_path(tmp_path, uuid):
    folder = tmp_path / "locks"
    folder.mkdir()
    with gpu_lock(uuid, folder=folder):
        (path,) = folder.iterdir()
        assert path.name.startswith("policygen-")
    assert list(tmp_path.iterdir()) == [folder]


def test_all_users_look_at_the_same_place(tmp_path, monkeypatch):
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(mode=0o755)
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(machine, "PLACES", (tmp_path / "none", own, shared))
    with gpu_lock(UUID):
        assert [path.name for path in shared.iterdir()] == ["policygen-GPU-5f3b.session"]
    monkeypatch.setattr(machine, "PLACES", (own,))
    with pytest.raises(InputError, match="no folder for the lock of a GPU"), gpu_lock(UUID):
        pass


def test_a_disk_that_cannot_lock_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(machine.fcntl, "flock", refuse)
    words = "cannot be used: No locks available"
    with pytest.raises(InputError, match=words), gpu_lock(UUID, SESSION, folder=tmp_path):
        pass
