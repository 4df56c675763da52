"""A store that lies in the current folder counts only where its user made it."""

import shutil

import pytest

from policygen.cli.main import main
from policygen.outputs import is_own
from policygen.paths import cache_folder
from policygen.store.journal import Journal


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


def test_a_store_is_own_where_it_was_made(tmp_path):
    store = tmp_path / "policygen.db"
    Journal.open(store).__exit__()
    assert is_own(store)
    Journal.open(store).__exit__()
    assert is_own(store)


def test_a_copy_in_another_place_is_not(tmp_path):
    Journal.open(tmp_path / "policygen.db").__exit__()
    copy = tmp_path / "copy.db"
    shutil.copy(tmp_path / "policygen.db", copy)
    assert not is_own(copy)


def test_another_store_in_its_place_is_not(tmp_path, monkeypatch):
    store = tmp_path / "policygen.db"
    Journal.open(store).__exit__()
    strangers = tmp_path / "strangers.db"
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache of a stranger"))
    Journal.open(strangers).__exit__()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    strangers.replace(store)
    assert not is_own(store)


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\0"])
def test_what_is_no_store_is_not(tmp_path, data):
    file = tmp_path / "policygen.db"
    file.write_bytes(data)
    assert not is_own(file)
    assert not is_own(tmp_path / "none.db")


def test_a_cache_that_cannot_be_written_means_naming_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file/cache"))
    Journal.open(tmp_path / "policygen.db").__exit__()
    assert not is_own(tmp_path / "policygen.db")


@pytest.mark.parametrize("command", [["undo"], ["verify-effect"], ["apply", "--finish"]])
def test_a_strangers_store_is_refused_until_it_is_named(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    Journal.open(tmp_path / "policygen.db").__exit__()
    shutil.rmtree(cache_folder() / "stores")
    before = (tmp_path / "policygen.db").read_bytes()
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "may not be your store" in error
    assert "name it: --store policygen.db" in error
    assert (tmp_path / "policygen.db").read_bytes() == before
    main([*command, "--store", "policygen.db"])
    assert "is not known" not in capsys.readouterr().err
