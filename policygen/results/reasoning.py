"""What a choice was made from, in numbers."""

import numpy as np

from policygen.model.results import Reasoning, Rules, RuntimeWorkload
from policygen.results.case import Case
from policygen.results.choose import runs_needed
from policygen.results.confidence import deviation
from policygen.results.confirm import enough, finalists
from policygen.results.score import Scores


def reasoning(scores: Scores, again: Case | None, rules: Rules) -> Reasoning:
    """Weights and noise by runtime workload, and what would decide for the best variant."""
    best = next(iter(finalists(scores, scores.case, rules)), None)
    return Reasoning(
        runtime=tuple(_runtime(scores)),
        confirming=again.files if again else (),
        enough=None if best is None else enough(scores, float(scores.score[best]), rules),
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
