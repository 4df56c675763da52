"""Progress of a search: a live table, a line per event, or JSON."""

import sys
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from policygen.model.searches import SearchEvent
from policygen.model.workload import in_words
from policygen.report.console import raw, span_words
from policygen.steps import HowFar, spelled
from policygen.untrusted import visible

RUNGS = {"screening": "1 screening", "sharper": "2 sharper", "last": "3 last"}
WORDS = {"begun": "base runs", "batch": "batch", "rung": "rung", "ended": "ended"}


@dataclass(slots=True)
class SearchProgress:
    """Reports events of a search as they arrive."""

    stream: TextIO
    json: bool
    quiet: bool
    live: Live | None = None
    rows: dict[str, SearchEvent] = field(default_factory=dict)
    """Last event of each workload."""
    step: str = ""

    def __call__(self, event: SearchEvent) -> None:
        """Report an event."""
        if self.json:
            sys.stdout.write(f"{event.to_line()}\n")
            sys.stdout.flush()
        name = in_words(event.benchmark, event.workload)
        self.rows[name] = event
        if self.live is not None:
            self.live.update(self._render())
        elif not self.quiet:
            self.stream.write(f"{_line(name, event)}\n")
            self.stream.flush()

    def progress(self, step: HowFar) -> None:
        """Report the progress of compilation."""
        if self.live is not None:
            self.step = f"{step.done}/{step.total} {step.phase}" if step.done < step.total else ""
            self.live.update(self._render())

    def _render(self) -> RenderableType:
        table = Table("workload", "rung", box=None, pad_edge=False, header_style="dim")
        for title in ("tried", "distinct", "failed", "wrong", "best so far", "95 %"):
            table.add_column(title, justify="right")
        for name, event in self.rows.items():
            score = "" if event.score is None else f"{event.score:.4f}"
            counts = (event.tried, event.distinct, event.failed, event.wrong)
            cells = [*(f"{count:,}" for count in counts), score, _between(event).strip()]
            table.add_row(visible(name), RUNGS[event.rung], *cells)
        last = next(reversed(self.rows.values()), None)
        time_left = "" if last is None or last.left is None else f"{spelled(last.left)} left  "
        return Group(table, Text(f"{time_left}{visible(self.step)}", "dim"))


def telling(*, as_json: bool, quiet: bool) -> SearchProgress:
    """Create a reporter, with a live table on a terminal."""
    stream = raw(sys.stderr)
    teller = SearchProgress(stream, as_json, quiet)
    if sys.stderr.isatty() and not quiet:
        console = Console(file=stream)
        teller.live = Live(console=console, refresh_per_second=4, transient=True)
    return teller


def _line(name: str, event: SearchEvent) -> str:
    parts = [f"{spelled(event.at)}", visible(name), f"{RUNGS[event.rung]}, {WORDS[event.event]}:"]
    parts.append(f"{event.tried:,} of {event.distinct:,} tried, {event.failed:,} failed,")
    parts.append(f"{event.wrong:,} wrong")
    if event.best is not None and event.score is not None:
        parts.append(f"; best {visible(event.best)} {event.score:.4f}{_between(event)}")
    if event.left is not None:
        parts.append(f"; {spelled(event.left)} left")
    return " ".join(parts).replace(" ;", ";")


def _between(event: SearchEvent) -> str:
    return "" if event.interval is None else f" {span_words(event.interval)}"
