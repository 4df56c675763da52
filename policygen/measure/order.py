"""In which order base and variants run: shuffled rounds, each second one backwards."""

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def bases_among(variants: int) -> int:
    """How often base runs in a round: what all are compared with needs more samples than each."""
    return max(2, math.ceil(math.sqrt(variants)))


def round_order(base: T, variants: Sequence[T], number: int, seed: int) -> list[T]:
    """A round: each variant once, base several times, evenly among them.

    The place in the order is a bias and no noise. Each second round is the one before backwards,
    so that what drifts, and who stands before whom, weighs on both sides.
    """
    # Text, so that the orders of neighbouring seeds have nothing in common.
    random = Random(f"{seed}/{number // 2}")  # noqa: S311  an order is no secret
    mixed = list(variants)
    random.shuffle(mixed)
    parts = bases_among(len(mixed))
    order: list[T] = []
    for part in range(parts):
        some = mixed[part * len(mixed) // parts : (part + 1) * len(mixed) // parts]
        some.insert(random.randint(0, len(some)), base)
        order += some
    return order[::-1] if number % 2 else order
