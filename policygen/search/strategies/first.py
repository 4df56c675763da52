"""What is tried before anything is known: spread over the space, round numbers more often."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

import numpy as np

from policygen.search.domain import Domain, Values
from policygen.search.strategies.features import are_kinds, roundness

POWERS = 3
"""A value that 2, 4 or 8 divides is drawn twice, four or eight times as often as an odd one."""


class FirstDraws:
    """Draws values by weights; a lot of variants has each value as often as its weight says."""

    def __init__(self, domain: Domain, draw: Random, powers: int = POWERS) -> None:
        self._ranges, self._draw = tuple(domain.ranges.values()), draw
        self._until = [list(accumulate(weights(one, powers))) for one in self._ranges]

    def lot(self, count: int) -> list[Values]:
        """As many variants: of each parameter, one value from each of as many equal shares."""
        columns = []
        for values, until in zip(self._ranges, self._until, strict=True):
            shares = [(place + self._draw.random()) / count for place in range(count)]
            self._draw.shuffle(shares)
            columns.append([_at(values, until, share) for share in shares])
        return list(zip(*columns, strict=True))


def weights(values: Sequence[int], powers: int) -> list[float]:
    """How often each value is drawn; kinds are as likely as each other."""
    if are_kinds(values):
        return [1.0] * len(values)
    found = roundness(np.array(values, np.int64))
    found = np.minimum(powers, found - found.min())
    return [float(w) for w in np.exp2(found)]


def _at(values: Sequence[int], until: Sequence[float], share: float) -> int:
    return values[min(len(values) - 1, bisect_right(until, share * until[-1]))]
