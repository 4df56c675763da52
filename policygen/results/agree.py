"""Whether the runs of a search say the same of a variant."""

from collections.abc import Sequence

import numpy as np

from policygen.model.results import ScoredVariant
from policygen.results.score import Scores


def disagreements(scores: Scores, variants: Sequence[ScoredVariant]) -> dict[str, str]:
    """Variants that one run finds faster than base, and another one slower."""
    case = scores.case
    if len(case.databases) < 2:
        return {}
    found = {}
    for variant in variants:
        by_run = scores_by_run(scores, case.variants.index(variant.variant))
        if by_run and min(by_run.values()) < 1 < max(by_run.values()):
            told = ", ".join(f"{score:.6f} in {name}" for name, score in by_run.items())
            found[variant.variant] = f"the runs disagree: {told}"
    return found


def scores_by_run(scores: Scores, variant: int) -> dict[str, float]:
    """A variant's score in each of the databases that measured it whole."""
    found = {}
    for run, name in enumerate(scores.case.files):
        own = [
            float(part.ratios_by_run[run, variant] @ weights)
            for part, weights in zip(scores.case.parts, scores.weights, strict=True)
        ]
        if not np.isnan(own).any():
            found[name] = sum(own)
    return found
