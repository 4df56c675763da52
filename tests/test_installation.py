"""What to type to install more: the command that works for this installation."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from policygen import installation, rendering
from policygen.installation import Requirement

ROOT = Path(rendering.__file__).parent.parent


@pytest.fixture
def packaged(monkeypatch):
    """As in a wheel: the data folders stand inside the package."""
    monkeypatch.setattr(rendering, "folder", lambda name: ROOT / "policygen" / name)


@pytest.fixture
def pip_on_path(monkeypatch):
    """The pip that a shell finds is the one of this Python."""
    monkeypatch.setattr(installation, "which", lambda _: str(Path(sys.executable).parent / "pip"))


@pytest.mark.usefixtures("pip_on_path")
def test_a_clone_is_installed_from_where_it_is(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert installation.add("cuda") == "pip install --editable '.[cuda]'"
    assert installation.add("") == "pip install --editable ."
    monkeypatch.chdir(ROOT.parent)
    assert installation.add("cuda") == f"pip install --editable '{ROOT.name}[cuda]'"
    monkeypatch.chdir(tmp_path)
    assert installation.add("cuda") == f"pip install --editable '{ROOT}[cuda]'"


@pytest.mark.usefixtures("packaged", "pip_on_path")
def test_a_package_is_installed_by_its_name():
    assert installation.clone() is None
    assert installation.add("cuda") == "pip install 'policygen[cuda]'"
    assert installation.add("") == "pip install policygen"


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize("found", [None, "/elsewhere/bin/pip"])
def test_another_pip_would_install_for_another_python(monkeypatch, found):
    monkeypatch.setattr(installation, "which", lambda _: found)
    monkeypatch.setattr(sys, "executable", "/env of mine/bin/python")
    assert installation.add("cuda") == "'/env of mine/bin/python' -m pip install 'policygen[cuda]'"


def test_a_clone_asks_for_what_its_pyproject_says():
    asked = installation.requirements()
    assert {"", "cuda", "benchmarks", "parquet", "dev"} <= asked.keys()
    assert "pydantic" in [one.name for one in asked[""]]
    assert [one for one in asked[""] if not one.fits] == []


@pytest.mark.usefixtures("packaged")
def test_a_package_asks_for_what_its_metadata_says(monkeypatch):
    said = ["click>=8.1.7", "pyarrow>=15; extra == 'parquet'", 'ruff==0.17.6; extra == "dev"']
    monkeypatch.setattr(metadata, "requires", lambda _: said)
    asked = {
        extra: [one.asked for one in lot] for extra, lot in installation.requirements().items()
    }
    assert asked == {"": ["click>=8.1.7"], "parquet": ["pyarrow>=15"], "dev": ["ruff==0.17.6"]}
    monkeypatch.setattr(metadata, "requires", lambda _: None)
    assert installation.requirements() == {}


def test_a_copy_of_the_package_alone_asks_for_nothing(monkeypatch, tmp_path):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(rendering, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(metadata, "requires", none)
    assert installation.clone() == tmp_path
    assert installation.requirements() == {}


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize(
    ("asked", "version", "fits"),
    [
        ("nvidia-cuda-nvcc==13.2.*", "13.2.51", True),
        ("nvidia-cuda-nvcc==13.2.*", "13.20.1", False),
        ("nvidia-cuda-nvcc==13.2.*", "13.0.48", False),
        ("nvidia-cuda-nvcc>=13.2,<13.6", "13.5.37", True),
        ("nvidia-cuda-nvcc>=13.2,<13.6", "13.2.51", True),
        ("nvidia-cuda-nvcc>=13.2,<13.6", "13.6.1", False),
        ("nvidia-cuda-nvcc>=13.2, <13.6", "13.1.80", False),
        ("libclang==18.1.1", "18.1.1", True),
        ("libclang==18.1.1", "18.1.1.0", True),
        ("libclang==18.1.1", "18.1.2", False),
        ("pandas>=2.2", "2.10", True),
        ("pandas>=2.2", "2.1.4", False),
        ("pandas>=2.2", "3.0.0rc1", True),
        ("pandas", "odd", True),
        ("pandas>=2.2", None, False),
    ],
)
def test_a_version_fits_or_does_not(monkeypatch, asked, version, fits):
    def found(name):
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", found)
    monkeypatch.setattr(metadata, "requires", lambda _: [asked])
    (one,) = installation.requirements()[""]
    assert one == Requirement(asked, one.name, version, fits)


@pytest.mark.usefixtures("packaged")
def test_a_requirement_that_cannot_be_read_is_an_error(monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda _: ["click~=8"])
    with pytest.raises(ValueError, match="'click~=8' is not a readable requirement"):
        installation.requirements()


def test_no_other_module_knows_how_something_is_installed_with_pip():
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "policygen").rglob("*.py")
        if "pip install" in path.read_text("utf-8")
    ]
    assert found == ["policygen/installation.py"]
