from pathlib import Path

import pytest

from policygen.app.emit import Emitter, part_of
from policygen.errors import InputError
from policygen.headers.selectors.functions import find_aggregates, leaves, read_aggregate
from policygen.headers.user.policies import Arguments, UserReturn, selector_for
from policygen.model.plans import Options
from policygen.model.selection import Selected, Whole
from policygen.model.trees import BoundVersion
from policygen.planning.measured import measurements
from policygen.planning.places import PlacedResult
from policygen.results.together import Together
from tests.planning.wanted import GPUS, benchmark, scored

VERSION = "3.6.0"
GOOD, OTHER = "ipt_20.tpb_512.ipv_2", "ipt_16.tpb_256.ipv_1"
POLICIES = b"""
struct pass_policy
{
  int threads_per_block;
  int items_per_thread;
  int vec_size;
  BlockReduceAlgorithm reduce_algorithm;
  CacheLoadModifier load_modifier;
};
struct reduce_policy
{
  pass_policy multi_tile;
  pass_policy single_tile;
};
"""
FIELDS = read_aggregate(find_aggregates({"policies": POLICIES}), "reduce_policy")
BYTES = {"I8": 1, "I16": 2, "I32": 4, "F32": 4}


def policy(items, threads, vector, modifier="LOAD_DEFAULT"):
    """Both passes with the same values."""
    values = (threads, items, vector, "::cub::BLOCK_REDUCE_WARP_REDUCTIONS", f"::cub::{modifier}")
    names = [path for path, _ in leaves(FIELDS)]
    return dict(zip(names, 2 * [str(value) for value in values], strict=True))


NOW = policy(16, 256, 4, "LOAD_LDG")
WRITTEN = policy(20, 512, 4)


def case(variant, t="I32", now=NOW, version=VERSION):
    one = benchmark(VERSION, "reduce.sum")
    result = scored(one, {"T": t, "OffsetT": "I32"}, variant, version, GPUS["sm90"])
    ((measurement,), _) = measurements([result], BoundVersion(VERSION), "sm90", force=True)
    base = Whole(now, {}, {"axis::T": BYTES[t], "AccumT": max(4, BYTES[t])})
    known = Arguments(("int",), ("int",), None, (), {"T": t}, {})
    told = Selected(now, None, {}, base.sizes)
    return PlacedResult(
        UserReturn(told, selector_for(one, BoundVersion(VERSION)), FIELDS, base, known), measurement
    )


def decide(cases, choose):
    return part_of(cases, choose, Options(arch="sm90"))


def none(_scored):
    return Together((), "no variant was measured for all of them")


def told(part):
    return [(a.decision, a.reason, a.after) for a in part.actions]


def test_a_single_workload_gets_its_variant():
    part = decide([case(GOOD)], none)
    assert told(part) == [("write", "best score: 1.200000", WRITTEN)]
    assert part.values == WRITTEN


def test_one_variant_for_all_needs_no_second_choice():
    part = decide([case(GOOD), case(GOOD, "F32")], none)
    assert [a.decision for a in part.actions] == ["write", "write"]


def test_base_for_all_is_left_to_cub():
    part = decide([case(None)], none)
    assert told(part) == [("fallback", "no variant passes the rules", NOW)]
    assert part.values is None


def test_what_cub_has_already_is_kept():
    part = decide([case(GOOD, now=WRITTEN)], none)
    assert told(part) == [("keep", "it has these values already", WRITTEN)]
    assert part.values is None


def test_a_variant_that_is_best_in_its_worst_case_serves_all():
    cases = [case(GOOD), case(None, "F32")]
    best = cases[0].measurement.chosen

    part = decide(cases, lambda _scored: Together((best, best), "its lowest score is 1.1"))
    assert {(a.decision, a.reason) for a in part.actions} == {("write", "its lowest score is 1.1")}


def test_workloads_that_want_different_variants_are_rejected_by_name():
    part = decide([case(GOOD), case(OTHER, "I8"), case(None, "I16")], none)
    assert [a.decision for a in part.actions] == ["reject", "reject", "fallback"]
    assert part.actions[0].reason == (
        "these have the same template arguments, but no variant was measured for all of them:"
        f" cub.bench.reduce.sum T=I32 OffsetT=I32 {GOOD}, cub.bench.reduce.sum T=I8 OffsetT=I32"
        f" {OTHER}, cub.bench.reduce.sum T=I16 OffsetT=I32 base"
    )


def test_a_variant_that_means_different_values_is_rejected():
    """The benchmark of 3.5 counted for the type that is summed up, that of 3.6 for the sum's."""
    part = decide([case(GOOD), case(GOOD, "I8", version="3.5.0")], none)
    assert {a.reason for a in part.actions} == {
        "the variant means different values for each of them"
    }


def test_a_policy_that_lacks_what_was_measured_is_rejected_with_the_reason_alone():
    lacking = {path: value for path, value in NOW.items() if "items" not in path}
    part = decide([case(GOOD, now=lacking), case(GOOD, "I8", now=lacking)], none)
    assert {(a.decision, a.reason, a.selector) for a in part.actions} == {
        ("reject", "ReducePolicy has no field multi_tile.items_per_thread", "reduce")
    }


def test_a_return_of_ones_own_takes_what_has_its_arguments_and_keeps_nothing_for_others():
    one, same = case(GOOD).spot, case(OTHER, "I8").spot
    assert one.takes(same)
    assert (one.entry, one.types, one.too_broad, one.named) == (None, {}, None, "")
    with pytest.raises(InputError, match="no entry can keep the values of a workload"):
        one.kept("a workload")


def test_a_workload_that_cannot_be_planned_with_is_rejected_with_the_reason():
    result = scored(benchmark(VERSION, "reduce.sum"), {"T": "I32", "OffsetT": "I32"}, GOOD, VERSION)
    unknown = result.model_copy(update={"algorithm": "cub.bench.nothing"})
    emitter = Emitter(BoundVersion(VERSION), "sm90", Path(), {}, none, none)
    assert emitter.emit([unknown]) == []
    (action,) = emitter.refused
    assert (action.decision, action.reason) == (
        "reject",
        f"cub.bench.nothing is not bound for CUB {VERSION}",
    )
