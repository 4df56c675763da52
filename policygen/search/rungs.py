"""Who goes on to the next rung: those that can still win, by what noise leaves open."""

from collections.abc import Mapping
from dataclasses import dataclass

SURE = 2.0
"""Standard errors, beyond which a score is not thought to be."""
PROCESS = 0.004
"""The standard deviation of a score from process to process: its samples do not tell of it."""


@dataclass(frozen=True, slots=True)
class RungRule:
    """How many a rung has at least and at most."""

    least: int
    most: int


TO_SHARPER, TO_LAST = RungRule(8, 32), RungRule(3, 6)


def survivors(scores: Mapping[str, float], error: float, rule: RungRule) -> list[str]:
    """Variants that may be the best, and faster than base; the best first.

    `error` is the standard error of a score as far as samples make it. Some are kept in any case,
    so that it is seen that nothing wins.
    """
    order = sorted(scores, key=lambda label: (-scores[label], label))
    if not order:
        return []
    reach = SURE * (error**2 + PROCESS**2) ** 0.5
    sure = max(scores[order[0]] - reach, 1 - reach)
    open_ones = [label for label in order if scores[label] + reach >= sure]
    return order[: min(rule.most, max(rule.least, len(open_ones)))]
