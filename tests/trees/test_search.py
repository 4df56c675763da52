import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from policygen import settings
from policygen.errors import InputError
from policygen.trees import find, find_any
from policygen.trees.lookup import site_folders
from tests.trees.places import Places
from tests.trees.toys import make_checkout, make_root

ORDER = ["policygen.toml", "checkout", "cub_headers", "wheel", "toolkit"]


@pytest.fixture(autouse=True)
def _no_settings() -> Iterator[None]:
    settings.choose(None)
    yield
    settings.choose(None)


def test_a_policygen_toml_that_only_lies_there_names_no_tree(places: Places) -> None:
    make_root(places.work / "strange")
    (places.work / "policygen.toml").write_text('cub = "strange"\n')
    assert find_any(None, places.work) is None


def put(places: Places, place: str) -> Path:
    """A tree in one of the places of the search."""
    match place:
        case "policygen.toml":
            root = make_root(places.base / "configured")
            (places.base / "policygen.toml").write_text('cub = "configured"\n')
            settings.choose(str(places.base / "policygen.toml"))
        case "checkout":
            root = make_checkout(places.work) / "cub"
        case "cub_headers":
            root = make_root(places.headers / "3.0.1")
        case "wheel":
            root = make_root(places.site / "nvidia/cu13/include/cccl")
        case _:
            root = make_root(places.toolkit / "include/cccl")
    return root


@pytest.mark.parametrize("place", ORDER)
def test_a_tree_is_found_in_its_place(places: Places, place: str) -> None:
    root = put(places, place)
    cub = find(None, places.work)
    assert (cub.root, cub.found) == (str(root), place)


@pytest.mark.parametrize(("first", "second"), list(pairwise(ORDER)))
def test_one_place_goes_before_the_next(places: Places, first: str, second: str) -> None:
    root = put(places, first)
    put(places, second)
    assert find(None, places.work).root == str(root)


def test_the_option_goes_before_all_places(places: Places) -> None:
    put(places, "policygen.toml")
    make_root(places.work / "mine", "3.1.4")
    cub = find("mine", places.work)
    assert (cub.version, cub.found) == ("3.1.4", "--cub")


def test_a_checkout_is_found_from_deep_inside(places: Places) -> None:
    make_checkout(places.base / "ck")
    deep = places.base / "ck/thrust/thrust"
    assert find(None, deep).root == str(places.base / "ck/cub")


def test_the_folder_may_be_relative(places: Places) -> None:
    put(places, "checkout")
    assert find(None, Path()).root == str(places.work / "cub")


def test_an_unpacked_tree_is_found_from_inside(places: Places) -> None:
    make_root(places.base / "tree")
    assert find(None, places.base / "tree/cub/device").root == str(places.base / "tree")


def test_settings_may_name_a_fetched_version(places: Places) -> None:
    make_root(places.headers / "3.0.1")
    make_root(places.headers / "3.1.4", "3.1.4")
    (places.work / "policygen.toml").write_text('cub = "3.0.1"\n')
    settings.choose("policygen.toml")
    cub = find(None, places.work)
    assert (cub.version, cub.found) == ("3.0.1", "policygen.toml")


def test_settings_without_a_tree_let_the_search_go_on(places: Places) -> None:
    (places.work / "policygen.toml").write_text("# nothing yet\n")
    settings.choose("policygen.toml")
    put(places, "toolkit")
    assert find(None, places.work).found == "toolkit"


def test_settings_that_name_a_wrong_tree_are_an_error_that_names_the_file(places: Places) -> None:
    path = places.work / "policygen.toml"
    path.write_text('cub = "absent"\n')
    settings.choose(str(path))
    with pytest.raises(InputError) as raised:
        find(None, places.work)
    assert str(raised.value) == (
        f"{path}: cub = 'absent': no such file or folder: {places.work}/absent"
    )


def test_the_tree_that_was_made_current_goes_before_newer_ones(places: Places) -> None:
    make_root(places.headers / "3.0.1")
    make_root(places.headers / "3.1.4", "3.1.4")
    assert find(None, places.work).version == "3.1.4"
    (places.headers / ".current").write_text("3.0.1\n")
    assert find(None, places.work).version == "3.0.1"


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_a_toolkit_is_found_by_its_variable(
    places: Places, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    put(places, "toolkit")
    root = make_root(places.base / "cuda-12/include", "2.8.2")
    monkeypatch.setenv(variable, str(places.base / "cuda-12"))
    assert find(None, places.work).root == str(root)


def test_a_toolkit_is_found_by_its_compiler_behind_a_link(places: Places) -> None:
    root = make_root(places.base / "cuda-13/include/cccl")
    compiler = places.base / "cuda-13/bin/nvcc"
    compiler.parent.mkdir()
    compiler.touch(mode=0o755)
    (places.base / "bin").mkdir()
    (places.base / "bin/nvcc").symlink_to(compiler)
    assert find(None, places.work).root == str(root)


def test_a_search_that_finds_nothing_names_every_place_in_order(places: Places) -> None:
    assert find_any(None, places.work) is None
    with pytest.raises(InputError) as raised:
        find(None, places.work)
    assert str(raised.value) == (
        "no CUB tree found; searched, in this order:\n"
        "    --cub: not given\n"
        "    policygen.toml: no settings file given by --config or POLICYGEN_CONFIG, or it names no"
        " tree\n"
        f"    checkout: none around {places.work}\n"
        f"    cub_headers: no version in {places.headers}\n"
        f"    wheel: none installed for {sys.executable}\n"
        f"    toolkit: none in {places.toolkit}\n"
        "  Fetch one: policygen headers fetch 3.0.1"
    )


def test_a_found_tree_that_is_damaged_is_an_error_not_a_miss(places: Places) -> None:
    root = put(places, "checkout")
    (root / "cub/version.cuh").write_text("")
    put(places, "toolkit")
    with pytest.raises(InputError, match="does not define CUB_VERSION"):
        find(None, places.work)


def test_installed_wheels_are_looked_for_where_python_imports_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", ["", "/a/site-packages"])
    assert site_folders() == (Path("/a/site-packages"),)
