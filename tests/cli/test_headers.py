import errno
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from policygen.cli.main import main
from policygen.errors import ProcessError
from policygen.installation import this_python
from policygen.trees import fetched, manifest
from policygen.trees.archives import listing_file
from tests.trees.debs import make_rocprim
from tests.trees.places import Places, empty_machine, fetched_whole, use_manifest
from tests.trees.toys import GOOD, TUNINGS, FakePip, make_root, toy_wheel

TABLE = """\
CUB    wheel                           dialect          specializations  state
2.8.2  nvidia-cuda-cccl-cu12==12.9.27  specializations  440              —
3.0.1  nvidia-cuda-cccl==13.0.85       specializations  440              fetched
3.1.4  nvidia-cuda-cccl==13.1.115      specializations  440              current
3.2.0  nvidia-cuda-cccl==13.2.86       specializations  444              —
3.3.0  —                               specializations  —                fetched
3.5.0  nvidia-cuda-cccl==13.3.5.0.6    selectors        441              —
3.6.0  cuda-cccl==1.2.1                selectors        441              —

release        package                      dialect  version         state
rocprim@5.3.3  librocprim-dev=5.3.3-4       configs  rocPRIM 2.10.9  —
rocprim@5.7.1  librocprim-dev=5.7.1-2       configs  rocPRIM 2.13.1  —
rocprim@6.4.3  librocprim-dev=6.4.3-2       configs  rocPRIM 3.4.1   —
rocprim@7.2.4  librocprim-dev=7.2.4-1~exp1  configs  rocPRIM 4.2.0   —
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return empty_machine(tmp_path, monkeypatch)


@pytest.fixture
def trees(places: Places, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Three fetched versions, 3.1.4 the current one."""
    versions = ("3.0.1", "3.1.4", "3.3.0")
    roots = {version: make_root(places.headers / version, version) for version in versions}
    fetched_whole(places, roots, monkeypatch)
    (places.headers / ".current").write_text("3.1.4\n")
    return places


@pytest.fixture
def pip(places: Places, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """A pip that brings CUB 9.8.7 and 3.0.1, the only versions of the manifest."""
    toys = (toy_wheel(), toy_wheel(version="3.0.1"))
    fake = FakePip({toys[0].file: GOOD})
    monkeypatch.setattr(fetched.process, "run", fake)
    changed = manifest.shipped().model_copy(update={"wheels": toys, "releases": ()})
    use_manifest(changed, monkeypatch)
    return fake


def test_list_shows_what_can_be_had_and_what_is_used(
    trees: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "list"]) == 0
    used = f"\nused here: CUB 3.1.4 in {trees.headers}/3.1.4 (found by: cub_headers)\n"
    assert capsys.readouterr() == (TABLE + used, "")


def test_list_can_say_less_and_more(trees: Places, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["headers", "list", "-q", "-v"]) == 0
    assert capsys.readouterr() == (TABLE, f"\nkept in {trees.headers}\n")


def test_list_works_where_no_tree_is_found(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "list"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("\n\nused here: none found\n")
    assert err == ""


def test_list_as_json_is_one_document(trees: Places, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["headers", "list", "--cub", "3.0.1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    root = f"{trees.headers}/3.0.1"
    assert document["format"] == "policygen/headers/1"
    assert document["folder"] == str(trees.headers)
    assert document["trees"][1] == {
        "version": "3.0.1",
        "library": "cub",
        "holds": None,
        "wheel": "nvidia-cuda-cccl==13.0.85",
        "dialect": "specializations",
        "specializations": 440,
        "state": "fetched",
        "changed": None,
    }
    assert document["used"] == {
        "root": root,
        "version": "3.0.1",
        "dialect": "specializations",
        "found": "--cub",
        "includes": [root],
        "changed": False,
    }


def test_fetch_prints_progress_to_stderr_and_the_tree_to_stdout(
    places: Places, pip: FakePip, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "fetch", "9.8.7", "-v"]) == 0
    root = places.headers / "9.8.7"
    assert capsys.readouterr() == (
        f"CUB 9.8.7: {root}\n",
        "toy==1.0: downloading\ntoy==1.0: unpacking\n"
        f"CUB 9.8.7 in {root} (found by: cub_headers), dialect specializations\n",
    )


def test_the_last_version_that_is_named_becomes_the_current_one(
    trees: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "fetch", "3.3.0", "3.0.1", "-q"]) == 0
    out = f"CUB 3.3.0: {trees.headers}/3.3.0\nCUB 3.0.1: {trees.headers}/3.0.1\n"
    assert capsys.readouterr() == (out, "")
    assert (trees.headers / ".current").read_text() == "3.0.1\n"


def test_fetch_all_keeps_the_current_tree(
    places: Places, pip: FakePip, capsys: pytest.CaptureFixture[str]
) -> None:
    make_root(places.headers / "3.0.1")
    assert main(["headers", "fetch", "--all", "--json", "-q"]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "policygen: warning: CUB 3.0.1 differs from its wheel: some of its files"
        " differ\n"
        "  policygen headers fetch 3.0.1 --again fetches it again\n"
    )
    states = [(tree["version"], tree["state"]) for tree in json.loads(out)["trees"]]
    assert states == [("3.0.1", "current"), ("9.8.7", "fetched")]
    assert json.loads(out)["used"]["version"] == "3.0.1"


def test_fetch_without_a_version_is_a_usage_error(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "fetch"]) == 2
    assert capsys.readouterr().err.endswith("Error: Name a VERSION, or give --all\n")


def test_fetch_of_an_unknown_version_lists_the_known_ones(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "fetch", "1.2.3"]) == 2
    assert capsys.readouterr() == (
        "",
        "policygen: error: no known wheel contains CUB 1.2.3\n"
        "  Known versions: 2.8.2, 3.0.1, 3.1.4, 3.2.0, 3.5.0, 3.6.0\n",
    )


def test_fetch_without_a_network_shows_what_pip_says(
    places: Places, pip: FakePip, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.error = ProcessError(["pip", "download"], 1, "ERROR: no route\n", "check the network")
    assert main(["headers", "fetch", "9.8.7", "-q"]) == 2
    assert capsys.readouterr() == (
        "",
        "policygen: error: command failed with status 1: pip download\n"
        "  ERROR: no route\n  check the network\n",
    )


def test_fetch_without_pip_says_how_to_get_it(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["headers", "fetch", "3.0.1", "-q"]) == 3
    remedy = f"{this_python()} -m ensurepip"
    assert capsys.readouterr().err == f"policygen: error: pip is missing\n  {remedy}\n"


@pytest.mark.parametrize(
    ("arguments", "version"),
    [([], "3.1.4"), (["3.0.1"], "3.0.1"), (["--cub", "3.3.0"], "3.3.0")],
)
def test_path_prints_the_include_folder_and_nothing_else(
    trees: Places, capsys: pytest.CaptureFixture[str], arguments: list[str], version: str
) -> None:
    assert main(["headers", "path", *arguments]) == 0
    assert capsys.readouterr() == (f"{trees.headers}/{version}\n", "")


def test_path_can_explain_itself_on_stderr(
    trees: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "path", "-v"]) == 0
    root = f"{trees.headers}/3.1.4"
    err = f"CUB 3.1.4 in {root} (found by: cub_headers), dialect specializations\n"
    assert capsys.readouterr() == (f"{root}\n", err)


def test_path_as_json_names_the_tree(trees: Places, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["headers", "path", "3.0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["used"]["root"] == f"{trees.headers}/3.0.1"


def test_path_gives_a_compiler_all_folders_of_a_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = tmp_path / "a checkout"
    make_root(top / "cub", "3.6.0")
    for folder in ("thrust", "libcudacxx/include"):
        (top / folder).mkdir(parents=True)
    assert main(["headers", "path", "--flags", "--cub", str(top)]) == 0
    flags = shlex.split(capsys.readouterr().out)
    assert flags == [f"-I{top / one}" for one in ("cub", "thrust", "libcudacxx/include")]


def test_path_of_a_version_that_is_not_here_names_the_command(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "path", "3.0.1"]) == 2
    assert capsys.readouterr().err == (
        f"policygen: error: CUB 3.0.1 is not in {places.headers}\n"
        "  Fetch it: policygen headers fetch 3.0.1\n"
    )


def test_path_takes_a_version_or_a_tree(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["headers", "path", "3.0.1", "--cub", "x"]) == 2
    assert capsys.readouterr().err.endswith("Error: VERSION and --cub exclude each other\n")


def _edit(root: Path) -> None:
    (root / TUNINGS / "tuning_for.cuh").write_text("// changed\n")


def _add(root: Path) -> None:
    (root / "cuda_runtime.h").write_text("// another one\n")


def _remove(root: Path) -> None:
    (root / TUNINGS / "tuning_for.cuh").unlink()
    (root / TUNINGS / "tuning_scan.cuh").touch()


def _pipe(root: Path) -> None:
    os.mkfifo(root / "cub/pipe.cuh")


HEADER = f"{TUNINGS}/tuning_for.cuh"


@pytest.mark.parametrize(
    ("change", "files"),
    [
        (_edit, HEADER),
        (_add, "cuda_runtime.h"),
        (_remove, f"{HEADER}, {TUNINGS}/tuning_scan.cuh"),
        (_pipe, "cub/pipe.cuh"),
    ],
)
def test_list_and_scan_agree_about_a_tree_that_was_changed(
    trees: Places,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    files: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "250")  # no path is folded
    change(trees.headers / "3.0.1")
    assert main(["headers", "list"]) == 0
    out, err = capsys.readouterr()
    assert re.findall(r"^3\..*fetched.*$", out, re.M) == [
        "3.0.1  nvidia-cuda-cccl==13.0.85       specializations  440              fetched, changed",
        "3.3.0  —                               specializations  —                fetched",
    ]
    assert err == (
        f"policygen: warning: CUB 3.0.1 differs from its wheel: {files}\n"
        "  policygen headers fetch 3.0.1 --again fetches it again\n"
    )
    for cub in ("3.0.1", str(trees.headers / "3.0.1"), str(trees.headers / "3.0.1/cub/device")):
        assert main(["scan", "--cub", cub, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cub"]["changed"]
        assert main(["scan", "--cub", cub]) == 0
        first = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
        assert first.endswith("headers/3.0.1 [--cub, changed since it was fetched]")
    assert main(["scan", "--json"]) == 0
    assert not json.loads(capsys.readouterr().out)["cub"]["changed"]


def test_many_changed_files_are_cut(trees: Places, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(8):
        (trees.headers / f"3.0.1/cub/{number}.cuh").touch()
    assert main(["headers", "list", "-q"]) == 0
    assert capsys.readouterr().err.startswith(
        "policygen: warning: CUB 3.0.1 differs from its wheel: "
        "cub/0.cuh, cub/1.cuh, cub/2.cuh, cub/3.cuh, cub/4.cuh and 3 more\n"
    )


@pytest.mark.parametrize("text", [None, "", "0  cub/version.cuh\n"])
def test_a_list_of_files_that_is_not_the_wheels_names_none(
    trees: Places, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    """Nor can one that was forged hide a change."""
    path = listing_file(trees.headers / "3.0.1")
    path.unlink() if text is None else path.write_text(text)
    assert main(["headers", "list"]) == 0
    assert capsys.readouterr().err == ""
    _edit(trees.headers / "3.0.1")
    assert main(["headers", "list"]) == 0
    assert capsys.readouterr().err.startswith(
        "policygen: warning: CUB 3.0.1 differs from its wheel: some of its files differ\n"
    )


def test_a_tree_that_was_changed_stays_until_it_is_wanted_again(
    places: Places, pip: FakePip, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["headers", "fetch", "9.8.7", "-q"]) == 0
    _edit(places.headers / "9.8.7")
    capsys.readouterr()
    root = f"CUB 9.8.7: {places.headers}/9.8.7\n"
    warning = (
        f"policygen: warning: CUB 9.8.7 differs from its wheel: {HEADER}\n"
        "  policygen headers fetch 9.8.7 --again fetches it again\n"
    )
    assert main(["headers", "fetch", "9.8.7", "-q"]) == 0
    assert capsys.readouterr() == (root, warning)
    assert main(["headers", "fetch", "9.8.7", "-q", "--again"]) == 0
    assert capsys.readouterr() == (root, "")
    assert len(pip.commands) == 1


def test_a_tree_that_cannot_be_read_is_told(
    trees: Places, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: str) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert main(["headers", "path", "3.0.1"]) == 2
    assert capsys.readouterr().err == (
        f"policygen: error: cannot read {trees.headers}/3.0.1: Permission denied\n"
        "  Make it readable, or name another tree with --cub\n"
    )


def test_a_link_that_leads_back_ends(trees: Places) -> None:
    (trees.headers / "3.0.1/cub/back").symlink_to("..")
    assert main(["headers", "list"]) == 0


def test_the_library_says_whose_tree_is_looked_for(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    make_root(places.headers / "3.0.1")
    make_rocprim(places.headers / "rocprim-5.7.1/include", "2.13.1")
    assert main(["scan", "-q", "--library", "cub", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cub"]["version"] == "3.0.1"
    assert main(["scan", "-q", "--library", "rocprim", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cub"]["version"] == "2.13.1"
    assert main(["resolve", "--cub", "3.0.1", "--library", "rocprim"]) == 2
    assert "contains CUB 3.0.1, not rocPRIM\n" in capsys.readouterr().err


def test_a_release_of_rocprim_is_shown_and_told_when_it_was_changed(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_rocprim(places.headers / "rocprim-5.7.1/include", "2.13.1")
    make_rocprim(places.headers / "rocprim-5.9.0/include", "2.14.0")
    assert main(["headers", "list", "--cub", "rocprim@5.7.1"]) == 0
    out, err = capsys.readouterr()
    assert "rocprim@5.7.1  librocprim-dev=5.7.1-2       configs  rocPRIM 2.13.1  fetched, ch" in out
    assert "rocprim@5.9.0  —                            configs  rocPRIM 2.14.0  current\n" in out
    assert out.endswith(
        f"used here: rocPRIM 2.13.1 in {root} (found by: --cub, changed since it was fetched)\n"
    )
    assert err == (
        "policygen: warning: rocprim@5.7.1 differs from its packages: some of its"
        " files"
        " differ\n  policygen headers fetch rocprim@5.7.1 --again fetches it again\n"
    )
    assert main(["headers", "path", "rocprim@5.7.1"]) == 0
    assert capsys.readouterr().out == f"{root}\n"
