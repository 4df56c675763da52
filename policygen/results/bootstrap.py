"""Bootstrap of medians: how sure one run is of its centers, from its samples.

The median of a resample of n sorted samples is an order statistic: its position is drawn directly,
instead of drawing and sorting n samples each time.
"""

import hashlib
from functools import cache
from typing import Any

import numpy as np

from policygen.results.load import Floats
from policygen.results.samples import Samples

DRAWS = 1000
_POOL = 1 << 14

Positions = np.ndarray[Any, np.dtype[np.int64]]


def generator(*identity: str) -> np.random.Generator:
    """Random numbers that depend on what is looked at, and on nothing else."""
    digest = hashlib.sha256("\0".join(identity).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def medians(samples: Samples, rng: np.random.Generator) -> Floats:
    """Medians of resamples of sorted samples."""
    low, high = _positions(samples.size)
    picked = rng.integers(0, _POOL, DRAWS)
    return np.asarray((samples[low[picked]] + samples[high[picked]]) / 2, np.float64)


@cache
def _positions(count: int) -> tuple[Positions, Positions]:
    """Positions of the two middle order statistics of resamples of `count` samples."""
    rng = np.random.default_rng(count)
    upper_rank = count // 2 + 1
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k); what lies below it is uniform.
    upper = rng.beta(upper_rank, count + 1 - upper_rank, _POOL)
    lower = upper
    if count % 2 == 0:
        lower = upper * rng.random(_POOL) ** (1 / (upper_rank - 1))
    top = count - 1
    return (
        np.minimum((lower * count).astype(np.int64), top),
        np.minimum((upper * count).astype(np.int64), top),
    )
