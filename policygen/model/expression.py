"""Expressions of whole numbers, as a kernel's file has them: read here, never run as they stand.

They are Python's and C's in common: `ceil_div(elements, tpb * ipt)`, `tpb * ipt * 4 <= 49152`.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from policygen.errors import InputError

LIMIT = 1 << 62
"""What a result stays below, so that `long long` holds it."""
DEPTH = 40
_Number = Callable[[int, int], int]
_BINARY: dict[type[ast.operator], tuple[str, _Number]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("/", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[int, int], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_JOINED: dict[type[ast.boolop], str] = {ast.And: " && ", ast.Or: " || "}


def _natural(*numbers: int) -> None:
    """Refuses what C and Python divide, or shift, otherwise."""
    if min(numbers) < 0:
        raise ValueError(f"{min(numbers)} is negative, and can be neither divided nor shifted")


def _ceil_div(left: int, right: int) -> int:
    _natural(left, right)
    return -(-left // right)


_FUNCTIONS: dict[str, _Number] = {
    "min": min,
    "max": max,
    "ceil_div": _ceil_div,
}
_NATURAL = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_FAILS = (ZeroDivisionError, OverflowError, ValueError)
_SHIFT = 62
# ~a, a and b, 0x10, 1.5
_STRANGE = re.compile(r"[~#]|\b(?:and|or|not)\b|\b[0-9][0-9_]*[A-Za-z.]\w*")


@dataclass(frozen=True)
class Expression:
    """One that was read; what C and Python do otherwise to negative numbers is refused."""

    text: str

    @cached_property
    def tree(self) -> ast.expr:
        """What was read; refused where it is more than arithmetic."""
        # `/` of whole numbers is C's; `&&`, `||` and `!` are what C has for words.
        plain = re.sub(r"(?<![/])/(?![/])", "//", self.text)
        plain = plain.replace("&&", " and ").replace("||", " or ")
        # `~` binds as `!` does in C, and `not` does not; it means nothing else here.
        plain = re.sub(r"!(?!=)", "~", plain).strip()
        try:
            if strange := _STRANGE.search(self.text):
                raise ValueError(f"{strange[0]} means nothing in it")  # noqa: TRY301
            found = ast.parse(plain, mode="eval").body
            _check(found, DEPTH)
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            said = error.args[0] if error.args else "it cannot be read"
            raise InputError(
                f"{self.text!r} is no expression: {said}",
                "It has whole numbers, names, + - * / % << >>, comparisons, && || !, and"
                f" {', '.join(_FUNCTIONS)}.",
            ) from error
        return found

    @property
    def names(self) -> frozenset[str]:
        """What it asks for."""
        called = {one.func for one in ast.walk(self.tree) if isinstance(one, ast.Call)}
        return frozenset(
            one.id for one in ast.walk(self.tree) if isinstance(one, ast.Name) and one not in called
        )

    def value(self, names: Mapping[str, int]) -> int:
        """What it comes to."""
        try:
            return _value(self.tree, names)
        except _FAILS as error:
            raise InputError(f"{self.text}: {error}") from error

    @property
    def cpp(self) -> str:
        """The same in C++, made of what was read."""
        return _cpp(self.tree)


def _check(node: ast.AST, depth: int) -> None:
    if depth == 0:
        raise ValueError("it is nested too deeply")
    match node:
        case ast.BinOp(op=op) if type(op) in _BINARY:
            pass
        case ast.UnaryOp(op=ast.USub() | ast.Invert()) | ast.BoolOp():
            pass
        case ast.Compare(ops=[op]) if type(op) in _COMPARED:
            pass
        case ast.Call(func=ast.Name(id=name), args=[_, _], keywords=[]) if name in _FUNCTIONS:
            _check(node.args[0], depth - 1)
            _check(node.args[1], depth - 1)
            return
        case ast.Name(id=name) if name.isascii():
            return
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value < LIMIT:
            return
        case ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop():
            return
        case _:
            raise ValueError(f"{type(node).__name__} is more than arithmetic of whole numbers")
    for child in ast.iter_child_nodes(node):
        _check(child, depth - 1)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            found = _binary(op, _value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            found = -_value(inner, names)
        case ast.UnaryOp(operand=inner):
            found = int(not _value(inner, names))
        case ast.BoolOp(op=ast.And(), values=values):
            found = int(all(_value(one, names) for one in values))
        case ast.BoolOp(values=values):
            found = int(any(_value(one, names) for one in values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            found = int(_COMPARED[type(op)][1](_value(left, names), _value(right, names)))
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            found = _FUNCTIONS[name](_value(left, names), _value(right, names))
        case ast.Constant(value=int(value)):
            found = value
        case _:
            assert isinstance(node, ast.Name)
            if node.id not in names:
                raise ValueError(f"{node.id} is not known")
            found = names[node.id]
    if abs(found) >= LIMIT:
        raise OverflowError("it is too large")
    return found


def _binary(op: ast.operator, left: int, right: int) -> int:
    if isinstance(op, _NATURAL):
        _natural(left, right)
    if isinstance(op, ast.LShift | ast.RShift) and right >= _SHIFT:
        raise ValueError(f"{right} is no number of places to shift by")
    return _BINARY[type(op)][1](left, right)


def _cpp(node: ast.expr) -> str:  # noqa: PLR0911  a case for each kind
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_cpp(left)} {_BINARY[type(op)][0]} {_cpp(right)})"
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"(-{_cpp(inner)})"
        case ast.UnaryOp(operand=inner):
            return f"({_cpp(inner)} ? 0ll : 1ll)"
        case ast.BoolOp(op=op, values=values):
            return f"({_JOINED[type(op)].join(map(_cpp, values))} ? 1ll : 0ll)"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_cpp(left)} {_COMPARED[type(op)][0]} {_cpp(right)} ? 1ll : 0ll)"
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            return f"policygen_kernel::{name}({_cpp(left)}, {_cpp(right)})"
        case ast.Constant(value=int(value)):
            return f"{value}ll"
        case _:
            assert isinstance(node, ast.Name)
            return f"static_cast<long long>({node.id})"


def _read(text: str) -> str:
    try:
        _ = Expression(text).tree
    except InputError as error:
        raise ValueError(error.in_line) from error
    return text


ExpressionText = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_read)]
"""An expression, in what is read from a file."""
