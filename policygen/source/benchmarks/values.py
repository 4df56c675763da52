"""The values of runtime axes, as NVBench prints them in its input strings."""

import re
import struct
from dataclasses import dataclass

from policygen.source.benchmarks.expression import evaluate
from policygen.source.benchmarks.scope import Scope
from policygen.source.benchmarks.types import constant
from policygen.source.benchmarks.unit import Passage

MAX_DEPTH = 20
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


def read_values(scope: Scope, where: Passage, kind: str, depth: int = 0) -> AxisValues:
    """The values that an expression gives: a range, a list, or the name of one."""
    if depth > MAX_DEPTH:
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
