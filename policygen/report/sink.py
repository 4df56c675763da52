"""Terminal output in which control characters of untrusted text become visible."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from policygen.untrusted import visible

LINES = "\n\t"
"""Control characters kept in multi-line text."""


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
