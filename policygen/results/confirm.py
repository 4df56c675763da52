"""Runs of the finalists that a choice did not see: they decide."""

from collections.abc import Mapping, Sequence

import numpy as np

from policygen.errors import InputError
from policygen.model.labels import BASE
from policygen.model.results import Rules, ScoredVariant
from policygen.results.agree import scores_by_run
from policygen.results.case import Case
from policygen.results.choose import Confirmed, hopeless
from policygen.results.confidence import deviation
from policygen.results.declared import DeclaredAxes
from policygen.results.luck import pooled_threshold
from policygen.results.score import Scores, score_case

FINALISTS = 3
"""Of the search's best: each one more makes it likelier that luck confirms one."""
SEARCH = 0.5
"""What the search counts beside one confirming run: it was lucky, but it was measured."""


def confirming(case: Case, others: Sequence[Case]) -> Case | None:
    """The runs of the same workload among those that confirm."""
    for other in others:
        same = other.algorithm == case.algorithm and other.workload == case.workload
        if same and other.key == case.key:
            _check_unseen(case, other)
            return other
    return None


def confirm(
    scores: Scores,
    variants: Sequence[ScoredVariant],
    case: Case,
    rules: Rules,
    declared: DeclaredAxes,
) -> Mapping[str, Confirmed]:
    """What the confirming runs say of the finalists."""
    if _points(case) != _points(scores.case):
        return {}
    again = score_case(case, declared)
    places = {case.variants[int(i)]: position for position, i in enumerate(again.index)}
    finalists = [
        v
        for v in variants
        if v.variant != BASE and v.variant in places and hopeless(v, rules) is None
    ][:FINALISTS]
    found = {}
    for variant in finalists:
        position = places[variant.variant]
        runs = int(again.repeats[again.index[position]])
        share = 1 - rules.confidence
        limit = pooled_threshold(max(1, scores.tried), len(finalists), share, SEARCH, runs)
        score = float(again.score[position])
        least = float(again.minimum[position])
        reason = _slower(again, int(again.index[position])) or _refusal(
            variant, score, least, runs, limit * deviation(scores, rules), rules
        )
        found[variant.variant] = Confirmed(score, runs, reason)
    return found


def enough(scores: Scores, variant: ScoredVariant, rules: Rules) -> float:
    """What one confirming run of this variant alone has to say."""
    share = 1 - rules.confidence
    luck = pooled_threshold(max(1, scores.tried), 1, share, SEARCH, 1) * deviation(scores, rules)
    both = max(1 + luck, rules.least_score)
    return max(1.0, both * (SEARCH + 1) - SEARCH * variant.score)


def _slower(again: Scores, variant: int) -> str | None:
    """One run that finds it slower than base is enough."""
    found = scores_by_run(again, variant)
    slower = [f"{score:.6f} in {name}" for name, score in found.items() if score < 1]
    return f"not confirmed: {', '.join(slower)}" if slower else None


def _refusal(
    variant: ScoredVariant, score: float, least: float, runs: int, luck: float, rules: Rules
) -> str | None:
    where = "the confirming run" if runs == 1 else f"the {runs} confirming runs"
    if least < rules.worst_allowed:
        return f"not confirmed: a runtime workload at {least:.4f} in {where}"
    both = (SEARCH * variant.score + runs * score) / (SEARCH + runs)
    limit = max(1 + luck, rules.least_score)
    if both < limit:
        return (
            f"not confirmed: {score:.6f} in {where}, together with the search {both:.6f},"
            f" which is under {limit:.4f}"
        )
    return None


def _points(case: Case) -> set[tuple[str, tuple[str, ...]]]:
    return {(part.table.subbench, point) for part in case.parts for point in part.points}


def _check_unseen(case: Case, other: Case) -> None:
    """A run confirms nothing that was chosen from it."""
    known = {part.table.subbench: part for part in case.parts}
    for part in other.parts:
        before = known.get(part.table.subbench)
        if before is None:
            continue
        for index, name in enumerate(other.files):
            centers = part.centers[index]
            own = centers[~np.isnan(centers)]
            if own.size and np.isin(own, before.centers).all():
                raise InputError(
                    f"{name}: these rows are those that the choice is made from",
                    "Measure the finalists once more, and give that to --confirm.",
                )
