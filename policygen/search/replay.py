"""A strategy on a space that was measured before: what it finds, and how soon, without a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.search.domain import Values
from policygen.search.strategy import AskedVariant, Strategy

Curve = tuple[tuple[int, float], ...]
"""Evaluations, and the best score until then."""


@dataclass(frozen=True, slots=True)
class ReplayedOrder:
    """What a strategy asked for."""

    evaluated: tuple[Values, ...]
    """In its order."""
    invalid: int
    """Variants that it asked for and that were not recorded."""


def replay(
    strategy: Strategy,
    told: Mapping[Values, float],
    *,
    most: int,
    batch: int,
    late: int = 0,
) -> ReplayedOrder:
    """Asks and tells until there is no more to ask for, or `most` variants are evaluated.

    What became of a batch is told when `late` later ones have been asked for.
    """
    evaluated: list[Values] = []
    invalid = 0
    waiting: list[list[Values]] = []
    while True:
        asked = strategy.ask(min(batch, most - len(evaluated))) if len(evaluated) < most else []
        known = [values for values in asked if values in told]
        evaluated += known
        invalid += len(asked) - len(known)
        if asked:
            waiting.append(asked)
        elif not waiting:
            return ReplayedOrder(tuple(evaluated), invalid)
        if len(waiting) > late or not asked:
            done = waiting.pop(0)
            strategy.tell([AskedVariant(values, told.get(values)) for values in done])


def curve_of(scores: Sequence[float]) -> Curve:
    """Where the best score rises, and where it ends."""
    found: list[tuple[int, float]] = []
    for count, score in enumerate(scores, 1):
        if not found or score > found[-1][1]:
            found.append((count, score))
    if found and found[-1][0] < len(scores):
        found.append((len(scores), found[-1][1]))
    return tuple(found)


def reached(curve: Curve, score: float) -> int | None:
    """After how many evaluations the best score is as good; none where it never is."""
    return next((count for count, best in curve if best >= score), None)


def best_after(curve: Curve, count: int) -> float | None:
    """The best score after so many evaluations; none where there were none."""
    return max((best for at, best in curve if at <= count), default=None)
