"""Include folders travel whole, and nothing else does."""

import io
import os
import tarfile
import zlib
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

import policygen
from policygen.errors import InputError
from policygen.gpu import cluster_workers
from policygen.gpu.cluster import _never_complete
from policygen.gpu.cluster_workers import WorkerStore, packed, unpack
from policygen.gpu.search_places import open_place
from tests.real_trees import tree


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path):
    """With files, a folder, and links within."""
    made = tmp_path / "include"
    (made / "cub/device").mkdir(parents=True)
    (made / "cub/config.cuh").write_bytes(b"#pragma once\r\n")
    (made / "cub/device/a file.cuh").write_bytes(b"\x00\xff")
    (made / "cub/empty.cuh").write_bytes(b"")
    return made


def test_what_is_packed_is_unpacked(folder, tmp_path):
    unpack(packed(folder), tmp_path / "there")
    assert files(tmp_path / "there") == files(folder)


@pytest.mark.trees
def test_the_headers_of_cub_travel(tmp_path):
    root = tree("3.6.0")
    data = packed(root)
    unpack(data, tmp_path / "there")
    assert files(tmp_path / "there") == files(root)
    assert len(data) < cluster_workers.LARGEST_PACKED / 4


def test_the_same_content_is_the_same_at_another_place_and_time(folder, tmp_path):
    other = tmp_path / "other"
    unpack(packed(folder), other)
    (other / "cub/config.cuh").chmod(0o600)
    assert packed(other) == packed(folder)
    (other / "cub/config.cuh").write_bytes(b"#pragma once\n")
    assert packed(other) != packed(folder)


def test_links_within_are_what_they_point_to(folder, tmp_path):
    (folder / "one.cuh").symlink_to("cub/config.cuh")
    (folder / "more").symlink_to("cub/device")
    (folder / "gone.cuh").symlink_to("nowhere.cuh")
    unpack(packed(folder), tmp_path / "there")
    assert sorted(files(tmp_path / "there")) == [
        "cub/config.cuh",
        "cub/device/a file.cuh",
        "cub/empty.cuh",
        "more/a file.cuh",
        "one.cuh",
    ]
    assert not any(path.is_symlink() for path in (tmp_path / "there").rglob("*"))


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "..", ".", "cub/.."])
def test_what_lies_elsewhere_stays_there(folder, tmp_path, target):
    (tmp_path / "secret").write_text("mine")
    (folder / "cub/key.cuh").symlink_to(f"../{target}" if target[0] != "/" else target)
    with pytest.raises(InputError, match=r"is a link to .*, and is not sent to other machines"):
        packed(folder)


def test_a_folder_that_is_a_link_itself_is_packed(folder, tmp_path):
    (tmp_path / "current").symlink_to(folder)
    assert packed(tmp_path / "current") == packed(folder)


def test_pipes_and_devices_are_left_out(folder, tmp_path):
    os.mkfifo(folder / "pipe.cuh")
    unpack(packed(folder), tmp_path / "there")
    assert "pipe.cuh" not in files(tmp_path / "there")


@pytest.mark.parametrize(("name", "most"), [("LARGEST", 1 << 20), ("LARGEST_PACKED", 1 << 20)])
def test_what_is_too_large_does_not_travel(folder, monkeypatch, name, most):
    (folder / "large.cuh").write_bytes(Random(1).randbytes(2 << 20))
    monkeypatch.setattr(cluster_workers, name, most)
    too_large = "has more than 1 MiB and is not sent to other machines"
    with pytest.raises(InputError, match=too_large) as caught:
        packed(folder)
    assert "policygen headers fetch" in caught.value.remedy


def archive(*members):
    """As a stranger may make one."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, how in members:
            member = tarfile.TarInfo(name)
            member.size = 2 if how.get("type", tarfile.REGTYPE) == tarfile.REGTYPE else 0
            for key, value in how.items():
                setattr(member, key, value)
            made.addfile(member, io.BytesIO(b"0\n" if member.size else b""))
    return zlib.compress(stream.getvalue())


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("../out.cuh", {}),
        ("cub/../../out.cuh", {}),
        ("/tmp/out.cuh", {}),
        (".", {}),
        ("link.cuh", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("hard.cuh", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
        ("pipe", {"type": tarfile.FIFOTYPE}),
        ("null", {"type": tarfile.CHRTYPE}),
        ("folder", {"type": tarfile.DIRTYPE}),
    ],
)
def test_nothing_but_files_below_is_unpacked(tmp_path, name, how):
    place = tmp_path / "deep/there"
    with pytest.raises(InputError, match=r"an archive of headers holds .*, which is not a file"):
        unpack(archive(("fine.cuh", {}), (name, how)), place)
    assert sorted(files(tmp_path)) == ["deep/there/fine.cuh"]


def test_a_sparse_member_is_no_file(tmp_path):
    """A kilobyte of it would be as many gigabytes as it says."""
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9" * 11}
    with pytest.raises(InputError, match=r"holds a\.cuh, which is not a file"):
        unpack(archive(("a.cuh", {"pax_headers": sparse})), tmp_path / "there")
    assert files(tmp_path) == {}


def test_a_member_that_says_more_than_there_is_is_refused(tmp_path):
    with pytest.raises(InputError, match="is shorter than it declares"):
        unpack(archive(("a.cuh", {"pax_headers": {"size": "9" * 11}})), tmp_path / "there")


def test_a_name_comes_once(tmp_path):
    with pytest.raises(FileExistsError):
        unpack(archive(("a.cuh", {}), ("a.cuh", {})), tmp_path / "there")


def test_what_is_cut_or_swells_is_refused(folder, tmp_path, monkeypatch):
    data = packed(folder)
    with pytest.raises(InputError, match="truncated or too large"):
        unpack(data[:-9], tmp_path / "cut")
    cut_header = archive(("fine.cuh", {}), ("x", {"type": tarfile.XHDTYPE}))
    damages = {"zlib": b"no archive", "tar": zlib.compress(b"x" * 9999), "header": cut_header}
    for name, damaged in damages.items():
        with pytest.raises(InputError, match="an archive of headers is damaged"):
            unpack(damaged, tmp_path / name)
    monkeypatch.setattr(cluster_workers, "LARGEST", 2000)
    with pytest.raises(InputError, match="truncated or too large"):
        unpack(data, tmp_path / "large")


def test_what_is_sent_is_kept_only_if_its_digest_matches(tmp_path):
    with pytest.raises(InputError, match="received data does not match its digest"):
        WorkerStore(tmp_path).keep("0123", "sender", 0, b"damaged", 7)
    assert list((tmp_path / "contents").iterdir()) == []
    told = "tcp://worker:1 keeps losing the data sent to it\n  Check whether the disk"
    assert str(_never_complete("tcp://worker:1")).startswith(told)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (("0.0.1", "13.2"), "not 0.0.1"),
        ((policygen.__version__, "12.9"), "has nvcc 13.2, not 12.9"),
    ],
)
def test_a_worker_of_another_release_refuses_work(monkeypatch, terms, words):
    toolchain = SimpleNamespace(version="13.2")
    monkeypatch.setattr(cluster_workers, "here", lambda: "tcp://worker:1")
    monkeypatch.setattr(cluster_workers, "find_toolchain", lambda: toolchain)
    answer = cluster_workers.answered(terms, lambda: 1)
    with pytest.raises(InputError, match=words) as caught:
        answer.given()
    assert "the same versions of policygen and nvcc" in caught.value.remedy


def test_a_sanitizer_runs_on_this_machine():
    place = open_place(
        None,
        "tcp://a:1",
        Path("run.db"),
        slots=None,
        patience=0,
        sanitizes=True,
        note=print,
        stop_requested=bool,
    )
    with pytest.raises(InputError, match=r"--sanitize works on GPUs of this machine, but"):
        place.__enter__()
