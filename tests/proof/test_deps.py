import json
import os
from pathlib import Path

import pytest

from policygen.cache import keep
from policygen.proof.compile import LARGEST, LISTS, IncludeFolders, Made, files, remembered

NOTHING = Path("/nowhere")


@pytest.fixture
def headers(tmp_path):
    folder = tmp_path / "a folder: $x"
    folder.mkdir()
    return folder


def preprocessed(*paths):
    """A unit as the preprocessor leaves it."""
    escaped = [str(path).replace("\\", "\\\\").replace('"', '\\"') for path in paths]
    markers = "".join(f'# {i} "{path}" 1\nint x;\n' for i, path in enumerate(escaped))
    return (
        f'# 0 "<built-in>"\n{markers}# 1 "{escaped[0]}" 2\n# 3 "relative.h"\n'
        '# 1 "/no/such/file"\n# 1 "/dev/zero"\n'
    ).encode()


class Compiler:
    """One that reads some files, and counts how often it is asked."""

    def __init__(self, cache, *paths):
        self.cache, self.paths, self.asked = cache, paths, 0

    def __call__(self):
        self.asked += 1
        text = "+".join(Path(path).read_text() for path in self.paths)
        return Made(text.encode(), preprocessed(*self.paths), NOTHING / "unit.cu")

    def tell(self, *folders):
        paths = [str(folder) for folder in folders]
        return remembered("kind", "key", paths, self, self.cache).decode()


def test_an_answer_holds_until_a_file_changes(headers, tmp_path):
    one, two = headers / "one.cuh", headers / 'two "th\\ree".cuh'
    for path in (one, two):
        path.write_text("x")
    compiler = Compiler(tmp_path / "cache", one, two)
    assert [compiler.tell(headers) for _ in range(2)] == ["x+x"] * 2
    assert compiler.asked == 1
    os.utime(two, ns=(1, 1))
    assert (compiler.tell(headers), compiler.asked) == ("x+x", 1), "a file that was only touched"
    two.write_text("y")
    assert (compiler.tell(headers), compiler.asked) == ("x+y", 2), "another content, same size"
    two.write_text("xx")
    assert (compiler.tell(headers), compiler.asked) == ("x+xx", 3), "another size"
    two.write_text("x")
    assert (compiler.tell(headers), compiler.asked) == ("x+x", 3), "as it was before"
    one.unlink()
    with pytest.raises(FileNotFoundError):
        compiler.tell(headers)


def test_another_content_of_the_same_size_and_time_is_seen(headers, tmp_path):
    """Who unpacks an archive chooses size and time of a file, but not when its inode changed."""
    path = headers / "one.cuh"
    compiler = Compiler(tmp_path / "cache", path)
    for text in ("a", "b"):
        path.write_text(text)
        os.utime(path, ns=(1, 1))
        assert compiler.tell(headers) == text


def test_files_are_told_by_their_place_in_the_folders(headers, tmp_path):
    other = tmp_path / "other"
    (other / "sub").mkdir(parents=True)
    for path in (headers / "one.cuh", other / "one.cuh", other / "sub" / "two.cuh"):
        path.write_text(path.parent.name)
    folders = IncludeFolders((str(headers), str(other)))
    paths = [headers / "one.cuh", other / "sub" / "two.cuh", "/etc/passwd"]
    assert files(preprocessed(*paths), folders, NOTHING) == [
        "/etc/passwd",
        "one.cuh",
        "sub/two.cuh",
    ]
    # One that another folder hides was found in some other way: beside the file that includes it.
    hidden = other / "one.cuh"
    assert files(preprocessed(hidden), folders, NOTHING) == [str(hidden)]


def test_the_unit_itself_is_no_file_that_it_read(headers):
    (headers / "unit.cu").write_text("x")
    assert files(preprocessed(headers / "unit.cu"), IncludeFolders(()), headers) == []


def test_a_name_beyond_ascii_is_read_as_the_preprocessor_writes_it(headers):
    path = headers / "größe.cuh"
    path.write_text("x")
    octal = "".join(chr(b) if b < 128 else f"\\{b:03o}" for b in str(path).encode())
    assert files(f'# 1 "{octal}" 1\n'.encode(), IncludeFolders(()), NOTHING) == [str(path)]


def test_a_list_of_nothing_vouches_for_nothing(headers, tmp_path):
    """A compiler that writes its list in another way must not make everything look the same."""
    made = Made(b"told", b"another format\n", NOTHING / "unit.cu")
    for _ in range(2):
        assert remembered("kind", "key", (), lambda: made, tmp_path / "cache") == b"told"
    assert not (tmp_path / "cache").exists()


def test_trees_whose_headers_include_others_are_each_known(headers, tmp_path):
    for name in "abc":
        (headers / name).write_text(name)
    cache = tmp_path / "cache"
    for _ in range(2):
        for name in "abc":
            # Which files are read depends on one that all read.
            (headers / "first").write_text(name)
            compiler = Compiler(cache, headers / "first", headers / name)
            assert compiler.tell(headers) == f"{name}+{name}"
    (kept,) = (cache / "reads").iterdir()
    lists = json.loads(kept.read_bytes().partition(b"\n")[2])
    assert lists == [["c", "first"], ["b", "first"], ["a", "first"]]
    assert len(list((cache / "kind").iterdir())) == 3


def test_old_lists_go(headers, tmp_path):
    for number in range(LISTS + 3):
        (headers / "first").write_text(str(number))
        (headers / str(number)).write_text("x")
        Compiler(tmp_path / "cache", headers / "first", headers / str(number)).tell()
    (kept,) = (tmp_path / "cache" / "reads").iterdir()
    assert len(json.loads(kept.read_bytes().partition(b"\n")[2])) == LISTS


def test_a_file_that_no_compiler_reads_makes_the_list_worthless(headers):
    """`#line 1 "/large"` names it; a header of that size would not be looked at again."""
    path = headers / "large.cuh"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    assert files(preprocessed(headers / "absent", path), IncludeFolders(()), NOTHING) == []


@pytest.mark.parametrize(
    "lists", [b"[]", b'[["absent.cuh"]]', b'[["/dev/null"]]', b'{"a": 1}', b"["]
)
def test_a_list_that_does_not_fit_vouches_for_nothing(headers, tmp_path, lists):
    path = headers / "one.cuh"
    path.write_text("x")
    keep("reads", "key", lists, tmp_path / "cache")
    compiler = Compiler(tmp_path / "cache", path)
    assert (compiler.tell(headers), compiler.asked) == ("x", 1)
