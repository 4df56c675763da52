"""Joins a benchmark's source and the neighbors that it includes, as a preprocessor would.

Conditions that the build defines are evaluated. Conditions on the platform are evaluated, and
noted as assumptions. For all other conditions, every branch is kept.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from policygen.errors import SourceError
from policygen.headers.expressions import evaluate
from policygen.headers.search_space import Knowledge
from policygen.headers.syntax import closing_angle, closing_bracket, split_list
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.opening import read_bytes

MAX_DEPTH = 32
"""The deepest nesting of includes."""
# "#  ifdef TUNE_T"
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")
_QUOTED = re.compile(r'"([^"\n]+)"')
_FIRST_NAME = re.compile(r"\w+")


@dataclass(slots=True)
class _Group:
    """An open `#if`."""

    opened: int
    outer: bool
    active: bool = False
    settled: bool = False
    """Whether an earlier branch is certainly taken."""
    noted: bool = False
    """Whether a condition of the group needs a note."""
    known: bool = True
    note: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro; `parameters` is None if it is object-like."""

    name: str
    parameters: tuple[str, ...] | None
    body: str

    @property
    def registers(self) -> bool:
        """Whether a call of the macro registers a benchmark."""
        return self.parameters is not None and REGISTERS in self.body


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a unit that a preprocessor condition selects."""

    start: int
    end: int
    condition: str
    known: bool
    """False if the condition is unknown and both branches were kept."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a unit and its origin."""

    start: int
    """Its offset in the unit."""
    text: Text
    offset: int
    """Its offset in the file; of a macro's expansion, that of the call."""
    expanded: bool


@dataclass(frozen=True, slots=True)
class PreprocessedUnit:
    """Text without comments, directives and inactive branches; `mask` has no literals, either."""

    text: str
    mask: str
    code: bytes
    """The mask in Latin-1, as the files are decoded: offsets are equal."""
    regions: tuple[Region, ...]
    pieces: Sequence[_Piece]

    def origin(self, offset: int) -> tuple[Text, int]:
        """Returns the file and offset that an offset comes from."""
        index = bisect_right(self.pieces, offset, key=lambda piece: piece.start) - 1
        piece = self.pieces[index]
        return piece.text, piece.offset + (0 if piece.expanded else offset - piece.start)

    def error(self, offset: int, message: str) -> SourceError:
        """Builds an error at an offset of the unit."""
        text, position = self.origin(offset)
        return text.error(position, message)

    def closing(self, opening: int) -> int:
        """Returns the offset of the bracket that closes the one at `opening`."""
        stack: list[int] = []
        for match in _UNIT_BRACKET.finditer(self.mask, opening):
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
        """Returns a range of the unit without leading and trailing white space."""
        part = self.text[start:end]
        leading = len(part) - len(part.lstrip())
        return Passage(self, start + leading, max(start + leading, start + len(part.rstrip())))


class Sources:
    """Caches the files that were read, or the errors of reading them."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, Path], Text | SourceError] = {}

    def read(self, path: Path, root: Path) -> Text:
        """Reads a file below `root`, or raises the error of the first attempt again."""
        if (root, path) not in self._known:
            try:
                text = read_text(path, root)
                text.check_ends()
                self._known[root, path] = text
            except SourceError as error:
                self._known[root, path] = error
        text_or_error = self._known[root, path]
        if isinstance(text_or_error, SourceError):
            raise text_or_error
        return text_or_error


@dataclass(frozen=True, slots=True)
class Passage:
    """A range of a unit."""

    unit: PreprocessedUnit
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text as in the unit."""
        return self.unit.text[self.start : self.end]

    @property
    def spelling(self) -> str:
        """The text on one line, for display."""
        text = " ".join(self.text.split())
        return text.encode("latin-1", "replace").decode("utf-8", "replace")

    def split(self, *, angles: bool = False) -> list["Passage"]:
        """Splits at top-level commas; empty parts are dropped."""
        spans = split_list(self.unit.code, self.start, self.end, angles=angles)
        parts = (self.unit.passage(*span) for span in spans)
        return [part for part in parts if part.start < part.end]

    def template(self, begin: int) -> list["Passage"] | None:
        """Returns the template arguments behind the `<` that ends at `begin`, if it is closed."""
        start = self.start + begin
        close = closing_angle(self.unit.code, start - 1)
        if close is None or close >= self.end:
            return None
        return self.unit.passage(start, close).split(angles=True)

    def inside(self, opening: int) -> "Passage":
        """Returns the text in the bracket that is `opening` characters into the passage."""
        offset = self.start + opening
        return self.unit.passage(offset + 1, self.unit.closing(offset))


_UNIT_BRACKET = re.compile(r"[(){}\[\]]")
_OPENS = {"(": ")", "{": "}", "[": "]"}


@dataclass(slots=True)
class Preprocessor:
    """Preprocesses all files of one unit."""

    sources: Sources
    facts: Knowledge
    root: Path
    """The folder that contains all files; includes that leave it are rejected."""
    macros: dict[str, Macro] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)
    _mask: list[str] = field(default_factory=list)
    _size: int = 0
    _regions: list[Region] = field(default_factory=list)
    _pieces: list[_Piece] = field(default_factory=list)
    _seen: set[Path] = field(default_factory=set)
    _assumed: bool = False
    _busy: set[str] = field(default_factory=set)
    _values: dict[str, tuple[int | None, bool]] = field(default_factory=dict)

    def unit(self) -> PreprocessedUnit:
        """Returns the text joined so far."""
        text, mask = "".join(self._text), "".join(self._mask)
        regions = tuple(self._regions)
        return PreprocessedUnit(text, mask, mask.encode("latin-1"), regions, self._pieces)

    def add(self, path: Path, depth: int = 0) -> None:
        """Adds a file and its includes."""
        text = self.sources.read(path, self.root)
        self._seen.add(path.resolve())
        self.take(text, path.parent, depth)

    def take(self, text: Text, folder: Path, depth: int = 0) -> None:
        """Adds a text whose includes are relative to `folder`."""
        groups: list[_Group] = []
        end_of_directive = 0
        spans = text.directives
        for span, following in zip_longest(spans, spans[1:], fillvalue=Span(0, 0)):
            start = span.start
            if not groups or groups[-1].active:
                self._emit(text, end_of_directive, start)
            end_of_directive = span.end
            word, rest = _words(text, span)
            if word in {"if", "ifdef", "ifndef"}:
                group = _Group(start, outer=not groups or groups[-1].active)
                self._enter(group, self._opening_condition(word, rest, _words(text, following)))
                groups.append(group)
            elif word in {"elif", "else", "endif"}:
                self._turn(text, start, word, rest, groups)
            elif not groups or groups[-1].active:
                path = self._act(word, rest, folder)
                if path is not None and depth >= MAX_DEPTH:
                    raise text.error(start, f"includes nest deeper than {MAX_DEPTH}")
                if path is not None:
                    self.add(path, depth + 1)
        if groups:
            raise text.error(groups[-1].opened, "#if without #endif")
        self._emit(text, end_of_directive, len(text.data))

    def _emit(self, text: Text, start: int, end: int) -> None:
        """Adds a part of a file, and expands macros that register benchmarks."""
        names = [re.escape(name) for name, macro in self.macros.items() if macro.registers]
        calls = re.compile(rf"\b({'|'.join(names)})\s*\(".encode("latin-1")) if names else None
        while calls and (call := calls.search(text.code, start, end)):
            close = closing_bracket(text.code, call.end() - 1)
            if close is None or close >= end:
                raise text.error(call.end() - 1, "'(' is never closed")
            self._append(text, start, *_views(text, start, call.start()))
            spans = split_list(text.code, call.end(), close, angles=False)
            macro = self.macros[call[1].decode("latin-1")]
            body = expand(macro, [_views(text, *span)[0] for span in spans])
            # Literals are zeros, as in a file's code.
            mask = _STRING.sub(lambda match: "0" * len(match[0]), body)
            self._append(text, call.start(), body, mask, expanded=True)
            start = close + 1
        data, code = _views(text, start, end)
        self._append(text, start, data + "\n", code + "\n")

    def _append(
        self, text: Text, offset: int, data: str, code: str, *, expanded: bool = False
    ) -> None:
        self._pieces.append(_Piece(self._size, text, offset, expanded))
        self._text.append(data)
        self._mask.append(code)
        self._size += len(data)

    def _opening_condition(self, word: str, rest: str, following: tuple[str, str]) -> str:
        """Returns the condition of `#if`, `#ifdef` or `#ifndef`, given the next directive."""
        if word == "if":
            return rest
        match = _FIRST_NAME.match(rest)
        name = match.group() if match else ""
        if word == "ifdef":
            return f"defined({name})"
        if name and following[0] == "define" and re.match(rf"{name}\b", following[1]):
            # An include guard, or a default for what the including file may define.
            return str(int(name not in self.macros))
        return f"!defined({name})"

    def _enter(self, group: _Group, condition: str) -> None:
        """Starts the branch of `#if` or `#elif`."""
        if group.settled or not group.outer:
            group.active = False
            return
        self._assumed = False
        value = evaluate(condition, self._lookup)
        group.active = value is None or value != 0
        group.settled = value is not None and value != 0
        group.known &= value is not None
        group.noted |= value is None or self._assumed
        spelling = " ".join(condition.split())
        group.note = spelling if group.active else f"!({spelling})"
        group.start = self._size

    def _turn(self, text: Text, offset: int, word: str, rest: str, groups: list[_Group]) -> None:
        if not groups:
            raise text.error(offset, f"#{word} without #if")
        group = groups[-1]
        if group.active and group.noted and self._size > group.start:
            self._regions.append(Region(group.start, self._size, group.note, group.known))
        if word == "endif":
            groups.pop()
        elif word == "elif":
            self._enter(group, rest)
        else:
            if group.active and not group.settled:
                group.note = f"!({group.note})"
            group.active = group.outer and not group.settled
            group.start = self._size

    def _act(self, word: str, rest: str, folder: Path) -> Path | None:
        """Records a macro definition, or returns the file that an include adds."""
        if word == "define":
            self._values.clear()
            if macro := parse_macro(rest):
                self.macros[macro.name] = macro
        elif word == "undef":
            self._values.clear()
            self.macros.pop(rest, None)
        elif word == "include" and (name := _QUOTED.match(rest)):
            native = name.group(1).encode("latin-1").decode("utf-8", "replace")
            path = Path(os.path.normpath(folder / native))
            if path.name != self.facts.files.helper and self._is_new(path):
                return path
        return None

    def _is_new(self, path: Path) -> bool:
        """Tells whether a neighbor exists and is not part of the unit yet, which breaks cycles."""
        try:
            return path.is_file() and path.resolve() not in self._seen
        except (OSError, RuntimeError, ValueError):
            return False

    def _lookup(self, name: str) -> int | None:
        is_defined_query = name.startswith("defined ")
        name = name.removeprefix("defined ").removeprefix("::")
        if macro := self.macros.get(name):
            return 1 if is_defined_query else self._value(macro)
        if name in self.facts.build.defined:
            return 1 if is_defined_query else self.facts.build.defined[name]
        if name in self.facts.platform:
            self._assumed = True
            return 1 if is_defined_query else self.facts.platform[name]
        has_undefined_prefix = name.startswith(self.facts.build.undefined_prefixes)
        return 0 if has_undefined_prefix or name in self.facts.build.undefined else None

    def _value(self, macro: Macro) -> int | None:
        if macro.name in self._busy or len(self._busy) > MAX_DEPTH:
            return None
        if macro.name not in self._values:
            outer, self._assumed = self._assumed, False
            self._busy.add(macro.name)
            self._values[macro.name] = evaluate(macro.body, self._lookup), self._assumed
            self._busy.discard(macro.name)
            self._assumed = outer
        value, assumed = self._values[macro.name]
        self._assumed |= assumed
        return value

    def condition(self, text: str) -> tuple[int | None, bool]:
        """Evaluates a condition in code, and returns whether it depends on assumptions."""
        self._assumed = False
        return evaluate(text, self._lookup), self._assumed


def _words(text: Text, directive: Span) -> tuple[str, str]:
    """Splits a directive into its name and the rest: `ifdef`, `TUNE_T`."""
    data, _ = _views(text, *directive)
    match = _DIRECTIVE.match(_CONTINUED.sub(" ", data))
    return (match[1], match[2].strip()) if match else ("", "")


def _views(text: Text, start: int, end: int) -> tuple[str, str]:
    """Returns a part of a file without comments, and the same part without literals."""
    return text.uncommented[start:end].decode("latin-1"), text.code[start:end].decode("latin-1")


# BENCHMARK_UNARY(func) NVBENCH_BENCH_TYPES(func##_bench, ...)
_DEFINE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\((?P<parameters>[^()]*)\))?(?P<body>.*)", re.DOTALL
)
# "tile_" #name, func ## _bench
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\s*##\s*|#\s*\w+|\w+|\s+|.', re.DOTALL)
REGISTERS = "NVBENCH_BENCH"
MAX_BODY = 20_000


# Macros: values for conditions, and function-like ones that register benchmarks


def parse_macro(text: str) -> Macro | None:
    """Parses the text behind `#define`."""
    match = _DEFINE.match(text)
    if match is None or len(text) > MAX_BODY:
        return None
    listed = match["parameters"]
    parameters = None if listed is None else tuple(map(str.strip, listed.split(",")))
    return Macro(match["name"], parameters, match["body"].strip())


def expand(macro: Macro, arguments: Sequence[str]) -> str:
    """Returns the text of a call."""
    padded = [*arguments, *[""] * len(macro.parameters or ())]
    values = dict(zip(macro.parameters or (), padded, strict=False))
    parts: list[str] = []
    for part in _PART.findall(macro.body):
        if part.strip() == "##":
            continue
        if part.startswith("#"):
            name = part[1:].strip()
            text = " ".join(values.get(name, name).split())
            parts.append('"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"')))
        else:
            parts.append(values.get(part, part))
    return "".join(parts)


_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


# Reading files


def read_text(path: Path, root: Path) -> Text:
    """Reads a text file below `root`."""
    text = Text(path.as_posix(), read_bytes(path, root))
    text.check_bytes()
    return text
