from importlib import metadata
from pathlib import Path

import pytest

from policygen.errors import InputError, MissingToolError
from policygen.proof.kernel_calls import find_nvbench


def nvbench(folder, **files):
    """Headers as a checkout or an installation has them."""
    (folder / "nvbench").mkdir(parents=True)
    for name, text in {"nvbench.cuh": "", **files}.items():
        (folder / "nvbench" / name).write_text(text)
    return folder


def test_the_extra_installs_one_with_its_configuration(tmp_path):
    (folder,) = find_nvbench(None, tmp_path)
    assert (Path(folder) / "nvbench/nvbench.cuh").is_file()
    assert (Path(folder) / "nvbench/config.cuh").is_file()
    assert "cu13" in folder


def test_what_was_installed_is_used_as_it_is(tmp_path):
    folder = nvbench(tmp_path / "include", **{"config.cuh": ""})
    assert find_nvbench(tmp_path, tmp_path / "cache") == (str(folder),)
    assert not (tmp_path / "cache").exists()


def test_a_checkout_is_configured_without_what_its_build_would_look_for(tmp_path):
    text = "// NVBench\n#cmakedefine NVBENCH_HAS_NVML\n#define NVBENCH_CPP_DIALECT 2017\n"
    folder = nvbench(tmp_path / "checkout", **{"config.cuh.in": text})
    made, given = find_nvbench(folder, tmp_path / "cache")
    assert given == str(folder)
    configured = (Path(made) / "nvbench/config.cuh").read_text()
    assert configured == "// NVBench\n\n#define NVBENCH_CPP_DIALECT 2017\n"


def test_what_is_no_nvbench_is_told(tmp_path):
    with pytest.raises(InputError, match=r"is not NVBench: it has no nvbench/nvbench\.cuh"):
        find_nvbench(tmp_path, tmp_path)
    with pytest.raises(InputError, match=r"cannot read .*config\.cuh\.in"):
        find_nvbench(nvbench(tmp_path / "half"), tmp_path)


def test_without_any_the_extra_is_named(tmp_path, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(MissingToolError, match="--nvbench DIR"):
        find_nvbench(None, tmp_path)
