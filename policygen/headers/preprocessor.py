"""Joins a benchmark's source and the neighbors that it includes, as a preprocessor would.

Conditions that the build defines are evaluated. Conditions on the platform are evaluated, and
noted as assumptions. For all other conditions, every branch is kept.
"""

import os
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from policygen.errors import SourceError
from policygen.headers.expressions import evaluate
from policygen.headers.search_space import Knowledge
from policygen.headers.text import Text, read_bytes

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


@dataclass(slots=True)
class PreprocessedUnit:
    """Text without comments, directives and inactive branches; `mask` has no literals, either."""

    text: str = ""
    mask: str = ""
    regions: tuple[Region, ...] = ()
    pieces: list[tuple[Text, int, bool]] = field(default_factory=list)
    """The origin of each piece; the flag marks text from one offset that is not a copy."""
    starts: list[int] = field(default_factory=list)

    def origin(self, offset: int) -> tuple[Text, int]:
        """Returns the file and offset that an offset comes from."""
        index = bisect_right(self.starts, offset) - 1
        text, start, fixed = self.pieces[index]
        return text, start if fixed else start + offset - self.starts[index]

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
        parts: list[Passage] = []
        bracket_depth, angle_depth, part_start = 0, 0, self.start
        for match in _SIGN.finditer(self.unit.mask, self.start, self.end):
            sign = match.group()
            if sign in "<>":
                # Inside parentheses these are comparisons or shifts.
                angle_depth += (1 if sign == "<" else -1) if angles and not bracket_depth else 0
            elif sign != ",":
                bracket_depth += 1 if sign in "({[" else -1
            elif bracket_depth == 0 and angle_depth == 0:
                parts.append(self.unit.passage(part_start, match.start()))
                part_start = match.end()
        parts.append(self.unit.passage(part_start, self.end))
        return [part for part in parts if part.start < part.end]

    def template(self, begin: int) -> list["Passage"] | None:
        """Returns the template arguments behind the `<` that ends at `begin`, if it is closed."""
        bracket_depth, angle_depth, start = 0, 1, self.start + begin
        for match in _SIGN.finditer(self.unit.mask, start, self.end):
            sign = match.group()
            if sign in "<>" and not bracket_depth:
                angle_depth += 1 if sign == "<" else -1
                if angle_depth == 0:
                    return self.unit.passage(start, match.start()).split(angles=True)
            elif sign in "(){}[]":
                bracket_depth += 1 if sign in "({[" else -1
        return None

    def inside(self, opening: int) -> "Passage":
        """Returns the text in the bracket that is `opening` characters into the passage."""
        offset = self.start + opening
        return self.unit.passage(offset + 1, self.unit.closing(offset))


_SIGN = re.compile(r"[(){}\[\]<>,]")
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
    _unit: PreprocessedUnit = field(default_factory=PreprocessedUnit)
    _seen: set[Path] = field(default_factory=set)
    _assumed: bool = False
    _busy: set[str] = field(default_factory=set)
    _values: dict[str, tuple[int | None, bool]] = field(default_factory=dict)

    def unit(self) -> PreprocessedUnit:
        """Returns the text joined so far."""
        self._unit.text, self._unit.mask = "".join(self._text), "".join(self._mask)
        self._unit.regions = tuple(self._regions)
        return self._unit

    def add(self, path: Path, depth: int = 0) -> None:
        """Adds a file and its includes."""
        text = self.sources.read(path, self.root)
        self._seen.add(path.resolve())
        self.take(text, path.parent, depth)

    def take(self, text: Text, folder: Path, depth: int = 0) -> None:
        """Adds a text whose includes are relative to `folder`."""
        data, code = text.uncommented.decode("latin-1"), text.code.decode("latin-1")
        groups: list[_Group] = []
        end_of_directive = 0
        spans = text.directives
        for index, (start, end) in enumerate(spans):
            if not groups or groups[-1].active:
                self._emit(
                    text,
                    end_of_directive,
                    data[end_of_directive:start],
                    code[end_of_directive:start],
                )
            end_of_directive = end
            match = _DIRECTIVE.match(_CONTINUED.sub(" ", data[start:end]))
            word, rest = match.groups() if match else ("", "")
            rest = rest.strip()
            if word in {"if", "ifdef", "ifndef"}:
                following = data[slice(*spans[index + 1])] if index + 1 < len(spans) else ""
                groups.append(self._open(word, rest, start, groups, following))
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
        self._emit(text, end_of_directive, data[end_of_directive:], code[end_of_directive:])

    def _emit(self, text: Text, start: int, data: str, code: str) -> None:
        """Adds a part of a file, and expands macros that register benchmarks."""
        emitted = 0
        calls = [name for name, macro in self.macros.items() if macro.registers]
        if calls:
            names = "|".join(map(re.escape, calls))
            for match in re.finditer(rf"\b({names})\s*\(", code):
                if match.start() < emitted:
                    continue
                body, end = expand(self.macros[match.group(1)], data, code, match.end() - 1)
                if end < 0:
                    raise text.error(start + match.end() - 1, "'(' is never closed")
                self._append(
                    text,
                    start + emitted,
                    data[emitted : match.start()],
                    code[emitted : match.start()],
                )
                self._append(text, start + match.start(), body, mask_strings(body), fixed=True)
                emitted = end
        self._append(text, start + emitted, data[emitted:] + "\n", code[emitted:] + "\n")

    def _append(
        self, text: Text, offset: int, data: str, code: str, *, fixed: bool = False
    ) -> None:
        self._unit.pieces.append((text, offset, fixed))
        self._unit.starts.append(self._size)
        self._text.append(data)
        self._mask.append(code)
        self._size += len(data)

    def _open(
        self, word: str, rest: str, offset: int, groups: list[_Group], following: str
    ) -> _Group:
        group = _Group(offset, outer=not groups or groups[-1].active)
        if word == "if":
            condition = rest
        else:
            name = _FIRST_NAME.match(rest)
            condition = f"{'!' * (word == 'ifndef')}defined({name.group() if name else ''})"
            if word == "ifndef" and name and _defines(following, name.group()):
                # An include guard, or a default for what the including file may define.
                condition = str(int(name.group() not in self.macros))
        self._enter(group, condition)
        return group

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

    def _leave(self, group: _Group) -> None:
        if group.active and group.noted and self._size > group.start:
            self._regions.append(Region(group.start, self._size, group.note, group.known))

    def _turn(self, text: Text, offset: int, word: str, rest: str, groups: list[_Group]) -> None:
        if not groups:
            raise text.error(offset, f"#{word} without #if")
        group = groups[-1]
        self._leave(group)
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


def _defines(directive: str, name: str) -> bool:
    match = _DIRECTIVE.match(directive)
    return bool(match and match.group(1) == "define" and re.match(rf"{name}\b", match.group(2)))


# BENCHMARK_UNARY(func) NVBENCH_BENCH_TYPES(func##_bench, ...)
_DEFINE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\((?P<parameters>[^()]*)\))?(?P<body>.*)", re.DOTALL
)
# "tile_" #name, func ## _bench
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\s*##\s*|#\s*\w+|\w+|\s+|.', re.DOTALL)
_BRACKET = re.compile(r"[(){}\[\],]")
REGISTERS = "NVBENCH_BENCH"
MAX_BODY = 20_000


# Macros: values for conditions, and function-like ones that register benchmarks


def parse_macro(text: str) -> Macro | None:
    """Parses the text behind `#define`."""
    match = _DEFINE.match(text)
    if match is None or len(text) > MAX_BODY:
        return None
    parameter_list = match["parameters"]
    parameters = (
        None
        if parameter_list is None
        else tuple(parameter.strip() for parameter in parameter_list.split(","))
    )
    return Macro(match["name"], parameters, match["body"].strip())


def expand(macro: Macro, data: str, mask: str, opening: int) -> tuple[str, int]:
    """Expands the call whose bracket is at `opening`; returns the text and the end of the call."""
    arguments: list[str] = []
    depth, argument_start = 0, opening + 1
    for match in _BRACKET.finditer(mask, opening):
        sign = match.group()
        if sign != ",":
            depth += 1 if sign in "({[" else -1
        if depth == 0 or (sign == "," and depth == 1):
            arguments.append(data[argument_start : match.start()].strip())
            argument_start = match.end()
        if depth == 0:
            return _substitute(macro, arguments), match.end()
    return "", -1


def _substitute(macro: Macro, arguments: list[str]) -> str:
    padded = arguments + [""] * len(macro.parameters or ())
    values = dict(zip(macro.parameters or (), padded, strict=False))
    parts: list[str] = []
    for part in _PART.findall(macro.body):
        if "##" in part and part.strip() == "##":
            continue
        if part.startswith("#"):
            name = part[1:].strip()
            parts.append(_quoted(values.get(name, name)))
        else:
            parts.append(values.get(part, part))
    return "".join(parts)


def _quoted(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def mask_strings(text: str) -> str:
    """Replaces string literals with spaces."""
    return _STRING.sub(lambda match: " " * len(match.group()), text)


# Reading files


def read_text(path: Path, root: Path) -> Text:
    """Reads a text file below `root`."""
    text = Text(path.as_posix(), read_bytes(path, root))
    text.check_bytes()
    return text
