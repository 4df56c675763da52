"""What was measured, written as NVBench has it, and read back."""

import json

import numpy as np
import pytest

from policygen.errors import InputError
from policygen.gpu.changes import AFTER
from policygen.gpu.nvbench_files import (
    ENOUGH,
    JOINED,
    MeasuredState,
    check_nvbench,
    nvbench_document,
    write_nvbench,
)
from policygen.results.nvbench import read_nvbench
from tests.gpu.measuring import ALGORITHM, IO, spot
from tests.gpu.simulated import FACTS
from tests.gpu.test_looks import change, looking

SAMPLES = np.array([1.0, 2.0, 3.0, 4.0, 10.0])


def values(state):
    """By tag, what a summary says."""
    return {
        one["tag"]: next(datum["value"] for datum in one["data"] if datum["name"] == "value")
        for one in state["summaries"]
        if not one["tag"].startswith("nv/json/bin")
    }


def written(*states):
    document, files = nvbench_document(f"{ALGORITHM}.base", states, FACTS, "demo.json-bin")
    return json.loads(json.dumps(document, allow_nan=False)), files


def test_what_is_written_is_read_back(tmp_path):
    first, second = change("I8"), change("I16")
    with looking(tmp_path, ratios={AFTER: 1.2}) as looks:
        looks.run([first, second])
        assert write_nvbench(tmp_path / "out", [first, second], looks.rows) == (JOINED,)
        own = {
            (label, one.spot.workload["T{ct}"], one.spot.workload[IO]): samples
            for made in (first, second)
            for one in made.spots
            for label, samples in looks.rows.samples(one.spot).items()
        }
    for side, label in (("before", "base"), ("after", AFTER)):
        run = read_nvbench(tmp_path / f"out/{side}/{ALGORITHM}.json")
        assert (run.algorithm, run.is_base) == (ALGORITHM, side == "before")
        assert (run.gpu, run.arch) == (FACTS.label, FACTS.arch)
        (bench,) = run.benches
        assert bench.axes == ("T{ct}", IO)
        assert len(bench.states) == 6
        for state in bench.states:
            expected = own[label, state.point["T{ct}"], state.point[IO]]
            assert list(state.samples) == pytest.approx(list(expected), rel=1e-7)
            assert state.center == pytest.approx(np.median(expected), rel=1e-6)


def test_a_document_has_what_scripts_of_nvbench_read():
    document, files = written(MeasuredState(spot(16), SAMPLES), MeasuredState(spot(20), SAMPLES))
    assert document["meta"]["argv"] == [f"{ALGORITHM}.base"]
    assert document["meta"]["version"]["json"]["string"] == "1.0.0"
    (device,) = document["devices"]
    assert (device["id"], device["name"], device["sm_version"]) == (0, "NVIDIA H200", 900)
    (bench,) = document["benchmarks"]
    assert (bench["name"], bench["devices"]) == ("base", [0])
    assert [(a["name"], a["type"], a["flags"]) for a in bench["axes"]] == [
        ("T{ct}", "type", ""),
        ("Elements{io}", "int64", "pow2"),
    ]
    assert bench["axes"][1]["values"][0] == {
        "input_string": "16",
        "description": "2^16 = 65536",
        "value": 65536,
    }
    state = bench["states"][0]
    assert state["name"] == "Device=0 T{ct}=I8 Elements{io}=2^16"
    assert state["axis_values"] == [
        {"name": "T{ct}", "type": "string", "value": "I8"},
        {"name": "Elements{io}", "type": "int64", "value": "65536"},
    ]
    assert {tag.removeprefix("nv/cold/"): float(v) for tag, v in values(state).items()} == {
        "sample_size": 5,
        "time/gpu/min": 1.0,
        "time/gpu/max": 10.0,
        "time/gpu/mean": 4.0,
        "time/gpu/stdev/absolute": pytest.approx(12.5**0.5),
        "time/gpu/stdev/relative": pytest.approx(12.5**0.5 / 4),
        "time/gpu/q1": 2.0,
        "time/gpu/median": 3.0,
        "time/gpu/q3": 4.0,
        "time/gpu/iqr/absolute": 2.0,
        "time/gpu/iqr/relative": pytest.approx(2 / 3),
    }
    assert list(files) == ["demo.json-bin/0.bin", "demo.json-bin/1.bin"]
    assert list(np.frombuffer(files["demo.json-bin/0.bin"], "<f4")) == list(SAMPLES)


def test_few_samples_tell_no_noise():
    document, _ = written(MeasuredState(spot(16), SAMPLES[: ENOUGH - 1]))
    told = values(document["benchmarks"][0]["states"][0])
    assert told["nv/cold/time/gpu/stdev/relative"] is None
    assert told["nv/cold/time/gpu/mean"] == "2.5"


def test_axes_of_other_kinds_are_numbers_or_words():
    row = spot(16)
    states = [
        MeasuredState(type(row)(row.algorithm, "base", {"Bins": bins, "Entropy": "0.544"}), SAMPLES)
        for bins in ("32", "-1")
    ]
    document, _ = written(*states)
    (bench,) = document["benchmarks"]
    assert [(a["name"], a["type"], a["flags"]) for a in bench["axes"]] == [
        ("Bins", "int64", ""),
        ("Entropy", "string", ""),
    ]
    assert bench["states"][1]["name"] == "Device=0 Bins=-1 Entropy=0.544"
    assert [one["value"] for one in bench["states"][1]["axis_values"]] == ["-1", "0.544"]


def test_what_is_skipped_is_written_with_its_reason(tmp_path):
    one = change(sizes=(16, 18))
    with looking(tmp_path, skips=[16], ratios={AFTER: 1.2}) as looks:
        looks.run([one])
        write_nvbench(tmp_path / "out", [one], looks.rows)
    (bench,) = read_nvbench(tmp_path / f"out/after/{ALGORITHM}.json").benches
    assert [state.point[IO] for state in bench.states] == ["18"]
    (skipped,) = bench.skipped
    assert skipped.point[IO] == "16"
    assert skipped.reason == next(iter(one.skipped.values()))


def test_where_nothing_was_measured_it_says_so(tmp_path):
    one = change()
    with looking(tmp_path, budget=1e-9) as looks:
        looks.run([one])
        (told,) = write_nvbench(tmp_path / "out", [one], looks.rows)
    assert told.endswith("no measurements to write")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    check_nvbench(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    check_nvbench(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not empty"):
        check_nvbench(tmp_path)
    with pytest.raises(InputError, match="cannot be written to"):
        check_nvbench(tmp_path / "file")


def test_a_disk_that_refuses_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    one = change(sizes=(16,))
    with looking(tmp_path, ratios={AFTER: 1.2}) as looks:
        looks.run([one])
        monkeypatch.setattr("policygen.gpu.nvbench_files.write_atomically", refuse)
        with pytest.raises(InputError, match=r"cannot write .*: No space left"):
            write_nvbench(tmp_path / "out", [one], looks.rows)
