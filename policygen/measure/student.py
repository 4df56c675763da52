"""Quantiles of Student's distribution, which few processes need: by its distribution, exactly."""

import math
from functools import cache

CONFIDENCE = 0.95
_FAR, _HALVINGS = 1e6, 200


@cache
def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors to both sides hold a mean with this confidence."""
    low, high = 0.0, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The chance that a value lies within `t` standard errors (Abramowitz and Stegun, 26.7.3)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    total, term = 0.0, math.cos(angle) if odd else 1.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    found = math.sin(angle) * total
    return (angle + found) * 2 / math.pi if odd else found
