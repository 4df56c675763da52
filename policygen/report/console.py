"""Terminal output: streams without control characters, and the format of names and numbers."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

from policygen.untrusted import visible

if TYPE_CHECKING:
    from policygen.model.results import Interval
    from policygen.report.blocks import Block
    from policygen.report.terminal import Terminal

D = TypeVar("D")
P = ParamSpec("P")
LINES = "\n\t"
"""Control characters kept in multi-line text."""
LARGE = 1000
"""Ratios and percentages above this are shown as a bound."""


class ShownStream:
    """Text stream that makes control characters visible; trusted text goes to `stream` directly.

    It has no `buffer`, so that bytes cannot bypass it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text with its control characters made visible."""
        self.stream.write(visible(text, LINES))
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """File descriptor of the stream."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        """Encoding of the stream."""
        return self.stream.encoding


@contextmanager
def shown() -> Iterator[None]:
    """Make control characters visible in all writes to standard output and standard error."""
    previous = sys.stdout, sys.stderr
    wrapped: list[Any] = [ShownStream(raw(stream)) for stream in previous]
    sys.stdout, sys.stderr = wrapped
    try:
        yield
    finally:
        if [sys.stdout, sys.stderr] == wrapped:
            sys.stdout, sys.stderr = previous


def raw(stream: TextIO) -> TextIO:
    """Return the underlying stream, for trusted text with our own escape sequences."""
    return stream.stream if isinstance(stream, ShownStream) else stream


def results() -> "Terminal":
    """Open standard output; colors follow the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    return _terminal(sys.stdout)


def messages() -> "Terminal":
    """Open standard error, for use when standard output carries other data."""
    return _terminal(sys.stderr)


def _terminal(stream: TextIO) -> "Terminal":
    from policygen.report.terminal import Terminal

    return Terminal(raw(stream))


def show(blocks: "Iterable[Block]") -> None:
    """Print the blocks of a view."""
    results().write(blocks)


def fitted(
    view: Callable[Concatenate[D, int, P], "Iterable[Block]"],
) -> Callable[Concatenate[D, P], "Iterable[Block]"]:
    """Return a view that gets the width of the terminal."""

    def fit(document: D, /, *args: P.args, **options: P.kwargs) -> "Iterable[Block]":
        return view(document, results().width, *args, **options)

    return fit


# Names and numbers


def short(name: str) -> str:
    """Strip the common prefix `cub.bench.` from a benchmark name."""
    return name.removeprefix("cub.bench.")


def ratio_words(ratio: float | None) -> str:
    """Write a ratio; absurdly large ones are shown as a bound."""
    if ratio is None:
        return "not known"
    if abs(ratio) < LARGE:
        return f"{ratio:.3f}"
    return f"over {LARGE:,}" if ratio > 0 else f"below -{LARGE:,}"


def interval_words(low: float | None, high: float | None) -> str:
    """Write the ends of an interval of ratios."""
    if low is None or high is None:
        return "interval not known"
    return f"{ratio_words(low)} to {ratio_words(high)}"


def span_words(interval: "Interval | None") -> str:
    """Write the ends of an interval of scores."""
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def percent_words(share: float | None, digits: int = 2) -> str:
    """Write a share as `0.30 %`."""
    if share is None:
        return "not known"
    return f"{100 * share:.{digits}f} %" if 100 * share < LARGE else f"over {LARGE:,} %"


def duration(seconds: float) -> str:
    """Write `12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"
