"""A change of which a GPU says that a part is slower is narrowed, written and proved again."""

import json

import pytest

from policygen import narrow_plan, open_session
from policygen.app import comparison, performance
from policygen.errors import InputError
from policygen.gpu.changes import AFTER
from policygen.model.plans import Plan
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from tests.app.searched import driver_program, own_locks
from tests.cli.tuned import LABEL, OTHER, THREE, database, run, tuned
from tests.gpu.simulated import Plan as GpuPlan
from tests.probing import root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]


def measured(cub, tolerance=None, **verdicts):
    """What was measured of each type."""
    workloads = tuple(
        WorkloadPerformance(
            benchmark=THREE,
            workload={"T": name, "OffsetT": "I32"},
            arch="sm90",
            verdict="faster" if ratio > 1 else "slower",
            ratio=ratio,
            low=ratio - 0.01,
            high=ratio + 0.01,
        )
        for name, ratio in verdicts.items()
    )
    return VerifyPerformance(
        cub=cub,
        before="before",
        after="after",
        arch="sm90",
        confidence=0.99,
        tolerance=tolerance,
        verdict="slower",
        workloads=workloads,
    )


@pytest.fixture
def applied(capsys, tree, tmp_path):
    """Two types with variants of their own."""
    data = database(
        tmp_path / "run.db", {("I32", "I32"): LABEL, ("I16", "I32"): OTHER, ("I8", "I32"): None}
    )
    given = ("--db", data, "--arch", "sm90", "--cub", tree, "--collisions", "split", "-q")
    assert run(capsys, "apply", *given)[0] == 0
    return open_session(str(tree))


def written(plan):
    return {action.workload["T"] for action in plan.actions if action.written}


@pytest.mark.slow
def test_what_is_slower_is_left_out_and_the_rest_is_written_and_proved(
    applied, capsys, tree, tmp_path
):
    with_both = tuned(tree).read_bytes()
    plan = narrow_plan(applied, measured(applied.cub, I32=1.09, I16=0.93))
    assert written(plan) == {"I32"}
    (slower,) = [one for one in plan.actions if one.workload["T"] == "I16"]
    assert "slower when measured as written: 0.930" in slower.reason
    path = tmp_path / "narrowed.json"
    path.write_text(plan.to_json())
    assert run(capsys, "undo", "--cub", tree, "-q")[0] == 0
    assert run(capsys, "apply", "--plan", path, "--cub", tree, "-q")[0] == 0
    assert run(capsys, "verify-effect", "--cub", tree, "-q")[0] == 0
    assert tuned(tree).read_bytes() != with_both
    now, before = selected(capsys, tree), selected(capsys, root("3.0.1"))
    assert now["I32"] == now["F32"] != before["I32"]  # they share an entry
    others = before.keys() - {"I32", "F32"}
    assert {one: now[one] for one in others} == {one: before[one] for one in others}


def selected(capsys, tree):
    """What CUB selects for each type on sm90."""
    which = ("-R", THREE, "-a", "OffsetT=I32", "--arch", "sm90")
    status, out, _ = run(capsys, "resolve", "--cub", tree, *which, "--json", "-q")
    assert status == 0
    return {row["workload"]["T"]: row["values"] for row in json.loads(out)["rows"]}


@pytest.mark.slow
def test_where_all_is_slower_nothing_is_left(applied):
    plan = narrow_plan(applied, measured(applied.cub, I32=0.9, I16=0.93))
    assert not written(plan)
    assert not plan.edits


@pytest.mark.slow
def test_what_may_be_so_much_slower_stays(applied):
    assert narrow_plan(applied, measured(applied.cub, tolerance=0.1, I32=1.09, I16=0.93)) is None


@pytest.mark.slow
def test_what_shares_an_entry_keeps_what_it_had(capsys, tree, tmp_path):
    data = database(tmp_path / "run.db", {("I32", "I32"): LABEL})
    assert run(capsys, "apply", "--db", data, "--arch", "sm90", "--cub", tree, "-q")[0] == 0
    session = open_session(str(tree))
    plan = narrow_plan(session, measured(session.cub, I32=1.09, F32=0.9))
    (kept,) = [one for one in plan.actions if one.workload["T"] == "F32"]
    assert "slower when measured as written: 0.900" in kept.reason
    assert not kept.written
    # Its entry says what it had; that of the other one has its new values.
    assert written(plan) == {"I32"}
    assert "has its current values" in kept.reason


@pytest.mark.slow
def test_without_a_plan_there_is_nothing_to_narrow(tree):
    session = open_session(str(tree))
    with pytest.raises(InputError, match="no plan to narrow"):
        narrow_plan(session, measured(session.cub, I32=0.9))


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A simulated GPU; objects are files without content."""

    class Compiler:
        def __init__(self, _toolchain, folder, _listings):
            self.folder = folder

        def make(self, source):
            path = self.folder / f"{len(list(self.folder.iterdir()))}.so"
            path.touch()
            return path

    def does(**plan):
        made = GpuPlan(str(tmp_path), **plan)
        monkeypatch.setattr(performance, "worker_command", lambda *_: made.command())
        monkeypatch.setattr(performance, "ObjectCompiler", Compiler)
        driver_program(tmp_path, monkeypatch)
        own_locks(tmp_path, monkeypatch)

    return does


def verify(capsys, tree, *more):
    given = ("--cub", tree, "-R", THREE, "-a", "T=I32", "-a", "OffsetT=I32", "--rounds", "6")
    return run(capsys, "verify-performance", *given, "--processes", "3", *more)


@pytest.mark.slow
def test_an_apply_is_measured_against_what_it_replaced_and_what_it_claims(
    capsys, tree, tmp_path, gpu, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(comparison, "MANY", 0)
    data = database(tmp_path / "run.db", {("I32", "I32"): LABEL})
    assert run(capsys, "apply", "--db", data, "--arch", "sm90", "--cub", tree, "-q")[0] == 0
    gpu(ratios={AFTER: 1.5})
    status, out, err = verify(capsys, tree, "--narrow", tmp_path / "without.json", "-v")
    assert status == 0, out
    assert "before: before the apply for sm90: tuning_three_way_partition.cuh" in out
    assert out.splitlines()[-1] == "1 workload: 1 faster"
    assert "Elements=28" in out
    assert "nothing is slower, so there is nothing to narrow" in err
    assert "1 workload is compiled before and after; choose among them with -R and -a" in err
    assert not (tmp_path / "without.json").exists()

    gpu(ratios={AFTER: 1.001})
    status, out, _ = verify(capsys, tree, "--json", "-q")
    (workload,) = VerifyPerformance.model_validate_json(out).workloads
    assert status == 1
    assert workload.holds is False
    assert 1.001 < workload.least < workload.claimed

    gpu(ratios={AFTER: 0.8})
    status, out, err = verify(capsys, tree, "--narrow", tmp_path / "without.json")
    assert status == 1
    assert "1 workload: 1 slower; " in out
    assert "nothing faster remains; undo the change with: policygen undo" in err
    plan = Plan.model_validate_json((tmp_path / "without.json").read_text())
    assert not written(plan)


def test_a_plan_file_that_is_there_is_not_lost(capsys, tree, tmp_path, gpu):
    (tmp_path / "without.json").write_text("mine")
    gpu()
    status, _, err = verify(capsys, tree, "--narrow", tmp_path / "without.json", "--base", tree)
    assert status == 2
    assert "without.json" in err
    assert (tmp_path / "without.json").read_text() == "mine"


@pytest.mark.slow
def test_dumps_hold_nothing_to_measure(capsys, tree, tmp_path, gpu):
    gpu()
    which = ("-R", f"{THREE}$", "-a", "T=I32", "-a", "OffsetT=I32", "--arch", "sm90")
    save = ("verify-sass", "--cub", tree, *which, "--save", tmp_path / "kept", "-q")
    assert run(capsys, *save)[0] == 0
    status, _, err = verify(capsys, tree, "--base", tmp_path / "kept")
    assert status == 2
    assert "dumps contain no headers" in err
