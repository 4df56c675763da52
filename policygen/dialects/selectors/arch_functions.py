"""A function of its own for an architecture, and the block that asks it, made after another's.

auto sm90_tuning = get_sm90_tuning(accum_t, operation_t, offset_size, accum_size);
if (cc >= ::cuda::compute_capability{9, 0} && sm90_tuning)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.dialects.selectors.added_fields import AddedFields
from policygen.dialects.selectors.additions import (
    UNIT,
    Addition,
    Returned,
    above,
    below_line,
    condition_lines,
    insert,
    statement,
    wrapped,
)
from policygen.dialects.selectors.arch_blocks import besides_arch, bounds, since_of
from policygen.dialects.selectors.branches import facts_of
from policygen.dialects.selectors.conditions import simplest
from policygen.dialects.selectors.functions import Function
from policygen.dialects.selectors.nearest import Bodies, KnownReturn, asked, own_condition
from policygen.dialects.selectors.nesting import (
    Nested,
    Step,
    leaving,
    nested,
    nested_rows,
    steps_of,
)
from policygen.dialects.selectors.statements import Clause
from policygen.dialects.selectors.truth import Truth
from policygen.model.arch import arch_number
from policygen.model.base import Span
from policygen.source.brackets import closing_bracket
from policygen.source.copying import copy
from policygen.source.spelling import indent_of, line_start
from policygen.source.text import Text


@dataclass(frozen=True, slots=True)
class ArchFunction:
    """A return in a function that is made after another one."""

    beside: KnownReturn
    """The return that it is like, of the function that is the model."""
    asked: int
    """Where the model is called."""
    variable: str
    """What its answer is called there."""
    block: Clause
    """What is done with the answer."""
    steps: tuple[Step, ...]
    """The levels at which the model asks for them."""
    conditions: tuple[str, ...]
    since: str
    below: str | None

    @property
    def function(self) -> Function:
        """The model."""
        return self.beside.function

    @property
    def name(self) -> str:
        """`get_sm90_tuning`."""
        return self.function.name.replace(self.beside.family.arch, self.since)


def arch_function(
    text: Text, known: Sequence[KnownReturn], bodies: Bodies, truth: Truth, below: str | None
) -> ArchFunction | None:
    """After the newest function of an earlier architecture, where it can be told apart by name."""
    flags = {fact for one in known for fact in one.entry.args}
    found: list[tuple[tuple[int, ...], ArchFunction]] = []
    for one in known:
        name = one.function.name.replace(one.family.arch, truth.arch)
        if not one.function.optional or name in {function.name for function, _ in bodies}:
            continue
        wanted = asked(one, facts_of(one.clauses), truth, flags)
        if wanted is None:
            continue
        conditions, other = wanted
        asks = tuple(simplest(conditions))
        steps = steps_of(one.clauses, lambda fact: own_condition(fact, truth, flags))
        for at, variable, block in _calls(text, one.function, bodies):
            made = ArchFunction(one, at, variable, block, steps, asks, truth.arch, below)
            cost = -arch_number(one.family.arch), other, len(conditions)
            found.append((cost, made))
    best = min(found, key=lambda pair: pair[0], default=None)
    return best[1] if best else None


def _calls(text: Text, model: Function, bodies: Bodies) -> Iterator[tuple[int, str, Clause]]:
    """`auto sm100_tuning = get_sm100_tuning(…);`, and the block that asks for it."""
    call = re.compile(rb"(?:const\s+)?auto\s+(\w+)\s*=\s*" + model.name.encode() + rb"\s*\(")
    for function, body in bodies:
        for match in call.finditer(text.code, function.body.start, function.body.end):
            variable = match[1].decode()
            for clause in body.clauses:
                if since_of(clause) and variable in facts_of((clause,)):
                    yield match.start(), variable, clause


def add_function(
    text: Text,
    functions: Sequence[tuple[ArchFunction, Returned]],
    fields: AddedFields | None = None,
) -> tuple[Addition, Addition]:
    """The function with all returns for the architecture, and the block that asks it."""
    return _function(text, functions), _block(text, functions[0][0], fields)


def _function(text: Text, functions: Sequence[tuple[ArchFunction, Returned]]) -> Addition:
    first = functions[0][0]
    model = first.function
    start = line_start(text.data, model.span.start)
    head = text.data[start : model.body.start].decode().splitlines()
    indent = indent_of(text.data, start + len(head[0]) - len(head[0].lstrip()))
    rows = [_renamed(row, first) for row in head]
    inside = indent + UNIT
    left, ones = leaving([_nested(text, *pair) for pair in functions], inside)
    rows += [*left, *nested_rows(ones, inside)]
    rows += ["", f"{indent}{UNIT}return {{}};", f"{indent}}}", ""]
    return insert(text, above(text, start), rows)


def _nested(text: Text, one: ArchFunction, new: Returned) -> Nested:
    def rows(indent: str) -> list[str]:
        return statement(text, one.beside.entry, new, indent)

    return nested(one.steps, one.conditions, rows)


def _block(text: Text, one: ArchFunction, fields: AddedFields | None) -> Addition:
    """Before that of an earlier architecture, behind that of a later one."""
    data, block = text.data, one.block
    indent = indent_of(data, block.start)
    call = data[line_start(data, one.asked) : data.index(b";", one.asked) + 1].decode()
    opened = _body(text, block)
    reads = fields.read(text, Span(opened, block.end), one.variable) if fields else []
    body = copy(text, Span(line_start(data, opened), block.end), reads)
    held = [*bounds(block, one.since, one.below), *besides_arch(block)]
    rows = [*call.splitlines(), *condition_lines(held, indent), *body.splitlines()]
    rows = [part for row in rows for part in wrapped(_renamed(row, one), indent)]
    since = since_of(block)
    assert since is not None, "it is the block of an architecture"
    if arch_number(one.since) > int(f"{since[2]}{since[3]}"):
        return insert(text, above(text, one.asked), [*rows, ""])
    return insert(text, below_line(text, block.end), ["", *rows])


def _body(text: Text, block: Clause) -> int:
    """The brace that opens a block."""
    condition = closing_bracket(text.code, text.code.index(b"(", block.start))
    assert condition is not None, "its condition was read"
    return text.code.index(b"{", condition)


def _renamed(row: str, one: ArchFunction) -> str:
    """A line with the names of the new architecture."""
    row = re.sub(rf"\b{one.function.name}\b", one.name, row)
    variable = one.variable.replace(one.beside.family.arch, one.since)
    return re.sub(rf"\b{one.variable}\b", variable, row)
