"""What the last rung of a search says of its finalists: nothing was chosen by its samples."""

from collections.abc import Mapping

from policygen.model.results import Rules
from policygen.results.case import Case
from policygen.results.choose import Confirmed
from policygen.results.confidence import deviation, half_width
from policygen.results.luck import threshold
from policygen.results.measured_noise import noise_key
from policygen.results.score import Scores

LEAST = 2
"""Processes of the last rung, from which on a finalist counts as measured again."""


def last_rung(scores: Scores, rules: Rules) -> Mapping[str, Confirmed] | None:
    """By finalist what it is worth, and why it is not taken; none where there was no last rung.

    The rows of finalists are those of the last rung. They were selected by other samples, so that
    only what luck makes of so few is left to be beaten.
    """
    known = _finalists(scores.case)
    if not known:
        return None
    names = [scores.case.variants[int(index)] for index in scores.index]
    places = {name: at for at, name in enumerate(names) if name in known}
    luck = max(half_width(rules), threshold(max(1, len(places)), 1 - rules.confidence))
    limit = max(rules.least_score, 1 + luck * deviation(scores, rules))
    return {
        name: Confirmed(float(scores.score[at]), known[name], _refusal(scores, at, limit, rules))
        for name, at in places.items()
    }


def _refusal(scores: Scores, place: int, limit: float, rules: Rules) -> str | None:
    score, least = float(scores.score[place]), float(scores.minimum[place])
    if least < rules.worst_allowed:
        return f"not confirmed: a runtime workload at {least:.4f} in the last rung"
    if score < limit:
        return f"not confirmed: {score:.6f} in the last rung, which is under {limit:.4f}"
    return None


def _finalists(case: Case) -> dict[str, int]:
    """Variant → the processes in which it was on every runtime workload."""
    counts: dict[str, int] | None = None
    for part in case.parts:
        for point in part.points:
            axes = {**case.workload, **dict(zip(part.table.rt_axes, point, strict=True))}
            key = noise_key(case.key, case.algorithm, part.table.subbench, axes)
            here: dict[str, int] = {}
            for one in case.databases:
                for (_, variant), logs in one.finals.get(key, {}).items():
                    here[variant] = here.get(variant, 0) + len(logs)
            counts = (
                here
                if counts is None
                else {name: min(n, here[name]) for name, n in counts.items() if name in here}
            )
    return {name: n for name, n in (counts or {}).items() if n >= LEAST}
