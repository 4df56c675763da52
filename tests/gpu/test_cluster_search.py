"""`policygen search --scheduler`: a whole search on a real cluster, and who is killed."""

import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from policygen import cache
from policygen.cli.main import main
from policygen.gpu import cluster as cluster_module
from tests.gpu.clustered import WORKERS
from tests.gpu.simulated_search import (
    QUICK,
    RATIOS,
    WHICH,
    document,
    once_each,
    processes,
    query,
    rungs,
    screened,
)
from tests.real_trees import tree
from tests.tiers import sampled

ROOT = Path(__file__).parent.parent.parent


def keep_apart(folder, patch):
    """What is pretended is kept nowhere else."""
    patch(cluster_module, "kept", lambda *what: cache.kept(*what, folder))
    patch(cluster_module, "keep", lambda *what: cache.keep(*what, folder))
    patch(cluster_module, "CONNECT", 5.0)


def arguments(folder, address, *more):
    where = ("search", "--cub", str(tree("3.6.0")), "--db", str(folder / "run.db"))
    return [*where, *WHICH, *QUICK, "--scheduler", address, *more]


@pytest.fixture
def ratios(cluster):
    cluster.plans(*[{"ratios": RATIOS}] * WORKERS)
    return cluster


@pytest.fixture
def run(ratios, tmp_path, monkeypatch):
    keep_apart(tmp_path, monkeypatch.setattr)
    return lambda *more: main(arguments(tmp_path, ratios.address, *more))


@pytest.mark.slow
def test_a_search_on_workers(run, ratios, tmp_path, capsys):
    assert run("--json", "-q") == 0
    once_each(tmp_path)
    found = document(capsys)
    (workload,) = found["workloads"]
    assert (found["gpu"], found["arch"]) == ("H200 (6144, 132, eccon)", "sm90")
    assert workload["counts"]["measured"] == 24
    assert workload["finalists"][0]["score"] > 1.05
    assert len(processes(tmp_path, 1)) >= WORKERS  # time that is left is spent on more processes
    assert len(set(ratios.compiled())) > 0
    ((cards,),) = query(tmp_path, "SELECT card FROM policygen_sessions")
    assert len(set(cards.split(","))) == WORKERS


@pytest.mark.slow
def test_what_was_measured_is_not_measured_again(run, ratios, tmp_path, capsys):
    assert run("-q") == 0
    before = rungs(tmp_path)
    assert run("-q") == 0
    assert rungs(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.3, 1.5, 3.0])
def test_workers_that_are_killed_lose_nothing(run, ratios, tmp_path, capsys, after):
    ratios.does(compile="takes long", seconds=0.2)
    killer = Timer(after, ratios.kill)
    killer.start()
    status = run("-q")
    killer.join()
    end = time.monotonic() + 60
    while status and time.monotonic() < end:
        # All were gone at once, as it began: the same command goes on when they are back.
        assert status in {2, 3}
        time.sleep(1)
        status = run("-q")
    assert status == 0
    once_each(tmp_path)


CLIENT = """
import sys
from pathlib import Path
from policygen.cli.main import main
from tests.gpu.test_cluster_search import keep_apart
keep_apart(Path(sys.argv[1]), setattr)
sys.exit(main(sys.argv[2:]))
"""


@contextmanager
def client(folder, address, *more):
    """The command in a process of its own, which can be killed; it ends with a test that fails."""
    told = arguments(folder, address, *more)
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(folder), *told],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def wait_for_rows(folder, count):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (folder / "run.db").exists():
            tables = query(folder, "SELECT name FROM sqlite_master WHERE name LIKE '%rungs'")
            if tables and len(rungs(folder)) >= count:
                return
        time.sleep(0.02)
    raise AssertionError("nothing was measured")


@pytest.mark.slow
@pytest.mark.parametrize("rows", sampled([1, 40], 40))
def test_a_client_that_is_killed_goes_on_at_once(run, ratios, tmp_path, capsys, rows):
    """The workers have still what they kept for it."""
    with client(tmp_path, ratios.address, "-q") as process:
        wait_for_rows(tmp_path, rows)
        process.kill()
    before = rungs(tmp_path)
    complete = {label for label, points in screened(tmp_path).items() if len(points) == 4}
    assert run("-q") == 0
    after = rungs(tmp_path)
    assert after[: len(before)] == before
    again = {label for label, _, rung, session, _ in after if rung == 1 and session > 1}
    assert again & complete <= {"base"}
    assert len(set(after)) == len(after)


@pytest.mark.slow
def test_ctrl_c_gives_the_gpus_back(run, ratios, tmp_path, capsys):
    with client(tmp_path, ratios.address, "-q") as process:
        wait_for_rows(tmp_path, 1)
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
    assert process.returncode == 130
    assert re.search(r"[\d,]+ variants are measured and kept; the same command resumes", error)
    (tmp_path / "other").mkdir()
    assert main(arguments(tmp_path / "other", ratios.address, "-q")) == 0
    once_each(tmp_path / "other")


@pytest.mark.slow
def test_ctrl_c_twice_ends_at_once(run, ratios, tmp_path):
    ratios.does(compile="takes long", seconds=20)
    with client(tmp_path, ratios.address, "-q") as process:
        begun = time.monotonic()
        while not ratios.compiled() and time.monotonic() - begun < 30:
            time.sleep(0.05)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        begun = time.monotonic()
        process.wait()
    assert process.returncode == 130
    assert time.monotonic() - begun < 15
    ratios.kill()


@pytest.mark.slow
def test_a_second_search_says_that_another_one_measures(run, ratios, tmp_path, capsys):
    with client(tmp_path, ratios.address, "-q", "--rounds", "40", "--processes", "9") as process:
        wait_for_rows(tmp_path, 1)
        process.send_signal(signal.SIGSTOP)  # it does not end, however long the other one takes
        (tmp_path / "other").mkdir()
        assert main(arguments(tmp_path / "other", ratios.address, "-q")) == 2
        assert "another search is using its GPU" in capsys.readouterr().err
        with client(tmp_path / "other", ratios.address, "-q", "--wait", "120") as waits:
            process.send_signal(signal.SIGCONT)
            process.wait()
    assert process.returncode == waits.returncode == 0
    once_each(tmp_path / "other")


@pytest.mark.slow
def test_another_toolchain_is_refused_with_the_workers_name(run, ratios, tmp_path, capsys):
    ratios.does(nvcc={"1": "12.9.86"})
    assert run("-q") == 2
    assert re.search(r"tcp://127.0.0.1:\d+: has nvcc 12.9.86, not \d+", capsys.readouterr().err)


@pytest.mark.slow
def test_gpus_of_different_models_are_refused(run, ratios, tmp_path, capsys):
    ratios.plans({}, {"model": "NVIDIA L4"})
    assert run("-q") == 2
    error = capsys.readouterr().err
    assert "the GPUs are different models" in error
    assert not (tmp_path / "run.db").exists()


def test_gpus_of_this_machine_are_not_those_of_workers(tmp_path, capsys):
    assert main(arguments(tmp_path, "tcp://127.0.0.1:9", "--gpu", "0,1")) == 2
    assert "--gpu chooses GPUs of this machine" in capsys.readouterr().err


def test_without_workers_it_waits_no_longer_than_it_may(run, monkeypatch, capsys):
    monkeypatch.setattr(cluster_module, "GPU", "TPU")
    assert run("-q", "--wait", "0.2") == 2
    assert "announces a GPU" in capsys.readouterr().err
