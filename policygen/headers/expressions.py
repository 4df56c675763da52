"""Evaluates integer expressions of the preprocessor and of axis values; unknowns propagate."""

import operator
import re
from collections.abc import Callable

Lookup = Callable[[str], int | None]
"""Returns the value of a name; `defined X` is looked up as the name `defined X`."""

MAX_PARTS = 400
MAX_DEPTH = 40
INT64 = 1 << 63

# For example: TUNE_T == 0x10 && defined(X) || F(a, >=, 12)
_PART = re.compile(
    r"\s*(?:(?P<number>(?:0[xX][0-9a-fA-F']+|[0-9][0-9']*)[uUlLzZ]*(?![\w.]))"
    r"|(?P<name>(?:::)?[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%!~<>()&|^,{}]))"
)
_SHIFTS = 64


def _divide(left: int, right: int) -> int | None:
    """Divides as in C++, rounding towards zero."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int | None:
    quotient = _divide(left, right)
    return None if quotient is None else left - quotient * right


_BINARY: dict[str, tuple[int, Callable[[int, int], int | None]]] = {
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    ">": (7, lambda a, b: int(a > b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << b if 0 <= b < _SHIFTS else None),
    ">>": (8, lambda a, b: a >> b if 0 <= b < _SHIFTS else None),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, _remainder),
}
_LOGIC = {"||": 1, "&&": 2}
_LEVELS = {sign: level for sign, (level, _) in _BINARY.items()} | _LOGIC


class _MalformedError(Exception):
    """The text is not an expression that this module reads."""


def evaluate(text: str, lookup: Lookup) -> int | None:
    """Evaluates an expression; None if it is unknown or no integer expression."""
    parts = _parts(text)
    if parts is None:
        return None
    reader = _ExpressionReader(parts, lookup)
    try:
        value = reader.binary(0, 0)
    except _MalformedError:
        return None
    return value if reader.at == len(parts) else None


def _parts(text: str) -> list[str] | None:
    parts: list[str] = []
    offset, text = 0, text.strip()
    while offset < len(text):
        match = _PART.match(text, offset)
        if match is None or len(parts) == MAX_PARTS:
            return None
        parts.append(match.group().strip())
        offset = match.end()
    return parts


class _ExpressionReader:
    """A precedence-climbing parser."""

    def __init__(self, parts: list[str], lookup: Lookup) -> None:
        self.parts = parts
        self.lookup = lookup
        self.at = 0

    def peek(self) -> str:
        return self.parts[self.at] if self.at < len(self.parts) else ""

    def take(self) -> str:
        part = self.peek()
        self.at += 1
        return part

    def binary(self, least: int, depth: int) -> int | None:
        left = self.unary(depth)
        while (level := _LEVELS.get(self.peek(), 0)) > least:
            sign = self.take()
            right = self.binary(level, depth + 1)
            left = _logic(sign, left, right) if sign in _LOGIC else _apply(sign, left, right)
        return left

    def unary(self, depth: int) -> int | None:
        if depth > MAX_DEPTH:
            raise _MalformedError
        part = self.take()
        if part in {"!", "-", "+", "~"}:
            return _negate(part, self.unary(depth + 1))
        if part == "(":
            value = self.binary(0, depth + 1)
            if self.take() != ")":
                raise _MalformedError
            return value
        if part[:1].isdigit():
            return _number(part)
        if part == "defined":
            return self.lookup(f"defined {self._defined()}")
        if part[:1].isalpha() or part[:1] in {"_", ":"}:
            self._skip_arguments()
            return self.lookup(part)
        raise _MalformedError

    def _defined(self) -> str:
        name = self.take()
        if name == "(":
            name = self.take()
            if self.take() != ")":
                raise _MalformedError
        return name

    def _skip_arguments(self) -> None:
        """Skips the arguments of `F(a, >=, 12)`, which evaluates to its name regardless."""
        if self.peek() not in {"(", "{"}:
            return
        depth = 0
        while part := self.take():
            depth += (part in {"(", "{"}) - (part in {")", "}"})
            if depth == 0:
                return
        raise _MalformedError


def _number(part: str) -> int:
    digits = part.rstrip("uUlLzZ").replace("'", "")
    if digits[:2] in {"0x", "0X"}:
        return int(digits[2:] or "0", 16)
    octal = len(digits) > 1 and digits[0] == "0" and not set(digits) & {"8", "9"}
    return int(digits[:4000], 8 if octal else 10)


def _negate(sign: str, value: int | None) -> int | None:
    if value is None:
        return None
    return {"!": int(not value), "-": -value, "+": value, "~": ~value}[sign]


def _logic(sign: str, left: int | None, right: int | None) -> int | None:
    """Evaluates three-valued logic: `0 && unknown` is 0, `1 || unknown` is 1."""
    decisive = sign == "||"
    if any(side is not None and bool(side) is decisive for side in (left, right)):
        return int(decisive)
    return None if left is None or right is None else int(not decisive)


def _apply(sign: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    value = _BINARY[sign][1](left, right)
    return value if value is not None and abs(value) <= INT64 else None
