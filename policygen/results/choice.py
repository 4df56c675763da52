"""Chooses the variant to write for a workload under given rules, and explains the rejections."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.results import Choice, RejectedVariant, Rules, ScoredVariant, ScoredWorkload
from policygen.model.workload import BASE, axes
from policygen.results.cases import Case, declared_points, distance, in_words, missing_of_base
from policygen.results.database import Floats
from policygen.results.noise import (
    FINALISTS,
    MOST,
    SEARCH,
    combine_runs,
    confirmed_threshold,
    kept_share,
    runs_to_find,
)
from policygen.results.score import Scores, deviation, half_width, luck, score_case
from policygen.results.tables import DeclaredAxes

IsWritable = Callable[[str], bool]
"""Returns whether a variant can be expressed in the source that would be written."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The result of confirming runs for one variant: runs that the choice did not see."""

    score: float
    """The score in these runs."""
    runs: int
    refusal: str | None
    """Why the variant is not confirmed."""


def choose(
    variants: Sequence[ScoredVariant],
    scores: Scores,
    rules: Rules,
    declared: DeclaredAxes,
    confirmed: Mapping[str, Confirmed] | None = None,
    current: str | None = None,
) -> Choice:
    """Chooses one variant, or base; each of the best variants that is not chosen gets a reason.

    `confirmed` has the finalists, unless there is no confirming run. `current` is the label of the
    header's current values, for `prefer_simple`.
    """
    ranked = [variant for variant in variants if variant.variant != BASE]
    noise = deviation(scores, rules)
    common_fields: dict[str, Any] = {
        "noise": noise,
        "noise_origin": scores.noise.origin if rules.noise is None else "stated in the rules",
        "tried": scores.tried,
        "luck": 1 + luck(scores, rules) * noise,
        "runs": len(scores.case.databases),
    }
    if missing := missing_of_base(scores.case, declared):
        reason = in_words(missing)
        return Choice(decision="keep base", variant=None, reason=reason, **common_fields)
    reasons = {
        variant.variant: _reason(variant, scores, confirmed, rules) for variant in ranked
    } | disagreements(scores, variants)
    eligible = [variant for variant in ranked if reasons[variant.variant] is None]
    by_final = sorted(ranked, key=lambda variant: variant.variant not in (confirmed or ()))
    candidates = by_final[: rules.candidates]
    if not eligible:
        rejected = tuple(
            _rejected(variant, reasons[variant.variant] or "") for variant in candidates
        )
        best_reason = "none was measured on all runtime workloads"
        if candidates:
            label = candidates[0].variant
            best_reason = f"the best is {label}: {reasons[label]}"
        reason = f"no variant passes the rules; {best_reason}"
        return Choice(
            decision="keep base", variant=None, reason=reason, rejected=rejected, **common_fields
        )
    # Where there are confirming runs, they have confirmed what is eligible.
    best = max(
        eligible,
        key=lambda variant: confirmed[variant.variant].score if confirmed else variant.score,
    )
    chosen, explanation = best, "best score"
    if rules.prefer_simple and current is not None:
        chosen = min(
            (variant for variant in eligible if _overlap(variant, best, noise)),
            key=lambda variant: (distance(variant.variant, current), -variant.score),
        )
        if chosen is not best:
            explanation = f"closest to {current} among those too close to {best.variant} to call"
    rejected = tuple(
        _rejected(variant, reasons[variant.variant] or _why_not(variant, chosen))
        for variant in candidates
        if variant is not chosen
    )
    if confirmed is None:
        score = shrunken(chosen.score, scores, rules)
        claim = f"{score:.6f} bias-corrected, unconfirmed"
    else:
        score, count = confirmed[chosen.variant].score, confirmed[chosen.variant].runs
        runs = "a run" if count == 1 else f"{count} runs"
        claim = f"{score:.6f} in {runs} that the choice has not seen"
    return Choice(
        decision="use",
        variant=chosen.variant,
        score=score,
        raw_score=chosen.score,
        origin="shrunken" if confirmed is None else "confirmed",
        reason=(
            f"{explanation}: {chosen.score:.6f}, {_worst(chosen)}; {claim}"
            f"{_measured_share(scores.case, declared)}"
        ),
        rejected=rejected,
        unconfirmed=confirmed is None,
        **common_fields,
    )


def shrunken(score: float, scores: Scores, rules: Rules) -> float:
    """Returns a score without the part that is probably luck."""
    gain = score - 1
    gains = np.asarray(scores.score[scores.index != 0] - 1)
    return 1 + gain * kept_share(gains, gain, deviation(scores, rules)) if gain > 0 else score


def held_back(workload: ScoredWorkload, rules: Rules) -> ScoredWorkload:
    """Applies the policy for unconfirmed choices: a possible fluke waits for a confirming run."""
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
                f"unconfirmed: {raw:.6f} comes only from the search that found {choice.variant}"
                f" and is under {rules.holds:g}; measure {_remeasure(choice, rules)} and add that"
                " run with --confirm, or use --accept-unconfirmed"
            ),
            "rejected": (best, *choice.rejected),
        }
    )
    return workload.model_copy(update={"choice": held})


def _remeasure(choice: Choice, rules: Rules) -> str:
    """Describes what a confirming run has to measure."""
    subject = "it" if choice.tried == 1 else f"the best {min(FINALISTS, choice.tried)}"
    runs = runs_needed(choice.tried, choice.noise, rules) if choice.noise else 1
    repetitions = {None: f" more than {MOST} times", 1: ""}.get(runs, f" {runs} times")
    return f"{subject} again{repetitions}"


def runs_needed(tried: int, noise: float, rules: Rules) -> int | None:
    """Returns how many confirming runs usually detect the smallest gain that the rules accept."""
    return runs_to_find(max(1, tried), noise, 1 - rules.confidence, rules.least_score - 1)


def refusal(variant: ScoredVariant, scores: Scores, rules: Rules) -> str | None:
    """Returns why the rules refuse a variant, or None."""
    if reason := hopeless(variant, rules):
        return reason
    if variant.verdict is None:
        return None if rules.without_samples else "without samples, its uncertainty is unknown"
    if variant.verdict == "mixed":
        return f"mixed: {variant.slower} runtime workloads slower, by up to {variant.loss:.1%}"
    if variant.verdict == "better":
        return None
    lucky = 1 + luck(scores, rules) * deviation(scores, rules)
    variants = "one variant that is" if scores.tried == 1 else f"{scores.tried:,} variants that are"
    return (
        f"too close to call: {variant.score:.6f} is not above {lucky:.4f}, which the best of"
        f" {variants} as fast as base reaches by luck"
    )


def hopeless(variant: ScoredVariant, rules: Rules) -> str | None:
    """Returns why a variant is refused however certain its score is, or None."""
    if variant.score < rules.least_score:
        return f"score {variant.score:.6f} is under {rules.least_score:g}"
    if variant.min < rules.worst_allowed:
        return f"{_worst(variant)}, under {rules.worst_allowed:g}"
    return None


def _reason(
    variant: ScoredVariant, scores: Scores, confirmed: Mapping[str, Confirmed] | None, rules: Rules
) -> str | None:
    if confirmed is None:
        return refusal(variant, scores, rules)
    if (result := confirmed.get(variant.variant)) is None:
        return hopeless(variant, rules) or "not a finalist, or not measured in the confirming run"
    return result.refusal


def _measured_share(case: Case, declared: DeclaredAxes) -> str:
    """Describes the measured share of the declared runtime workloads, unless it is all."""
    measured, count = len(case.points), declared_points(case, declared)
    if count is None or measured >= count:
        return ""
    return f"; measured on {measured:,} of {count:,} declared runtime workloads"


def _worst(variant: ScoredVariant) -> str:
    if variant.worst is None:
        return f"worst runtime workload at {variant.min:.4f}"
    point = ", ".join(axes(variant.worst.point)) or variant.worst.subbench
    return f"worst runtime workload {point} at {variant.min:.4f}"


def _why_not(variant: ScoredVariant, chosen: ScoredVariant) -> str:
    if variant.score > chosen.score:
        return f"{chosen.variant} is closer to the current values and too close to call"
    return f"score {variant.score:.6f} is lower"


def _rejected(variant: ScoredVariant, reason: str) -> RejectedVariant:
    return RejectedVariant(variant=variant.variant, score=variant.score, reason=reason)


def _overlap(variant_a: ScoredVariant, variant_b: ScoredVariant, noise: float) -> bool:
    """Returns whether two scores are too close to call."""
    a, b = variant_a.interval, variant_b.interval
    if a is None or b is None:
        return abs(variant_a.score - variant_b.score) <= noise
    return a.low <= b.high and b.low <= a.high


# Confirming runs: runs of the finalists that the choice did not see decide.


def confirming(case: Case, confirming_cases: Sequence[Case]) -> Case | None:
    """Returns the confirming case for the same workload."""
    for confirming_case in confirming_cases:
        if confirming_case.subject == case.subject and confirming_case.key == case.key:
            _check_unseen(case, confirming_case)
            return confirming_case
    return None


def finalists(scores: Scores, confirming_case: Case, rules: Rules) -> list[int]:
    """Returns the positions of the best variants that were remeasured, by score.

    The rules apply later to both runs together; only variants that clearly lose too much somewhere
    are excluded here.
    """
    noise = [1 + half_width(rules) * deviations for deviations in scores.noise.points]
    loses_point = np.any(
        [
            (ratios * part_noise < rules.worst_allowed).any(axis=1)
            for ratios, part_noise in zip(scores.ratios, noise, strict=True)
        ],
        axis=0,
    )
    positions = (
        position
        for position, (name, index) in enumerate(zip(scores.names, scores.index, strict=True))
        if name != BASE and name in confirming_case.variants and not loses_point[index]
    )
    return [*islice(positions, FINALISTS)]


def confirm(
    scores: Scores,
    positions: Sequence[int],
    case: Case,
    rules: Rules,
    declared: DeclaredAxes,
    among: int | None = None,
) -> Mapping[str, Confirmed]:
    """Evaluates the confirming runs of finalists; `among` is the total number of finalists."""
    if {*case.points} != {*scores.case.points}:
        return {}
    confirming_scores = score_case(case, declared)
    confirming_positions = {name: at for at, name in enumerate(confirming_scores.names)}
    confirmed_by_name = {}
    for position in positions:
        name = scores.names[position]
        if name not in confirming_positions:
            continue  # not measured on all runtime workloads
        confirming_position = confirming_positions[name]
        index = int(confirming_scores.index[confirming_position])
        score = float(confirming_scores.score[confirming_position])
        runs = int(confirming_scores.repeats[index])
        limit = confirmed_threshold(
            scores.tried, among or len(positions), runs, 1 - rules.confidence
        )
        luck_score = 1 + limit * deviation(scores, rules)
        worst = _confirm_worst(scores, int(scores.index[position]), confirming_scores, index, runs)
        # What any single run finds slower than base is not confirmed.
        by_run = scores_by_run(confirming_scores, index).items()
        slower = ", ".join(
            f"{run_score:.6f} in {run}" for run, run_score in by_run if run_score < 1
        )
        reason = (
            f"not confirmed: {slower}"
            if slower
            else _unconfirmed(float(scores.score[position]), score, runs, luck_score, worst, rules)
        )
        confirmed_by_name[name] = Confirmed(score, runs, reason)
    return confirmed_by_name


def enough(scores: Scores, score: float, rules: Rules) -> float:
    """Returns the score that one confirming run must reach for a single variant with this score."""
    luck = confirmed_threshold(max(1, scores.tried), 1, 1, 1 - rules.confidence)
    required = max(1 + luck * deviation(scores, rules), rules.least_score)
    return max(1.0, required * (SEARCH + 1) - SEARCH * score)


def _confirm_worst(
    scores: Scores, variant: int, confirming_scores: Scores, confirming_variant: int, runs: int
) -> float:
    """Returns the lowest ratio of a runtime workload, pooled over the search and the later runs."""
    search_ratios = _by_point(scores, variant)
    confirming_ratios = _by_point(confirming_scores, confirming_variant)
    return min(
        float(combine_runs(search_ratios[point], confirming_ratios[point], runs))
        for point in search_ratios
    )


def _by_point(scores: Scores, variant: int) -> dict[tuple[str, tuple[str, ...]], Floats]:
    ratios = np.concatenate([part[variant] for part in scores.ratios])
    return dict(zip(scores.case.points, ratios, strict=True))


def _unconfirmed(
    search_score: float, later: float, runs: int, luck_score: float, worst: float, rules: Rules
) -> str | None:
    """Returns why the search and the later runs together do not confirm a variant, or None."""
    runs_text = "the confirming run" if runs == 1 else f"the {runs} confirming runs"
    if worst < rules.worst_allowed:
        return f"not confirmed: a runtime workload at {worst:.4f} in the search and {runs_text}"
    joint_score = float(combine_runs(np.array(search_score), np.array(later), runs))
    limit = max(luck_score, rules.least_score)
    if joint_score < limit:
        return (
            f"not confirmed: {later:.6f} in {runs_text}; together with the search"
            f" {joint_score:.6f}, which is under {limit:.4f}"
        )
    return None


def _check_unseen(case: Case, confirming_case: Case) -> None:
    """Raises InputError if a confirming run contains the rows that the choice was made from."""
    parts_by_subbench = {part.table.subbench: part for part in case.parts}
    for part in confirming_case.parts:
        search_part = parts_by_subbench.get(part.table.subbench)
        if search_part is None:
            continue
        for index, name in enumerate(confirming_case.files):
            centers = part.centers[index]
            measured_centers = centers[~np.isnan(centers)]
            if measured_centers.size and np.isin(measured_centers, search_part.centers).all():
                raise InputError(
                    f"{name}: these rows belong to the search that they should confirm",
                    "Measure the finalists again, and pass that database to --confirm.",
                )


# Disagreement between the runs of a search.


def disagreements(scores: Scores, variants: Sequence[ScoredVariant]) -> dict[str, str]:
    """Returns the variants that one run finds faster than base and another run slower."""
    case = scores.case
    if len(case.databases) < 2:
        return {}
    reasons = {}
    for variant in variants:
        by_run = scores_by_run(scores, case.variants.index(variant.variant))
        if by_run and min(by_run.values()) < 1 < max(by_run.values()):
            listing = ", ".join(f"{score:.6f} in {name}" for name, score in by_run.items())
            reasons[variant.variant] = f"the runs disagree: {listing}"
    return reasons


def scores_by_run(scores: Scores, variant: int) -> dict[str, float]:
    """Returns a variant's score in each database that measured it completely."""
    scores_by_database = {}
    for run, name in enumerate(scores.case.files):
        part_scores = [
            float(part.ratios_by_run[run, variant] @ weights)
            for part, weights in zip(scores.case.parts, scores.weights, strict=True)
        ]
        if not np.isnan(part_scores).any():
            scores_by_database[name] = sum(part_scores)
    return scores_by_database
