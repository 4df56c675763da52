"""Writes a separate block for an architecture in front of the block of an earlier one.

    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})

The upper bound hides the block from later architectures; it is omitted if they may use it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from policygen.headers.selectors.additions import (
    Sizes,
    above,
    below_line,
    guarded,
    insert,
    sizes_of,
    spaced,
    statement,
)
from policygen.headers.selectors.conditions import (
    EQUAL,
    Truth,
    defined,
    excluded,
    opposites,
    plain,
    simplest,
)
from policygen.headers.selectors.functions import SINCE, Function
from policygen.headers.selectors.nearest import (
    HeaderReturn,
    HeaderReturns,
    own_condition,
    passed_by,
)
from policygen.headers.selectors.statements import Body, Clause, Clauses, facts_of
from policygen.headers.spelling import UNIT, Change, indent_of
from policygen.headers.text import Text
from policygen.model.arch import arch_number, capability_number
from policygen.model.records import Span
from policygen.model.tuning import Content

# "{480,16}": spacing in code that clang-format leaves alone
_SQUEEZED = re.compile(r",(?=\S)")
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
    earlier = (
        clause
        for clause in call_path.body.clauses
        if clause.scope == call_path.block.scope
        and since_of(clause)
        and number_of(clause) <= arch_number(truth.arch)
    )
    before = next(earlier, None)
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


def add_in_front(text: Text, blocks: Sequence[tuple[ArchBlock, Content]]) -> Change:
    """Writes one block with all returns that go in front of the same block."""
    first = blocks[0][0]
    indent = indent_of(text.data, first.block.start)
    rows = block_rows([nested_return(text, *pair) for pair in blocks], indent + UNIT)
    arch_conditions = bounds(first.block, first.since, first.below)
    gap = [""] if spaced(text, first.block) else []
    lines = guarded(arch_conditions, rows, indent)
    if first.behind:
        return insert(text, below_line(text, first.block.end), [*gap, *lines])
    lines += gap
    return insert(text, above(text, first.block.start), lines)


@dataclass(frozen=True, slots=True)
class Nested:
    """A return with its conditions."""

    steps: tuple[Step, ...]
    more: tuple[str, ...]
    """Conditions that occur at no nesting level of the model."""
    rows: Callable[[str], list[str]]
    """Returns its lines at the given indentation."""

    @property
    def asks(self) -> tuple[str, ...]:
        """All conditions of the return."""
        return (*(fact for step in self.steps for fact in step.facts), *self.more)


def nested_return(text: Text, place: ArchReturn, content: Content) -> Nested:
    """Returns a return like its model, with its conditions."""

    def rows(indent: str) -> list[str]:
        lines = statement(text, place.beside.entry, content, indent, place.around)
        is_unformatted = place.beside.entry.format_off
        return [_SQUEEZED.sub(", ", row) for row in lines] if is_unformatted else lines

    return nested(place.steps, place.conditions, rows)


def bounds(block: Clause, since: str, below: str | None) -> list[str]:
    """Returns the conditions of an architecture block in the spelling of an existing block."""
    spelling = since_of(block)
    assert spelling is not None, "it is a block for an architecture"
    conditions = [f"cc >= {capability_of(spelling[1], since)}"]
    return [*conditions, f"cc < {capability_of(spelling[1], below)}"] if below else conditions


def capability_of(name: str, arch: str) -> str:
    """`::cuda::compute_capability{10, 0}`."""
    number = arch_number(arch)
    return f"{name}{{{number // 10}, {number % 10}}}"


# Nested returns
#
# Returns of a new function or block are nested like their models:
#
#     switch (key_size)
#     {
#       case 4:
#         switch (value_size)
#
# A return that shares no condition with another one gets a plain `if`.


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


def nested(steps: Sequence[Step], asks: Sequence[str], rows: Callable[[str], list[str]]) -> Nested:
    """Assigns each condition to the first level of the model that has it."""
    remaining = list(asks)
    steps_found: list[Step] = []
    for step in steps:
        matching = [fact for fact in dict.fromkeys(map(plain, step.facts)) if fact in remaining]
        remaining = [fact for fact in remaining if fact not in matching]
        if matching:
            steps_found.append(replace(step, facts=tuple(matching)))
    return Nested(tuple(steps_found), tuple(remaining), rows)


def leaving(returns: Sequence[Nested], indent: str) -> tuple[list[str], list[Nested]]:
    """Turns conditions that all returns share into an early `return {};`, as in their model."""
    shared = [fact for fact in _shared_conditions(returns) if len(opposites([fact])) == 1]
    if not shared:
        return [], list(returns)
    exit_condition = " || ".join(opposites([fact])[0] for fact in shared)
    rows = guarded((exit_condition,), [f"{indent}{UNIT}return {{}};"], indent)
    return [*rows, ""], _without_shared(returns, shared)


def _shared_conditions(returns: Sequence[Nested]) -> list[str]:
    """Returns the conditions that all returns share and that their models do not have."""
    candidates = returns[0].more if len(returns) > 1 else ()
    return [
        fact for fact in candidates if all(fact in nested_return.more for nested_return in returns)
    ]


def _without_shared(returns: Sequence[Nested], shared: Sequence[str]) -> list[Nested]:
    return [replace(own, more=tuple(f for f in own.more if f not in shared)) for own in returns]


def block_rows(returns: Sequence[Nested], indent: str) -> list[str]:
    """Writes the returns of a block, within one `if` for the conditions they all share."""
    if shared := _shared_conditions(returns):
        shared_step = Step("if", tuple(shared))
        returns = [
            replace(nested_return, steps=(shared_step, *nested_return.steps))
            for nested_return in _without_shared(returns, shared)
        ]
    return nested_rows(returns, indent)


def nested_rows(
    returns: Sequence[Nested], indent: str, switched: Collection[str] = ()
) -> list[str]:
    """Writes the returns of one block; operands in `switched` get a `switch` even for one case."""
    rows: list[str] = []
    for subject, groups in _runs(_groups(returns), switched):
        if subject is None:
            for group in groups:
                rows += _if_rows(group, indent)
        else:
            rows += _switch_rows(subject, groups, indent)
    return rows


_Group = list[Nested]


def _groups(returns: Sequence[Nested]) -> list[_Group]:
    """Groups returns by their first step where reordering does not change which one is taken."""
    groups: list[_Group] = []
    for nested_return in returns:
        for index in range(len(groups) - 1, -1, -1):
            if nested_return.steps and groups[index][0].steps[:1] == nested_return.steps[:1]:
                groups[index].append(nested_return)
                break
            if not all(
                any(excluded(fact, other.asks) for fact in nested_return.asks)
                for other in groups[index]
            ):
                groups.append([nested_return])
                break
        else:
            groups.append([nested_return])
    return groups


def _runs(
    groups: Sequence[_Group], switched: Collection[str] = ()
) -> Iterator[tuple[str | None, list[_Group]]]:
    """Splits groups into runs that are cases of one `switch` and runs that are not."""

    def subject_of(group: _Group) -> str | None:
        return group[0].steps[0].subject if group[0].steps else None

    for subject, grouped in groupby(groups, key=subject_of):
        run = list(grouped)
        yield (subject if len(run) > 1 or subject in switched else None), run


def _if_rows(group: _Group, indent: str) -> list[str]:
    """Writes one `if` for the conditions that a group shares, or none if there are none."""
    if len(group) == 1:
        (nested_return,) = group
        return (
            guarded(nested_return.asks, nested_return.rows(indent + UNIT), indent)
            if nested_return.asks
            else nested_return.rows(indent)
        )
    facts: list[str] = []
    while (step := group[0].steps[:1]) and all(
        nested_return.steps[:1] == step for nested_return in group
    ):
        facts += step[0].facts
        group = [_inside_first_step(nested_return) for nested_return in group]
    return guarded(facts, nested_rows(group, indent + UNIT), indent)


def _switch_rows(subject: str, groups: Sequence[_Group], indent: str) -> list[str]:
    """Writes a `switch`; workloads that match no case, or no return in it, continue behind it."""

    def case_size(case: tuple[_Group, _Group]) -> Sizes:
        return sizes_of(case[0][0].steps[0].facts)

    label_indent, body_indent = indent + UNIT, indent + UNIT * 2
    rows = [f"{indent}switch ({subject})", f"{indent}{{"]
    cases = [[_inside_first_step(nested_return) for nested_return in group] for group in groups]
    switched = {inner for case in cases for inner, _ in _runs(_groups(case)) if inner}
    for group, returns in sorted(zip(groups, cases, strict=True), key=case_size):
        rows.append(f"{label_indent}case {group[0].steps[0].facts[0].partition(' == ')[2]}:")
        rows += nested_rows(returns, body_indent, switched)
        rows += [f"{body_indent}break;"] if returns[-1].asks else []
    return [*rows, f"{label_indent}default:", f"{body_indent}break;", f"{indent}}}"]


def _inside_first_step(nested_return: Nested) -> Nested:
    """Returns a return as seen from inside the block of its first step."""
    return replace(nested_return, steps=nested_return.steps[1:])
