"""What one side takes over what the other takes, at each quantile of their samples."""

import numpy as np

from policygen.model.search_report import QUANTILES
from policygen.results.samples import Samples

LEAST = 5
"""Samples; fewer have no quantiles."""


def quantile_ratios(base: Samples, own: Samples) -> tuple[float, ...]:
    """Base over the other one; nothing where a side has too few samples."""
    if base.size < LEAST or own.size < LEAST:
        return ()
    ratios = np.quantile(base, QUANTILES) / np.quantile(own, QUANTILES)
    return tuple(map(float, ratios))
