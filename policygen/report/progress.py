"""What is told while a search goes on: a table that changes, a line for each event, or JSON."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from policygen.model.records import Document
from policygen.model.searches import SearchEvent
from policygen.model.workload import in_words
from policygen.report.sink import raw
from policygen.steps import HowFar, spelled
from policygen.untrusted import visible

T = TypeVar("T")
RUNGS = {"screening": "1 screening", "sharper": "2 sharper", "last": "3 last"}
WORDS = {"begun": "base runs", "batch": "batch", "rung": "rung", "ended": "ended"}


@dataclass(slots=True)
class SearchTeller:
    """Tells of events as they come."""

    stream: TextIO
    json: bool
    quiet: bool
    live: Live | None = None
    rows: dict[str, SearchEvent] = field(default_factory=dict)
    """The last event of each workload."""
    step: str = ""

    def __call__(self, event: SearchEvent) -> None:
        """Is told what happened."""
        if self.json:
            print_line(event)
        name = in_words(event.benchmark, event.workload)
        self.rows[name] = event
        if self.live is not None:
            self.live.update(self._drawn())
        elif not self.quiet:
            self.stream.write(f"{_line(name, event)}\n")
            self.stream.flush()

    def progress(self, step: HowFar) -> None:
        """Is told how far compiling is."""
        if self.live is not None:
            self.step = f"{step.done}/{step.total} {step.phase}" if step.done < step.total else ""
            self.live.update(self._drawn())

    def _drawn(self) -> RenderableType:
        table = Table("workload", "rung", box=None, pad_edge=False, header_style="dim")
        for title in ("tried", "distinct", "failed", "wrong", "best so far", "95 %"):
            table.add_column(title, justify="right")
        for name, one in self.rows.items():
            score = "" if one.score is None else f"{one.score:.4f}"
            between = _between(one).strip()
            cells = (f"{one.tried:,}", f"{one.distinct:,}", f"{one.failed:,}", f"{one.wrong:,}")
            table.add_row(visible(name), RUNGS[one.rung], *cells, score, between)
        last = next(reversed(self.rows.values()), None)
        left = "" if last is None or last.left is None else f"{spelled(last.left)} left  "
        return Group(table, Text(f"{left}{visible(self.step)}", "dim"))


def telling(*, as_json: bool, quiet: bool) -> SearchTeller:
    """What tells, on a terminal with a table; the caller enters `shown`."""
    stream = raw(sys.stderr)
    teller = SearchTeller(stream, as_json, quiet)
    if sys.stderr.isatty() and not quiet:
        console = Console(file=stream)
        teller.live = Live(console=console, refresh_per_second=4, transient=True)
    return teller


def shown(teller: SearchTeller, work: Callable[[], T]) -> T:
    """Runs the work while the table stands."""
    with teller.live or nullcontext():
        return work()


def print_line(document: Document) -> None:
    """Prints a document in a line of its own."""
    sys.stdout.write(f"{document.to_line()}\n")
    sys.stdout.flush()


def _line(name: str, one: SearchEvent) -> str:
    parts = [f"{spelled(one.at)}", visible(name), f"{RUNGS[one.rung]}, {WORDS[one.event]}:"]
    parts.append(f"{one.tried:,} of {one.distinct:,} tried, {one.failed:,} failed,")
    parts.append(f"{one.wrong:,} wrong")
    if one.best is not None and one.score is not None:
        parts.append(f"; best {visible(one.best)} {one.score:.4f}{_between(one)}")
    if one.left is not None:
        parts.append(f"; {spelled(one.left)} left")
    return " ".join(parts).replace(" ;", ";")


def _between(one: SearchEvent) -> str:
    return "" if one.interval is None else f" {one.interval.low:.3f} to {one.interval.high:.3f}"
