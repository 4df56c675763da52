import shutil

import pytest

from tests.cli.tuned import database, tuned, writable_tree
from tests.probing import header, root


@pytest.fixture(scope="session")
def _place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workplace")
    writable_tree(folder)
    return folder


@pytest.fixture
def workplace(_place, monkeypatch):
    """A folder to stand in that holds a tree."""
    for path in _place.iterdir():
        if path.is_dir() and path.name != "tree":
            shutil.rmtree(path)
        elif path.name != "tree":
            path.unlink()
    for path in (_place / "tree").iterdir():
        if not (root("3.0.1") / path.name).exists():  # a test has left it
            path.unlink()
    tuned(_place / "tree").unlink(missing_ok=True)
    tuned(_place / "tree").write_bytes(header("3.0.1", tuned(_place).name))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(_place)
    return _place


@pytest.fixture
def tree(workplace):
    """CUB 3.0.1, with a header that can be written."""
    return workplace / "tree"


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """One workload of three-way partition that a variant wins, and one that it does not."""
    return database(tmp_path_factory.mktemp("databases") / "three.db")
