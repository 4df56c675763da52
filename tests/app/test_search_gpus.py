"""`policygen search` on several GPUs of one machine."""

import re
from contextlib import ExitStack
from threading import Timer

import pytest

from policygen.cli.main import main
from policygen.gpu.machine import gpu_lock
from tests.gpu.gpus import LOST
from tests.gpu.simulated_search import (
    document,
    once_each,
    processes,
    query,
    run,
    rungs,
    screened,
    simulated,
)
from tests.real_trees import tree


@pytest.mark.slow
def test_two_gpus_divide_what_is_screened_and_one_decides(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {}, {})
    assert run(tmp_path, "--gpu", "0,1", "--json", "-q") == 0
    once_each(tmp_path)
    (workload,) = document(capsys)["workloads"]
    assert workload["counts"]["measured"] == 24
    assert workload["finalists"][0]["interval"] is not None
    assert len(processes(tmp_path, 1)) >= 2
    assert len(processes(tmp_path, 3)) == 2  # --processes, each with all finalists
    ((cards,),) = query(tmp_path, "SELECT card FROM policygen_sessions")
    assert len(set(cards.split(","))) == 2


@pytest.mark.slow
def test_two_gpus_divide_what_a_campaign_screens(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {}, {})
    plan = tmp_path / "plan.toml"
    plan.write_text("[[workload]]\nbenchmark = 'reduce.sum'\naxes = ['T=F32', 'OffsetT=I32']\n")
    given = ("--cub", str(tree("3.6.0")), "--db", str(tmp_path / "run.db"), "--gpu", "all")
    effort = ("--jobs", "2", "--processes", "2", "--rounds", "4", "--budget", "40s")
    assert main(["campaign", str(plan), *given, *effort, "--json", "-q"]) == 0
    (workload,) = document(capsys)["workloads"]
    assert workload["finalists"][0]["verdict"] == "faster"
    assert len(processes(tmp_path, 1)) >= 2
    ((cards,),) = query(tmp_path, "SELECT card FROM policygen_sessions")
    assert len(set(cards.split(","))) == 2


def test_one_gpu_of_two_can_be_named(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {"refuses": "nobody may use it"}, {})
    assert run(tmp_path, "--gpu", "1", "-q") == 0
    once_each(tmp_path)


@pytest.mark.slow
def test_a_gpu_that_is_lost_in_between_is_told_and_the_other_goes_on(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {}, {"bases": [""] * 40 + LOST})
    assert run(tmp_path, "--gpu", "all", "-q") == 0
    assert "base failed 3 times in a row" in (error := capsys.readouterr().err)
    assert "; 1 GPU left\n" in error
    once_each(tmp_path)


@pytest.mark.slow
def test_when_all_are_lost_what_was_measured_is_kept(tmp_path, monkeypatch, capsys):
    lost = {"bases": [""] * 150 + LOST}
    simulated(tmp_path, monkeypatch, lost, lost)
    assert run(tmp_path, "--gpu", "0", "--gpu", "1", "-q") == 3
    assert "All measurements so far are kept" in capsys.readouterr().err
    before = rungs(tmp_path)
    assert before
    assert run(tmp_path, "--gpu", "0,1", "-q") == 0  # both are back
    assert rungs(tmp_path)[: len(before)] == before
    assert len(screened(tmp_path)) == 24


def test_gpus_of_different_models_are_refused(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {}, {"model": "NVIDIA L4"})
    assert run(tmp_path, "--gpu", "all", "-q") == 2
    error = capsys.readouterr().err
    assert "GPU 0 is NVIDIA H200; GPU 1 is NVIDIA L4" in error
    assert "their times are not comparable" in error
    assert not (tmp_path / "run.db").exists()


@pytest.mark.parametrize("given", [("one",), ("0,x",), ("all,0",), ("-1",), ("0,",)])
def test_what_is_no_number_of_a_gpu_is_refused(tmp_path, capsys, given):
    assert run(tmp_path, "--gpu", *given) == 2
    assert "is neither a GPU number nor `all`" in capsys.readouterr().err


def test_a_gpu_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    simulated(tmp_path, monkeypatch, {})
    assert run(tmp_path, "--gpu", "0,3", "-q") == 2
    assert "there is no GPU 3" in capsys.readouterr().err


def test_a_second_search_says_that_the_gpu_is_in_use(tmp_path, monkeypatch, capsys):
    (plan,) = simulated(tmp_path, monkeypatch, {})
    with gpu_lock(plan.others[0]):
        assert run(tmp_path, "-q") == 2
    error = capsys.readouterr().err
    assert re.search(r"another measurement is running on GPU-\d+: process \d+ of user \d+", error)
    assert "Wait until it has finished, or choose another GPU." in error


@pytest.mark.slow
def test_a_second_search_waits_for_the_first(tmp_path, monkeypatch, capsys):
    """Nothing is written before the first one has ended."""
    (plan,) = simulated(tmp_path, monkeypatch, {})
    there = []

    def first():
        there.append((tmp_path / "run.db").exists())
        held.close()

    with ExitStack() as held:
        held.enter_context(gpu_lock(plan.others[0]))
        ends = Timer(1.0, first)
        ends.start()
        assert run(tmp_path, "--wait", "60", "-q") == 0
        ends.join()
    assert there == [False]
    once_each(tmp_path)
