"""Luck: how far the best of many variants gets that are all as fast as base, and what is left.

All variants of a run are compared with the same base. Dunnett's distribution has that: the largest
of n equally noisy differences from one reference. Half of their variance is the reference's.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

from policygen.results.load import Floats

SHARED = 0.5
"""Base is measured as often as a variant."""
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_GRID = 4096
DRAWN = 40_000
"""Searches: so many that 5 % of them are 5 % but for 0.1."""
SEARCH = 0.5
"""What a search counts beside one later run of its best ones."""
FINALISTS = 16
"""Of the best ones: in a noisy search of 500, what is 3 % faster is hardly among fewer."""
GAIN, POWER, MOST = 0.03, 0.8, 9
"""Later runs are to find such a gain that often; more than so many are not asked for."""
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
def confirmed_threshold(variants: int, finalists: int, runs: int, share: float) -> float:
    """The same of the luckiest of a search's best ones, which later runs measured again.

    What the search says of a finalist and the mean of the later runs are taken together.
    """
    return float(
        np.quantile(
            together(*_searches(variants, finalists, runs), runs)[:, 1:].max(axis=1), 1 - share
        )
    )


def power(variants: int, finalists: int, runs: int, gain: float, limit: float) -> float:
    """How often the only variant that gains is found above a limit; both in deviations."""
    search, later = _searches(variants - 1, min(finalists, variants - 1), runs)
    own, others = search[:, 0] + gain, search[:, 1:]
    both = together(search, later, runs)
    found = (both[:, 0] + gain > limit) & (
        both[:, 0] + gain > both[:, 1:finalists].max(axis=1, initial=-np.inf)
    )
    if variants > finalists:
        found &= own > others[:, -1]  # else it is no finalist
    return float(found.mean())


@cache
def runs_to_find(variants: int, noise: float, share: float, least: float) -> int | None:
    """As many later runs of the best ones as find a gain of 3 % in four of five searches.

    `noise` and `least`, what has to be gained, are those of scores.
    """
    kept = min(FINALISTS, variants)
    for runs in range(1, MOST + 1):
        limit = max(confirmed_threshold(variants, kept, runs, share), least / noise)
        if power(variants, kept, runs, GAIN / noise, limit) >= POWER:
            return runs
    return None


def together(search: Floats, later: Floats, runs: int) -> Floats:
    """What a search and so many later runs say; a search was lucky, but it was measured."""
    return np.asarray((SEARCH * search + runs * later) / (SEARCH + runs))


@lru_cache(8)
def _searches(variants: int, finalists: int, runs: int) -> tuple[Floats, Floats]:
    """What searches and later runs say of variants as fast as base: of any one, then of the best.

    The best ones are drawn one after the other: the largest of n numbers between 0 and 1 is the
    n-th root of one, and below it are n - 1.
    """
    random = np.random.default_rng([variants, finalists, runs])
    roots = 1 / np.arange(variants, variants - finalists, -1)
    lucky = np.cumprod(random.random((DRAWN, finalists)) ** roots, axis=1)
    own = np.column_stack([random.normal(size=DRAWN), np.interp(lucky, _CDF, _EDGES)])
    again = random.normal(size=own.shape) / runs**0.5
    base, base_again = random.normal(size=(2, DRAWN, 1)) * SHARED**0.5
    alone = (1 - SHARED) ** 0.5
    return base + alone * own, base_again / runs**0.5 + alone * again


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
