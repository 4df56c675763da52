"""`make performance-check`: what it counts, without a GPU."""

import pytest

from benchmarks import performance_check
from benchmarks.performance_check import PLANTED, check_equal, check_planted, opened, sides
from policygen.app.filters import Filter
from policygen.app.session import Session
from policygen.measure.compiling import OWN
from policygen.performance.changes import AFTER
from tests.measure import compiled
from tests.report.performances import performance, runtime, workload
from tests.test_measure_check import LABEL, document, variant


@pytest.fixture
def measured(monkeypatch):
    """What each run says, in their order; the last one for ever."""
    told, asked = [], []

    def measure(_session, change, _where, _arch, *, effort):
        asked.append((change.before, change.after, effort.seed))
        return told.pop(0) if len(told) > 1 else told[0]

    monkeypatch.setattr(performance_check, "measure_change", measure)
    monkeypatch.setattr(performance_check, "opened", lambda *_: {})
    return told, asked


def equal(count, other="equal"):
    rows = [runtime(1.0, "equal", elements=str(at)) for at in range(count - 1)]
    return performance(workload("I32", 1.0, "equal", *rows, runtime(1.0, other, elements="99")))


def test_equal_code_may_be_called_otherwise_once_in_a_hundred(measured, capsys):
    told, asked = measured
    told += [equal(100, "faster"), equal(100)]
    assert list(check_equal(None, "sm90", 2)) == []
    assert asked == [("CUB's own", "CUB's own", 1), ("CUB's own", "CUB's own", 2)]
    assert "equal: 1 of 200 runtime workloads are called otherwise" in capsys.readouterr().out
    told[:] = [equal(99, "undecided")]
    (wrong,) = check_equal(None, "sm90", 1)
    assert wrong == "1 of 99 equal runtime workloads are called otherwise"


def test_what_was_not_measured_is_no_equal_code(measured):
    told, _ = measured
    told.append(performance(workload("I32", None, "undecided", problem="no run")))
    found = list(check_equal(None, "sm90", 1))
    assert len(found) == 2
    assert "no run" in found[0]
    assert "0 of 0" in found[1]


def test_what_is_planted_must_be_found_in_each_run_both_ways(measured, monkeypatch, capsys):
    told, asked = measured
    monkeypatch.setattr(
        performance_check, "measure_variants", lambda *_, **__: document(variant(0.972))
    )
    told.append(performance(workload("I32", 0.972, "slower")))
    found = list(check_planted(None, "sm90", 3))
    assert len(found) == len(PLANTED)
    assert found[0] == f"{PLANTED[0][0]} {LABEL} is faster in 0 of 3 runs"
    assert asked[0][:2] == ("CUB's own", LABEL)
    assert asked[3][:2] == (LABEL, "CUB's own")
    assert f"slower: {PLANTED[0][0]} {LABEL}: {{'slower': 3}}" in capsys.readouterr().out


@pytest.mark.trees
@pytest.mark.nvcc
def test_both_sides_are_policies_of_the_same_call():
    session = Session(compiled.cub("3.6.0"))
    where = Filter((), "cub.bench.reduce.sum$", ("T=F32", "OffsetT=I32"), ())
    workloads = opened(session, where, "sm90")
    texts = {}
    for before, after in ((None, None), (None, "ipt_7.tpb_128.ipv_1")):
        ((_, task),) = next(iter(sides(workloads, before, after).runs.values()))
        assert [one.label for one in task.candidates] == [AFTER]
        texts[after] = [task.render([one]) for one in (OWN, *task.candidates)]
    own, same = texts[None]
    base, planted = texts["ipt_7.tpb_128.ipv_1"]
    assert own == same == base != planted
    assert all("policygen_selector_0" in text for text in (own, planted))
    ((_, swapped),) = next(iter(sides(workloads, "ipt_7.tpb_128.ipv_1", None).runs.values()))
    assert [swapped.render([one]) for one in (OWN, *swapped.candidates)] == [planted, own]
