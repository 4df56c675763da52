"""Finds where an architecture's own returns go: a block in front of another's, or a function."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.headers.selectors.conditions import EQUAL, Truth, defined, simplest
from policygen.headers.selectors.functions import SINCE, Function
from policygen.headers.selectors.nearest import (
    HeaderReturn,
    HeaderReturns,
    own_condition,
    passed_by,
)
from policygen.headers.selectors.statements import Body, Clause, Clauses, facts_of
from policygen.headers.text import Text
from policygen.model.arch import arch_number, capability_number
from policygen.model.records import Span

# "*sm107_tuning"
_DEREFERENCED = re.compile(r"(?<![\w)/])\*\w+")
_WORD = re.compile(r"(?<![\w:])[a-z_]\w*\b(?!\s*[({:])")


@dataclass(frozen=True, slots=True)
class Step:
    """The conditions at one nesting level of the model return."""

    kind: str
    """`case`, or `if`."""
    facts: tuple[str, ...]

    @property
    def subject(self) -> str | None:
        """The operand of the `switch` in which this step can be a `case`, if any."""
        match = EQUAL.fullmatch(self.facts[0]) if len(self.facts) == 1 else None
        return match[1] if match and self.kind == "case" else None


@dataclass(frozen=True, slots=True)
class ArchReturn:
    """A new return for its architecture alone, modeled on one of another architecture."""

    beside: HeaderReturn
    """The model return."""
    steps: tuple[Step, ...]
    """The nesting levels and conditions of the model return."""
    conditions: tuple[str, ...]
    since: str
    below: str | None
    block: Clause
    """The block of another architecture beside which the new one goes."""
    around: tuple[str, str] = ("", "")
    """What the caller wraps around the value: `make_policy(` and `)`."""


@dataclass(frozen=True, slots=True)
class ArchBlock(ArchReturn):
    """A new return in a block of its own."""

    behind: bool = False
    """Whether the block goes behind `block`, which is for a later architecture."""


def in_front(
    header: HeaderReturns,
    returns: Sequence[HeaderReturn],
    truth: Truth,
    below: str | None,
    decides: HeaderReturn | None,
) -> ArchBlock | None:
    """Finds the place of the block and the conditions of the workload's return in it.

    All conditions of `decides`, the return that currently serves the workload, are taken to hold,
    even those that cannot be evaluated.
    """
    flags = {fact for model in returns for fact in model.entry.args}
    candidates = [
        candidate
        for model in returns
        for call_path in _call_paths(header, model)
        if (candidate := _candidate(header, model, call_path, truth, flags, below, decides))
    ]
    best = min(candidates, key=lambda candidate: candidate[0], default=None)
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class _CallPath:
    """The path from an architecture block to a return."""

    function: Function
    body: Body
    block: Clause
    inner: Clauses
    around: tuple[str, str]


def _call_paths(header: HeaderReturns, model: HeaderReturn) -> Iterator[_CallPath]:
    """Yields direct paths, or paths by a call from the function that tests the architecture."""
    index = _capability(model.clauses)
    if index is not None:
        block, inner = model.clauses[index], model.clauses[index + 1 :]
        yield _CallPath(model.function, model.body, block, inner, ("", ""))
        return
    call = re.compile(rf"\b{model.function.name}\([^()]*\)")
    for function, body in header.bodies:
        for caller_return in body.returns:
            index = _capability(caller_return.clauses)
            if index is None:
                continue
            other_clauses = caller_return.clauses[index + 1 :]
            untested = tuple(clause for clause in other_clauses if not call.search(clause.text))
            result = call if untested == other_clauses else _DEREFERENCED
            wrapper = _caller_wrapper(header.text, model, result, caller_return.value)
            if wrapper is not None:
                inner = (*untested, *model.clauses)
                yield _CallPath(function, body, caller_return.clauses[index], inner, wrapper)


def _caller_wrapper(
    text: Text, model: HeaderReturn, result: re.Pattern[str], span: Span
) -> tuple[str, str] | None:
    """Returns the text that a caller puts before and after the returned value."""
    body = model.entry.body_span
    assert body is not None, "it has values"
    type_name = model.function.returns if text.data.startswith(b"{", body.start) else ""
    # "make_policy(*sm107_tuning, /*large keys=*/true)": the caller wraps the result
    value = text.uncommented[slice(*span)].decode()
    with_comments = text.data[slice(*span)].decode(errors="replace")
    match = result.search(value)
    if match is None:
        return None
    expression = with_comments if len(with_comments) == len(value) else value
    return expression[: match.start()] + type_name, expression[match.end() :]


def _capability(clauses: Clauses) -> int | None:
    """Returns the index of the clause that tests the architecture."""
    return next((i for i, clause in enumerate(clauses) if since_of(clause)), None)


def since_of(clause: Clause) -> re.Match[str] | None:
    """Matches the architecture test of a clause."""
    facts = clause.facts if clause.kind == "if" else ()
    return next((match for fact in facts if (match := SINCE.fullmatch(fact))), None)


def besides_arch(block: Clause) -> list[str]:
    """Returns the conditions of an architecture block other than the architecture."""
    return [fact for fact in block.facts if not fact.startswith("cc ")]


def _candidate(
    header: HeaderReturns,
    model: HeaderReturn,
    call_path: _CallPath,
    truth: Truth,
    flags: set[str],
    below: str | None,
    decides: HeaderReturn | None,
) -> tuple[tuple[int, ...], ArchBlock] | None:
    outer = besides_arch(call_path.block)
    as_it_is = model is decides
    likeness = likeness_of(model, call_path.inner, truth, flags, outer, as_it_is=as_it_is)
    if likeness is None:
        return None
    # The first block that is not for a later architecture, if any
    siblings = filter(since_of, call_path.body.siblings(call_path.block))
    number = arch_number(truth.arch)
    before = next((clause for clause in siblings if number_of(clause) <= number), None)
    block = before or call_path.block
    names = {word for fact in likeness.conditions for word in _WORD.findall(fact)}
    names |= _locals(header.text, model)
    if not all(_is_visible(header.code, call_path, word, block, truth) for word in names):
        return None
    conditions = tuple(simplest(likeness.conditions))
    cost = likeness.changed, -arch_number(model.family.arch), len(conditions)
    behind = before is None
    return cost, ArchBlock(
        model, likeness.steps, conditions, truth.arch, below, block, call_path.around, behind
    )


def _locals(text: Text, model: HeaderReturn) -> set[str]:
    """Returns the local constants and parameters that a return's value uses."""
    span = model.entry.body_span
    assert span is not None, "it has values"
    words = set(_WORD.findall(text.uncommented[slice(*span)].decode(errors="replace")))
    computed = {word for word in words if defined(text.code, model.function.body, word) is not None}
    return computed | (words & set(model.function.parameters))


def number_of(block: Clause) -> int:
    """Returns the architecture of a block as a number: 107."""
    since = since_of(block)
    assert since is not None, "it is a block for an architecture"
    return capability_number(since[2], since[3])


def _is_visible(code: bytes, call_path: _CallPath, word: str, block: Clause, truth: Truth) -> bool:
    """Checks that a name has the same meaning in front of a block."""
    if word in {"not", "and", "or", "true", "false"} or word in truth.traits:
        return True
    if word in call_path.function.parameters:
        return True
    definition = defined(code, call_path.function.body, word)
    if definition is None or definition > block.start:
        return False
    scope = call_path.body.scope_at(definition).span
    return scope.start <= block.start < scope.end


@dataclass(frozen=True, slots=True)
class Likeness:
    """The conditions of a return that is modeled on another one."""

    changed: int
    """How many of the model's conditions it does not have."""
    steps: tuple[Step, ...]
    """The levels of the model, with the new return's conditions in place of the model's."""
    conditions: tuple[str, ...]


def likeness_of(
    model: HeaderReturn,
    clauses: Clauses,
    truth: Truth,
    flags: set[str],
    outer: Sequence[str] = (),
    *,
    as_it_is: bool = False,
) -> Likeness | None:
    """Returns a workload's conditions in nested clauses like a model's, or None."""
    facts = [*outer, *facts_of(clauses)]
    own_facts = {fact: fact if as_it_is else own_condition(fact, truth, flags) for fact in facts}
    conditions = [fact for fact in map(own_facts.get, facts) if fact]
    if not conditions or len(conditions) < len(facts):
        return None
    passed = passed_by(model, conditions, truth)
    if passed is None:
        return None
    steps = [
        Step(clause.kind, tuple(fact for own in clause.facts if (fact := own_facts[own])))
        for clause in clauses
    ]
    changed = sum(fact != own_facts[fact] for fact in facts)
    return Likeness(changed, tuple(steps), (*conditions, *passed))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchFunction(ArchReturn):
    """A return in a new function; `block` uses the result of the model function."""

    asked: int
    """The offset of the call of the model function."""
    variable: str
    """The variable that holds the model function's result."""

    @property
    def function(self) -> Function:
        """The model function."""
        return self.beside.function

    @property
    def name(self) -> str:
        """`get_sm90_tuning`."""
        return self.function.name.replace(self.beside.family.arch, self.since)


def arch_function(
    header: HeaderReturns, returns: Sequence[HeaderReturn], truth: Truth, below: str | None
) -> ArchFunction | None:
    """Models it on the newest function of an earlier architecture that has the arch in its name."""
    flags = {fact for model in returns for fact in model.entry.args}
    candidates: list[tuple[tuple[int, ...], ArchFunction]] = []
    for model in returns:
        name = model.function.name.replace(model.family.arch, truth.arch)
        if not model.function.optional or name in {own.name for own in header.deciding}:
            continue
        likeness = likeness_of(model, model.clauses, truth, flags)
        if likeness is None:
            continue
        cost = -arch_number(model.family.arch), likeness.changed, len(likeness.conditions)
        place = model, likeness.steps, tuple(simplest(likeness.conditions)), truth.arch, below
        for block, asked, variable in _calls(header, model.function):
            new_function = ArchFunction(*place, block, asked=asked, variable=variable)
            candidates.append((cost, new_function))
    best = min(candidates, key=lambda candidate: candidate[0], default=None)
    return best[1] if best else None


def _calls(header: HeaderReturns, model: Function) -> Iterator[tuple[Clause, int, str]]:
    """Finds `auto sm100_tuning = get_sm100_tuning(…);` and the block that tests the result."""
    call = re.compile(rb"(?:const\s+)?auto\s+(\w+)\s*=\s*" + model.name.encode() + rb"\s*\(")
    for function, body in header.bodies:
        for match in call.finditer(header.code, function.body.start, function.body.end):
            variable = match[1].decode()
            for clause in body.clauses:
                if since_of(clause) and variable in clause.facts:
                    yield clause, match.start(), variable
