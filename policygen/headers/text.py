"""One C++ file as bytes, with views in which comments, strings or directives are blanked.

All views have the length of the file, so that an offset means the same place in each of them.
"""

import re
import signal
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType

from policygen.errors import SourceError
from policygen.model.records import Span
from policygen.opening import NotOpenedError, read_inside

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


FOLDER = "cub/device/dispatch/tuning"
"""Where tuning headers are, below the include folder of a tree."""


# Reads source files, and refuses what cannot be one.


def read_bytes(path: Path, root: Path | None = None) -> bytes:
    """The bytes of a source file of the tree at `root`; of a header, the tree around it."""
    name = path.as_posix()
    try:
        return read_inside(root or tree_around(path), path)
    except NotOpenedError as error:
        raise SourceError(name, 1, 1, error.reason, remedy=error.remedy) from error
    except OSError as error:
        raise SourceError(name, 1, 1, f"cannot be read: {error.strerror or error}") from error


def tree_around(header: Path) -> Path:
    """The include folder that a tuning header belongs to; one that lies by itself has its own."""
    folder = header.absolute().parent
    parts = Path(FOLDER).parts
    return folder.parents[len(parts) - 1] if folder.parts[-len(parts) :] == parts else folder


# clang calls itself once for each operator of an expression, until its stack is used up.
_OPERATORS = re.compile(rb"[-!~+*/%&|^<?=]")
_MOST_OPERATORS = 1500
_STATEMENT_ENDS = re.compile(rb"[;{}]")
# "struct A B A B": clang tries anew to make sense of the rest at each of the words.
_WORDS = re.compile(rb"\w++(?:\s++\w++)+")
_MOST_WORDS = 100


# What no header of CUB comes near, and what clang cannot take or takes too long for.


def check_limits(text: Text) -> None:
    """Raises at what would end the process inside clang, or keep it busy for minutes."""
    at = 0
    for stretch in _STATEMENT_ENDS.split(text.uncommented):
        if len(stretch) > _MOST_OPERATORS < len(_OPERATORS.findall(stretch)):
            raise text.error(at, "an expression with too many operators to be read")
        at += len(stretch) + 1
    for words in _WORDS.finditer(text.code):
        if len(words[0]) > 2 * _MOST_WORDS and len(words[0].split()) > _MOST_WORDS:
            raise text.error(words.start(), f"more than {_MOST_WORDS} words without a sign between")


SECONDS = 3.0
"""Processor time for one file; the largest of CUB takes a tenth of a second."""


# A limit of processor time for readers of our own, which run in this process.


def too_long(seconds: float) -> str:
    """Why a file is refused that took all of its time."""
    return f"it takes more than {seconds:g} seconds of processor time to read"


@contextmanager
def limited(path: str, seconds: float = SECONDS) -> Iterator[None]:
    """Ends the block with a refusal of the file when it takes longer.

    Signals go to the main thread alone: beside it nothing is limited.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise SourceError(
            path,
            1,
            1,
            too_long(seconds),
            remedy="No source of CUB is like this.",
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# "\\u00e9" is part of a name, "\\" at the end of a line joins two
_BACKSLASH = re.compile(rb"\\(u|U|\r?\n|)")
_JOINED = re.compile(rb"\\\r?\n")
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
_PLAIN = "Write it out: policygen reads what stands in the header."


# Spellings that hide code from a reader that does not preprocess: refused where they stand.


def check_hidden(text: Text, beside: Mapping[str, bytes]) -> None:
    """Raises at the first place where the compiler sees something else than what stands there.

    `beside` are the neighbours that the header includes, whose macros reach into it.
    """
    for match in _BACKSLASH.finditer(text.code):
        what = "a name with a universal character" if match[1] in b"uU" and match[1] else None
        what = what or ("a line that goes on in the next" if match[1] else "a stray backslash")
        raise text.error(match.start(), f"{what}: cannot be read", remedy=_PLAIN)
    if sign := _DIGRAPH.search(text.code):
        words = f"{sign[0].decode()!r} stands for another sign: cannot be read"
        raise text.error(sign.start(), words, width=len(sign[0]), remedy=_PLAIN)
    _check_macros(text, beside)
    _check_includes(text)


def _check_macros(text: Text, beside: Mapping[str, bytes]) -> None:
    """A macro that stands for more than a number may be defined, but not be used in code."""
    macros = {name: f"line {line}" for name, line in _macros(text)}
    for path, data in beside.items():
        macros |= {name: f"{path}:{line}" for name, line in _macros(Text(path, data))}
    if not macros:
        return
    for word in _WORD.finditer(text.code):
        if word[0] in macros:
            name = word[0].decode("utf-8", "replace")
            raise text.error(
                word.start(),
                f"{name} is a macro of {macros[word[0]]}: cannot read what it expands to",
                width=len(word[0]),
                remedy=_PLAIN,
            )


def _macros(text: Text) -> Iterator[tuple[bytes, int]]:
    for span in text.directives:
        match = _DEFINE.fullmatch(_joined(text, span))
        if match and (match[2] or not _NUMBER.fullmatch(match[3])):
            yield match[1], text.line(span.start)


def _check_includes(text: Text) -> None:
    """Code may come from another file only where nothing is open, and that file must be named."""
    depth, at = 0, 0
    for span in text.directives:
        match = _INCLUDE.fullmatch(_joined(text, span))
        if match is None:
            continue
        depth += sum(_opens(brace[0]) for brace in _BRACE.finditer(text.code, at, span.start))
        at = span.end
        if match[1] != b"include" or not _NAMED.fullmatch(match[2].strip()):
            raise text.error(_word(span, text), "cannot tell what this includes", remedy=_PLAIN)
        if depth > 0:
            words = "an include inside of a declaration: cannot read what it adds"
            raise text.error(_word(span, text), words, remedy=_PLAIN)


def _joined(text: Text, directive: Span) -> bytes:
    """A directive on one line, as the preprocessor joins it."""
    return _JOINED.sub(b"", text.uncommented[directive.start : directive.end])


def _opens(brace: bytes) -> int:
    return -1 if brace in {b"}", b"CUB_NAMESPACE_END"} else 1


def _word(span: Span, text: Text) -> int:
    """Where the `#` of a directive is."""
    return text.uncommented.index(b"#", span.start)
