"""Words on lines of a terminal."""

from collections.abc import Iterable

from policygen.report.blocks import Words

LEAST = 20
"""Letters for words behind a long beginning."""


def wrap(parts: Iterable[str], joint: str, width: int, first: int | None = None) -> list[str]:
    """Fill lines with whole parts; a part that is longer than a line has one of its own."""
    lines: list[str] = []
    room = width if first is None else first
    for part in parts:
        if lines and len(lines[-1]) + len(joint) + len(part) + len(joint.rstrip()) <= room:
            lines[-1] += joint + part
            continue
        if lines:
            lines[-1] += joint.rstrip()
            room = width
        lines.append(part)
    return lines


def fill(block: Words, width: int) -> list[str]:
    """Lay words out, each line with what it begins with."""
    first, later = width - len(block.first), width - len(block.hanging)
    if block.even:
        first = later = max(LEAST, min(first, later))
    elif block.first.strip() and first <= len(next(iter(block.parts), "")):
        # There is no room behind what the first line begins with.
        return [
            block.first,
            *(block.hanging + row for row in wrap(block.parts, block.joint, later)),
        ]
    rows = wrap(block.parts, block.joint, later, first)
    return [(block.hanging if index else block.first) + row for index, row in enumerate(rows)]
