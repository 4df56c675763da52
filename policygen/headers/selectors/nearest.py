"""Finds the return that a new return should stand beside, and the conditions it needs there.

The nearest return has the workload's conditions except for a size, a type or a flag in its
innermost ones. With the workload's own values there, the new return fits in the same block.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_

from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.selectors.conditions import (
    EQUAL,
    FLAG,
    UNEQUAL,
    Truth,
    excluded,
    locals_of,
    opposites,
    simplest,
)
from policygen.headers.selectors.functions import Function, HeaderCode, arch_of
from policygen.headers.selectors.statements import (
    Body,
    Clause,
    Clauses,
    Return,
    facts_of,
    read_body,
)
from policygen.headers.syntax import closing_bracket
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.selection import ANY_OTHER, Selected
from policygen.model.tuning import Entry, Family, spell

_CAPABILITY = re.compile(r"\bcc\b")


@dataclass(frozen=True, slots=True)
class HeaderReturn:
    """A return of a header and the conditions on the way to it."""

    family: Family
    entry: Entry
    function: Function
    body: Body
    clauses: Clauses
    start: int
    """Where the `return` starts."""


@dataclass(frozen=True, slots=True)
class BeforeReturn:
    """A return for one type, placed before the return for all other types of that size."""

    beside: HeaderReturn
    conditions: tuple[str, ...]
    passed: tuple[tuple[str, str], ...] = ()
    """Names and types of members of the selector that the function must be given to test them."""


@dataclass(frozen=True, slots=True)
class BesideReturn:
    """A new return and the existing return that it stands beside."""

    beside: HeaderReturn
    clause: Clause
    """The clause of the existing return; the new one goes in the same block."""
    around: tuple[str, ...]
    """The conditions of that block."""
    conditions: tuple[str, ...]
    """The new return's own conditions."""
    instead: Span | None = None
    """The same condition if it is commented out in the header."""


def nearest(returns: Sequence[HeaderReturn], truth: Truth) -> BesideReturn | None:
    """Picks the best return to stand beside, or None if no return is close enough."""
    flags = {fact for model in returns for fact in model.entry.args}
    candidates = [candidate for model in returns if (candidate := _beside(model, truth, flags))]
    if not candidates:
        return None
    candidates.sort(key=lambda candidate: _cost(candidate, truth))
    best = candidates[0]
    if gone_before(best, truth):
        reached = (place for place in candidates if not gone_before(place, truth))
        best = next((place for place in reached if not _has_same_if(place)), best)
    conditions = {*best.around, *best.conditions}
    disabled = (entry for entry in best.beside.family.entries if entry.disabled)
    instead = next((entry.span for entry in disabled if {*entry.args} == conditions), None)
    return replace(best, conditions=tuple(simplest(best.conditions)), instead=instead)


def _beside(model: HeaderReturn, truth: Truth, flags: set[str]) -> BesideReturn | None:
    facts_by_level = [clause.facts for clause in model.clauses]
    failing = [any(truth.holds(fact) is False for fact in facts) for facts in facts_by_level]
    if True not in failing:
        return None
    level = failing.index(True)
    own_conditions = [
        own_condition(fact, truth, flags) for facts in facts_by_level[level:] for fact in facts
    ]
    conditions = tuple(fact for fact in own_conditions if fact)
    if None in own_conditions or any(map(_CAPABILITY.match, conditions)):
        return None
    if _has_case(model.body, model.clauses[level], conditions):
        return None
    outer_conditions = tuple(fact for facts in facts_by_level[:level] for fact in facts)
    return BesideReturn(model, model.clauses[level], outer_conditions, conditions)


def _has_same_if(place: BesideReturn) -> bool:
    """Checks for a sibling `if` with the same conditions, which does not serve the workload."""
    conditions = {*simplest(place.conditions)}
    siblings = place.beside.body.siblings(place.clause)
    return any({*simplest(clause.facts)} == conditions for clause in siblings)


def _has_case(body: Body, clause: Clause, conditions: Sequence[str]) -> bool:
    """Checks whether the `switch` already has the new `case`."""
    labels = [label for case in body.cases(clause) for label in case.text.split(" || ")]
    return clause.kind == "case" and any(condition in labels for condition in conditions)


def own_condition(fact: str, truth: Truth, flags: set[str]) -> str | None:
    """Returns the condition, with the workload's own value if needed; None if undecidable."""
    holds = truth.holds(fact)
    if holds is None:
        return None
    return fact if holds else _with_workload_value(fact, truth, flags)


def _with_workload_value(fact: str, truth: Truth, flags: set[str]) -> str | None:
    equals = list(EQUAL.finditer(fact))
    if equals and len({match[1] for match in equals}) == 1 and "!=" not in fact:
        name, scope = equals[0][1], equals[0][2]
        value = truth.traits.get(name)
        if value is None or value == ANY_OTHER:
            return None
        return f"{name} == {scope if isinstance(value, str) else ''}{spell(value)}"
    if flag := FLAG.fullmatch(fact):
        negated = flag[2] if flag[1] else f"not {flag[2]}"
        return min({negated, negated.replace("not ", "!")} & flags, default=None)
    return None


def _cost(place: BesideReturn, truth: Truth) -> tuple[int, ...]:
    """Ranks few changed conditions first, then few changed flags, then many equal conditions."""
    unknown = sum(truth.holds(fact) is None for fact in place.around)
    model_facts = facts_of(place.beside.clauses)[len(place.around) :]
    pairs = enumerate(zip(model_facts, place.conditions, strict=True))
    changed = [
        (level, model_fact, own_fact)
        for level, (model_fact, own_fact) in pairs
        if model_fact != own_fact
    ]
    distances = [
        abs(_number(model_fact) - _number(own_fact)) for _, model_fact, own_fact in changed
    ]
    facts = [*place.around, *place.conditions]
    equalities = filter(None, map(EQUAL.search, facts))
    enumerators = sum("::" in match[2] for match in equalities)
    unchanged = len(facts) - len(changed) - enumerators
    flags = sum(EQUAL.search(model_fact) is None for _, model_fact, _ in changed)
    depth = len(place.around)
    return unknown, len(changed), flags, -unchanged, enumerators, -changed[0][0], -depth, *distances


def _number(fact: str) -> int:
    digits = re.search(r"== (\d+)$", fact)
    return int(digits[1]) if digits else 0


@dataclass(frozen=True, slots=True)
class EmptyCase:
    """A place where a workload leaves its `case` without a return."""

    beside: HeaderReturn
    span: Span
    """The `break;` or the empty return."""
    around: tuple[str, ...]


def empty_case(returns: Sequence[HeaderReturn], truth: Truth, arch: str) -> EmptyCase | None:
    """Finds the statement that ends a workload's `case` without values, and a model return."""
    bodies = {id(model.body): (model.function, model.body) for model in returns}
    for function, body in bodies.values():
        empty_returns = [
            (own.span, own.clauses)
            for own in body.returns
            if own.value.end - own.value.start <= len("{ }")
        ]
        for span, clauses in [*body.breaks, *empty_returns]:
            facts = facts_of(clauses)
            in_case = any(clause.kind == "case" and EQUAL.search(clause.text) for clause in clauses)
            if not in_case or not all(truth.holds(fact) for fact in facts):
                continue
            if arch_of(function, facts) != arch:
                continue
            models = [model for model in returns if model.body is body]
            model = max(models, key=lambda model: sum(map(is_, model.clauses, clauses)))
            return EmptyCase(model, span, tuple(facts))
    return None


def gone_before(place: BesideReturn, truth: Truth) -> Return | None:
    """Finds a return that the workload reaches before the block of its nearest return."""
    before = (own for own in place.beside.body.returns if own.span.end <= place.clause.start)
    reached = (own for own in before if all(map(truth.holds, facts_of(own.clauses))))
    return next(reached, None)


def passed_by(model: HeaderReturn, conditions: Sequence[str], truth: Truth) -> list[str] | None:
    """Returns the extra conditions that keep earlier returns from matching.

    Returns None if an earlier return serves the workload and cannot be distinguished from the
    others.
    """
    own_arch_clauses = [clause for clause in model.clauses if _CAPABILITY.search(clause.text)]
    negated: list[str] = []
    for span, clauses in model.body.exits:
        facts = facts_of(clauses)
        arch_clauses = [clause for clause in clauses if _CAPABILITY.search(clause.text)]
        if span.start >= model.entry.span.start or arch_clauses != own_arch_clauses:
            continue
        new_facts = (fact for fact in facts if fact not in conditions)
        other_facts = [fact for fact in new_facts if not _CAPABILITY.search(fact)]
        if not other_facts or any(excluded(fact, conditions) for fact in other_facts):
            continue
        if all(truth.holds(fact) is False for fact in other_facts):
            negated += opposites(other_facts)
        elif all(truth.holds(fact) for fact in other_facts):
            equalities = [_as_equality(fact, truth) for fact in other_facts]
            if None in equalities:
                return None
            negated += [fact for fact in equalities if fact]
    return list(dict.fromkeys(negated))


def _as_equality(fact: str, truth: Truth) -> str | None:
    """Turns `operation_t != op_kind_t::plus` into `operation_t == op_kind_t::min`; keeps a flag."""
    if match := UNEQUAL.fullmatch(fact):
        value = truth.traits.get(match[1])
        return None if value in {None, ANY_OTHER} else f"{match[1]} == {match[2]}{value}"
    return fact if FLAG.fullmatch(fact) or EQUAL.fullmatch(fact) else None


# "get_sm90_tuning("
_CALL = re.compile(rb"(\w+)\s*\(")


class HeaderReturns(HeaderCode):
    """What the functions of a header return, and for which workloads they are called."""

    def __init__(self, text: Text, families: Sequence[Family]) -> None:
        super().__init__(text.code)
        self.text = text
        self._families = families

    @cached_property
    def bodies(self) -> list[tuple[Function, Body]]:
        """The deciding functions with their statements."""
        return [(function, read_body(self.code, function.body)) for function in self.deciding]

    @cached_property
    def returns(self) -> tuple[HeaderReturn, ...]:
        """The live returns with values, in header order."""
        entries = {
            entry.body_span.start: (family, entry)
            for family in self._families
            for entry in family.entries
            if entry.body_span and entry.members and not entry.disabled
        }
        return tuple(
            HeaderReturn(*family_entry, function, body, returned.clauses, returned.span.start)
            for function, body in self.bodies
            for returned in body.returns
            if (family_entry := entries.get(returned.value.start))
        )

    @cached_property
    def constants(self) -> dict[str, str]:
        """The function-local constants whose name has one meaning in all functions."""
        return locals_of(self.code, (function.body for function in self.deciding))

    @cached_property
    def members(self) -> dict[str, str]:
        """Members of the policy selector → their types."""
        selector = self.structs.get(words().selectors.name)
        return dict(selector.typed_fields) if selector else {}

    @cached_property
    def _calls(self) -> dict[str, list[tuple[str, ...]]]:
        """Function → the conditions of each call to it, other than the architecture."""
        names = (function.name for function in self.deciding if function.name.isidentifier())
        calls = re.compile(rf"\b({'|'.join(names)})\s*\(".encode())
        conditions: dict[str, list[tuple[str, ...]]] = {}
        for function, body in self.bodies:
            for call in calls.finditer(self.code, function.body.start, function.body.end):
                facts = body.scope_at(call.start()).facts
                besides_arch = tuple(fact for fact in facts if not _CAPABILITY.search(fact))
                conditions.setdefault(call[1].decode(), []).append(besides_arch)
        return conditions

    @cached_property
    def _exhaustive(self) -> set[str]:
        """The functions that return values for every workload.

        If the compiler reports different values for a workload, such a function does not serve it.
        """
        valued = {model.start for model in self.returns}
        exhaustive: set[str] = set()
        for function, body in self.bodies:  # callees come first
            other_returns = (own for own in body.returns if own.span.start not in valued)
            calls = [_CALL.match(self.code, *returned.value) for returned in other_returns]
            if not function.optional and all(
                call and call[1].decode() in exhaustive for call in calls
            ):
                exhaustive.add(function.label)
        return exhaustive

    def tests_at(self, offset: int) -> dict[str, str]:
        """Returns the members of the selector that code at an offset can test, with their types."""
        function = self.function_at(offset)
        if function is None or function.scope == words().selectors.name:
            return self.members if function else {}
        members = self.members.items()
        return {name: kind for name, kind in members if name in function.parameters}

    def passable_at(self, offset: int) -> dict[str, str]:
        """Returns the other members, which all callers of the function there can pass to it."""
        function = self.function_at(offset)
        calls = calls_in(self.code, function) if function else []
        callers = [self.tests_at(call.start) for call in calls]
        testable = self.tests_at(offset)
        return {
            name: kind
            for name, kind in self.members.items()
            if callers and name not in testable and all(name in members for members in callers)
        }

    def return_of(self, selected: Selected) -> HeaderReturn | None:
        """Returns the return that serves a workload now, if it has values."""
        span = selected.entry[1].body_span if selected.entry else None
        return next((model for model in self.returns if model.entry.body_span == span), None)

    def asks(self, model: HeaderReturn, truth: Truth, selected: Selected) -> bool:
        """Tells whether a return's function may be called for a workload."""
        if selected.entry is None and model.function.label in self._exhaustive:
            return False  # the compiler reports different values
        calls = self._calls.get(model.function.name, [()])
        return any(all(truth.holds(fact) is not False for fact in facts) for facts in calls)


def calls_in(code: bytes, function: Function) -> list[Span]:
    """Returns the arguments of the calls of a function, without their parentheses."""
    spans = []
    for match in re.compile(rb"\b%b\s*\(" % re.escape(function.name.encode())).finditer(code):
        close = closing_bracket(code, match.end() - 1)
        if close and not function.span.start <= match.start() < function.body.start:
            spans.append(Span(match.end(), close))
    return spans


def check_utf8(text: Text) -> None:
    """Checks the encoding: plans are JSON, so generated text must be decodable."""
    try:
        text.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{text.path}:{text.line(error.start)} is not UTF-8", "Save the header as UTF-8."
        ) from error
