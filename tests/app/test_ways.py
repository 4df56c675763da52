"""Which rejected results are asked about, when something else might take them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from policygen.app import plan as plan_module
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.model.plans import Action, Given, Named, Options, Plan, Way
from tests.app.test_commands import CUB
from tests.planning.pretend import summed, want

RUN = {"gpu": "H200 (6144, 132, eccon)", "ctk": "13.0.88", "cccl": "v3.0.1"}
NAMES = ("merge", "scan", "sort", "sum", "top")
SCORES = (1.1, 1.5, 1.2, 1.3, 1.4)


def action(name, score=1.2, **fields):
    given = {
        "benchmark": f"cub.bench.{name}",
        "workload": {"T": "I8"},
        "decision": "reject",
        "reason": "it has no place",
        "variant": "ipt_7",
        "scores": (score, 1.0, 1.1, 1.3),
        "databases": ("run.db",),
    }
    return Action(**{**given, **RUN, **fields})


def asked(*actions):
    plan = Plan(cub=CUB, toolchain="nvcc", options=Options(arch="sm90"), actions=actions, files=())
    known = {one.point: SimpleNamespace(**RUN, databases=("run.db",)) for one in actions}
    return plan_module.Rejecting(None, None, None, (), plan, Given(databases=("run.db",)), known)


@pytest.fixture
def tried(monkeypatch):
    """The benchmarks that something is asked about."""
    found = []

    def way(_, name, lost):
        found.append(name.removeprefix("cub.bench."))
        named = tuple(Named(benchmark=a.benchmark, workload=a.workload) for a in lost)
        yield Way(kind="emit", workloads=named, what="a selector", command="policygen emit")

    monkeypatch.setattr(plan_module, "_emit_alternatives", way)
    return found


def test_the_best_are_asked_about_and_the_others_are_told(tried):
    rejected = [action(name, score) for name, score in zip(NAMES, SCORES, strict=True)]
    found, remarks = plan_module.find_ways(asked(*rejected))
    assert tried == ["scan", "sum", "top"]
    assert [one.workloads[0].benchmark for one in found] == [f"cub.bench.{n}" for n in tried]
    assert remarks == (
        "options that would accept rejected results were tried for 3 of 5 benchmarks; -R"
        " 'cub.bench.sort$' tries another",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"decision": "fallback"},
        {"variant": None},
        {"legacy": True},
        {"databases": ("other.db",)},  # measured again: another run of it counts
        {"cccl": "v3.2.0"},
    ],
)
def test_what_is_no_rejected_result_is_not_asked_about(tried, fields):
    assert plan_module.find_ways(asked(action("scan", **fields))) == ((), ())
    assert tried == []


def test_what_cannot_be_asked_is_not_said(monkeypatch):
    def refused(*_):
        raise InputError("no compiler")

    monkeypatch.setattr(plan_module, "_emit_alternatives", refused)
    assert plan_module.find_ways(asked(action("scan"))) == ((), ())


def test_a_single_workload_is_named_as_its_database_calls_it():
    one = want(summed("I8"), "ipt_7")
    many = asked(action("scan"), action("sum"))
    (lost, _) = many.plan.actions
    known = {lost.point: one}
    single = plan_module.Rejecting(None, None, None, (), many.plan, many.given, known)
    assert plan_module._axes(single, [lost]) == ["T=I8", "OffsetT=I32"]
    assert plan_module._axes(single, many.plan.actions) == ()


@pytest.mark.parametrize(
    ("version", "first", "last"),
    [
        ("3.6.0", "policygen emit ", "--cub '/a tree'"),
        ("3.0.1", "policygen headers fetch 3.6.0 && policygen emit ", "--cub 3.6.0"),
    ],
)
def test_emit_takes_the_tree_if_its_api_takes_selectors(monkeypatch, version, first, last):
    monkeypatch.setattr(plan_module, "_fetched_tree", lambda _: None)
    monkeypatch.setattr(plan_module, "_taken_by_selector", lambda _a, _b, rejected, _c: rejected)
    plan = asked(action("reduce.sum"), action("reduce.sum", workload={"T": "I16"}))
    session = Session(CUB.model_copy(update={"version": version}))
    ((way,), _) = plan_module.find_ways(replace(plan, session=session))
    assert way.command.startswith(first)
    assert way.command.endswith(last)
    assert ("for CUB 3.5 and later" in way.what) is (version == "3.0.1")
