from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.trees import find, open_tree
from tests.trees.places import Places
from tests.trees.toys import TUNINGS, make_checkout, make_root


@pytest.mark.parametrize(
    ("root", "given"),
    [
        pytest.param("ck/cub", "ck", id="a checkout"),
        pytest.param("ck/cub", "ck/cub", id="a checkout's cub folder"),
        pytest.param("ck/cub", "ck/cub/cub", id="the cub folder of a checkout's cub folder"),
        pytest.param("cub/cub", "cub", id="a checkout that is called cub"),
        pytest.param("inc", "inc", id="an include folder"),
        pytest.param("inc", "inc/cub", id="the cub folder itself"),
        pytest.param("inc", f"inc/{TUNINGS}", id="the tuning folder"),
        pytest.param("inc", f"inc/{TUNINGS}/tuning_for.cuh", id="a tuning header"),
        pytest.param("inc", "inc/cub/version.cuh", id="another header"),
        pytest.param("w/nvidia/cu13/include/cccl", "w", id="nvidia-cuda-cccl"),
        pytest.param("w/nvidia/cu14/include/cccl", "w", id="nvidia-cuda-cccl of a later CUDA"),
        pytest.param("w/nvidia/cuda_cccl/include", "w", id="nvidia-cuda-cccl-cu12"),
        pytest.param("w/cuda/cccl/headers/include", "w", id="cuda-cccl"),
        pytest.param("w/nvidia/cu13/include/cccl", "w/nvidia", id="a folder of a wheel"),
        pytest.param("t/include", "t", id="a CUDA 12 toolkit"),
        pytest.param("t/include/cccl", "t", id="a CUDA 13 toolkit"),
        pytest.param("t/targets/sbsa-linux/include", "t", id="CUDA 12, targets only"),
        pytest.param("t/targets/sbsa-linux/include/cccl", "t", id="CUDA 13, targets only"),
        pytest.param("a/3.0.1", "a", id="a folder that holds one tree"),
        pytest.param("a/toolkit/include", "a", id="a folder that holds one toolkit"),
    ],
)
def test_a_tree_is_opened_by_any_path_that_stands_for_it(
    tmp_path: Path, root: str, given: str
) -> None:
    make_root(tmp_path / root)
    assert open_tree(tmp_path / given).root == str(tmp_path / root)


def test_a_toolkit_with_several_targets_is_one_tree(tmp_path: Path) -> None:
    for target in ("sbsa-linux", "x86_64-linux"):
        make_root(tmp_path / "targets" / target / "include")
    assert open_tree(tmp_path).root == str(tmp_path / "targets/sbsa-linux/include")


def test_a_link_stays_as_it_was_given(tmp_path: Path) -> None:
    make_checkout(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert open_tree(tmp_path / "link").root == str(tmp_path / "link/cub")


def test_several_trees_below_a_path_are_named(tmp_path: Path) -> None:
    make_root(tmp_path / "b", "3.1.4")
    make_checkout(tmp_path / "a", "3.0.1")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} contains 2 CUB trees:\n"
        f"    {tmp_path}/a/cub (CUB 3.0.1)\n"
        f"    {tmp_path}/b (CUB 3.1.4)\n"
        "  Choose one of them"
    )


def test_two_wheels_in_one_folder_are_named(tmp_path: Path) -> None:
    make_root(tmp_path / "nvidia/cu13/include/cccl", "3.2.0")
    make_root(tmp_path / "cuda/cccl/headers/include", "3.6.0")
    with pytest.raises(InputError, match=r"contains 2 CUB trees:\n.*3\.2\.0\)\n.*3\.6\.0\)"):
        open_tree(tmp_path)


@pytest.mark.parametrize("given", ["folder", "folder/file"])
def test_a_path_without_a_tree_is_an_error(tmp_path: Path, given: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path / given)
    assert str(raised.value) == (
        f"no CUB or rocPRIM tree at {tmp_path / given}\n"
        "  A tree is a CCCL checkout, a CUDA toolkit or an unpacked wheel: a folder with"
        " cub/version.cuh in one of their places; or a checkout of rocPRIM or of rocm-libraries, a"
        " ROCm installation or its include folder: a folder with rocprim/rocprim_version.hpp in one"
        " of their places"
    )


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path / "absent")
    assert str(raised.value) == f"no such file or folder: {tmp_path}/absent"


def test_a_path_that_loops_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"cannot read .*/loop: Too many levels"):
        open_tree(tmp_path / "loop")


def test_a_version_stands_for_a_fetched_tree(places: Places) -> None:
    make_root(places.headers / "3.0.1")
    make_root(places.headers / "3.1.4", "3.1.4")
    cub = find("3.0.1", places.work)
    assert (cub.root, cub.found) == (str(places.headers / "3.0.1"), "--cub")


def test_a_folder_that_is_called_as_a_version_passes_for_none(places: Places) -> None:
    make_root(places.headers / "3.0.1")
    make_root(places.work / "3.0.1", "3.1.4")
    assert find("3.0.1", places.work).version == "3.0.1"
    assert find("./3.0.1", places.work).version == "3.1.4"


def test_a_version_that_is_not_fetched_names_the_command_that_does(places: Places) -> None:
    with pytest.raises(InputError) as raised:
        find("3.0.1", places.work)
    assert str(raised.value) == (
        f"CUB 3.0.1 is not in {places.headers}\n  Fetch it: policygen headers fetch 3.0.1"
    )


@pytest.mark.parametrize("version", ["3.0", "1.2.3", "3.0.1.4"])
def test_an_unknown_version_names_the_known_ones(places: Places, version: str) -> None:
    with pytest.raises(InputError) as raised:
        find(version, places.work)
    assert str(raised.value) == (
        f"no known wheel contains CUB {version}\n"
        "  Known versions: 2.8.2, 3.0.1, 3.1.4, 3.2.0, 3.5.0, 3.6.0"
    )
