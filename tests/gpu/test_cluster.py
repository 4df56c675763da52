"""Workers of a real cluster compile and measure, and are killed while they do."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest

import policygen
from policygen import cache
from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.gpu import cluster as cluster_module
from policygen.gpu import machine
from policygen.gpu.cluster import ClusterCompiler, ClusterGpus, connected
from policygen.gpu.cluster_workers import GpuAsk
from policygen.gpu.compiling import ObjectSource
from policygen.gpu.device import LostGpuError
from policygen.gpu.machine import BusyGpuError, gpu_lock
from policygen.gpu.pool import ATTEMPTS, GpuPool, StopAskedError
from policygen.process import ending
from policygen.proof.compile import RefusedError
from policygen.proof.toolchain import find_toolchain
from tests.gpu import gpus
from tests.gpu.clustered import WORKERS, stay_idle
from tests.gpu.gpus import ALL, LABELS, measured, never
from tests.tiers import sampled

MACHINE = next(place for place in machine.PLACES if place.is_dir())
TERMS = (policygen.__version__, find_toolchain().version)


@pytest.fixture
def client(cluster):
    with connected(cluster.address, TERMS) as made:
        yield made


@pytest.fixture
def compiler(client, tmp_path, monkeypatch):
    """What is pretended is kept nowhere else."""
    monkeypatch.setattr(cluster_module, "kept", lambda *what: cache.kept(*what, tmp_path))
    monkeypatch.setattr(cluster_module, "keep", lambda *what: cache.keep(*what, tmp_path))
    return ClusterCompiler(client, find_toolchain(), tmp_path / "objects")


@pytest.fixture
def headers(tmp_path):
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "cub.cuh").write_text(str(tmp_path))  # no test has the headers of another
    return folder


def unit(text, *folders):
    return ObjectSource(text, tuple(map(str, folders)), "sm90")


@pytest.mark.slow
def test_an_object_is_made_by_a_worker_and_kept_here(cluster, compiler, headers):
    path = compiler.make(unit("int main;", headers))
    assert path.parent == compiler.folder
    assert path.read_bytes() == b"int main;"
    assert len(cluster.compiled()) == 1
    path.unlink()
    assert compiler.make(unit("int main;", headers)).read_bytes() == b"int main;"
    assert len(cluster.compiled()) == 1
    (headers / "more.cuh").write_text("")
    other = ClusterCompiler(
        replace(compiler.cluster, contents=type(compiler.cluster.contents)()),
        compiler.toolchain,
        compiler.folder,
    )
    other.make(unit("int main;", headers))
    assert len(cluster.compiled()) == 2


@pytest.mark.slow
def test_headers_are_sent_to_each_worker_once(cluster, compiler, headers, monkeypatch):
    sent = []
    send = compiler.cluster.client.submit

    def counted(work, *arguments, **how):
        if work is cluster_module.keep_part:
            sent.append(tuple(how["workers"]))
        return send(work, *arguments, **how)

    monkeypatch.setattr(compiler.cluster.client, "submit", counted)
    monkeypatch.setattr(cluster_module, "PART", 1 << 20)
    (headers / "large.cuh").write_bytes(Random(1).randbytes(5 << 19))
    cluster.does(compile="takes long", seconds=0.1)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda n: compiler.make(unit(f"int {n};", headers)), range(12)))
    assert len(set(cluster.compiled())) == WORKERS
    assert sorted(sent) == sorted(3 * [*set(sent)])
    assert len(set(sent)) == WORKERS


@pytest.mark.slow
def test_what_the_compiler_says_is_kept(cluster, compiler):
    cluster.does(compile="refuses")
    for _ in range(2):
        with pytest.raises(RefusedError) as caught:
            compiler.make(unit("int bad;"))
        assert caught.value.stderr == "main.cu(3): error: static assertion failed"
    assert len(cluster.compiled()) == 1


def test_what_is_no_fault_of_the_unit_is_not_kept(cluster, compiler):
    cluster.does(compile="is killed")
    for _ in range(2):
        with pytest.raises(ProcessError) as caught:
            compiler.make(unit("int large;"))
        assert (caught.value.status, caught.value.remedy) == (-9, "Is there enough memory?")
    assert len(cluster.compiled()) == 2
    cluster.does(compile="has no room")
    with pytest.raises(InputError, match="cannot write /scratch: No space left") as told:
        compiler.make(unit("int large;"))
    assert told.value.message.startswith("tcp://")
    cluster.does(compile="fails")
    with pytest.raises(InputError, match="failed: ValueError: nobody thought of this"):
        compiler.make(unit("int large;"))


@pytest.mark.slow
def test_a_worker_that_ends_while_it_compiles_costs_time_alone(cluster, compiler, headers):
    cluster.does(compile="ends its worker once")
    assert compiler.make(unit("int main;", headers)).read_bytes() == b"int main;"
    assert len(cluster.compiled()) == 2


@pytest.mark.slow
def test_a_unit_that_ends_all_workers_is_said_to(cluster, compiler):
    cluster.does(compile="ends its worker")
    with pytest.raises(ProcessError) as caught:
        compiler.make(unit("int main;"))
    assert caught.value.status == -signal.SIGKILL
    assert caught.value.remedy == "Is there enough memory?"
    assert "one after another" in caught.value.stderr


@pytest.mark.slow
@pytest.mark.parametrize("killed", sampled(range(3), 1))
def test_killed_workers_lose_no_unit(cluster, compiler, headers, killed):
    cluster.does(compile="takes long", seconds=0.2)
    with ThreadPoolExecutor(6) as executor:
        made = executor.map(lambda n: compiler.make(unit(f"int {killed}{n};", headers)), range(8))
        time.sleep(0.3 * killed + 0.1)
        cluster.kill()
        assert [path.read_text() for path in made] == [f"int {killed}{n};" for n in range(8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (("0.0.1", TERMS[1]), f"has policygen {policygen.__version__}, not 0.0.1"),
        ((TERMS[0], "12.9.86"), f"has nvcc {TERMS[1]}, not 12.9.86"),
    ],
)
def test_another_release_is_refused(cluster, compiler, terms, words):
    other = replace(compiler, cluster=replace(compiler.cluster, terms=terms))
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        other.make(unit("int main;"))
    assert caught.value.message.startswith("tcp://127.0.0.1:")
    assert "the same versions of policygen and nvcc" in caught.value.remedy
    assert cluster.compiled() == []


@pytest.mark.slow
def test_who_is_ending_waits_for_no_worker(cluster, compiler):
    cluster.does(compile="takes long", seconds=30)
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(compiler.make, unit("int main;"))
        time.sleep(0.5)
        with ending(), pytest.raises(ProcessError, match="policygen is ending"):
            future.result(5)
    cluster.kill()


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["content", "disk"])
def test_a_worker_that_cannot_keep_what_is_sent_is_not_asked_for_ever(
    cluster, client, monkeypatch, compiler, headers, broken
):
    if broken == "content":
        monkeypatch.setattr(type(client.contents), "data", lambda *_: b"another")
    else:
        for number in range(WORKERS):
            (cluster.folder / f"gpu{number}/full").touch()
    with pytest.raises(InputError, match=r"tcp://.* keeps losing the data sent to it"):
        compiler.make(unit("int main;", headers))


@pytest.fixture
def source(client, tmp_path):
    """Where the GPUs of workers come from; what it says."""
    said = []
    made = ClusterGpus(client, said.append)
    yield made, said
    made.leave()


@pytest.fixture
def unit_file(tmp_path):
    path = tmp_path / "unit.so"
    path.write_bytes(b"an object")
    return str(path)


@pytest.fixture
def owner(client, unit_file):
    return GpuAsk("this search", client.contents.file(unit_file))


def points(unit_file, labels=LABELS):
    def lying(one):
        return replace(one, library=unit_file)

    return [
        replace(
            point,
            case=replace(point.case, inputs=unit_file),
            base=lying(point.base),
            functions={label: lying(one) for label, one in point.functions.items()},
        )
        for point in gpus.points(labels)
    ]


@pytest.fixture
def pool(source, owner):
    made, said = source
    assert {one.name for one in made.seen(never).values()} == {"NVIDIA H200"}
    return GpuPool(made.first(owner, never), made, said.append)


@pytest.fixture
def impatient(cluster):
    """Workers that take a GPU from a search which is silent for a second."""
    cluster.client.run(stay_idle, 1.0)


@pytest.mark.slow
def test_workers_measure_side_by_side(pool, unit_file):
    asked = points(unit_file)
    looked = pool.look(asked, 1)
    assert [len(one.samples) for one in looked] == [12] * 3
    found = list(pool.rung(asked, 1, never))
    assert measured(found) == ALL
    assert {one.part for one in found} == set(range(WORKERS))


@pytest.mark.slow
def test_a_worker_that_ends_while_it_measures_loses_one_runtime_workload(
    cluster, pool, source, unit_file
):
    """It is started anew by its nanny, and takes part in the next rung."""
    plans = [{}, {}]
    plans[cluster.number(pool.gpus[0])] = {"does": {LABELS[0]: "sample: ends who asks"}}
    cluster.plans(*plans)
    found = list(pool.rung(points(unit_file), 1, never))
    assert measured(found) == ALL
    assert [re.sub(r"\d{4,}", "N", note) for note in source[1]] == [
        "the worker tcp://127.0.0.1:N has exited; 1 GPU left"
    ]
    cluster.settle()
    assert measured(list(pool.rung(points(unit_file), 1, never))) == ALL
    assert len(pool.gpus) == WORKERS


@pytest.mark.slow
def test_when_all_workers_end_one_that_is_started_anew_goes_on(cluster, pool, source, unit_file):
    cluster.plans(*[{"does": dict.fromkeys(LABELS[:2], "sample: ends who asks")}] * WORKERS)
    found = list(pool.rung(points(unit_file), 1, never))
    assert measured(found) == ALL
    assert len(source[1]) == 2
    assert source[1][1].endswith("has exited; another GPU continues")


@pytest.mark.slow
def test_work_that_ends_worker_after_worker_is_given_up(cluster, pool, unit_file):
    """Each that is asked for it ends, when it has had time to start."""
    for number in range(WORKERS):
        (cluster.folder / f"gpu{number}/ends").touch()
    with pytest.raises(LostGpuError, match=f"^{ATTEMPTS} GPUs in a row failed .* has exited"):
        list(pool.rung(points(unit_file), 1, never, together=True))


@pytest.mark.slow
def test_who_asks_to_stop_keeps_what_was_measured(pool, unit_file):
    taken = []

    def run():
        taken.extend(pool.rung(points(unit_file), 1, lambda: len(taken) >= 2))

    with pytest.raises(StopAskedError):
        run()
    assert 2 <= len(taken) < WORKERS * 3


@pytest.mark.slow
def test_a_gpu_is_one_searchs_until_it_is_given_back(client, pool, source, owner):
    other = ClusterGpus(client, lambda _: None)
    with pytest.raises(BusyGpuError, match="another search is using its GPU") as caught:
        other.first(replace(owner, owner="another search"), never)
    assert "--wait" in caught.value.remedy
    source[0].leave()
    assert len(other.first(replace(owner, owner="another search"), never)) == WORKERS
    other.leave()


@pytest.mark.slow
def test_a_second_search_waits(client, pool, source, owner):
    other = ClusterGpus(replace(client, patience=30.0), lambda _: None)
    timer = threading.Timer(0.7, source[0].leave)
    timer.start()
    assert other.first(replace(owner, owner="another search"), never)
    timer.join()
    other.leave()


@pytest.mark.slow
def test_who_waits_for_a_gpu_can_stop(client, pool, owner):
    other = ClusterGpus(replace(client, patience=30.0), lambda _: None)
    with pytest.raises(StopAskedError):
        other.first(replace(owner, owner="another search"), lambda: True)


@pytest.mark.slow
def test_the_same_search_goes_on_at_once(client, pool, owner):
    """One that was killed has given nothing back."""
    again = ClusterGpus(client, lambda _: None)
    assert len(again.first(owner, never)) == WORKERS


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_search_that_is_silent_for_long_loses_its_gpu(client, pool, source, owner, unit_file):
    """When it is free again, the search has it back."""
    other = ClusterGpus(replace(client, patience=20.0), lambda _: None)
    assert other.first(replace(owner, owner="another search"), never)
    with pytest.raises(BusyGpuError):
        list(pool.rung(points(unit_file), 1, never))
    other.leave()
    assert measured(list(pool.rung(points(unit_file), 1, never))) == ALL


@pytest.mark.slow
def test_a_gpu_on_which_somebody_else_measures_is_left_to_them(cluster, client, source, owner):
    made, said = source
    uuid = made.seen(never).popitem()[1].uuid
    with gpu_lock(uuid, folder=MACHINE):  # where the workers look
        assert len(made.first(owner, never)) == WORKERS - 1
    (note,) = said
    assert f"another measurement is running on {uuid}" in note
    assert len(made.more(never, waiting=False)) == 1


def test_gpus_of_another_model_are_refused(cluster, source, owner):
    made, _ = source
    cluster.plans({}, {"model": "NVIDIA L4"})
    assert {one.name for one in made.seen(never).values()} == {"NVIDIA H200", "NVIDIA L4"}
    with pytest.raises(InputError, match="has a different GPU model") as caught:
        made.first(owner, never)
    assert "L4 (6144, 132, eccon)" in caught.value.message


def test_a_gpu_that_is_lost_is_not_taken_again(cluster, pool, source, unit_file):
    cluster.plans({"bases": [""] * 3 + gpus.LOST}, {})
    assert measured(list(pool.rung(points(unit_file), 1, never))) == ALL
    assert len(pool.gpus) == 1
    assert measured(list(pool.rung(points(unit_file), 1, never))) == ALL
    assert len(pool.gpus) == 1


def test_without_a_worker_that_has_a_gpu_it_says_so(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "GPU", "TPU")
    made = ClusterGpus(client, lambda _: None)
    with pytest.raises(InputError, match=r"no worker of .* announces a GPU") as caught:
        made.seen(never)
    assert "--resources" in caught.value.remedy
    with pytest.raises(StopAskedError):
        made.seen(lambda: True)
    monkeypatch.setattr(cluster_module, "RESTART", 0.0)
    assert made.more(never, waiting=True) == []
    monkeypatch.setattr(cluster_module, "RESTART", 60.0)
    with pytest.raises(StopAskedError):
        made.more(lambda: True, waiting=True)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:9", "127.0.0.1:9"):
        with pytest.raises(LostGpuError, match=r"the Dask scheduler .* does not respond"):
            connected(address, TERMS).__enter__()


def test_a_scheduler_is_named_by_an_address_or_a_file():
    with pytest.raises(InputError, match="is neither an address nor a scheduler file"):
        connected("scheduler.json", TERMS).__enter__()


def test_a_scheduler_can_be_named_by_its_file(cluster, tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": cluster.address}))
    with connected(str(path), TERMS) as client:
        assert len(client.workers()) == WORKERS


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingToolError, match="distributed, for --scheduler, is missing") as told:
        connected("tcp://127.0.0.1:9", TERMS).__enter__()
    assert "[cluster]" in told.value.remedy


SCHEDULER = """
import distributed, sys
with distributed.LocalCluster(
    n_workers=1, processes=False, dashboard_address=":0", protocol="tcp"
) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_scheduler_that_ends_ends_the_search(tmp_path, monkeypatch, headers):
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        address = process.stdout.readline().strip()
        with connected(address, TERMS) as client:
            assert len(client.workers()) == 1
            process.kill()
            process.wait()
            with pytest.raises(LostGpuError, match="does not respond"):
                client.workers()
