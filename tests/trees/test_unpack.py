import subprocess
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.trees import archives as module
from policygen.trees.archives import unpack
from tests.trees.toys import (
    GOOD,
    MEMBERS,
    files_of,
    make_root,
    toy_wheel,
    version_text,
    wheel_bytes,
)


def archive(folder: Path, data: bytes = GOOD) -> Path:
    path = folder / "toy.whl"
    path.write_bytes(data)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_include_folder_is_unpacked_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "trees/9.8.7"
    unpack(archive(tmp_path), toy_wheel(), target)
    assert names(target) == ["cub", "thrust"]
    assert (target / "cub/version.cuh").read_text() == version_text("9.8.7")
    assert names(tmp_path / "trees") == [".9.8.7.sha256", "9.8.7"]
    check = ["sha256sum", "--check", "--quiet", "../.9.8.7.sha256"]
    subprocess.run(check, cwd=target, check=True)


@pytest.mark.parametrize("name", ["../x", "/x", "/inc/x/", "inc/../../x", "inc\\..\\x", "C:/x"])
def test_a_member_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    members = {"inc/cub/version.cuh": version_text("9.8.7"), name: ""}
    path = archive(tmp_path, wheel_bytes(members))
    with pytest.raises(InputError) as raised:
        unpack(path, toy_wheel(), tmp_path / "trees/9.8.7")
    assert str(raised.value) == f"{path} is not a wheel: {name!r} points outside of its folder"
    assert names(tmp_path / "trees") == []


@pytest.mark.parametrize(
    ("members", "holds"),
    [({}, "no CUB"), ({"inc/cub/version.cuh": version_text("3.0.1")}, "CUB 3.0.1")],
)
def test_a_wheel_with_another_content_is_refused(
    tmp_path: Path, members: dict[str, str], holds: str
) -> None:
    path = archive(tmp_path, wheel_bytes(members))
    with pytest.raises(InputError) as raised:
        unpack(path, toy_wheel(), tmp_path / "trees/9.8.7")
    assert str(raised.value) == f"{path} contains {holds}, not CUB 9.8.7"
    assert names(tmp_path / "trees") == []


def test_a_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"toy\.whl is not a wheel: File is not a zip file"):
        unpack(archive(tmp_path, b"no"), toy_wheel(), tmp_path / "9.8.7")


def test_an_interrupted_unpacking_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(root: Path, library: str) -> str:
        assert (root / "cub/version.cuh").is_file()
        assert library == "cub"
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "read_version", interrupt)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive(tmp_path), toy_wheel(), tmp_path / "trees/9.8.7")
    assert names(tmp_path / "trees") == []


def test_the_tree_of_a_faster_process_stays(tmp_path: Path) -> None:
    target = make_root(tmp_path / "trees/9.8.7", "9.8.7")
    (target / "first").touch()
    unpack(archive(tmp_path), toy_wheel(), target)
    assert names(target) == ["cub", "first"]
    assert names(tmp_path / "trees") == [".9.8.7.sha256", "9.8.7"]


def test_a_target_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    target = tmp_path / "9.8.7"
    target.touch()
    with pytest.raises(InputError, match=f"cannot unpack to {target}: Not a directory"):
        unpack(archive(tmp_path), toy_wheel(), target)


def test_a_tree_that_is_wanted_again_is_replaced(tmp_path: Path) -> None:
    target = make_root(tmp_path / "trees/9.8.7", "9.8.7")
    (target / "first").touch()
    unpack(archive(tmp_path), toy_wheel(), target, again=True)
    assert names(target) == ["cub", "thrust"]
    assert names(tmp_path / "trees") == [".9.8.7.sha256", "9.8.7"]


def test_other_files_than_those_of_the_manifest_are_refused(tmp_path: Path) -> None:
    members = {**MEMBERS, "inc/cub/more.cuh": ""}
    path = archive(tmp_path, wheel_bytes(members))
    with pytest.raises(InputError) as raised:
        unpack(path, toy_wheel(), tmp_path / "trees/9.8.7")
    assert str(raised.value) == f"{path} differs in files from CUB 9.8.7"
    assert names(tmp_path / "trees") == []
    unpack(path, toy_wheel(files=files_of(members)), tmp_path / "trees/9.8.7")
