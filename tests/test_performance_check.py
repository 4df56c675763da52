"""`make performance-check`: what it counts, without a GPU."""

import json
from pathlib import Path

import pytest

from benchmarks import performance_check
from benchmarks.performance_check import check, find_planted, main, opened, sides, wrong
from policygen.app.filters import Filter
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.gpu.changes import AFTER
from policygen.gpu.compiling import OWN
from policygen.model.workload import point_of
from policygen.rendering import folder
from tests.gpu import compiled
from tests.report.performances import SCAN, performance, runtime, workload
from tests.test_measure_check import LABEL, document, variant

PLANTED = point_of(SCAN, {"T": "I32"})
EQUAL = point_of(SCAN, {"T": "F32"})


class Opened:
    """A workload that was opened, by its name alone."""

    def __init__(self, name):
        self.name = name


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Documents that runs give, in their order, and the file that keeps what was found."""
    given, asked = [], []

    def measure(_session, change, _where, _arch, *, effort):
        asked.append((change, effort.seed))
        return given.pop(0)

    there = {
        PLANTED: Opened(f"{SCAN} T=I32"),
        EQUAL: Opened(f"{SCAN} T=F32"),
    }
    monkeypatch.setattr(performance_check, "PARTS", 1)
    monkeypatch.setattr(performance_check, "measure_change", measure)
    monkeypatch.setattr(performance_check, "opened", lambda _, where, __: own(there, where))
    monkeypatch.setattr(performance_check, "open_session", lambda _: None)
    monkeypatch.setattr(performance_check, "find_gpu", lambda: Opened)
    monkeypatch.setattr(Opened, "arch", "sm90", raising=False)
    monkeypatch.setattr(performance_check, "sides", lambda _, planted: planted)
    monkeypatch.setattr(performance_check, "measure_variants", lambda *_, **__: drawn(0.972))
    return given, asked, tmp_path / "kept/performance.json"


def drawn(score):
    found = document(variant(score))
    (one,) = found.workloads
    named = one.model_copy(update={"benchmark": SCAN, "workload": {"T": "I32"}})
    return found.model_copy(update={"workloads": (named,)})


def own(there, where):
    planted = where.regex == performance_check.ALGORITHMS
    return {point: one for point, one in there.items() if (point == PLANTED) == planted}


def run(verdict, equal=100, other="equal"):
    rows = [runtime(1.0, "equal", elements=str(at)) for at in range(equal - 1)]
    rows.append(runtime(1.0, other, elements="99"))
    return performance(
        workload("F32", 1.0, "equal", *rows),
        workload("I32", 0.972, verdict, runtime(0.97, verdict, "24")),
    )


def test_equal_code_may_be_called_otherwise_once_in_a_hundred(measured, capsys):
    given, asked, kept = measured
    given += [run("slower", other="faster"), run("slower")]
    assert check("3.6.0", 2, kept) == []
    assert [(planted[PLANTED], seed) for planted, seed in asked] == [
        (("slower", LABEL), 1),
        (("slower", LABEL), 2),
    ]
    out = capsys.readouterr().out
    assert "equal: 1 of 200 runtime workloads are called otherwise" in out
    assert f"slower {SCAN} T=I32: slower: 2 times in 2 runs" in out


def test_more_is_said(measured):
    given, _, kept = measured
    given += [run("slower", 99, "undecided")]
    assert check("3.6.0", 1, kept) == ["1 of 99 equal runtime workloads are called otherwise"]


def test_what_is_planted_must_be_found_in_each_run(measured):
    given, _, kept = measured
    given += [run("slower"), run("equal")]
    (wrong,) = check("3.6.0", 2, kept)
    assert wrong == f"slower {SCAN} T=I32: equal: 1 times in 2 runs"


def test_it_goes_on_where_it_was(measured, monkeypatch, capsys):
    given, asked, kept = measured
    given += [run("slower")]
    assert check("3.6.0", 1, kept) == []
    assert json.loads(kept.read_text())["planted"]
    given += [run("slower")]
    assert check("3.6.0", 2, kept) == []
    assert [seed for _, seed in asked] == [1, 2]
    monkeypatch.setattr(performance_check, "KEPT", kept)
    monkeypatch.setattr(check, "__defaults__", (kept,))
    assert main("3.6.0", 2) == 0
    assert "all verdicts are right" in capsys.readouterr().out


def test_what_was_not_measured_is_no_equal_code(measured):
    given, _, kept = measured
    given.append(performance(workload("F32", None, "undecided", problem="no run")))
    found = check("3.6.0", 1, kept)
    assert found[0] == "0 of 0 equal runtime workloads are called otherwise"
    assert "no run" in found[1]


def test_a_workload_without_a_variant_is_told(monkeypatch):
    failed = variant(0.9).model_copy(update={"score": None})
    monkeypatch.setattr(performance_check, "measure_variants", lambda *_, **__: document(failed))
    with pytest.raises(InputError, match="no variant of 24 could be measured"):
        find_planted(None, ())


def test_what_an_h200_said_is_right(capsys):
    path = folder("fixtures") / "measured/performance_check.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    assert list(wrong(runs)) == []
    assert f"equal: 0 of {sum(run['equal: equal'] for run in runs)} " in capsys.readouterr().out
    page = (Path(__file__).parents[1] / "docs/measuring.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    planted = sum(count for run in runs for key, count in run.items() if "equal: " not in key)
    equal = sum(run["equal: equal"] for run in runs)
    assert f"{equal:,} of {equal:,} equal ones were called equal" in page
    assert f"{planted} of {planted} planted ones found" in page


@pytest.mark.trees
@pytest.mark.nvcc
def test_both_sides_are_policies_of_the_same_call():
    session = Session(compiled.cub("3.6.0"))
    where = Filter((), "cub.bench.reduce.sum$", ("T=F32", "OffsetT=I32"), ())
    workloads = opened(session, where, "sm90")
    (point,) = workloads
    label, texts = "ipt_7.tpb_128.ipv_1", {}
    for way in ("equal", "slower", "faster"):
        planted = {} if way == "equal" else {point: (way, label)}
        ((_, task),) = sides(workloads, planted).runs[point]
        assert [one.label for one in task.candidates] == [AFTER]
        texts[way] = [task.render([one]) for one in (OWN, *task.candidates)]
    own_text, same = texts["equal"]
    base, slower = texts["slower"]
    assert own_text == same == base != slower
    assert all("policygen_selector_0" in text for text in (own_text, slower))
    assert texts["faster"] == [slower, own_text]
