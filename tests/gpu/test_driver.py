"""A search: all is tried once, luck does not win, and nothing is lost or measured twice."""

from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from statistics import fmean
from threading import Event
from time import sleep
from types import SimpleNamespace

import pytest

from policygen.gpu import driver as driver_module
from policygen.gpu import rungs as rungs_module
from policygen.gpu.candidates import BEHIND, SearchBench
from policygen.gpu.driver import BATCH, BESIDE, FINAL_SHARE, LOOK, UNSCORED, SearchDriver
from policygen.gpu.pool import StopAskedError
from policygen.gpu.rungs import RungRule, SearchTarget, survivors
from policygen.gpu.statistics import spot_weights
from policygen.model.workload import parse_label
from policygen.results.own_tables import LAST, SCREENING, SHARPER
from tests.gpu.measuring import ALGORITHM, SIZES
from tests.gpu.searching import NAME, PretendedGpu, compiling, driving, query, workload, worth


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
    assert len(one.tried) == len(one.scores) + len(one.dropped) == one.counts.distinct - 1
    for label in one.scores:  # a first sample on the largest, then all
        counts = [n for (name, _, rung), n in rungs(db).items() if (name, rung) == (label, 1)]
        assert sorted(counts) == [1, 1, 2]
    assert told[0][:2] == ("begun", "screening")
    assert [event for event, *_ in told][-3:] == ["rung", "rung", "ended"]


def test_a_finished_search_that_runs_again_confirms_no_others(db):
    """Base may be noisier then, so that more could be the best."""
    with driving(db, one=workload()) as driver:
        driver.run()
    before, again = rungs(db), workload()
    with driving(db, PretendedGpu(noise=0.1), one=again) as driver:
        driver.run()
    assert rungs(db) == before
    assert again.last


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
    with driving(db, FlatGpu(noise=0.065), one=one, rounds=60, processes=5) as driver:
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
    assert one.wrong == 1
    assert not one.failed.keys() & (one.scores.keys() | one.last.keys())
    assert one.leading[0] in {"ipt_8.tpb_48", "ipt_9.tpb_48"}
    # What is wrong is noticed after the first sample, and does not run on the next workload.
    assert [size for labels, size, _ in gpu.asked if {*both} & {*labels}] == [20, 16]


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


LARGE = {"ipt": "2:63:1", "tpb": "32:640:2"}
SHORT = 4.0
"""Seconds of a search in which compiling and measuring take real time."""


class TimedGpu(PretendedGpu):
    """Takes as long as samples do; only the largest runtime workload takes time."""

    sleep = staticmethod(sleep)
    opening = 0.02

    def look(self, points, seed):
        return [replace(one, opening=0.02, cost=0.002) for one in super().look(points, seed)]

    def rung(self, points, seed, asked, *, together=False, fresh=True):
        for result in super().rung(points, seed, asked, together=together, fresh=fresh):
            self.sleep(0.002 * sum(map(len, result.samples.values())) + self.opening * fresh)
            yield result


def timed_compiling(name, labels):
    """Headers take 0.1 s, a variant half of it."""
    sleep(0.1 + 0.05 * len(labels))
    return compiling()(name, labels)


@pytest.fixture
def quick_processes(monkeypatch):
    monkeypatch.setattr(rungs_module, "RESTART", 0.05)
    monkeypatch.setattr(driver_module, "STORED", 0.0)


def timed(db, budget, one):
    return driving(db, TimedGpu(), one=one, budget=budget, compiles=timed_compiling)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_the_budget_is_kept_and_used_and_the_finalists_decide(db):
    one = workload("local", **LARGE)
    with timed(db, SHORT, one) as driver:
        assert driver.run() == "budget"
    assert 20 < len(one.tried) == len(one.scores) + len(one.dropped) < one.counts.distinct - 1
    assert one.last
    ((ended, spent),) = query(db, "SELECT ended, spent FROM policygen_searches")
    assert ended == "budget"
    assert 0.85 * SHORT < spent < 1.15 * SHORT


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_a_budget_that_is_spent_tries_nothing_more(db):
    first = workload("local", **LARGE)
    with timed(db, SHORT, first) as driver:
        driver.run()
    before = rungs(db)
    again, gpu = workload("local", **LARGE), PretendedGpu()
    with driving(db, gpu, one=again, budget=SHORT / 2) as driver:
        assert driver.budget.before > 0
        assert driver.run() == "budget"
    assert rungs(db) == before
    assert gpu.asked == []
    assert again.last == pytest.approx({label: first.last[label] for label in again.last})
    assert again.leading == first.leading


@pytest.mark.slow
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
    assert len(one.scores) + len(one.dropped) == one.counts.distinct - 1
    whole = {
        (variant, rung)
        for (variant, _, rung), count in rungs(db).items()
        if rung in {SCREENING, SHARPER}
        for _ in range(count)
    }
    assert {variant for variant, rung in whole if rung == SCREENING} == {*one.scores, *one.dropped}
    # What a rung had on all runtime workloads is not measured again.
    for (variant, size, rung), count in rungs(db).items():
        if rung != LAST:
            others = [n for (v, _, r), n in rungs(db).items() if (v, r) == (variant, rung)]
            assert count <= min(others) + 2, (variant, size, rung)
    again, gpu = workload(), PretendedGpu()
    with driving(db, gpu, one=again) as driver:
        driver.run()
    assert gpu.asked == []


def test_what_was_stopped_after_its_first_sample_is_tried_first_and_once():
    one = workload()
    scored, _, begun = one.ask(4), one.ask(2), one.ask(3)
    again = workload()
    ratios = dict.fromkeys([*scored, *begun], 1.0)
    again.remember(dict.fromkeys(scored, 1.0), ratios, ratios, {})
    assert again.tried == {*scored}
    assert again.ask(3) == begun
    rest = again.ask(10_000)
    assert not {*rest} & {*scored, *begun}
    assert len(rest) == again.counts.distinct - 1 - 7


def test_units_are_compiled_while_others_are_measured(db):
    """Each result is followed by what was compiled meanwhile, and cores never wait for the GPU."""
    gpu, compiles = PretendedGpu(), compiling()
    busy, rung = [], gpu.rung

    def slow_rung(points, seed, asked, **more):
        for result in rung(points, seed, asked, **more):
            busy.append(len(driver.units))
            yield result

    gpu.rung = slow_rung
    one = workload(ipt="2:63:1", tpb="32:640:16")
    with driving(db, gpu, one=one, compiles=compiles, count=60) as driver:
        assert driver.run() == "count"
    assert len(one.tried) == 60
    assert max(busy) >= 2


def test_asked_to_stop_nothing_more_is_compiled(db):
    with driving(db) as driver:
        driver.bench.stop_requested = lambda: True
        with pytest.raises(StopAskedError):
            driver.run()
    assert not rungs(db)


def test_larger_spaces_are_searched_near_what_is_good(db):
    one = workload("local", ipt="2:33:1", tpb="16:256:2")
    with driving(db, one=one, count=160) as driver:
        driver.run()
    values = sorted(worth(label) for label in one.scores)
    # Later ones are better than what is drawn.
    labels = list(one.scores)
    assert fmean(map(worth, labels[-40:])) > fmean(map(worth, labels[:16]))
    assert values[-1] > 1.05
    assert NAME in driver.searches


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


class Uneven(PretendedGpu):
    """Few items are faster on the largest input, and a third slower on the smallest."""

    def at(self, label, size):
        few = parse_label(label)["ipt"] < 8
        return (0.66 if size == min(SIZES) else 1.3) if few else worth(label)


def test_what_the_rules_reject_is_no_goal_and_no_finalist(db):
    one = workload()
    gpu = Uneven()
    with driving(db, gpu, one=one) as driver:
        driver.run()
    assert one.leading[0] in {"ipt_8.tpb_32", "ipt_9.tpb_32"}
    assert all(parse_label(label)["ipt"] >= 8 for label in one.last)
    # They are measured no further than where they lose.
    few = {label for label in one.tried if parse_label(label)["ipt"] < 8}
    assert few == {*one.dropped} & few
    assert all(size in {min(SIZES), max(SIZES)} for labels, size, _ in gpu.asked if few & {*labels})


def test_bad_variants_are_dropped_after_one_sample_of_the_heaviest_runtime_workload(db):
    one, gpu = workload(ipt="2:63:1", tpb="32:64:16"), PretendedGpu(noise=0.001)
    with driving(db, gpu, one=one) as driver:
        driver.run()
    bad = {label for label in one.tried if worth(label) < 0.9}
    assert bad
    assert bad <= one.dropped.keys()
    asked = [(size, rounds) for labels, size, rounds in gpu.asked for _ in bad & {*labels}]
    assert asked == [(max(SIZES), 1)] * len(bad)


def test_finalists_that_differ_in_fine_parameters_alone_are_few():
    scores = {f"ipt_8.ns_{ns}": 1.05 + ns / 1e6 for ns in range(9)} | {"ipt_9.ns_0": 1.04}
    kept = survivors(scores, 0.01, RungRule(3, 6), lambda label: label.partition(".")[0])
    assert kept == ["ipt_8.ns_8", "ipt_8.ns_7", "ipt_9.ns_0"]


def test_half_of_the_finalists_are_such_as_noise_does_not_make_harmful():
    """Of histogram's finalists after ten minutes all were just below the rule in the end."""
    scores = {"a": 1.28, "b": 1.27, "c": 1.27, "d": 1.26, "e": 1.2, "f": 1.1, "g": 0.9}
    assert survivors(scores, 0.01, RungRule(2, 4)) == ["a", "b", "c", "d"]
    assert survivors(scores, 0.01, RungRule(2, 4), clear={"e", "f", "g"}) == ["a", "b", "e", "f"]
    assert survivors(scores, 0.01, RungRule(2, 4), clear={"f", "g"}) == ["a", "b", "f", "c"]
    assert survivors(scores, 0.01, RungRule(2, 4), clear=scores) == ["a", "b", "c", "d"]


def test_the_goal_of_what_noise_may_make_harmful_is_less_than_its_score():
    one = workload()
    one.allowed, one.scores = 0.95, dict.fromkeys(("clear", "near", "under"), 1.25)
    one.least = {"clear": 0.951, "near": 0.94, "under": 0.92}
    goals = [one.goal(label) for label in one.scores]
    assert goals == pytest.approx([1.25, 0.94 + 0.31 / 2, 0.92])


def test_the_header_after_a_search_has_as_much_time_as_base_took(db):
    one = workload("local", **LARGE)
    with timed(db, 1.5, one) as driver:
        driver.budget.kept = 0.01
        driver.run()
        assert 0.1 <= driver.budget.kept <= 0.3
    with driving(db, one=workload()) as driver:
        driver.run()
        assert driver.budget.kept == 0.0


def test_a_budget_that_is_too_short_is_said_with_what_is_needed(db):
    one, notes = workload("local", **LARGE), []
    with timed(db, 5.0, one) as driver:
        driver.bench.note = notes.append
        driver.run()
    (note,) = notes
    assert note.startswith(f"a budget of 0:05 is too short for {NAME}: a first unit and its")
    assert one.last


@pytest.mark.parametrize("headers", [4.0, 9.0])
@pytest.mark.parametrize("each", [0.4, 5.0])
def test_units_are_sized_by_what_earlier_ones_took(headers, each):
    one = workload()
    one.units = [(size, headers + each * size) for size in (2, 6, 30, 60)]
    assert one.unit_seconds(10) == pytest.approx(headers + 10 * each, rel=0.05)
    size = one.unit_size(25.0)
    assert one.unit_seconds(size) <= 25.0 < one.unit_seconds(size + 1)


@pytest.mark.parametrize("noise", [-4.0, 4.0])
def test_a_few_units_of_similar_sizes_do_not_tell_what_headers_cost(noise):
    """Otherwise units get one variant each, or as many as nothing remains of the time."""
    one = workload()
    one.units = [(2, 14.0 + noise), (6, 18.0), (6, 18.0), (6, 18.0)]
    assert one.unit_seconds(0) == pytest.approx(11.0, abs=2.5)
    assert one.unit_seconds(16) == pytest.approx(32.0, rel=0.15)


@pytest.mark.parametrize(("remaining", "seconds"), [(100.0, 40.0), (50.0, 25.0), (30.0, 22.5)])
def test_when_another_unit_would_be_headers_alone_the_remaining_time_is_used(
    db, monkeypatch, remaining, seconds
):
    one = workload("local", **LARGE)
    one.units = [(size, 10.0 + size) for size in (2, 6, 30, 60) for _ in range(9)]
    one.target = SearchTarget(())
    monkeypatch.setattr(SearchDriver, "_final_seconds", lambda *_: 0.0)
    with driving(db, one=one, budget=remaining, clock=lambda: 0.0) as driver:
        assert driver._size(one) == pytest.approx(seconds - 10.0, abs=1.0)


def test_before_anything_is_measured_units_are_small_and_the_confirmation_has_its_time(db):
    one = workload("local", **LARGE)
    one.units = [(1, 10.0)]  # base: it tells what headers cost
    with driving(db, one=one, budget=100.0, clock=lambda: 0.0) as driver:
        driver.quotas = {one.title: inf}
        assert driver._size(one) == UNSCORED
        assert driver._search_seconds == pytest.approx((1 - FINAL_SHARE) * 100.0)


def test_units_that_were_in_the_store_do_not_size_others(db):
    one = workload()
    with driving(db, one=one) as driver:
        driver.run()
    assert one.tried
    assert one.units == []  # each came at once


class LosingGpu(PretendedGpu):
    """Nothing is as fast as base, and a first sample takes longer than the budget."""

    now = 0.0

    def worth(self, label):
        return 0.8 * worth(label)

    def rung(self, points, seed, asked, **options):
        self.now += 100.0
        yield from super().rung(points, seed, asked, **options)


def test_without_time_what_cannot_win_is_not_confirmed(db):
    gpu, one = LosingGpu(), workload()
    with driving(db, gpu, one=one, budget=10.0, clock=lambda: gpu.now) as driver:
        assert driver.run() == "budget"
    assert one.dropped
    assert max(one.dropped.values()) < 1
    assert not one.last
    assert {rung for _, _, rung in rungs(db)} == {SCREENING}


def test_without_time_for_scores_the_best_first_samples_are_confirmed(db):
    gpu, one = LosingGpu(noise=0.0), workload()
    gpu.worth = worth
    with driving(db, gpu, one=one, budget=10.0, clock=lambda: gpu.now) as driver:
        one.made, _ = driver.bench.compile(one, ())
        one.ready = one.ask(BATCH)
        assert driver.run() == "budget"
    assert not one.scores
    assert not one.dropped
    assert len(one.last) < len(one.heaviest) == BATCH
    assert worth(one.leading[0]) == max(map(worth, one.heaviest))
    assert {variant for variant, _, rung in rungs(db) if rung == LAST} == {*one.last}
    assert query(db, "SELECT ended FROM policygen_searches") == [("budget",)]
    again = workload()
    with driving(db, gpu, one=again, budget=10.0, clock=lambda: gpu.now) as driver:
        driver.budget.before = 10.0
        driver.run()
    assert again.last == one.last


def test_what_passed_is_a_candidate_where_no_score_is_above_base():
    one = workload()
    one.heaviest = {"scored": 1.0, "passed": 1.3, "slow": 0.8, "failed": 1.4}
    one.scores, one.dropped, one.failed = {"scored": 0.97}, {"slow": 0.8}, {"failed": ("wrong", "")}
    assert sorted(one.candidates) == ["passed", "scored"]
    assert [one.goal(label) for label in ("passed", "scored", "slow")] == [1.3, 0.97, 0.8]
    one.scores["scored"] = 1.01
    assert one.candidates == ["scored"]
    one.scores, one.heaviest = {}, {"slow": 0.8}
    assert one.candidates == ["slow"]


def test_the_less_a_first_sample_counts_the_further_it_may_be_behind(db):
    """Of histogram's variants that harm nothing many are 0.1 behind the best on the heaviest."""
    one = workload()
    with driving(db, one=one) as driver:
        driver._recall(one)
    weight = max(spot_weights(one.spots, one.declared))
    assert 0.3 < weight < 0.7
    assert one.behind == pytest.approx(BEHIND / weight**0.5)
    one.allowed, one.scores, one.heaviest = 0.5, {"best": 1.1}, {"best": 1.2}
    assert one.limit == pytest.approx(1.2 - one.behind)


def test_a_search_without_runtime_workloads_recalls_nothing(db):
    one = workload()
    with driving(db, one=one) as driver:
        one.spots = []
        driver._recall(one)
    assert not one.tried


def test_a_confirmation_that_exceeds_the_budget_leaves_time_to_search(db, monkeypatch):
    one = workload()
    with driving(db, one=one, budget=100.0, clock=lambda: 0.0) as driver:
        driver.quotas, one.target = {one.title: inf}, SearchTarget(())
        for seconds, left in [(20.0, 80.0), (60.0, 40.0), (300.0, (1 - FINAL_SHARE) * 100.0)]:
            plan = SimpleNamespace(seconds=seconds)
            monkeypatch.setattr(SearchBench, "final_plan", lambda *_, plan=plan: plan)
            assert driver._search_seconds == pytest.approx(left)


class ExactGpu(PretendedGpu):
    """Without noise; each sample takes 2 ms."""

    def look(self, points, seed):
        return [replace(one, cost=0.002) for one in super().look(points, seed)]


@contextmanager
def first_samples(db, gpu, budget=None):
    """60 variants after their first sample, before any is measured further; no time passes."""
    one = workload(ipt="2:15:1", tpb="32:165:7")
    with driving(db, gpu, one=one, budget=budget, clock=lambda: 0.0) as driver:
        one.made, _ = driver.bench.compile(one, ())
        one.ready, one.behind = one.ask(60), BEHIND
        while one.ready:
            driver._first_sample(one)
        yield driver, one


@pytest.mark.parametrize(("budget", "count"), [(None, BATCH), (0.2, 8), (0.05, 2), (0.001, 1)])
def test_the_best_first_samples_are_screened_first_as_many_as_there_is_time_for(db, budget, count):
    gpu = ExactGpu(noise=0.0)
    with first_samples(db, gpu, budget) as (driver, one):
        assert max(len(labels) for labels, *_ in gpu.asked) == BATCH
        order = sorted(one.heaviest, key=lambda label: (-one.heaviest[label], label))
        assert one.passed == order
        driver._screen(one)
        assert [labels for labels, *_ in gpu.asked[-3:]] == [order[:count]] * 3
        assert one.passed == [label for label in order[count:] if label not in one.dropped]


def test_what_passed_is_dropped_once_something_better_is_known(db):
    gpu = ExactGpu(noise=0.0)
    with first_samples(db, gpu) as (driver, one):
        limit = max(map(worth, one.passed)) - BEHIND
        behind = {label for label in one.passed if worth(label) < limit}
        assert not one.dropped
        while driver._measure_next():
            assert not behind & {*one.passed}
    assert one.dropped.keys() == behind
    assert one.scores.keys() == one.tried - behind
    assert [size for labels, size, _ in gpu.asked if behind & {*labels}] == [max(SIZES)] * 4


# Campaigns: a short look at each workload, then the time goes where a gain shows.


class SomeGain(TimedGpu):
    """Variants of I8 gain what they are worth, those of other types less or nothing.

    Time passes only when it measures: how fast the machine is makes no difference.
    """

    opening = 0.05  # what a plan of the last rungs assumes

    def __init__(self, **gains):
        super().__init__(noise=0.001)
        self.now = 0.0
        self.gains = {"I8": 1.0, **gains}
        self.turns = []

    def sleep(self, seconds):
        self.now += seconds

    def rung(self, points, seed, asked, **how):
        self.kind = points[0].base.library
        self.turns.append(self.kind)
        yield from super().rung(points, seed, asked, **how)

    def worth(self, label):
        return 1 + self.gains[self.kind] * (worth(label) - 1) - 0.01 * (self.gains[self.kind] == 0)


def named_compiling(search, labels):
    """The library of a workload is its type."""
    kind = dict(search.point[1])["T"]
    made = compiling()(search, labels)
    bases = tuple(replace(base, library=kind) for base in made.bases)
    sleep(0.02)
    return replace(made, bases=bases)


def campaigning(db, gpu, searches, budget):
    return driving(
        *(db, gpu),
        one=searches[0],
        more=searches[1:],
        budget=budget,
        clock=lambda: gpu.now,
        compiles=named_compiling,
    )


@pytest.mark.usefixtures("quick_processes")
def test_a_campaign_looks_at_all_workloads_and_gives_its_time_to_those_that_gain(db):
    kinds = ("F32", "F64", "I16", "I32", "I64", "I8")
    searches = [workload(kind=kind, **LARGE) for kind in kinds]
    gpu = SomeGain(F32=0, F64=0, I16=0.2, I32=0, I64=0)
    with campaigning(db, gpu, searches, 8.0) as driver:
        assert driver.run() == "budget"
        assert driver.budget.spent < 8.8
    tried = {kind: len(search.tried) for kind, search in zip(kinds, searches, strict=True)}
    assert min(tried.values()) >= LOOK
    assert max(tried, key=tried.get) == "I8"
    assert tried["I8"] > 2 * tried["F32"]
    assert all(search.last for search in searches)  # losses are confirmed, too
    # Few are searched side by side, and the best is decided first.
    looked = list(dict.fromkeys(gpu.turns))
    assert {*looked[:BESIDE]} == {*kinds[:BESIDE]}
    last = query(
        db, "SELECT rowid, workload FROM policygen_rungs WHERE rung = ? ORDER BY rowid", LAST
    )
    assert '"I8"' in last[0][1]
    # It is searched before it is decided, wherever it stands in the plan.
    ((searched,),) = query(
        db,
        "SELECT count(DISTINCT variant) FROM policygen_rungs WHERE rowid < ? AND rung = ? AND"
        " workload LIKE '%\"I8\"%'",
        last[0][0],
        SCREENING,
    )
    assert searched > 1.5 * LOOK


@pytest.mark.usefixtures("quick_processes")
def test_a_campaign_names_what_it_had_no_time_for_and_counts_nothing_of_it_as_tried(db):
    searches = [workload(kind=kind, **LARGE) for kind in ("I8", "I16")]
    gpu, notes, over = SomeGain(I16=0), [], Event()

    def compiled(search, labels):
        if search is searches[1] and not labels:
            assert over.wait(10)
        return named_compiling(search, labels)

    def note(text):
        notes.append(text)
        over.set()

    clock = {"clock": lambda: gpu.now, "compiles": compiled, "budget": 0.1}
    with driving(db, gpu, one=searches[0], more=searches[1:], **clock) as driver:
        driver.bench.note = note
        driver.run()
    assert [one for one in notes if "search" in one] == [
        f"there was no time to search {searches[1].title}"
    ]
    assert not searches[1].tried
    assert searches[0].tried == searches[0].measured


def test_a_campaign_divides_its_time_in_the_order_of_promise_not_of_the_plan(db):
    searches = [workload(kind=kind, **LARGE) for kind in ("F32", "F64", "I8")]
    with campaigning(db, SomeGain(), searches, 60.0) as driver:
        driver.quotas = dict.fromkeys(driver.searches, LOOK)
        order = [searches[2], searches[0], searches[1]]
        driver._divide(order)
        assert [*driver.quotas] == [search.title for search in order]
        assert [search.title for search in driver._current] == [*driver.quotas]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_a_workload_with_more_weight_gets_more_of_a_campaign(db):
    heavy, light = workload(kind="I8", **LARGE), workload(kind="I16", **LARGE)
    heavy.weight = 5.0
    with campaigning(db, SomeGain(I16=1.0), [light, heavy], 3.0) as driver:
        driver.run()
    assert len(heavy.tried) > 1.5 * len(light.tried)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_a_campaign_resumes_without_another_look(db):
    kinds = ("I8", "I16")
    first = [workload(kind=kind, **LARGE) for kind in kinds]
    with campaigning(db, SomeGain(I16=0), first, 3.0) as driver:
        driver.run()
    tried = {kind: len(search.tried) for kind, search in zip(kinds, first, strict=True)}
    again = [workload(kind=kind, **LARGE) for kind in kinds]
    gpu = SomeGain(I16=0)
    with campaigning(db, gpu, again, 6.0) as driver:
        driver.run()
        assert driver.budget.spent < 6.6
    assert len(again[0].tried) > tried["I8"]
    assert gpu.turns[0] == "I8"
    spent, before = [workload(kind=kind, **LARGE) for kind in kinds], rungs(db)
    with campaigning(db, SomeGain(I16=0), spent, 3.0) as driver:
        driver.run()
    assert rungs(db) == before
    gaining, gaining_again = spent[0].leading, again[0].leading
    assert gaining[0] == gaining_again[0]
    # Of variants that gain nothing, noise and what was dropped early decide which one leads.
    assert max(spent[1].leading[1], again[1].leading[1]) < 1
