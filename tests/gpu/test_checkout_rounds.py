"""Programs of a checkout's benchmarks run in rounds; who fails costs itself, and rows stay."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from policygen.app.databases import describe_databases
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError
from policygen.gpu import checkout_rounds
from policygen.gpu.checkout import BuiltPrograms, open_checkout
from policygen.gpu.checkout_rounds import CheckoutTask, measure_programs
from policygen.gpu.machine import BusyGpuError, gpu_lock
from policygen.gpu.measured_rows import About, open_measurements
from policygen.results.samples import Decoder
from tests.gpu.own_checkout import NAME, ProgramPlan, make_checkout
from tests.gpu.simulated import FACTS

pytestmark = pytest.mark.trees
# The one that the results of the fixture were measured on.
GPU = replace(FACTS, bus_width=6016)
WORKLOAD = {"T{ct}": "F32", "OffsetT{ct}": "I32"}
GOOD, OTHER = "ipt_8.tpb_128", "ipt_9.tpb_128"
SIZES = {"Elements": ("16", "20")}


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = make_checkout(tmp_path_factory.mktemp("cccl") / "cccl")
    return open_checkout(folder, re.compile(NAME)).benchmarks[NAME]


@pytest.fixture
def measure(tmp_path, benchmark):
    """Measures with programs of these plans, by label; the rows are in `run.db`."""
    made = {}

    def run(rounds=2, chosen=SIZES, gpu=GPU, **plans):
        for label, plan in {"base": ProgramPlan(), **plans}.items():
            kind = "base" if label == "base" else "variant"
            if label not in made:
                made[label] = plan.program(tmp_path / label, kind)
        programs = {
            label: made[label] for label in ("base", *(one for one in plans if one != "base"))
        }
        task = CheckoutTask(benchmark, WORKLOAD, BuiltPrograms(programs, {}), gpu, chosen)
        about = About("13.2.86", "v3.0.1", gpu, "nvbench", 1)
        with open_measurements(tmp_path / "run.db", about) as session:
            return measure_programs(task, session, rounds=rounds, seed=1, locks=tmp_path)

    return run


def rows(tmp_path, columns='variant, "Elements{io}[pow2]"'):
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        return connection.execute(
            f'SELECT {columns} FROM "{NAME}.base" ORDER BY variant, "Elements{{io}}[pow2]"'
        ).fetchall()


def runs(tmp_path):
    return [json.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]


def test_base_and_variants_run_in_turns_and_each_second_round_backwards(tmp_path, measure):
    found = measure(rounds=4, **{GOOD: ProgramPlan(ratio=2.0), OTHER: ProgramPlan()})
    assert (found.failed, found.skipped, found.new) == ({}, {}, 4 * 3 * 2)
    order = [one[0] for one in runs(tmp_path)]
    for at in (0, 6):
        assert sorted(order[at : at + 3]) == ["base", GOOD, OTHER]
        assert order[at + 3 : at + 6] == order[at : at + 3][::-1]
    assert rows(tmp_path) == [
        (label, size) for label in ("base", GOOD, OTHER) for size in ("16", "20")
    ]


def test_a_program_is_called_as_cccl_calls_it(tmp_path, measure):
    measure(rounds=1)
    assert runs(tmp_path) == [
        [
            *("base", "GPU-5f3b", "-a", "T{ct}=F32", "-a", "OffsetT{ct}=I32"),
            *("--jsonbin", "result.json", "--stopping-criterion", "entropy", "-d", "0"),
            *("-b", "base", "-a", "Elements{io}[pow2]=[16,20]"),
        ]
    ]


def test_rows_are_those_of_nvbench(tmp_path, measure):
    measure(rounds=1, chosen={}, **{GOOD: ProgramPlan(ratio=2.0)})
    cells = rows(tmp_path, "variant, center, bw, samples, gpu")
    assert len(cells) == 8
    assert {cell[4] for cell in cells} == {"H200 (6016, 132, eccon)"}
    for base, variant in zip(cells[:4], cells[4:], strict=True):
        assert base[1] / variant[1] == pytest.approx(2.0, rel=1e-6)
    with Decoder() as decoder:
        (samples,) = decoder.decode([cells[0][3]])
    # As the fixture has them.
    assert len(samples) == 502
    assert cells[0][2] == 0.007886461422268908
    (database,) = describe_databases(ResultFiles((str(tmp_path / "run.db"),))).databases
    assert [one.algorithm for one in database.tables] == [NAME]


def test_what_was_measured_is_not_measured_again(tmp_path, measure):
    measure(rounds=2, **{GOOD: ProgramPlan()})
    assert len(runs(tmp_path)) == 4
    assert measure(rounds=2, **{GOOD: ProgramPlan()}).new == 0
    assert len(runs(tmp_path)) == 4
    # One that is new runs beside base.
    found = measure(rounds=2, **{GOOD: ProgramPlan(), OTHER: ProgramPlan()})
    assert found.new == 8
    assert sorted(one[0] for one in runs(tmp_path)[4:]) == ["base", "base", OTHER, OTHER]


BAD = {
    "crash": ("crash", "it was ended by signal 11"),
    "hang": ("hang", "it did not finish within 1 seconds"),
    "fail": ("error", "it ended with 1: no kernel image is available"),
}


@pytest.mark.slow
@pytest.mark.parametrize("does", BAD)
def test_a_variant_that_fails_costs_itself_alone(tmp_path, measure, monkeypatch, does):
    if does == "hang":
        monkeypatch.setattr(checkout_rounds, "FLOOR", 1.0)
        monkeypatch.setattr(checkout_rounds, "TIMES_BASE", 0.0)
        monkeypatch.setattr(checkout_rounds, "_orders", lambda *_: [["base", "bad"]])
    found = measure(rounds=2, bad=ProgramPlan(does=does))
    kind, words = BAD[does]
    assert {label: (one.kind, one.reason) for label, one in found.failed.items()} == {
        "bad": (kind, words)
    }
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        noted = connection.execute("SELECT DISTINCT variant, kind FROM policygen_failures")
        assert noted.fetchall() == [("bad", kind)]
    # Nor is it run in another session.
    assert measure(rounds=3, bad=ProgramPlan()).failed.keys() == {"bad"}
    assert [one[0] for one in runs(tmp_path)].count("bad") == 1


def test_what_base_skips_is_left_out_and_what_a_variant_skips_is_its_failure(tmp_path, measure):
    base = ProgramPlan(skips=("16",), why="too small")
    found = measure(base=base, **{GOOD: ProgramPlan(skips=("16",))})
    (name,) = found.skipped
    assert name == "base T{ct}=F32 OffsetT{ct}=I32 Elements{io}[pow2]=16"
    assert list(found.skipped.values()) == ["too small"]
    assert found.failed == {}
    assert {size for _, size in rows(tmp_path)} == {"20"}


def test_a_variant_that_skips_what_base_runs_is_no_candidate(tmp_path, measure):
    measure(rounds=1)
    found = measure(rounds=3, **{GOOD: ProgramPlan(skips=("20",), why="out of memory")})
    assert found.failed[GOOD].reason == "1 runtime workloads were skipped: out of memory"
    found = measure(rounds=4, **{OTHER: ProgramPlan(empty=True)})
    assert found.failed[OTHER].reason == "2 runtime workloads were skipped: it took no samples"
    assert {label for label, _ in rows(tmp_path)} <= {"base", GOOD, OTHER}


def test_base_that_fails_ends_it(measure):
    with pytest.raises(InputError, match=r"base of cub\.bench\.reduce\.sum fails: it ended"):
        measure(base=ProgramPlan(does="fail"))


def test_base_that_skips_everything_ends_it(measure):
    plan = ProgramPlan(skips=("16", "20"))
    with pytest.raises(InputError, match=r"base of cub\.bench\.reduce\.sum fails: NVBench"):
        measure(base=plan)


def test_another_gpu_than_the_one_asked_for_is_told(measure):
    on_another = r"NVBench measured on B200 \(6016, 132, eccon\), not on H200"
    with pytest.raises(InputError, match=on_another):
        measure(base=ProgramPlan(gpu="NVIDIA B200"))


def test_a_gpu_that_somebody_measures_on_is_left_alone(tmp_path, measure):
    with gpu_lock(GPU.uuid, folder=tmp_path), pytest.raises(BusyGpuError):
        measure()


def test_a_size_that_the_benchmark_does_not_have_is_told(measure):
    with pytest.raises(InputError, match="Elements has no value 17"):
        measure(chosen={"Elements{io}[pow2]": ("17",)})


def test_who_waits_is_told_how_far_it_is(tmp_path, benchmark):
    program = ProgramPlan().program(tmp_path / "base", "base")
    task = CheckoutTask(benchmark, WORKLOAD, BuiltPrograms({"base": program}, {}), GPU, SIZES)
    about = About("13.2.86", "v3.0.1", GPU, "nvbench", 1)
    told = []
    with open_measurements(tmp_path / "run.db", about) as session:
        measure_programs(task, session, rounds=2, seed=1, locks=tmp_path, progress=told.append)
    assert [(one.done, one.total) for one in told] == [(0, 2), (1, 2), (2, 2)]
    assert told[0].running == (f"base of {NAME}",)
