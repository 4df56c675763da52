from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policygen.errors import InputError, Problems, ProcessError
from policygen.paths import cache_folder
from policygen.trees import fetch, find, tuning_headers
from policygen.trees.fetched import all_versions, fetch_all, overview
from policygen.trees.fetched import current_tree as current
from tests.trees.places import Places
from tests.trees.toys import FakePip, make_root


def ignore(_line: str) -> None:
    pass


def test_a_fetched_tree_becomes_the_one_that_is_used(places: Places, pip: FakePip) -> None:
    make_root(places.headers / "10.0.0", "10.0.0")
    lines: list[str] = []
    cub = fetch("9.8.7", places.headers, lines.append)
    assert (cub.version, cub.found) == ("9.8.7", "cub_headers")
    assert cub.root == str(places.headers / "9.8.7")
    assert lines == ["toy==1.0: downloading", "toy==1.0: unpacking"]
    assert find(None, places.work) == cub


def test_an_unpacked_tree_needs_neither_network_nor_cache(places: Places, pip: FakePip) -> None:
    make_root(places.headers / "3.0.1")
    lines: list[str] = []
    fetch("3.0.1", places.headers, lines.append)
    assert (lines, pip.commands) == ([], [])
    assert current(places.headers) == "3.0.1"
    assert not places.cache.exists()


def test_a_deleted_tree_comes_back_from_the_cache(places: Places, pip: FakePip) -> None:
    fetch("9.8.7", places.headers, ignore)
    (places.headers / "9.8.7").rename(places.base / "away")
    fetch("9.8.7", places.headers, ignore)
    assert (places.headers / "9.8.7/cub/version.cuh").is_file()
    assert len(pip.commands) == 1


def test_two_fetches_at_once_do_not_disturb_each_other(places: Places, pip: FakePip) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: fetch("9.8.7", places.headers, ignore), range(16)))
    assert len(set(trees)) == 1
    assert sorted(path.name for path in places.headers.iterdir()) == [
        ".9.8.7.sha256",
        ".current",
        "9.8.7",
    ]


def test_what_stands_in_a_trees_place_is_not_deleted(places: Places, pip: FakePip) -> None:
    notes = places.headers / "9.8.7/notes.txt"
    notes.parent.mkdir()
    notes.touch()
    with pytest.raises(InputError) as raised:
        fetch("9.8.7", places.headers, ignore)
    assert str(raised.value) == (
        f"{notes.parent} exists, but contains no CUB\n  Delete it and fetch again"
    )
    assert notes.exists()


def test_an_empty_folder_in_a_trees_place_is_filled(places: Places, pip: FakePip) -> None:
    (places.headers / "9.8.7").mkdir()
    assert fetch("9.8.7", places.headers, ignore).version == "9.8.7"


@pytest.mark.parametrize("version", ["1.2.3", "..", "", "3.0"])
def test_an_unknown_version_is_an_error_that_lists_the_known_ones(
    places: Places, version: str
) -> None:
    with pytest.raises(InputError) as raised:
        fetch(version, places.headers, ignore)
    assert str(raised.value) == (
        f"no known wheel contains CUB {version}\n"
        "  Known versions: 2.8.2, 3.0.1, 3.1.4, 3.2.0, 3.5.0, 3.6.0"
    )


def test_what_fails_is_reported_when_all_have_been_tried(places: Places, pip: FakePip) -> None:
    with pytest.raises(Problems) as raised:
        fetch_all(["1.0.0", "9.8.7", "2.0.0"], places.headers, ignore)
    assert [str(error).splitlines()[0] for error in raised.value.errors] == [
        "no known wheel contains CUB 1.0.0",
        "no known wheel contains CUB 2.0.0",
    ]
    assert current(places.headers) == "9.8.7"


def test_a_single_failure_is_reported_as_it_is(places: Places, pip: FakePip) -> None:
    pip.error = ProcessError(["pip"], 1, "offline")
    with pytest.raises(ProcessError):
        fetch_all(["9.8.7"], places.headers, ignore)


@pytest.mark.parametrize(
    ("here", "chosen", "last"),
    [([], [], "3.0.1"), (["3.1.4"], [], "3.1.4"), (["3.1.4"], ["3.5.0", "2.8.2"], "2.8.2")],
)
def test_all_versions_end_with_the_one_to_use(
    places: Places, here: list[str], chosen: list[str], last: str
) -> None:
    for version in here:
        make_root(places.headers / version, version)
    versions = all_versions(places.headers, chosen)
    assert versions[-1] == last
    assert set(versions) == {"2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"}


def test_the_overview_has_the_manifests_trees_and_those_that_are_here(places: Places) -> None:
    make_root(places.headers / "3.1.4", "3.1.4")
    make_root(places.headers / "3.3.0", "3.3.0")
    headers = overview(places.headers, None)
    assert headers.used is None
    assert headers.folder == str(places.headers)
    assert [(entry.version, entry.wheel, entry.state) for entry in headers.trees] == [
        ("2.8.2", "nvidia-cuda-cccl-cu12==12.9.27", "absent"),
        ("3.0.1", "nvidia-cuda-cccl==13.0.85", "absent"),
        ("3.1.4", "nvidia-cuda-cccl==13.1.115", "fetched"),
        ("3.2.0", "nvidia-cuda-cccl==13.2.86", "absent"),
        ("3.3.0", None, "current"),
        ("3.5.0", "nvidia-cuda-cccl==13.3.5.0.6", "absent"),
        ("3.6.0", "cuda-cccl==1.2.1", "absent"),
        ("rocprim@5.3.3", "librocprim-dev=5.3.3-4", "absent"),
        ("rocprim@5.7.1", "librocprim-dev=5.7.1-2", "absent"),
        ("rocprim@6.4.3", "librocprim-dev=6.4.3-2", "absent"),
        ("rocprim@7.2.4", "librocprim-dev=7.2.4-1~exp1", "absent"),
    ]


@pytest.mark.trees
def test_a_real_wheel_is_fetched_and_unpacked_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The wheel comes from the package index once and from the shared cache after that.
    monkeypatch.setenv("POLICYGEN_CACHE", str(cache_folder()))
    cub = fetch("3.0.1", tmp_path, ignore)
    assert (cub.version, cub.dialect) == ("3.0.1", "specializations")
    assert len(tuning_headers(cub)) == 17
    folders = sorted(path.name for path in (tmp_path / "3.0.1").iterdir())
    assert folders == ["cub", "cuda", "nv", "thrust"]
    files = [path for path in (tmp_path / "3.0.1").rglob("*") if path.is_file()]
    assert len(files) == 1691
