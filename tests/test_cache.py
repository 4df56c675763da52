import pytest

import policygen
from policygen import cache, paths
from policygen.cache import digest, keep, kept, place, written_by


def test_what_is_kept_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path))
    keep("kind", "key", b"data")
    assert place("kind", "key") == tmp_path / "kind" / "key"
    assert (kept("kind", "key"), kept("kind", "other"), kept("other", "key")) == (
        b"data",
        None,
        None,
    )


def test_another_folder_keeps_its_own(tmp_path):
    keep("kind", "key", b"", tmp_path / "a")
    assert kept("kind", "key", tmp_path / "a") == b""
    assert kept("kind", "key", tmp_path / "b") is None


def test_each_damaged_byte_is_seen(tmp_path):
    keep("kind", "key", b"threads 512", tmp_path)
    path = place("kind", "key", tmp_path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert kept("kind", "key", tmp_path) is None, position
    for data in (b"", whole[:-1], whole + b"0", whole[20:]):
        path.write_bytes(data)
        assert kept("kind", "key", tmp_path) is None
    path.write_bytes(whole)
    assert kept("kind", "key", tmp_path) == b"threads 512"


@pytest.mark.parametrize(("kind", "key"), [("kind", "other"), ("other", "key")])
def test_an_entry_under_another_name_is_none(tmp_path, kind, key):
    keep("kind", "key", b"data", tmp_path)
    moved = place(kind, key, tmp_path)
    moved.parent.mkdir(exist_ok=True)
    moved.write_bytes(place("kind", "key", tmp_path).read_bytes())
    assert kept(kind, key, tmp_path) is None


def test_an_entry_of_another_release_is_none(tmp_path, monkeypatch):
    keep("kind", "key", b"data", tmp_path)
    monkeypatch.setattr(policygen, "__version__", "99.0")
    assert kept("kind", "key", tmp_path) is None


def test_where_a_part_ends_matters_for_its_name():
    names = [
        digest("ab", "c"),
        digest("a", "bc"),
        digest("abc"),
        digest(b"abc", ""),
        digest("a\udcff"),
    ]
    assert len(set(names)) == len(names)
    assert digest(b"ab", "c") == names[0]


def test_another_text_of_a_module_is_another_writer():
    assert written_by(cache) != written_by(paths) != written_by(cache, paths)
