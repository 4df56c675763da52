"""What is known of struct families beside policy selectors without a compiler."""

import pytest

from policygen.headers.scan import read_header
from policygen.model.selection import Selected
from policygen.planning import legacy
from tests.planning.pretend import SUM, SUM_INT, SUM_MIN, SUMS, plan, source, summed, sums
from tests.planning.test_plan import ONE

HEADER = "tuning_reduce.cuh"
I32 = summed("I32")
CHAIN = """
struct policy_hub
{
  struct Policy600 : ChainedPolicy<600, Policy600, Policy600> {};
  struct Policy1000 : ChainedPolicy<1000, Policy1000, Policy600> {};
  using MaxPolicy = Policy1000;
};
"""


@pytest.fixture
def made():
    """A plan for sums, as if its tree had selectors."""
    found = plan(sums(SUMS + SUM_INT), {I32: ONE})
    cub = found.cub.model_copy(update={"version": "3.6.0", "dialect": "selectors"})
    assert [action.decision for action in found.actions] == ["update"]
    return found.model_copy(update={"cub": cub})


def headers(text):
    return {HEADER: read_header(HEADER, source("reduce", text))}


def test_families_that_a_chain_reads_are_beside_a_return(made):
    known = headers(SUMS + SUM_INT + CHAIN)
    assert legacy.headers_beside([SUM, SUM], made.cub, known) == {HEADER}
    assert legacy.unread(made, known) == []
    assert legacy.returned(made, known) == list(made.actions)


def test_families_that_no_policy_reads_are_told_and_not_asked_about(made):
    known = headers(SUMS + SUM_INT)
    assert legacy.unread(made, known) == [
        f"no policy reads the struct families of {HEADER}: their effect cannot be proven, so they"
        " stay"
    ]
    assert legacy.returned(made, known) == []


def test_a_header_without_specializations_has_nothing_beside(made):
    known = headers(SUMS + CHAIN)
    assert legacy.headers_beside([SUM, "cub.bench.find.if"], made.cub, known) == set()
    assert legacy.unread(made, known) == []
    assert legacy.report_unchanged_families(set()) == []


def test_what_families_say_is_compared_by_the_names_that_both_have(made):
    (action,) = made.actions
    same = {name: value for name, value in action.after.items() if name != "threads"}
    told = Selected({**same, "only_here": 1}, None, {}, {})
    assert legacy.unlike(made.actions, {I32: legacy.shown(told)}) == []
    threads = action.after["threads"]
    other = Selected({**same, "threads": threads + 32}, None, {}, {})
    assert legacy.unlike(made.actions, {I32: legacy.shown(other)}) == [
        "the policy of the struct families (no entry decides it) differs from what is"
        f" returned for {SUM} T=I32 OffsetT=I32: threads {threads + 32}, returned {threads}"
    ]
    assert legacy.unlike(made.actions, {}) == []


def test_entries_that_say_the_same_of_several_workloads_are_told_once(made):
    (action,) = made.actions
    other = action.model_copy(update={"workload": {"T": "F32", "OffsetT": "I32"}})
    family = read_header(HEADER, source("reduce", SUMS + SUM_MIN)).families[0]
    (entry,) = family.specializations
    told = Selected({**action.after, "threads": 96}, (family, entry), {}, {})
    given = {one.point: legacy.shown(told) for one in (action, other)}
    (remark,) = legacy.unlike([action, other], given)
    assert remark.startswith(
        f"{HEADER}:{entry.line} sm100_tuning<T, OffsetT, op_type::min_or_max, offset_size::_4,"
        f" accum_size::_4> differs from what is returned for {SUM} T=I32 OffsetT=I32 and 1 more:"
        " threads 96, returned "
    )


def test_what_a_plan_for_families_gives_is_named_by_its_target(made):
    (action,) = made.actions
    place, values = legacy.given(action)
    assert place.startswith(f"{HEADER}: sm100_tuning<T, OffsetT, op_type::plus")
    assert values == action.after
    kept = action.model_copy(update={"decision": "reject", "target": None})
    assert legacy.given(kept) == ("the policy of the struct families", action.before)


@pytest.mark.parametrize("decision", ["update", "reject"])
def test_where_a_return_is_rejected_the_family_beside_it_stays(made, decision):
    (action,) = made.actions
    action = action.model_copy(update={"decision": decision, "reason": "it leaks"})
    given = made.model_copy(update={"actions": (action,)})
    scored, held = legacy.results_for(given, made.results, headers(SUMS + SUM_INT + CHAIN))
    assert scored == list(made.results)
    stays = {action.point: "its return stays as it is: it leaks"}
    assert held == (stays if decision == "reject" else {})
