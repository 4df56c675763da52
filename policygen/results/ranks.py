"""Whether two lists of scores have the same order."""

import numpy as np

from policygen.model.db_compare import RankOrder
from policygen.results.load import Floats, Integers

LEAST = 3
"""Of fewer variants no order is told."""
MOST = 10
"""As many are the best ones at most; of few variants a third."""


def ranks(values: Floats) -> Floats:
    """The place of each value, 1 for the largest; equal ones share the mean of their places."""
    _, inverse, counts = np.unique(-values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray(((2 * last - counts + 1) / 2)[inverse])


def spearman(one: Floats, other: Floats) -> float | None:
    """The correlation of ranks; none where there are too few, or all are alike."""
    if len(one) < LEAST:
        return None
    x, y = (places - places.mean() for places in (ranks(one), ranks(other)))
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / scale if scale else None


def best(values: Floats, count: int) -> Integers:
    """The indices of the largest ones; of equal ones the first."""
    return np.argsort(-values, kind="stable")[:count]


def order_of(one: Floats, other: Floats) -> RankOrder:
    """How alike two orders of the same variants are."""
    count = max(1, min(MOST, len(one) // LEAST))
    first, second = best(one, count), best(other, count)
    return RankOrder(
        spearman=spearman(one, other),
        best=count,
        in_both=len(np.intersect1d(first, second)),
        by_chance=count**2 / len(one),
        best_of_a=spearman(one[first], other[first]),
        best_of_b=spearman(one[second], other[second]),
    )
