"""What the library does that no command shows: who opens a session has named nothing."""

from pathlib import Path

import pytest

from policygen import Filter, open_session, rendering, scan_tunings
from policygen.app.session import check_named
from policygen.errors import InputError
from policygen.store.journal import Journal
from policygen.store.targets import staged_name
from tests.trees.debs import make_rocprim, make_rocprim_checkout

MINI = str(rendering.folder("cub_headers") / "mini")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


def test_a_store_that_lies_in_the_folder_could_be_a_strangers():
    Journal.open(Path("other.db")).__exit__()
    Path("other.db").rename("policygen.db")
    session = open_session(MINI)
    with pytest.raises(InputError, match="may not be your store"):
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


def test_a_release_that_was_found_is_named_before_it_is_written_to(tmp_path, monkeypatch):
    headers = tmp_path / "headers"
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    make_rocprim(headers / "rocprim-7.2.4/include")
    found = open_session(library="rocprim").cub
    with pytest.raises(InputError) as raised:
        check_named(found)
    assert raised.value.message.startswith("nothing is written to rocPRIM 4.2.0 in ")
    assert "add --cub rocprim@7.2.4;" in raised.value.remedy
    check_named(open_session("rocprim@7.2.4").cub)


def test_what_is_left_beside_any_tuning_header_is_told(tmp_path):
    root = make_rocprim(tmp_path / "tree")
    staged_name(root / "rocprim/device/device_scan_config.hpp", "1").touch()
    with pytest.raises(InputError, match="was left behind by an interrupted policygen"):
        open_session(str(root), whole=True)


def test_a_tree_without_a_version_is_opened(tmp_path):
    make_rocprim_checkout(tmp_path / "tree", "")
    assert open_session(str(tmp_path / "tree")).cub.version == "unknown"
