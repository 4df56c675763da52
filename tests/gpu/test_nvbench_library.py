"""What benchmarks are linked with is found, for the release of nvcc."""

from importlib import metadata
from pathlib import Path

import pytest

from policygen.errors import MissingToolError
from policygen.gpu import checkout
from policygen.gpu.checkout import find_library
from policygen.installation import add
from policygen.proof.toolchain import Toolchain, find_toolchain


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A toolkit without cuRAND, and no wheels."""
    monkeypatch.setattr(checkout.sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    nvcc = tmp_path / "cuda/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    return Toolchain(nvcc, "13.2.86", ("sm90",))


def made(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)


def nvbench(folder, libraries="lib"):
    made(
        folder / "include/nvbench/nvbench.cuh",
        folder / libraries / "libnvbench.so",
        folder / libraries / "libnvbench_main.a",
    )
    return folder


def curand(folder, libraries="lib64", name="libcurand.so.10"):
    made(folder / "include/curand.h", folder / libraries / name)
    return folder


@pytest.mark.nvcc
def test_the_extra_has_all_that_is_linked():
    found = find_library(find_toolchain())
    assert all(path.is_file() for path in (found.main, *found.shared))
    assert [path.name.split(".so")[0] for path in found.shared] == ["libnvbench", "libcurand"]
    assert all((Path(one) / "nvbench").is_dir() or "nvidia" in one for one in found.includes)
    assert set(found.folders) == {str(path.parent) for path in found.shared}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """NVBench, wherever its wheel is."""
    folder = nvbench(tmp_path / "own", "lib64")
    monkeypatch.setattr(checkout, "nvbench_prefix", lambda _: folder)
    return folder


def test_a_toolkit_has_curand(bare, folder, tmp_path):
    toolkit = curand(tmp_path / "cuda")
    found = find_library(bare)
    assert found.main == folder / "lib64/libnvbench_main.a"
    assert found.shared == (
        folder / "lib64/libnvbench.so",
        toolkit / "lib64/libcurand.so.10",
    )
    assert found.includes == (str(folder / "include"), str(toolkit / "include"))
    before = found.identity
    (folder / "lib64/libnvbench.so").write_text("another build")
    checkout.program.cache_clear()
    assert find_library(bare).identity != before


@pytest.mark.usefixtures("folder")
def test_the_wheels_of_both_releases_of_cuda_have_curand(bare, tmp_path):
    old = curand(tmp_path / "site/nvidia/curand", "lib")
    assert find_library(bare).shared[1] == old / "lib/libcurand.so.10"
    new = curand(tmp_path / "site/nvidia/cu13", "lib")
    assert find_library(bare).shared[1] == new / "lib/libcurand.so.10"


@pytest.mark.usefixtures("folder")
def test_curand_that_is_missing_is_told_with_the_command_that_installs_it(bare):
    with pytest.raises(MissingToolError, match="cuRAND is missing") as error:
        find_library(bare)
    assert add("measure") in str(error.value)


def test_nvbench_that_is_missing_is_told(bare, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    for files in (absent, lambda _: None, lambda _: [metadata.PackagePath("cuda/bench/a.py")]):
        monkeypatch.setattr(metadata, "files", files)
        with pytest.raises(MissingToolError, match="NVBench for CUDA 13 is missing"):
            find_library(bare)


def test_a_wheel_that_is_not_whole_is_as_good_as_none(bare, tmp_path, monkeypatch):
    class Located(metadata.PackagePath):
        def locate(self):
            return tmp_path / self

    names = [f"cuda/bench/{one}/nvbench/include/nvbench/nvbench.cuh" for one in ("cu12", "cu13")]
    monkeypatch.setattr(metadata, "files", lambda _: [Located(one) for one in names])
    nvbench(tmp_path / "cuda/bench/cu12/nvbench")
    made(tmp_path / names[1])
    with pytest.raises(MissingToolError, match="NVBench for CUDA 13 is missing"):
        find_library(bare)
    nvbench(tmp_path / "cuda/bench/cu13/nvbench")
    curand(tmp_path / "cuda")
    assert "cu13" in str(find_library(bare).main)
