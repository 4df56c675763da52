"""What databases say of variants that were written."""

import pytest

from policygen.model.results import Rules
from policygen.results.ranking import rank
from policygen.results.together import evidence
from tests.results.test_together import database

RULES = Rules()


@pytest.fixture
def measured(tmp_path):
    """A workload with one variant on both sizes, and one on the first alone."""
    path = database(
        tmp_path / "a.db", {"I32": {"ipt_2.tpb_128": (1.2, 0.9), "ipt_3.tpb_128": (1.5,)}}
    )
    (workload,) = rank([path], rules=RULES).workloads
    return path, workload


def test_a_variant_has_its_scores_and_a_ratio_for_each_runtime_workload(measured):
    path, workload = measured
    ((scored, runtime),) = evidence([path], [(workload, "ipt_2.tpb_128")], RULES)
    assert scored.variant == "ipt_2.tpb_128"
    assert scored.interval is not None
    assert [round(point.ratio, 6) for point in runtime] == [1.2, 0.9]
    assert sum(point.weight for point in runtime) == pytest.approx(1)
    assert [list(point.point.values()) for point in runtime] == [["16"], ["20"]]


def test_parameters_may_stand_in_another_order(measured):
    path, workload = measured
    ((scored, _),) = evidence([path], [(workload, "tpb_128.ipt_2")], RULES)
    assert scored.variant == "ipt_2.tpb_128"


@pytest.mark.parametrize("label", ["ipt_3.tpb_128", "ipt_9.tpb_128", "base", "no variant"])
def test_what_was_not_measured_whole_has_none(measured, label):
    path, workload = measured
    assert evidence([path], [(workload, label)], RULES) == [None]


def test_nothing_asked_opens_no_database(tmp_path):
    assert evidence([tmp_path / "absent.db"], [], RULES) == []
