"""Whether a change has the effect that its plan says, and no other."""

import pytest

from policygen.errors import InputError
from policygen.model.plans import Options, Plan, Reached
from policygen.model.selection import Delta, DeltaRow
from policygen.planning.judge import differs, judge
from policygen.planning.saved import check_decisions
from tests.planning.pretend import CUB, SUM, SUM_INT, SUMS, plan, summed, sums

ARCHS = ("sm80", "sm90", "sm100", "sm120")
I32, F32, I64 = summed("I32"), summed("F32"), summed("I64")
WAS = {"items": 16, "threads": 512}
NOW = {"items": 20, "threads": 256}


def made(decision="update", arch="sm90", reached=()):
    """A plan with one action, and what its change reaches besides."""
    found = plan(sums(SUMS + SUM_INT), {I32: "ipt_20.tpb_256.ipv_2"})
    before = {**WAS}
    after = {**NOW} if decision in {"update", "add"} else before
    action = found.actions[0].model_copy(
        update={"decision": decision, "before": before, "after": after}
    )
    more = tuple(
        Reached(benchmark=SUM, workload=dict(point[1]), arch=on, kept=kept)
        for point, on, kept in reached
    )
    return found.model_copy(
        update={"actions": (action,), "options": Options(arch=arch), "reached": more}
    )


def effect(found, *changes):
    compared = Delta(ARCHS, 12, tuple(DeltaRow(*point, *rest) for point, *rest in changes))
    return judge(found, compared, lambda point, arch: f"nobody reads it on {arch}")


def wrong(found, *changes):
    return [(one.name, one.reason) for one in effect(found, *changes).wrong]


NAME = "cub.bench.reduce.sum T=I32 OffsetT=I32"


def test_what_was_written_is_selected():
    found = effect(made(), (I32, "sm90", WAS, NOW))
    assert found.wrong == ()
    assert [(one.role, one.arch, one.before, one.after) for one in found.changed] == [
        ("written", "sm90", WAS, NOW)
    ]
    assert (found.cub, found.toolchain, found.archs, found.compared) == (
        CUB,
        "pretended",
        ARCHS,
        12,
    )
    assert found.headers == ("tuning_reduce.cuh",)


@pytest.mark.parametrize("decision", ["update", "add"])
def test_what_was_written_and_is_not_selected_is_wrong(decision):
    reason = "it gets items 16, not 20, threads 512, not 256: nobody reads it on sm90"
    found = effect(made(decision))
    assert [(one.name, one.reason) for one in found.wrong] == [(f"{NAME} on sm90", reason)]
    assert (found.wrong[0].before, found.wrong[0].after) == (WAS, WAS)


def test_what_gets_something_else_is_wrong():
    half = {"items": 20}
    assert wrong(made(), (I32, "sm90", WAS, half)) == [
        (f"{NAME} on sm90", "it gets threads nothing, not 256: nobody reads it on sm90")
    ]


def test_what_has_its_values_already_is_no_change():
    one = made()
    same = one.actions[0].model_copy(update={"before": NOW})
    found = effect(one.model_copy(update={"actions": (same,)}))
    assert (found.changed, found.wrong) == ((), ())


@pytest.mark.parametrize(
    ("arch", "reason"),
    [
        ("sm80", "an earlier architecture changes: items 16 → 20, threads 512 → 256"),
        ("sm90", "it changes, but should not: items 16 → 20, threads 512 → 256"),
        ("sm100", "it changes, but should not: items 16 → 20, threads 512 → 256"),
    ],
)
def test_an_unplanned_change_is_wrong_on_any_architecture(arch, reason):
    name = f"cub.bench.reduce.sum T=I64 OffsetT=I32 on {arch}"
    changes = (I32, "sm90", WAS, NOW), (I64, arch, WAS, NOW)
    assert wrong(made(), *changes) == [(name, reason)]


@pytest.mark.parametrize("decision", ["fallback", "keep", "reject"])
def test_a_workload_that_is_to_stay_must_not_change(decision):
    reason = "it changes, but should not: items 16 → 20, threads 512 → 256"
    assert wrong(made(decision), (I32, "sm90", WAS, NOW)) == [(f"{NAME} on sm90", reason)]


def test_a_value_that_is_gone_is_told():
    reason = "it changes, but should not: threads 512 → nothing"
    found = effect(made("keep"), (I32, "sm90", WAS, {"items": 16}))
    assert [one.reason for one in found.wrong] == [reason]


def test_changes_that_the_plan_tells_are_allowed():
    reached = [(F32, "sm90", False), (I32, "sm100", False)]
    changes = (I32, "sm90", WAS, NOW), (F32, "sm90", WAS, NOW), (I32, "sm100", WAS, NOW)
    found = effect(made(reached=reached), *changes)
    assert [one.role for one in found.changed] == ["written", "shared", "later"]
    assert found.wrong == ()


def test_what_a_later_architecture_keeps_must_not_change():
    reason = "it changes, but should not: items 16 → 20, threads 512 → 256"
    found = made(reached=[(I32, "sm100", True)])
    assert wrong(found, (I32, "sm90", WAS, NOW), (I32, "sm100", WAS, NOW)) == [
        (f"{NAME} on sm100", reason)
    ]


def test_the_effect_of_a_whole_plan_is_what_it_says():
    oracle = sums(SUMS + SUM_INT)
    found = plan(oracle, {I32: "ipt_20.tpb_256.ipv_2"})
    judged = judge(found, oracle.compare(oracle.compared[0]), oracle.why_not)
    assert [(one.workload["T"], one.role) for one in judged.changed] == [
        ("I32", "written"),
        ("F32", "shared"),
    ]
    assert judged.wrong == ()
    assert isinstance(found, Plan)


def test_values_that_differ_are_told_in_the_order_that_was_wanted():
    assert differs({"b": True}, {"a": 1, "b": False}) == "a nothing, not 1, b true, not false"
    assert differs({"a": 1, "b": 2}, {"a": 1}) == ""


@pytest.mark.parametrize("rejected", [False, True])
def test_a_saved_plan_chooses_only_variants_that_its_benchmark_has(rejected):
    found = made("reject" if rejected else "update")
    check_decisions(found)
    action, result = found.actions[0], found.results[0]
    variants = (result.variants[0].model_copy(update={"variant": "nope_3"}),)
    wrong = found.model_copy(
        update={
            "actions": (action.model_copy(update={"variant": "nope_3"}),),
            "results": (result.model_copy(update={"variants": variants}),),
        }
    )
    if rejected:  # maybe for this
        check_decisions(wrong)
    else:
        with pytest.raises(InputError, match="the plan chooses 'nope_3' for"):
            check_decisions(wrong)
