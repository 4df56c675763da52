import errno
import hashlib
import importlib.util
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.installation import this_python
from policygen.process import python
from policygen.trees.fetched import obtain_wheel as obtain
from tests.trees.places import Places
from tests.trees.toys import GOOD, FakePip, toy_wheel


def ignore(_line: str) -> None:
    pass


def test_pip_is_told_the_tags_so_that_every_machine_gets_the_same_wheel(
    places: Places, pip: FakePip
) -> None:
    lines: list[str] = []
    file = obtain(toy_wheel(), lines.append)
    sha256 = hashlib.sha256(GOOD).hexdigest()
    assert file == places.cache / "wheels" / sha256 / "toy-1.0-py3-none-any.whl"
    assert file.read_bytes() == GOOD
    assert lines == ["toy==1.0: downloading"]
    (command,) = pip.commands
    folder = command.pop(command.index("--dest") + 1)
    assert Path(folder).parent == file.parent
    assert command == [
        *python("-m", "pip", "download", "--quiet"),
        *("--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"),
        *("--platform", "any", "--python-version", "3"),
        *("--implementation", "py", "--abi", "none", "--dest", "toy==1.0"),
    ]
    assert list(file.parent.iterdir()) == [file]


def test_a_cached_wheel_is_not_downloaded_again(places: Places, pip: FakePip) -> None:
    first = obtain(toy_wheel(), ignore)
    assert obtain(toy_wheel(), ignore) == first
    assert len(pip.commands) == 1


def test_a_damaged_cached_wheel_is_downloaded_again(places: Places, pip: FakePip) -> None:
    file = obtain(toy_wheel(), ignore)
    file.write_bytes(b"half")
    lines: list[str] = []
    assert obtain(toy_wheel(), lines.append).read_bytes() == GOOD
    assert lines == [
        "toy-1.0-py3-none-any.whl: the cached file is damaged",
        "toy==1.0: downloading",
    ]


def test_other_bytes_than_the_known_ones_are_refused(places: Places, pip: FakePip) -> None:
    pip.files = {"toy-1.0-py3-none-any.whl": b"other"}
    with pytest.raises(InputError) as raised:
        obtain(toy_wheel(), ignore)
    assert str(raised.value) == (
        "toy-1.0-py3-none-any.whl does not have the expected digest\n"
        f"    sha256 expected: {hashlib.sha256(GOOD).hexdigest()}\n"
        f"    sha256 actual:   {hashlib.sha256(b'other').hexdigest()}\n"
        "  Nothing was unpacked; check which package index pip uses"
    )
    assert not list(places.cache.rglob("*.whl"))


@pytest.mark.parametrize(("name", "brought"), [("other.whl", "other.whl"), (None, "nothing")])
def test_another_wheel_than_the_known_one_is_refused(
    places: Places, pip: FakePip, name: str | None, brought: str
) -> None:
    pip.files = {name: b""} if name else {}
    with pytest.raises(InputError) as raised:
        obtain(toy_wheel(), ignore)
    expected = f"pip should have downloaded toy-1.0-py3-none-any.whl, but downloaded {brought}"
    assert str(raised.value) == expected


def test_a_failing_pip_is_shown_with_its_command_and_its_words(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys\nsys.stderr.write('ERROR: no\\nnetwork\\n')\nsys.exit(1)\n"
    fake = places.base / "python"
    fake.write_text(f"#!{sys.executable}\n{script}")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(ProcessError) as raised:
        obtain(toy_wheel(), ignore)
    first, *others = str(raised.value).splitlines()
    command = " ".join(python("-m", "pip", "download", "--quiet"))
    assert first.startswith(f"command failed with status 1: {command} --no-input ")
    assert others == [
        "  ERROR: no",
        "  network",
        "  Check the network and pip's index settings, then run the command again",
    ]


def test_a_missing_pip_names_how_to_install_it(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError) as raised:
        obtain(toy_wheel(), ignore)
    assert str(raised.value) == f"pip is missing\n  {this_python()} -m ensurepip"


def test_a_cache_that_cannot_be_written_is_an_error(places: Places, pip: FakePip) -> None:
    places.cache.touch()
    with pytest.raises(InputError, match=r"cannot write .*: "):
        obtain(toy_wheel(), ignore)


def test_a_cached_wheel_that_cannot_be_read_is_an_error(
    places: Places, pip: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(self: Path, mode: str) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    file = obtain(toy_wheel(), ignore)
    monkeypatch.setattr(Path, "open", forbid)
    with pytest.raises(InputError) as raised:
        obtain(toy_wheel(), ignore)
    assert raised.value.message == f"cannot read {file}: Permission denied"
