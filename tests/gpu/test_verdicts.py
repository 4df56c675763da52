"""Verdicts are right as often as they say, whatever the noise is."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from policygen.gpu.changes import AFTER, COPY, judge_workload, quantiles_of
from policygen.gpu.statistics import SURE, ComparedTimes, Judge, PointTimes
from policygen.model.workload import BASE


def drawn(seed, truth=1.0, noise=0.003, processes=5):
    random = Random(seed)
    ratios, selves = [], []
    for _ in range(processes):
        before, after, copy = (random.gauss(1, noise / 2**0.5) for _ in range(3))
        ratios.append(truth * before / after)
        selves.append(before / copy)
    return ComparedTimes(ratios, selves)


@pytest.mark.parametrize("noise", [0.0005, 0.003, 0.03])
@pytest.mark.parametrize("processes", [2, 3, 5, 12])
def test_equal_code_is_seldom_called_anything_else(noise, processes):
    judge = Judge(1)
    told = [
        judge.judge(drawn(seed, noise=noise, processes=processes)).verdict for seed in range(1000)
    ]
    assert set(told) <= {"equal", "faster", "slower"}
    # One in a hundred, with what chance makes of a thousand.
    assert told.count("equal") >= 1000 * SURE - 12


def test_of_many_verdicts_none_is_wrong_by_chance():
    judge = Judge(200)
    told = {judge.judge(drawn(seed)).verdict for seed in range(2000)}
    assert told == {"equal"}


@pytest.mark.parametrize(("truth", "verdict"), [(0.97, "slower"), (1.03, "faster")])
def test_three_percent_are_found_among_two_hundred(truth, verdict):
    judge = Judge(200)
    found = [judge.judge(drawn(seed, truth)) for seed in range(200)]
    assert {one.verdict for one in found} == {verdict}
    assert all(one.clear for one in found)
    # The mean of what is found is the truth.
    assert sum(one.ratio for one in found) / 200 == pytest.approx(truth, abs=0.001)
    assert all(one.low < truth < one.high for one in found)


def test_the_noise_is_that_of_a_ratio():
    noises = [Judge(1).judge(drawn(seed, processes=20)).noise for seed in range(200)]
    assert sum(noises) / 200 == pytest.approx(0.003, rel=0.03)


def test_what_is_not_narrow_enough_is_not_decided():
    wide = drawn(1, noise=0.03)
    assert Judge(1).judge(wide).verdict == "equal"
    strict = Judge(1, tolerance=0.01).judge(wide)
    assert strict.verdict == "undecided"
    assert not strict.clear
    assert max(strict.high - 1, 1 - strict.low) > 0.01
    assert Judge(1, tolerance=0.01).judge(drawn(1, noise=0.0005)).verdict == "equal"


def test_what_may_differ_is_not_clear():
    judge = Judge(1000)
    found = [judge.judge(drawn(seed, truth=1.006)) for seed in range(100)]
    open_ones = [one for one in found if not one.clear]
    assert {one.verdict for one in open_ones} == {"equal"}
    assert len(open_ones) > 50


def test_one_process_says_nothing():
    assert Judge(1).judge(ComparedTimes([1.2], [1.0])) is None


def test_processes_without_a_copy_tell_of_the_noise_by_themselves():
    found = Judge(1).judge(ComparedTimes([1.1, 1.11, 1.09, 1.1], []))
    assert found.verdict == "faster"
    assert found.noise == pytest.approx(0.0074, abs=0.0005)


def test_a_step_of_the_clock_is_no_difference():
    """All medians before lie on one step of 32 ns, all after on the next one."""
    times = PointTimes(
        "base", {}, 1.0, [7.04e-6] * 5, [1.0] * 5,
        {AFTER: [(7.04e-6, 7.072e-6)] * 5, COPY: [(7.04e-6, 7.04e-6)] * 5},
    )  # fmt: skip
    judged = judge_workload(Judge(200), [times])
    assert judged.score.verdict == "equal"
    assert judged.points[0][1].verdict == "equal"
    # Three steps are more than that; they are seen as soon as one process tells of a smaller step.
    far = {
        AFTER: [(7.04e-6, 7.136e-6)] * 4 + [(7.072e-6, 7.136e-6)],
        COPY: [(7.04e-6, 7.04e-6)] * 5,
    }
    told = judge_workload(Judge(1), [replace(times, variants=far)])
    assert told.score.verdict == "slower"


STEP = 32e-9


def rounded(random, truth=1.0, seconds=7.05e-6):
    """What processes with a noise of 0.2 % take, told in steps of 0.45 %."""

    def draw(mean):
        return round(mean * random.gauss(1, 0.002) / STEP) * STEP

    before = [draw(seconds) for _ in range(5)]
    pairs = {
        AFTER: [(one, draw(seconds / truth)) for one in before],
        COPY: [(one, draw(seconds)) for one in before],
    }
    return PointTimes("base", {}, 1.0, before, [], pairs)


@pytest.mark.parametrize(("truth", "verdict"), [(1.0, "equal"), (0.97, "slower")])
def test_rounded_times_are_judged_as_well(truth, verdict):
    judge = Judge(50)
    told = [judge_workload(judge, [rounded(Random(seed), truth)]) for seed in range(400)]
    found = [one.score.verdict for one in told]
    assert found.count(verdict) >= (400 if truth == 1 else 380)


@pytest.mark.parametrize(("labels", "count"), [((BASE, AFTER), 21), ((AFTER,), 0), ((BASE,), 0)])
def test_quantiles_need_samples_of_both(labels, count):
    rows = SimpleNamespace(samples=lambda _: dict.fromkeys(labels, np.full(100, 1e-5)))
    assert len(quantiles_of(rows, SimpleNamespace(spot=None))) == count
