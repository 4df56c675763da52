from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.trees import tuning_headers
from policygen.trees.layout import open_root, readable_roots, roots
from tests.real_trees import tree
from tests.trees.toys import TUNINGS, make_checkout, make_root


def test_a_glob_finds_each_tree_once_though_a_link_leads_to_it(tmp_path: Path) -> None:
    make_root(tmp_path / "targets/x86_64-linux/include")
    (tmp_path / "include").symlink_to("targets/x86_64-linux/include")
    assert roots(tmp_path, ("include", "targets/*/include")) == (tmp_path / "include",)


def test_a_checkout_has_three_include_folders(tmp_path: Path) -> None:
    make_checkout(tmp_path)
    cub = open_root(tmp_path / "cub", "checkout")
    folders = ("cub", "thrust", "libcudacxx/include")
    assert cub.includes == tuple(str(tmp_path / folder) for folder in folders)
    assert cub.root == cub.includes[0]


def test_a_checkout_names_only_the_folders_that_it_has(tmp_path: Path) -> None:
    make_root(tmp_path / "cub")
    assert open_root(tmp_path / "cub", "checkout").includes == (str(tmp_path / "cub"),)


def test_an_include_folder_is_all_that_a_compiler_needs(tmp_path: Path) -> None:
    make_root(tmp_path / "include")
    cub = open_root(tmp_path / "include", "wheel")
    assert cub.includes == (str(tmp_path / "include"),)
    assert (cub.version, cub.dialect, cub.found) == ("3.0.1", "specializations", "wheel")


def test_a_search_passes_by_a_loop_that_an_explicit_path_reports(tmp_path: Path) -> None:
    (tmp_path / "cub").symlink_to("cub")
    assert readable_roots(tmp_path, (".",)) == ()
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        roots(tmp_path, (".",))


def test_tuning_headers_are_sorted_and_common_is_none_of_them(tmp_path: Path) -> None:
    folder = make_root(tmp_path) / TUNINGS
    for name in ("tuning_scan.cuh", "common.cuh", "tuning_a.cuh", "tuning_note.txt"):
        (folder / name).touch()
    (folder / "tuning_folder.cuh").mkdir()
    names = [path.name for path in tuning_headers(open_root(tmp_path, "--cub"))]
    assert names == ["tuning_a.cuh", "tuning_for.cuh", "tuning_scan.cuh"]


def test_a_tree_without_the_tuning_folder_says_where_it_was_expected(tmp_path: Path) -> None:
    (make_root(tmp_path) / TUNINGS).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError) as raised:
        tuning_headers(open_root(tmp_path, "--cub"))
    assert str(raised.value) == (
        f"CUB 3.0.1 in {tmp_path} has no tuning headers: there is no folder {tmp_path / TUNINGS}\n"
        "  Name another tree with --cub"
    )


def test_an_empty_tuning_folder_is_an_error(tmp_path: Path) -> None:
    folder = make_root(tmp_path) / TUNINGS
    (folder / "tuning_for.cuh").rename(folder / "common.cuh")
    with pytest.raises(InputError) as raised:
        tuning_headers(open_root(tmp_path, "--cub"))
    assert str(raised.value) == (
        f"CUB 3.0.1 in {tmp_path} has no tuning headers: {folder} contains no tuning_*.cuh\n"
        "  Name another tree with --cub"
    )


def test_a_tuning_header_that_loops_is_listed_so_that_the_others_can_be_read(
    tmp_path: Path,
) -> None:
    folder = make_root(tmp_path) / TUNINGS
    loop = folder / "tuning_loop.cuh"
    loop.symlink_to(loop.name)
    assert loop in tuning_headers(open_root(tmp_path, "--cub"))


@pytest.mark.trees
@pytest.mark.parametrize(
    ("version", "count"),
    [("2.8.2", 17), ("3.0.1", 17), ("3.1.4", 17), ("3.2.0", 18), ("3.5.0", 26), ("3.6.0", 26)],
)
def test_a_real_tree_has_its_tuning_headers(version: str, count: int) -> None:
    assert len(tuning_headers(open_root(tree(version), "--cub"))) == count
