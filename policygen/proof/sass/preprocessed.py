"""What the preprocessor makes of a unit, whatever lines and files it comes from."""

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from policygen.bindings.outside import outside
from policygen.cache import digest
from policygen.errors import InputError
from policygen.proof.lexemes import Spliced
from policygen.proof.mark import PLACE

NOTHING = "Nothing is compared with it."


def ended(unit: str, mark: str) -> str:
    """A unit that ends with its mark: what does not end with it is not all of it."""
    return f"{unit}\nextern int {mark};\n"


def content(text: bytes, mark: str, folders: Sequence[str]) -> str:
    """Names what is compiled: the same for the same text, wherever its lines come from.

    Where the text itself asks where it stands, its places count.
    """
    unit = _unit(text, mark)
    places = _places(unit, folders)
    if folders and not any(place.name for place in places):
        raise InputError("the preprocessor read nothing of what the unit includes", NOTHING)
    raws = _raws(unit)
    if raws is None or _asks_for_places(unit, places):
        return digest(unit)
    parts, at = [], 0
    for start, end in (*raws, (len(unit), len(unit))):
        parts += [_lines(unit, at, start), unit[start:end]]
        at = end
    return digest(*parts)


def _unit(text: bytes, mark: str) -> bytes:
    """What stands before the mark."""
    lines = text.rstrip().rpartition(b"\n")
    if lines[2] != f"extern int {mark};".encode() or mark.encode() in lines[0]:
        raise InputError(
            "what the preprocessor printed does not end with the unit that it was given", NOTHING
        )
    return lines[0]


def _raws(text: bytes) -> list[tuple[int, int]] | None:
    """The raw strings, whose lines are text; none where quotes do not tell them for certain."""
    if b'R"' not in text:
        return []  # nothing else spans lines
    found = []
    for one in Spliced(text, done=True).lexemes():
        if one.kind == "endless":
            return None
        if one.kind == "raw":
            found.append((one.start, one.end))
    return found


def _lines(text: bytes, start: int, end: int) -> bytes:
    """Without `# 12 "file.cuh"`, and without the space that comments leave."""
    # What follows a raw string does not begin a line.
    rows = PLACE.sub(b"", b" " * bool(start) + text[start:end]).split(b"\n")
    return b"\n".join(row for line in rows if (row := line.strip()))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the lines that follow come from."""

    start: int
    end: int
    name: str | None
    """The file, below the folders that headers are looked for in."""


def _places(text: bytes, folders: Sequence[str]) -> list[_Place]:
    quoted = tuple(map(_quoted, folders))

    @cache
    def name(path: bytes) -> str | None:
        found = (path[len(folder) :] for folder in quoted if path.startswith(folder))
        return next((os.fsdecode(one) for one in found), None)

    return [_Place(*match.span(), name(match[2])) for match in PLACE.finditer(text)]


def _quoted(folder: str) -> bytes:
    """A folder as gcc writes it between quotes."""
    return b"".join(
        b"\\%c" % byte if byte in b'"\\' else b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte
        for byte in os.fsencode(f"{folder}{os.sep}")
    )


def _asks_for_places(text: bytes, places: Sequence[_Place]) -> bool:
    """Whether a header asks for lines or files when it is compiled, but where that is known."""
    asked = re.compile(rb"\b(?:" + "|".join(outside().places.words).encode() + rb")\b")
    starts = [place.start for place in places]
    for match in asked.finditer(text):
        index = bisect_right(starts, match.start()) - 1
        if index < 0:
            return True
        place = places[index]
        named = match.start() < place.end  # a file's name
        if not named and place.name is not None and place.name not in outside().places.known:
            return True
    return False
