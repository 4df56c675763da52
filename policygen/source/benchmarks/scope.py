"""The names of a unit: aliases, type strings, variables."""

import re
from dataclasses import dataclass, field

from policygen.source.benchmarks.preprocess import Preprocessor
from policygen.source.benchmarks.unit import Passage, PreprocessedUnit

# using value_types = nvbench::type_list<int8_t, int16_t>;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*(?:\[\[[^]]{0,80}\]\]\s*)?=")
# using ::cuda::std::false_type;
_USING = re.compile(r"\busing\s+((?:::)?(?:\w+::)+(\w+))\s*;")
_TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]{1,400}?)\s+(\w+)\s*;")
# Such as: NVBENCH_DECLARE_TYPE_STRINGS(complex32, "C32", "complex32");
_STRINGS = re.compile(r'\bNVBENCH_DECLARE_TYPE_STRINGS\s*\(([^;"]{1,400}?),\s*"([^"]*)"')
_ENUMS = re.compile(r"\bNVBENCH_DECLARE_ENUM_TYPE_STRINGS\s*\(")
# Such as: case Mode::Latency: return "latency";
_CASE = re.compile(r'\bcase\s+([\w:]+)\s*:\s*return\s*"([^"]*)"')
_CLASS = re.compile(r"\b(?:struct|class)\s+(\w+)[^;{}()<>]{0,200}\{")


@dataclass(slots=True)
class Scope:
    """Names in the order of search: a benchmark's own files, then the helper header."""

    preprocessor: Preprocessor
    unit: PreprocessedUnit
    outer: "Scope | None" = None
    aliases: dict[str, Passage] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    classes: dict[str, bool] = field(default_factory=dict)
    """Types that the unit defines; whether their full name is known."""
    _variables: dict[str, Passage | None] = field(default_factory=dict)

    def alias(self, name: str) -> Passage | None:
        """The first definition of a name."""
        if name in self.aliases:
            return self.aliases[name]
        return self.outer.alias(name) if self.outer else None

    def string(self, name: str) -> str | None:
        """The declared input string of a type."""
        if name in self.strings:
            return self.strings[name]
        return self.outer.string(name) if self.outer else None

    def ending(self, name: str) -> str | None:
        """The input string of the one declared type whose name ends so, whatever its namespace."""
        found = {s for n, s in self.strings.items() if n.rpartition("::")[2] == name}
        if len(found) == 1:
            return found.pop()
        return self.outer.ending(name) if self.outer and not found else None

    def variable(self, name: str) -> Passage | None:
        """The initialiser of a variable."""
        if name not in self._variables:
            self._variables[name] = self._initialiser(name)
        return self._variables[name]

    def _initialiser(self, name: str) -> Passage | None:
        match = re.search(rf"\b{name}\s*(?:=(?!=)|(?=\{{))\s*", self.unit.mask)
        end = self.unit.mask.find(";", match.end()) if match else -1
        return self.unit.passage(match.end(), end) if match and end >= 0 else None


def read_scope(preprocessor: Preprocessor, outer: Scope | None = None) -> Scope:
    """All names that a unit declares."""
    unit = preprocessor.unit()
    scope = Scope(preprocessor, unit, outer)
    end = 0
    for match in _ALIAS.finditer(unit.mask):
        end = unit.mask.find(";", match.end()) if end < match.end() else end
        if end < 0:
            break
        scope.aliases.setdefault(match.group(1), unit.passage(match.end(), end))
    for pattern in (_USING, _TYPEDEF):
        for match in pattern.finditer(unit.mask):
            scope.aliases.setdefault(match.group(2), unit.passage(*match.span(1)))
    for match in _STRINGS.finditer(unit.text):
        _declare(scope, match.group(1), match.group(2))
    for match in _ENUMS.finditer(unit.mask):
        for case in _CASE.finditer(unit.text, match.end(), unit.closing(match.end() - 1)):
            scope.strings.setdefault(canonical(case.group(1)), case.group(2))
    depth = _Depths(unit.mask)
    for match in _CLASS.finditer(unit.mask):
        scope.classes.setdefault(match.group(1), depth(match.start()) == 0)
    return scope


def _declare(scope: Scope, name: str, string: str) -> None:
    """Under its name, and under what that is an alias of."""
    name = canonical(name)
    for _ in range(8):
        scope.strings.setdefault(name, string)
        alias = scope.alias(name)
        if alias is None:
            return
        name = canonical(alias.text)


class _Depths:
    """How many braces are open at a place; places are asked for in order."""

    def __init__(self, mask: str) -> None:
        self.mask, self.at, self.depth = mask, 0, 0

    def __call__(self, offset: int) -> int:
        part = self.mask[self.at : offset]
        self.depth += part.count("{") - part.count("}")
        self.at = offset
        return self.depth


def canonical(name: str) -> str:
    """A type's spelling without what does not matter: `::cuda::std::complex< float >`."""
    name = re.sub(r"\b(?:const|typename)\b", " ", name)
    name = re.sub(r"\s*(::|[<>,*&])\s*", r"\1", " ".join(name.split()))
    return re.sub(r"(^|[<,])::", r"\1", name)
