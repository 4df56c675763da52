from pathlib import Path

from policygen.errors import plural
from policygen.portable import nearby


def test_a_path_below_the_current_folder_is_written_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert nearby(tmp_path / "a/b") == "a/b"
    assert nearby(Path("/elsewhere/a")) == "/elsewhere/a"


def test_one_thing_is_not_many():
    assert plural(1, "family", "families") == "1 family"
    assert plural(1200, "entry", "entries") == "1,200 entries"
    assert plural(2, "header") == "2 headers"
