"""Runs of the finalists that a choice did not see: they decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policygen.errors import InputError
from policygen.model.labels import BASE
from policygen.model.results import Rules
from policygen.results.agree import scores_by_run
from policygen.results.case import Case
from policygen.results.choose import Confirmed
from policygen.results.confidence import deviation, half_width
from policygen.results.declared import DeclaredAxes
from policygen.results.load import Floats
from policygen.results.luck import FINALISTS, SEARCH, confirmed_threshold, together
from policygen.results.score import Scores, score_case


def confirming(case: Case, others: Sequence[Case]) -> Case | None:
    """The runs of the same workload among those that confirm."""
    for other in others:
        same = other.algorithm == case.algorithm and other.workload == case.workload
        if same and other.key == case.key:
            _check_unseen(case, other)
            return other
    return None


def finalists(scores: Scores, again: Case, rules: Rules) -> list[int]:
    """Positions of the search's best ones that were measured again, by score.

    What the rules ask for is asked of both together; here only those are out that lose too much
    somewhere beyond noise.
    """
    found = []
    for position, index in enumerate(scores.index):
        name = scores.case.variants[int(index)]
        if name != BASE and name in again.variants and not _lost(scores, int(index), rules):
            found.append(position)
        if len(found) == FINALISTS:
            break
    return found


def confirm(
    scores: Scores,
    positions: Sequence[int],
    case: Case,
    rules: Rules,
    declared: DeclaredAxes,
    among: int | None = None,
) -> Mapping[str, Confirmed]:
    """What the confirming runs say of finalists; there are `among` of them in all."""
    if _points(case) != _points(scores.case):
        return {}
    again = score_case(case, declared)
    places = {case.variants[int(i)]: position for position, i in enumerate(again.index)}
    found = {}
    for position in positions:
        name = scores.case.variants[int(scores.index[position])]
        if name not in places:
            continue  # not on all runtime workloads
        place = places[name]
        index, score = int(again.index[place]), float(again.score[place])
        runs = int(again.repeats[index])
        share = 1 - rules.confidence
        limit = confirmed_threshold(scores.tried, among or len(positions), runs, share)
        told = _Told(
            float(scores.score[position]), score, runs, 1 + limit * deviation(scores, rules)
        )
        worst = _worst(scores, int(scores.index[position]), again, index, runs)
        reason = _slower(again, index) or _refusal(told, worst, rules)
        found[name] = Confirmed(score, runs, reason)
    return found


def enough(scores: Scores, score: float, rules: Rules) -> float:
    """What one confirming run has to say of a variant alone that has such a score."""
    luck = confirmed_threshold(max(1, scores.tried), 1, 1, 1 - rules.confidence)
    both = max(1 + luck * deviation(scores, rules), rules.least_score)
    return max(1.0, both * (SEARCH + 1) - SEARCH * score)


def _lost(scores: Scores, variant: int, rules: Rules) -> bool:
    """Whether a runtime workload is under what is allowed, beyond noise."""
    reach = half_width(rules)
    return any(
        bool((ratios[variant] * (1 + reach * noise) < rules.worst_allowed).any())
        for ratios, noise in zip(scores.ratios, scores.noise.points, strict=True)
    )


def _worst(scores: Scores, variant: int, again: Scores, same: int, runs: int) -> float:
    """The least ratio of a runtime workload, of the search and the later runs together."""
    first, later = _by_point(scores, variant), _by_point(again, same)
    return min(float(together(first[point], later[point], runs)) for point in first)


def _by_point(scores: Scores, variant: int) -> dict[tuple[str, tuple[str, ...]], Floats]:
    return {
        (part.table.subbench, point): ratios[variant, column]
        for part, ratios in zip(scores.case.parts, scores.ratios, strict=True)
        for column, point in enumerate(part.points)
    }


def _slower(again: Scores, variant: int) -> str | None:
    """One run that finds it slower than base is enough."""
    found = scores_by_run(again, variant)
    slower = [f"{score:.6f} in {name}" for name, score in found.items() if score < 1]
    return f"not confirmed: {', '.join(slower)}" if slower else None


@dataclass(frozen=True, slots=True)
class _Told:
    search: float
    later: float
    runs: int
    luck: float


def _refusal(told: _Told, worst: float, rules: Rules) -> str | None:
    where = "the confirming run" if told.runs == 1 else f"the {told.runs} confirming runs"
    if worst < rules.worst_allowed:
        return f"not confirmed: a runtime workload at {worst:.4f} in the search and {where}"
    both = float(together(np.array(told.search), np.array(told.later), told.runs))
    limit = max(told.luck, rules.least_score)
    if both < limit:
        return (
            f"not confirmed: {told.later:.6f} in {where}, together with the search {both:.6f},"
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
