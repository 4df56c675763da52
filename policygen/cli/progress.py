"""Progress on standard error while a command runs."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import TextIO

from policygen.report.console import raw
from policygen.steps import HowFar, Progress, spelled
from policygen.untrusted import visible

WIDTH = 10
"""Width of the progress bar."""
WINDOW = 60.0
"""Window of the rate, in seconds, so that instant cache hits soon stop counting."""
DRAWN = 0.1
"""Minimum seconds between updates of the line on a terminal."""
EVERY = 5.0
"""Minimum seconds between lines elsewhere; shorter work prints none."""
PART = 0.1
"""Minimum interval as a fraction of the elapsed time, so that hours print only dozens of lines."""


def warn(text: str) -> None:
    """Print a warning."""
    clear()
    sys.stderr.write(f"policygen: warning: {text}\n")


def compile_progress(*, quiet: bool) -> Progress | None:
    """Create a line that updates on a terminal, or periodic lines elsewhere."""
    global _teller  # noqa: PLW0603  there is one standard error
    clear()
    _teller = None if quiet else teller(sys.stderr)
    return _teller


def teller(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> "ProgressReporter":
    """Create a reporter for a stream."""
    return ProgressReporter(raw(stream), stream.isatty(), clock)


def clear() -> None:
    """Erase the progress line from the terminal, so that other output can follow."""
    if _teller is not None:
        _teller.clear()


@dataclass(slots=True)
class ProgressReporter:
    """Reports progress; consecutive phases with the same name count as one.

    How many of them will follow is not known: from the second on, no total is shown, which would
    only grow. Time left is shown for a phase that is known to be whole.
    """

    stream: TextIO
    live: bool
    clock: Callable[[], float]
    phase: str = ""
    last: HowFar | None = None
    before: int = 0
    """Items of earlier parts of the same phase."""
    begun: float = 0
    reported: float = 0
    """Time of the last update."""
    shown: bool = False
    """Whether the line is currently displayed."""
    seen: deque[tuple[float, int]] = field(default_factory=deque)
    """Times and counts of completed items."""

    def __post_init__(self) -> None:
        """Start the clock, so that very short work reports nothing."""
        self.begun = self.reported = self.clock()

    def __call__(self, step: HowFar) -> None:
        """Report the current step."""
        now = self.clock()
        self._follow(step, now)
        if not self.live:
            pause = max(EVERY, PART * (now - self.begun))
            if step.done < step.total and now - self.reported >= pause:
                self.reported = now
                self.stream.write(f"{self._line(step, now, bar=False)}\n")
                self.stream.flush()
        elif step.done == step.total:
            self.clear()
        elif not self.shown or now - self.reported >= DRAWN:
            self.reported = now
            self._draw(self._line(step, now, bar=True))

    def say(self, text: str) -> None:
        """Show a text until the next update, or print a line if this is not a terminal."""
        if self.live:
            self._draw(visible(text))
        else:
            self.stream.write(f"{visible(text)}\n")

    def clear(self) -> None:
        """Erase the line."""
        if self.shown:
            self._draw("")
            self.shown = False

    def _follow(self, step: HowFar, now: float) -> None:
        if step.phase != self.phase:
            self.phase, self.before = step.phase, 0
            self.seen.clear()
        elif self.last and (step.done < self.last.done or step.total != self.last.total):
            self.before += self.last.total
        self.last = step
        self.seen.append((now, self.before + step.done))
        while len(self.seen) > 2 and now - self.seen[1][0] > WINDOW:
            self.seen.popleft()

    def _line(self, step: HowFar, now: float, *, bar: bool) -> str:
        start, done = self.seen[0]
        elapsed = now - start
        # Items per second; 0 if not known yet.
        rate = (self.seen[-1][1] - done) / elapsed if elapsed >= 1 else 0.0
        if self.before:
            counted = f"{step.phase}, {self.before + step.done} done"
        else:
            filled = WIDTH * step.done // step.total
            drawn = f"{'█' * filled}{'·' * (WIDTH - filled)} " if bar else ""
            counted = f"{drawn}{step.done}/{step.total} {step.phase}"
        pace = f", {rate:.1f}/s" if rate >= 1 else f", {1 / rate:.1f} s each" if rate else ""
        time_left = ""
        if rate and step.is_whole and not self.before:
            time_left = f", {spelled((step.total - step.done) / rate)} left"
        elif not rate and elapsed >= 1:
            time_left = f", {spelled(elapsed)} so far"
        other_count = len(step.running) - 1
        names = (
            f": {step.running[0]}{f' +{other_count}' if other_count else ''}"
            if step.running
            else ""
        )
        return visible(f"{counted}{pace}{time_left}{names}")

    def _draw(self, text: str) -> None:
        # A wrapped line could not be overwritten.
        width = get_terminal_size().columns - 1
        if os.environ.get("NO_COLOR"):
            # Without escape sequences, blanks clear the line.
            self.stream.write(f"\r{' ' * width}\r{text[:width]}")
        else:
            self.stream.write(f"\r\x1b[K{text[:width]}")
        self.stream.flush()
        self.shown = bool(text)


_teller: ProgressReporter | None = None
