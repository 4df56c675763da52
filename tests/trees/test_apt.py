from collections.abc import Callable
from pathlib import Path

import pytest

from policygen.errors import InputError, ProcessError
from policygen.trees import manifest
from policygen.trees.fetched import current_tree as current
from policygen.trees.fetched import differs, fetch, fetched, obtain_packages
from policygen.trees.manifest import Package
from tests.trees.debs import GOOD_DEBS, FakeApt, toy_part, toy_release
from tests.trees.places import Places, use_manifest

FIRST, SECOND = GOOD_DEBS
NO_APT = (
    "\n  rocPRIM's headers come from Debian packages; on other systems, name a checkout: --cub PATH"
)


def ignore(_line: str) -> None:
    pass


@pytest.fixture
def apt_get(places: Places, monkeypatch: pytest.MonkeyPatch) -> FakeApt:
    """An apt-get that brings toy packages, which the manifest knows as rocprim@9.9.9."""
    fake = FakeApt()
    monkeypatch.setattr("policygen.trees.fetched.process.run", fake)
    monkeypatch.setattr("policygen.trees.fetched.which", lambda name: f"/usr/bin/{name}")
    known = manifest.shipped()
    archive = known.archive.model_copy(update={"keyrings": ()})
    changed = known.model_copy(update={"releases": (toy_release(),), "archive": archive})
    use_manifest(changed, monkeypatch)
    return fake


def parts() -> tuple[Package, ...]:
    return toy_release().parts


def test_apt_is_asked_in_a_folder_of_its_own(places: Places, apt_get: FakeApt) -> None:
    lines: list[str] = []
    files = obtain_packages(parts(), lines.append)
    assert files == tuple(places.cache / "packages" / part.sha256 / part.file for part in parts())
    assert [file.read_bytes() for file in files] == list(GOOD_DEBS.values())
    assert apt_get.commands == [
        ["update", "--print-uris"],
        ["update"],
        ["download", "librocprim-dev=9.8.7-1"],
        ["download", "libamdhip64-dev=9.8.7-2"],
    ]
    mirror = "https://mirror.invalid/debian"
    assert apt_get.sources == f"deb [arch=amd64 target=Packages] {mirror} sid main\n"
    assert "#clear APT::Update::Post-Invoke;\n" in apt_get.settings
    assert 'Dir::Etc::sourceparts "/dev/null";\n' in apt_get.settings
    assert lines == [
        "Debian sid: reading the list of packages",
        "librocprim-dev=9.8.7-1: downloading",
        "libamdhip64-dev=9.8.7-2: downloading",
    ]
    assert sorted(path.name for path in places.cache.iterdir()) == ["packages"]
    assert obtain_packages(parts(), lines.append) == files
    assert len(apt_get.commands) == 4


def test_only_what_lacks_is_asked_for(places: Places, apt_get: FakeApt) -> None:
    file, _ = obtain_packages(parts(), ignore)
    file.write_bytes(b"half")
    lines: list[str] = []
    obtain_packages(parts(), lines.append)
    assert lines[0] == f"{FIRST}: the cached file is damaged"
    assert apt_get.commands[4:] == [
        ["update", "--print-uris"],
        ["update"],
        ["download", "librocprim-dev=9.8.7-1"],
    ]


def test_each_suite_is_a_source_that_debians_keys_sign(
    places: Places, apt_get: FakeApt, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [places.base / "none.pgp", places.base / "keys.gpg"]
    keys[1].touch()
    known = manifest.shipped()
    archive = known.archive.model_copy(update={"keyrings": tuple(map(str, keys))})
    use_manifest(known.model_copy(update={"archive": archive}), monkeypatch)
    both = (
        toy_part(FIRST, "usr/include/rocprim", suite="experimental"),
        toy_part(SECOND, "usr/include/hip"),
    )
    obtain_packages(both, ignore)
    assert apt_get.sources == "".join(
        f"deb [arch=amd64 target=Packages signed-by={keys[1]}]"
        f" https://mirror.invalid/debian {suite} main\n"
        for suite in ("experimental", "sid")
    )


def test_other_bytes_than_the_known_ones_are_refused(places: Places, apt_get: FakeApt) -> None:
    apt_get.files = {FIRST: b"other"}
    with pytest.raises(InputError) as raised:
        obtain_packages(parts(), ignore)
    assert str(raised.value).startswith(f"{FIRST} does not have the expected digest\n")
    assert str(raised.value).endswith("Nothing was unpacked; check which mirror apt uses")
    assert not [path for path in places.cache.rglob("*") if path.is_file()]


def test_nothing_that_is_brought_is_an_error(apt_get: FakeApt) -> None:
    apt_get.files = {}
    with pytest.raises(InputError) as raised:
        obtain_packages(parts(), ignore)
    assert str(raised.value) == f"apt-get should have downloaded {FIRST}, but downloaded nothing"


@pytest.mark.parametrize(
    "words",
    [
        "E: Version '9.8.7-1' for 'librocprim-dev' was not found\n",
        "W: slow\nE: Unable to locate package librocprim-dev\n",
    ],
)
def test_a_version_that_debian_has_no_more_is_told(apt_get: FakeApt, words: str) -> None:
    apt_get.error = ProcessError(["apt-get"], 100, words)
    with pytest.raises(InputError) as raised:
        obtain_packages(parts(), ignore)
    assert str(raised.value) == (
        "Debian sid has no librocprim-dev 9.8.7-1 any more\n"
        "  Choose another release (policygen headers list), or name a checkout: --cub PATH"
    )


def test_another_failure_is_shown_as_it_is(apt_get: FakeApt) -> None:
    apt_get.error = ProcessError(["apt-get"], 100, "E: Could not resolve host\n")
    with pytest.raises(ProcessError, match="Could not resolve"):
        obtain_packages(parts(), ignore)


def test_a_machine_without_apt_is_told_of_checkouts(places: Places) -> None:
    with pytest.raises(InputError) as raised:
        obtain_packages(parts(), ignore)
    assert str(raised.value) == "there is no apt-get on PATH" + NO_APT


def test_a_machine_of_another_distribution_is_told_of_checkouts(apt_get: FakeApt) -> None:
    apt_get.uris = "'https://mirror.invalid/ubuntu/dists/noble/InRelease' a_InRelease 0\n"
    with pytest.raises(InputError) as raised:
        obtain_packages(parts(), ignore)
    assert str(raised.value) == "apt's sources have no Debian mirror" + NO_APT


@pytest.mark.parametrize("place", ["cache", "cache/packages"])
def test_a_cache_that_cannot_be_written_is_an_error(
    places: Places, apt_get: FakeApt, place: str
) -> None:
    (places.base / place).parent.mkdir(exist_ok=True)
    (places.base / place).touch()
    with pytest.raises(InputError, match=r"^cannot (write|read) .*/cache"):
        obtain_packages(parts(), ignore)


def test_a_release_is_fetched_and_is_the_current_one_of_its_library(
    places: Places, apt_get: FakeApt
) -> None:
    lines: list[str] = []
    cub = fetch("rocprim@9.9.9", places.headers, lines.append)
    root = str(places.headers / "rocprim-9.9.9/include")
    assert (cub.root, cub.version, cub.dialect) == (root, "9.8.7", "configs")
    assert (cub.found, cub.includes, cub.changed) == ("cub_headers", (root,), False)
    assert lines[-1] == "librocprim-dev=9.8.7-1: unpacking"
    assert fetched(places.headers) == ()
    assert fetched(places.headers, None) == ("rocprim@9.9.9",)
    assert current(places.headers, "rocprim") == "rocprim@9.9.9"
    assert current(places.headers) is None
    assert (places.headers / ".rocprim-current").read_text() == "rocprim@9.9.9\n"
    count = len(apt_get.commands)
    assert fetch("rocprim@9.9.9", places.headers, ignore) == cub
    assert len(apt_get.commands) == count


def _edit(root: Path) -> None:
    (root / "hip/hip_runtime.h").write_text("// other\n")


def _add(root: Path) -> None:
    (root / "hip/more.h").touch()


@pytest.mark.parametrize(
    ("change", "file"),
    [(_edit, "include/hip/hip_runtime.h"), (_add, "include/hip/more.h")],
)
def test_a_release_that_was_changed_is_told_and_comes_back(
    places: Places, apt_get: FakeApt, change: Callable[[Path], None], file: str
) -> None:
    change(Path(fetch("rocprim@9.9.9", places.headers, ignore).root))
    difference = differs(places.headers, "rocprim@9.9.9")
    assert difference is not None
    assert difference == (file,)
    assert fetch("rocprim@9.9.9", places.headers, ignore).changed
    assert not fetch("rocprim@9.9.9", places.headers, ignore, again=True).changed


def test_what_stands_in_a_releases_place_is_not_deleted(places: Places, apt_get: FakeApt) -> None:
    (places.headers / "rocprim-9.9.9/mine").mkdir(parents=True)
    with pytest.raises(InputError) as raised:
        fetch("rocprim@9.9.9", places.headers, ignore)
    assert str(raised.value) == (
        f"{places.headers}/rocprim-9.9.9 exists, but contains no rocPRIM\n"
        "  Delete it and fetch again"
    )
    assert apt_get.commands == []


@pytest.mark.parametrize("text", ["rocprim@7.2.5", "rocprim@7.2"])
def test_a_release_that_is_not_known_is_an_error(places: Places, text: str) -> None:
    with pytest.raises(InputError) as raised:
        fetch(text, places.headers, ignore)
    assert str(raised.value) == (
        f"no known package contains {text}\n"
        "  Known: rocprim@5.3.3, rocprim@5.7.1, rocprim@6.4.3, rocprim@7.2.4"
    )
