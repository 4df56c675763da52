"""Integer expressions in a kernel's file: parsed here, never executed as they stand.

They use the common subset of Python and C: `ceil_div(elements, tpb * ipt)`,
`tpb * ipt * 4 <= 49152`.
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
"""Upper bound of results, so that they fit `long long`."""
DEPTH = 40
_Arithmetic = Callable[[int, int], int]
_BINARY: dict[type[ast.operator], tuple[str, _Arithmetic]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("/", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[int, int], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_BOOLEAN: dict[type[ast.boolop], str] = {ast.And: " && ", ast.Or: " || "}


def _require_non_negative(*numbers: int) -> None:
    """Rejects negative numbers, which C and Python divide and shift differently."""
    if min(numbers) < 0:
        raise ValueError(f"{min(numbers)} is negative and cannot be divided or shifted")


def _ceil_div(left: int, right: int) -> int:
    _require_non_negative(left, right)
    return -(-left // right)


_FUNCTIONS: dict[str, _Arithmetic] = {
    "min": min,
    "max": max,
    "ceil_div": _ceil_div,
}
_NON_NEGATIVE_OPERATORS = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_EVALUATION_ERRORS = (ZeroDivisionError, OverflowError, ValueError)
_MAX_SHIFT = 62
# ~a, a and b, 0x10, 1.5
_INVALID = re.compile(r"[~#]|\b(?:and|or|not)\b|\b[0-9][0-9_]*[A-Za-z.]\w*")


@dataclass(frozen=True)
class Expression:
    """A parsed expression; operations on negative numbers that differ between C and Python fail."""

    text: str

    @cached_property
    def tree(self) -> ast.expr:
        """The syntax tree; raises for anything but arithmetic."""
        source = _in_python(self.text)
        if invalid := _INVALID.search(self.text):
            raise self._refused(f"{invalid[0]} is not allowed in it")
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            raise self._refused("something in it is missing or out of place") from error
        if problem := _problem(tree, DEPTH, source):
            raise self._refused(problem)
        return tree

    def _refused(self, reason: str) -> InputError:
        return InputError(
            f"{self.text!r} is not an expression: {reason}",
            "Allowed are integers, names, + - * / % << >>, comparisons, && || !, and"
            f" {', '.join(_FUNCTIONS)} of two numbers.",
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of its variables."""
        functions = {node.func for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        return frozenset(
            node.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and node not in functions
        )

    def value(self, names: Mapping[str, int]) -> int:
        """Evaluates the expression."""
        try:
            return _value(self.tree, names)
        except _EVALUATION_ERRORS as error:
            raise InputError(f"{self.text}: {error}") from error

    @property
    def cpp(self) -> str:
        """The expression in C++, generated from the syntax tree."""
        return _cpp(self.tree)


def _in_python(text: str) -> str:
    # C's `/` divides integers; Python has words for `&&` and `||`.
    text = re.sub(r"(?<![/])/(?![/])", "//", text).replace("&&", " and ").replace("||", " or ")
    # `~` has the precedence of C's `!`, unlike `not`, and has no other meaning here.
    return re.sub(r"!(?!=)", "~", text).strip()


def _in_c(source: str) -> str:
    text = source.replace("//", "/").replace(" and ", "&&").replace(" or ", "||")
    return text.replace("~", "!")


def _problem(node: ast.expr, depth: int, source: str) -> str | None:
    """Describes what in a node is not integer arithmetic, quoting the source."""
    if depth == 0:
        return "it is nested too deeply"
    operands: list[ast.expr] = []
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            operands = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=inner):
            operands = [inner]
        case ast.BoolOp(values=values):
            operands = values
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            operands = [left, right]
        case ast.Call(func=ast.Name(id=name), args=[_, _], keywords=[]) if name in _FUNCTIONS:
            operands = node.args
        case ast.Name(id=name) if name.isascii():
            pass
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return None if value < LIMIT else f"{value} is too large"
        case _:
            part = _in_c(ast.get_source_segment(source, node) or "it")
            return f"{part} is not integer arithmetic"
    return next(filter(None, (_problem(part, depth - 1, source) for part in operands)), None)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            value = _binary(op, _value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = -_value(inner, names)
        case ast.UnaryOp(operand=inner):
            value = int(not _value(inner, names))
        case ast.BoolOp(op=ast.And(), values=values):
            value = int(all(_value(operand, names) for operand in values))
        case ast.BoolOp(values=values):
            value = int(any(_value(operand, names) for operand in values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            value = int(_COMPARISONS[type(op)][1](_value(left, names), _value(right, names)))
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            value = _FUNCTIONS[name](_value(left, names), _value(right, names))
        case ast.Constant(value=int(literal)):
            value = literal
        case _:
            assert isinstance(node, ast.Name)
            if node.id not in names:
                raise ValueError(f"{node.id} is not known")
            value = names[node.id]
    if abs(value) >= LIMIT:
        raise OverflowError("it is too large")
    return value


def _binary(op: ast.operator, left: int, right: int) -> int:
    if isinstance(op, _NON_NEGATIVE_OPERATORS):
        _require_non_negative(left, right)
    if isinstance(op, ast.LShift | ast.RShift) and right >= _MAX_SHIFT:
        raise ValueError(f"{right} is not a valid shift count")
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
            return f"({_BOOLEAN[type(op)].join(map(_cpp, values))} ? 1ll : 0ll)"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_cpp(left)} {_COMPARISONS[type(op)][0]} {_cpp(right)} ? 1ll : 0ll)"
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            return f"policygen_kernel::{name}({_cpp(left)}, {_cpp(right)})"
        case ast.Constant(value=int(value)):
            return f"{value}ll"
        case _:
            assert isinstance(node, ast.Name)
            return f"static_cast<long long>({node.id})"


def _validate(text: str) -> str:
    try:
        _ = Expression(text).tree
    except InputError as error:
        raise ValueError(error.in_line) from error
    return text


ExpressionText = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_validate)]
"""An expression that is read from a file."""
