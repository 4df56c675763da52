"""What a way to search is asked, and told: a batch to try, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from policygen.search.domain import Values


@dataclass(frozen=True, slots=True)
class AskedVariant:
    """What became of a variant that was asked for."""

    values: Values
    score: float | None
    """Base over variant, as the scores of databases are; none where it fails, or is wrong."""


class Strategy(Protocol):
    """Tells what to try next.

    What it asks for can be, and is no policy that it has asked for, or was told of, before. What it
    is told may be late: the next batch is asked for while one is measured.
    """

    def ask(self, count: int) -> list[Values]:
        """As many variants; fewer where there are no more."""

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """What became of variants, also of such as it has not asked for: of an earlier session."""
