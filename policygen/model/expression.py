"""Integer expressions in a kernel's file: parsed here, never executed as they stand.

They use the common subset of Python and C: `ceil_div(elements, tpb * ipt)`,
`tpb * ipt * 4 <= 49152`.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from policygen.errors import InputError

LIMIT = 1 << 62
"""Upper bound of results, so that they fit `long long`."""
DEPTH = 40
_MAX_SHIFT = 62
_EVALUATION_ERRORS = (ZeroDivisionError, OverflowError, ValueError)


class _Operation(NamedTuple):
    apply: Callable[..., int]
    cpp: str
    """The format of its operands; for `&&` and `||`, what stands between them."""


def _checked(apply: Callable[[int, int], int], end: int = LIMIT) -> Callable[[int, int], int]:
    """Rejects large right operands, and negative ones, which C and Python treat differently."""

    def apply_checked(left: int, right: int) -> int:
        if (least := min(left, right)) < 0:
            raise ValueError(f"{least} is negative and cannot be divided or shifted")
        if right >= end:
            raise ValueError(f"{right} is not a valid shift count")
        return apply(left, right)

    return apply_checked


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "ceil_div": _checked(lambda left, right: -(-left // right)),
}
_OPERATIONS: dict[type[ast.AST] | str, _Operation] = {
    ast.Add: _Operation(operator.add, "({} + {})"),
    ast.Sub: _Operation(operator.sub, "({} - {})"),
    ast.Mult: _Operation(operator.mul, "({} * {})"),
    ast.FloorDiv: _Operation(_checked(operator.floordiv), "({} / {})"),
    ast.Mod: _Operation(_checked(operator.mod), "({} % {})"),
    ast.LShift: _Operation(_checked(operator.lshift, _MAX_SHIFT), "({} << {})"),
    ast.RShift: _Operation(_checked(operator.rshift, _MAX_SHIFT), "({} >> {})"),
    ast.Lt: _Operation(operator.lt, "({} < {} ? 1ll : 0ll)"),
    ast.LtE: _Operation(operator.le, "({} <= {} ? 1ll : 0ll)"),
    ast.Gt: _Operation(operator.gt, "({} > {} ? 1ll : 0ll)"),
    ast.GtE: _Operation(operator.ge, "({} >= {} ? 1ll : 0ll)"),
    ast.Eq: _Operation(operator.eq, "({} == {} ? 1ll : 0ll)"),
    ast.NotEq: _Operation(operator.ne, "({} != {} ? 1ll : 0ll)"),
    ast.USub: _Operation(operator.neg, "(-{})"),
    ast.Invert: _Operation(operator.not_, "({} ? 0ll : 1ll)"),
    # Of any number of operands, which are evaluated only as far as needed
    ast.And: _Operation(all, " && "),
    ast.Or: _Operation(any, " || "),
    **{
        name: _Operation(apply, f"policygen_kernel::{name}({{}}, {{}})")
        for name, apply in _FUNCTIONS.items()
    },
}
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


def _parts(node: ast.expr) -> tuple[type[ast.AST] | str, list[ast.expr]]:
    """Returns the operation of a node, and its operands."""
    match node:
        case (
            ast.BinOp(left=left, op=op, right=right)
            | ast.Compare(left=left, ops=[op], comparators=[right])
        ):
            return type(op), [left, right]
        case ast.UnaryOp(op=op, operand=inner):
            return type(op), [inner]
        case ast.BoolOp(op=op, values=values):
            return type(op), values
        case ast.Call(func=ast.Name(id=name), args=[_, _] as arguments, keywords=[]):
            return name, arguments
    return type(node), []


def _problem(node: ast.expr, depth: int, source: str) -> str | None:
    """Describes what in a node is not integer arithmetic, quoting the source."""
    if depth == 0:
        return "it is nested too deeply"
    match node:
        case ast.Name(id=name) if name.isascii():
            return None
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return None if value < LIMIT else f"{value} is too large"
    operation, operands = _parts(node)
    if operation not in _OPERATIONS:
        part = _in_c(ast.get_source_segment(source, node) or "it")
        return f"{part} is not integer arithmetic"
    return next(filter(None, (_problem(part, depth - 1, source) for part in operands)), None)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(literal)):
            value = literal
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"{name} is not known")
            value = names[name]
        case _:
            operation, operands = _parts(node)
            values = (_value(operand, names) for operand in operands)
            apply = _OPERATIONS[operation].apply
            value = int(apply(values) if isinstance(node, ast.BoolOp) else apply(*values))
    if abs(value) >= LIMIT:
        raise OverflowError("it is too large")
    return value


def _cpp(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=int(value)):
            return f"{value}ll"
        case ast.Name(id=name):
            return f"static_cast<long long>({name})"
    operation, operands = _parts(node)
    texts, cpp = [_cpp(operand) for operand in operands], _OPERATIONS[operation].cpp
    return (
        f"({cpp.join(texts)} ? 1ll : 0ll)" if isinstance(node, ast.BoolOp) else cpp.format(*texts)
    )


_parsed = lru_cache(maxsize=256)(Expression)


def check_constraints(constraints: Iterable[str], values: Mapping[str, int]) -> None:
    """Raises for the first condition that does not hold."""
    for text in constraints:
        if not _parsed(text).value(values):
            raise InputError(f"it violates {text}")


def _validate(text: str) -> str:
    try:
        _ = Expression(text).tree
    except InputError as error:
        raise ValueError(error.in_line) from error
    return text


ExpressionText = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_validate)]
"""An expression that is read from a file."""
