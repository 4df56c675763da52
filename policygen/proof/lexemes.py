"""Finds comments and literals in C++ like a compiler."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from policygen.headers.text import Text

# A backslash, optional blanks, and the end of the line: gcc joins the lines.
_SPLICE = re.compile(rb"\\[ \t\f\v]*\r?\n")
# Possible starts; beginning with a character set lets the search skip quickly.
_START = re.compile(rb"[\"'/](?:(?<=[\"'])|(?=[/*]))")
_COMMENT = re.compile(rb"//[^\n]*|/\*[\s\S]*?\*/")
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_CHAR = re.compile(rb"'(?:[^'\\\n]|\\.)+'")
# The rest of the line, as gcc treats it, or of the text.
_UNTERMINATED = re.compile(rb"[\"'][^\n]*|/[\s\S]*")
# Before a quote: 1'024, 1e+R
_NUMBER = re.compile(rb"(?<![\w$\x80-\xff])\d(?:[eEpP][+-]|'(?=\w)|[\w.$\x80-\xff])*\Z")
# 1'024
_SEPARATOR = re.compile(rb"(?<=\w)'(?=\w)")
# u8R"
_RAW = re.compile(rb"(?<![\w$\x80-\xff])(?:u8|[uUL])?R\Z")
_LONGEST_NUMBER = 256
"""The longest number that is recognized."""
_FENCE = re.compile(rb"([^()\\\s]{0,16})\(")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A comment or a literal."""

    kind: Literal["comment", "raw", "string", "char", "endless"]
    start: int
    end: int


@dataclass(frozen=True)
class Spliced:
    """A source with its continued lines joined; offsets map back to the file."""

    data: bytes
    done: bool = False
    """Whether a preprocessor already joined the lines."""

    @cached_property
    def text(self) -> bytes:
        """The text that the compiler reads, except that it does not join lines in raw strings."""
        return self.data if self._whole else _SPLICE.sub(b"", self.data)

    @property
    def _whole(self) -> bool:
        return self.done or b"\\" not in self.data

    @cached_property
    def _splices(self) -> tuple[list[int], list[int]]:
        """The positions after each splice, in the text and in the file."""
        positions, offsets, removed = [], [], 0
        for match in () if self._whole else _SPLICE.finditer(self.data):
            positions.append(match.start() - removed)
            offsets.append(match.end())
            removed += match.end() - match.start()
        return positions, offsets

    def offset(self, position: int) -> int:
        """Maps a position in the text to an offset in the file."""
        positions, offsets = self._splices
        index = bisect_right(positions, position) - 1
        return position + (offsets[index] - positions[index] if index >= 0 else 0)

    def position(self, offset: int) -> int:
        """Maps an offset in the file to a position in the text."""
        positions, offsets = self._splices
        index = bisect_right(offsets, offset) - 1
        return offset - (offsets[index] - positions[index] if index >= 0 else 0)

    def lexemes(self) -> Iterator[Lexeme]:
        """Yields all comments and literals, in order."""
        text, last_end, position = self.text, 0, 0
        while match := _START.search(text, position):
            start = position = match.start()
            before = max(last_end, start - _LONGEST_NUMBER)
            if _SEPARATOR.match(text, start) and _NUMBER.search(text, before, start):
                position += 1
                continue
            # The R of FOOR"a" and of 1e+R"a" is not a prefix.
            has_prefix = text.startswith(b'R"', start - 1) and _RAW.search(text, before, start)
            if has_prefix and not _NUMBER.search(text, before, start):
                lexeme = Lexeme("raw", start, self._raw_end(start + 1))
            elif token := _COMMENT.match(text, start):
                lexeme = Lexeme("comment", *token.span())
            elif token := _STRING.match(text, start):
                lexeme = Lexeme("string", *token.span())
            elif token := _CHAR.match(text, start):
                lexeme = Lexeme("char", *token.span())
            else:
                token = _UNTERMINATED.match(text, start)
                assert token is not None
                lexeme = Lexeme("endless", *token.span())
            yield lexeme
            last_end = position = lexeme.end

    def _raw_end(self, position: int) -> int:
        """Finds the end of a raw string, whose delimiter begins at a position, in the file."""
        start = self.offset(position)
        fence = _FENCE.match(self.data, start)
        if fence is None:
            return position
        close = b")" + fence[1] + b'"'
        end = self.data.find(close, fence.end())
        return len(self.text) if end < 0 else self.position(end + len(close))

    @cached_property
    def code(self) -> bytes:
        """The text with comments and literals blanked, except for their quotes."""
        parts, position = [], 0
        for lexeme in self.lexemes():
            length = lexeme.end - lexeme.start
            # Without line breaks: a directive continues after a multi-line comment.
            blanked = b" " * length
            if lexeme.kind != "comment" and length > 1:
                blanked = b'"' + b" " * (length - 2) + b'"'
            parts += [self.text[position : lexeme.start], blanked]
            position = lexeme.end
        return b"".join((*parts, self.text[position:]))


# Finds where the code of two versions of a header differs.


def first_difference(name: str, before: bytes, after: bytes) -> int | None:
    """Returns the first differing line of the later version; ignores comments and whitespace."""
    last = after.count(b"\n") + 1
    for old, new in zip_longest(_code(name, before), _code(name, after)):
        if old is None or new is None or old[1] != new[1]:
            return new[0] if new else last
    return None


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Consecutive lines of code that differ, by their numbers in each version."""

    before: Mapping[int, bytes]
    after: Mapping[int, bytes]
    line: int
    """Where the change is in the later version."""


def code_changes(name: str, before: bytes, after: bytes) -> list[CodeChange]:
    """Returns all changes of a header's code; ignores comments and whitespace."""
    old, new = list(_code(name, before)), list(_code(name, after))
    matcher = SequenceMatcher(
        None, [text for _, text in old], [text for _, text in new], autojunk=False
    )
    last = after.count(b"\n") + 1
    return [
        CodeChange(dict(old[i1:i2]), dict(new[j1:j2]), new[j1][0] if j1 < len(new) else last)
        for kind, i1, i2, j1, j2 in matcher.get_opcodes()
        if kind != "equal"
    ]


def _code(name: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    rows = Text(name, data).uncommented.split(b"\n")
    for line, row in enumerate(rows, start=1):
        if text := b" ".join(row.split()):
            yield line, text
