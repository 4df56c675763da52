"""How many variants a unit has, so that all cores end together."""

from collections.abc import Sequence
from math import ceil
from typing import TypeVar

MOST = 16
"""Variants of a unit: its headers take 9 s of a core, a variant 1.5 s more, and what fails is
compiled again in parts."""
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
