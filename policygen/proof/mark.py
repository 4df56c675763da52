"""Marks units, so that what is made of one shows that it was made of it."""

import os
import re
import secrets
from pathlib import Path

from policygen.errors import InputError, UnprovableError

UNIT = "main.cu"
NOTHING = "Nothing is said of it. Is this {} whole?"
# # 12 "/folder/file.cuh" 1 3
PLACE = re.compile(rb'^# (\d+) "((?:[^"\\\n]|\\.)*)"(?: [1-4])*$', re.M)


def new_mark() -> str:
    """Makes a name that nobody can know before: no header, and no answer to another question."""
    return f"policygen_unit_{secrets.token_hex(16)}"


def marked(unit: str, mark: str) -> str:
    """Ends a unit with its mark, in what a device gets."""
    return f"{unit}\n__device__ int {mark};\n"


def made_of(path: Path, mark: str, compiler: str = "nvcc") -> bytes:
    """Reads what a compiler made of a unit; nothing, and what it made of another, is an error."""
    whole = NOTHING.format(compiler)
    try:
        made = path.read_bytes()
    except FileNotFoundError:
        made = b""
    if not made:
        raise InputError(f"{compiler} made nothing of a unit, and says that it did", whole)
    if mark.encode() not in made:
        raise InputError(f"what {compiler} made is not of the unit that it was given", whole)
    return made


def check_unnamed(preprocessed: bytes, source: Path) -> None:
    """Raises where a header asked for the unit's name: nobody else knows its folder's."""
    name = os.fsencode(source.parent.name)
    at = 0
    while (at := preprocessed.find(name, at)) >= 0:
        start = preprocessed.rfind(b"\n", 0, at) + 1
        at += len(name)
        if not PLACE.match(preprocessed, start):
            text = "asks for the name of the file that is compiled"
            raise UnprovableError([f"{_place(preprocessed, start)}: it {text}"])


def place_of(text: bytes, position: int) -> re.Match[bytes] | None:
    """Finds the marker before a position, which names the file that its line comes from."""
    start = position + 1
    while start > 0:
        start = max(0, text.rfind(b"\n# ", 0, start) + 1)
        if place := PLACE.match(text, start):
            return place
    return None


def _place(text: bytes, position: int) -> str:
    """Names the line of a file that a position comes from."""
    place = place_of(text, position)
    if place is None:
        return "the unit"
    line = int(place[1]) + text.count(b"\n", place.end() + 1, position)
    return f"{os.fsdecode(place[2])}:{line}"
