"""What a choice was made from, in numbers."""

from collections.abc import Sequence

import numpy as np

from policygen.model.labels import BASE
from policygen.model.results import Reasoning, Rules, RuntimeWorkload, ScoredVariant
from policygen.results.case import Case
from policygen.results.choose import hopeless, runs_needed
from policygen.results.confidence import deviation
from policygen.results.confirm import enough
from policygen.results.score import Scores


def reasoning(
    scores: Scores, variants: Sequence[ScoredVariant], again: Case | None, rules: Rules
) -> Reasoning:
    """Weights and noise by runtime workload, and what would decide for the best variant."""
    best = next((v for v in variants if v.variant != BASE and not hopeless(v, rules)), None)
    return Reasoning(
        runtime=tuple(_runtime(scores)),
        confirming=again.files if again else (),
        enough=None if best is None else enough(scores, best, rules),
        runs=runs_needed(scores.tried, deviation(scores, rules), rules),
    )


def _runtime(scores: Scores) -> list[RuntimeWorkload]:
    return [
        RuntimeWorkload(
            subbench=part.table.subbench,
            point=dict(zip(part.table.rt_axes, point, strict=True)),
            weight=float(weights[column]),
            base=float(np.nanmean(part.centers[:, 0, column])),
            noise=float(noise[column]),
        )
        for part, weights, noise in zip(
            scores.case.parts, scores.weights, scores.noise.points, strict=True
        )
        for column, point in enumerate(part.points)
    ]
