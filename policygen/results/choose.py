"""Which variant to write for a workload, under stated rules, and why not the others."""

from collections.abc import Sequence

from policygen.model.labels import BASE
from policygen.model.results import (
    Choice,
    PointRatio,
    RejectedVariant,
    Rules,
    ScoredVariant,
)
from policygen.results.labels import distance


def choose(variants: Sequence[ScoredVariant], rules: Rules, current: str | None) -> Choice:
    """One variant, or base; of the best ones, each that is not taken has its reason.

    `current` is the label of the values that the header has now, for `prefer_simple`.
    """
    ranked = [v for v in variants if v.variant != BASE]
    reasons = {v.variant: refusal(v, rules) for v in ranked}
    eligible = [v for v in ranked if reasons[v.variant] is None]
    candidates = ranked[: rules.candidates]
    if not eligible:
        rejected = tuple(_rejected(v, reasons[v.variant] or "") for v in candidates)
        reason = f"no variant passes the rules; {_best(candidates, reasons)}"
        return Choice(decision="keep base", variant=None, reason=reason, rejected=rejected)
    best = eligible[0]
    chosen, why = best, "best score"
    if rules.prefer_simple and current is not None:
        equal = [v for v in eligible if _overlap(v, best, rules.noise)]
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
        score=chosen.score,
        reason=f"{why}: {chosen.score:.6f}, {_worst(chosen)}",
        rejected=rejected,
    )


def refusal(variant: ScoredVariant, rules: Rules) -> str | None:
    """Why the rules refuse a variant; none when they do not."""
    if variant.score < rules.least_score:
        return f"score {variant.score:.6f} is under {rules.least_score:g}"
    if variant.min < rules.worst_allowed:
        return f"{_worst(variant)}, under {rules.worst_allowed:g}"
    found = variant.interval
    if found is None:
        return None if rules.without_samples else "no samples tell how sure its score is"
    if found.low <= 1:
        return (
            f"the {rules.confidence:.0%} interval of its score,"
            f" {found.low:.4f} to {found.high:.4f}, does not lie above 1"
        )
    return None


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
    """Whether two scores are too close to each other to call; two runs differ by `noise`."""
    low, high = (one.interval.low, one.interval.high) if one.interval else (one.score, one.score)
    other_low, other_high = (
        (other.interval.low, other.interval.high) if other.interval else (other.score, other.score)
    )
    return low <= other_high + noise and other_low <= high + noise
