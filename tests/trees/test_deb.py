"""Packages of strangers: what is odd is refused in one message, and nothing is written."""

import io
import lzma
import tarfile
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.trees import archives as archives_module
from policygen.trees.archives import read_package, unpack_packages
from tests.trees.debs import (
    GOOD_DEBS,
    HIP,
    ROCPRIM,
    Member,
    ar_bytes,
    deb_bytes,
    package,
    plain,
    tar_bytes,
    toy_part,
    toy_release,
)

FOLDER = "usr/include/hip"
FIRST, SECOND = GOOD_DEBS


def refused(tmp_path: Path, data: bytes) -> str:
    """Why a package is refused."""
    path = tmp_path / "toy.deb"
    path.write_bytes(data)
    with pytest.raises(InputError) as raised:
        list(read_package(path, FOLDER))
    return str(raised.value).replace(str(path), "DEB").removeprefix("DEB is not a package: ")


def test_the_files_below_one_folder_are_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.deb"
    path.write_bytes(package(HIP | ROCPRIM))
    assert list(read_package(path, FOLDER)) == [("hip_runtime.h", b"#pragma once\n")]


def test_old_names_of_what_is_there_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "toy.deb"
    links = [
        plain("./usr/include/hip/hcc_detail", type=tarfile.SYMTYPE, linkname="amd_detail"),
        plain("./usr/include/hip/amd/up.h", type=tarfile.SYMTYPE, linkname="../hip_runtime.h"),
        plain("./usr/lib/libhip.so", type=tarfile.SYMTYPE, linkname="/anywhere"),
    ]
    path.write_bytes(deb_bytes([*links, plain("./usr/include/hip/a.h", "a")]))
    assert list(read_package(path, FOLDER)) == [("a.h", b"a")]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (plain("./usr/include/hip/../../../x"), "points outside of its folder"),
        (plain("../x"), "points outside of its folder"),
        (plain("/etc/x"), "points outside of its folder"),
        (plain("./usr/include/hip/a\\b"), "points outside of its folder"),
        (plain("./usr/include/hip/a:b"), "is not a plain name"),
        (plain("./usr/include/hip//a"), "is not a plain name"),
        (plain("./usr/include/hip/a\n"), "is not a plain name"),
        (
            plain("./usr/include/hip/a", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            "is a link that points outside of its folder",
        ),
        (
            plain("./usr/include/hip/a", type=tarfile.SYMTYPE, linkname="../other/a.h"),
            "is a link that points outside of its folder",
        ),
        (plain("./usr/include/hip/a", type=tarfile.LNKTYPE, linkname="b"), "is not a file"),
        (plain("./usr/include/hip/a", type=tarfile.FIFOTYPE), "is not a file"),
        (plain("./usr/include/hip/a", type=tarfile.CHRTYPE), "is not a file"),
    ],
)
def test_an_odd_member_is_refused(tmp_path: Path, member: Member, reason: str) -> None:
    name = repr(member[0].name)
    assert refused(tmp_path, deb_bytes([member])) == f"{name} {reason}"


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    twice = [plain("./usr/include/hip/a"), plain("usr/include/hip/a")]
    assert refused(tmp_path, deb_bytes(twice)) == "'usr/include/hip/a' appears twice"


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives_module, "MOST_MEMBERS", 2)
    two, three = (
        deb_bytes([plain(f"./{FOLDER}/{name}") for name in part]) for part in ("ab", "abc")
    )
    assert refused(tmp_path, three) == "it has over 2 members"
    (tmp_path / "toy.deb").write_bytes(two)
    assert [name for name, _ in read_package(tmp_path / "toy.deb", FOLDER)] == ["a", "b"]


def test_a_member_that_says_to_be_too_large_is_refused(tmp_path: Path) -> None:
    info, _ = plain("./usr/include/hip/a")
    info.size = 1 << 40
    packed = lzma.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    data = ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": packed})
    assert refused(tmp_path, data) == "'./usr/include/hip/a' is larger than the remaining data"


def test_a_file_with_holes_is_refused(tmp_path: Path) -> None:
    """As GNU tar writes it for POSIX: a member says that it is larger than its bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as file:
        info, _ = plain("./usr/include/hip/a")
        info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1"}
        info.pax_headers |= {"GNU.sparse.map": "0,0", "GNU.sparse.size": "100000000"}
        file.addfile(info)
    packed = lzma.compress(buffer.getvalue())
    data = ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": packed})
    assert refused(tmp_path, data) == "'./usr/include/hip/a' is not a file"


@pytest.mark.parametrize("kept", [512, 600, 1024])
def test_files_that_are_cut_off_are_refused(tmp_path: Path, kept: int) -> None:
    tar = tar_bytes([plain("./usr/include/hip/a", "a" * 900)])[:kept]
    data = ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": lzma.compress(tar)})
    assert refused(tmp_path, data) == "unexpected end of data"


def test_what_grows_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = deb_bytes([plain("./usr/include/hip/a", "a" * (8 << 20))])
    assert refused(tmp_path, data).startswith("it holds over 1,")
    monkeypatch.setattr(archives_module, "MOST_BYTES", 1000)
    assert refused(tmp_path, package(HIP)) == "it holds over 1,000 bytes"


def test_what_needs_too_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives_module, "MOST_MEMORY", 1000)
    assert "memory usage limit" in refused(tmp_path, package(HIP)).lower()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is not an ar archive"),
        (b"PK\x03\x04", "it is not an ar archive"),
        (b"!<arch>\n", "it has no data.tar.xz, but nothing"),
        (ar_bytes({"control.tar.xz": b""}), "it does not start with debian-binary"),
        (
            ar_bytes({"debian-binary": b"2.0\n", "data.tar.zst": b"odd"}),
            "it has no data.tar.xz, but 'debian-binary', 'data.tar.zst'",
        ),
        (ar_bytes({"debian-binary": b"2.0\n"}) + b"data.tar.xz", "it is damaged"),
        (ar_bytes({"debian-binary": b"2.0\n"}).replace(b"`\n", b"``"), "it is damaged"),
        (ar_bytes({"debian-binary": b"2.0\n"}).replace(b"4     ", b"-4    "), "it is damaged"),
        (package(HIP)[:-1], "it is truncated"),
        (ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": b""}), "it is truncated"),
        (
            ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": lzma.compress(b"a" * 99)[:40]}),
            "it is truncated",
        ),
        (
            ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": b"no"}),
            "it is truncated",
        ),
        (
            ar_bytes({"debian-binary": b"2.0\n", "data.tar.xz": b"nothing of xz"}),
            "Input format not supported by decoder",
        ),
    ],
)
def test_what_is_no_package_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    assert refused(tmp_path, data) == reason


def test_a_package_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot read .*/toy\.deb: No such file"):
        list(read_package(tmp_path / "toy.deb", FOLDER))


@pytest.fixture
def archives(tmp_path: Path) -> tuple[Path, Path]:
    for name, data in GOOD_DEBS.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path / FIRST, tmp_path / SECOND


def test_headers_of_both_packages_stand_side_by_side(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "trees/rocprim-9.9.9"
    unpack_packages(archives, toy_release(), target)
    found = sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())
    assert found == [
        "include/hip/hip_runtime.h",
        "include/rocprim/device/detail/config/device_scan.hpp",
        "include/rocprim/rocprim_version.hpp",
    ]
    names = sorted(path.name for path in target.parent.iterdir())
    assert names == [".rocprim-9.9.9.sha256", "rocprim-9.9.9"]
    unpack_packages(archives, toy_release(), target)  # another process was faster
    unpack_packages(archives, toy_release(), target, again=True)
    assert sorted(path.name for path in target.parent.iterdir()) == names


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": "9.8.6"}, "contains rocPRIM 9.8.7, not rocPRIM 9.8.6"),
        ({"files": "0" * 64}, "differ in files from rocPRIM 9.8.7"),
        (
            {"parts": (toy_part(SECOND, "usr/include/hip"),) * 2},
            "contains no rocPRIM, not rocPRIM 9.8.7",
        ),
    ],
)
def test_other_headers_than_those_of_the_manifest_are_refused(
    archives: tuple[Path, Path], tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    target = tmp_path / "trees/rocprim-9.9.9"
    with pytest.raises(InputError) as raised:
        unpack_packages(archives, toy_release(**changes), target)
    assert str(raised.value) == f"{archives[0]}, {archives[1]} {reason}"
    assert list(target.parent.iterdir()) == []
