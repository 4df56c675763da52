"""How far work is: who waits is told what runs, and how much is done of how much."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from policygen.process import stopping

TICK = 1.0
"""Seconds after which is told again, where nothing ends."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """Where a phase of the work is."""

    phase: str
    """What is done, in words."""
    done: int
    total: int
    running: tuple[str, ...] = ()
    """The names of what runs now."""


Progress = Callable[[HowFar], None]
"""Is told when a phase begins, when something of it ends, and each second."""


def follow(futures: Mapping["Future[Any]", str], phase: str, progress: Progress | None) -> None:
    """Waits until all are done, and tells how far they are; the first failure is raised.

    What is made is kept by who makes it: an interrupt loses what runs, and nothing else.
    """
    left, total = dict(futures), len(futures)

    def tell() -> None:
        if progress:
            # Executors begin in the order in which they are asked.
            running = takewhile(lambda future: not _waits(future), left)
            progress(HowFar(phase, total - len(left), total, tuple(left[one] for one in running)))

    with stopping(lambda: _kept(futures, phase)):
        tell()
        while left:
            ended, _ = wait(left, TICK if progress else None, FIRST_COMPLETED)
            for future in ended:
                future.result()
                del left[future]
            tell()


def _waits(future: "Future[Any]") -> bool:
    return not (future.running() or future.done())


def _kept(futures: Collection["Future[Any]"], phase: str) -> str:
    done = sum(future.done() and not future.cancelled() for future in futures)
    if not done:
        return f"Nothing is done yet ({phase}): the same command begins again."
    are = "is done and" if done == 1 else "are done and"
    return f"{done:,} of {len(futures):,} {are} kept ({phase}): the same command goes on there."


def spelled(seconds: float) -> str:
    """`0:07`, `12:05`, `1:02:40`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
