"""What goes to a terminal: nothing of it is an escape sequence that is not ours."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from policygen.untrusted import visible

LINES = "\n\t"
"""What stays in text of several lines."""


class ShownStream:
    """A text stream that shows what it is given; what has to be as it is goes to `stream`.

    It has no `buffer`, by which bytes could pass it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes text; its control characters become visible."""
        self.stream.write(visible(text, LINES))
        return len(text)

    def flush(self) -> None:
        """Hands over what is kept."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The system's number of the file."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return self.stream.encoding


@contextmanager
def shown() -> Iterator[None]:
    """Standard output and standard error show what they are given, whoever writes to them."""
    before = sys.stdout, sys.stderr
    own: list[Any] = [ShownStream(raw(stream)) for stream in before]
    sys.stdout, sys.stderr = own
    try:
        yield
    finally:
        if [sys.stdout, sys.stderr] == own:
            sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    """Behind a stream that shows: for text that is known, with our own escape sequences."""
    return stream.stream if isinstance(stream, ShownStream) else stream
