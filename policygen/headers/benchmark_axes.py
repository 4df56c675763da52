"""`NVBENCH_BENCH…` registrations: sub-benchmarks and their axes."""

import re
import struct
from dataclasses import dataclass, field
from typing import Literal

from policygen.headers.expressions import evaluate
from policygen.headers.preprocessor import Passage, PreprocessedUnit, Preprocessor, Region
from policygen.model.benchmarks import Axis, SubBenchmark

# Such as: NVBENCH_BENCH_TYPES(basic, NVBENCH_TYPE_AXES(all_types, offset_types))
_REGISTRATION = re.compile(r"\bNVBENCH_BENCH(?:_TYPES)?\s*\(")
# .set_name("base")
_CALL = re.compile(r"\s*(?:\.|->)\s*(\w+)\s*\(")
_TYPE_AXES = re.compile(r"(?:(?:\w+::)*type_list\s*<|NVBENCH_TYPE_AXES\s*\()")
Kind = Literal["int64", "float64", "string"]
_KINDS: dict[str, Kind] = {
    "add_int64_axis": "int64",
    "add_int64_power_of_two_axis": "int64",
    "add_float64_axis": "float64",
    "add_string_axis": "string",
}
_POWER_OF_TWO = "power_of_two"
_FEW_NAMES = ("T", "U", "V", "W")


@dataclass(slots=True)
class _Registration:
    at: int
    name: str
    type_axes: list[Passage]
    type_names: tuple[str, ...] = ()
    runtime: list[Axis] = field(default_factory=list)


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


def read_registrations(scope: Scope) -> tuple[SubBenchmark, ...]:
    """All registrations of a unit, in its order."""
    return tuple(_read(scope, match) for match in _REGISTRATION.finditer(scope.unit.mask))


def _read(scope: Scope, match: re.Match[str]) -> SubBenchmark:
    unit = scope.unit
    closing = unit.closing(match.end() - 1)
    what = unit.passage(match.end(), closing)
    # The second argument holds commas of its own, and may be no macro: all that follows the first.
    name, *types = what.split() or [what]
    axes = _type_axes(scope, unit.passage(types[0].start, what.end)) if types else []
    one = _Registration(match.start(), name.spelling, axes)
    at = closing + 1
    while call := _CALL.match(unit.mask, at):
        end = unit.closing(call.end() - 1)
        _apply(scope, one, call.group(1), unit.passage(call.end(), end).split())
        at = end + 1
    text, place = unit.origin(one.at)
    return SubBenchmark(
        name=one.name,
        axes=(*_read_types(scope, one), *one.runtime),
        source=text.path,
        line=text.line(place),
        conditions=_conditions(unit, one.at),
    )


def _conditions(unit: PreprocessedUnit, at: int) -> tuple[str, ...]:
    inside = sorted(
        (region.start, -region.end, region.condition)
        for region in unit.regions
        if region.start <= at < region.end
    )
    return tuple(condition for _, _, condition in inside)


def _type_axes(scope: Scope, where: Passage, depth: int = 0) -> list[Passage]:
    """The list of each type axis."""
    match = _TYPE_AXES.match(where.text)
    if match is None:
        alias = scope.alias(where.text)
        return _type_axes(scope, alias, depth + 1) if alias and depth < MAX_DEPTH else []
    if match.group().endswith("("):
        return where.inside(match.end() - 1).split(angles=True)
    return where.template(match.end()) or []


def _apply(scope: Scope, one: _Registration, call: str, parts: list[Passage]) -> None:
    if call == "set_name" and parts:
        one.name = literal(parts[0].text) or parts[0].spelling
    elif call == "set_type_axes_names" and parts:
        one.type_names = read_values(scope, parts[0], "string").values
    elif call in _KINDS and len(parts) > 1:
        one.runtime.append(_runtime_axis(scope, call, parts))


def _runtime_axis(scope: Scope, call: str, parts: list[Passage]) -> Axis:
    kind = _KINDS[call]
    pow2 = any(_POWER_OF_TWO in text for text in (call, *(part.text for part in parts[2:])))
    name = literal(parts[0].text)
    found = read_values(scope, parts[1], kind)
    return Axis(
        name=(parts[0].spelling if name is None else name) + "[pow2]" * pow2,
        kind=kind,
        flags="pow2" * pow2,
        values=found.values,
        spelling=parts[1].spelling,
        complete=found.complete and name is not None,
    )


def _read_types(scope: Scope, one: _Registration) -> list[Axis]:
    names = one.type_names
    count = len(one.type_axes)
    default = _FEW_NAMES if count <= len(_FEW_NAMES) else [f"T{i}" for i in range(count)]
    axes: list[Axis] = []
    for index, where in enumerate(one.type_axes):
        found = read_list(scope, where, one.at)
        axes.append(
            Axis(
                name=names[index] if index < len(names) else default[index],
                kind="type",
                values=tuple(found.values),
                spelling=where.spelling,
                complete=found.complete,
                conditions=tuple(found.conditions),
            )
        )
    return axes


MAX_DEPTH = 40
# nvbench::type_list<int8_t, int16_t>
_TEMPLATE = re.compile(r"(?:typename\s+)?(?:::\s*)?((?:\w+\s*::\s*)*)(\w+)\s*<")


@dataclass(slots=True)
class TypeList:
    """The strings of a list, whether they are all, and the conditions under which they are."""

    values: list[str] = field(default_factory=list)
    complete: bool = True
    conditions: list[str] = field(default_factory=list)

    def extend(self, other: "TypeList") -> None:
        """Appends another list."""
        self.values += other.values
        self.complete &= other.complete
        self.note(other.conditions)

    def note(self, conditions: list[str]) -> None:
        """Adds conditions that are not there yet."""
        self.conditions += [c for c in conditions if c not in self.conditions]


# Type lists to NVBench's input strings: `fundamental_types` is I8, I16, I32 and so on.


def read_list(scope: Scope, where: Passage, at: int, depth: int = 0) -> TypeList:
    """The list that stands at a place; `at` is where its benchmark is registered."""
    match = _TEMPLATE.match(where.text)
    if depth > MAX_DEPTH or match is None:
        return _read_alias(scope, canonical(where.text), at, depth)
    parts = where.template(match.end())
    reader = _READERS.get(_role(scope, match.group(2)))
    if parts is None or reader is None:
        return TypeList(complete=False)
    return reader(scope, parts, at, depth)


def _role(scope: Scope, name: str) -> str:
    """What a template does with its arguments."""
    lists = scope.preprocessor.facts.lists
    return next((role for role in _READERS if name in getattr(lists, role)), "")


def _is_list(scope: Scope, where: Passage) -> bool:
    """Whether a template argument is a list itself, by its name or what that stands for."""
    spelling = canonical(where.text)
    for _ in range(MAX_DEPTH):
        match = _TEMPLATE.match(spelling)
        if match:
            return _role(scope, match.group(2)) != ""
        alias = scope.alias(spelling.rpartition("::")[2])
        if alias is None:
            return False
        spelling = canonical(alias.text)
    return False


def _types(scope: Scope, parts: list[Passage], _at: int = 0, _depth: int = 0) -> TypeList:
    return _each([type_string(scope, part.text) for part in parts])


def _constants(scope: Scope, parts: list[Passage], _at: int, _depth: int) -> TypeList:
    return _each([_constant(scope, part.text) for part in parts])


def _each(strings: list[tuple[str, bool]]) -> TypeList:
    return TypeList([string for string, _ in strings], all(known for _, known in strings))


def _join(scope: Scope, parts: list[Passage], at: int, depth: int) -> TypeList:
    """Lists first, then single types: CCCL 2.7 gives the type before the list."""
    found = TypeList()
    nested = [part for part in parts if _is_list(scope, part)]
    for part in nested:
        found.extend(read_list(scope, part, at, depth + 1))
    found.extend(_types(scope, [part for part in parts if part not in nested]))
    return found


def _choose(scope: Scope, parts: list[Passage], at: int, depth: int) -> TypeList:
    if len(parts) != 3:
        return TypeList(complete=False)
    condition = parts[0].spelling
    value, assumed = scope.preprocessor.condition(condition)
    found = read_list(scope, parts[2 if value == 0 else 1], at, depth + 1)
    found.complete &= value is not None
    if assumed or value is None:
        found.note([f"!({condition})" if value == 0 else condition])
    return found


_READERS = {"plain": _types, "values": _constants, "joins": _join, "choices": _choose}


def _read_alias(scope: Scope, name: str, at: int, depth: int) -> TypeList:
    alias = scope.alias(name.rpartition("::")[2])
    if alias is None or depth > MAX_DEPTH:
        return TypeList(complete=False)
    here = at if alias.unit is scope.unit else -1
    found = read_list(scope, alias, here, depth + 1)
    for region in alias.unit.regions:
        if _matters(region, alias, here):
            found.complete &= region.known
            found.note([region.condition])
    return found


def _matters(region: Region, alias: Passage, at: int) -> bool:
    """Whether a conditional part changes a list, and not just the benchmark as a whole."""
    if region.start <= at < region.end or region.start >= alias.end or region.end <= alias.start:
        return False
    return bool(alias.unit.mask[region.start : region.end].strip())


def type_string(scope: Scope, spelling: str) -> tuple[str, bool]:
    """NVBench's input string of a type, and whether it is certain."""
    name = first = canonical(spelling)
    for _ in range(MAX_DEPTH):
        if string := scope.string(name) or _builtin(scope, name):
            return string, True
        if constant := _integral_constant(scope, name):
            return constant
        alias = scope.alias(name) or scope.alias(name.rpartition("::")[2])
        if alias is None or canonical(alias.text) == name:
            break
        name = canonical(alias.text)
    last = name.rpartition("::")[2]
    if string := scope.ending(last):
        return string, True
    # NVBench gives a type without declared strings its C++ name.
    return first, scope.classes.get(first, False)


def _builtin(scope: Scope, name: str) -> str | None:
    types = scope.preprocessor.facts.types
    space, _, last = name.rpartition("::")
    if space and space not in types.namespaces:
        return None
    for _ in range(2):
        if last in types.strings:
            return types.strings[last]
        last = types.same.get(last, last)
    return types.strings.get(last) or scope.string(last)


def _integral_constant(scope: Scope, name: str) -> tuple[str, bool] | None:
    match = _TEMPLATE.match(name)
    if match is None or match.group(2) not in scope.preprocessor.facts.types.constants:
        return None
    return _constant(scope, name[match.end() : name.rindex(">")].rpartition(",")[2])


def _constant(scope: Scope, spelling: str) -> tuple[str, bool]:
    value = evaluate(spelling, lambda name: constant(scope, name))
    if value is not None:
        return str(value), True
    name = canonical(spelling)
    string = scope.string(name)
    return string or name.rpartition("::")[2], string is not None


def constant(scope: Scope, name: str, depth: int = 0) -> int | None:
    """The value of an integer constant of the unit."""
    variable = scope.variable(name) if name.isidentifier() and depth < MAX_DEPTH else None
    if variable is None:
        return None
    spelling = variable.text.removeprefix("{").removesuffix("}")
    return evaluate(spelling, lambda other: constant(scope, other, depth + 1))


VALUES_DEPTH = 20
MAX_VALUES = 10_000
INT64 = 1 << 63
_RANGE = re.compile(r"(?:\w+\s*::\s*)*range\s*(?:<[^<>()]*>\s*)?\(")
# std::vector<nvbench::int64_t>{25, 31}
_LIST = re.compile(
    r"(?:(?:\w+\s*::\s*)*(?:vector|array|initializer_list)\s*(?:<[^{}();]*>)?\s*)?([{(])"
)
# What stands alone in brackets is the list itself: std::vector<int>({1, 2}).
_WHOLE = re.compile(rf"\{{|{_RANGE.pattern}|(?:\w+\s*::\s*)*(?:vector|array)\b")
_NAME = re.compile(r"(?:::)?(?:\w+::)*([A-Za-z_]\w*)")
_FLOAT = re.compile(r"([+-]?\s*(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlL]?)")
_STRINGS = re.compile(r'(?:"((?:[^"\\\n]|\\.)*)"\s*)+')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class AxisValues:
    """What is known of an axis; `complete` is False when something is missing."""

    values: tuple[str, ...] = ()
    complete: bool = False


# The values of runtime axes, as NVBench prints them in its input strings.


def read_values(scope: Scope, where: Passage, kind: str, depth: int = 0) -> AxisValues:
    """The values that an expression gives: a range, a list, or the name of one."""
    if depth > VALUES_DEPTH:
        return AxisValues()
    if match := _NAME.fullmatch(where.text):
        variable = scope.variable(match.group(1))
        return read_values(scope, variable, kind, depth + 1) if variable else AxisValues()
    if match := _RANGE.match(where.text):
        parts = where.inside(match.end() - 1).split()
        return _range([part.text for part in parts], kind, scope)
    if match := _LIST.match(where.text):
        parts = where.inside(match.end() - 1).split()
        if len(parts) == 1 and _WHOLE.match(parts[0].text):
            return read_values(scope, parts[0], kind, depth + 1)
        if match.group(1) == "{":
            return _list([part.text for part in parts], kind, scope)
    return AxisValues()


def _list(parts: list[str], kind: str, scope: Scope) -> AxisValues:
    values = [_value(part, kind, scope) for part in parts]
    known = tuple(value for value in values if value is not None)
    return AxisValues(known, len(known) == len(values))


def _value(text: str, kind: str, scope: Scope) -> str | None:
    if kind == "string":
        return literal(text)
    if kind == "float64":
        number = _float(text, scope)
        return None if number is None else f"{number:.5g}"
    integer = _integer(text, scope)
    return None if integer is None else str(integer)


def literal(text: str) -> str | None:
    """The text of one string literal or of several in a row."""
    if not _STRINGS.fullmatch(text):
        return None
    joined = "".join(_STRING.findall(text))
    plain = _ESCAPE.sub(r"\1", joined)
    return plain.encode("latin-1").decode("utf-8", "replace")


def _integer(text: str, scope: Scope) -> int | None:
    value = evaluate(text, lambda name: constant(scope, name))
    return value if value is not None and -INT64 <= value < INT64 else None


def _float(text: str, scope: Scope) -> float | None:
    match = _FLOAT.fullmatch(text)
    if match is None:
        integer = _integer(text, scope)
        return None if integer is None else float(integer)
    number = float("".join(match.group(1).split()).replace("'", ""))
    if match.group(2) in {"f", "F"} and abs(number) < 3e38:
        number = float(struct.unpack("f", struct.pack("f", number))[0])
    return number


def _range(parts: list[str], kind: str, scope: Scope) -> AxisValues:
    """`nvbench::range(start, end, step)`: the end belongs to it."""
    if len(parts) not in {2, 3}:
        return AxisValues()
    if kind == "float64":
        numbers = [_float(part, scope) for part in [*parts, "1"][:3]]
    else:
        numbers = [_integer(part, scope) for part in [*parts, "1"][:3]]
    start, end, step = numbers
    if start is None or end is None or step is None or step <= 0:
        return AxisValues()
    if (end - start) / step > MAX_VALUES:
        return AxisValues()
    values: list[str] = []
    while start <= end:
        values.append(f"{start:.5g}" if kind == "float64" else str(start))
        start += step
    return AxisValues(tuple(values), complete=True)


# using value_types = nvbench::type_list<int8_t, int16_t>;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*(?:\[\[[^]]{0,80}\]\]\s*)?=")
# using ::cuda::std::false_type;
_USING = re.compile(r"\busing\s+((?:::)?(?:\w+::)+(\w+))\s*;")
_TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]{1,400}?)\s+(\w+)\s*;")
# Such as: NVBENCH_DECLARE_TYPE_STRINGS(complex32, "C32", "complex32");
_SCOPE_STRINGS = re.compile(r'\bNVBENCH_DECLARE_TYPE_STRINGS\s*\(([^;"]{1,400}?),\s*"([^"]*)"')
_ENUMS = re.compile(r"\bNVBENCH_DECLARE_ENUM_TYPE_STRINGS\s*\(")
# Such as: case Mode::Latency: return "latency";
_CASE = re.compile(r'\bcase\s+([\w:]+)\s*:\s*return\s*"([^"]*)"')
_CLASS = re.compile(r"\b(?:struct|class)\s+(\w+)[^;{}()<>]{0,200}\{")


# The names of a unit: aliases, type strings, variables.


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
    for match in _SCOPE_STRINGS.finditer(unit.text):
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
