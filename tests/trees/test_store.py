import errno
from pathlib import Path
from typing import NoReturn

import pytest

import policygen
from policygen import rendering
from policygen.errors import InputError
from policygen.trees import fetched as fetched_module
from policygen.trees.fetched import current_tree as current
from policygen.trees.fetched import fetched, headers_folder, make_current
from tests.trees.places import Places
from tests.trees.toys import make_root


def test_the_variable_names_the_folder(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", "here")
    assert headers_folder(places.work) == places.work / "here"


def test_a_folder_around_the_current_one_is_a_strangers_and_has_no_releases(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(policygen.__file__).resolve().parent
    monkeypatch.delenv("POLICYGEN_CUB_HEADERS")
    monkeypatch.setattr(rendering, "folder", lambda name: package / name)
    (places.base / "cub_headers").mkdir()
    (places.base / "cub_headers/manifest.toml").touch()
    assert headers_folder(places.work) == places.cache / "cub_headers"


def test_a_source_checkout_has_the_folder_beside_the_package(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLICYGEN_CUB_HEADERS")
    monkeypatch.setattr(rendering, "folder", lambda name: places.base / "repository" / name)
    assert headers_folder(places.work) == places.base / "repository/cub_headers"


def test_an_installed_package_keeps_trees_in_the_cache(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(policygen.__file__).resolve().parent
    monkeypatch.delenv("POLICYGEN_CUB_HEADERS")
    monkeypatch.setattr(rendering, "folder", lambda name: package / name)
    assert headers_folder(places.work) == places.cache / "cub_headers"


def test_only_unpacked_versions_count_as_fetched(places: Places) -> None:
    for name in ("3.10.0", "3.9.0", "mini", "3.0.1.part-x", "3.0"):
        make_root(places.headers / name)
    (places.headers / "3.1.4").mkdir()
    (places.headers / "README.md").touch()
    assert fetched(places.headers) == ("3.9.0", "3.10.0")


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert fetched(tmp_path / "absent") == ()
    assert current(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [("3.0.1\n", "3.0.1"), ("3.0.1\r\n", "3.0.1"), ("2.0.0\n", "3.1.4"), ("", "3.1.4")],
)
def test_the_current_tree_is_the_named_one_or_the_newest(
    places: Places, text: str, version: str
) -> None:
    make_root(places.headers / "3.0.1")
    make_root(places.headers / "3.1.4")
    (places.headers / ".current").write_text(text)
    assert current(places.headers) == version


def test_a_current_tree_is_not_written_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    make_root(places.headers / "3.0.1")
    make_current(places.headers, "3.0.1")
    assert (places.headers / ".current").read_bytes() == b"3.0.1\n"
    monkeypatch.setattr(fetched_module, "write_atomically", refuse)
    make_current(places.headers, "3.0.1")
    with pytest.raises(InputError) as raised:
        make_current(places.headers, "3.1.4")
    assert str(raised.value) == (
        f"cannot write {places.headers / '.current'}: Read-only file system\n"
        "  Set POLICYGEN_CUB_HEADERS to a folder that can be written"
    )
