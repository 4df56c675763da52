"""Which variant to write for a workload, under stated rules, and why not the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policygen.errors import InputError
from policygen.model.results import (
    Choice,
    PointRatio,
    RejectedVariant,
    Rules,
    ScoredVariant,
    ScoredWorkload,
)
from policygen.model.workload import BASE
from policygen.results.cases import Case, distance
from policygen.results.database import Floats
from policygen.results.noise import (
    FINALISTS,
    MOST,
    SEARCH,
    confirmed_threshold,
    kept_share,
    runs_to_find,
    together,
)
from policygen.results.score import Scores, deviation, half_width, luck, score_case
from policygen.results.tables import DeclaredAxes

Can = Callable[[str], bool]
"""Whether a variant can be said where it would be written."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What runs that a choice did not see say of one variant."""

    score: float
    """Their own."""
    runs: int
    refusal: str | None
    """Why it does not hold there."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a choice rests on besides the variants' numbers."""

    scores: Scores
    confirmed: Mapping[str, Confirmed] | None = None
    """By finalist; none where no confirming run is given."""
    against: str | None = None
    """Why nothing may be chosen, whatever the scores are."""
    disagree: Mapping[str, str] | None = None
    """Variants of which runs of the search say different things."""
    declared: int | None = None
    """Runtime workloads that the declared axes make."""


def choose(
    variants: Sequence[ScoredVariant], basis: Basis, rules: Rules, current: str | None
) -> Choice:
    """One variant, or base; of the best ones, each that is not taken has its reason.

    `current` is the label of the values that the header has now, for `prefer_simple`.
    """
    ranked = [v for v in variants if v.variant != BASE]
    told = _told(basis, rules)
    if basis.against is not None:
        return Choice(decision="keep base", variant=None, reason=basis.against, **told)
    reasons = {v.variant: _reason(v, basis, rules) for v in ranked}
    eligible = [v for v in ranked if reasons[v.variant] is None]
    candidates = ranked[: rules.candidates]
    if not eligible:
        rejected = tuple(_rejected(v, reasons[v.variant] or "") for v in candidates)
        reason = f"no variant passes the rules; {_best(candidates, reasons)}"
        return Choice(decision="keep base", variant=None, reason=reason, rejected=rejected, **told)
    best = max(eligible, key=lambda v: _confirmed_score(v, basis))
    chosen, why = best, "best score"
    if rules.prefer_simple and current is not None:
        equal = [v for v in eligible if _overlap(v, best, deviation(basis.scores, rules))]
        chosen = min(equal, key=lambda v: (distance(v.variant, current), -v.score))
        if chosen is not best:
            why = f"closest to {current} among those too close to {best.variant} to call"
    rejected = tuple(
        _rejected(v, reasons[v.variant] or _why_not(v, chosen))
        for v in candidates
        if v is not chosen
    )
    return Choice(
        decision="use",
        variant=chosen.variant,
        score=expected(chosen, basis, rules),
        raw_score=chosen.score,
        origin="shrunken" if basis.confirmed is None else "confirmed",
        reason=(
            f"{why}: {chosen.score:.6f}, {_worst(chosen)}; {_claim(chosen, basis, rules)}"
            f"{_share(basis)}"
        ),
        rejected=rejected,
        unconfirmed=basis.confirmed is None,
        **told,
    )


def expected(variant: ScoredVariant, basis: Basis, rules: Rules) -> float:
    """The score to tell: of the confirming runs, else without what is likely luck."""
    if basis.confirmed is not None and variant.variant in basis.confirmed:
        return basis.confirmed[variant.variant].score
    return shrunken(variant.score, basis.scores, rules)


def shrunken(score: float, scores: Scores, rules: Rules) -> float:
    """A score without what is likely luck."""
    gain = score - 1
    return (
        1 + gain * kept_share(scores.gains, gain, deviation(scores, rules)) if gain > 0 else score
    )


def held_back(workload: ScoredWorkload, rules: Rules) -> ScoredWorkload:
    """What is written of a choice: a claim that may be luck waits for a run that confirms it."""
    choice = workload.choice
    if choice is None or not choice.unconfirmed or rules.accept_unconfirmed:
        return workload
    raw = choice.raw_score or 0
    if raw >= rules.holds:
        return workload
    best = RejectedVariant(variant=str(choice.variant), score=raw, reason="unconfirmed")
    held = choice.model_copy(
        update={
            "decision": "keep base",
            "variant": None,
            "score": None,
            "origin": None,
            "unconfirmed": False,
            "reason": (
                f"unconfirmed: only the search that found {choice.variant} says {raw:.6f}, which is"
                f" under {rules.holds:g}; measure {_again(choice, rules)} and give that with"
                " --confirm, or say --accept-unconfirmed"
            ),
            "rejected": (best, *choice.rejected),
        }
    )
    return workload.model_copy(update={"choice": held})


def _again(choice: Choice, rules: Rules) -> str:
    """What a confirming run is to hold."""
    few = "it" if choice.tried == 1 else f"the best {min(FINALISTS, choice.tried)}"
    runs = runs_needed(choice.tried, choice.noise, rules) if choice.noise else 1
    times = {None: f" more than {MOST} times", 1: ""}.get(runs, f" {runs} times")
    return f"{few} again{times}"


def runs_needed(tried: int, noise: float, rules: Rules) -> int | None:
    """As many confirming runs as find a gain of 3 % mostly."""
    return runs_to_find(max(1, tried), noise, 1 - rules.confidence, rules.least_score - 1)


def refusal(variant: ScoredVariant, scores: Scores, rules: Rules) -> str | None:
    """Why the rules refuse a variant; none when they do not."""
    if reason := hopeless(variant, rules):
        return reason
    if variant.verdict is None:
        return None if rules.without_samples else "no samples tell how sure its score is"
    if variant.verdict == "mixed":
        return f"mixed: {variant.slower} runtime workloads slower, by up to {variant.loss:.1%}"
    if variant.verdict == "better":
        return None
    noise, limit = deviation(scores, rules), luck(scores, rules)
    return (
        f"too close to call: {variant.score:.6f} is not above what luck makes of"
        f" {_variants(scores.tried)} as fast as base, {1 + limit * noise:.4f}"
    )


def hopeless(variant: ScoredVariant, rules: Rules) -> str | None:
    """Why it is refused, however sure its score is."""
    if variant.score < rules.least_score:
        return f"score {variant.score:.6f} is under {rules.least_score:g}"
    if variant.min < rules.worst_allowed:
        return f"{_worst(variant)}, under {rules.worst_allowed:g}"
    return None


def _reason(variant: ScoredVariant, basis: Basis, rules: Rules) -> str | None:
    if basis.disagree and variant.variant in basis.disagree:
        return basis.disagree[variant.variant]
    if basis.confirmed is None:
        return refusal(variant, basis.scores, rules)
    found = basis.confirmed.get(variant.variant)
    if found is None:
        return hopeless(variant, rules) or "no finalist, or not measured in the confirming run"
    return found.refusal


def _told(basis: Basis, rules: Rules) -> dict[str, object]:
    scores = basis.scores
    noise = deviation(scores, rules)
    return {
        "noise": noise,
        "noise_origin": scores.noise.origin if rules.noise is None else "stated in the rules",
        "tried": scores.tried,
        "luck": 1 + luck(scores, rules) * noise,
        "runs": len(scores.case.databases),
    }


def _confirmed_score(variant: ScoredVariant, basis: Basis) -> float:
    found = (basis.confirmed or {}).get(variant.variant)
    return variant.score if found is None else found.score


def _share(basis: Basis) -> str:
    """How much of what is declared was measured, where it is not all."""
    measured = sum(len(part.points) for part in basis.scores.case.parts)
    if basis.declared is None or measured >= basis.declared:
        return ""
    return f"; measured on {measured:,} of {basis.declared:,} declared runtime workloads"


def _claim(variant: ScoredVariant, basis: Basis, rules: Rules) -> str:
    if basis.confirmed is None:
        told = shrunken(variant.score, basis.scores, rules)
        return f"{told:.6f} without luck, unconfirmed"
    found = basis.confirmed[variant.variant]
    runs = "a run" if found.runs == 1 else f"{found.runs} runs"
    return f"{found.score:.6f} in {runs} that the choice did not see"


def _variants(count: int) -> str:
    return "one variant that is" if count == 1 else f"{count:,} variants that are"


def _worst(variant: ScoredVariant) -> str:
    if variant.worst is None:
        return f"worst runtime workload at {variant.min:.4f}"
    return f"worst runtime workload {describe(variant.worst)} at {variant.min:.4f}"


def describe(point: PointRatio) -> str:
    """A runtime workload in words: `Elements{io}[pow2]=28, Entropy=0.201`."""
    return ", ".join(f"{axis}={value}" for axis, value in point.point.items()) or point.subbench


def _why_not(variant: ScoredVariant, chosen: ScoredVariant) -> str:
    if variant.score > chosen.score:
        return f"{chosen.variant} is closer to the current values and too close to call"
    return f"score {variant.score:.6f} is lower"


def _best(candidates: Sequence[ScoredVariant], reasons: dict[str, str | None]) -> str:
    if not candidates:
        return "none was measured on all runtime workloads"
    best = candidates[0]
    return f"the best is {best.variant}: {reasons[best.variant]}"


def _rejected(variant: ScoredVariant, reason: str) -> RejectedVariant:
    return RejectedVariant(variant=variant.variant, score=variant.score, reason=reason)


def _overlap(one: ScoredVariant, other: ScoredVariant, noise: float) -> bool:
    """Whether two scores are too close to each other to call."""
    if one.interval is None or other.interval is None:
        return abs(one.score - other.score) <= noise
    return one.interval.low <= other.interval.high and other.interval.low <= one.interval.high


# Runs of the finalists that a choice did not see: they decide.


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
        worst = _confirm_worst(scores, int(scores.index[position]), again, index, runs)
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


def _confirm_worst(scores: Scores, variant: int, again: Scores, same: int, runs: int) -> float:
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


# Whether the runs of a search say the same of a variant.


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
