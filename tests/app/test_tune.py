"""`policygen tune` with a simulated GPU: a header where something is faster, and none else."""

import json

import pytest

from policygen import Filter, SearchWanted, TunedHeader, open_session, search_variants, tune_program
from policygen.cli.main import main
from policygen.model.emitted import TunedProgram
from tests.app.searched import WHICH, pretend, ratios
from tests.gpu.simulated import Plan
from tests.real_trees import tree


@pytest.fixture
def tune(tmp_path, monkeypatch):
    """Runs the command."""

    def run(*arguments, cub="3.6.0", worth=None, out=("-o", "my_tunings.cuh")):
        pretend(tmp_path, monkeypatch, Plan(str(tmp_path), ratios=worth or ratios()))
        which = ("--cub", str(tree(cub)), *WHICH, "--jobs", "1", "--budget", "30s")
        return main(["tune", *which, out[0], str(tmp_path / out[1]), *arguments])

    return run


@pytest.mark.slow
def test_a_header_has_what_was_won_and_its_proof(tune, capsys, tmp_path):
    assert tune("--json", "-q") == 0
    document = TunedProgram.model_validate_json(capsys.readouterr().out.splitlines()[-1])
    (workload,) = document.searched.workloads
    written = [one for one in document.emitted.actions if one.decision == "write"]
    assert [one.variant for one in written] == [workload.best]
    assert [one.passed_over for one in document.outcomes] == [None]
    assert document.emitted.proof.changed
    text = (tmp_path / "my_tunings.cuh").read_text()
    assert text == document.emitted.text
    assert "namespace my_tunings" in text
    assert workload.best in text
    assert (tmp_path / "my_tunings.db").exists()


def test_where_nothing_is_faster_there_is_no_header(tune, capsys, tmp_path):
    assert tune("-q", worth=dict.fromkeys(ratios(), 1.0)) == 1
    out = capsys.readouterr().out
    assert "): not faster than base beyond noise" in out
    assert "nothing was written" in out
    assert not (tmp_path / "my_tunings.cuh").exists()


def test_why_the_best_finalist_is_not_in_the_header_is_in_the_document(tune, capsys):
    assert tune("--json", "-q", worth=dict.fromkeys(ratios(), 1.0)) == 1
    document = TunedProgram.model_validate_json(capsys.readouterr().out.splitlines()[-1])
    (outcome,) = document.outcomes
    assert outcome.variant is None
    assert outcome.passed_over.endswith("which is under 1.0100")


def test_a_cub_without_policy_selectors_is_refused_before_anything_is_measured(
    tune, capsys, tmp_path
):
    assert tune("-q", cub="3.0.1") == 2
    assert "does not accept policy selectors" in capsys.readouterr().err
    assert not (tmp_path / "my_tunings.db").exists()


def test_a_header_that_is_there_is_not_lost(tune, capsys, tmp_path):
    (tmp_path / "my_tunings.cuh").write_text("// mine\n")
    assert tune("-q") == 2
    assert json.dumps(capsys.readouterr().err)
    assert (tmp_path / "my_tunings.cuh").read_text() == "// mine\n"


@pytest.mark.parametrize("header", [None, "my_tunings.cuh"])
def test_the_library_measures_all_that_it_may_without_a_way_to_stop_it(
    header, tmp_path, monkeypatch
):
    pretend(tmp_path, monkeypatch, Plan(str(tmp_path), ratios=dict.fromkeys(ratios(), 1.0)))
    session = open_session(str(tree("3.6.0")))
    given = (session, Filter(regex=WHICH[1], axes=WHICH[3::2]), SearchWanted(count=3))
    database = tmp_path / "run.db"
    if header is None:
        searched = search_variants(*given, database)
    else:
        searched = tune_program(*given, TunedHeader(tmp_path / header), database).searched
    (workload,) = searched.workloads
    assert (workload.counts.measured, workload.ended) == (3, "count")


OVERLAY = ("--overlay", "tuned-cub")


@pytest.mark.slow
def test_an_overlay_has_what_was_won_and_its_proof(tune, capsys, tmp_path):
    assert tune("--json", "-q", out=OVERLAY) == 0
    document = TunedProgram.model_validate_json(capsys.readouterr().out.splitlines()[-1])
    (workload,) = document.searched.workloads
    assert [one.variant for one in document.overlay.overlay.results] == [workload.best]
    assert not document.overlay.effect.wrong
    (name,) = document.overlay.overlay.replaced
    assert workload.best in (tmp_path / "tuned-cub" / name).read_text()
    assert (tmp_path / "tuned-cub.db").exists()


@pytest.mark.slow
def test_where_nothing_is_faster_there_is_no_overlay(tune, capsys, tmp_path):
    assert tune("-q", worth=dict.fromkeys(ratios(), 1.0), out=OVERLAY) == 1
    out = capsys.readouterr().out
    assert "): not faster than base beyond noise" in out
    assert "nothing was written" in out
    assert not (tmp_path / "tuned-cub").exists()


def test_a_folder_of_others_is_refused_before_anything_is_measured(tune, capsys, tmp_path):
    (tmp_path / "tuned-cub").mkdir()
    (tmp_path / "tuned-cub/notes.txt").write_text("mine")
    assert tune("-q", out=OVERLAY) == 2
    assert "holds no overlay" in capsys.readouterr().err
    assert not (tmp_path / "tuned-cub.db").exists()


def test_one_thing_is_written(tune, capsys):
    assert tune("--overlay", "tuned-cub") == 2
    assert "a header with -o, or a folder with --overlay" in capsys.readouterr().err


def test_a_workload_of_ones_own_has_no_overlay(capsys, tmp_path):
    file = "docs/examples/particles/particles.toml"
    folder = str(tmp_path / "tuned-cub")
    assert main(["tune", file, "--cub", str(tree("3.6.0")), "--overlay", folder]) == 2
    assert "an overlay changes CUB's own tuning headers" in capsys.readouterr().err
