"""Reports progress: what is running, and how much of the work is done."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from policygen.process import stopping

Item = TypeVar("Item")
TICK = 1.0
"""Seconds between reports if nothing finishes."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """The progress of a phase."""

    phase: str
    """A description of the work."""
    done: int
    total: int
    """The number of parts of this phase; another phase of the same name may follow."""
    running: tuple[str, ...] = ()
    """The names of the running parts."""
    is_whole: bool = False
    """Whether nothing of this phase follows, so that the remaining time can be estimated."""


Progress = Callable[[HowFar], None]
"""Called when a phase begins, when a part of it finishes, and every second."""
Note = Callable[[str], None]
"""Receives messages that are not errors but worth knowing."""


def discard_note(_text: str) -> None:
    """Discards a note."""


def whole(progress: Progress | None) -> Progress | None:
    """Marks what is reported as all of its phase."""
    return progress and (lambda step: progress(replace(step, is_whole=True)))


def follow(futures: Mapping["Future[Any]", str], phase: str, progress: Progress | None) -> None:
    """Waits for all futures and reports progress; raises the first failure.

    Results are kept by the workers, so that an interrupt only loses the running parts.
    """
    remaining, total = dict(futures), len(futures)

    def tell() -> None:
        if progress:
            # Executors start futures in the order of submission.
            running = takewhile(lambda future: future.running() or future.done(), remaining)
            names = tuple(remaining[future] for future in running)
            progress(HowFar(phase, total - len(remaining), total, names))

    with stopping(lambda: _stop_note(futures, phase)):
        tell()
        while remaining:
            finished, _ = wait(remaining, TICK if progress else None, FIRST_COMPLETED)
            for future in finished:
                future.result()
                del remaining[future]
            tell()


def counted(
    items: Sequence[Item],
    phase: str,
    progress: Progress | None,
    name: Callable[[Item], str] | None = None,
) -> Iterator[Item]:
    """Yields items, and reports how many of them are done."""
    for done, item in enumerate(items):
        if progress:
            progress(HowFar(phase, done, len(items), (name(item),) if name else ()))
        yield item
    if progress:
        progress(HowFar(phase, len(items), len(items)))


def _stop_note(futures: Collection["Future[Any]"], phase: str) -> str:
    done = sum(future.done() and not future.cancelled() for future in futures)
    if not done:
        return f"Nothing is done yet ({phase}); run the same command again."
    verb = "is done and" if done == 1 else "are done and"
    return f"{done:,} of {len(futures):,} {verb} kept ({phase}); the same command resumes there."


def spelled(seconds: float) -> str:
    """Formats a duration: `0:07`, `12:05`, `1:02:40`."""
    minutes, remaining_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours}:{minutes:02}:{remaining_seconds:02}"
        if hours
        else f"{minutes}:{remaining_seconds:02}"
    )
