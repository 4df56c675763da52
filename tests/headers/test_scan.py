import os
import shutil

import pytest

from policygen.errors import SourceError
from policygen.headers import scan
from policygen.headers.scan import read_changed, scan_headers
from tests.headers.headers import MINI


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(MINI, tmp_path / "tuning")


def tuning(folder):
    return sorted(folder.glob("tuning_*.cuh"))


def asked(monkeypatch):
    """The headers that are parsed from now on."""
    names = []
    original = scan.read_header

    def noted(name, *rest):
        names.append(name)
        return original(name, *rest)

    monkeypatch.setattr(scan, "read_header", noted)
    return names


def test_a_second_scan_reads_no_header_anew(folder, monkeypatch):
    first = scan_headers(tuning(folder))

    read = asked(monkeypatch)
    assert scan_headers(tuning(folder)).headers == first.headers
    assert read == []


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("tuning_blur.cuh", {"tuning_blur.cuh"}),
        ("tuning_sift.cuh", {"tuning_sift.cuh"}),
        ("common.cuh", {"tuning_blur.cuh"}),  # which includes it
    ],
)
def test_what_changed_is_read_anew_and_nothing_else(folder, monkeypatch, changed, again):
    scan_headers(tuning(folder))
    read = asked(monkeypatch)
    path = folder / changed
    path.write_bytes(path.read_bytes() + b"// changed\n")
    scan_headers(tuning(folder))
    assert set(read) == again


def test_a_damaged_or_unwritable_cache_costs_nothing_but_time(folder, tmp_path):
    first = scan_headers(tuning(folder))
    kept = sorted((tmp_path / "cache/scan").iterdir())
    assert len(kept) == 2
    kept[0].write_bytes(b"{")
    assert scan_headers(tuning(folder)).headers == first.headers
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"a file where the folder should be")
    assert scan_headers(tuning(folder)).headers == first.headers


def test_a_change_of_the_readers_makes_old_results_worthless(folder, monkeypatch):
    name = scan.key("a", b"data")
    monkeypatch.setattr(scan, "_fingerprint", lambda: b"other")
    assert scan.key("a", b"data") != name


def test_a_broken_header_does_not_keep_the_others_from_being_read(folder):
    (folder / "tuning_blur.cuh").write_bytes(b"namespace {")
    scanned = scan_headers(tuning(folder))
    assert [header.name for header in scanned.headers] == ["tuning_sift.cuh"]
    assert [str(e).splitlines()[0].rpartition("/")[2] for e in scanned.errors] == [
        "tuning_blur.cuh:1:11: '{' is never closed"
    ]


def test_a_header_with_other_content_is_read_or_raises():
    path = MINI / "tuning_sift.cuh"
    assert read_changed(path, path.read_bytes()).name == path.name
    with pytest.raises(SourceError, match="never closed"):
        read_changed(path, b"namespace {")


def test_a_pipe_in_the_place_of_a_header_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "tuning_pipe.cuh")
    scanned = scan_headers([tmp_path / "tuning_pipe.cuh"])
    assert [str(error) for error in scanned.errors] == [
        f"{tmp_path}/tuning_pipe.cuh:1:1: not a regular file"
    ]


def test_progress_counts_the_headers(folder):
    seen = []
    scan_headers(tuning(folder), progress=lambda *state: seen.append(state))
    assert seen == [(1, 2, "tuning_blur.cuh"), (2, 2, "tuning_sift.cuh")]


def test_files_that_cannot_be_read_are_told(folder):
    huge = folder / "tuning_huge.cuh"
    with huge.open("wb") as file:
        file.truncate(50 << 20)
    loop = folder / "tuning_loop.cuh"
    loop.symlink_to(loop)
    missing = folder / "tuning_missing.cuh"
    scanned = scan_headers([huge, loop, missing, *tuning(folder)[:1]])
    assert len(scanned.headers) == 1
    assert [str(e).rpartition("/")[2] for e in scanned.errors] == [
        "tuning_huge.cuh:1:1: 52,428,800 bytes: larger than the limit of 8 MiB\n"
        "  It is not a CUB source file.",
        "tuning_loop.cuh:1:1: cannot be read: Too many levels of symbolic links",
        "tuning_missing.cuh:1:1: cannot be read: No such file or directory",
    ]
