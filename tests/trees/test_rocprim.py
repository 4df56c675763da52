"""Trees of rocPRIM: what they are, where they are found, what belongs to them."""

from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.model.trees import UNKNOWN
from policygen.paths import cache_folder
from policygen.settings import choose
from policygen.trees import fetch, find, find_any, layout, open_tree, tuning_headers
from policygen.trees.layout import (
    lone_dialect,
    open_root,
    own_sources,
    read_version,
    tree_content,
    tuning_folders,
    tunings_folder,
)
from policygen.trees.lookup import open_revision
from tests.real_trees import rocprim_tree
from tests.trees.debs import CONFIGS, make_rocprim, make_rocprim_checkout
from tests.trees.places import Places
from tests.trees.test_revision import repository
from tests.trees.toys import make_checkout, make_root

TEMPLATE = "rocprim/rocprim_version.hpp.in"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("#define ROCPRIM_VERSION 400200", "4.2.0"),
        ("#define ROCPRIM_VERSION 2 * 100000 + 13 * 100 + 1", "2.13.1"),
        ("# define ROCPRIM_VERSION 3*100000+4*100+1 // as CMake filled it in", "3.4.1"),
    ],
)
def test_the_version_is_read_from_the_macro(tmp_path: Path, text: str, version: str) -> None:
    root = make_rocprim(tmp_path)
    (root / "rocprim/rocprim_version.hpp").write_text(f"#pragma once\n{text}\n")
    assert read_version(root, "rocprim") == version


@pytest.mark.parametrize("text", ["", "@major@ * 100000", "400200 +", "3 * 100000 + minor"])
def test_a_version_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    path = make_rocprim(tmp_path) / "rocprim/rocprim_version.hpp"
    path.write_text(f"#define ROCPRIM_VERSION {text}\n")
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path)
    assert str(raised.value) == (
        f"{path} does not define ROCPRIM_VERSION\n  It does not belong to rocPRIM, or is damaged"
    )


@pytest.mark.parametrize(
    ("project", "version"),
    [
        ('set(VERSION_STRING "3.3.0")\n', "3.3.0"),
        ('  set ( VERSION_STRING "4.2.0" )\n', "4.2.0"),
        ('# set(VERSION_STRING "3.3.0")\n', UNKNOWN),
        ('set(VERSION_STRING "${ROCM}")\n', UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_checkout_says_its_version_in_its_project(
    tmp_path: Path, project: str, version: str
) -> None:
    make_rocprim_checkout(tmp_path, project)
    assert open_tree(tmp_path).version == version


def test_a_template_by_itself_has_no_version(tmp_path: Path) -> None:
    make_rocprim_checkout(tmp_path)
    (tmp_path / "CMakeLists.txt").unlink()
    assert open_tree(tmp_path).version == UNKNOWN


@pytest.mark.parametrize(
    "given",
    [
        ".",
        "projects/rocprim",
        "projects/rocprim/rocprim",
        "projects/rocprim/rocprim/include",
        "projects/rocprim/rocprim/include/rocprim",
        f"projects/rocprim/rocprim/include/{CONFIGS}/device_scan.hpp",
    ],
)
def test_a_checkout_is_opened_by_what_is_around_and_in_it(tmp_path: Path, given: str) -> None:
    root = make_rocprim_checkout(tmp_path / "projects/rocprim")
    cub = open_tree(tmp_path / given)
    assert (cub.root, cub.version, cub.dialect) == (str(root), "3.3.0", "configs")
    assert (cub.library, cub.called) == ("rocprim", "rocPRIM")


def test_an_installation_is_opened_past_its_folder_for_old_programs(tmp_path: Path) -> None:
    """ROCm 5: its `rocprim/include` has files that include those of `include`."""
    root = make_rocprim(tmp_path / "rocm/include")
    make_rocprim(tmp_path / "rocm/rocprim/include")
    assert open_tree(tmp_path / "rocm").root == str(root)
    assert open_tree(tmp_path).root == str(root)


def test_several_trees_are_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_rocprim(tmp_path / name)
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} contains 2 rocPRIM trees:\n    {tmp_path}/a (rocPRIM 4.2.0)\n"
        f"    {tmp_path}/b (rocPRIM 4.2.0)\n  Choose one of them"
    )


def test_a_folder_with_both_is_cubs_unless_rocprims_is_wanted(tmp_path: Path) -> None:
    make_rocprim(make_root(tmp_path, "3.0.1"))
    assert open_tree(tmp_path).called == "CUB"
    assert open_tree(tmp_path, library="rocprim").called == "rocPRIM"
    assert open_tree(tmp_path / f"{CONFIGS}/device_scan.hpp").called == "rocPRIM"


def test_a_tree_of_another_library_is_refused(tmp_path: Path) -> None:
    make_checkout(tmp_path)
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path, library="rocprim")
    assert str(raised.value) == (
        f"{tmp_path}/cub contains CUB 3.0.1, not rocPRIM\n"
        "  Name a tree of rocPRIM, or give --library cub"
    )


def test_no_tree_of_the_library_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        open_tree(tmp_path, library="rocprim")
    assert str(raised.value) == (
        f"no rocPRIM tree at {tmp_path}\n  A tree is a checkout of rocPRIM or of rocm-libraries, a"
        " ROCm installation or its include folder: a folder with rocprim/rocprim_version.hpp in one"
        " of their places"
    )


def test_headers_of_hip_come_from_the_tree_itself(tmp_path: Path, places: Places) -> None:
    root, hip = make_rocprim(tmp_path / "tree"), places.rocm / "include/hip/hip_runtime.h"
    assert open_root(root, "--cub", "rocprim").includes == (str(root),)
    hip.parent.mkdir(parents=True)
    hip.touch()
    assert open_root(root, "--cub", "rocprim").includes == (str(root), str(places.rocm / "include"))
    (root / "hip").mkdir()
    (root / "hip/hip_runtime.h").touch()
    assert open_root(root, "--cub", "rocprim").includes == (str(root),)


def test_headers_of_hip_are_those_that_a_variable_names(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, own = make_rocprim(places.base / "tree"), places.base / "own"
    for folder in (own, places.rocm):
        (folder / "include/hip").mkdir(parents=True)
        (folder / "include/hip/hip_runtime.h").touch()
    monkeypatch.setenv("ROCM_PATH", str(own))
    assert open_root(root, "--cub", "rocprim").includes[1:] == (str(own / "include"),)


def test_what_installers_use_is_looked_at() -> None:
    assert layout.usual_folders("rocprim") == (Path("/opt/rocm"), Path("/usr"))
    assert layout.usual_folders("cub") == (Path("/usr/local/cuda"),)


def test_tuning_headers_are_configs_and_what_decides_beside_them(tmp_path: Path) -> None:
    cub = open_tree(make_rocprim(tmp_path))
    assert [path.relative_to(tmp_path).as_posix() for path in tuning_headers(cub)] == [
        "rocprim/device/detail/device_config_helper.hpp",
        f"{CONFIGS}/device_scan.hpp",
        "rocprim/device/device_scan_config.hpp",
    ]
    assert tunings_folder(cub) == tmp_path / CONFIGS
    assert tuning_folders(cub) == (
        tmp_path / CONFIGS,
        tmp_path / "rocprim/device",
        tmp_path / "rocprim/device/detail",
    )
    assert len(list(own_sources(cub))) == 5
    before = tree_content(cub)
    (tmp_path / CONFIGS / "device_scan.hpp").write_text("// other\n")
    assert tree_content(cub) != before


def test_old_trees_have_all_tunings_in_one_folder(tmp_path: Path) -> None:
    cub = open_tree(make_rocprim(tmp_path))
    (tmp_path / CONFIGS / "device_scan.hpp").unlink()
    (tmp_path / CONFIGS).rmdir()
    assert tunings_folder(cub) == tmp_path / "rocprim/device"
    names = [path.name for path in tuning_headers(cub)]
    assert names == ["device_config_helper.hpp", "device_scan_config.hpp"]


def test_a_tree_without_tunings_is_an_error(tmp_path: Path) -> None:
    cub = open_tree(make_rocprim(tmp_path))
    for path in tuning_headers(cub):
        path.unlink()
    with pytest.raises(InputError) as raised:
        tuning_headers(cub)
    assert str(raised.value) == (
        f"rocPRIM 4.2.0 in {tmp_path} has no tuning headers:"
        f" {tmp_path / CONFIGS} contains no *.hpp\n"
        "  Name another tree with --cub"
    )


@pytest.mark.parametrize(("name", "dialect"), [("a.hpp", "configs"), ("a.cuh", "specializations")])
def test_a_header_by_itself_tells_its_dialect_by_its_name(name: str, dialect: str) -> None:
    assert lone_dialect(Path(name)) == dialect


def test_a_checkout_around_is_found_whosever_it_is(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_rocprim_checkout(places.work / "rocprim-checkout")
    here = places.work / "rocprim-checkout/benchmark"
    here.mkdir()
    make_checkout(places.work, "3.1.4")
    monkeypatch.chdir(here)
    assert find(None, here).root == str(root)
    assert find(None, here).found == "checkout"
    assert find(None, here, "cub").version == "3.1.4"
    assert find(None, places.work).version == "3.1.4"


def test_elsewhere_cub_is_found_unless_rocprim_is_wanted(places: Places) -> None:
    make_root(places.toolkit / "include", "3.0.1")
    root = make_rocprim(places.rocm / "include")
    assert find(None, places.work).called == "CUB"
    cub = find(None, places.work, "rocprim")
    assert (cub.root, cub.found) == (str(root), "toolkit")
    fetched = make_rocprim(places.headers / "rocprim-7.2.4/include")
    cub = find(None, places.work, "rocprim")
    assert (cub.root, cub.found) == (str(fetched), "cub_headers")
    assert find(None, places.work).called == "CUB"


def test_a_fetched_release_is_opened_by_its_name_and_by_its_place(places: Places) -> None:
    root = make_rocprim(places.headers / "rocprim-7.2.4/include")
    for given in ("rocprim@7.2.4", str(root), str(root.parent)):
        cub = find(given, places.work)
        assert (cub.root, cub.version, cub.found) == (str(root), "4.2.0", "--cub")
        assert cub.changed
    with pytest.raises(InputError, match=r"contains rocPRIM 4\.2\.0, not CUB"):
        find("rocprim@7.2.4", places.work, "cub")
    with pytest.raises(InputError) as raised:
        find("rocprim@5.7.1", places.work)
    assert str(raised.value) == (
        f"rocPRIM 5.7.1 is not in {places.headers}\n"
        "  Fetch it: policygen headers fetch rocprim@5.7.1"
    )


def test_settings_that_name_another_librarys_tree_are_passed_by(places: Places) -> None:
    make_root(places.base / "cub-tree")
    root = make_rocprim(places.rocm / "include")
    settings = places.work / "policygen.toml"
    settings.write_text(f'cub = "{places.base}/cub-tree"\n')
    choose(str(settings))
    try:
        assert find(None, places.work).found == "policygen.toml"
        assert find(None, places.work, "rocprim").root == str(root)
    finally:
        choose(None)


def test_nothing_found_says_where_rocprim_was_looked_for(places: Places) -> None:
    assert find_any(None, places.work, "rocprim") is None
    with pytest.raises(InputError) as raised:
        find(None, places.work, "rocprim")
    assert str(raised.value) == (
        "no rocPRIM tree found; searched, in this order:\n"
        "    --cub: not given\n"
        "    policygen.toml: no settings file given by --config or POLICYGEN_CONFIG, or it names no"
        " tree\n"
        f"    checkout: none around {places.work}\n"
        f"    cub_headers: no version in {places.headers}\n"
        f"    toolkit: none in {places.rocm}\n"
        "  Fetch one: policygen headers fetch rocprim@5.7.1"
    )


def test_a_revision_keeps_its_version_and_the_headers_of_hip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    checkout = tmp_path / "rocprim"
    make_rocprim_checkout(checkout)
    hip = tmp_path / "rocm/include/hip/hip_runtime.h"
    hip.parent.mkdir(parents=True)
    hip.touch()
    repository(checkout)
    (checkout / "CMakeLists.txt").write_text('set(VERSION_STRING "9.9.9")\n')
    cub = open_tree(checkout)
    assert cub.version == "9.9.9"
    old = open_revision(cub, "HEAD")
    assert old.version == "3.3.0"
    assert old.includes[1:] == (str(tmp_path / "rocm/include"),)
    assert Path(old.root).parts[-2:] == ("rocprim", "include")


@pytest.mark.trees
def test_real_packages_are_fetched_and_unpacked_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The packages come from Debian's mirror once and from the shared cache after that.
    monkeypatch.setenv("POLICYGEN_CACHE", str(cache_folder()))
    cub = fetch("rocprim@5.7.1", tmp_path, lambda _line: None)
    root = tmp_path / "rocprim-5.7.1/include"
    assert (cub.version, cub.dialect, cub.changed) == ("2.13.1", "configs", False)
    assert cub.includes == (str(root),)
    assert sorted(path.name for path in root.iterdir()) == ["hip", "rocprim"]
    assert len([path for path in root.rglob("*") if path.is_file()]) == 218


@pytest.mark.trees
@pytest.mark.parametrize(("release", "count"), [("5.7.1", 22)])
def test_the_tuning_headers_of_real_trees_are_all_there(release: str, count: int) -> None:
    assert len(tuning_headers(open_tree(rocprim_tree(release)))) == count
