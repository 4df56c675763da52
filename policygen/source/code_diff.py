"""Where the code of two versions of a header begins to differ."""

from collections.abc import Iterator
from itertools import zip_longest

from policygen.source.text import Text


def first_difference(name: str, before: bytes, after: bytes) -> int | None:
    """Counts lines of the later version; comments, blank lines and spaces are no code."""
    last = after.count(b"\n") + 1
    for old, new in zip_longest(_code(name, before), _code(name, after)):
        if old is None or new is None or old[1] != new[1]:
            return new[0] if new else last
    return None


def _code(name: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    rows = Text(name, data).uncommented.split(b"\n")
    for line, row in enumerate(rows, start=1):
        if text := b" ".join(row.split()):
            yield line, text
