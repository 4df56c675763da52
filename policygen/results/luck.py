"""Luck: how far the best of many variants gets that are all as fast as base, and what is left.

All variants of a run are compared with the same base. Dunnett's distribution has that: the largest
of n equally noisy differences from one reference. Half of their variance is the reference's.
"""

from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np

from policygen.results.load import Floats

SHARED = 0.5
"""Base is measured as often as a variant."""
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_LEVELS = 100
_GRID = 4096
ROUNDS = 40
_EDGES = np.linspace(-9, 9, _GRID)
_CDF = np.array([_NORMAL.cdf(float(x)) for x in _EDGES])


def largest(limit: Floats, variants: int) -> Floats:
    """The share of searches where no variant gets above a limit, in deviations of a score."""
    own = (np.asarray(limit)[..., None] - SHARED**0.5 * _NODES) / (1 - SHARED) ** 0.5
    below = np.interp(own, _EDGES, _CDF) ** variants
    return np.asarray((below * _WEIGHTS).sum(axis=-1) / _WEIGHTS.sum())


@cache
def threshold(variants: int, share: float) -> float:
    """What the luckiest of so many variants exceeds in that share of searches, in deviations."""
    return _root(lambda limit: float(largest(np.array(limit), variants)), 1 - share)


@cache
def pooled_threshold(
    variants: int, finalists: int, share: float, search: float, runs: int
) -> float:
    """The same for a mean of a search and of later runs of its finalists.

    The search counts `search` times as much as one run. That all finalists were as lucky there as
    the luckiest is more than can be.
    """
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    grid = np.linspace(-6, 8, 500)
    lucky = np.interp(levels, largest(grid, variants), grid)
    noise = runs**0.5

    def below(limit: float) -> float:
        rest = (limit * (search + runs) - search * lucky) / noise
        return float(largest(rest, finalists).mean())

    return _root(below, 1 - share)


def _root(share_below: Callable[[float], float], wanted: float) -> float:
    low, high = -4.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        if share_below(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def kept_share(gains: Floats, chosen: float, noise: float) -> float:
    """How much of a gain is none of luck, by what all variants gained: empirical Bayes.

    Of the variants, some are as fast as base, and the others are spread around it as widely as the
    chosen one stands out. How many these are is what explains best what was measured. Gains under
    base are left out: what is slower says nothing of what is faster.
    """
    seen = gains[gains > 0]
    spread = chosen**2
    if spread <= noise**2:
        return 0.0
    some = 0.5
    for _ in range(ROUNDS):
        some = float((_belongs(seen, some, spread, noise).sum() + 1) / (len(seen) + 2))
    share = float(_belongs(np.array([chosen]), some, spread, noise)[0])
    return share * (1 - noise**2 / spread)


def _belongs(gains: Floats, some: float, spread: float, noise: float) -> Floats:
    """How likely each gain is of a variant that differs from base."""
    wide = some / spread**0.5 * np.exp(-(gains**2) / (2 * spread))
    narrow = (1 - some) / noise * np.exp(-(gains**2) / (2 * noise**2))
    return np.asarray(wide / np.maximum(wide + narrow, 1e-300))
