"""Joins a benchmark's source and the neighbours that it includes, as the preprocessor would.

Conditions that the build decides are followed; the platform's are assumed and noted; of the rest
every branch stays.
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
"""Includes within includes."""
# "#  ifdef TUNE_T"
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")
_QUOTED = re.compile(r'"([^"\n]+)"')
_FIRST_NAME = re.compile(r"\w+")


@dataclass(slots=True)
class _Group:
    """An `#if` that is open."""

    opened: int
    outer: bool
    active: bool = False
    settled: bool = False
    """An earlier branch is surely the one."""
    noted: bool = False
    """A condition of the group is worth a note."""
    known: bool = True
    note: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: str

    @property
    def registers(self) -> bool:
        """Whether a call of it registers a benchmark."""
        return self.parameters is not None and REGISTERS in self.body


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
        """A range of the unit without white space at its ends."""
        part = self.text[start:end]
        lead = len(part) - len(part.lstrip())
        return Passage(self, start + lead, max(start + lead, start + len(part.rstrip())))


class Sources:
    """The files that were read, or why they could not be."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, Path], Text | SourceError] = {}

    def read(self, path: Path, root: Path) -> Text:
        """The file, which lies inside of `root`, or the error that it gave the first time."""
        if (root, path) not in self._known:
            try:
                self._known[root, path] = _read(path, root)
            except SourceError as error:
                self._known[root, path] = error
        known = self._known[root, path]
        if isinstance(known, SourceError):
            raise known
        return known


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


_SIGN = re.compile(r"[(){}\[\]<>,]")
_UNIT_BRACKET = re.compile(r"[(){}\[\]]")
_OPENS = {"(": ")", "{": "}", "[": "]"}


@dataclass(slots=True)
class Preprocessor:
    """The state over all files of one unit."""

    sources: Sources
    facts: Knowledge
    root: Path
    """The folder that all files lie in: an include that leads out of it is refused."""
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
        """What was joined so far."""
        self._unit.text, self._unit.mask = "".join(self._text), "".join(self._mask)
        self._unit.regions = tuple(self._regions)
        return self._unit

    def add(self, path: Path, depth: int = 0) -> None:
        """Takes a file in, and what it includes."""
        text = self.sources.read(path, self.root)
        self._seen.add(path.resolve())
        self.take(text, path.parent, depth)

    def take(self, text: Text, folder: Path, depth: int = 0) -> None:
        """Takes a text in, whose includes stand in `folder`."""
        data, code = text.uncommented.decode("latin-1"), text.code.decode("latin-1")
        groups: list[_Group] = []
        at = 0
        spans = text.directives
        for index, (start, end) in enumerate(spans):
            if not groups or groups[-1].active:
                self._emit(text, at, data[at:start], code[at:start])
            at = end
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
            raise text.error(groups[-1].opened, "#if without an #endif")
        self._emit(text, at, data[at:], code[at:])

    def _emit(self, text: Text, start: int, data: str, code: str) -> None:
        """Adds a part of a file; macros that register benchmarks are expanded."""
        done = 0
        calls = [name for name, macro in self.macros.items() if macro.registers]
        if calls:
            names = "|".join(map(re.escape, calls))
            for match in re.finditer(rf"\b({names})\s*\(", code):
                if match.start() < done:
                    continue
                body, end = expand(self.macros[match.group(1)], data, code, match.end() - 1)
                if end < 0:
                    raise text.error(start + match.end() - 1, "'(' is never closed")
                self._append(
                    text, start + done, data[done : match.start()], code[done : match.start()]
                )
                self._append(text, start + match.start(), body, mask_strings(body), fixed=True)
                done = end
        self._append(text, start + done, data[done:] + "\n", code[done:] + "\n")

    def _append(self, text: Text, at: int, data: str, code: str, *, fixed: bool = False) -> None:
        self._unit.pieces.append((text, at, fixed))
        self._unit.starts.append(self._size)
        self._text.append(data)
        self._mask.append(code)
        self._size += len(data)

    def _open(self, word: str, rest: str, at: int, groups: list[_Group], following: str) -> _Group:
        group = _Group(at, outer=not groups or groups[-1].active)
        if word == "if":
            condition = rest
        else:
            name = _FIRST_NAME.match(rest)
            condition = f"{'!' * (word == 'ifndef')}defined({name.group() if name else ''})"
            if word == "ifndef" and name and _defines(following, name.group()):
                # An include guard, or a default for what the includer may have set.
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
        spelled = " ".join(condition.split())
        group.note = spelled if group.active else f"!({spelled})"
        group.start = self._size

    def _leave(self, group: _Group) -> None:
        if group.active and group.noted and self._size > group.start:
            self._regions.append(Region(group.start, self._size, group.note, group.known))

    def _turn(self, text: Text, at: int, word: str, rest: str, groups: list[_Group]) -> None:
        if not groups:
            raise text.error(at, f"#{word} without an #if")
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
        """Takes note of a macro; of an include, returns the file that is still to be read."""
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
        """Whether a neighbour is there and not part of the unit: a cycle ends here."""
        try:
            return path.is_file() and path.resolve() not in self._seen
        except (OSError, RuntimeError, ValueError):
            return False

    def _lookup(self, name: str) -> int | None:
        asked = name.startswith("defined ")
        name = name.removeprefix("defined ").removeprefix("::")
        if macro := self.macros.get(name):
            return 1 if asked else self._value(macro)
        if name in self.facts.build.defined:
            return 1 if asked else self.facts.build.defined[name]
        if name in self.facts.platform:
            self._assumed = True
            return 1 if asked else self.facts.platform[name]
        gone = name.startswith(self.facts.build.undefined_prefixes)
        return 0 if gone or name in self.facts.build.undefined else None

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
        """The value of a condition in code, and whether it was assumed."""
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


# `#define`: values for conditions, and function-like macros that register benchmarks.


def parse_macro(text: str) -> Macro | None:
    """What follows `#define`."""
    match = _DEFINE.match(text)
    if match is None or len(text) > MAX_BODY:
        return None
    given = match["parameters"]
    parameters = None if given is None else tuple(p.strip() for p in given.split(","))
    return Macro(match["name"], parameters, match["body"].strip())


def expand(macro: Macro, data: str, mask: str, opening: int) -> tuple[str, int]:
    """The macro's body for the call whose bracket is at `opening`, and where the call ends."""
    arguments: list[str] = []
    depth, at = 0, opening + 1
    for match in _BRACKET.finditer(mask, opening):
        sign = match.group()
        if sign != ",":
            depth += 1 if sign in "({[" else -1
        if depth == 0 or (sign == "," and depth == 1):
            arguments.append(data[at : match.start()].strip())
            at = match.end()
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


# A benchmark as the compiler sees it: one text out of several files, with places kept.


def mask_strings(text: str) -> str:
    """The same text with spaces for string literals."""
    return _STRING.sub(lambda m: " " * len(m.group()), text)


# Reads files, each once, and refuses what cannot be a benchmark source.


def _read(path: Path, root: Path) -> Text:
    text = read_text(path, root)
    text.check_ends()
    return text


def read_text(path: Path, root: Path) -> Text:
    """A file inside of `root` that holds text."""
    text = Text(path.as_posix(), read_bytes(path, root))
    text.check_bytes()
    return text
