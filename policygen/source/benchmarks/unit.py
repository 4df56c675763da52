"""A benchmark as the compiler sees it: one text out of several files, with places kept."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from policygen.errors import SourceError
from policygen.source.text import Text

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_OPENS = {"(": ")", "{": "}", "[": "]"}
_BRACKET = re.compile(r"[(){}\[\]]")
_SIGN = re.compile(r"[(){}\[\]<>,]")


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a unit that a preprocessor condition selects."""

    start: int
    end: int
    condition: str
    known: bool
    """False when both branches were kept, as nobody knows the condition's value."""


@dataclass(slots=True)
class PreprocessedUnit:
    """Text without comments, directives and branches not taken; `mask` has no literals either."""

    text: str = ""
    mask: str = ""
    regions: tuple[Region, ...] = ()
    pieces: list[tuple[Text, int, bool]] = field(default_factory=list)
    """Where a piece comes from; the flag says that its text is one place, not a copy."""
    starts: list[int] = field(default_factory=list)

    def origin(self, offset: int) -> tuple[Text, int]:
        """The file and the place in it."""
        index = bisect_right(self.starts, offset) - 1
        text, start, fixed = self.pieces[index]
        return text, start if fixed else start + offset - self.starts[index]

    def error(self, offset: int, message: str) -> SourceError:
        """A failure at a place of the unit."""
        text, at = self.origin(offset)
        return text.error(at, message)

    def closing(self, opening: int) -> int:
        """The place of the bracket that closes the one at `opening`."""
        stack: list[int] = []
        for match in _BRACKET.finditer(self.mask, opening):
            bracket = match.group()
            if bracket in _OPENS:
                stack.append(match.start())
            elif bracket != _OPENS[self.mask[stack[-1]]]:
                raise self.error(stack[-1], f"{self.mask[stack[-1]]!r} is never closed")
            elif len(stack) == 1:
                return match.start()
            else:
                stack.pop()
        raise self.error(opening, f"{self.mask[opening]!r} is never closed")

    def passage(self, start: int, end: int) -> "Passage":
        """A range of the unit without white space at its ends."""
        part = self.text[start:end]
        lead = len(part) - len(part.lstrip())
        return Passage(self, start + lead, max(start + lead, start + len(part.rstrip())))


@dataclass(frozen=True, slots=True)
class Passage:
    """A range of a unit, so that its text and its place stay together."""

    unit: PreprocessedUnit
    start: int
    end: int

    @property
    def text(self) -> str:
        """As the unit has it."""
        return self.unit.text[self.start : self.end]

    @property
    def spelling(self) -> str:
        """On one line, for people."""
        text = " ".join(self.text.split())
        return text.encode("latin-1", "replace").decode("utf-8", "replace")

    def split(self, *, angles: bool = False) -> list["Passage"]:
        """The parts between commas that no bracket encloses; empty ones are left out."""
        found: list[Passage] = []
        round_, angle, at = 0, 0, self.start
        for match in _SIGN.finditer(self.unit.mask, self.start, self.end):
            sign = match.group()
            if sign in "<>":
                # In round brackets these compare or shift.
                angle += (1 if sign == "<" else -1) if angles and not round_ else 0
            elif sign != ",":
                round_ += 1 if sign in "({[" else -1
            elif round_ == 0 and angle == 0:
                found.append(self.unit.passage(at, match.start()))
                at = match.end()
        found.append(self.unit.passage(at, self.end))
        return [part for part in found if part.start < part.end]

    def template(self, begin: int) -> list["Passage"] | None:
        """The template arguments whose `<` is just before the place `begin`, if it is closed."""
        round_, angle, start = 0, 1, self.start + begin
        for match in _SIGN.finditer(self.unit.mask, start, self.end):
            sign = match.group()
            if sign in "<>" and not round_:
                angle += 1 if sign == "<" else -1
                if angle == 0:
                    return self.unit.passage(start, match.start()).split(angles=True)
            elif sign in "(){}[]":
                round_ += 1 if sign in "({[" else -1
        return None

    def inside(self, opening: int) -> "Passage":
        """What the bracket encloses that is `opening` characters into the passage."""
        at = self.start + opening
        return self.unit.passage(at + 1, self.unit.closing(at))


def mask_strings(text: str) -> str:
    """The same text with spaces for string literals."""
    return _STRING.sub(lambda m: " " * len(m.group()), text)
