import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from policygen.errors import InputError, PolicygenError
from policygen.opening import load_toml
from policygen.settings import Settings, choose, configured, passed_by


@pytest.fixture(autouse=True)
def _unnamed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("POLICYGEN_CONFIG", raising=False)
    choose(None)
    yield
    choose(None)


def test_a_file_that_only_lies_there_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "policygen.toml").write_text('cub = "far"\n')
    (tmp_path / "a/policygen.toml").write_text('cub = "near"\r\n')
    monkeypatch.chdir(tmp_path / "a/b")
    assert configured() is None
    assert passed_by(tmp_path / "a/b") == tmp_path / "a/policygen.toml"


def test_the_file_that_is_named_counts_before_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.toml", "two.toml"):
        (tmp_path / name).write_text(f'cub = "{name}"\r\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICYGEN_CONFIG", "one.toml")
    config = configured()
    assert config is not None
    assert (config.path, config.settings.cub) == (tmp_path / "one.toml", "one.toml")
    choose("two.toml")
    config = configured()
    assert config is not None
    assert config.settings.cub == "two.toml"
    (tmp_path / "policygen.toml").touch()
    assert passed_by(tmp_path) is None
    choose(None)
    config = configured()
    assert config is not None
    assert config.settings.cub == "one.toml"


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    choose(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        configured()


def test_no_file_is_no_configuration(tmp_path: Path) -> None:
    assert configured() is None
    assert passed_by(tmp_path) is None


def test_a_folder_that_may_not_be_entered_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(self: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "policygen.toml").touch()
    monkeypatch.setattr(Path, "is_file", forbid)
    assert passed_by(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('cubs = "x"', "FILE: unknown key cubs\n  its keys are: cub, bindings, choose"),
        (
            "cub = 3",
            "FILE: cub: it should be a valid string\n  its keys are: cub, bindings, choose",
        ),
        (
            "[cub]\na = 1",
            "FILE: cub: it should be a valid string\n  its keys are: cub, bindings, choose",
        ),
        (
            "[choose]\nleast_score = 'a'\nprefer_simple = 'b'\nconfidence = 2",
            "FILE: choose.least_score: it should be a valid number;"
            " choose.confidence: it should be less than 1; choose.prefer_simple: it should be a"
            " valid boolean\n  its keys are: cub, bindings, choose",
        ),
        (
            "a = 1\nb = 2",
            "FILE: unknown key a; unknown key b\n  its keys are: cub, bindings, choose",
        ),
        ("# x\ncub = x", "FILE:2:7: not TOML\n  cub = x\n        ^"),
        ("# x\r\ncub = x\r\n", "FILE:2:7: not TOML\n  cub = x\n        ^"),
        ("cub =", "FILE:1:6: not TOML\n  cub =\n       ^"),
        ("cub = '''x\ny", "FILE:2:2: not TOML\n  y\n   ^"),
        (
            "[choose]\n[choose]\n",
            "FILE:2:8: a key or table is defined twice\n  [choose]\n         ^",
        ),
        (f"cub = {'9' * 5000}", "FILE: a number has too many digits"),
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
