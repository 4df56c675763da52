"""Two runs beside each other: noise, order, choices, and what each says of the other's choice."""

import numpy as np
import pandas as pd
import pytest

from policygen.app.databases import compare_databases
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError
from policygen.model.results import Rules
from policygen.results.agreement import order_of, ranks, spearman
from policygen.results.ranking import rank
from tests.results.build import ALGORITHM, IO, Builder, quote
from tests.results.measured import MEASURED

SIZES = ("16", "20", "24", "28")
SURE = Rules(noise=0.005)
OTHER = "Other GPU (1, 2, eccon)"


def database(path, speeds, workload="I32", sizes=SIZES, built=None, seconds=1.0, **where):
    """What base takes on each size, and a variant as much less as it is faster."""
    built = built or Builder(path).table()
    for name, speed in {"base": 1.0, **speeds}.items():
        by_size = speed if isinstance(speed, dict) else dict.fromkeys(sizes, speed)
        built.rows(name, {size: seconds / by_size[size] for size in by_size}, workload, **where)
    return path


def compare(one, other, rules=SURE, **where):
    sides = (ResultFiles([str(path)], where=Filter(**where)) for path in (one, other))
    return compare_databases(*sides, rules)


def only(one, other, rules=SURE, **where):
    (found,) = compare(one, other, rules, **where).workloads
    return found


def both(tmp_path, a, b, rules=SURE, **where):
    """The only workload of two databases."""
    return only(database(tmp_path / "a", a), database(tmp_path / "b", b, **where), rules)


# Order


def test_ranks_and_their_correlation_are_those_of_pandas():
    random = np.random.default_rng(1)
    for _ in range(20):
        x, y = random.integers(0, 6, (2, 12)).astype(float)
        assert ranks(x) == pytest.approx(pd.Series(x).rank(ascending=False).to_numpy())
        expected = np.corrcoef(pd.Series(x).rank(), pd.Series(y).rank())[0, 1]
        assert spearman(x, y) == pytest.approx(expected)


def test_too_few_variants_or_equal_ones_have_no_order():
    assert spearman(np.array([1.0, 2.0]), np.array([2.0, 1.0])) is None
    assert spearman(np.ones(5), np.arange(5.0)) is None


def test_the_best_ones_are_told_apart_from_the_rest():
    scores = np.arange(60.0)
    shuffled = np.concatenate([scores[:50], scores[50:][::-1]])
    found = order_of(scores, shuffled)
    assert (found.best, found.in_both, found.by_chance) == (10, 10, pytest.approx(100 / 60))
    assert (found.best_of_a, found.best_of_b) == (pytest.approx(-1), pytest.approx(-1))
    assert found.spearman > 0.9
    assert order_of(scores[:4], scores[:4]).best == 1


# Noise


def noisy(path, seed, deviations, variants=400):
    """All variants are as fast as base, but for the noise of each size."""
    random = np.random.default_rng(seed)
    built = Builder(path, samples=False).table()
    names = ["base", *(f"ipt_{i}" for i in range(1, variants + 1))]
    rows = [
        ("13.0", "v3.0", "G", name, 1.0, float(np.exp(random.normal(0, sigma))), 0.5, "I32", size)
        for size, sigma in zip(SIZES, deviations, strict=True)
        for name in names
    ]
    marks = ", ".join("?" * len(rows[0]))
    built.execute(f"INSERT INTO {quote(f'{ALGORITHM}.base')} VALUES ({marks})", *rows)
    return path


def test_the_noise_of_a_run_is_found_again(tmp_path):
    deviations = (0.03, 0.01, 0.003, 0.001)
    found = only(noisy(tmp_path / "a", 1, deviations), noisy(tmp_path / "b", 2, deviations))
    # Base is as noisy as a variant.
    expected = np.sqrt(2) * np.sqrt(
        sum((p.weight * d) ** 2 for p, d in zip(found.points, deviations, strict=True))
    )
    assert found.difference.noise == pytest.approx(expected, rel=0.1)
    assert found.difference.spread == found.difference.noise
    for point, deviation in zip(found.points, deviations, strict=True):
        assert point.spread == pytest.approx(np.sqrt(2) * deviation, rel=0.1)
        assert (point.base_a, point.base_b) == (pytest.approx(1, abs=0.1),) * 2
    assert abs(found.order.spearman) < 0.15


def test_more_runs_of_a_side_are_less_noise_of_the_mean_and_the_same_of_one_run(tmp_path):
    for name, seed in (("a1", 1), ("a2", 2), ("b1", 3), ("b2", 4)):
        noisy(tmp_path / name, seed, (0.01,) * 4)
    one = only(tmp_path / "a1", tmp_path / "b1")
    two = only(tmp_path / "a*", tmp_path / "b*")
    assert two.difference.spread == pytest.approx(one.difference.spread / np.sqrt(2), rel=0.1)
    assert two.difference.noise == pytest.approx(one.difference.noise, rel=0.1)
    assert two.difference.expected == pytest.approx(one.difference.expected / np.sqrt(2))
    assert len(two.a.databases) == 2


def test_what_base_is_off_by_is_shift_and_no_spread(tmp_path):
    speeds = {f"ipt_{i}": 1 + i / 100 for i in range(1, 6)}
    found = both(tmp_path, speeds, {name: speed * 1.02 for name, speed in speeds.items()})
    assert found.difference.shift == pytest.approx(np.log(1.02))
    assert found.difference.spread == pytest.approx(0, abs=1e-12)
    assert found.order.spearman == 1


def test_the_largest_difference_is_named(tmp_path):
    a = {f"ipt_{i}": 0.9 for i in range(1, 6)}
    found = both(tmp_path, a, {**a, "ipt_3": 0.8})
    assert found.difference.variant == "ipt_3"
    assert found.difference.largest == pytest.approx(np.log(0.8 / 0.9) * 4 / 5)


def test_two_variants_make_no_spread(tmp_path):
    found = both(tmp_path, {"ipt_1": 0.9, "ipt_2": 0.8}, {"ipt_1": 0.91, "ipt_2": 0.8})
    assert (found.difference.spread, found.difference.noise, found.order.spearman) == (None,) * 3
    assert {point.spread for point in found.points} == {None}


@pytest.mark.parametrize("where", [{"gpu": OTHER}, {"ctk": "13.1"}, {"cccl": "v3.6"}])
def test_where_something_else_differs_nothing_is_said_of_noise(tmp_path, where):
    speeds = {f"ipt_{i}": 0.9 for i in range(1, 6)}
    found = both(tmp_path, speeds, {**speeds, "ipt_1": 0.8}, **where)
    assert found.differs == tuple(where)
    assert found.difference.spread > 0
    assert found.difference.noise is None


def test_a_copy_is_no_second_run(tmp_path):
    path = database(tmp_path / "a", {"ipt_1": 1.2, "ipt_2": 0.9, "ipt_3": 0.9})
    copy = tmp_path / "b"
    copy.write_bytes(path.read_bytes())
    Builder(copy).rows("ipt_4", dict.fromkeys(SIZES, 1.0), "I32")
    found = only(path, copy)
    assert (found.copy_of_rows, found.difference.noise) == (True, None)
    assert found.a.winner.says == "holds"  # by its own numbers; a confirming run it is not


# Choices


def test_both_choose_the_same(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 0.9}, {"ipt_1": 1.18, "ipt_2": 0.91})
    assert found.agreement == "same variant"
    assert [(s.winner.variant, s.winner.chosen, s.winner.says) for s in (found.a, found.b)] == [
        ("ipt_1", True, "holds")
    ] * 2
    assert (found.a.winner.rank, found.a.winner.other_rank) == (1, 1)
    assert found.a.winner.costs == pytest.approx(0)


def test_both_keep_base(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.001, "ipt_2": 0.9}, {"ipt_1": 0.97, "ipt_2": 0.98})
    assert found.agreement == "both keep base"
    winner = found.a.winner
    assert (winner.variant, winner.chosen, winner.says) == ("ipt_1", False, None)
    assert (winner.rank, winner.other_rank) == (1, 2)
    assert winner.verdict == "worse"
    assert winner.costs == pytest.approx(1 - 0.97 / 0.98)


def test_different_choices_hold_where_each_is_faster_in_the_other_run_too(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 1.15}, {"ipt_1": 1.15, "ipt_2": 1.2})
    assert found.agreement == "holds"
    assert (found.a.winner.variant, found.b.winner.variant) == ("ipt_1", "ipt_2")
    assert found.a.winner.costs == pytest.approx(1 - 1.15 / 1.2)


def test_slower_beyond_noise_contradicts(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 0.9}, {"ipt_1": 0.95, "ipt_2": 0.91})
    assert found.agreement == found.a.winner.says == "contradicts"
    assert found.a.winner.reason == "0.950000 is slower than base, beyond noise"
    assert (found.b.choice.decision, found.b.winner.says) == ("keep base", None)


def test_a_runtime_workload_that_loses_too_much_contradicts(tmp_path):
    mixed = {**dict.fromkeys(SIZES, 1.3), "16": 0.7}
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 0.9}, {"ipt_1": mixed, "ipt_2": 0.91})
    assert found.agreement == "contradicts"
    assert found.a.winner.verdict == "mixed"
    assert found.a.winner.reason == "a runtime workload at 0.7000, less than is allowed"


def test_slower_within_noise_does_not_confirm(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 0.9}, {"ipt_1": 0.999, "ipt_2": 0.91})
    assert found.agreement == found.a.winner.says == "not confirmed"
    assert found.a.winner.verdict == "too close to call"
    assert found.a.winner.reason == f"0.999000 in {tmp_path / 'b'}"


def test_what_the_second_run_says_is_what_a_confirming_run_would(tmp_path):
    a = {"ipt_1": 1.04, **{f"ipt_{i}": 1 + i / 1000 for i in range(2, 12)}}
    outcomes = []
    for number, score in enumerate((0.98, 0.999, 1.001, 1.01, 1.02, 1.03)):
        one = database(tmp_path / f"a{number}", a)
        again = {**a, "ipt_1": score, "ipt_2": 1.003}
        other = database(tmp_path / f"b{number}", again, seconds=1.01)
        (ranked,) = rank([one], rules=SURE, confirm_with=[other]).workloads
        taken = ranked.choice.variant == "ipt_1"
        told = only(one, other).a.winner
        assert told.variant == "ipt_1"
        assert (told.says == "holds") == taken, score
        outcomes.append(taken)
        if not taken:
            (refused,) = [one.reason for one in ranked.choice.rejected if one.variant == "ipt_1"]
            assert told.says == "contradicts" or refused == f"not confirmed: {told.reason}"
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


@pytest.mark.parametrize(
    ("score", "says"),
    [(1.1, "holds"), (1.002, "not confirmed"), (0.999, "not confirmed"), (0.9, "contradicts")],
)
def test_another_gpu_speaks_for_itself(tmp_path, score, says):
    found = both(tmp_path, {"ipt_1": 1.2}, {"ipt_1": score}, gpu=OTHER)
    assert found.a.winner.says == says


def test_a_winner_that_the_other_side_has_not_is_told(tmp_path):
    found = both(tmp_path, {"ipt_1": 1.2, "ipt_2": 1.1}, {"ipt_2": 0.99, "ipt_3": 1.0})
    winner = found.a.winner
    assert found.agreement == winner.says == "not measured"
    assert (winner.score, winner.rank, winner.other_score) == (pytest.approx(1.2), None, None)
    assert (found.a.variants, found.a.only, found.b.only) == (2, 1, 1)
    assert [pair.variant for pair in found.scores] == ["ipt_2"]


def test_what_was_measured_whole_on_what_both_have_has_a_score_and_no_verdict(tmp_path):
    """B's own sizes are more; it says nothing of what it has not measured on all of them."""
    a = database(tmp_path / "a", {"ipt_1": 1.2, "ipt_2": 1.0}, sizes=("16", "20"))
    part = dict.fromkeys(("16", "20"), 1.1)
    some = database(tmp_path / "b", {"ipt_1": part, "ipt_2": 0.9}, sizes=("16", "20", "24"))
    found = only(a, some)
    assert (found.agreement, found.a.winner.verdict) == ("not measured", None)
    assert found.a.winner.other_score == pytest.approx(1.1)
    assert found.a.winner.reason == "the other side has not measured it on all runtime workloads"
    none = database(tmp_path / "c", {"ipt_1": part, "ipt_2": part}, sizes=("16", "20", "24"))
    found = only(a, none)
    assert (found.b.winner, found.b.choice.decision, found.b.variants) == (None, "keep base", 0)


def test_without_samples_nothing_is_confirmed_unless_that_is_allowed(tmp_path):
    speeds = {f"ipt_{i}": 1.2 for i in range(1, 4)}
    for name in ("a", "b"):
        built = Builder(tmp_path / name, samples=False).table()
        database(tmp_path / name, {**speeds, "ipt_1": 1.3}, built=built)
    database(tmp_path / "c", {**speeds, "ipt_1": 1.3})
    found = only(tmp_path / "c", tmp_path / "b")
    assert found.a.winner.reason == "without samples, its uncertainty is unknown"
    allowed = SURE.model_copy(update={"without_samples": True})
    assert only(tmp_path / "a", tmp_path / "b", allowed).agreement == "same variant"


def test_of_a_part_of_the_runtime_workloads_no_choice_is_made(tmp_path):
    a, b = (database(tmp_path / name, {"ipt_1": 1.2, "ipt_2": 1}) for name in "ab")
    found = only(a, b, axes=(f"{IO}=28",))
    assert (found.agreement, found.a.choice, found.a.winner.chosen) == (None, None, False)
    assert len(found.points) == 1


# What is compared with what


def test_scores_are_those_of_the_ranking(tmp_path):
    path = MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db"
    document = compare(path, path, Rules())
    for found, ranked in zip(document.workloads, rank([path]).workloads, strict=True):
        scores = {one.variant: one.score for one in ranked.variants}
        del scores["base"]
        assert {pair.variant: pytest.approx(pair.a) for pair in found.scores} == scores
        assert found.a.choice == ranked.choice
        assert [pair.a for pair in found.scores] == [pair.b for pair in found.scores]


def test_what_was_measured_on_the_same_belongs_together(tmp_path):
    speeds = {"ipt_1": 1.1, "ipt_2": 0.9}
    for name, gpus in (("a", ("One", "Two")), ("b", ("One", "Three"))):
        built = Builder(tmp_path / name).table()
        for gpu in gpus:
            database(tmp_path / name, speeds, built=built, gpu=gpu)
    found = compare(tmp_path / "a", tmp_path / "b").workloads
    assert [(one.a.gpu, one.b.gpu) for one in found] == [("One", "One"), ("Two", "Three")]


def test_only_what_both_have_counts(tmp_path):
    a = database(tmp_path / "a", {"ipt_1": 1.1, "ipt_2": {"16": 2.0, "20": 2.0}, "ipt_3": 1})
    b = database(tmp_path / "b", {"ipt_1": 1.1, "ipt_3": 1}, sizes=("28", "20", "32"))
    found = only(a, b)
    assert [point.point[IO] for point in found.points] == ["20", "28"]
    assert (found.a.runtime_only, found.b.runtime_only) == (2, 1)
    assert sum(point.weight for point in found.points) == pytest.approx(1)
    assert [pair.variant for pair in found.scores] == ["ipt_1", "ipt_3"]
    assert found.a.choice.variant == "ipt_1"  # it knows all sizes


def test_versions_may_order_parameters_and_axes_otherwise(tmp_path):
    axes = (IO, "Entropy", "T{ct}")
    one, other = (
        Builder(tmp_path / "a", axes=axes).table(),
        Builder(tmp_path / "b", axes=("Entropy", "T{ct}", IO)).table(),
    )
    for name, label, center in (("base", "base", 1.0), ("ipt_1.tpb_2", "tpb_2.ipt_1", 0.8)):
        for size in SIZES:
            one.row(name, center, size, "1.0", "I32")
            other.row(label, center, "1.0", "I32", size)
    found = only(tmp_path / "a", tmp_path / "b")
    assert (found.agreement, found.a.winner.variant) == ("same variant", "ipt_1.tpb_2")
    assert found.b.winner.variant == "tpb_2.ipt_1"
    assert len(found.points) == 4


def test_workloads_of_one_side_are_listed_once(tmp_path):
    built = Builder(tmp_path / "a").table()
    for workload, gpu in (("I8", "One"), ("I8", "Two"), ("I32", "One")):
        database(tmp_path / "a", {"ipt_1": 1.1}, workload, built=built, gpu=gpu)
    document = compare(tmp_path / "a", database(tmp_path / "b", {"ipt_1": 1.1}, gpu="One"))
    assert [one.workload for one in document.only_a] == [{"T{ct}": "I8"}]
    assert document.only_b == ()
    assert [key.gpu for key in document.a.keys] == ["One", "Two"]


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (
            {"speeds": {"ipt_1": 1.1}},
            {"speeds": {"ipt_2": 1.1}},
            f"; {ALGORITHM}[T{{ct}}=I32]: no variant was measured on both sides",
        ),
        (
            {"speeds": {"ipt_1": 1.1}, "sizes": ("16",)},
            {"speeds": {"ipt_1": 1.1}, "sizes": ("20",)},
            f"; {ALGORITHM}[T{{ct}}=I32]: no runtime workload was measured on both sides",
        ),
        ({"speeds": {"ipt_1": 1.1}}, {"speeds": {"ipt_1": 1.1}, "workload": "I8"}, ""),
    ],
)
def test_nothing_in_common_is_an_error_that_tells_what_there_is(tmp_path, a, b, told):
    one, other = database(tmp_path / "a", **a), database(tmp_path / "b", **b)
    with pytest.raises(InputError) as caught:
        compare(one, other)
    right = f"{ALGORITHM}[T{{ct}}={b.get('workload', 'I32')}]"
    assert str(caught.value) == (
        f"A and B have nothing in common{told}\n  A has {ALGORITHM}[T{{ct}}=I32].\n  B has {right}"
    )


def test_a_side_without_a_base_is_told(tmp_path):
    one = database(tmp_path / "a", {"ipt_1": 1.1})
    other = Builder(tmp_path / "b").table().row("ipt_1", 1.0, "I32", "16").path
    with pytest.raises(InputError) as caught:
        compare(one, other)
    assert str(caught.value).endswith("\n  B has nothing with a base")
    with pytest.raises(InputError) as caught:
        compare(one, other, axes=("T=I32",))
    assert str(caught.value).endswith("\n  B has nothing with a base that matches")


def test_what_has_nothing_in_common_is_a_warning_beside_what_has(tmp_path):
    built_a, built_b = Builder(tmp_path / "a").table(), Builder(tmp_path / "b").table()
    for built, label in ((built_a, "ipt_1"), (built_b, "ipt_2")):
        database(built.path, {label: 1.1}, "I8", built=built)
        database(built.path, {"ipt_1": 1.1}, "I32", built=built)
    document = compare(built_a.path, built_b.path)
    assert [one.workload["T{ct}"] for one in document.workloads] == ["I32"]
    (warning,) = document.warnings
    assert warning.message == f"{ALGORITHM}[T{{ct}}=I8]: no variant was measured on both sides"
    assert [one.workload["T{ct}"] for one in document.only_a] == ["I8"]
