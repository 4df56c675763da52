"""Wheels of strangers: what is odd is refused in one message, and nothing is written."""

import io
import random
import stat
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.trees import archives as module
from policygen.trees.archives import read_files, unpack
from tests.trees.toys import GOOD, MEMBERS, RECORD, record, toy_wheel, wheel_bytes

VERSION = "inc/cub/version.cuh"
Change = Callable[[zipfile.ZipFile, zipfile.ZipInfo, bytes], None]


def refused(tmp_path: Path, data: bytes) -> str:
    """Why a wheel is refused; and that nothing is left of it."""
    path, target = tmp_path / "toy.whl", tmp_path / "trees/9.8.7"
    path.write_bytes(data)
    with pytest.raises(InputError) as raised:
        unpack(path, toy_wheel(), target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["toy.whl", "trees"]
    assert list(target.parent.iterdir()) == []
    return str(raised.value).replace(str(path), "WHEEL")


def rebuilt(change: Change, wanted: str = VERSION) -> bytes:
    """The good wheel with a member of it written in another way."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(GOOD)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            if info.filename == wanted:
                change(new, zipfile.ZipInfo(wanted), old.read(info))
            else:
                new.writestr(info, old.read(info))
    return buffer.getvalue()


def _twice(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
    file.writestr(info, data)
    with pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(zipfile.ZipInfo(info.filename), b"other")


def _mode(mode: int) -> Change:
    def change(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        info.external_attr = mode << 16
        file.writestr(info, data)

    return change


def _packed(method: int) -> Change:
    def change(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        info.compress_type = method
        file.writestr(info, data)

    return change


def _content(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
    file.writestr(info, data + b"// changed\n")


def _left_out(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
    pass


def _bomb(file: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
    info.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(info, bytes(10 << 20))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_twice, f"'{VERSION}' appears twice"),
        (_mode(stat.S_IFLNK | 0o777), f"'{VERSION}' is not a file"),
        (_mode(stat.S_IFIFO | 0o644), f"'{VERSION}' is not a file"),
        (_packed(zipfile.ZIP_LZMA), f"'{VERSION}' is not compressed as in wheels"),
        (_packed(zipfile.ZIP_BZIP2), f"'{VERSION}' is not compressed as in wheels"),
        (_bomb, f"'{VERSION}' expands too much when unpacked"),
        (_content, f"'{VERSION}' does not match RECORD"),
        (_left_out, f"'{VERSION}' does not match RECORD"),
    ],
)
def test_a_member_that_no_wheel_has_is_refused(tmp_path: Path, change: Change, reason: str) -> None:
    assert refused(tmp_path, rebuilt(change)) == f"WHEEL is not a wheel: {reason}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("inc//etc/canary", "is not a plain name"),
        ("inc/./x", "is not a plain name"),
        ("inc/x\n", "is not a plain name"),
        ("inc/\u202egpj.x", "is not a plain name"),
        ("/etc/canary", "points outside of its folder"),
        ("/inc/", "points outside of its folder"),
        ("../../canary", "points outside of its folder"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    """`inc//etc/x` is `/etc/x` below a folder."""
    data = wheel_bytes({**MEMBERS, name: ""})
    assert refused(tmp_path, data) == f"WHEEL is not a wheel: {name!r} {reason}"


@pytest.mark.parametrize("flag", [0x1, 0x40, 0x2000])
def test_an_encrypted_member_is_refused(tmp_path: Path, flag: int) -> None:
    data = bytearray(GOOD)
    with zipfile.ZipFile(io.BytesIO(GOOD)) as file:
        local = file.getinfo(VERSION).header_offset
    central = data.rindex(VERSION.encode()) - 46
    for place in (local + 6, central + 8):
        data[place : place + 2] = flag.to_bytes(2, "little")
    assert refused(tmp_path, bytes(data)) == f"WHEEL is not a wheel: '{VERSION}' is encrypted"


def test_a_wheel_of_too_many_members_or_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    assert refused(tmp_path, GOOD) == "WHEEL is not a wheel: it holds over 100 bytes"
    monkeypatch.setattr(module, "MOST_MEMBERS", 3)
    assert refused(tmp_path, GOOD) == "WHEEL is not a wheel: it has over 3 members"


def test_a_wheel_of_as_many_members_and_bytes_as_allowed_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(io.BytesIO(GOOD)) as file:
        sizes = [member.file_size for member in file.infolist()]
    monkeypatch.setattr(module, "MOST_BYTES", sum(sizes))
    monkeypatch.setattr(module, "MOST_MEMBERS", len(sizes))
    (tmp_path / "toy.whl").write_bytes(GOOD)
    unpack(tmp_path / "toy.whl", toy_wheel(), tmp_path / "9.8.7")
    assert (tmp_path / "9.8.7/cub/version.cuh").is_file()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", f"'{VERSION}' does not match RECORD"),
        (record(MEMBERS).replace("sha256=", "md5="), f"'{VERSION}' does not match RECORD"),
        (
            f"{VERSION}\n",
            f"{RECORD} cannot be read: not enough values to unpack (expected 3, got 1)",
        ),
        (f'"{VERSION}\n', f"{RECORD} cannot be read: unexpected end of data"),
        (
            f"{VERSION},sha256=x,3\n",
            f"{RECORD} cannot be read: Invalid base64-encoded string: number of data characters"
            " (1) cannot be 1 more than a multiple of 4",
        ),
    ],
)
def test_a_record_that_does_not_tell_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    def change(file: zipfile.ZipFile, info: zipfile.ZipInfo, _data: bytes) -> None:
        file.writestr(info, text)

    assert refused(tmp_path, rebuilt(change, RECORD)) == f"WHEEL is not a wheel: {reason}"


@pytest.mark.parametrize(("others", "count"), [(["other-1.dist-info/RECORD"], 2), (None, 0)])
def test_a_wheel_has_one_record(tmp_path: Path, others: list[str] | None, count: int) -> None:
    data = wheel_bytes({**MEMBERS, **dict.fromkeys(others, "")}) if others else rebuilt(
        _left_out, RECORD
    )  # fmt: skip
    assert refused(tmp_path, data) == f"WHEEL is not a wheel: it has {count} files RECORD"


def test_damaged_wheels_are_refused_and_never_wait(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(GOOD)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info), zipfile.ZIP_DEFLATED)
    good, seeds, path = buffer.getvalue(), random.Random(17), tmp_path / "toy.whl"
    whole, began = dict(_read(path, good)), time.monotonic()
    taken = 0
    for _ in range(500):
        data = bytearray(good)
        for _ in range(seeds.randint(1, 4)):
            data[seeds.randrange(len(data))] = seeds.randrange(256)
        cut = seeds.randrange(len(data)) if seeds.random() < 0.1 else len(data)
        try:
            found = dict(_read(path, bytes(data[:cut])))
        except InputError:
            continue
        assert found.items() <= whole.items()
        taken += 1
    assert time.monotonic() - began < 60
    assert taken > 0


def _read(path: Path, data: bytes) -> list[tuple[str, bytes]]:
    path.write_bytes(data)
    return list(read_files(path, "inc"))
