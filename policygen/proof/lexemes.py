"""Comments and literals of C++, told from code as a compiler tells them."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from policygen.headers.text import Text

# A backslash, perhaps blanks, and the end of the line: gcc reads on as if they were not there.
_SPLICE = re.compile(rb"\\[ \t\f\v]*\r?\n")
# What may begin one; a set of characters as the first lets the search skip all others.
_START = re.compile(rb"[\"'/](?:(?<=[\"'])|(?=[/*]))")
_COMMENT = re.compile(rb"//[^\n]*|/\*[\s\S]*?\*/")
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_CHAR = re.compile(rb"'(?:[^'\\\n]|\\.)+'")
# The rest of a line, as gcc has it, or of the text.
_ENDLESS = re.compile(rb"[\"'][^\n]*|/[\s\S]*")
# Before a quote: 1'024, 1e+R
_NUMBER = re.compile(rb"(?<![\w$\x80-\xff])\d(?:[eEpP][+-]|'(?=\w)|[\w.$\x80-\xff])*\Z")
# 1'024
_SEPARATOR = re.compile(rb"(?<=\w)'(?=\w)")
# u8R"
_RAW = re.compile(rb"(?<![\w$\x80-\xff])(?:u8|[uUL])?R\Z")
_BEFORE = 256
"""As long as a number may be."""
_FENCE = re.compile(rb"([^()\\\s]{0,16})\(")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Something that is no code."""

    kind: Literal["comment", "raw", "string", "char", "endless"]
    start: int
    end: int


@dataclass(frozen=True)
class Spliced:
    """A source with its continued lines put together; offsets lead back to the file."""

    data: bytes
    done: bool = False
    """Whether a preprocessor did it already."""

    @cached_property
    def text(self) -> bytes:
        """What the compiler reads, but for raw strings, in which lines are not put together."""
        return self.data if self._whole else _SPLICE.sub(b"", self.data)

    @property
    def _whole(self) -> bool:
        return self.done or b"\\" not in self.data

    @cached_property
    def _splices(self) -> tuple[list[int], list[int]]:
        """Where the text goes on after a splice, and how much of the file lies before it."""
        at, removed, total = [], [], 0
        for match in () if self._whole else _SPLICE.finditer(self.data):
            at.append(match.start() - total)
            total += match.end() - match.start()
            removed.append(total)
        return at, removed

    def offset(self, position: int) -> int:
        """Where in the file a position of the text is."""
        at, removed = self._splices
        index = bisect_right(at, position) - 1
        return position + (removed[index] if index >= 0 else 0)

    def position(self, offset: int) -> int:
        """Where in the text an offset of the file is."""
        at, removed = self._splices
        # The file's offsets at which the text goes on grow with the positions.
        index = bisect_right(range(len(at)), offset, key=lambda i: at[i] + removed[i]) - 1
        return offset - (removed[index] if index >= 0 else 0)

    def lexemes(self) -> Iterator[Lexeme]:
        """All of them, in order."""
        text, at, looked = self.text, 0, 0
        while match := _START.search(text, looked):
            start = looked = match.start()
            before = max(at, start - _BEFORE)
            if _SEPARATOR.match(text, start) and _NUMBER.search(text, before, start):
                looked += 1
                continue
            if text.startswith(b'R"', start - 1) and _is_raw(text, before, start):
                one = Lexeme("raw", start, self._raw_end(start + 1))
            elif found := _COMMENT.match(text, start):
                one = Lexeme("comment", *found.span())
            elif found := _STRING.match(text, start):
                one = Lexeme("string", *found.span())
            elif found := _CHAR.match(text, start):
                one = Lexeme("char", *found.span())
            else:
                found = _ENDLESS.match(text, start)
                assert found is not None
                one = Lexeme("endless", *found.span())
            yield one
            at = looked = one.end

    def _raw_end(self, position: int) -> int:
        """Where a raw string ends whose fence begins at a position: as it stands in the file."""
        start = self.offset(position)
        fence = _FENCE.match(self.data, start)
        if fence is None:
            return position
        close = b")" + fence[1] + b'"'
        found = self.data.find(close, fence.end())
        return len(self.text) if found < 0 else self.position(found + len(close))

    @cached_property
    def code(self) -> bytes:
        """The text without comments and literals: as many blanks, and quotes where they were."""
        parts, at = [], 0
        for one in self.lexemes():
            inside = self.text[one.start : one.end]
            parts += [self.text[at : one.start], _blank(inside, quoted=one.kind != "comment")]
            at = one.end
        return b"".join((*parts, self.text[at:]))


def _is_raw(text: bytes, before: int, quote: int) -> bool:
    """Whether the R before a quote is a word of its own: neither FOOR, nor 1e+R."""
    prefix, number = _RAW.search(text, before, quote), _NUMBER.search(text, before, quote)
    return prefix is not None and number is None


def _blank(text: bytes, *, quoted: bool) -> bytes:
    """As long as it was, on one line: a directive goes on after a comment of several."""
    if quoted and len(text) > 1:
        return b'"' + b" " * (len(text) - 2) + b'"'
    return b" " * len(text)


# Where the code of two versions of a header begins to differ.


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
