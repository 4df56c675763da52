"""Nothing is written to a tree that nobody named."""

import shutil
from pathlib import Path

import pytest

from policygen.app.apply import apply_plan
from policygen.app.plan import read_plan
from policygen.app.session import open_session
from policygen.errors import InputError
from policygen.trees.fetched import make_current
from tests.cli.tuned import HEADER, database, run, tuned, writable_tree
from tests.probing import header
from tests.trees.places import empty_machine

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
INSTALLED = "nvidia/cu13/include/cccl"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A machine whose only CUB is an installed wheel; its compiler is that of the tests."""
    found = empty_machine(tmp_path, monkeypatch)
    installed(found.site)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def installed(site: Path) -> Path:
    place = site / INSTALLED
    place.parent.mkdir(parents=True)
    return writable_tree(site / "unpacked").rename(place)


def fetched(headers: Path) -> Path:
    place = writable_tree(headers / "unpacked").rename(headers / "3.0.1")
    make_current(headers, "3.0.1")
    return place


def is_as_it_was(tree: Path) -> bool:
    return tuned(tree).read_bytes() == header("3.0.1", HEADER)


def given():
    return ("--db", database(Path("three.db")), "--arch", "sm90")


def test_an_installed_wheel_is_read_and_not_written(places, capsys):
    tree = places.site / INSTALLED
    status, out, err = run(capsys, "apply", *given())
    assert (status, out) == (2, "")
    assert err == (
        f"policygen: error: nothing is written to CUB 3.0.1 in {tree}: it was found automatically"
        " (by: wheel), not named with --cub\n"
        f"  To write to this tree, add --cub {tree}; to one of your own, --cub PATH."
        " --diff, --check and --patch FILE write to no tree.\n"
    )
    assert is_as_it_was(tree)
    assert not Path("policygen.db").exists()


def test_a_fetched_tree_is_named_by_its_version(places, capsys):
    tree = fetched(places.headers)
    status, _, err = run(capsys, "apply", *given())
    assert status == 2
    assert (
        "(by: cub_headers), not named with --cub\n  To write to this tree, add --cub 3.0.1; " in err
    )
    assert is_as_it_was(tree)


def test_a_toolkit_is_read_and_not_written(places, capsys):
    tree = places.toolkit / "include"
    shutil.move(places.site / INSTALLED, tree)
    status, _, err = run(capsys, "apply", *given())
    assert status == 2
    assert "(by: toolkit)" in err
    assert is_as_it_was(tree)


@pytest.mark.slow
@pytest.mark.usefixtures("workplace")
def test_the_tree_that_one_stands_in_is_written_to(capsys, monkeypatch, tree):
    monkeypatch.chdir(tree)
    status, out, _ = run(capsys, "apply", *given())
    assert (status, "[checkout]" in out) == (0, True)
    assert not is_as_it_was(tree)
    Path("three.db").unlink()


@pytest.mark.usefixtures("workplace")
def test_a_tree_that_the_settings_name_is_written_to(capsys, tree):
    Path("policygen.toml").write_text('cub = "tree"\n')
    assert run(capsys, "apply", "--config", "policygen.toml", *given())[0] == 0
    assert not is_as_it_was(tree)


@pytest.mark.slow
@pytest.mark.usefixtures("workplace")
def test_who_writes_nothing_needs_to_name_nothing(capsys, monkeypatch, tree):
    """And the library holds to it as the command does."""
    headers = tree.parent / "headers"
    headers.mkdir()
    place = fetched(headers)
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    for option in ("--diff", "--check", ("--patch", "change.patch")):
        more = option if isinstance(option, tuple) else (option,)
        assert run(capsys, "apply", *given(), *more)[0] == int(option == "--check")
        Path("three.db").unlink()
    assert run(capsys, "plan", *given(), "-o", "plan.json")[0] == 0
    session = open_session()
    planned = read_plan(session, Path("plan.json"))
    assert apply_plan(session, planned, write=False).changed
    with pytest.raises(InputError, match="it was found automatically"):
        apply_plan(session, planned)
    assert is_as_it_was(place)
