"""A `case` that is new, with a `switch` of its own, where those beside it have one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policygen.dialects.selectors.additions import (
    Addition,
    Returned,
    above,
    insert,
    sizes_of,
    statement,
)
from policygen.dialects.selectors.conditions import EQUAL
from policygen.dialects.selectors.nearest import BesideReturn
from policygen.dialects.selectors.statements import Clause
from policygen.source.spelling import indent_of, line_start
from policygen.source.text import Text

# What a workload meets that no case is for: nothing, which leaves the switch.
_LEFT = re.compile(rb"\s*default\s*:\s*break\s*;\s*")
# Behind an inner switch: "} break;"
_BEHIND = re.compile(rb"\}\s*break\s*;\s*")


@dataclass(frozen=True, slots=True)
class NestedCase:
    """Where a `case` would stand, and which one it is."""

    scope: int
    """Where the outer `switch` begins."""
    condition: str


def nested_case(text: Text, near: BesideReturn) -> NestedCase | None:
    """The `case` that a return needs; none where its neighbours are not two switches.

    Both leave what they have no case for to what stands below them.
    """
    inner, outer = near.beside.clauses[-1], near.clause
    names = [match[1] for one in near.conditions if (match := EQUAL.fullmatch(one))]
    two = near.beside.clauses[-2:] == (outer, inner) and outer.kind == inner.kind == "case"
    if not two or len(names) != 2 or names != [_subject(outer), _subject(inner)]:
        return None
    others = _cases(near, outer)
    behind = _BEHIND.fullmatch(text.code, inner.scope.end, outer.end)
    if any(near.conditions[0] in one.text.split(" || ") for one in others) or not behind:
        return None
    if not all(_left(text, one) for clause in (outer, inner) for one in _cases(near, clause)):
        return None
    return NestedCase(outer.scope.start, near.conditions[0])


def add_nested(text: Text, group: Sequence[tuple[BesideReturn, Returned]]) -> Addition:
    """The `case` with all returns that are new in it, among the others by size."""
    near, data = group[0][0], text.data
    outer, inner = near.clause, near.beside.clauses[-1]
    entry = near.beside.entry
    assert entry.span is not None, "it is in a header"
    case, label = indent_of(data, outer.start), indent_of(data, inner.start)
    switch = indent_of(data, inner.scope.end)
    inside = indent_of(data, entry.span.start)
    rows = [f"{case}case {_value(near.conditions[0])}:"]
    rows += [f"{switch}switch ({_subject(inner)})", f"{switch}{{"]
    for one, new in group:
        rows += [f"{label}case {_value(one.conditions[1])}:"]
        rows += statement(text, one.beside.entry, new, inside)
    if any(_is_default(clause) for clause in _cases(near, inner)):
        rows += [f"{label}default:", f"{inside}break;"]
    rows += [f"{switch}}}", f"{switch}break;"]
    later = [
        clause
        for clause in _cases(near, outer)
        if _is_default(clause) or sizes_of([clause.text]) > sizes_of([near.conditions[0]])
    ]
    at = above(text, later[0].start) if later else line_start(data, outer.scope.end)
    return insert(text, at, rows)


def _cases(near: BesideReturn, clause: Clause) -> list[Clause]:
    """The cases of a switch."""
    found = near.beside.body.clauses
    return [one for one in found if one.scope == clause.scope and one.kind == "case"]


def _is_default(clause: Clause) -> bool:
    return clause.text.endswith(": default")


def _left(text: Text, clause: Clause) -> bool:
    """Whether a default, if that is what it is, does nothing."""
    if not clause.text.endswith("default"):
        return "default" not in clause.text
    return bool(_LEFT.fullmatch(text.code, clause.start, clause.end))


def _subject(clause: Clause) -> str | None:
    """Of which value a case is one."""
    match = EQUAL.fullmatch(clause.text)
    return match[1] if match else None


def _value(condition: str) -> str:
    return condition.partition(" == ")[2]
