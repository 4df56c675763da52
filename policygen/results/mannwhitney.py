"""The Mann-Whitney U test that CCCL's `--alpha` uses to tell whether samples differ at all.

Two-sided, by the normal approximation with correction for ties and continuity; exact for small
sets without ties, as the approximation is poor there.
"""

import math
from functools import cache

import numpy as np

from policygen.results.samples import Samples

SMALL = 8


def p_value(one: Samples, other: Samples) -> float:
    """How likely samples differ as much as these, if they come from the same distribution."""
    n, m = one.size, other.size
    both = np.concatenate([one, other])
    values, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    # The rank of equal values is the mean of the ranks that they take.
    ranks = np.cumsum(counts) - (counts - 1) / 2
    u = float(ranks[inverse[:n]].sum()) - n * (n + 1) / 2
    u = max(u, n * m - u)
    if min(n, m) <= SMALL and values.size == n + m:
        return min(1.0, 2 * _exact_tail(round(u), n, m))
    ties = float((counts.astype(float) ** 3 - counts).sum())
    total = n + m
    deviation = math.sqrt(n * m / 12 * ((total + 1) - ties / (total * (total - 1))))
    if deviation == 0:
        return 1.0
    z = (u - n * m / 2 - 0.5) / deviation
    return min(1.0, math.erfc(z / math.sqrt(2)))


def _exact_tail(u: int, n: int, m: int) -> float:
    """How often U is at least `u`, over all ways to mix the samples."""
    ways = [_ways(n, m, value) for value in range(n * m + 1)]
    return sum(ways[u:]) / sum(ways)


@cache
def _ways(n: int, m: int, u: int) -> int:
    if u < 0:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return _ways(n - 1, m, u - m) + _ways(n, m - 1, u)
