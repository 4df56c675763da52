"""What is told on standard error while a command works."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import TextIO

from policygen.report.sink import raw
from policygen.steps import HowFar, Progress, spelled
from policygen.untrusted import visible

WIDTH = 10
"""Of a bar."""
WINDOW = 60.0
"""Seconds that a rate is of: what was in the cache took none."""
DRAWN = 0.1
"""Seconds between two drawings of the line of a terminal."""
EVERY = 5.0
"""Seconds between two lines elsewhere, at least; work that is done sooner has none."""
PART = 0.1
"""Of the time that it took so far, at least, lies between two lines: of hours there are dozens."""


def warn(text: str) -> None:
    """Says what is no error, and should be known."""
    clear()
    sys.stderr.write(f"policygen: warning: {text}\n")


def compile_progress(*, quiet: bool) -> Progress | None:
    """A line that changes on a terminal, elsewhere one every few seconds."""
    global _teller  # noqa: PLW0603  there is one standard error
    clear()
    _teller = None if quiet else teller(sys.stderr)
    return _teller


def teller(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> "Teller":
    """What tells on a stream."""
    return Teller(raw(stream), stream.isatty(), clock)


def clear() -> None:
    """Takes the line off the terminal, for what is to be written now."""
    if _teller is not None:
        _teller.clear()


@dataclass(slots=True)
class Teller:
    """Tells how far it is; phases with the same name that follow each other are one."""

    stream: TextIO
    live: bool
    clock: Callable[[], float]
    phase: str = ""
    last: HowFar | None = None
    before: int = 0
    """Of the same phase, asked for earlier."""
    begun: float = 0
    told: float = 0
    """When the last line was written."""
    shown: bool = False
    """Whether a line is on the terminal."""
    seen: deque[tuple[float, int]] = field(default_factory=deque)
    """When how much was done."""

    def __post_init__(self) -> None:
        """Nothing is told of work that takes less than a moment."""
        self.begun = self.told = self.clock()

    def __call__(self, step: HowFar) -> None:
        """Is told where the work is."""
        now = self.clock()
        self._follow(step, now)
        if not self.live:
            pause = max(EVERY, PART * (now - self.begun))
            if step.done < step.total and now - self.told >= pause:
                self.told = now
                self.stream.write(f"{self._line(step, now, bar=False)}\n")
                self.stream.flush()
        elif step.done == step.total:
            self.clear()
        elif not self.shown or now - self.told >= DRAWN:
            self.told = now
            self._draw(self._line(step, now, bar=True))

    def say(self, text: str) -> None:
        """Shows a text until there is another one; elsewhere a line."""
        if self.live:
            self._draw(visible(text))
        else:
            self.stream.write(f"{visible(text)}\n")

    def clear(self) -> None:
        """Takes the line away."""
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
        done, total = self.before + step.done, self.before + step.total
        filled = WIDTH * done // total
        drawn = f"{'█' * filled}{'·' * (WIDTH - filled)} " if bar else ""
        rate = self._rate(now)
        pace = f", {rate:.1f}/s" if rate >= 1 else f", {1 / rate:.1f} s each" if rate else ""
        left = f", {spelled((total - done) / rate)} left" if rate else ""
        if not rate and now - self.seen[0][0] >= 1:
            left = f", {spelled(now - self.seen[0][0])} so far"
        others = len(step.running) - 1
        names = f": {step.running[0]}{f' +{others}' if others else ''}" if step.running else ""
        return visible(f"{drawn}{done}/{total} {step.phase}{pace}{left}{names}")

    def _rate(self, now: float) -> float:
        """How many are done in a second; 0 where it is not known yet."""
        at, done = self.seen[0]
        return (self.seen[-1][1] - done) / (now - at) if now - at >= 1 else 0.0

    def _draw(self, text: str) -> None:
        # A line that wraps could not be written over.
        width = get_terminal_size().columns - 1
        if os.environ.get("NO_COLOR"):
            # No escape at all: blanks instead of one that clears the line.
            self.stream.write(f"\r{' ' * width}\r{text[:width]}")
        else:
            self.stream.write(f"\r\x1b[K{text[:width]}")
        self.stream.flush()
        self.shown = bool(text)


_teller: Teller | None = None
