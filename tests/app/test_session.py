"""What the library does that no command shows: who opens a session has named nothing."""

from pathlib import Path

import pytest

from policygen import Filter, open_session, resources, scan_tunings
from policygen.edit.journal import Journal
from policygen.errors import InputError

MINI = str(resources.folder("cub_headers") / "mini")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


def test_a_store_that_lies_in_the_folder_could_be_a_strangers():
    Journal.open(Path("other.db")).__exit__()
    Path("other.db").rename("policygen.db")
    session = open_session(MINI)
    with pytest.raises(InputError, match="is not known to be your store"):
        _ = session.store
    assert open_session(MINI, "policygen.db").store == Path("policygen.db")


def test_a_store_that_was_made_here_counts_without_its_name():
    assert open_session(MINI).store == Path("policygen.db")
    Journal.open(Path("policygen.db")).__exit__()
    assert open_session(MINI).store == Path("policygen.db")


def test_a_header_names_its_tree_and_nothing_is_printed(capsys):
    header = next(Path(MINI).rglob("tuning_*.cuh"))
    scan, errors = scan_tunings(None, Filter((str(header),)))
    assert errors == ()
    assert header.is_relative_to(scan.cub.root)
    assert {family.header for family in scan.families} == {header.name}
    assert capsys.readouterr() == ("", "")
