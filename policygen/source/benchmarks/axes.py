"""`NVBENCH_BENCH…` registrations: sub-benchmarks and their axes."""

import re
from dataclasses import dataclass, field
from typing import Literal

from policygen.model.bench import Axis, SubBenchmark
from policygen.source.benchmarks.scope import Scope
from policygen.source.benchmarks.types import MAX_DEPTH, read_list
from policygen.source.benchmarks.unit import Passage, PreprocessedUnit
from policygen.source.benchmarks.values import literal, read_values

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
