"""How many variants a unit has, so that all cores end together."""

from collections.abc import Sequence
from math import ceil
from typing import TypeVar

MOST = 64
"""Variants of a unit. The headers cost as much as some twenty variants: of scans of CUB 3.6.0, nvcc
13.2 compiled 1 with base in 9 s of a core, 16 in 14 s and 64 in 32 s. What fails is compiled again
in parts, and its cores end later than others: more would gain little."""
One = TypeVar("One")


def unit_size(variants: int, slots: int) -> int:
    """The variants of a unit, where so many are compiled at once."""
    rounds = max(1, ceil(variants / (slots * MOST)))
    return max(1, ceil(variants / (slots * rounds)))


def batches(lot: Sequence[One], size: int) -> list[Sequence[One]]:
    """Divides a lot into as few parts as fit, whose sizes differ by one at most."""
    count = ceil(len(lot) / size)
    return [lot[i * len(lot) // count : (i + 1) * len(lot) // count] for i in range(count)]


def halves(lot: Sequence[One]) -> list[Sequence[One]]:
    """Divides a lot of two or more in two."""
    middle = (len(lot) + 1) // 2
    return [lot[:middle], lot[middle:]]
