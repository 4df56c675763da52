"""What a tree may make policygen read: its own regular files of a sensible size, nothing else."""

import json
import os
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policygen import opening
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.opening import DEPTH, NotOpenedError, plain_file, read_document, read_inside

REMEDY = "Replace the link with the file, or name the tree that it belongs to."


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/cub/device").mkdir(parents=True)
    (tmp_path / "tree/cub/device/a.cuh").write_bytes(b"a")
    (tmp_path / "secret").write_bytes(b"token")
    return tmp_path / "tree"


def refused(root: Path, path: Path) -> str:
    with pytest.raises(NotOpenedError) as raised:
        read_inside(root, path)
    assert "token" not in str(raised.value)
    return raised.value.reason


def test_a_file_of_the_tree_is_read(tree: Path) -> None:
    assert read_inside(tree, tree / "cub/device/a.cuh") == b"a"
    assert read_inside(tree / "cub/..", tree / "cub/device/../device/a.cuh") == b"a"


def test_links_inside_of_the_tree_and_to_it_are_followed(tree: Path, tmp_path: Path) -> None:
    (tree / "cub/device/link.cuh").symlink_to("a.cuh")
    (tree / "folder").symlink_to(tree / "cub/device")
    (tmp_path / "named").symlink_to("tree")
    for root in (tree, tmp_path / "named"):
        assert read_inside(root, root / "cub/device/link.cuh") == b"a"
        assert read_inside(root, root / "folder/link.cuh") == b"a"


@pytest.mark.parametrize("target", ["../../../secret", "/proc/self/environ", "../../.."])
def test_a_link_that_leaves_the_tree_is_refused(tree: Path, target: str) -> None:
    link = tree / "cub/device/link"
    link.symlink_to(target)
    path = link / "secret" if target.endswith("..") else link
    assert refused(tree, path) == f"a link points outside of the tree {tree}"


def test_a_path_that_leaves_the_tree_is_refused(tree: Path) -> None:
    for path in (tree / "../secret", Path("/etc/passwd")):
        assert refused(tree, path) == f"it lies outside of the tree {tree}"


def test_a_pipe_a_socket_and_a_device_are_refused_at_once(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    assert refused(tree, tree / "pipe") == "not a regular file"
    assert refused(Path("/dev"), Path("/dev/zero")) == "not a regular file"
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read_inside(tree, tree / "cub")
    with pytest.raises(IsADirectoryError):
        read_inside(tree, tree)


def test_a_file_that_is_too_large_is_refused(tree: Path) -> None:
    with (tree / "huge").open("wb") as file:
        file.truncate(opening.MAX_BYTES + 1)
    assert refused(tree, tree / "huge") == "8,388,609 bytes: larger than the limit of 8 MiB"
    with (tree / "huge").open("wb") as file:
        file.truncate(opening.MAX_BYTES)
    assert len(read_inside(tree, tree / "huge")) == opening.MAX_BYTES


def test_a_file_without_a_size_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the kernel say that they hold nothing."""
    monkeypatch.setattr(opening, "MAX_BYTES", 10)
    assert refused(Path("/proc/self"), Path("/proc/self/maps")).startswith("11 bytes: larger")


@pytest.mark.parametrize("part", ["cub", "a.cuh"])
def test_what_becomes_a_link_while_it_is_opened_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Between the moment when it was resolved and that when it is opened."""
    path = tree / "cub/device/a.cuh"
    resolved = opening.contained

    def swap(root: Path, path: Path) -> Path:
        found = resolved(root, path)
        moved = path if part == "a.cuh" else tree / "cub"
        moved.rename(tree / "moved")
        moved.symlink_to(tree / "moved")
        return found

    monkeypatch.setattr(opening, "contained", swap)
    with pytest.raises((OSError, NotOpenedError)) as raised:
        read_inside(tree, path)
    assert str(raised.value) in {
        "not a regular file",
        "[Errno 20] Not a directory: 'cub'",
        "[Errno 40] Too many levels of symbolic links: 'cub'",
    }


def test_a_file_that_is_missing_or_loops_is_an_error_of_the_system(tree: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_inside(tree, tree / "none")
    (tree / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        read_inside(tree, tree / "loop")


DEEP = "nested more deeply than the limit of 64 levels"
MANY = "1,048,577 values: more than the limit of 1,048,576"
SECONDS = 10.0
"""Of the processor."""
HOSTILE = {
    "[" * 10**6: DEEP,
    "[" * (DEPTH + 1) + "]" * (DEPTH + 1): DEEP,
    '{"a":' * (DEPTH + 1): DEEP,
    '["\\"", "]", ' * (DEPTH + 1): DEEP,
    "a = " + "[" * 5000: DEEP,
    "a = '\\' # ]]]]\nb = " + "[" * 5000: DEEP,
    'a = """ " ""\\""""""\nb = ' + "[" * 5000: DEEP,
    ".".join("a" * 40_000) + " = 1": DEEP,
    "[" + " . ".join(["'a'", '"b"'] * DEPTH) + "]": DEEP,
    "[],{1,2}," * 209_715 + "[[": MANY,
    "1," * 1_048_577: MANY,
}


def measured(folder: Path, text: str) -> str:
    """What is said of a document; nothing of one that a parser may have."""
    path = folder / "document"
    path.write_text(text, encoding="utf-8")
    try:
        assert read_document(path) == text.encode()
    except InputError as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_document_is_measured_before_it_is_parsed(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    assert measured(tmp_path, text) == HOSTILE[text]
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    "piece", ["[]", "]", '"', "'", "#", '"""', "\\", "a.", "a", " ", "a ", "'''a", "\n", "''' \""]
)
def test_nothing_takes_long_to_measure(tmp_path: Path, piece: str) -> None:
    began = time.process_time()
    measured(tmp_path, piece * ((4 << 20) // len(piece)))
    assert time.process_time() - began < SECONDS


def test_a_document_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.touch()
    os.truncate(path, 40 << 30)
    with pytest.raises(InputError, match="42,949,672,960 bytes: larger than the limit of 32 MiB"):
        read_document(path)
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            read_document(name)


def levels(found: Any) -> int:
    """How deep a document is."""
    inner = found.values() if isinstance(found, dict) else found
    return 1 + max(map(levels, inner), default=0) if isinstance(found, dict | list) else 0


TEXTS = st.text("[]{}\"'\\#,.ab\n ", max_size=9)
DOCUMENTS = st.recursive(
    TEXTS | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(DOCUMENTS, st.integers(DEPTH - 9, DEPTH + 1))
@example("\\", DEPTH)
def test_what_stands_in_texts_of_json_is_not_counted(
    tmp_path_factory: pytest.TempPathFactory, found: Any, around: int
) -> None:
    for _ in range(around):
        found = [found]
    told = measured(tmp_path_factory.getbasetemp(), json.dumps(found))
    assert told == (DEEP if levels(found) > DEPTH else "")


@given(TEXTS, TEXTS, st.sampled_from(["'{}'", '"{}"', "'''{}'''", '"""{}"""', "1 # {}"]))
def test_what_stands_in_texts_of_toml_is_not_counted(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, around: str
) -> None:
    text = f"a = {around.format(first)}\nb = {around.format(second)}\n"
    with suppress(tomllib.TOMLDecodeError):
        tomllib.loads(text)
        folder = tmp_path_factory.getbasetemp()
        assert measured(folder, text) == ""
        assert measured(folder, text + "c = " + "[" * 65) == DEEP


def test_documents_of_strangers_are_one_message_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil"
    commands = [
        ("review", "--from", path),
        ("apply", "--plan", path),
        ("db", "import", path, "-o", tmp_path / "out.db"),
        ("tune", path, "-o", tmp_path / "out.cuh"),
        ("scan", "--config", path),
    ]
    for text in (
        "[" * 5000,
        ".".join("a" * 40_000) + " = 1",
        f"a = {'1' * 5000}",
        "\n".join(f"k{n} = 1" for n in range(99)),
    ):
        path.write_text(text)
        for command in commands:
            began = time.process_time()
            assert main([*map(str, command)]) == 2
            told = capsys.readouterr().err
            assert "policygen: error: " in told
            assert "Traceback" not in told
            assert len(told) < 1000
            assert time.process_time() - began < SECONDS


def test_a_plain_file_is_reached_through_no_link(tree: Path) -> None:
    assert plain_file(tree, "cub/device/a.cuh") == tree / "cub/device/a.cuh"
    (tree / "link").symlink_to("cub/device/a.cuh")
    (tree / "folder").symlink_to("cub")
    for name in ("link", "folder/device/a.cuh"):
        with pytest.raises(NotOpenedError, match="is a symbolic link"):
            plain_file(tree, name)
    assert plain_file(tree, "cub") is None
    assert plain_file(tree, "none") is None
