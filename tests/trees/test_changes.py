import shutil

import pytest

from policygen import rendering
from policygen.errors import InputError
from policygen.trees import open_tree
from policygen.trees.files import changed_files, changed_headers

MINI = rendering.folder("cub_headers") / "mini"


@pytest.fixture
def two(tmp_path):
    for name in ("before", "after"):
        shutil.copytree(MINI, tmp_path / name)
    return tmp_path / "before", tmp_path / "after"


def changed(before, after):
    found = changed_files(open_tree(before), open_tree(after))
    return [path.relative_to(after).as_posix() for path in found]


def test_equal_trees_have_no_changed_files(two):
    assert changed(*two) == []


def test_changed_new_and_lost_files_are_found(two):
    before, after = two
    version = after / "cub/cub/version.cuh"
    version.write_text(version.read_text() + "\n")
    (after / "cub/new").mkdir()
    (before / "cub/lost.cuh").write_text("")
    assert changed(before, after) == ["cub/cub/version.cuh", "cub/lost.cuh", "cub/new"]


def test_a_file_of_the_same_size_is_read(two):
    before, after = two
    (before / "cub/a.cuh").write_text("a")
    (after / "cub/a.cuh").write_text("b")
    assert changed(before, after) == ["cub/a.cuh"]


def test_what_belongs_to_git_is_no_file_of_a_tree(two):
    before, after = two
    (after / "cub/.git").mkdir()
    (after / "cub/.git/HEAD").write_text("ref: refs/heads/main\n")
    (before / "cub/cub/.git").write_text("gitdir: ../../.git/modules/cub\n")
    (after / "cub/.gitignore").write_text("build\n")
    assert changed(before, after) == ["cub/.gitignore"]


def test_what_is_a_link_to_the_same_is_the_same(two):
    before, after = two
    shutil.rmtree(after / "cub" / "cub" / "device")
    (after / "cub" / "cub" / "device").symlink_to(before / "cub" / "cub" / "device")
    assert changed(before, after) == []


def test_links_in_a_circle_are_an_error(two):
    for tree in two:
        (tree / "cub" / "circle").symlink_to(tree / "cub" / "circle")
    with pytest.raises(InputError, match="cannot compare"):
        changed(*two)


def test_a_folder_that_one_tree_alone_includes_is_not_compared(two, tmp_path):
    """A workload's own headers are beside the tree, and have no counterpart before."""
    before, after = map(open_tree, two)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/functor.cuh").write_text("struct functor {};\n")
    version = two[1] / "cub/cub/version.cuh"
    version.write_text(version.read_text() + "\n")
    own = after.model_copy(update={"includes": (*after.include_folders, str(tmp_path / "own"))})
    assert list(changed_headers(before, own)) == [(two[0] / "cub/cub/version.cuh", version)]
