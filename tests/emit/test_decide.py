import pytest

from policygen.dialects.user.arguments import Arguments
from policygen.dialects.user.place import UserReturn
from policygen.dialects.user.public import selector_for
from policygen.errors import InputError
from policygen.model.facts import Told
from policygen.model.plan import Options
from policygen.model.policies import Whole
from policygen.planning.emitter import Emitter, part_of
from policygen.planning.measured import measurements
from policygen.planning.places import PlacedResult
from policygen.results.together import Together
from tests.planning.wanted import GPUS, benchmark, scored

VERSION = "3.6.0"
GOOD, OTHER = "ipt_20.tpb_512.ipv_2", "ipt_16.tpb_256.ipv_1"


class Fixed(UserReturn):
    """A place whose values are made up."""

    def members(self, measured, variant):
        return {"items": str(variant["ipt"])}


class Wider(Fixed):
    """One that counts in another unit."""

    def members(self, measured, variant):
        return {"items": str(2 * variant["ipt"])}


class Broken(Fixed):
    """One whose policy lacks what was measured."""

    def members(self, measured, variant):
        raise InputError("ReducePolicy has no field items", "Correct the selector.")


def case(variant, t="I32", now="7", kind=Fixed):
    one = benchmark(VERSION, "reduce.sum")
    result = scored(one, {"T": t, "OffsetT": "I32"}, variant, VERSION, GPUS["sm90"])
    ((measurement,), _) = measurements([result], VERSION, "sm90", force=True)
    told = Told({"items": now}, None, {}, {})
    key = Arguments(("int",), ("int",), None, ())
    base = Whole({"items": now}, {}, {})
    return PlacedResult(kind(told, selector_for(one, VERSION), (), base, key), measurement)


def decide(cases, choose):
    return part_of(cases, choose, Options(arch="sm90"))


def none(_scored):
    return Together((), "no variant was measured for all of them")


def told(part):
    return [(a.decision, a.reason, a.after) for a in part.actions]


def test_a_single_workload_gets_its_variant():
    part = decide([case(GOOD)], none)
    assert told(part) == [("write", "best score: 1.200000", {"items": "20"})]
    assert part.values == {"items": "20"}


def test_one_variant_for_all_needs_no_second_choice():
    part = decide([case(GOOD), case(GOOD, "I8")], none)
    assert [a.decision for a in part.actions] == ["write", "write"]


def test_base_for_all_is_left_to_cub():
    part = decide([case(None)], none)
    assert told(part) == [("fallback", "no variant passes the rules", {"items": "7"})]
    assert part.values is None


def test_what_cub_has_already_is_kept():
    part = decide([case(GOOD, now="20")], none)
    assert told(part) == [("keep", "the values are these already", {"items": "20"})]
    assert part.values is None


def test_a_variant_that_is_best_in_its_worst_case_serves_all():
    cases = [case(GOOD), case(None, "I8")]
    best = cases[0].measurement.chosen

    part = decide(cases, lambda _scored: Together((best, best), "its lowest score is 1.1"))
    assert {(a.decision, a.reason) for a in part.actions} == {("write", "its lowest score is 1.1")}


def test_workloads_that_want_different_variants_are_rejected_by_name():
    part = decide([case(GOOD), case(OTHER, "I8"), case(None, "I16")], none)
    assert [a.decision for a in part.actions] == ["reject", "reject", "fallback"]
    assert part.actions[0].reason == (
        "these have the same template arguments, and no variant was measured for all of them:"
        f" cub.bench.reduce.sum T=I32 OffsetT=I32 {GOOD},"
        f" cub.bench.reduce.sum T=I8 OffsetT=I32 {OTHER},"
        " cub.bench.reduce.sum T=I16 OffsetT=I32 base"
    )


def test_a_variant_that_means_different_values_is_rejected():
    part = decide([case(GOOD), case(GOOD, "I8", kind=Wider)], none)
    assert {a.reason for a in part.actions} == {
        "one variant means different values for each of them"
    }


def test_a_policy_that_lacks_what_was_measured_is_rejected_with_the_reason_alone():
    part = decide([case(GOOD, kind=Broken), case(GOOD, "I8", kind=Broken)], none)
    assert {(a.decision, a.reason, a.selector) for a in part.actions} == {
        ("reject", "ReducePolicy has no field items. Correct the selector.", "reduce")
    }


def test_a_return_of_ones_own_takes_what_has_its_arguments_and_keeps_nothing_for_others():
    one, same = case(GOOD).spot, case(OTHER, "I8").spot
    assert one.takes(same)
    assert (one.entry, one.types, one.too_broad, one.named) == (None, {}, None, "")
    with pytest.raises(InputError, match="no entry can keep what a workload has"):
        one.kept("a workload")


def test_a_workload_that_cannot_be_planned_with_is_rejected_with_the_reason():
    result = scored(benchmark(VERSION, "reduce.sum"), {"T": "I32", "OffsetT": "I32"}, GOOD, VERSION)
    unknown = result.model_copy(update={"algorithm": "cub.bench.nothing"})
    emitter = Emitter(VERSION, "sm90", {}, none, none)
    assert emitter.emit([unknown]) == []
    (action,) = emitter.refused
    assert (action.decision, action.reason) == (
        "reject",
        f"cub.bench.nothing is not bound for CUB {VERSION}",
    )
