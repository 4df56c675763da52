"""Coverage out of made-up resolutions."""

from policygen.app.audits import cell_of, planned, shares, turned
from policygen.model.audits import Cell
from policygen.model.plans import Action, Options, Plan
from policygen.model.selection import DisabledEntry, EntryPlace, ResolvedRow
from policygen.model.trees import Cub

CUB = Cub(root="/tree", version="3.0.1", dialect="specializations", found="--cub")
BENCH = "cub.bench.scan.exclusive.sum"
PLACE = {"header": "tuning_scan.cuh", "family": "sm100_tuning", "args": ("int",)}
ENTRY = EntryPlace(**PLACE, line=10)
PASSED = EntryPlace(**PLACE, line=20)
OFF = DisabledEntry(**PLACE, line=30, reason="regresses")


def row(value, status, arch="sm100", **fields):
    since = {"tuned": arch, "inherited": "sm90"}.get(status)
    return ResolvedRow(
        benchmark=BENCH,
        workload={"T": value},
        arch=arch,
        values={},
        entry=fields.pop("entry", None),
        status=status,
        since=since,
        **fields,
    )


def cell(value, status, arch="sm100", since=None):
    workload = {"T": value}
    return Cell(
        benchmark=BENCH, workload=workload, arch=arch, status=status, since=since, entry=None
    )


def test_an_entry_that_stands_in_the_way_gives_the_status():
    rows = (
        row("I8", "tuned", entry=ENTRY, disabled=OFF),
        row("I16", "inherited", disabled=OFF),
        row("I32", "inherited", passed=PASSED, disabled=OFF),
        row("I64", "default"),
    )
    found = tuple(map(cell_of, rows))
    assert [(one.status, one.since, one.entry and one.entry.line, one.reason) for one in found] == [
        ("tuned", "sm100", 10, None),
        ("disabled", "sm90", 30, "regresses"),
        ("unreachable", "sm90", 20, None),
        ("default", None, None, None),
    ]


def test_shares_are_of_all_benchmarks_and_of_each():
    found = [cell("I8", "tuned"), cell("I16", "inherited"), cell("I8", "default", "sm80")]
    told = shares(found)
    assert [(one.benchmark, one.arch, one.workloads) for one in told] == [
        (None, "sm80", 1),
        (None, "sm100", 2),
        (BENCH, "sm80", 1),
        (BENCH, "sm100", 2),
    ]
    assert told[1].counts == {
        "tuned": 1, "inherited": 1, "default": 0, "disabled": 0, "unreachable": 0, "unknown": 0,
    }  # fmt: skip
    assert told[1].percent(("tuned",)) == 50
    assert told[1].percent(("tuned", "inherited")) == 100


def action(value, decision, score):
    return Action(
        benchmark=BENCH,
        workload={"T": value},
        decision=decision,
        reason="",
        variant="ipt_7",
        scores=(score, 1.0, 1.0, 1.0),
        gpu="H200",
        ctk="13.0",
        cccl="3.0.1",
        databases=("run.db",),
    )


def plan(arch, *actions):
    return Plan(
        cub=CUB, toolchain="nvcc 13.2", options=Options(arch=arch), actions=actions, files=()
    )


def test_what_pays_most_comes_first_and_what_is_tuned_is_not_missing():
    found = [cell(v, "default") for v in ("I8", "I16", "I32")] + [cell("I64", "tuned")]
    plans = [
        plan("sm100", action("I8", "add", 1.1), action("I16", "update", 1.4)),
        plan("sm100", action("I32", "reject", 2.0), action("I64", "update", 3.0)),
        plan("sm90", action("I32", "add", 2.0)),
    ]
    could, (lost,) = planned(found, plans)
    assert [(one.workload["T"], one.score, one.databases) for one in could] == [
        ("I16", 1.4, ("run.db",)),
        ("I8", 1.1, ("run.db",)),
    ]
    assert could[0].name == f"{BENCH} T=I16"
    assert (lost.workload["T"], lost.score, lost.reason) == ("I32", 2.0, "")


def test_what_turned_is_gained_or_lost_where_both_trees_have_the_workload():
    before = [
        cell("I8", "tuned"),
        cell("I16", "default"),
        cell("I32", "default"),
        cell("I64", "tuned"),
        cell("C64", "tuned"),
        cell("F16", "default"),
        cell("F32", "tuned"),
    ]
    after = [
        cell("I8", "default"),
        cell("I16", "tuned"),
        cell("I32", "disabled"),
        cell("I64", "tuned"),
        cell("C32", "tuned"),
    ]
    found = turned(before, after)
    assert {one.workload["T"]: one.kind for one in found} == {
        "I8": "lost",
        "I16": "gained",
        "I32": "other",
        "C64": "only before",
        "F32": "only before",
        "C32": "only after",
    }
