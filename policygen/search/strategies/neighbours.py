"""Variants near others: one or two parameters changed, and mixtures of two."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from random import Random

from policygen.search.domain import Domain, Values
from policygen.search.strategies.features import are_kinds

LEAST = 3
"""Steps of an amount: to the first, the second and the fourth place beside it."""


class Neighbourhood:
    """Knows the values that there are; those of a given variant may be others."""

    def __init__(self, domain: Domain) -> None:
        self._ranges = tuple(domain.ranges.values())

    def around(self, values: Values) -> Iterator[Values]:
        """All with one parameter changed: to any of few values, by some steps among many."""
        for which in range(len(values)):
            for other in self._moves(which, values[which]):
                yield *values[:which], other, *values[which + 1 :]

    def changed(self, values: Values, draw: Random, count: int) -> Values:
        """One with as many parameters changed, drawn at random."""
        found = list(values)
        varied = [which for which, one in enumerate(self._ranges) if len(one) > 1]
        for which in draw.sample(varied, min(count, len(varied))):
            found[which] = draw.choice(self._moves(which, values[which]))
        return tuple(found)

    def mixed(self, one: Values, other: Values, draw: Random) -> Values:
        """One that has each value from either."""
        return tuple(draw.choice(pair) for pair in zip(one, other, strict=True))

    def _moves(self, which: int, value: int) -> Sequence[int]:
        values = self._ranges[which]
        if are_kinds(values):
            return [other for other in values if other != value]
        place = nearest(values, value)
        near = (place + way * step for step in _steps(len(values)) for way in (1, -1))
        return [values[at] for at in near if 0 <= at < len(values)]


def _steps(count: int) -> list[int]:
    """How far an amount goes, in places of its range: to the next one, twice as far, and so on.

    With small steps alone a range of 513 values is never crossed.
    """
    return [1 << power for power in range(max(LEAST, count.bit_length() - 1))]


def nearest(values: Sequence[int], value: int) -> int:
    """The place of a value, or of the one that is nearest to it, in values that rise."""
    at = bisect_left(values, value)
    near = [place for place in (at - 1, at) if 0 <= place < len(values)]
    return min(near, key=lambda place: abs(values[place] - value))
