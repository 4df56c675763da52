"""Reads `NVBENCH_BENCH…` registrations: sub-benchmarks and their axes."""

import re
import struct
from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from policygen.headers.expressions import INT64, evaluate
from policygen.headers.preprocessor import Passage, PreprocessedUnit, Preprocessor, Region
from policygen.model.benchmarks import Axis, SubBenchmark

# For example: NVBENCH_BENCH_TYPES(basic, NVBENCH_TYPE_AXES(all_types, offset_types))
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
_DEFAULT_NAMES = ("T", "U", "V", "W")


@dataclass(frozen=True, slots=True)
class Scope:
    """Names in search order: a benchmark's own files, then the helper header."""

    preprocessor: Preprocessor
    unit: PreprocessedUnit
    aliases: ChainMap[str, Passage]
    """The first definition of each name."""
    strings: ChainMap[str, str]
    """The declared input strings of types."""
    classes: dict[str, bool] = field(default_factory=dict)
    """Types that the unit defines → whether their full name is known."""

    def ending(self, name: str) -> str | None:
        """Returns the input string of the only declared type with this unqualified name."""
        for declared in self.strings.maps:
            candidates = {declared[key] for key in declared if key.rpartition("::")[2] == name}
            if candidates:
                return candidates.pop() if len(candidates) == 1 else None
        return None

    def variable(self, name: str) -> Passage | None:
        """Returns the initializer of a variable."""
        match = re.search(rf"\b{name}\s*(?:=(?!=)|(?=\{{))\s*", self.unit.mask)
        end = self.unit.mask.find(";", match.end()) if match else -1
        return self.unit.passage(match.end(), end) if match and end >= 0 else None


def read_registrations(scope: Scope) -> tuple[SubBenchmark, ...]:
    """Reads all registrations of a unit, in order."""
    return tuple(_read(scope, match) for match in _REGISTRATION.finditer(scope.unit.mask))


def _read(scope: Scope, match: re.Match[str]) -> SubBenchmark:
    unit, at = scope.unit, match.start()
    closing = unit.closing(match.end() - 1)
    arguments = unit.passage(match.end(), closing)
    # The second argument may contain commas and is not always a macro: take the rest.
    function, *types = arguments.split() or [arguments]
    lists = _type_axes(scope, unit.passage(types[0].start, arguments.end)) if types else []
    name, type_names, runtime = function.spelling, list[str](), list[Axis]()
    while call := _CALL.match(unit.mask, closing + 1):
        closing = unit.closing(call.end() - 1)
        parts = unit.passage(call.end(), closing).split()
        if call[1] == "set_name" and parts:
            name = literal(parts[0].text) or parts[0].spelling
        elif call[1] == "set_type_axes_names" and parts:
            type_names = read_values(scope, parts[0], "string").values
        elif call[1] in _KINDS and len(parts) > 1:
            runtime.append(_runtime_axis(scope, call[1], parts))
    text, place = unit.origin(at)
    many = len(lists) > len(_DEFAULT_NAMES)
    defaults = [f"T{i}" for i in range(len(lists))] if many else _DEFAULT_NAMES
    names = [*type_names, *defaults[len(type_names) :]]
    types_by_name = zip(names, lists, strict=False)
    return SubBenchmark(
        name=name,
        axes=(*(_type_axis(scope, *pair, at) for pair in types_by_name), *runtime),
        source=text.path,
        line=text.line(place),
        conditions=_conditions(unit, at),
    )


def _conditions(unit: PreprocessedUnit, offset: int) -> tuple[str, ...]:
    enclosing = sorted(
        (region.start, -region.end, region.condition)
        for region in unit.regions
        if region.start <= offset < region.end
    )
    return tuple(condition for _, _, condition in enclosing)


def _type_axes(scope: Scope, passage: Passage, depth: int = 0) -> list[Passage]:
    """Returns the list of each type axis."""
    match = _TYPE_AXES.match(passage.text)
    if match is None:
        alias = scope.aliases.get(passage.text)
        return _type_axes(scope, alias, depth + 1) if alias and depth < MAX_DEPTH else []
    if match.group().endswith("("):
        return passage.inside(match.end() - 1).split(angles=True)
    return passage.template(match.end()) or []


def _runtime_axis(scope: Scope, call: str, parts: list[Passage]) -> Axis:
    kind = _KINDS[call]
    pow2 = any(_POWER_OF_TWO in text for text in (call, *(part.text for part in parts[2:])))
    name = literal(parts[0].text)
    axis_values = read_values(scope, parts[1], kind)
    return Axis(
        name=(parts[0].spelling if name is None else name) + "[pow2]" * pow2,
        kind=kind,
        flags="pow2" * pow2,
        values=tuple(axis_values.values),
        spelling=parts[1].spelling,
        complete=axis_values.complete and name is not None,
    )


def _type_axis(scope: Scope, name: str, passage: Passage, registered_at: int) -> Axis:
    types = read_list(scope, passage, registered_at)
    return Axis(
        name=name,
        kind="type",
        values=tuple(types.values),
        spelling=passage.spelling,
        complete=types.complete,
        conditions=tuple(types.conditions),
    )


MAX_DEPTH = 40
# nvbench::type_list<int8_t, int16_t>
_TEMPLATE = re.compile(r"(?:typename\s+)?(?:::\s*)?((?:\w+\s*::\s*)*)(\w+)\s*<")


@dataclass(slots=True)
class AxisValues:
    """The known input strings of an axis, whether they are complete, and their conditions."""

    values: list[str] = field(default_factory=list)
    complete: bool = True
    conditions: list[str] = field(default_factory=list)

    def extend(self, other: "AxisValues") -> None:
        """Appends another list."""
        self.values += other.values
        self.complete &= other.complete
        self.note(other.conditions)

    def note(self, conditions: list[str]) -> None:
        """Adds new conditions."""
        self.conditions = list(dict.fromkeys([*self.conditions, *conditions]))


# Type lists as NVBench input strings: `fundamental_types` is I8, I16, I32 and so on


def read_list(scope: Scope, passage: Passage, registered_at: int, depth: int = 0) -> AxisValues:
    """Reads a type list; `registered_at` is the offset of the benchmark's registration."""
    match = _TEMPLATE.match(passage.text)
    if depth > MAX_DEPTH or match is None:
        return _read_alias(scope, canonical(passage.text), registered_at, depth)
    role, parts = _role(scope, match.group(2)), passage.template(match.end())
    if not role or parts is None:
        return AxisValues(complete=False)
    if role in {"plain", "values"}:
        read = type_string if role == "plain" else _constant
        return _strings(read(scope, part.text) for part in parts)
    read_lists = _read_joined if role == "joins" else _read_choice
    return read_lists(scope, parts, registered_at, depth)


def _role(scope: Scope, name: str) -> str:
    """Returns what a template does with its arguments."""
    return next((role for role, names in scope.preprocessor.facts.lists if name in names), "")


def _is_list(scope: Scope, passage: Passage) -> bool:
    """Tells whether a template argument is itself a list, directly or through an alias."""
    spelling = canonical(passage.text)
    for _ in range(MAX_DEPTH):
        match = _TEMPLATE.match(spelling)
        if match:
            return _role(scope, match.group(2)) != ""
        alias = scope.aliases.get(spelling.rpartition("::")[2])
        if alias is None:
            return False
        spelling = canonical(alias.text)
    return False


def _strings(strings: Iterable[tuple[str, bool]]) -> AxisValues:
    pairs = list(strings)
    return AxisValues([string for string, _ in pairs], all(is_known for _, is_known in pairs))


def _read_joined(scope: Scope, parts: list[Passage], registered_at: int, depth: int) -> AxisValues:
    """Joins lists first, then single types: CCCL 2.7 puts the type before the list."""
    joined = AxisValues()
    nested = [part for part in parts if _is_list(scope, part)]
    for part in nested:
        joined.extend(read_list(scope, part, registered_at, depth + 1))
    single = [part for part in parts if part not in nested]
    joined.extend(_strings(type_string(scope, part.text) for part in single))
    return joined


def _read_choice(scope: Scope, parts: list[Passage], registered_at: int, depth: int) -> AxisValues:
    if len(parts) != 3:
        return AxisValues(complete=False)
    condition = parts[0].spelling
    value, assumed = scope.preprocessor.condition(condition)
    chosen = read_list(scope, parts[2 if value == 0 else 1], registered_at, depth + 1)
    chosen.complete &= value is not None
    if assumed or value is None:
        chosen.note([f"!({condition})" if value == 0 else condition])
    return chosen


def _read_alias(scope: Scope, name: str, registered_at: int, depth: int) -> AxisValues:
    alias = scope.aliases.get(name.rpartition("::")[2])
    if alias is None or depth > MAX_DEPTH:
        return AxisValues(complete=False)
    registered_here = registered_at if alias.unit is scope.unit else -1
    type_list = read_list(scope, alias, registered_here, depth + 1)
    for region in alias.unit.regions:
        if _matters(region, alias, registered_here):
            type_list.complete &= region.known
            type_list.note([region.condition])
    return type_list


def _matters(region: Region, alias: Passage, registered_at: int) -> bool:
    """Tells whether a conditional region changes the list, and not just the whole benchmark."""
    if (
        region.start <= registered_at < region.end
        or region.start >= alias.end
        or region.end <= alias.start
    ):
        return False
    return bool(alias.unit.mask[region.start : region.end].strip())


def type_string(scope: Scope, spelling: str) -> tuple[str, bool]:
    """Returns NVBench's input string of a type, and whether it is certain."""
    name = spelled_name = canonical(spelling)
    for _ in range(MAX_DEPTH):
        if string := scope.strings.get(name) or _builtin(scope, name):
            return string, True
        match = _TEMPLATE.match(name)
        if match and match.group(2) in scope.preprocessor.facts.types.constants:
            return _constant(scope, name[match.end() : name.rindex(">")].rpartition(",")[2])
        alias = scope.aliases.get(name.rpartition("::")[2])
        if alias is None or canonical(alias.text) == name:
            break
        name = canonical(alias.text)
    unqualified = name.rpartition("::")[2]
    if string := scope.ending(unqualified):
        return string, True
    # NVBench uses the C++ name of a type without declared strings.
    return spelled_name, scope.classes.get(spelled_name, False)


def _builtin(scope: Scope, name: str) -> str | None:
    types = scope.preprocessor.facts.types
    namespace, _, unqualified = name.rpartition("::")
    if namespace and namespace not in types.namespaces:
        return None
    for _ in range(2):
        if unqualified in types.strings:
            return types.strings[unqualified]
        unqualified = types.same.get(unqualified, unqualified)
    return types.strings.get(unqualified) or scope.strings.get(unqualified)


def _constant(scope: Scope, spelling: str) -> tuple[str, bool]:
    value = evaluate(spelling, lambda name: constant(scope, name))
    if value is not None:
        return str(value), True
    name = canonical(spelling)
    string = scope.strings.get(name)
    return string or name.rpartition("::")[2], string is not None


def constant(scope: Scope, name: str, depth: int = 0) -> int | None:
    """Returns the value of an integer constant of the unit."""
    variable = scope.variable(name) if name.isidentifier() and depth < MAX_DEPTH else None
    if variable is None:
        return None
    spelling = variable.text.removeprefix("{").removesuffix("}")
    return evaluate(spelling, lambda other: constant(scope, other, depth + 1))


VALUES_DEPTH = 20
MAX_VALUES = 10_000
_RANGE = re.compile(r"(?:\w+\s*::\s*)*range\s*(?:<[^<>()]*>\s*)?\(")
# std::vector<nvbench::int64_t>{25, 31}
_LIST = re.compile(
    r"(?:(?:\w+\s*::\s*)*(?:vector|array|initializer_list)\s*(?:<[^{}();]*>)?\s*)?([{(])"
)
# A single item in brackets is the list itself: std::vector<int>({1, 2})
_WHOLE = re.compile(rf"\{{|{_RANGE.pattern}|(?:\w+\s*::\s*)*(?:vector|array)\b")
_NAME = re.compile(r"(?:::)?(?:\w+::)*([A-Za-z_]\w*)")
_FLOAT = re.compile(r"([+-]?\s*(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlL]?)")
_STRINGS = re.compile(r'(?:"((?:[^"\\\n]|\\.)*)"\s*)+')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


# Runtime axes, as NVBench prints them in its input strings


def read_values(scope: Scope, passage: Passage, kind: str, depth: int = 0) -> AxisValues:
    """Reads the values of an expression: a range, a list, or the name of one."""
    if depth > VALUES_DEPTH:
        return AxisValues(complete=False)
    if match := _NAME.fullmatch(passage.text):
        if variable := scope.variable(match.group(1)):
            return read_values(scope, variable, kind, depth + 1)
    elif match := _RANGE.match(passage.text):
        parts = passage.inside(match.end() - 1).split()
        return _range([part.text for part in parts], kind, scope)
    elif match := _LIST.match(passage.text):
        parts = passage.inside(match.end() - 1).split()
        if len(parts) == 1 and _WHOLE.match(parts[0].text):
            return read_values(scope, parts[0], kind, depth + 1)
        if match.group(1) == "{":
            values = [_value(part.text, kind, scope) for part in parts]
            readable = [value for value in values if value is not None]
            return AxisValues(readable, len(readable) == len(values))
    return AxisValues(complete=False)


def _value(text: str, kind: str, scope: Scope) -> str | None:
    if kind == "string":
        return literal(text)
    if kind == "float64":
        number = _float(text, scope)
        return None if number is None else f"{number:.5g}"
    integer = _integer(text, scope)
    return None if integer is None else str(integer)


def literal(text: str) -> str | None:
    """Returns the text of one or several adjacent string literals."""
    if not _STRINGS.fullmatch(text):
        return None
    joined = "".join(_STRING.findall(text))
    return _ESCAPE.sub(r"\1", joined).encode("latin-1").decode("utf-8", "replace")


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
    """Expands `nvbench::range(start, end, step)`, which includes the end."""
    if len(parts) not in {2, 3}:
        return AxisValues(complete=False)
    read = _float if kind == "float64" else _integer
    start, end, step = (read(part, scope) for part in [*parts, "1"][:3])
    if start is None or end is None or step is None or step <= 0:
        return AxisValues(complete=False)
    if (end - start) / step > MAX_VALUES:
        return AxisValues(complete=False)
    values: list[str] = []
    while start <= end:
        values.append(f"{start:.5g}" if kind == "float64" else str(start))
        start += step
    return AxisValues(values)


# using value_types = nvbench::type_list<int8_t, int16_t>;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*(?:\[\[[^]]{0,80}\]\]\s*)?=")
# using ::cuda::std::false_type;
_USING = re.compile(r"\busing\s+((?:::)?(?:\w+::)+(\w+))\s*;")
_TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]{1,400}?)\s+(\w+)\s*;")
# For example: NVBENCH_DECLARE_TYPE_STRINGS(complex32, "C32", "complex32");
_SCOPE_STRINGS = re.compile(r'\bNVBENCH_DECLARE_TYPE_STRINGS\s*\(([^;"]{1,400}?),\s*"([^"]*)"')
_ENUM_STRINGS = re.compile(r"\bNVBENCH_DECLARE_ENUM_TYPE_STRINGS\s*\(")
# For example: case Mode::Latency: return "latency";
_CASE = re.compile(r'\bcase\s+([\w:]+)\s*:\s*return\s*"([^"]*)"')
_CLASS = re.compile(r"\b(?:struct|class)\s+(\w+)[^;{}()<>]{0,200}\{")


def read_scope(preprocessor: Preprocessor, outer: Scope | None = None) -> Scope:
    """Reads all names that a unit declares: aliases, type strings and classes."""
    unit = preprocessor.unit()
    aliases, strings, classes = dict[str, Passage](), dict[str, str](), dict[str, bool]()
    scope = Scope(
        preprocessor,
        unit,
        ChainMap(aliases, *(outer.aliases.maps if outer else ())),
        ChainMap(strings, *(outer.strings.maps if outer else ())),
        classes,
    )
    end = 0
    for match in _ALIAS.finditer(unit.mask):
        end = unit.mask.find(";", match.end()) if end < match.end() else end
        if end < 0:
            break
        aliases.setdefault(match.group(1), unit.passage(match.end(), end))
    for pattern in (_USING, _TYPEDEF):
        for match in pattern.finditer(unit.mask):
            aliases.setdefault(match.group(2), unit.passage(*match.span(1)))
    for match in _SCOPE_STRINGS.finditer(unit.text):
        for name in _alias_chain(scope, canonical(match.group(1))):
            strings.setdefault(name, match.group(2))
    for match in _ENUM_STRINGS.finditer(unit.mask):
        for case in _CASE.finditer(unit.text, match.end(), unit.closing(match.end() - 1)):
            strings.setdefault(canonical(case.group(1)), case.group(2))
    depth = end = 0
    for match in _CLASS.finditer(unit.mask):
        depth += unit.mask.count("{", end, match.start()) - unit.mask.count("}", end, match.start())
        end = match.start()
        classes.setdefault(match.group(1), depth == 0)
    return scope


def _alias_chain(scope: Scope, name: str) -> Iterator[str]:
    """Yields a name and everything that it is an alias of."""
    for _ in range(8):
        yield name
        alias = scope.aliases.get(name)
        if alias is None:
            return
        name = canonical(alias.text)


def canonical(name: str) -> str:
    """Normalizes the spelling of a type such as `::cuda::std::complex< float >`."""
    name = re.sub(r"\b(?:const|typename)\b", " ", name)
    name = re.sub(r"\s*(::|[<>,*&])\s*", r"\1", " ".join(name.split()))
    return re.sub(r"(^|[<,])::", r"\1", name)
