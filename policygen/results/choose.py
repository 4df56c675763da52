"""Which variant to write for a workload, under stated rules, and why not the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policygen.model.labels import BASE
from policygen.model.results import (
    Choice,
    PointRatio,
    RejectedVariant,
    Rules,
    ScoredVariant,
    ScoredWorkload,
)
from policygen.results.confidence import deviation, luck
from policygen.results.labels import distance
from policygen.results.luck import FINALISTS, MOST, kept_share, runs_to_find
from policygen.results.score import Scores

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
