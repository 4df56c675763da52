from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.model.trees import numbers
from policygen.trees.layout import read_dialect, read_version
from tests.real_trees import tree
from tests.trees.toys import make_root

WHEELS = {
    "2.8.2": "specializations",
    "3.0.1": "specializations",
    "3.1.4": "specializations",
    "3.2.0": "specializations",
    "3.5.0": "selectors",
    "3.6.0": "selectors",
}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("#define CUB_VERSION 300001", "3.0.1"),
        ("#define CUB_VERSION 200802 // macro expansion with ##", "2.8.2"),
        ("#  define   CUB_VERSION\t101702", "1.17.2"),
        ("#define CUB_VERSION 301205\r", "3.12.5"),
    ],
)
def test_the_version_is_read_from_its_macro(tmp_path: Path, line: str, version: str) -> None:
    make_root(tmp_path)
    (tmp_path / "cub/version.cuh").write_text(f"#pragma once\n{line}\n", newline="")
    assert read_version(tmp_path) == version


def test_a_version_file_in_any_encoding_is_read(tmp_path: Path) -> None:
    make_root(tmp_path)
    (tmp_path / "cub/version.cuh").write_bytes(b"// \xff\xfe\n#define CUB_VERSION 300001\n")
    assert read_version(tmp_path) == "3.0.1"


@pytest.mark.parametrize("text", ["", "#define CUB_VERSION X\n", "// CUB_VERSION 300001\n"])
def test_a_version_file_without_a_version_is_an_error_with_its_path(
    tmp_path: Path, text: str
) -> None:
    make_root(tmp_path)
    path = tmp_path / "cub/version.cuh"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_version(tmp_path)
    expected = f"{path} does not define CUB_VERSION\n  It does not belong to CUB, or is damaged"
    assert str(raised.value) == expected


def test_a_version_file_that_vanished_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_version(tmp_path)
    assert str(raised.value) == (
        f"cannot read {tmp_path / 'cub/version.cuh'}: No such file or directory\n"
        "  It existed a moment ago; run the command again"
    )


@pytest.mark.parametrize(
    ("version", "tuning", "dialect"),
    [
        ("3.3.0", "struct sm90_tuning;", "specializations"),
        ("3.3.0", "struct policy_selector\n{", "selectors"),
        ("3.9.0", "struct sm90_tuning;", "specializations"),
    ],
)
def test_the_dialect_is_told_by_what_a_header_holds(
    tmp_path: Path, version: str, tuning: str, dialect: str
) -> None:
    make_root(tmp_path, version, tuning)
    assert read_dialect(tmp_path, version) == dialect


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("2.7.0", "specializations"),
        ("3.3.5", "specializations"),
        ("3.4.0", "selectors"),
        ("3.10.0", "selectors"),
    ],
)
def test_the_dialect_is_told_by_the_version_where_that_header_is_missing(
    tmp_path: Path, version: str, dialect: str
) -> None:
    assert read_dialect(tmp_path, version) == dialect


def test_versions_sort_as_numbers() -> None:
    assert sorted(["3.10.0", "3.9.0", "2.8.2"], key=numbers) == ["2.8.2", "3.9.0", "3.10.0"]


@pytest.mark.trees
@pytest.mark.parametrize(("version", "dialect"), WHEELS.items())
def test_a_real_tree_has_the_version_and_dialect_of_its_wheel(version: str, dialect: str) -> None:
    root = tree(version)
    assert read_version(root) == version
    assert read_dialect(root, version) == dialect
