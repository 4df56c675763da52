"""The worker says who is at work before it runs, and what comes of it."""

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict, astuple
from pathlib import Path

import pytest

from policygen.gpu import worker
from policygen.gpu.device import MEMORY, DeviceError
from policygen.gpu.machine import WORKER, gpu_lock
from policygen.gpu.worker import STICKY, serve
from tests.gpu.simulated import BASE, FACTS, LAUNCH, Plan, SimulatedDevice, case, device, variants

GOOD, OTHER = variants("ipt_1", "ipt_2")
ROOT = Path(__file__).parents[2]


class Sink(io.BytesIO):
    """Knows how much had been said when a device was called."""


def told(tmp_path, *requests, **plan):
    """The status, and the answers."""
    made = device(Plan(str(tmp_path), **plan))
    sink = io.BytesIO()
    source = io.BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in requests))
    status = serve(made, source, sink)
    return status, [json.loads(line) for line in sink.getvalue().splitlines()]


OPEN = {"do": "open", "case": asdict(case(16))}
DONE = {"done": True}


def asked(do, *functions, **more):
    return {"do": do, "functions": [astuple(one) for one in functions], **more}


def test_the_facts_are_told(tmp_path):
    assert told(tmp_path, {"do": "facts"}) == (0, [{"facts": asdict(FACTS)}, DONE])


def test_launches_and_copies_are_told_by_who_knows_them(tmp_path):
    requests = OPEN, asked("reference", BASE), asked("check", GOOD), {"do": "bandwidth"}
    status, answers = told(tmp_path, *requests, copies="4e12")
    assert (status, answers[2:]) == (
        0,
        [
            {"at": 0},
            {"right": 0, "launch": asdict(LAUNCH)},
            DONE,
            {"at": 0},
            {"right": 0, "launch": asdict(LAUNCH)},
            DONE,
            {"bandwidth": 4e12},
            DONE,
        ],
    )
    assert told(tmp_path, {"do": "bandwidth"}) == (0, [DONE])
    failed = {"failed": None, "code": MEMORY, "words": "out of memory", "sticky": False}
    assert told(tmp_path, {"do": "bandwidth"}, copies="memory") == (0, [failed, DONE])


def test_a_check_has_an_answer_for_each(tmp_path):
    status, answers = told(
        tmp_path,
        OPEN,
        asked("reference", BASE),
        asked("check", GOOD, OTHER),
        does={"ipt_2": "wrong"},
    )
    assert status == 0
    assert answers == [
        {"open": True, "kept": False},
        DONE,
        {"at": 0},
        {"right": 0},
        DONE,
        {"at": 0},
        {"right": 0},
        {"at": 1},
        {"wrong": 1, "words": "3 of 65,536 elements differ, the first at 7"},
        DONE,
    ]


def test_samples_are_told_in_their_order(tmp_path):
    _, answers = told(tmp_path, OPEN, asked("sample", BASE, GOOD, order=[0, 1, 0]))
    assert [list(one) for one in answers] == [
        *(["open", "kept"], ["done"]),
        *(["at"], ["took"]) * 3,
        *(["clocks"], ["done"]),
    ]
    assert [one["at"] for one in answers if "at" in one] == [0, 1, 0]
    assert answers[-2] == {"clocks": {"sm": 1980, "throttled": []}}


def test_who_is_refused_is_not_asked_again_and_the_rest_goes_on(tmp_path):
    _, answers = told(
        tmp_path,
        OPEN,
        asked("sample", BASE, GOOD, order=[1, 0, 1]),
        does={"ipt_1": "sample: memory"},
    )
    assert answers[2:4] == [
        {"at": 1},
        {"failed": 1, "code": MEMORY, "words": "out of memory", "sticky": False},
    ]
    assert [one.get("at") for one in answers[4:]] == [0, None, None, None]


def test_an_error_that_stays_ends_the_process(tmp_path):
    status, answers = told(
        tmp_path, OPEN, asked("check", GOOD, OTHER), OPEN, does={"ipt_1": "sticky"}
    )
    assert status == STICKY
    assert answers[2:] == [
        {"at": 0},
        {
            "failed": 0,
            "code": 700,
            "words": "an illegal memory access was encountered",
            "sticky": True,
        },
    ]


def test_what_fails_outside_of_a_function_is_nobody_s(tmp_path):
    _, answers = told(tmp_path, OPEN, OPEN, opening=["memory"])
    assert answers == [
        {"failed": None, "code": MEMORY, "words": "out of memory", "sticky": False},
        DONE,
        {"open": True, "kept": False},
        DONE,
    ]


def test_who_is_at_work_is_told_before_it_runs(tmp_path):
    sink = io.BytesIO()
    said = []

    class Looking(SimulatedDevice):
        def sample(self, one):
            said.append(sink.getvalue().splitlines()[-1])
            return super().sample(one)

    device = Looking(Plan(str(tmp_path)))
    source = io.BytesIO(json.dumps(asked("sample", BASE, GOOD, order=[1, 0])).encode() + b"\n")
    buffered = io.BufferedWriter(Unbuffered(sink))
    device.open(case(16))
    serve(device, source, buffered)
    assert said == [b'{"at": 1}', b'{"at": 0}']


class Unbuffered(io.RawIOBase):
    """What has left the process."""

    def __init__(self, sink):
        self.sink = sink

    def writable(self):
        return True

    def write(self, data):
        return self.sink.write(data)


def test_the_gpu_is_held_before_anything_is_made_on_it(tmp_path):
    held = []
    device = SimulatedDevice(Plan(str(tmp_path)))
    requests = [{"do": "facts"}, OPEN]
    source = io.BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in requests))
    sink = io.BytesIO()
    serve(device, source, sink, lambda: held.append(len(sink.getvalue().splitlines())))
    assert held == [2]


def test_nobody_listens_any_more(tmp_path):
    class Broken(io.BytesIO):
        def flush(self):
            raise BrokenPipeError

    source = io.BytesIO(b'{"do": "facts"}\n')
    assert serve(SimulatedDevice(Plan(str(tmp_path))), source, Broken()) == 0


def test_a_device_that_cannot_be_closed_is_left(tmp_path):
    class Stuck(SimulatedDevice):
        def close(self):
            raise DeviceError(700, "no")

    assert serve(Stuck(Plan(str(tmp_path))), io.BytesIO(b""), io.BytesIO()) == 0


def started(tmp_path, **plan):
    return subprocess.Popen(
        Plan(str(tmp_path), **plan).command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


def test_a_worker_ends_when_who_asks_ends_also_in_a_run(tmp_path):
    """A variant that hangs does not hold the GPU for ever, when the controller was killed."""
    with started(tmp_path, does={"ipt_1": "hang"}) as process:
        for request in (OPEN, asked("check", GOOD)):
            process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(3)]
        assert json.loads(lines[-1]) == {"at": 0}
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_worker_waits_for_that_of_a_killed_measurement(tmp_path):
    with started(tmp_path) as process:
        with gpu_lock(FACTS.uuid, WORKER, folder=tmp_path):
            process.stdin.write(b'{"do": "facts"}\n' + json.dumps(OPEN).encode() + b"\n")
            process.stdin.flush()
            assert b"facts" in process.stdout.readline()
            assert json.loads(process.stdout.readline()) == DONE
        assert json.loads(process.stdout.readline()) == {"open": True, "kept": False}


def test_a_worker_does_not_wait_for_ever(tmp_path, monkeypatch, capfdbinary):
    """Here in this process, whose input ends at once."""
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    monkeypatch.setattr(worker, "_exit_with_parent", lambda: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(OPEN).encode())))
    kept = os.dup(1)
    try:
        with gpu_lock(FACTS.uuid, WORKER, folder=tmp_path):
            make = lambda: SimulatedDevice(Plan(str(tmp_path)))  # noqa: E731
            assert worker.run_worker(make, tmp_path) == STICKY
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    out = capfdbinary.readouterr().out
    assert b"another measurement is running on GPU-5f3b" in out


def test_a_worker_without_a_gpu_says_why(tmp_path):
    with started(tmp_path, refuses="no driver is loaded") as process:
        assert json.loads(process.stdout.readline()) == {"refused": "no driver is loaded"}
        assert process.wait(60) == STICKY


def test_the_real_device_is_loaded_by_the_program_alone(tmp_path, monkeypatch):
    """Its number and the runner's path are given to it."""
    made = []

    monkeypatch.setattr(worker, "CudaDevice", lambda *given: made.append(given))
    monkeypatch.setattr(worker, "run_worker", lambda make: make() or 0)
    assert worker.main(["1", "/runner.so", "/libcudart.so.13"]) == 0
    assert worker.main(["0", "/runner.so", ""]) == 0
    assert made == [
        (1, Path("/runner.so"), Path("/libcudart.so.13")),
        (0, Path("/runner.so"), None),
    ]


@pytest.mark.parametrize("code", [MEMORY, 9, 209, 701])
def test_a_launch_that_is_refused_leaves_the_process_as_it_was(code):
    assert not DeviceError(code, "no").sticky


@pytest.mark.parametrize("code", [0, 700, 719, 999])
def test_of_what_is_not_known_the_worst_is_thought(code):
    assert DeviceError(code, "no").sticky
