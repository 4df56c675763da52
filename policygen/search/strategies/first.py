"""What is tried before anything is known: spread over the space, round numbers more often."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

import numpy as np

from policygen.search.domain import Domain, Values
from policygen.search.strategies.features import are_kinds, roundness

POWERS = 3
"""An amount that 2, 4 or 8 divides is drawn twice, four or eight times as often as an odd one."""


class FirstDraws:
    """Draws lots of variants: of each parameter, one value from each of as many equal shares."""

    def __init__(self, domain: Domain, draw: Random, rounded: float) -> None:
        self._ranges, self._draw, self._rounded = tuple(domain.ranges.values()), draw, rounded
        self._flat = [list(accumulate([1.0] * len(one))) for one in self._ranges]
        self._round = [list(accumulate(weights(one))) for one in self._ranges]

    def lot(self, count: int) -> list[Values]:
        """As many variants; some of them favour round numbers."""
        rounded = sum(self._draw.random() < self._rounded for _ in range(count))
        found = self._lot(rounded, self._round) + self._lot(count - rounded, self._flat)
        self._draw.shuffle(found)
        return found

    def _lot(self, count: int, weighed: Sequence[Sequence[float]]) -> list[Values]:
        columns = []
        for values, until in zip(self._ranges, weighed, strict=True):
            shares = [(place + self._draw.random()) / count for place in range(count)]
            self._draw.shuffle(shares)
            columns.append([_at(values, until, share) for share in shares])
        return list(zip(*columns, strict=True))


def weights(values: Sequence[int]) -> list[float]:
    """How often each value is drawn; kinds are as likely as each other."""
    if are_kinds(values):
        return [1.0] * len(values)
    found = roundness(np.array(values, np.int64))
    found = np.minimum(POWERS, found - found.min())
    return [float(w) for w in np.exp2(found)]


def _at(values: Sequence[int], until: Sequence[float], share: float) -> int:
    return values[min(len(values) - 1, bisect_right(until, share * until[-1]))]
