"""The forest: what it learns, and how unsure it is of what it has not seen."""

import numpy as np
import pytest

from policygen.gpu.local_search import Features, FirstDraws, grow, roundness, weights
from policygen.gpu.strategy import Domain


def forest(rows, scores, **more):
    options = {"trees": 40, "tries": 8, "leaf": 1} | more
    return grow(rows, scores, np.random.default_rng(1), **options)


def test_it_says_what_it_was_taught():
    rows = np.random.default_rng(2).random((60, 4))
    scores = rows[:, 0] + 2 * rows[:, 1]
    assert forest(rows, scores).predict(rows).mean(axis=0) == pytest.approx(scores)


def test_it_ranks_what_it_has_not_seen():
    rows = np.random.default_rng(3).random((400, 4))
    scores = rows[:, 0] - np.abs(rows[:, 2] - 0.5)
    told = forest(rows[:200], scores[:200], leaf=2).predict(rows[200:]).mean(axis=0)
    assert np.corrcoef(told, scores[200:])[0, 1] > 0.9


def test_it_is_surer_of_what_it_knows():
    rows = np.linspace(0, 1, 20)[:, None]
    grown = forest(rows, np.sin(6 * rows[:, 0]))
    between = grown.predict((rows[:-1] + rows[1:]) / 2).std(axis=0)
    assert grown.predict(rows).std(axis=0).max() < 1e-9 < between.min()


def test_leaves_are_as_large_as_asked():
    rows = np.random.default_rng(4).random((40, 3))
    grown = forest(rows, rows[:, 0], leaf=5)
    for tree in grown.predict(rows):
        _, counts = np.unique(tree, return_counts=True)
        assert counts.min() >= 5


@pytest.mark.parametrize("rows", [np.ones((1, 2)), np.ones((9, 2))])
def test_what_cannot_be_divided_is_one_leaf(rows):
    grown = forest(rows, np.arange(len(rows)) * 1.0)
    assert (grown.column == -1).all()
    assert grown.predict(rows) == pytest.approx((len(rows) - 1) / 2)


def test_deep_trees_end():
    """Scores that only one column tells, value by value, of more variants than a tree divides."""
    rows = 2.0 ** np.arange(200)[:, None]
    grown = forest(rows, np.arange(200.0) ** 3, trees=2, tries=1)
    assert np.isfinite(grown.predict(rows)).all()


def test_features_tell_kinds_powers_and_tiles():
    ranges = {"ipt": range(7, 25), "tpb": range(128, 1025, 32), "dcid": range(3), "trp": range(2)}
    rows = Features(Domain(ranges, lambda values: values)).rows([(16, 256, 2, 1), (7, 96, 0, 0)])
    plain, kinds, powers, tile = rows[:, :4], rows[:, 4:7], rows[:, 7:9], rows[:, 9:]
    assert plain.tolist() == [[16, 256, 2, 1], [7, 96, 0, 0]]
    assert kinds.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert powers.tolist() == [[4, 8], [0, 5]]
    assert tile.ravel() == pytest.approx(np.log2([17 * 257, 8 * 97]))


def test_roundness_of_nothing_and_of_what_is_below_it():
    assert roundness(np.array([0, 1, -2, 12, 1024])).tolist() == [16, 0, 1, 2, 10]


def test_round_amounts_are_drawn_more_often_and_kinds_are_not():
    found = dict(zip(range(128, 1025, 32), weights(range(128, 1025, 32)), strict=True))
    assert (found[512], found[256], found[384], found[160]) == (8, 8, 4, 1)
    assert weights(range(8)) == [1] * 8


def test_a_lot_has_each_value_as_often_as_it_should():
    from random import Random

    ranges = {"ipt": range(7, 25), "dcid": range(8)}
    lot = FirstDraws(Domain(ranges, lambda values: values), Random(1), 0.0).lot(72)
    assert {sum(one[1] == kind for one in lot) for kind in range(8)} == {9}
    assert {sum(one[0] == items for one in lot) for items in range(7, 25)} == {4}
