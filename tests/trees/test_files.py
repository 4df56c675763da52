import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from policygen.errors import InputError
from policygen.trees.files import absolute, failure, is_file, is_folder, listing, read, seems_file


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "Make it readable, or name another tree with --cub"),
        (errno.EROFS, "Set POLICYGEN_CUB_HEADERS to a folder that can be written"),
        (errno.ENOSPC, None),
    ],
)
def test_a_failure_names_the_path_the_reason_and_what_to_do(
    number: int, remedy: str | None
) -> None:
    error = failure("read", Path("a"), OSError(number, os.strerror(number)))
    assert (error.message, error.remedy) == (f"cannot read a: {os.strerror(number)}", remedy)


def test_a_failure_without_a_number_shows_its_text() -> None:
    assert str(failure("read", Path("a"), OSError("odd"))) == "cannot read a: odd"


def test_a_forbidden_path_is_an_error_and_for_a_search_a_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(self: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    def forbid_open(path: str, *_: object, **__: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("stat", "iterdir"):
        monkeypatch.setattr(Path, name, forbid)
    monkeypatch.setattr(os, "open", forbid_open)

    def look_inside(path: Path) -> bytes:
        return read(path, path.parent)

    looks = ((is_file, "read"), (is_folder, "read"), (look_inside, "read"), (listing, "list"))
    for look, action in looks:
        with pytest.raises(InputError) as raised:
            look(tmp_path)
        assert str(raised.value) == (
            f"cannot {action} {tmp_path}: Permission denied\n"
            "  Make it readable, or name another tree with --cub"
        )
    assert not seems_file(tmp_path)


def test_what_is_absent_is_neither_file_nor_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "absent", tmp_path / "file/below"):
        assert not is_file(path)
        assert not is_folder(path)


def test_a_nul_in_a_path_is_an_error() -> None:
    with pytest.raises(InputError, match=r"is not a path: .*null"):
        is_file(Path("a\0b"))


def test_an_absolute_path_keeps_links_and_loses_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to("elsewhere")
    assert absolute("a/../link", tmp_path) == tmp_path / "link"
    assert absolute("~/x", Path("/base")) == tmp_path / "x"
    assert absolute("~nobody-of-that-name/x", tmp_path) == tmp_path / "~nobody-of-that-name/x"
