"""Changes on a simulated GPU: what is clear stops, what is not goes on, and time is kept."""

from contextlib import contextmanager
from statistics import median

import pytest

from policygen.gpu.changes import AFTER, COPY, LOOKS, ChangedWorkload, ChangeMeasuring, looks_until
from policygen.gpu.device import VariantFunction
from policygen.gpu.rounds import WorkloadTask
from policygen.gpu.statistics import Judge
from tests.gpu.measuring import ABOUT, ALGORITHM, DECLARED, SIZES, measuring, points
from tests.gpu.simulated import BASE, Plan


def change(workload="I8", sizes=SIZES):
    after = VariantFunction(AFTER, "after.so", "policygen_run_0")
    copy = VariantFunction(COPY, "again.so", "policygen_run_0")
    part = WorkloadTask(BASE, (after, copy), points(*sizes, workload=workload), DECLARED)
    return ChangedWorkload((ALGORITHM, (("T", workload),)), (part,))


@contextmanager
def looking(folder, *, looks=(3, 5), judge=None, budget=None, about=ABOUT, **plan):
    made = Plan(str(folder), **plan)
    with measuring(folder / "run.db", made, about) as (controller, rows):
        yield ChangeMeasuring(controller, rows, judge or Judge(8), looks, 6, 7, budget)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.2, "faster"), (0.8, "slower"), (1.0, "equal")])
def test_a_change_is_told_by_workload_and_by_runtime_workload(tmp_path, ratio, verdict):
    one = change()
    with looking(tmp_path, ratios={AFTER: ratio}) as looks:
        (judged,) = looks.run([one])
    assert judged.score.verdict == verdict
    assert judged.score.ratio == pytest.approx(ratio, rel=0.02)
    assert [point.verdict for _, point in judged.points] == [verdict] * len(SIZES)
    before, after = map(median, zip(*judged.points[0][0].variants[AFTER], strict=True))
    assert before / after == pytest.approx(ratio, rel=0.03)
    assert judged.clear


def test_what_is_clear_is_not_measured_again(tmp_path):
    one = change()
    with looking(tmp_path, ratios={AFTER: 1.2}, looks=(3, 20)) as looks:
        looks.run([one])
        counts = {len(row.base) for row in one.times(looks.rows)}
        centers = looks.rows.times(one.spots[0].spot)
    assert len(centers[AFTER]) == 3
    assert counts <= {3}


def test_what_is_not_clear_is_measured_as_often_as_is_allowed(tmp_path):
    one = change()
    with looking(tmp_path, judge=Judge(8, tolerance=1e-6), looks=(2, 4)) as looks:
        (judged,) = looks.run([one])
        assert len(looks.rows.times(one.spots[0].spot)[AFTER]) == 4
    assert judged.score.verdict == "undecided"


def test_results_that_differ_end_it(tmp_path):
    one, other = change(), change("I16")
    with looking(tmp_path, does={AFTER: "wrong"}) as looks:
        judged = looks.run([one])
    assert judged == [None]
    assert one.failed.kind == "wrong"
    assert other.failed is None


def test_a_base_that_differs_from_itself_is_skipped_with_its_reason(tmp_path):
    one = change(sizes=(16,))
    with looking(tmp_path, does={"base": "check: wrong"}) as looks:
        assert looks.run([one]) == [None]
    assert next(iter(one.skipped.values())).startswith("base differs from itself")
    assert not one.spots


def test_without_time_later_workloads_are_left(tmp_path):
    first, second = change("I8"), change("I16")
    with looking(tmp_path, budget=1e-9, ratios={AFTER: 1.2}) as looks:
        judged = looks.run([first, second])
        assert not any(looks.rows.times(each.spots[0].spot) for each in (first, second))
    assert judged == [None, None]


def test_the_same_command_goes_on_with_what_is_there(tmp_path):
    with looking(tmp_path, ratios={AFTER: 1.2}) as looks:
        looks.run([change()])
        before = looks.rows.times(change().spots[0].spot)
    with looking(tmp_path, ratios={AFTER: 1.2}) as looks:
        (judged,) = looks.run([change()])
        assert looks.rows.times(change().spots[0].spot) == before
    assert judged.score.verdict == "faster"


def test_looks_end_with_as_many_processes_as_are_allowed():
    assert looks_until(20) == LOOKS
    assert looks_until(6) == (5, 6)
    assert looks_until(3) == (3,)
    assert looks_until(40) == (*LOOKS, 40)
