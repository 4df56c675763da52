"""Who goes on to the next rung, how often each runs, and how many a workload gets of a batch."""

import math
from dataclasses import replace
from statistics import fmean

import pytest

from policygen.gpu.device import LONG
from policygen.gpu.pool import BaselineSamples
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.rungs import FEWEST, MOST, PROCESS, Budget, RungRule, look, rounds_for, survivors
from policygen.gpu.rungs import RUNGS_SURE as SURE
from policygen.gpu.statistics import rung_times
from policygen.results.rungs import rungs_at
from policygen.results.sessions import PointSpot, RungRow
from tests.gpu.measuring import DECLARED, SIZES, spot
from tests.gpu.searching import BASE
from tests.gpu.simulated import case


def test_who_can_still_win_stays_and_nobody_else():
    scores = {"a": 1.05, "b": 1.049, "c": 1.03, "d": 0.9}
    assert survivors(scores, 0.0, RungRule(1, 9)) == ["a", "b"]
    assert survivors(scores, 0.02, RungRule(1, 9)) == ["a", "b", "c"]


def test_a_rung_has_some_in_any_case_and_not_too_many():
    scores = {"a": 1.05, "b": 0.9, "c": 0.8}
    assert survivors(scores, 0.0, RungRule(2, 9)) == ["a", "b"]
    assert survivors(dict.fromkeys("abcdef", 1.0), 0.0, RungRule(1, 4)) == ["a", "b", "c", "d"]
    assert survivors({}, 0.0, RungRule(3, 4)) == []


def test_who_is_slower_than_base_beyond_noise_cannot_win():
    reach = SURE * PROCESS
    scores = {"a": 1 - reach, "b": 1 - 2.5 * reach}
    assert survivors(scores, 0.0, RungRule(1, 9)) == ["a"]


class Gpu:
    """Base with a spread that is known on each runtime workload."""

    def __init__(self, spreads):
        self.spreads = spreads

    def look(self, points, seed):
        found = []
        for point in points:
            spread = self.spreads[point.case.axes[0]]
            found.append(
                BaselineSamples(tuple(1e-5 * (1 + spread * n / 1.4826) for n in range(-6, 7)))
            )
        return found


def target(**spreads):
    runtimes = [RuntimeSpot(spot(size), case(size)) for size in SIZES]
    known = {int(size[1:]): spread for size, spread in spreads.items()}
    return look(Gpu(known), [BASE], [runtimes], DECLARED, 1)


def test_noisy_runtime_workloads_run_more_often():
    found = target(s16=0.02, s18=0.002, s20=0.0001)
    assert found.screening_rounds == [MOST, FEWEST, FEWEST]
    assert found.points[0].spread > found.points[1].spread > found.points[2].spread
    weights = [point.weight for point in found.points]
    assert weights == sorted(weights)
    assert math.fsum(weights) == pytest.approx(1)


def test_a_sample_of_what_takes_long_is_one_run():
    point = target(s16=0.0, s18=0.0, s20=0.0).points[0]
    assert replace(point, seconds=LONG).sample_seconds == pytest.approx(2 * LONG, rel=0.01)
    assert replace(point, seconds=2 * LONG).sample_seconds == pytest.approx(2 * LONG, rel=0.01)


def test_more_rounds_make_a_score_surer():
    found = target(s16=0.02, s18=0.002, s20=0.0001)
    few, many = found.rounds(0.01, 1, 1000), found.rounds(0.002, 1, 1000)
    assert all(one <= other for one, other in zip(few, many, strict=True))
    assert found.error(many) < found.error(few)
    assert found.error(many) <= 0.002


@pytest.mark.parametrize(("error", "rounds"), [(0.0, 2), (1.0, 2), (2.0, 4), (2.1, 5), (9.0, 7)])
def test_rounds_are_within_limits(error, rounds):
    assert rounds_for(error, 2, 7) == rounds


def rows(*cells):
    return [
        RungRow(1, p, r, v, center, base, None, rowid)
        for rowid, (v, r, p, center, base) in enumerate(cells)
    ]


RUNGS = rungs_at(
    {
        PointSpot("base", (("Elements", "16"),)): rows(
            ("base", 1, 1, 4.0, 4.0),
            ("a", 1, 1, 2.0, 4.0),
            ("a", 3, 2, 4.0, 4.0),
            ("a", 3, 3, 2.0, 4.0),
            ("b", 1, 1, 4.0, 4.0),
        ),
        PointSpot("base", (("Elements", "20"),)): rows(
            ("a", 1, 1, 4.0, 4.0),
            ("a", 3, 2, 4.0, 2.0),
            ("a", 3, 4, 4.0, 9.0),
        ),
    },
    (0.25, 0.75),
)
NOTHING = rungs_at({}, ())


def test_a_score_is_of_processes_that_were_on_all_runtime_workloads():
    assert RUNGS.means(1) == {"a": 0.25 * 2 + 0.75}
    assert RUNGS.means(3) == {"a": 0.25 + 0.75 / 2}
    assert RUNGS.means(2) == {}
    assert NOTHING.means(1) == {}


def test_the_lowest_ratio_is_known_of_variants_that_were_dropped_too():
    assert RUNGS.least(1) == {"a": 1.0, "b": 1.0}
    assert RUNGS.least(3) == {"a": fmean([2.0 / 4.0, 9.0 / 4.0])}


def test_the_runtime_workload_that_counts_most_has_ratios_of_its_own():
    assert RUNGS.heaviest == RUNGS.points[1:]
    assert RUNGS.least(1, RUNGS.heaviest) == {"a": 1.0}
    assert RUNGS.least(1, RUNGS.points[:1]) == {"a": 2.0, "b": 1.0}
    assert NOTHING.heaviest == ()
    assert NOTHING.least(1, NOTHING.heaviest) == {}


def test_times_are_of_the_same_processes():
    first, second = rung_times(RUNGS, 3)
    assert first.variants == {"a": [(4.0, 4.0)]}
    assert second.variants == {"a": [(2.0, 4.0)]}


def test_a_budget_counts_what_was_spent_before():
    now = [100.0]
    budget = Budget(60.0, 20.0, lambda: now[0])
    assert (budget.elapsed, budget.spent, budget.remaining) == (0.0, 20.0, 40.0)
    now[0] = 150.0
    assert (budget.elapsed, budget.spent, budget.remaining) == (50.0, 70.0, 0.0)
    assert Budget(None, 20.0).remaining == math.inf
