"""What is chosen of the variants that can be said, where the best one cannot."""

import pytest

from policygen.errors import InputError
from policygen.model.results import Rules
from policygen.results.choice import held_back
from policygen.results.ranking import rank
from policygen.results.together import choose_next
from tests.results.build import ALGORITHM, Builder
from tests.results.test_together import database

RULES = Rules()
THREE = {"ipt_1": (1.5, 1.5), "ipt_2": (1.4, 1.4), "ipt_3": (1.3, 1.3)}


def chosen(paths, *unsaid, rules=RULES, keep=("I32",), confirm_with=()):
    """The labels and scores, or none, and why."""
    known = rank(paths, rules=rules).workloads
    wanted = [one for one in known if one.workload["T{ct}"] in keep]
    found = choose_next(
        paths, wanted, lambda label: label not in unsaid, rules, confirm_with=confirm_with
    )
    return {v.variant: round(v.score, 3) for v in found.variants}, found.reason


def best_alone(path, variants, rules=RULES):
    """What the rules choose where nothing else was measured that is faster."""
    (found,) = rank([database(path, {"I32": variants})], rules=rules).workloads
    return held_back(found, rules).choice


def test_the_best_of_those_that_can_be_said_is_chosen(tmp_path):
    path = database(tmp_path / "a.db", {"I32": THREE, "F32": {"ipt_3": (9.0, 9.0)}})
    labels, reason = chosen([path], "ipt_1")
    assert list(labels) == ["ipt_2"]
    assert reason.startswith("best score: 1.400000, worst runtime workload Elements{io}[pow2]=")
    assert list(chosen([path], "ipt_1", "ipt_2")[0]) == ["ipt_3"]


def test_without_anything_that_cannot_be_said_the_choice_is_that_of_the_ranking(tmp_path):
    path = database(tmp_path / "a.db", {"I32": THREE})
    (ranked,) = rank([path], rules=RULES).workloads
    labels, reason = chosen([path])
    assert (labels, reason) == (
        {ranked.choice.variant: round(ranked.choice.score, 3)},
        ranked.choice.reason,
    )


@pytest.mark.parametrize(
    ("left", "rules", "reason"),
    [
        ({}, RULES, "no variant passes the rules; none was measured on all runtime workloads"),
        (
            {"ipt_2": (1.01, 1.01)},
            RULES,
            "no variant passes the rules; the best is ipt_2: score 1.010000 is under 1.015",
        ),
        (
            {"ipt_2": (1.5, 0.9)},
            RULES,
            "no variant passes the rules; the best is ipt_2: worst runtime workload"
            " Elements{io}[pow2]=20 at 0.9000, under 0.95",
        ),
    ],
)
def test_what_the_rules_refuse_is_not_next_best(tmp_path, left, rules, reason):
    path = database(tmp_path / "a.db", {"I32": {"ipt_1": (1.6, 1.6), **left}})
    assert chosen([path], "ipt_1", rules=rules) == ({}, reason)


def test_a_next_best_that_may_be_luck_waits_for_a_run_that_confirms_it(tmp_path):
    path = database(tmp_path / "a.db", {"I32": {"ipt_1": (1.2, 1.2), "ipt_2": (1.055, 1.055)}})
    labels, reason = chosen([path], "ipt_1")
    assert labels == {}
    assert reason.startswith("unconfirmed: 1.055000 comes only from the search that found ipt_2")
    rules = Rules(accept_unconfirmed=True)
    assert list(chosen([path], "ipt_1", rules=rules)[0]) == ["ipt_2"]


def test_luck_counts_all_that_were_tried_also_what_cannot_be_said(tmp_path):
    """Alone it is above luck; as one of 502 it is not, whether or not the others can be said."""
    rules = Rules(accept_unconfirmed=True, noise=0.0149)
    few = {"ipt_2": (1.045, 1.045)}
    assert best_alone(tmp_path / "few.db", few, rules).decision == "use"
    many = {f"tpb_{n}": (1.0, 1.0) for n in range(500)}
    path = database(tmp_path / "many.db", {"I32": {"ipt_1": (1.6, 1.6), **few, **many}})
    unsaid = ("ipt_1", *many)
    labels, reason = chosen([path], *unsaid, rules=rules)
    assert labels == {}
    assert "is not above" in reason


def test_a_confirming_run_decides_between_all_finalists(tmp_path):
    search = database(tmp_path / "search.db", {"I32": THREE})
    later = {"ipt_1": (1.5, 1.5), "ipt_2": (0.99, 0.99), "ipt_3": (1.2, 1.2)}
    again = database(tmp_path / "again.db", {"I32": later})
    labels, reason = chosen([search], "ipt_1", confirm_with=[again])
    assert labels == {"ipt_3": 1.2}
    assert "1.200000 in a run that the choice has not seen" in reason
    assert chosen([search], "ipt_1", "ipt_3", confirm_with=[again])[0] == {}


def test_for_several_workloads_the_next_best_is_best_in_its_worst_case(tmp_path):
    other = {"ipt_1": (1.5, 1.5), "ipt_2": (1.1, 1.1), "ipt_3": (1.2, 1.2)}
    path = database(tmp_path / "a.db", {"I32": THREE, "F32": other})
    keep = ("I32", "F32")
    assert list(chosen([path], keep=keep)[0]) == ["ipt_1"]
    labels, reason = chosen([path], "ipt_1", keep=keep)
    assert list(labels) == ["ipt_3"]
    assert reason == "its lowest score over 2 workloads is 1.200000"
    assert chosen([path], *THREE, keep=keep) == (
        {},
        "the rules reject every variant that was measured for all of them",
    )


def test_a_database_that_changed_since_it_was_ranked_is_told(tmp_path):
    path = database(tmp_path / "a.db", {"I32": THREE})
    (wanted,) = rank([path], rules=RULES).workloads
    Builder(path).execute(f"UPDATE \"{ALGORITHM}.base\" SET gpu = 'other (1, 2, eccon)'")
    with pytest.raises(InputError) as caught:
        choose_next([path], [wanted], lambda _: True, RULES)
    assert str(caught.value) == (
        f"{path}: {ALGORITHM} changed while being read\n"
        "  Run again when no program writes to the database."
    )
