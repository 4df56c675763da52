"""Variants as rows of numbers, by which a forest tells them apart."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from policygen.results.load import Floats
from policygen.search.domain import Domain, Values

KINDS = 16
"""Numbers below this may be names of kinds, such as ways to load or to wait; above are amounts."""
MOST = 8
"""There are fewer kinds than that, or as many."""
PAIRS = 10
"""Products of two parameters that are looked at, such as the items of a tile."""


class Features:
    """Columns: values, kinds, by which power of two a value is divided, products of two."""

    def __init__(self, domain: Domain) -> None:
        ranges = list(enumerate(domain.ranges.values()))
        self._kinds = [
            (place, value)
            for place, values in ranges
            if are_kinds(values) and len(values) > 2
            for value in values
        ]
        self._amounts = [place for place, values in ranges if not are_kinds(values)]
        self._pairs = list(combinations(self._amounts, 2))[:PAIRS]

    def rows(self, variants: Sequence[Values]) -> Floats:
        """A row for each variant."""
        plain = np.array(variants, np.float64).reshape(len(variants), -1)
        kinds = [plain[:, place] == value for place, value in self._kinds]
        powers = [roundness(plain[:, place].astype(np.int64)) for place in self._amounts]
        products = [
            np.log2(np.abs(plain[:, one]) + 1) + np.log2(np.abs(plain[:, other]) + 1)
            for one, other in self._pairs
        ]
        return np.column_stack([plain, *kinds, *powers, *products])


def are_kinds(values: Sequence[int]) -> bool:
    """Whether the values of a parameter may be names, in no order; of amounts the order counts."""
    return len(values) <= MOST and all(0 <= value < KINDS for value in values)


def roundness(values: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Floats:
    """How often a number can be divided by two; of 0 as often as of 2^16."""
    lowest = np.where(values == 0, 1 << 16, values & -values)
    return np.log2(np.abs(lowest).astype(np.float64))
