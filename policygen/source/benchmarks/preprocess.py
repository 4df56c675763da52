"""Joins a benchmark's source and the neighbours that it includes, as the preprocessor would.

Conditions that the build decides are followed; the platform's are assumed and noted; of the rest
every branch stays.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from policygen.source.benchmarks.expression import evaluate
from policygen.source.benchmarks.knowledge import Knowledge
from policygen.source.benchmarks.macros import Macro, expand, parse_macro
from policygen.source.benchmarks.sources import Sources
from policygen.source.benchmarks.unit import PreprocessedUnit, Region, mask_strings
from policygen.source.text import Text

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
