"""Sides that were not measured side by side: verdicts are right as often as they say."""

from random import Random

import numpy as np
import pytest

from policygen.gpu.nvbench_files import step_of
from policygen.gpu.statistics import SURE, WIDEST, Judge, SeparateTimes, score_times


def drawn(seed, truth=1.0, noise=0.003, before=5, after=5, step=0.0):
    random = Random(seed)

    def side(seconds, count):
        times = [seconds * random.gauss(1, noise) for _ in range(count)]
        return [round(one / step) * step for one in times] if step else times

    return SeparateTimes(side(1.0, before), side(1 / truth, after), step)


@pytest.mark.parametrize("noise", [0.0005, 0.003, 0.03])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (3, 3), (2, 6), (5, 5), (12, 12)])
def test_equal_code_is_seldom_called_anything_else(noise, before, after):
    judge = Judge(1)
    told = [
        judge.judge(drawn(seed, noise=noise, before=before, after=after)).verdict
        for seed in range(1000)
    ]
    assert set(told) <= {"equal", "faster", "slower"}
    # One in a hundred, with what chance makes of a thousand; and no test that never says anything.
    assert 1000 * SURE - 12 <= told.count("equal") < 1000


def test_of_many_verdicts_none_is_wrong_by_chance():
    judge = Judge(200)
    assert {judge.judge(drawn(seed)).verdict for seed in range(2000)} == {"equal"}


@pytest.mark.parametrize(("truth", "verdict"), [(0.95, "slower"), (1.05, "faster")])
def test_five_percent_are_found_among_two_hundred(truth, verdict):
    judge = Judge(200)
    found = [judge.judge(drawn(seed, truth)) for seed in range(200)]
    assert {one.verdict for one in found} == {verdict}
    assert sum(one.ratio for one in found) / 200 == pytest.approx(truth, abs=0.001)
    assert all(one.low < truth < one.high for one in found)


def test_two_files_a_side_find_what_is_far_beyond_the_noise():
    found = [Judge(5).judge(drawn(seed, 0.5, before=2, after=2)).verdict for seed in range(200)]
    assert set(found) == {"slower"}


def test_the_noise_is_that_of_a_ratio():
    noises = [Judge(1).judge(drawn(seed, before=20, after=20)).noise for seed in range(200)]
    assert sum(noises) / 200 == pytest.approx(0.003 * 2**0.5, rel=0.03)


def test_the_interval_is_that_of_two_samples():
    """As a textbook has it: s^2 pooled, t(0.995, 5) = 4.0321."""
    before, after = [1.00, 1.02, 1.04], [1.10, 1.11, 1.12, 1.15]
    found = Judge(1).judge(SeparateTimes(before, after))
    logs = [np.log(before), np.log(after)]
    pooled = sum(((one - one.mean()) ** 2).sum() for one in logs) / 5
    half = 4.0321 * np.sqrt(pooled * (1 / 3 + 1 / 4))
    middle = logs[0].mean() - logs[1].mean()
    assert found.low == pytest.approx(np.exp(middle - half), rel=1e-4)
    assert found.high == pytest.approx(np.exp(middle + half), rel=1e-4)


@pytest.mark.parametrize(("before", "after"), [([1.0], [2.0]), ([1.0, 1.1], [2.0])])
def test_a_side_of_one_process_tells_no_noise(before, after):
    assert Judge(1).judge(SeparateTimes(before, after)) is None


def test_times_that_are_the_same_to_the_last_digit_tell_no_noise():
    assert Judge(1).judge(SeparateTimes([1.0, 1.0], [2.0, 2.0])) is None


def test_no_number_of_processes_tells_less_than_a_step_of_the_clock():
    """Medians of 6.4 us by a clock of 32 ns: equal code may seem to be a step apart for ever."""
    times = SeparateTimes([6.400e-6] * 20, [6.432e-6] * 20, 0.005)
    found = Judge(1).judge(times)
    assert found.verdict == "equal"
    assert max(found.high - 1, 1 - found.low) == pytest.approx(
        0.005 + 0.005 + 0.005 / 12**0.5 * 0.1**0.5 * 2.71, abs=3e-4
    )
    twice = SeparateTimes([6.4e-6] * 20, [6.496e-6] * 20, 0.005)
    assert Judge(1).judge(twice).verdict == "slower"


def test_medians_that_are_a_step_apart_may_be_those_of_equal_code():
    for ticks in range(3, 400):
        samples = np.array([ticks - 1, ticks, ticks, ticks, ticks + 1.0])
        for others in (samples - 1, samples + 1):
            step = max(step_of(samples), step_of(others))
            times = SeparateTimes([np.median(samples)] * 2, [np.median(others)] * 2, step)
            assert Judge(1).judge(times).verdict == "equal"


@pytest.mark.parametrize("processes", [2, 5])
@pytest.mark.parametrize("noise", [0.0001, 0.002, 0.01])
def test_equal_code_by_a_coarse_clock_is_equal(noise, processes):
    """Two processes of a side often have the same median then, which is no sign of no noise."""
    judge = Judge(1)
    told = [
        judge.judge(drawn(seed, noise=noise, step=0.005, before=processes, after=processes)).verdict
        for seed in range(1000)
    ]
    assert told.count("equal") >= 1000 * SURE - 12


def test_what_is_too_wide_for_a_number_is_as_wide_as_can_be():
    found = Judge(10**6).judge(SeparateTimes([1e-12, 1e9], [1e-12, 1e9]))
    assert found.verdict == "equal"
    assert found.high == pytest.approx(np.exp(WIDEST))


def test_a_score_is_the_weighted_mean_of_ratios():
    points = [drawn(1, 1.2), drawn(2, 0.9), drawn(3, 1.0)]
    weights = [0.2, 0.3, 0.5]
    score = score_times(weights, points)
    expected = sum(weight * one.ratio for weight, one in zip(weights, points, strict=True))
    assert score.ratio == pytest.approx(expected, rel=1e-12)
    assert Judge(1).judge(score).ratio == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alike", [True, False])
def test_what_a_process_does_to_all_points_stays_in_its_score(alike):
    """Noise of runtime workloads that goes together does not average out."""
    weights = [0.25] * 4
    noises = []
    for seed in range(300):
        seeds = [seed] * 4 if alike else range(10_000 + 4 * seed, 10_004 + 4 * seed)
        noises.append(Judge(1).judge(score_times(weights, [drawn(s) for s in seeds])).noise)
    expected = 0.003 * 2**0.5 / (1 if alike else 2)
    assert sum(noises) / 300 == pytest.approx(expected, rel=0.06)


def test_scores_of_equal_code_are_equal_as_often_as_they_say():
    judge, told = Judge(1), []
    for seed in range(1000):
        points = [drawn(3 * seed + part, noise=0.01) for part in range(3)]
        told.append(judge.judge(score_times([0.5, 0.3, 0.2], points)).verdict)
    assert 1000 * SURE - 12 <= told.count("equal") < 1000


def test_a_process_with_fewer_points_makes_a_score_of_fewer_processes():
    score = score_times([0.5, 0.5], [drawn(1, before=5, after=4), drawn(2, before=3, after=4)])
    assert (len(score.before), len(score.after)) == (3, 4)


def test_the_step_of_a_clock_is_seen_around_the_median():
    assert step_of(None) == step_of(np.array([])) == step_of(np.array([2.0, 2.0])) == 0.0
    assert step_of(np.array([1.0, 2.0, 2.0, 2.5, 9.0])) == pytest.approx(0.75 / 1.25)
    assert step_of(np.array([4.0, 4.0, 5.0])) == pytest.approx(0.5 / 3.5)
    assert step_of(np.array([1.0, 2.0, 90.0])) == 1.0
