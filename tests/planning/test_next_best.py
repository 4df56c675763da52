"""What becomes of an entry that cannot say the best variant, on a small header."""

from dataclasses import replace

import pytest

from policygen.errors import InputError
from policygen.headers.protocol import FamilySpot
from policygen.model.plans import NextBest
from policygen.model.results import ScoredVariant
from policygen.planning.decide import in_place_of, proposed, written
from policygen.results.together import Together
from tests.planning.pretend import (
    KEYED,
    KEYED_INT,
    SUM_INT,
    SUMS,
    by_key,
    keyed,
    planner,
    summed,
    sums,
    told,
    want,
)
from tests.planning.test_decide import BEST, ONE, OTHER, entries
from tests.planning.wanted import GPUS, made

WIDE = "ipt_30.tpb_256.ipv_2"
"""No count of the benchmark's search."""
I32, F32 = summed("I32"), summed("F32")
ODD = "ipt_20.tpb_256.trp_1.ld_1.ns_100.dcid_1.l2w_300"
EVEN = ODD.replace("ld_1", "ld_0")
SAYS = "its lowest score over all"


def down(*labels):
    """Looks down a list of labels, each with a hundredth less; notes what it is asked for."""
    asked = []

    def choose(cases, can):
        asked.append(tuple(case.measurement.point for case in cases))
        for place, name in enumerate(labels, 1):
            if can(name):
                score = 1.2 - place / 100
                one = ScoredVariant(variant=name, score=score, min=1.0, mean=1.1, max=1.3)
                return Together((one,) * len(cases), SAYS)
        return Together((), "no variant passes the rules")

    choose.asked = asked
    return choose


def plan(oracle, wanted, choose, **options):
    gpu = GPUS[options.get("arch", "sm100")]
    results = [want(point, variant, gpu=gpu) for point, variant in wanted.items()]
    maker = planner(oracle, **options)
    return made(replace(maker, next_best=choose), results)


UNSAID = f"{ODD}: sm90_tuning cannot express what was measured: it has load_modifier LOAD_DEFAULT"
PROPOSAL = (
    f"{UNSAID}, not LOAD_CA; next best that the entry can express: {EVEN}, 1.180000 instead of"
    " 1.200000,"
    " 1.7% less; --next-best accepts it"
)
KEY = keyed("I32", "I32")


def modified():
    """Families of sm90 leave the load modifier to their policy."""
    return by_key(KEYED + KEYED_INT, pairs=(("I32", "I32"),))


def test_what_the_compiler_finds_unsaid_rules_out_all_variants_that_want_it():
    """The second best of the list wants another load modifier, too: it is not even tried."""
    choose = down(ODD.replace("ipt_20", "ipt_19"), EVEN)
    oracle = modified()
    found = plan(oracle, {KEY: ODD}, choose, arch="sm90")
    assert told(found) == [("I32 I32 I32", "reject", PROPOSAL)]
    assert found.actions[0].next_best == NextBest(
        variant=EVEN, scores=(1.18, 1.0, 1.1, 1.3), best=ODD, best_score=1.2
    )
    assert (len(oracle.compared), choose.asked) == (1, [(KEY,)])
    assert [(one.point, one.shown) for one in found.unsaid] == [
        (KEY, {"load_modifier": "LOAD_DEFAULT"})
    ]


def test_the_next_best_is_written_and_proven_where_it_is_asked_for():
    oracle = modified()
    options = {"arch": "sm90", "reach": "later", "next_best": True}
    found = plan(oracle, {KEY: ODD}, down(ODD, EVEN), **options)
    reason = (
        f"{UNSAID}, not LOAD_CA; next best that the entry can express, 1.180000 instead of"
        f" 1.200000, 1.7% less; {SAYS}"
    )
    assert told(found) == [("I32 I32 I32", "update", reason)]
    assert (found.actions[0].variant, found.actions[0].scores[0]) == (EVEN, 1.18)
    assert len(oracle.compared) == 2


def test_where_nothing_can_be_said_there_is_no_proposal():
    found = plan(modified(), {KEY: ODD}, down(ODD), arch="sm90", next_best=True)
    assert told(found) == [("I32 I32 I32", "reject", f"{UNSAID}, not LOAD_CA")]
    assert (found.actions[0].next_best, found.instead) == (None, ())


def test_a_label_that_means_nothing_for_its_benchmark_has_no_next_best():
    choose = down(ONE)
    found = plan(sums(SUMS + SUM_INT, types=("I32",)), {I32: WIDE}, choose, next_best=True)
    ((_, decision, reason),) = told(found)
    assert (decision, choose.asked) == ("reject", [])
    assert reason.startswith(f"{WIDE}: ipt = 30 is outside of 7:24:1")


def test_what_can_be_said_is_not_looked_for():
    choose = down(OTHER)
    found = plan(sums(SUMS + SUM_INT, types=("I32",)), {I32: ONE}, choose, next_best=True)
    assert (told(found), choose.asked) == ([("I32 I32", "update", BEST)], [])


@pytest.fixture
def unsaid(monkeypatch):
    """Entries cannot say 20 items."""
    members = FamilySpot.members

    def refusing(self, measured, variant):
        if variant["ipt"] == 20:
            raise InputError("no count gives 20 items", "The header cannot express this variant.")
        return members(self, measured, variant)

    monkeypatch.setattr(FamilySpot, "members", refusing)


def test_a_next_best_that_has_no_effect_is_rejected_for_that(unsaid):
    oracle = sums(SUMS, types=("I32",), blind=frozenset({I32}))
    found = plan(oracle, {I32: ONE}, down(OTHER), next_best=True)
    ((_, decision, reason),) = told(found)
    assert (decision, reason) == ("reject", "would be unreachable: nobody reads it on sm100")


@pytest.mark.parametrize("options", [{}, {"collisions": "split"}])
def test_workloads_of_one_entry_get_what_it_says_for_all(unsaid, options):
    oracle = sums()
    choose = down(ONE, OTHER)
    found = plan(oracle, {I32: ONE, F32: ONE}, choose, **options)
    assert {decision for _, decision, _ in told(found)} == {"reject"}
    assert {action.next_best.variant for action in found.actions} == {OTHER}
    assert choose.asked[0] == (I32, F32)
    found = plan(sums(), {I32: ONE, F32: ONE}, down(ONE, OTHER), next_best=True, **options)
    assert [(d, a.variant) for (_, d, _), a in zip(told(found), found.actions, strict=True)] == [
        ("add", OTHER)
    ] * 2


def test_an_entry_for_each_type_comes_before_the_next_best_for_all(unsaid):
    """Floats want what cannot be said: integers get their best, and floats their next best."""
    options = {"collisions": "split", "next_best": True}
    wanted = {I32: "ipt_12.tpb_256.ipv_2", F32: ONE}
    oracle = sums()
    found = plan(oracle, wanted, down(ONE, OTHER), **options)
    assert [(a.variant, a.next_best and a.next_best.best) for a in found.actions] == [
        ("ipt_12.tpb_256.ipv_2", None),
        (OTHER, ONE),
    ]
    assert len(entries(oracle, found)) == 2
    ints, floats = plan(sums(), wanted, down(ONE, OTHER), collisions="split").actions
    assert ints.reason.endswith("; --next-best accepts it")
    assert floats.reason.endswith(proposed(floats.next_best))
    assert (ints.next_best, ints.decision) == (None, "reject")


@pytest.mark.parametrize(
    ("own", "cost"),
    [
        (1.031, "1.031000 instead of 1.042000, 1.1% less"),
        (1.042, "1.042000 instead of 1.042000, 0.0% less"),
        (1.052, "1.052000 instead of 1.042000, 1.0% more"),
    ],
)
def test_the_cost_is_told_in_words(own, cost):
    """Of a joint variant one workload may gain more than of the best one for all."""
    best, other = (
        ScoredVariant(variant=name, score=score, min=1, mean=1, max=1)
        for name, score in (("ipt_1", 1.042), ("ipt_2", own))
    )
    one = in_place_of(best, other)
    assert proposed(one) == (
        f"next best that the entry can express: ipt_2, {cost}; --next-best accepts it"
    )
    assert written(one, "ipt_1: it cannot be.", "best score: 1.05") == (
        f"ipt_1: it cannot be; next best that the entry can express, {cost}; score: 1.05"
    )
