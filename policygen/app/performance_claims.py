"""What a plan claims: the scores for which workloads were given other values."""

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist

from policygen.app.changed_code import ChangedCode
from policygen.measure.student import CONFIDENCE
from policygen.model.plan import Plan
from policygen.model.resolve import EntryPlace
from policygen.model.results import ScoredWorkload
from policygen.model.workload import Point, axis_name

WorkloadKey = tuple[str, frozenset[tuple[str, str]]]
"""A workload, however its axes are ordered and decorated."""
Claims = Mapping[WorkloadKey, tuple[float, float]]
"""By workload: the score, and what it must be at least."""


def workload_key(benchmark: str, workload: Mapping[str, str]) -> WorkloadKey:
    """A workload of a plan, a database or a tree: `T{ct}` is `T`."""
    return benchmark, frozenset((axis_name(axis), value) for axis, value in workload.items())


def claims_of(plan: Plan | None, code: ChangedCode) -> Claims:
    """Scores of what a plan writes, as sure as the runs were by which it was chosen.

    Without a plan those that the comments of changed entries say; of these nothing else is known.
    """
    if plan is None:
        decided = {point: code.said.get(place) for point, place in _decided(code)}
        return {
            workload_key(name, dict(axes)): (score, score)
            for (name, axes), score in decided.items()
            if score is not None
        }
    chosen = {workload_key(one.algorithm, one.workload): one for one in plan.results}
    found = {}
    for action in plan.actions:
        if action.written and action.scores and not action.legacy:
            key, score = workload_key(action.benchmark, action.workload), action.scores[0]
            found[key] = score, score - _unsure(chosen.get(key))
    return found


def _decided(code: ChangedCode) -> Iterator[tuple[Point, EntryPlace]]:
    for point in code.different:
        place = (code.entries or {}).get(point)
        if place is not None:
            yield point, place


def _unsure(scored: ScoredWorkload | None) -> float:
    """By how much a score may be too high by the noise of its runs."""
    choice = scored.choice if scored else None
    if choice is None or choice.noise is None:
        return 0.0
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * choice.noise / math.sqrt(choice.runs)
