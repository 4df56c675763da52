"""A limit of processor time for readers of our own, which run in this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from policygen.errors import SourceError

SECONDS = 3.0
"""Processor time for one file; the largest of CUB takes a tenth of a second."""


def too_long(seconds: float) -> str:
    """Why a file is refused that took all of its time."""
    return f"it takes more than {seconds:g} seconds of processor time to read"


@contextmanager
def limited(path: str, seconds: float = SECONDS) -> Iterator[None]:
    """Ends the block with a refusal of the file when it takes longer.

    Signals go to the main thread alone: beside it nothing is limited.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise SourceError(
            path,
            1,
            1,
            too_long(seconds),
            remedy="No source of CUB is like this.",
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
