"""Results that come with policygen: for their CUB and architecture alone, and undamaged."""

import shutil
from pathlib import Path

import pytest

from policygen import rendering
from policygen.app import inputs
from policygen.app.plan import choosing
from policygen.model.plans import Given, Options
from tests.cli.tuned import run
from tests.probing import root

pytestmark = [pytest.mark.trees, pytest.mark.usefixtures("workplace")]


@pytest.mark.nvcc
@pytest.mark.slow
def test_an_overlay_from_shipped_results_has_the_confirmed_winners(capsys):
    given = ("--from", "h100", "--cub", root("3.6.0"), "-R", "cub.bench.segmented_scan.sum$")
    status, out, err = run(capsys, "overlay", *given, "-o", "tuned")
    assert status == 0, err
    assert "results of H100 80GB HBM3, CUDA 13.0.88" in err
    assert "tuning_segmented_scan.cuh" in out
    status, out, err = run(capsys, "emit", *given, "-o", "mine.cuh")
    assert status == 0, err
    assert "segmented_scan" in Path("mine.cuh").read_text("utf-8")


def test_commands_name_shipped_results():
    _, database = inputs.shipped_results("h100")
    assert choosing(Given(databases=(str(database),)), Options(arch="sm90")) == ["--from", "h100"]
    assert choosing(Given(databases=("h100.db",)), Options(arch="sm90"))[0] == "--db"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "h1000"), "policygen has no results h1000\n  It has: h100, h200."),
        (("--from", "h100", "--arch", "sm100"), "the results h100 are for sm90"),
        (("--from", "h100", "--db", "run.db"), "--from has results of its own; omit --db."),
    ],
)
def test_shipped_results_suit_their_architecture(capsys, options, message):
    status, _, err = run(capsys, "plan", "--cub", root("3.6.0"), *options)
    assert status == 2
    assert message in err


def test_shipped_results_suit_their_cub(capsys):
    status, _, err = run(capsys, "emit", "--from", "h100", "--cub", root("3.0.1"))
    assert status == 2
    assert "the results h100 are of CUB 3.6.0, not of CUB 3.0.1" in err


def test_damaged_results_are_not_used(capsys, tmp_path, monkeypatch):
    copy = tmp_path / "catalogue"
    shutil.copytree(rendering.folder("catalogue"), copy)
    with (copy / "h100.db.xz").open("ab") as file:
        file.write(b"more")
    monkeypatch.setattr(inputs, "folder", lambda _: copy)
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    status, _, err = run(capsys, "plan", "--cub", root("3.6.0"), "--from", "h100")
    assert status == 2
    assert "h100.db.xz is damaged: its digest differs" in err
