"""Type lists to NVBench's input strings: `fundamental_types` is I8, I16, I32 and so on."""

import re
from dataclasses import dataclass, field

from policygen.source.benchmarks.expression import evaluate
from policygen.source.benchmarks.scope import Scope, canonical
from policygen.source.benchmarks.unit import Passage, Region

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
