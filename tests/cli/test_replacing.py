"""Every `-o` of every command: what a person wrote stays, what policygen made is replaced."""

from pathlib import Path

import pytest

from policygen.demo.database import demo_database
from tests.cli.tuned import run
from tests.real_trees import tree
from tests.tiers import sampled

MINE = "written by hand\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    demo_database(tmp_path / "demo.db")


def refused(capsys, out, *command):
    """The command says at once that a file is not replaced; by force it is."""
    path = Path(out)
    path.write_text(MINE)
    status, printed, err = run(capsys, *command, out)
    assert (status, printed) == (2, "")
    assert err == (
        f"policygen: error: {out}: exists already and was not written by policygen\n"
        "  Choose another name, or use --force.\n"
    )
    assert path.read_text() == MINE
    assert run(capsys, *command, out, "--force")[0] in {0, 1}
    made = path.read_bytes()
    assert made != MINE.encode()
    path.write_bytes(made + b"\n")  # as another run would have made it
    assert run(capsys, *command, out)[0] in {0, 1}
    assert path.read_bytes() == made


GIVEN = ("--db", "demo.db", "--arch", "sm90", "--no-prove", "-q")


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_plan(capsys):
    refused(capsys, "plan.json", "plan", *GIVEN, "--cub", tree("3.0.1"), "-o")


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_header(capsys):
    refused(capsys, "mine.cuh", "emit", *GIVEN, "--cub", tree("3.6.0"), "-o")


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("form", sampled(["csv", "md", "html", "json"]))
def test_coverage(capsys, form):
    how = ("--json",) if form == "json" else ("--format", form)
    given = ("--cub", tree("3.0.1"), "--arch", "sm90", "-R", "cub.bench.reduce", "-q")
    refused(capsys, f"page.{form}", "audit", "coverage", *given, *how, "-o")


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("form", sampled(["md", "html", "json"], "md"))
def test_a_review(capsys, form):
    given = ("--cub", tree("3.0.1"), "--base", str(tree("3.0.1")), "-q", "--format", form)
    refused(capsys, f"review.{form}", "review", *given, "-o")


def test_a_plot(capsys):
    given = ("db", "plot", "demo.db", "-R", "cub.bench.radix", "-a", "T{ct}=I8", "-o")
    path = Path("plot.svg")
    path.write_text(MINE)
    assert run(capsys, *given, path)[0] == 2
    assert path.read_text() == MINE
    assert run(capsys, *given, path, "--force")[0] == 0
    assert run(capsys, *given, path)[0] == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table(capsys, kind):
    given = ("db", "export", "demo.db", "-o")
    path = Path(f"table.{kind}")
    path.write_text(MINE)
    assert run(capsys, *given, path)[0] == 2
    assert path.read_text() == MINE
    assert run(capsys, *given, path, "--force")[0] == 0
    assert run(capsys, *given, path)[0] == 0


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_patch_is_never_known_to_be_ours(capsys):
    """It looks as one that `git diff` made."""
    command = ("apply", *GIVEN, "--cub", tree("3.0.1"), "--patch", "change.patch")
    assert run(capsys, *command)[0] == 0
    assert run(capsys, *command)[0] == 2
    assert run(capsys, *command, "--force")[0] == 0
