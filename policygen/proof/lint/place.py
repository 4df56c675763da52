"""From bytes to lines and columns, as an editor counts them."""

from dataclasses import dataclass

from policygen.model.base import Span

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """A header as it is named, and its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column from 1, the line's text, and how many characters are meant."""

    line: int
    column: int
    text: str
    width: int


def place(data: bytes, span: Span, word: str | None = None) -> Position:
    """Where a span begins, or a word in it; what is wider than its line ends with it."""
    if word is not None and (found := data.find(word.encode(), span.start, span.end)) >= 0:
        span = Span(found, found + len(word.encode()))
    start = data.rfind(b"\n", 0, span.start) + 1
    end = data.find(b"\n", span.start)
    row = data[start : end if end >= 0 else None].rstrip(b"\r")
    lead = _decode(data[start : span.start].removeprefix(BOM))
    meant = _decode(data[span.start : min(span.end, start + len(row))])
    line = data.count(b"\n", 0, span.start) + 1
    return Position(line, len(lead) + 1, _decode(row.removeprefix(BOM)), max(1, len(meant)))


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
