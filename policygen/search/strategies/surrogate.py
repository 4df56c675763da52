"""A forest of extremely randomized trees: what untried variants may score, and how sure that is.

All trees grow together, level by level, so that numpy does the work: a fit of some hundred
variants takes some ten milliseconds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from policygen.results.load import Floats, Integers

DEPTH = 24
"""Levels; by then a node of some thousand variants has been divided."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes of all trees, the roots first; a leaf divides by no column."""

    trees: int
    column: Integers
    limit: Floats
    left: Integers
    value: Floats

    def predict(self, rows: Floats) -> Floats:
        """By tree and row what is expected."""
        node = np.repeat(np.arange(self.trees)[:, None], len(rows), axis=1)
        every = np.arange(len(rows))[None, :]
        while (inner := self.column[node] >= 0).any():
            over = rows[every, np.maximum(self.column[node], 0)] > self.limit[node]
            node = np.where(inner, self.left[node] + over, node)
        return np.asarray(self.value[node])


def grow(
    rows: Floats, scores: Floats, rng: np.random.Generator, *, trees: int, tries: int, leaf: int
) -> Forest:
    """Each node is divided by the best of some divisions drawn at random, down to small leaves."""
    grown = _Growing(rows, scores, rng, trees, tries, leaf)
    for _ in range(DEPTH):
        if not grown.divide():
            break
    return grown.forest()


class _Growing:
    """Trees while they grow; `node` says where each variant is in each tree."""

    def __init__(
        self,
        rows: Floats,
        scores: Floats,
        rng: np.random.Generator,
        trees: int,
        tries: int,
        leaf: int,
    ) -> None:
        self.rows, self.rng, self.trees, self.tries, self.leaf = rows, rng, trees, tries, leaf
        self.which = np.tile(np.arange(len(rows)), trees)
        self.scores = np.tile(scores, trees)
        self.node = np.repeat(np.arange(trees), len(rows))
        self.first, self.count = 0, trees
        """The nodes of the lowest level."""
        self.column: list[Integers] = []
        self.limit: list[Floats] = []
        self.left: list[Integers] = []
        self.value: list[Floats] = []

    def divide(self) -> bool:
        """Grows a level; whether there may be another one."""
        at, count = self.node, self.count
        sizes = np.bincount(at, minlength=count)
        sums = np.asarray(np.bincount(at, self.scores, minlength=count), np.float64)
        columns, limits, gains = self._best(at, sizes, sums)
        inner = gains > 0
        below = self.first + count
        order = np.cumsum(inner) - 1
        self.column.append(np.where(inner, columns, -1))
        self.limit.append(limits)
        self.left.append(np.where(inner, below + 2 * order, 0))
        self.value.append(sums / sizes)
        stays = inner[at]
        at, self.which, self.scores = at[stays], self.which[stays], self.scores[stays]
        over = self.rows[self.which, columns[at]] > limits[at]
        self.node = 2 * order[at] + over
        self.first, self.count = below, 2 * int(inner.sum())
        return self.count > 0

    def _best(self, at: Integers, sizes: Integers, sums: Floats) -> tuple[Integers, Floats, Floats]:
        """For each node the division that explains most; no gain where there is none."""
        low, high = self._bounds(at, sizes)
        count = len(sizes)
        every = np.arange(count)
        columns, limits = np.zeros(count, np.int64), np.zeros(count)
        gains = np.zeros(count)
        for _ in range(self.tries):
            column = self._columns(low, high)
            least, most = low[every, column], high[every, column]
            limit = least + self.rng.random(count) * (most - least)
            over = self.rows[self.which, column[at]] > limit[at]
            right = np.bincount(at[over], minlength=count)
            above = np.bincount(at[over], self.scores[over], minlength=count)
            left = sizes - right
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = above**2 / right + (sums - above) ** 2 / left - sums**2 / sizes
            gain[(right < self.leaf) | (left < self.leaf)] = 0
            better = gain > gains
            columns[better], limits[better], gains[better] = (
                column[better],
                limit[better],
                gain[better],
            )
        return columns, limits, gains

    def _columns(self, low: Floats, high: Floats) -> Integers:
        """For each node a column that is not the same in all of its variants, where one is."""
        weight = (high > low) * self.rng.random(low.shape)
        return np.asarray(weight.argmax(axis=1))

    def _bounds(self, at: Integers, sizes: Integers) -> tuple[Floats, Floats]:
        """The least and the greatest of each column in each node."""
        order = np.argsort(at, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = self.rows[self.which[order]]
        return np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)

    def forest(self) -> Forest:
        """What has grown; nodes of a level that was not divided are leaves."""
        if self.count:
            sizes = np.bincount(self.node, minlength=self.count)
            self.column.append(np.full(self.count, -1))
            self.limit.append(np.zeros(self.count))
            self.left.append(np.zeros(self.count, np.int64))
            sums = np.bincount(self.node, self.scores, minlength=self.count)
            self.value.append(sums / sizes)
        parts: Any = (self.column, self.limit, self.left, self.value)
        return Forest(self.trees, *(np.concatenate(part) for part in parts))
