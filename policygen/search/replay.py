"""A strategy on a space that was measured before: what it finds, and how soon, without a GPU."""

from collections.abc import Mapping
from dataclasses import dataclass

from policygen.search.domain import Values
from policygen.search.strategy import Outcome, Strategy


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a strategy did."""

    order: tuple[Values, ...]
    """What it asked for, as it was told."""
    invalid: int
    """Variants that it asked for and that were not recorded."""


def replay(
    strategy: Strategy,
    told: Mapping[Values, float],
    *,
    most: int,
    batch: int,
    late: int = 0,
) -> Replayed:
    """Asks and tells until there is no more, or `most` variants are evaluated.

    A batch is told when `late` more have been asked for.
    """
    order: list[Values] = []
    invalid = 0
    waiting: list[list[Values]] = []
    while True:
        asked = strategy.ask(min(batch, most - len(order))) if len(order) < most else []
        known = [values for values in asked if values in told]
        invalid += len(asked) - len(known)
        order += known
        if asked:
            waiting.append(asked)
        elif not waiting:
            return Replayed(tuple(order), invalid)
        while waiting and (len(waiting) > late or not asked):
            done = waiting.pop(0)
            strategy.tell([Outcome(values, told.get(values)) for values in done])
