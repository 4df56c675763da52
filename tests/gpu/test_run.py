"""A workload is measured everywhere or fails; what is there already is not measured again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from policygen.gpu.control import controlling
from policygen.gpu.database_writer import open_writer
from policygen.gpu.device import LostGpuError
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import PHASE, measure_workload
from policygen.process import Stopped
from policygen.results.samples import Decoder, decode
from tests.gpu.measuring import (
    ABOUT,
    ALGORITHM,
    LABELS,
    PATIENT,
    QUICK,
    RATIOS,
    SIZES,
    measure,
    measuring,
    points,
    query,
    rows,
    spot,
    task,
)
from tests.gpu.simulated import FACTS, Plan

ALL = {(label, size) for label in ("base", *LABELS) for size in SIZES}


@pytest.fixture
def db(tmp_path):
    return tmp_path / "run.db"


def test_all_variants_are_measured_on_all_runtime_workloads(db, tmp_path):
    told = []
    found = measure(db, tmp_path, progress=told.append)
    assert rows(db).keys() == ALL
    assert (dict(found.failed), dict(found.skipped), found.new) == ({}, {}, 15)
    assert [(one.phase, one.done, one.total) for one in told] == [
        (PHASE, done, 3) for done in range(4)
    ]
    assert told[0].running == (f"{ALGORITHM} T=I8 Elements=16",)
    (steps,) = zip(*query(db, "SELECT step FROM policygen_times"), strict=True)
    assert steps == tuple(f"{ALGORITHM} T=I8 Elements={size}" for size in SIZES)
    ((ended,),) = query(db, "SELECT ended FROM policygen_sessions")
    assert ended


def test_a_time_is_the_variant_s_own(db, tmp_path):
    measure(db, tmp_path)
    found = rows(db)
    ratio = found["base", 20][1] / found["ipt_2.tpb_64", 20][1]
    assert ratio == pytest.approx(1.25, abs=0.03)
    assert np.log2(found["base", 20][1] / found["base", 16][1]) == pytest.approx(4, abs=0.1)


def test_what_is_there_is_not_measured_again(db, tmp_path):
    measure(db, tmp_path, task(*LABELS[:2]))
    before = rows(db)
    found = measure(db, tmp_path, task(*LABELS))
    after = rows(db)
    assert after.keys() == ALL
    assert found.new == 9  # two variants, and base beside them
    assert {key: cells for key, cells in after.items() if key in before and key[0] != "base"} == {
        key: cells for key, cells in before.items() if key[0] != "base"
    }
    assert measure(db, tmp_path, task(*LABELS)).new == 0
    assert rows(db) == after


def test_base_is_measured_where_only_variants_are_there(db, tmp_path):
    measure(db, tmp_path)
    with measuring(db, Plan(str(tmp_path))) as (_, session):
        session.writer._connection.execute(
            f"DELETE FROM \"{ALGORITHM}.base\" WHERE variant = 'base'"
        )
    assert measure(db, tmp_path).new == 3
    assert rows(db).keys() == ALL


def test_workloads_share_a_table(db, tmp_path):
    measure(db, tmp_path)
    measure(db, tmp_path, task(workload="I16"))
    found = query(db, f'SELECT "T{{ct}}", count(*) FROM "{ALGORITHM}.base" GROUP BY 1')
    assert dict(found) == {"I8": 15, "I16": 15}


def test_who_fails_on_one_runtime_workload_is_not_asked_on_the_next(db, tmp_path):
    does = {"ipt_2.tpb_64": "wrong", "ipt_3.tpb_64": "sample: crash", "ipt_4.tpb_64": "memory"}
    found = measure(db, tmp_path, does=does)
    assert {label: one.kind for label, one in found.failed.items()} == {
        "ipt_2.tpb_64": "wrong",
        "ipt_3.tpb_64": "crash",
        "ipt_4.tpb_64": "memory",
    }
    wrong = [label for label, failure in found.failed.items() if failure.kind == "wrong"]
    assert wrong == ["ipt_2.tpb_64"]
    assert {label for label, _ in rows(db)} == {"base", "ipt_1.tpb_64"}
    told = query(db, "SELECT variant, kind, workload FROM policygen_failures ORDER BY variant")
    assert [(variant, kind) for variant, kind, _ in told] == [
        ("ipt_2.tpb_64", "wrong"),
        ("ipt_3.tpb_64", "crash"),
        ("ipt_4.tpb_64", "memory"),
    ]
    assert {'"16"' in workload for *_, workload in told} == {True}
    codes = query(db, "SELECT DISTINCT bench, code FROM runs WHERE code <> '0' ORDER BY 1")
    assert [code for _, code in codes] == ["1", "4", "2"]
    ((restarts,),) = query(db, "SELECT restarts FROM policygen_sessions")
    assert restarts == 1


def test_who_failed_is_told_again_and_not_asked_again(db, tmp_path):
    first = measure(db, tmp_path, does={"ipt_2.tpb_64": "wrong"})
    second = measure(db, tmp_path)
    assert second.failed == first.failed
    assert second.new == 0
    assert measure(db, tmp_path, task(LABELS[0])).failed == {}


def test_where_base_s_results_do_not_fit_twice_nothing_is_compared(db, tmp_path):
    found = measure(db, tmp_path, does={"base": "check: memory"})
    assert set(found.skipped.values()) == {"out of memory"}
    assert rows(db) == {}


def test_where_base_differs_from_itself_nothing_is_compared(db, tmp_path):
    found = measure(db, tmp_path, does={"base": "wrong"})
    assert set(found.skipped.values()) == {
        "base differs from itself: 3 of 65,536 elements differ, the first at 7"
    }
    assert rows(db) == {}


def test_a_runtime_workload_that_is_skipped_is_told(db, tmp_path):
    found = measure(db, tmp_path, skips=[18])
    assert found.skipped == {f"{ALGORITHM} T=I8 Elements=18": "the benchmark skips it"}
    assert {size for _, size in rows(db)} == {16, 20}


def test_throttling_is_noted(db, tmp_path):
    measure(db, tmp_path, throttled=[1])
    ((repeated, throttled),) = query(db, "SELECT repeated, throttled FROM policygen_sessions")
    assert (repeated, throttled) == (6, 0)


def test_a_gpu_that_is_lost_loses_no_row(db, tmp_path):
    """Base is timed 1 + 1 + 4 times 2 times on a runtime workload, each with one for nothing."""
    with pytest.raises(LostGpuError):
        measure(db, tmp_path, bases=[""] * 15 + ["sticky"] * 3)
    assert {size for _, size in rows(db)} == {16}
    assert measure(db, tmp_path).new == 10
    assert rows(db).keys() == ALL


def test_an_interrupt_says_what_is_kept(db, tmp_path):
    def interrupt(how_far):
        if how_far.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        measure(db, tmp_path, progress=interrupt)
    assert caught.value.args == (
        "1 of 3 runtime workloads are measured, and all written rows are kept; the same command"
        " resumes there.",
    )
    assert {size for _, size in rows(db)} == {16}


def test_hundreds_of_variants_are_measured(db, tmp_path):
    labels = [f"ipt_{number}" for number in range(1, 301)]
    many = task(*labels)
    measure(db, tmp_path, many, rounds=2)
    assert len(rows(db)) == 301 * 3


def test_two_gpus_share_a_database(db, tmp_path):
    """Each has its own runtime workloads: base and variants are of one card."""
    with open_writer(db) as writer, ThreadPoolExecutor() as pool:

        def on(number, size):
            folder = tmp_path / str(number)
            folder.mkdir()
            uuid = f"GPU-{number}"
            plan = Plan(str(folder), others=[uuid])
            about = replace(ABOUT, gpu=replace(FACTS, uuid=uuid))
            with (
                Decoder() as decoder,
                controlling(plan.command(), limits=PATIENT, watch=QUICK, locks=folder) as one,
            ):
                session = MeasuringSession(writer, about, decoder)
                wanted = replace(task(), points=points(size))
                return measure_workload(one, session, wanted, rounds=2, seed=1)

        found = list(pool.map(on, range(2), SIZES[:2]))
    assert [one.new for one in found] == [5, 5]
    assert {size for _, size in rows(db)} == set(SIZES[:2])
    assert len(query(db, "SELECT DISTINCT card FROM policygen_sessions")) == 2


def test_each_process_is_fresh_and_its_samples_join_the_row(db, tmp_path):
    wanted = task(*LABELS[:2])
    with measuring(db, Plan(str(tmp_path), ratios=RATIOS)) as (controller, session):
        found = measure_workload(controller, session, wanted, rounds=4, seed=7, processes=3)
        assert controller.restarts == 2
        times = session.times(spot(16))
        beside = session.beside(spot(16))
    assert found.new == 3 * 3 * len(SIZES)
    assert {label: len(took) for label, took in times.items()} == {
        "base": 3,
        **dict.fromkeys(LABELS[:2], 3),
    }
    assert len(beside) == 3
    samples = query(db, "SELECT samples FROM policygen_rows WHERE variant <> 'base'")
    assert samples == [(4,)] * (3 * 2 * len(SIZES))
    _, center, blob = rows(db)[LABELS[0], 16]
    assert len(decode(blob)) == 12
    assert decode(blob)[0] <= center <= decode(blob)[-1]


def test_only_processes_that_are_lacking_are_run(db, tmp_path):
    measure(db, tmp_path, task(*LABELS[:2]))
    with measuring(db, Plan(str(tmp_path), ratios=RATIOS)) as (controller, session):
        wanted = task(*LABELS[:3])
        found = measure_workload(controller, session, wanted, rounds=4, seed=7, processes=2)
        times = session.times(spot(20))
        again = measure_workload(controller, session, wanted, rounds=4, seed=7, processes=2)
    assert {label: len(took) for label, took in times.items() if label != "base"} == dict.fromkeys(
        LABELS[:3], 2
    )
    # Two that have one already, and one that has none: base runs beside them in both.
    assert found.new == len(SIZES) * (4 + 2)
    assert again.new == 0


def test_who_fails_in_one_process_is_not_asked_in_the_next(db, tmp_path):
    plan = Plan(str(tmp_path), ratios=RATIOS, does={"ipt_2.tpb_64": "wrong"})
    with measuring(db, plan) as (controller, session):
        wanted = task(*LABELS[:2])
        found = measure_workload(controller, session, wanted, rounds=4, seed=7, processes=2)
    wrong = [label for label, failure in found.failed.items() if failure.kind == "wrong"]
    assert wrong == ["ipt_2.tpb_64"]
    assert len(query(db, "SELECT * FROM policygen_failures")) == 1
