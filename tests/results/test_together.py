"""One variant for several workloads that share an entry."""

import pytest

from policygen.errors import InputError
from policygen.model.results import Rules
from policygen.results import ranking
from policygen.results.ranking import rank
from policygen.results.together import choose_together
from tests.results import searched
from tests.results.build import ALGORITHM, Builder

RULES = Rules()
UNSURE = Rules(without_samples=True)


def database(path, workloads, *, samples=True, algorithm=ALGORITHM, builder=None):
    """Workload → variant → the speedup on each of two sizes; base takes one second."""
    built = builder or Builder(path, samples=samples)
    built.table(algorithm=algorithm)
    for workload, variants in workloads.items():
        for variant, speeds in {"base": (1.0, 1.0), **variants}.items():
            centers = {s: 1.0 / x for s, x in zip(("16", "20"), speeds, strict=False)}
            built.rows(variant, centers, workload, algorithm=algorithm)
    return path


def chosen(paths, rules=RULES, keep=None, wanted=None):
    """The variants' labels, or none, and why."""
    found = rank(paths, rules=rules).workloads
    known = [w for w in found if keep is None or w.workload["T{ct}"] in keep]
    result = choose_together(paths, wanted or known, rules)
    return [v.variant for v in result.variants], result.reason


def test_the_best_worst_score_wins(tmp_path):
    path = database(
        tmp_path / "a.db",
        {
            "I32": {"ipt_1": (1.5, 1.5), "ipt_2": (1.2, 1.2), "ipt_3": (1.1, 1.1)},
            "F32": {"ipt_1": (1.0, 1.0), "ipt_2": (1.05, 1.05), "ipt_3": (1.5, 1.5)},
        },
    )
    labels, reason = chosen([path])
    assert labels == ["ipt_3", "ipt_3"]
    assert reason == "its lowest score over 2 workloads is 1.100000"


def test_of_equal_worst_scores_the_smaller_parameters_win(tmp_path):
    both = {"ipt_2": (1.2, 1.2), "ipt_10": (1.2, 1.2)}
    path = database(tmp_path / "a.db", {"I32": both, "F32": both})
    assert chosen([path])[0] == ["ipt_2", "ipt_2"]


def test_the_scores_are_those_of_the_ranking_in_the_order_that_was_asked(tmp_path):
    path = database(tmp_path / "a.db", {"I32": {"ipt_1": (1.5, 1.2)}, "F32": {"ipt_1": (1.1, 1.3)}})
    ranked = {w.workload["T{ct}"]: w for w in rank([path], rules=RULES).workloads}
    wanted = [ranked["I32"], ranked["F32"]]
    found = choose_together([path], wanted, RULES)
    same = [next(v for v in w.variants if v.variant == "ipt_1") for w in wanted]
    assert [(v.min, v.max) for v in found.variants] == [(v.min, v.max) for v in same]
    # What is told is without what is likely luck.
    assert all(
        0.999 * s.score < v.score < s.score for v, s in zip(found.variants, same, strict=True)
    )
    assert [v.verdict for v in found.variants] == ["better", "better"]


def test_a_variant_that_was_not_measured_for_one_of_them_cannot_win(tmp_path):
    path = database(
        tmp_path / "a.db",
        {
            "I32": {"ipt_1": (2.0, 2.0), "ipt_2": (1.1, 1.1), "ipt_3": (3.0,)},
            "F32": {"ipt_2": (1.1, 1.1), "ipt_3": (3.0, 3.0)},
        },
    )
    assert chosen([path])[0] == ["ipt_2", "ipt_2"]


def test_variants_without_a_common_one_are_told(tmp_path):
    path = database(
        tmp_path / "a.db",
        {"I32": {"ipt_1": (1.5, 1.5)}, "F32": {"ipt_2": (1.5, 1.5), "odd": (2.0, 2.0)}},
    )
    assert chosen([path]) == ([], "no variant was measured for all of them")


@pytest.mark.parametrize(
    ("speeds", "labels"),
    [
        ((0.94, 1.3), []),  # one runtime workload loses more than is allowed
        ((0.96, 1.3), ["ipt_1", "ipt_1"]),
        ((0.97, 0.97), []),  # all of them lose a little: the score tells
        ((0.99, 0.99), ["ipt_1", "ipt_1"]),  # two runs differ by as much
    ],
)
def test_no_workload_may_get_slower_beyond_noise(tmp_path, speeds, labels):
    path = database(tmp_path / "a.db", {"I32": {"ipt_1": (1.5, 1.5)}, "F32": {"ipt_1": speeds}})
    found, reason = chosen([path])
    assert found == labels
    if not labels:
        told = "0.970000 for T=F32"
        if speeds[1] > 1:
            told = "1.163291 for T=F32, 0.940000 on one of its runtime workloads"
        first = "no variant suits all of them: ipt_1 scores 1.500000 for T=I32 and"
        assert reason == f"{first} {told}"


def test_what_is_better_for_none_is_not_chosen(tmp_path):
    path = database(
        tmp_path / "a.db", {"I32": {"ipt_1": (1.01, 1.01)}, "F32": {"ipt_1": (1.0, 1.0)}}
    )
    told = "the rules reject every variant that was measured for all of them"
    assert chosen([path]) == ([], told)


def test_without_samples_nothing_is_chosen_unless_that_is_allowed(tmp_path):
    both = {"ipt_1": (1.5, 1.5)}
    path = database(tmp_path / "a.db", {"I32": both, "F32": both}, samples=False)
    told = "the rules reject every variant that was measured for all of them"
    assert chosen([path]) == ([], told)
    assert chosen([path], UNSURE)[0] == ["ipt_1", "ipt_1"]


def test_benchmarks_may_order_the_parameters_otherwise(tmp_path):
    builder = Builder(tmp_path / "a.db")
    database(builder.path, {"I32": {"ipt_1.tpb_32": (1.5, 1.5)}}, builder=builder)
    other = {"I32": {"tpb_32.ipt_1": (1.4, 1.4), "tpb_1.ipt_32": (9.0, 9.0)}}
    database(builder.path, other, builder=builder, algorithm=f"{ALGORITHM}.other")
    assert chosen([builder.path])[0] == ["ipt_1.tpb_32", "tpb_32.ipt_1"]


def test_algorithms_that_are_not_asked_for_are_not_read(tmp_path, monkeypatch):
    builder = Builder(tmp_path / "a.db")
    both = {"ipt_1": (1.5, 1.5)}
    database(builder.path, {"I32": both, "F32": both}, builder=builder)
    wanted = rank([builder.path], rules=RULES).workloads
    database(builder.path, {"I32": both}, builder=builder, algorithm=f"{ALGORITHM}.other")
    seen = []
    read = ranking.read_rows
    monkeypatch.setattr(ranking, "read_rows", lambda *of: seen.append(of[1].algorithm) or read(*of))
    assert chosen([builder.path], wanted=wanted)[0] == ["ipt_1", "ipt_1"]
    assert seen == [ALGORITHM, f"{ALGORITHM}.other", ALGORITHM]


def test_workloads_of_several_databases_are_compared(tmp_path):
    paths = [
        database(tmp_path / "a.db", {"I32": {"ipt_1": (1.5, 1.5)}}),
        database(tmp_path / "b.db", {"F32": {"ipt_1": (1.4, 1.4)}}),
    ]
    assert chosen(paths)[0] == ["ipt_1", "ipt_1"]


def test_a_base_that_was_not_measured_everywhere_is_no_base(tmp_path):
    """The ranking chooses nothing for such a workload, and neither does the choice for several."""
    both = {"ipt_1": (1.5, 1.5)}
    path = database(tmp_path / "a.db", {"I32": both, "F32": both})
    more = Builder(path).table("more")
    for workload in ("I32", "F32"):
        more.rows("ipt_1", {"16": 0.5, "20": 0.5}, workload, bench="more")
    assert chosen([path]) == ([], f"base was not measured in {ALGORITHM}.more")


def test_a_database_that_changed_since_it_was_ranked_is_told(tmp_path):
    both = {"ipt_1": (1.5, 1.5)}
    path = database(tmp_path / "a.db", {"I32": both, "F32": both})
    wanted = rank([path], rules=RULES).workloads
    Builder(path).execute(f'DELETE FROM "{ALGORITHM}.base" WHERE "T{{ct}}" = \'I32\'')
    with pytest.raises(InputError) as caught:
        choose_together([path], wanted, RULES)
    assert str(caught.value) == (
        f"{path}: {ALGORITHM} changed while being read\n"
        "  Run again when no program writes to the database."
    )


def test_a_generated_database_gives_the_variant_that_is_best_in_its_worst_case(tmp_path):
    from fixtures.databases.generate import generate

    path = tmp_path / "many.db"
    generate(path, workloads=4, variants=40, seed=3, declared=True)
    found = rank([path], rules=RULES).workloads
    rules = Rules(worst_allowed=0, point_noise=1, noise=0.01, accept_unconfirmed=True)
    result = choose_together([path], found, rules)
    scores = [{v.variant: v.score for v in w.variants if v.variant != "base"} for w in found]
    worst = {name: min(own[name] for own in scores) for name in scores[0]}
    best = max(worst, key=lambda name: worst[name])
    assert {v.variant for v in result.variants} == {best}
    assert result.reason == f"its lowest score over 4 workloads is {worst[best]:.6f}"


def confirmed(tmp_path, search, later):
    """What is chosen from a search whose best ones were measured again."""
    paths = [database(tmp_path / "search.db", search)]
    finals = [database(tmp_path / "later.db", later)]
    wanted = rank(paths, rules=RULES).workloads
    found = choose_together(paths, wanted, RULES, confirm_with=finals)
    return {v.variant: round(v.score, 6) for v in found.variants}, found.reason


BOTH = {"ipt_1": (1.3, 1.3), "ipt_2": (1.2, 1.2)}


def test_a_confirming_run_decides_for_all_workloads(tmp_path):
    later = {
        "I32": {"ipt_1": (0.9, 0.9), "ipt_2": (1.19, 1.19)},
        "F32": {"ipt_1": (1.18, 1.18), "ipt_2": (1.19, 1.19)},
    }
    assert confirmed(tmp_path, {"I32": BOTH, "F32": BOTH}, later)[0] == {"ipt_2": 1.19}


def test_what_was_not_measured_again_is_not_chosen_where_something_was(tmp_path):
    later = {"I32": {"ipt_2": (1.17, 1.17)}}
    found, _ = confirmed(tmp_path, {"I32": BOTH, "F32": BOTH}, later)
    assert list(found) == ["ipt_2"]


def test_half_a_confirming_run_confirms_nothing(tmp_path):
    later = {"I32": {"ipt_1": (1.25,), "ipt_2": (1.17,)}}
    assert confirmed(tmp_path, {"I32": BOTH}, later) == (
        {},
        "the rules reject every variant that was measured for all of them",
    )
    later = {"I32": {"ipt_1": (1.25,), "ipt_3": (1.17, 1.17)}}
    (tmp_path / "other").mkdir()
    assert confirmed(tmp_path / "other", {"I32": BOTH}, later)[0] == {}


@pytest.mark.parametrize(("speedup", "labels"), [(1.04, 2 * ["ipt_16.tpb_384"]), (1.005, [])])
def test_the_last_rung_of_one_search_decides_for_a_workload_that_was_only_measured(
    tmp_path, monkeypatch, speedup, labels
):
    monkeypatch.setattr(
        searched, "gain", lambda _, workload: {"I8": speedup, "I32": 1.002}[workload]
    )
    variant, path = {"ipt": 16, "tpb": 384}, tmp_path / "a.db"
    with searched.Searched(path) as made:
        made.begin()
        made.search("I8")
        for workload, rung in [("I8", 1), *(5 * [("I8", 3)]), ("I32", 1)]:
            made.rung(workload, [variant], rung, count=40, noise=0.005)
    assert chosen([path])[0] == labels
