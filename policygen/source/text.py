"""One C++ file as bytes, with views in which comments, strings or directives are blanked.

All views have the length of the file, so that an offset means the same place in each of them.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from policygen.errors import SourceError
from policygen.model.base import Span

BOM = b"\xef\xbb\xbf"

# One character that can begin a comment or a literal, then what follows it; beginning with a set
# of characters lets the search skip all others. The group that matches names what it is.
_LEXEMES = re.compile(
    rb"""
    [/"'\#](?:
      (?P<line>    (?<=/)/[^\n\\]*(?:\\(?:\r?\n|[^\n])?[^\n\\]*)*)   # // text, continued
    | (?P<block>   (?<=/)\*[\s\S]*?\*/)                              # /* text */
    | (?P<raw>     (?<=R")(?P<fence>[^()\\\s]{0,16})\([\s\S]*?\)(?P=fence)")  # R"x(text)x"
    | (?P<open>    (?<=/)\*[\s\S]* | (?<=R")[^()\\\s]{0,16}\([\s\S]*)     # either, without an end
    | (?P<string>  (?<=")(?:[^"\\\n]|\\(?:\r?\n|[^\n]))*")            # "text"
    | (?P<number>  (?<=[0-9A-Fa-f]')(?=[0-9A-Fa-f]))                  # the quote of 1'024
    | (?P<char>    (?<=')(?:[^'\\\n]|\\[^\n])+')                      # 'c'
    | (?P<prose>   (?<=\#)[ \t]*(?:error|warning|pragma)\b[^\n]*)     # #error don't
    )""",
    re.VERBOSE,
)
# "#  if defined(X) && \" with its continuation lines
_DIRECTIVE = re.compile(rb"#[^\n\\]*(?:\\(?:\r?\n|[^\n])?[^\n\\]*)*")
_BREAK_IN_LIST = re.compile(rb"<[ \t]*\r?\n\s*")
_NOT_NEWLINE = re.compile(rb"[^\r\n]")
# A quote between digits is the one of 1'024.
_OPEN_QUOTE = re.compile(rb"[\"'](?:(?<=\")|(?<![0-9A-Fa-f]'))")


@dataclass(frozen=True)
class Text:
    """A file's bytes and its views."""

    path: str
    data: bytes

    @cached_property
    def _lexemes(self) -> tuple[list[Span], list[Span], int | None]:
        comments: list[Span] = []
        literals: list[Span] = []
        unended: int | None = None
        for match in _LEXEMES.finditer(self.data):
            kind = match.lastgroup  # the outermost group, as it closes last
            if kind in {"line", "block"}:
                comments.append(Span(*match.span()))
            elif kind in {"raw", "string", "char", "open"}:
                literals.append(Span(*match.span()))
            if kind == "open":
                unended = match.start()
        return comments, literals, unended

    @property
    def comments(self) -> list[Span]:
        """Every comment, in order."""
        return self._lexemes[0]

    @cached_property
    def uncommented(self) -> bytes:
        """The file without comments and byte-order mark: what a compiler can be given."""
        text = blank(self.data, self.comments)
        return text if not text.startswith(BOM) else b"   " + text[3:]

    @cached_property
    def directives(self) -> list[Span]:
        """Every preprocessor directive, in order, with its continuation lines."""
        text = self.uncommented
        found: list[Span] = []
        for match in _DIRECTIVE.finditer(text):
            line = text.rfind(b"\n", 0, match.start()) + 1
            if not text[line : match.start()].strip():
                found.append(Span(line, match.end()))
        return found

    @cached_property
    def code(self) -> bytes:
        """The file without comments, directives and text: brackets and names are real.

        A literal is as many zeros, so that it still is a value.
        """
        return blank(blank(self.uncommented, self._lexemes[1], b"0"), self.directives)

    @cached_property
    def _newlines(self) -> list[int]:
        return [m.start() for m in re.finditer(b"\n", self.data)]

    def line(self, offset: int) -> int:
        """The line that an offset is on, from 1."""
        return bisect_right(self._newlines, offset - 1) + 1

    def error(
        self, offset: int, message: str, *, width: int = 1, remedy: str | None = None
    ) -> SourceError:
        """A failure at a place, with the line and a caret."""
        line, column, text = self.place(offset)
        return SourceError(self.path, line, column, message, text, width, remedy)

    def place(self, offset: int) -> tuple[int, int, str]:
        """Line, column (in characters, from 1) and the line's text."""
        offset = min(offset, len(self.data))
        start = self.data.rfind(b"\n", 0, offset) + 1
        end = self.data.find(b"\n", offset)
        row = self.data[start : end if end >= 0 else None].rstrip(b"\r\n")
        if len(row) > 400:
            # One endless line: show the part around the place.
            start = max(start, offset - 60)
            row = self.data[start : start + 120]
        column = len(decode(self.data[start:offset].removeprefix(BOM))) + 1
        return (
            self.line(offset),
            column,
            decode(row.removeprefix(BOM)).replace("\0", "\N{SYMBOL FOR NULL}"),
        )

    def check(self) -> None:
        """Raises at the first place where this cannot be a whole C++ file."""
        self.check_bytes()
        self.check_ends()
        if left := _OPEN_QUOTE.search(self.code):
            name = "string" if left.group() == b'"' else "character literal"
            raise self.error(left.start(), f"{name} without an end")
        try:
            # Comments and strings may hold any bytes, as compilers accept them.
            _ = self.code.isascii() or self.code.decode()
        except UnicodeDecodeError as error:
            raise self.error(error.start, "byte outside a comment that is not UTF-8") from error

    def check_bytes(self) -> None:
        """Raises when this is no text."""
        if (nul := self.data.find(b"\0")) >= 0:
            raise self.error(nul, "NUL byte: this is no text file (UTF-16 perhaps?)")

    def check_ends(self) -> None:
        """Raises when a comment or a raw string never ends."""
        if (start := self._lexemes[2]) is not None:
            name = "comment" if self.data.startswith(b"/*", start) else "raw string"
            raise self.error(start, f"{name} without an end", width=2)


def blank(data: bytes, spans: list[Span], fill: bytes = b" ") -> bytes:
    """The same bytes with spaces in the spans; line ends stay."""
    if not spans:
        return data
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts.append(data[at:start])
        parts.append(_NOT_NEWLINE.sub(fill, data[start:end]))
        at = end
    parts.append(data[at:])
    return b"".join(parts)


def decode(data: bytes) -> str:
    """Text for people: UTF-8, else Latin-1, which takes any byte."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def squeeze(data: bytes) -> str:
    """A spelling on one line: any run of white space is one space, a break behind `<` none."""
    if b"\n" in data:
        data = _BREAK_IN_LIST.sub(b"<", data)
    return " ".join(decode(data).split())
