"""Groups of entries below a comment that heads them: `// 8-bit key`, `// partition::if`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.surroundings import Surroundings
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family
from policygen.source.comments import comment_lines
from policygen.source.text import Text
from policygen.untrusted import comment

# The sizes in "64-bit key", "pairs  8:xx", with the spaces that align them
_NUMBER = re.compile(r"( *)(\d+)")
_BITS = 8


@dataclass(frozen=True, slots=True)
class Headed:
    """A heading and the live entries below it, up to the next one."""

    heading: Span
    text: str
    """Without the marks of a comment."""
    entries: tuple[Entry, ...]


def find_sections(text: Text, places: Surroundings, family: Family) -> list[Headed]:
    """The sections of a family, in the order of the header."""
    live = family.specializations
    if not live:
        return []
    primary = [e.span.end for e in family.entries if e.kind == "primary" and not e.disabled]
    start = max((end for end in primary if end < live[0].span.start), default=0)
    headings = places.headings(Span(start, live[-1].span.start))
    found = []
    for at, heading in enumerate(headings):
        end = headings[at + 1].start if at + 1 < len(headings) else len(text.data)
        below = tuple(e for e in live if heading.start < e.span.start < end)
        (line,) = comment_lines(text.data, heading)
        found.append(Headed(heading, line.text, below))
    return [section for section in found if section.entries]


def heading_like(sections: Sequence[Headed], sizes: Mapping[int, int], size: int) -> str | None:
    """The heading of a section for another size; none where those that are there do not tell.

    `sizes` are the bytes by which sections differ; headings have bytes or bits.
    """
    texts = {sections[index].text: known for index, known in sizes.items()}
    for unit in (1, _BITS):
        parts = [_parts(text, known * unit) for text, known in texts.items()]
        first = parts[0]
        if len(parts) > 1 and first and all(_said(part) == _said(first) for part in parts):
            before, number, after = first
            blank = " " if number.startswith(" ") else ""
            made = f"{before}{blank}{str(size * unit).rjust(len(number) - len(blank))}{after}"
            return made if comment(made).split() == made.split() else None
    return None


_Parts = tuple[str, str, str]


def _parts(text: str, number: int) -> _Parts | None:
    """A heading around the one number that it has, which is this one."""
    found = list(_NUMBER.finditer(text))
    if len(found) != 1 or int(found[0][2]) != number:
        return None
    return text[: found[0].start()], found[0][0], text[found[0].end() :]


def _said(parts: _Parts | None) -> tuple[str, str] | None:
    return parts and (parts[0], parts[2])
