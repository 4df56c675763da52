"""Names what the preprocessor makes of a unit, whatever lines and files it comes from."""

import os
import re
from collections.abc import Sequence

from policygen.bindings.outside import outside
from policygen.cache import digest
from policygen.errors import InputError
from policygen.proof.lexemes import Spliced
from policygen.proof.mark import PLACE, place_of

NOTHING = "Nothing is compared with it."


def ended(unit: str, mark: str) -> str:
    """Ends a unit with its mark: what does not end with it is not all of it."""
    return f"{unit}\nextern int {mark};\n"


def content(text: bytes, mark: str, folders: Sequence[str]) -> str:
    """Names what is compiled: the same for the same text, wherever its lines come from.

    Where the text itself asks where it stands, its places count.
    """
    unit, quoted = _unit(text, mark), tuple(map(_quoted, folders))
    if quoted and not any(_name(place, quoted) for place in PLACE.finditer(unit)):
        raise InputError("the preprocessor read nothing of what the unit includes", NOTHING)
    raws = _raws(unit)
    if raws is None or _asks_for_places(unit, quoted):
        return digest(unit)
    parts, at = [], 0
    for start, end in (*raws, (len(unit), len(unit))):
        parts += [_lines(unit, at, start), unit[start:end]]
        at = end
    return digest(*parts)


def _unit(text: bytes, mark: str) -> bytes:
    """Takes what stands before the mark."""
    lines = text.rstrip().rpartition(b"\n")
    if lines[2] != f"extern int {mark};".encode() or mark.encode() in lines[0]:
        raise InputError(
            "what the preprocessor printed does not end with the unit that it was given", NOTHING
        )
    return lines[0]


def _raws(text: bytes) -> list[tuple[int, int]] | None:
    """Finds raw strings, whose lines are text; none where quotes do not tell them for certain."""
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
    """Leaves out `# 12 "file.cuh"`, and the space that comments leave."""
    # What follows a raw string does not begin a line.
    lines = (b" " * bool(start) + text[start:end]).split(b"\n")
    return b"\n".join(
        row
        for line in lines
        if (row := line.strip()) and not (line.startswith(b"# ") and PLACE.fullmatch(line))
    )


def _name(place: re.Match[bytes], quoted: Sequence[bytes]) -> str | None:
    """Names the file that lines come from, below the folders that headers are looked for in."""
    path = place[2]
    found = (path[len(folder) :] for folder in quoted if path.startswith(folder))
    return next((os.fsdecode(one) for one in found), None)


def _quoted(folder: str) -> bytes:
    """Spells a folder as gcc writes it between quotes."""
    return b"".join(
        b"\\%c" % byte if byte in b'"\\' else b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte
        for byte in os.fsencode(f"{folder}{os.sep}")
    )


def _asks_for_places(text: bytes, quoted: Sequence[bytes]) -> bool:
    """Whether a header asks for lines or files when it is compiled, but where that is known."""
    for word in outside().places.words:
        asked = re.compile(rb"\b%b\b" % word.encode())
        at = -1
        # A pattern that begins with a boundary takes ten times as long to find.
        while (at := text.find(word.encode(), at + 1)) >= 0:
            if not asked.match(text, at) or PLACE.match(text, text.rfind(b"\n", 0, at) + 1):
                continue  # a part of a word, or of a file's name
            place = place_of(text, at)
            name = None if place is None else _name(place, quoted)
            if place is None or (name is not None and name not in outside().places.known):
                return True
    return False
