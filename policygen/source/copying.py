"""Copies of a stretch of a header with other words in some places, laid out as clang-format does.

A copy ends its lines as Python does, whatever the header does.
"""

import re
from collections.abc import Sequence

from policygen.model.base import Span
from policygen.source.spelling import WIDTH, line_start
from policygen.source.text import Text, decode

Change = tuple[Span, str]
"""A place of the original, and what the copy has there."""

# "    using SingleTilePolicy = ReducePolicy;", "  static constexpr int items = 4;"
_ASSIGNMENT = re.compile(r"(\s*)((?:using|static constexpr)\s.*?\S)\s* = (.*;)")


def copy(text: Text, span: Span, changes: Sequence[Change] = ()) -> str:
    """A stretch with changes; what stood in line below an opened bracket still does."""
    parts, at = [], span.start
    for place, new in sorted([*changes, *_realigned(text, span, changes)]):
        parts += [decode(text.data[at : place.start]), new]
        at = place.end
    parts.append(decode(text.data[at : span.end]))
    return wrap("".join(parts).replace("\r\n", "\n"))


def wrap(text: str) -> str:
    """Members that are too long for a line, broken behind their `=`."""
    return "\n".join(_wrapped(line) for line in text.split("\n"))


def align(text: str) -> str:
    """Members on consecutive lines, with their `=` below each other."""
    lines = text.split("\n")
    found = [_ASSIGNMENT.fullmatch(line) for line in lines]
    for i, match in enumerate(found):
        if match is None or (i and found[i - 1]):
            continue
        run = [m for m in found[i : _run_end(found, i)] if m]
        width = max(len(m[2]) for m in run)
        lines[i : i + len(run)] = [f"{m[1]}{m[2].ljust(width)} = {m[3]}" for m in run]
    return wrap("\n".join(lines))


def indent(text: str, by: str) -> str:
    """Every line that holds something, further to the right."""
    return re.sub(r"(?m)^(?=.)", by, text)


def dedent(text: str, by: str) -> str:
    """Lines without what stood before all of them."""
    return re.sub(rf"(?m)^{by}", "", text)


def _run_end(found: Sequence[re.Match[str] | None], at: int) -> int:
    return next((i for i in range(at, len(found)) if found[i] is None), len(found))


def _wrapped(line: str) -> str:
    match = _ASSIGNMENT.fullmatch(line) if len(line) > WIDTH else None
    return f"{match[1]}{match[2]} =\n{match[1]}  {match[3]}" if match else line


def _realigned(text: Text, span: Span, changes: Sequence[Change]) -> list[Change]:
    """Other indentations for the lines below a bracket that has moved."""
    data = text.data
    lines = [line_start(data, span.start)]
    lines += [m.end() for m in re.finditer(rb"\n", data[: span.end]) if m.end() > span.start]
    moved: dict[int, int] = {}
    found: list[Change] = []
    for number, start in enumerate(lines[1:], 1):
        width = _indentation(data, start)
        bracket = _bracket(data, lines[:number], width)
        if bracket is None or any(c.start < start <= c.end for c, _ in changes):
            continue
        line, at = bracket
        by = moved.get(line, 0) + sum(
            len(new) - (place.end - place.start)
            for place, new in changes
            if line <= place.start and place.end <= at
        )
        moved[start] = by
        if by:
            found.append((Span(start, start + width), " " * (width + by)))
    return found


def _indentation(data: bytes, start: int) -> int:
    match = re.compile(rb"[ ]*").match(data, start)
    return match.end() - start if match else 0


def _bracket(data: bytes, lines: Sequence[int], width: int) -> tuple[int, int] | None:
    """The line, and the place on it, of the bracket that an indentation is in line with."""
    for start in reversed(lines):
        end = data.find(b"\n", start)
        at = start + width - 1
        if start <= at < end and data[at : at + 1] in {b"<", b"("}:
            return start, at
        if _indentation(data, start) < width:
            break
    return None
