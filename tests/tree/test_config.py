import errno
from pathlib import Path
from typing import NoReturn

import pytest

from policygen.config import Settings, find_config, load_toml
from policygen.errors import InputError, PolicygenError


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "policygen.toml").write_text('cub = "far"\n')
    (tmp_path / "a/policygen.toml").write_text('cub = "near"\r\n')
    config = find_config(tmp_path / "a/b")
    assert config is not None
    assert (config.path, config.settings.cub) == (tmp_path / "a/policygen.toml", "near")


def test_no_file_is_no_configuration(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None


def test_a_folder_that_may_not_be_entered_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(self: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "policygen.toml").touch()
    monkeypatch.setattr(Path, "is_file", forbid)
    assert find_config(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('cubs = "x"', "FILE: unknown key cubs\n  its keys are: cub, bindings, choose"),
        (
            "cub = 3",
            "FILE: cub: Input should be a valid string\n  its keys are: cub, bindings, choose",
        ),
        (
            "[cub]\na = 1",
            "FILE: cub: Input should be a valid string\n  its keys are: cub, bindings, choose",
        ),
        (
            "a = 1\nb = 2",
            "FILE: unknown key a; unknown key b\n  its keys are: cub, bindings, choose",
        ),
        ("# x\ncub = x", "FILE:2:7: Invalid value\n  cub = x\n        ^"),
        ("# x\r\ncub = x\r\n", "FILE:2:7: Invalid value\n  cub = x\n        ^"),
        ("cub =", "FILE:1:6: Invalid value\n  cub =\n       ^"),
        ("cub = '''x\ny", "FILE:2:2: Expected \"'''\"\n  y\n   ^"),
        ("cub = 'ü'\n", None),
    ],
)
def test_a_bad_file_is_an_error_with_its_place(
    tmp_path: Path, text: str, message: str | None
) -> None:
    path = tmp_path / "policygen.toml"
    path.write_bytes(text.encode())
    if message is None:
        assert load_toml(path, Settings).cub == "ü"
        return
    with pytest.raises(PolicygenError) as raised:
        load_toml(path, Settings)
    assert str(raised.value) == message.replace("FILE", str(path))


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "policygen.toml"
    path.write_bytes(b"cub = '\xff'")
    with pytest.raises(InputError) as raised:
        load_toml(path, Settings)
    assert str(raised.value) == f"{path} is not UTF-8: byte 7"


def test_a_file_that_vanished_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        load_toml(tmp_path / "absent.toml", Settings)
    assert str(raised.value) == f"cannot read {tmp_path}/absent.toml: No such file or directory"
