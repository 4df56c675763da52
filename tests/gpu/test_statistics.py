"""From times of processes to scores and intervals."""

from dataclasses import replace
from random import Random
from statistics import fmean, median

import pytest

from policygen.gpu.statistics import PointTimes, judged, noises, score_noise, student

TRUTH = 1.05


def measured(seed=0, processes=5, rounds=20, drift=0.01, jitter=0.01, truth=TRUTH):
    """Two runtime workloads of which each process has a drift of its own, for base and variant."""
    random = Random(seed)
    points = []
    for number, (seconds, weight) in enumerate([(7e-6, 0.25), (500e-6, 0.75)]):
        base, beside, pairs = [], [], []
        for _ in range(processes):
            state = seconds * random.gauss(1, drift)
            apart = random.gauss(1, drift / 2)
            times = [state * random.gauss(1, jitter) for _ in range(2 * rounds)]
            own = [state * apart / truth * random.gauss(1, jitter) for _ in range(rounds)]
            base.append(median(times))
            beside.append(median(times[::2]) / median(times[1::2]))
            pairs.append((median(times), median(own)))
        point = {"Elements{io}[pow2]": str(16 + number)}
        points.append(PointTimes("base", point, weight, base, beside, {"ipt_1": pairs}))
    return points


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)]
)
def test_the_quantiles_are_students(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, abs=0.0005)


@pytest.mark.parametrize(
    ("freedom", "confidence", "quantile"),
    [(1, 0.998, 318.309), (4, 0.999, 8.610), (9, 0.999, 4.781), (29, 0.999, 3.659)],
)
def test_far_quantiles_are_students_too(freedom, confidence, quantile):
    assert student(freedom, confidence) == pytest.approx(quantile, abs=0.0005)


def test_a_score_is_the_weighted_mean_of_ratios():
    points = measured(drift=0, jitter=0)
    (one,) = judged(points, ["ipt_1"])
    assert one.score == pytest.approx(TRUTH)
    assert one.verdict == "faster"
    assert [row.ratio for row in one.runtime] == pytest.approx([TRUTH, TRUTH])
    assert one.runtime[1].base_seconds == pytest.approx(500e-6)
    assert one.runtime[1].seconds == pytest.approx(500e-6 / TRUTH)


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = 0
    for seed in range(300):
        (one,) = judged(measured(seed), ["ipt_1"])
        held += one.interval.low <= TRUTH <= one.interval.high
    assert held >= 0.93 * 300


def test_no_variant_that_is_as_fast_as_base_is_called_faster_often():
    verdicts = [judged(measured(seed, truth=1.0), ["ipt_1"])[0].verdict for seed in range(300)]
    assert verdicts.count("faster") <= 0.04 * 300
    assert verdicts.count("slower") <= 0.04 * 300


def test_drift_that_base_and_variant_share_costs_nothing():
    scores = [judged(measured(seed, drift=0.0), ["ipt_1"])[0].score for seed in range(20)]
    assert fmean(scores) == pytest.approx(TRUTH, abs=0.003)


def test_one_process_says_nothing_of_another():
    points = measured(processes=1)
    (one,) = judged(points, ["ipt_1"])
    assert one.interval is None
    assert one.verdict is None
    assert score_noise(points) is None
    assert [row.between for row in noises(points)] == [None, None]


def test_the_noise_is_that_of_base():
    points = measured(processes=40, drift=0.02, jitter=0.001)
    for row in noises(points):
        assert row.between == pytest.approx(0.02, rel=0.4)
        assert row.beside < 0.001
    assert score_noise(points) < 0.001
    assert [row.seconds for row in noises(points)] == pytest.approx([7e-6, 500e-6], rel=0.05)


def test_a_variant_that_lacks_a_runtime_workload_has_no_score():
    first, second = measured()
    missing = replace(second, variants={})
    assert judged([first, missing], ["ipt_1"]) == []


def test_a_process_that_was_ended_early_counts_where_it_was():
    first, second = measured(drift=0, jitter=0)
    second = replace(second, variants={"ipt_1": second.variants["ipt_1"][:3]}, beside=[])
    (one,) = judged([first, second], ["ipt_1"])
    assert one.score == pytest.approx(TRUTH)
