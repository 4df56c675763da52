"""An architecture that a tree does not have is told at once, with those that it has."""

import subprocess

import pytest

from tests.cli.tuned import run
from tests.real_trees import rocprim_tree, tree
from tests.results.build import Builder
from tests.rocprim.toy import make_toy
from tests.rocprim.toy_pickers import make_toy as make_pickers
from tests.rocprim.toy_tables import make_toy as make_tables
from tests.trees.toys import make_root

CUB = "CUB 3.0.1 has no architecture {}\n  It has: sm50, sm52, sm60, "
ENUMERATED = "rocPRIM 4.2.0 has no architecture {}\n  It has: gfx906, gfx942, unknown.\n"
TABLES = "rocPRIM 2.10.9 has no architecture {}\n  It has: gfx803, gfx900, gfx906, gfx908, "
GPUS = "rocPRIM 4.2.0 has no GPU {}\n  It has: mi50, mi100, mi300x, mi308x, rx7900.\n"
PLANNING = ("--db", "results.db")


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path):
    """Trees of each kind, where no process can be started."""
    monkeypatch.chdir(tmp_path)
    Builder(tmp_path / "results.db").table()
    make_root(tmp_path / "cub")
    make_toy(tmp_path / "rocprim")
    make_tables(tmp_path / "tables")
    make_pickers(tmp_path / "pickers")

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
        (("resolve",), "pickers", "gfx942:nosuch", GPUS.format("gfx942:nosuch")),
        (("resolve",), "pickers", "gfx942:mi300x,gfx906:a", GPUS.format("gfx906:a")),
        (("audit", "coverage"), "pickers", "gfx942:nosuch", GPUS.format("gfx942:nosuch")),
        (("plan", *PLANNING), "pickers", "gfx942:nosuch", GPUS.format("gfx942:nosuch")),
        (("apply", *PLANNING), "pickers", "gfx942:generic", GPUS.format("gfx942:generic")),
    ],
)
def test_the_tree_has_others(capsys, command, tree, archs, told):
    status, out, err = run(capsys, *command, "--cub", tree, "--arch", archs, "-q")
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {told}")


@pytest.fixture(scope="module")
def real_tree(request):
    """A release that is fetched before processes are refused."""
    version = request.param
    return rocprim_tree(version[8:]) if version.startswith("rocprim@") else tree(version)


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.parametrize(
    ("real_tree", "arch", "first", "known"),
    [
        ("3.0.1", "gfx90a", "CUB 3.0.1 has no architecture gfx90a", "sm90"),
        ("3.6.0", "gfx90a", "CUB 3.6.0 has no architecture gfx90a", "sm107"),
        ("rocprim@5.7.1", "gfx942", "rocPRIM 2.13.1 has no architecture gfx942", "gfx908"),
        ("rocprim@5.7.1", "sm90", "rocPRIM 2.13.1 has no architecture sm90", "gfx90a"),
    ],
    indirect=["real_tree"],
)
@pytest.mark.parametrize("command", [("resolve",), ("plan", *PLANNING)])
def test_a_release_names_those_that_it_has(real_tree, capsys, command, arch, first, known):
    status, out, err = run(capsys, *command, "--cub", real_tree, "--arch", arch, "-q")
    assert (status, out) == (2, "")
    problem, remedy = err.splitlines()
    assert problem == f"policygen: error: {first}"
    assert known in remedy.removeprefix("  It has: ").removesuffix(".").split(", ")
