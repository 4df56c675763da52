"""A C++ file as bytes, with views in which comments, strings or directives are blanked.

All views have the length of the file, so that offsets are equal in all of them.
"""

import re
import signal
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType

from policygen.errors import SourceError
from policygen.model.records import Problem, Span

BOM = b"\xef\xbb\xbf"
# One character that can start a comment or a literal, then the rest of it. Starting with a
# character set lets the search skip all other text. The matching group names the kind of lexeme.
_LEXEMES = re.compile(
    rb"""
    [/"'\#](?:
      (?P<line>    (?<=/)/[^\n\\]*(?:\\(?:\r?\n|[^\n])?[^\n\\]*)*)   # // text, continued
    | (?P<block>   (?<=/)\*[\s\S]*?\*/)                              # /* text */
    | (?P<raw>     (?<=R")(?P<fence>[^()\\\s]{0,16})\([\s\S]*?\)(?P=fence)")  # R"x(text)x"
    | (?P<open>    (?<=/)\*[\s\S]* | (?<=R")[^()\\\s]{0,16}\([\s\S]*)     # either, unterminated
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
    """The bytes of a file and views of them."""

    path: str
    data: bytes

    @cached_property
    def _lexemes(self) -> tuple[list[Span], list[Span], int | None]:
        comments: list[Span] = []
        literals: list[Span] = []
        unended: int | None = None
        for match in _LEXEMES.finditer(self.data):
            kind = match.lastgroup  # the outermost group, which closes last
            if kind in {"line", "block"}:
                comments.append(Span(*match.span()))
            elif kind in {"raw", "string", "char", "open"}:
                literals.append(Span(*match.span()))
            if kind == "open":
                unended = match.start()
        return comments, literals, unended

    @property
    def comments(self) -> list[Span]:
        """All comments, in order."""
        return self._lexemes[0]

    @cached_property
    def uncommented(self) -> bytes:
        """The file without comments and byte-order mark, as passed to a compiler."""
        text = blank(self.data, self.comments)
        return text if not text.startswith(BOM) else b"   " + text[3:]

    @cached_property
    def directives(self) -> list[Span]:
        """All preprocessor directives, in order, with their continuation lines."""
        text = self.uncommented
        directives: list[Span] = []
        for match in _DIRECTIVE.finditer(text):
            line_start = text.rfind(b"\n", 0, match.start()) + 1
            if not text[line_start : match.start()].strip():
                directives.append(Span(line_start, match.end()))
        return directives

    @cached_property
    def code(self) -> bytes:
        """The file without comments, directives and text: brackets and names are real code.

        Literals are replaced with zeros, so that they remain values.
        """
        return blank(blank(self.uncommented, self._lexemes[1], b"0"), self.directives)

    @cached_property
    def _newlines(self) -> list[int]:
        return [match.start() for match in re.finditer(b"\n", self.data)]

    def line(self, offset: int) -> int:
        """Returns the line of an offset, from 1."""
        return bisect_right(self._newlines, offset - 1) + 1

    def error(
        self, offset: int, message: str, *, width: int = 1, remedy: str | None = None
    ) -> SourceError:
        """Builds an error at an offset, with the line and a caret; columns are characters."""
        offset = min(offset, len(self.data))
        start = self.data.rfind(b"\n", 0, offset) + 1
        end = self.data.find(b"\n", offset)
        row = self.data[start : end if end >= 0 else None].rstrip(b"\r\n")
        if len(row) > 400:
            # In an overlong line, show only the part around the offset.
            start = max(start, offset - 60)
            row = self.data[start : start + 120]
        column = len(decode(self.data[start:offset].removeprefix(BOM))) + 1
        shown = decode(row.removeprefix(BOM)).replace("\0", "\N{SYMBOL FOR NULL}")
        return SourceError(self.path, self.line(offset), column, message, shown, width, remedy)

    def check(self) -> None:
        """Raises an error at the first place that cannot be part of a complete C++ file."""
        self.check_bytes()
        self.check_ends()
        if open_quote := _OPEN_QUOTE.search(self.code):
            name = "string" if open_quote.group() == b'"' else "character literal"
            raise self.error(open_quote.start(), f"unterminated {name}")
        try:
            # Compilers accept any bytes in comments and strings.
            _ = self.code.isascii() or self.code.decode()
        except UnicodeDecodeError as error:
            raise self.error(error.start, "byte outside a comment that is not UTF-8") from error

    def check_bytes(self) -> None:
        """Raises an error if this is a binary file."""
        if (nul := self.data.find(b"\0")) >= 0:
            raise self.error(nul, "NUL byte: this is not a text file (perhaps UTF-16)")

    def check_ends(self) -> None:
        """Raises an error if a comment or a raw string never ends."""
        if (start := self._lexemes[2]) is not None:
            name = "comment" if self.data.startswith(b"/*", start) else "raw string"
            raise self.error(start, f"unterminated {name}", width=2)


def with_changes(data: bytes, changes: Iterable[tuple[Span, bytes]]) -> bytes:
    """Replaces spans, given in order."""
    parts: list[bytes] = []
    end_of_last = 0
    for (start, end), new in changes:
        parts += [data[end_of_last:start], new]
        end_of_last = end
    return b"".join([*parts, data[end_of_last:]]) if parts else data


def as_problem(error: SourceError) -> Problem:
    """Converts an error to its place and message."""
    return Problem(path=error.path, line=error.line, column=error.column, message=error.message)


def blank(data: bytes, spans: list[Span], fill: bytes = b" ") -> bytes:
    """Fills the spans with spaces, except for line ends."""
    filled = (_NOT_NEWLINE.sub(fill, data[slice(*span)]) for span in spans)
    return with_changes(data, zip(spans, filled, strict=True))


def decode(data: bytes) -> str:
    """Decodes text for display: UTF-8, else Latin-1, which accepts any byte."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def squeeze(data: bytes, span: Span | None = None) -> str:
    """Collapses white space of a span to single spaces, and drops a line break behind `<`."""
    data = data if span is None else data[slice(*span)]
    if b"\n" in data:
        data = _BREAK_IN_LIST.sub(b"<", data)
    return " ".join(decode(data).split())


# "struct A B A B": searches for a declaration start at each of the words.
_WORDS = re.compile(rb"\w++(?:\s++\w++)+")
_MAX_WORDS = 100
"""A limit far beyond any CUB header."""


def check_words(text: Text) -> None:
    """Raises an error at a run of words that would keep the readers busy for minutes."""
    for words in _WORDS.finditer(text.code):
        if len(words[0]) > 2 * _MAX_WORDS and len(words[0].split()) > _MAX_WORDS:
            raise text.error(words.start(), f"more than {_MAX_WORDS} words without punctuation")


SECONDS = 3.0
"""Processor time per file; the largest header of CUB takes a tenth of a second."""
_PACKAGE = str(Path(__file__).parents[1])


@contextmanager
def limited(path: str, seconds: float = SECONDS) -> Iterator[None]:
    """Refuses a file if reading it in this block takes too long.

    Signals only reach the main thread: other threads are not limited. Python drops what a callback
    of the garbage collector raises, so the timer repeats until it interrupts one of our functions.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def refuse(_signal: int, frame: FrameType | None) -> None:
        if frame and frame.f_code.co_filename.startswith(_PACKAGE):
            words = f"reading it takes more than {seconds:g} seconds of processor time"
            raise SourceError(path, 1, 1, words, remedy="No CUB source looks like this.")

    previous_handler = signal.signal(signal.SIGVTALRM, refuse)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 100)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous_handler)


# "#  include <cub/device/dispatch/tuning/common.cuh>", '#include "entries.inl"'
_INCLUDED = re.compile(rb'#[ \t]*include[ \t]*([<"])([^>"\n]*)[>"]')


def includes(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yields includes on a line of their own, not in trailing comments."""
    for match in _INCLUDED.finditer(data):
        if not data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip():
            yield match


def reachable(data: bytes, neighbors: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the neighbors, by include path, that a header includes directly or transitively."""
    included: dict[str, bytes] = {}
    pending = [data]
    while pending:
        for include in includes(pending.pop()):
            path = include[2].decode("latin-1")
            if path in neighbors and path not in included:
                included[path] = neighbors[path]
                pending.append(neighbors[path])
    return dict(sorted(included.items()))


# "\\u00e9" is part of a name, "\\" at the end of a line joins two
_BACKSLASH = re.compile(rb"\\(u|U|\r?\n|)")
_LINE_CONTINUATION = re.compile(rb"\\\r?\n")
# "<%", "%:": other spellings of "{" and "#"; but "<::" begins the name of a type
_DIGRAPH = re.compile(rb"<%|%>|%:|<:(?!:(?![:>]))|(?<!:):>")
# "#  define TUNED(x) {x, 256}"
_DEFINE = re.compile(rb"[ \t]*#[ \t]*define[ \t]+(\w+)(\([^()\n]*\))?([\s\S]*)")
_INCLUDE = re.compile(rb"[ \t]*#[ \t]*(include_next|include|import|embed)\b[ \t]*([\s\S]*)")
_NAMED = re.compile(rb"<[^<>\n]+>|\"[^\"\n]+\"")
# "256", "(1 << 4)", "": what cannot be anything but a number
_NUMBER = re.compile(rb"(?:[-+*/%()<>&|^~!\s]|\\|\b\d[\w']*)*")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_BRACE = re.compile(rb"[{}]|\bCUB_NAMESPACE_(?:BEGIN|END)\b")
_REMEDY = "Write it out; policygen does not expand macros."


# Spellings that hide code from a reader without a preprocessor


def check_hidden(text: Text, neighbours: Mapping[str, bytes]) -> None:
    """Raises an error at the first code that a compiler sees differently.

    `neighbours` are the included headers, whose macros are visible here.
    """
    if match := _BACKSLASH.search(text.code):
        universal = "a name with a universal character"
        names = {b"": "a stray backslash", b"u": universal, b"U": universal}
        description = names.get(match[1], "a line continuation")
        raise text.error(match.start(), f"{description}: cannot be read", remedy=_REMEDY)
    if digraph := _DIGRAPH.search(text.code):
        words = f"{digraph[0].decode()!r} is a digraph or trigraph and cannot be read"
        raise text.error(digraph.start(), words, width=len(digraph[0]), remedy=_REMEDY)
    _check_macros(text, neighbours)
    _check_includes(text)


def _check_macros(text: Text, neighbours: Mapping[str, bytes]) -> None:
    """Rejects uses of macros that expand to more than a number; definitions are allowed."""
    macros = {name: f"line {line}" for name, line in _macros(text)}
    for path, data in neighbours.items():
        macros |= {name: f"{path}:{line}" for name, line in _macros(Text(path, data))}
    if not macros:
        return
    for word in _WORD.finditer(text.code):
        if word[0] in macros:
            name = word[0].decode("utf-8", "replace")
            raise text.error(
                word.start(),
                f"{name} is a macro of {macros[word[0]]}; policygen does not expand it",
                width=len(word[0]),
                remedy=_REMEDY,
            )


def _macros(text: Text) -> Iterator[tuple[bytes, int]]:
    for span in text.directives:
        match = _DEFINE.fullmatch(_joined_lines(text, span))
        if match and (match[2] or not _NUMBER.fullmatch(match[3])):
            yield match[1], text.line(span.start)


def _check_includes(text: Text) -> None:
    """Rejects includes inside a declaration, and includes without a literal name."""
    depth, end_of_last = 0, 0
    for span in text.directives:
        match = _INCLUDE.fullmatch(_joined_lines(text, span))
        if match is None:
            continue
        depth += sum(
            -1 if brace[0] in {b"}", b"CUB_NAMESPACE_END"} else 1
            for brace in _BRACE.finditer(text.code, end_of_last, span.start)
        )
        end_of_last = span.end
        if match[1] != b"include" or not _NAMED.fullmatch(match[2].strip()):
            words = "cannot determine what this includes"
        elif depth > 0:
            words = "an include inside a declaration; policygen does not read it"
        else:
            continue
        raise text.error(text.uncommented.index(b"#", span.start), words, remedy=_REMEDY)


def _joined_lines(text: Text, directive: Span) -> bytes:
    """Returns a directive with its continuation lines joined."""
    return _LINE_CONTINUATION.sub(b"", text.uncommented[slice(*directive)])
