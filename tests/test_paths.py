import stat
import sys
from pathlib import Path

import pytest

from policygen import paths, rendering
from policygen.cli.main import main
from policygen.errors import MissingToolError, ProcessError
from policygen.process import run

MINI = rendering.folder("cub_headers") / "mini"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"POLICYGEN_CACHE": "/a"}, "/a"),
        ("linux", {"POLICYGEN_CACHE": "/a/b/../c"}, "/a/c"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/policygen"),
        ("linux", {"XDG_CACHE_HOME": "x"}, "/home/me/.cache/policygen"),
        ("linux", {"XDG_CACHE_HOME": "./x"}, "/home/me/.cache/policygen"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/policygen"),
        ("linux", {}, "/home/me/.cache/policygen"),
        ("darwin", {}, "/home/me/Library/Caches/policygen"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/policygen"),
        ("win32", {}, "/home/me/AppData/Local/policygen"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, platform, environment, expected):
    for name in ("POLICYGEN_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert paths.cache_folder().as_posix() == expected


def test_a_relative_cache_is_that_of_the_current_folder(monkeypatch, tmp_path):
    """Whatever works in another folder finds it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICYGEN_CACHE", "cache")
    assert paths.cache_folder() == tmp_path / "cache"


@pytest.mark.parametrize("variable", ["POLICYGEN_CACHE", "POLICYGEN_CUB_HEADERS"])
def test_a_folder_of_a_user_who_is_not_there_is_an_error(monkeypatch, capsys, tmp_path, variable):
    # A checkout has the tree once `make demo` fetched it, and then asks for no cache.
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(tmp_path))
    monkeypatch.setenv(variable, "~nobody2/x")
    assert main(["headers", "fetch", "3.0.1"]) == 2
    assert capsys.readouterr().err == (
        f"policygen: error: {variable}='~nobody2/x': there is no such user\n"
        f"  Set {variable} to a folder.\n"
    )


def nameless(*_):
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("home", [nameless, Path, lambda: Path("home/me")])
def test_a_user_without_a_home_is_told_what_to_set(monkeypatch, capsys, tmp_path, home):
    for name in ("POLICYGEN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(tmp_path))
    monkeypatch.setattr(Path, "home", home)
    assert main(["headers", "fetch", "3.0.1"]) == 2
    assert capsys.readouterr().err == (
        "policygen: error: there is no home folder for the cache\n"
        "  Set POLICYGEN_CACHE to a folder that can be written.\n"
    )


def test_a_bug_is_told_where_there_is_no_cache(monkeypatch, capsys):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("policygen.app.session.overview", broken)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", "/nowhere")
    monkeypatch.setenv("POLICYGEN_CACHE", "~nobody2/x")
    assert main(["headers", "list", "--cub", str(MINI)]) == 70
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


def test_a_written_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    paths.write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        paths.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_program_gives_its_output():
    assert run([sys.executable, "-c", "print('hi')"], install="") == "hi\n"


def test_a_failed_program_shows_command_status_and_words():
    code = "import sys; sys.exit('broken')"
    with pytest.raises(ProcessError) as caught:
        run([sys.executable, "-c", code], install="", remedy="Mend it.")
    assert str(caught.value).endswith(f"-c {code}\n  broken\n  Mend it.")


def test_a_missing_program_names_what_to_install():
    with pytest.raises(MissingToolError) as caught:
        run(["no-such-program"], install="Install no-such-package.")
    assert str(caught.value) == "no-such-program is missing\n  Install no-such-package."
