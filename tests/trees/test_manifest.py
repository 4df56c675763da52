from pathlib import Path

import pytest

from policygen.errors import InputError, SourceError
from policygen.opening import load_toml
from policygen.trees.manifest import Manifest, shipped

# As the design names them.
KNOWN = {
    "2.8.2": ("nvidia-cuda-cccl-cu12==12.9.27", "specializations", 440),
    "3.0.1": ("nvidia-cuda-cccl==13.0.85", "specializations", 440),
    "3.1.4": ("nvidia-cuda-cccl==13.1.115", "specializations", 440),
    "3.2.0": ("nvidia-cuda-cccl==13.2.86", "specializations", 444),
    "3.5.0": ("nvidia-cuda-cccl==13.3.5.0.6", "selectors", 441),
    "3.6.0": ("cuda-cccl==1.2.1", "selectors", 441),
}


def test_the_manifest_knows_six_wheels() -> None:
    wheels = {w.cub: (w.requirement, w.dialect, w.specializations) for w in shipped().wheels}
    assert wheels == KNOWN


def test_the_tags_are_those_of_the_wheel_file() -> None:
    for wheel in shipped().wheels:
        name, version, python, abi, platform = wheel.file.removesuffix(".whl").split("-")
        assert (name.replace("_", "-"), version) == (wheel.distribution, wheel.version)
        assert python == wheel.tags.implementation + wheel.tags.python.replace(".", "")
        assert abi == wheel.tags.abi
        assert wheel.tags.platform in platform.split(".")


def test_the_default_is_a_known_version() -> None:
    assert shipped().wheel(shipped().default)


def test_a_manifest_with_a_bad_value_is_an_error_that_names_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text('format = "policygen/manifest/1"\n')
    with pytest.raises(InputError) as raised:
        load_toml(path, Manifest)
    assert raised.value.message.startswith(
        f"{path}: format: it should be 'policygen/manifest/2'; libraries: it is"
    )


@pytest.mark.parametrize("file", ["../x.whl", "/x.whl", "x.zip", "a/b.whl"])
def test_a_wheel_file_that_leaves_the_cache_is_refused(tmp_path: Path, file: str) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text(f'[[wheels]]\nfile = "{file}"\n')
    with pytest.raises(InputError, match=r"wheels\[0\]\.file: it should match pattern"):
        load_toml(path, Manifest)


def test_a_manifest_that_is_no_toml_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text("[[wheels]\n")
    with pytest.raises(SourceError, match=r"manifest\.toml:1:9: "):
        load_toml(path, Manifest)
