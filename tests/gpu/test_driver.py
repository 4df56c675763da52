"""A search: all is tried once, luck does not win, and nothing is lost or measured twice."""

from collections import Counter
from contextlib import suppress
from statistics import fmean

import pytest

from policygen.app.search import FEWEST_PER_SLOT, PER_SLOT, _batch_per_slot
from policygen.gpu.rung_rows import SCREENING, SHARPER
from policygen.gpu.rungs import BaselineSamples, StopAskedError
from policygen.results.own_tables import LAST
from tests.gpu.measuring import ALGORITHM, SIZES
from tests.gpu.searching import (
    NAME,
    PretendedGpu,
    compiling,
    driving,
    query,
    workload,
    worth,
)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "run.db"


def rungs(db):
    """How often each variant has each rung on each runtime workload, base not counted."""
    rows = query(db, "SELECT variant, workload, rung FROM policygen_rungs WHERE variant <> 'base'")
    return Counter(rows)


def test_all_of_a_small_space_is_tried_once_and_the_best_wins(db):
    one, told = workload(), []
    with driving(db, one=one, told=told) as driver:
        assert driver.run() == "exhausted"
    assert one.leading[0] in {"ipt_8.tpb_32", "ipt_9.tpb_32"}
    assert one.leading[1] == pytest.approx(1.1, abs=0.003)
    # Base's own policy is one of them, and is not measured as a variant.
    assert len(one.tried) == len(one.scores) == one.counts.distinct - 1
    first = [n for (_, _, rung), n in rungs(db).items() if rung == SCREENING]
    assert first == [1] * len(one.scores) * len(SIZES)
    assert told[0][:2] == ("begun", "screening")
    assert [event for event, *_ in told][-3:] == ["rung", "rung", "ended"]


def test_what_is_stored_of_finalists_is_of_the_last_rung_alone(db):
    one = workload()
    with driving(db, one=one) as driver:
        driver.run()
    last = query(db, "SELECT DISTINCT variant FROM policygen_rungs WHERE rung = ?", LAST)
    assert {variant for (variant,) in last} == {"base", *one.last}
    counts = Counter(
        variant
        for (variant,) in query(db, "SELECT variant FROM policygen_rungs WHERE rung = ?", LAST)
    )
    assert counts.pop("base") == 3 * len(SIZES)
    assert set(counts.values()) == {3 * len(SIZES)}
    for variant in one.last:
        (own,) = query(
            db,
            "SELECT group_concat(center) FROM policygen_rungs WHERE rung = ? AND variant = ?"
            " AND workload LIKE '%\"16\"%'",
            LAST,
            variant,
        )
        (row,) = query(
            db,
            f'SELECT center FROM "{ALGORITHM}.base" WHERE variant = ? AND'
            ' "Elements{io}[pow2]" = 16',
            variant,
        )
        assert row[0] == pytest.approx(fmean(map(float, own[0].split(","))), rel=0.003)
    noise = query(db, "SELECT count(*) FROM policygen_noise")
    assert noise == [(3 * len(SIZES),)]


class FlatGpu(PretendedGpu):
    """No variant is faster than base, or slower."""

    def worth(self, label):
        return 1.0


def test_luck_of_the_first_rung_is_gone_in_the_last(db):
    one = workload(ipt="2:31:1", tpb="32:64:16")
    with driving(db, FlatGpu(noise=0.05), one=one, rounds=60, processes=5) as driver:
        driver.run()
    assert max(one.scores.values()) > 1.02
    assert max(one.last.values()) < 1.01
    assert fmean(one.last.values()) == pytest.approx(1.0, abs=0.005)


def test_who_fails_costs_itself_alone(db):
    one = workload()
    both = ("ipt_8.tpb_32", "ipt_9.tpb_32")  # whichever is asked for
    does = {**dict.fromkeys(both, "wrong"), "ipt_4.tpb_48": "crash", "ipt_5.tpb_48": "crash"}
    gpu = PretendedGpu(does=does)
    refused = {"ipt_6.tpb_64", "ipt_7.tpb_64"}
    with driving(db, gpu, one=one, compiles=compiling(refused)) as driver:
        driver.run()
    kinds = Counter(kind for kind, _ in one.failed.values())
    assert kinds == {"wrong": 1, "crash": 1, "compile": 1}
    assert one.count({"wrong"}) == 1
    assert not one.failed.keys() & (one.scores.keys() | one.last.keys())
    assert one.leading[0] in {"ipt_8.tpb_48", "ipt_9.tpb_48"}
    # Who fails on one runtime workload is not asked on the next.
    assert [size for labels, size, _ in gpu.asked if {*both} & {*labels}] == [16]


def test_what_base_skips_is_not_measured(db):
    one = workload()
    with driving(db, PretendedGpu(skips={18}), one=one) as driver:
        driver.run()
    assert [point.spot.workload["Elements{io}[pow2]"] for point in one.target.points] == [
        "16",
        "20",
    ]
    assert sum(point.weight for point in one.target.points) == pytest.approx(1)
    ((_, why),) = one.target.skipped
    assert why == "the benchmark skips it"


def test_where_base_cannot_run_the_workload_has_a_problem(db):
    one = workload()
    with driving(db, PretendedGpu(skips=set(SIZES)), one=one) as driver:
        driver.run()
    assert one.problem == "the benchmark skips it"
    assert not one.scores


def test_where_base_does_not_compile_the_workload_has_a_problem(db):
    one = workload()
    with driving(db, one=one, compiles=compiling(problem="nvcc refuses base")) as driver:
        driver.run()
    assert one.problem == "nvcc refuses base"


@pytest.mark.parametrize("count", [1, 5, 8, 11])
def test_as_many_are_tried_as_were_asked_for(db, count):
    one = workload()
    with driving(db, one=one, count=count) as driver:
        assert driver.run() == "count"
    assert len(one.tried) == count


class Clock:
    """Goes on by itself, as work takes time."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_the_budget_ends_it_and_the_finalists_still_decide(db):
    one = workload()
    with driving(db, one=one, budget=18.0, clock=Clock(3.0)) as driver:
        assert driver.run() == "budget"
    assert 0 < len(one.tried) < one.counts.distinct - 1
    assert one.last
    ((ended, spent),) = query(db, "SELECT ended, spent FROM policygen_searches")
    assert ended == "budget"
    assert spent > 0


def test_a_budget_that_is_spent_tries_nothing_more(db):
    first = workload()
    with driving(db, one=first, budget=18.0, clock=Clock(3.0)) as driver:
        driver.run()
    before = rungs(db)
    again, gpu = workload(), PretendedGpu()
    with driving(db, gpu, one=again, budget=18.0, clock=Clock(3.0)) as driver:
        assert driver.budget.before > 0
        assert driver.run() == "budget"
    assert rungs(db) == before
    assert gpu.asked == []
    assert again.last == pytest.approx(first.last)


@pytest.mark.parametrize("stops", range(18))
def test_stopped_anywhere_it_goes_on_and_measures_nothing_twice(db, stops):
    one = workload()
    with driving(db, PretendedGpu(stops=stops), one=one) as driver, suppress(StopAskedError):
        driver.run()
    while True:
        one = workload()
        try:
            with driving(db, PretendedGpu(), one=one) as driver:
                driver.run()
        except StopAskedError:
            continue
        break
    assert len(one.scores) == one.counts.distinct - 1
    whole = {
        (variant, rung)
        for (variant, _, rung), count in rungs(db).items()
        if rung in {SCREENING, SHARPER}
        for _ in range(count)
    }
    assert {variant for variant, rung in whole if rung == SCREENING} == set(one.scores)
    # What a rung had on all runtime workloads is not measured again.
    for (variant, size, rung), count in rungs(db).items():
        if rung != LAST:
            others = [n for (v, _, r), n in rungs(db).items() if (v, r) == (variant, rung)]
            assert count <= min(others) + 1, (variant, size, rung)
    again, gpu = workload(), PretendedGpu()
    with driving(db, gpu, one=again) as driver:
        driver.run()
    assert gpu.asked == []


@pytest.mark.parametrize("beside", [True, False])
def test_a_batch_is_compiled_while_another_is_screened_if_it_may(db, beside):
    order, gpu = [], PretendedGpu()
    compiles, rung = compiling(), gpu.rung

    def told_compile(batch):
        order.append("compile")
        return compiles(batch)

    def told_rung(points, seed, asked, **more):
        order.append("rung")
        return rung(points, seed, asked, **more)

    gpu.rung = told_rung
    with driving(db, gpu, compiles=told_compile, beside=beside, count=24) as driver:
        driver.run()
    # The first is screened alone, as it tells what a round takes.
    assert order[:3] == ["compile", "rung", "compile"]
    assert order.count("compile") == 3
    if not beside:
        assert order[:6] == ["compile", "rung"] * 3


def test_asked_to_stop_nothing_more_is_compiled(db):
    with driving(db) as driver:
        driver.bench.asked = lambda: True
        with pytest.raises(StopAskedError):
            driver.run()
    assert not rungs(db)


def test_larger_spaces_are_searched_near_what_is_good(db):
    one = workload("local", ipt="2:33:1", tpb="16:256:2")
    with driving(db, one=one, count=160, batch=16) as driver:
        driver.run()
    values = sorted(worth(label) for label in one.scores)
    # Later ones are better than what is drawn.
    labels = list(one.scores)
    assert fmean(map(worth, labels[-40:])) > fmean(map(worth, labels[:16]))
    assert values[-1] > 1.05
    assert NAME in driver.searches


class SlowGpu(PretendedGpu):
    """A look tells that a sample of the largest runtime workload takes a second."""

    def look(self, cases, seed):
        slow = [one.axes[0] == max(SIZES) for one, _ in cases]
        looked = super().look(cases, seed)
        pairs = zip(looked, slow, strict=True)
        return [BaselineSamples((0.5,) * 12, None) if held else one for one, held in pairs]


def test_of_a_batch_only_that_is_measured_for_which_there_is_time(db):
    one = workload()
    with driving(db, SlowGpu(), one=one, budget=100.0, batch=16, processes=1, rounds=1) as driver:
        driver.run()
    screened = {variant for (variant, _, rung) in rungs(db) if rung == SCREENING}
    assert screened == one.tried
    assert 4 <= len(screened) < 16
    assert one.last


def test_what_there_was_no_time_for_is_the_first_that_is_asked_for_next():
    one = workload()
    first = one.ask(8)
    one.put_back(first[5:])
    assert one.tried == set(first[:5])
    assert one.ask(2) == first[5:7]
    more = one.ask(4)
    assert more[0] == first[7]
    assert len(set(more)) == 4
    assert one.tried == {*first, *more}
    one.ask(100)
    assert not one.is_open
    one.put_back(more)
    assert one.is_open


def test_many_workloads_in_a_short_time_have_small_batches():
    assert _batch_per_slot(None, 9) == _batch_per_slot(600.0, 2) == PER_SLOT
    assert _batch_per_slot(90.0, 1) < PER_SLOT
    assert _batch_per_slot(90.0, 8) == FEWEST_PER_SLOT
