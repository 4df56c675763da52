"""An architecture that a tree does not have is told at once, with those that it has."""

import subprocess

import pytest

from tests.cli.tuned import run
from tests.results.build import Builder
from tests.rocprim.toy import make_toy
from tests.rocprim.toy_tables import make_toy as make_tables
from tests.trees.toys import make_root

CUB = "CUB 3.0.1 has no architecture {}\n  It has: sm50, sm52, sm60, "
ENUMERATED = "rocPRIM 4.2.0 has no architecture {}\n  It has: gfx906, gfx942, unknown.\n"
TABLES = "rocPRIM 2.10.9 has no architecture {}\n  It has: gfx803, gfx900, gfx906, gfx908, "
PLANNING = ("--db", "results.db")


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path):
    """Trees of each kind, where no process can be started."""
    monkeypatch.chdir(tmp_path)
    Builder(tmp_path / "results.db").table()
    make_root(tmp_path / "cub")
    make_toy(tmp_path / "rocprim")
    make_tables(tmp_path / "tables")

    def refuse(*_arguments, **_more):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.parametrize(
    ("command", "tree", "archs", "told"),
    [
        (("resolve",), "cub", "gfx90a", CUB.format("gfx90a")),
        (("resolve", "--compare", "rocprim"), "cub", "sm90", ENUMERATED.format("sm90")),
        (("audit", "coverage"), "cub", "sm90,gfx942:mi300x", CUB.format("gfx942:mi300x")),
        (("plan", *PLANNING), "cub", "gfx90a", CUB.format("gfx90a")),
        (("apply", *PLANNING), "cub", "gfx90a", CUB.format("gfx90a")),
        (("emit", *PLANNING), "cub", "gfx90a", CUB.format("gfx90a")),
        (("resolve",), "rocprim", "gfx90a,gfx942", ENUMERATED.format("gfx90a")),
        (("resolve",), "rocprim", "gfx90a:mi210", ENUMERATED.format("gfx90a:mi210")),
        (("audit", "coverage"), "rocprim", "sm90,sm80", ENUMERATED.format("sm80, sm90")),
        (("apply", *PLANNING), "rocprim", "sm90", ENUMERATED.format("sm90")),
        (("resolve",), "tables", "sm90", TABLES.format("sm90")),
    ],
)
def test_the_tree_has_others(capsys, command, tree, archs, told):
    status, out, err = run(capsys, *command, "--cub", tree, "--arch", archs, "-q")
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {told}")
