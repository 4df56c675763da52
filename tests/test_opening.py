"""What a tree may make policygen read: its own regular files of a sensible size, nothing else."""

import os
from pathlib import Path

import pytest

from policygen import opening
from policygen.opening import NotOpenedError, read_inside

REMEDY = "Put the file itself there, or name the tree that it belongs to."


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
    assert refused(tree, path) == f"a link leads out of the tree {tree}"


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
