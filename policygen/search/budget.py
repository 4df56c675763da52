"""The time of a search: what is left of it, and who gets the next batch."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

FLOOR = 0.3
"""Of a batch, what all workloads share alike, whatever they promise."""
BATCHES = 3
"""Over so many batches it is looked at what a workload gained."""


@dataclass(slots=True)
class Budget:
    """Seconds that a search may take, over all of its sessions."""

    seconds: float | None
    before: float = 0.0
    """What earlier sessions took."""
    clock: Callable[[], float] = time.monotonic
    begun: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Begins to count."""
        self.begun = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds of this session."""
        return self.clock() - self.begun

    @property
    def spent(self) -> float:
        """Seconds of all sessions."""
        return self.before + self.elapsed

    @property
    def left(self) -> float:
        """Seconds; without end where no budget is given."""
        return inf if self.seconds is None else max(0.0, self.seconds - self.spent)


def shares(histories: Mapping[str, Sequence[float]], count: int) -> dict[str, int]:
    """How many of the next variants each open workload gets.

    A part is for all alike; the rest goes where the best score rose of late. Whoever has too short
    a history has risen by as much as the one that rose most.
    """
    rises = {name: _rise(history) for name, history in histories.items()}
    most = max((rise for rise in rises.values() if rise is not None), default=0.0)
    worth = {name: most if rise is None else rise for name, rise in rises.items()}
    total = sum(worth.values())
    found = {}
    for name, one in worth.items():
        share = one / total if total > 0 else 1 / len(worth)
        found[name] = max(1, round(count * (FLOOR / len(worth) + (1 - FLOOR) * share)))
    return found


def _rise(history: Sequence[float]) -> float | None:
    """By how much the best score rose in the last batches; none where there are too few."""
    if len(history) <= BATCHES:
        return None
    return max(0.0, history[-1] - history[-1 - BATCHES])
