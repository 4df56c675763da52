"""Writes a separate block for an architecture in front of the block of an earlier one.

    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})

The upper bound hides the block from later architectures; it is omitted if they may use it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from policygen.headers.selectors.additions import (
    UNIT,
    Addition,
    Sizes,
    above,
    below_line,
    condition_lines,
    guarded,
    insert,
    sizes_of,
    spaced,
    statement,
)
from policygen.headers.selectors.branches import (
    EQUAL,
    Truth,
    defined,
    excluded,
    facts_of,
    opposites,
    plain,
    simplest,
)
from policygen.headers.selectors.functions import Function
from policygen.headers.selectors.nearest import Bodies, HeaderReturn, conditions_like, own_condition
from policygen.headers.selectors.statements import Body, Clause, Clauses
from policygen.headers.spelling import indent_of
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.edits import Content

# "cc >= ::cuda::compute_capability{10, 0}"
_SINCE = re.compile(r"cc >=? ((?:::)?(?:\w+::)*compute_capability)\{(\d+), ?(\d+)\}")
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
class ArchBlock:
    """A new return in a block for its architecture alone."""

    beside: HeaderReturn
    """The model return."""
    block: Clause
    """The architecture block that the new one goes before."""
    steps: tuple[Step, ...]
    """The nesting levels and conditions of the model return."""
    conditions: tuple[str, ...]
    around: tuple[str, str]
    """What the caller wraps around the value: `make_policy(` and `)`."""
    since: str
    below: str | None
    behind: bool = False
    """Whether the block goes behind `block`, which is for a later architecture."""


def in_front(
    text: Text,
    returns: Sequence[HeaderReturn],
    bodies: Bodies,
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
        (cost, arch_block)
        for model in returns
        for call_path in _call_paths(text, model, bodies)
        for cost, arch_block in _candidates(text, model, call_path, truth, flags, below, decides)
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


def _call_paths(text: Text, model: HeaderReturn, bodies: Bodies) -> Iterator[_CallPath]:
    """Yields direct paths, or paths by a call from the function that tests the architecture."""
    index = _capability(model.clauses)
    if index is not None:
        block, inner = model.clauses[index], model.clauses[index + 1 :]
        yield _CallPath(model.function, model.body, block, inner, ("", ""))
        return
    call = re.compile(rf"\b{model.function.name}\([^()]*\)")
    for function, body in bodies:
        for caller_return in body.returns:
            index = _capability(caller_return.clauses)
            if index is None:
                continue
            value = text.uncommented[slice(*caller_return.value)].decode()
            tests = [
                clause for clause in caller_return.clauses[index + 1 :] if call.search(clause.text)
            ]
            other_clauses = [
                clause for clause in caller_return.clauses[index + 1 :] if clause not in tests
            ]
            with_comments = text.data[slice(*caller_return.value)].decode(errors="replace")
            wrapper = _caller_wrapper(text, model, call, (value, with_comments), tested=bool(tests))
            if wrapper is not None:
                inner = (*other_clauses, *model.clauses)
                yield _CallPath(function, body, caller_return.clauses[index], inner, wrapper)


def _caller_wrapper(
    text: Text,
    model: HeaderReturn,
    call: re.Pattern[str],
    caller_value: tuple[str, str],
    *,
    tested: bool,
) -> tuple[str, str] | None:
    """Returns the text that a caller puts before and after the returned value."""
    body = model.entry.body_span
    assert body is not None, "it has values"
    type_name = model.function.returns if text.data[body.start : body.start + 1] == b"{" else ""
    # "make_policy(*sm107_tuning, /*large keys=*/true)": the caller wraps the result
    value, with_comments = caller_value
    match = _DEREFERENCED.search(value) if tested else call.search(value)
    if match is None:
        return None
    expression = with_comments if len(with_comments) == len(value) else value
    return expression[: match.start()] + type_name, expression[match.end() :]


def _capability(clauses: Clauses) -> int | None:
    """Returns the index of the clause that tests the architecture."""
    return next((i for i, clause in enumerate(clauses) if since_of(clause)), None)


def since_of(clause: Clause) -> re.Match[str] | None:
    """Matches the architecture test of a clause."""
    facts = facts_of((clause,)) if clause.kind == "if" else ()
    return next((match for fact in facts if (match := _SINCE.fullmatch(fact))), None)


def besides_arch(block: Clause) -> list[str]:
    """Returns the conditions of an architecture block other than the architecture."""
    return [fact for fact in facts_of((block,)) if not fact.startswith("cc ")]


def _candidates(
    text: Text,
    model: HeaderReturn,
    call_path: _CallPath,
    truth: Truth,
    flags: set[str],
    below: str | None,
    decides: HeaderReturn | None,
) -> Iterator[tuple[tuple[int, ...], ArchBlock]]:
    facts = [*besides_arch(call_path.block), *facts_of(call_path.inner)]
    conditions_and_changes = conditions_like(model, facts, truth, flags, as_it_is=model is decides)
    if conditions_and_changes is None:
        return
    number = arch_number(truth.arch)
    behind = _number(call_path.block) > number
    block = _first_block(call_path, number) or (call_path.block if behind else None)
    if block is None:
        return
    conditions, changed_count = conditions_and_changes
    needed_names = {word for fact in conditions for word in _WORD.findall(fact)} | _locals(
        text, model
    )
    if not all(_is_visible(text, call_path, word, block, truth) for word in needed_names):
        return
    simplified = tuple(simplest(conditions))
    steps = steps_of(
        call_path.inner,
        lambda fact: fact if model is decides else own_condition(fact, truth, flags),
    )
    cost = changed_count, -arch_number(model.family.arch), len(simplified)
    is_behind = behind and block is call_path.block
    yield (
        cost,
        ArchBlock(model, block, steps, simplified, call_path.around, truth.arch, below, is_behind),
    )


def _locals(text: Text, model: HeaderReturn) -> set[str]:
    """Returns the local constants and parameters that a return's value uses."""
    span = model.entry.body_span
    assert span is not None, "it has values"
    words = set(_WORD.findall(text.uncommented[slice(*span)].decode(errors="replace")))
    computed = {word for word in words if defined(text.code, model.function.body, word) is not None}
    return computed | (words & set(model.function.parameters))


def _first_block(call_path: _CallPath, number: int) -> Clause | None:
    """Returns the first block that is not for a later architecture."""
    for clause in call_path.body.clauses:
        if since_of(clause) and clause.scope == call_path.block.scope and _number(clause) <= number:
            return clause
    return None


def _number(block: Clause) -> int:
    """Returns the architecture of a block as a number: 107."""
    since = since_of(block)
    assert since is not None, "it is a block for an architecture"
    return int(f"{since[2]}{since[3]}")


def _is_visible(text: Text, call_path: _CallPath, word: str, block: Clause, truth: Truth) -> bool:
    """Checks that a name has the same meaning in front of a block."""
    if word in {"not", "and", "or", "true", "false"} or word in truth.traits:
        return True
    if word in call_path.function.parameters:
        return True
    definition = defined(text.code, call_path.function.body, word)
    if definition is None or definition > block.start:
        return False
    scope = call_path.body.scope_at(definition).span
    return scope.start <= block.start < scope.end


def add_in_front(text: Text, blocks: Sequence[tuple[ArchBlock, Content]]) -> Addition:
    """Writes one block with all returns that go in front of the same block."""
    first = blocks[0][0]
    indent = indent_of(text.data, first.block.start)
    rows = block_rows([_nested(text, *pair) for pair in blocks], indent + UNIT)
    arch_conditions = bounds(first.block, first.since, first.below)
    gap = [""] if spaced(text, first.block) else []
    lines = [*condition_lines(arch_conditions, indent), f"{indent}{{", *rows, f"{indent}}}"]
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


def _nested(text: Text, arch_block: ArchBlock, content: Content) -> Nested:
    def rows(indent: str) -> list[str]:
        lines = statement(text, arch_block.beside.entry, content, indent, arch_block.around)
        is_unformatted = arch_block.beside.entry.format_off
        return [_SQUEEZED.sub(", ", row) for row in lines] if is_unformatted else lines

    return nested(arch_block.steps, arch_block.conditions, rows)


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


def steps_of(clauses: Clauses, own: Callable[[str], str | None]) -> tuple[Step, ...]:
    """Returns the levels of a model, with the new return's conditions in place of the model's."""
    return tuple(
        Step(
            clause.kind, tuple(own_fact for fact in facts_of((clause,)) if (own_fact := own(fact)))
        )
        for clause in clauses
    )


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
    remaining = [
        tuple(fact for fact in nested_return.more if fact not in shared)
        for nested_return in returns
    ]
    return [
        replace(nested_return, more=conditions)
        for nested_return, conditions in zip(returns, remaining, strict=True)
    ]


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
    runs: list[tuple[str | None, list[_Group]]] = []
    for group in groups:
        steps = group[0].steps
        subject = steps[0].subject if steps else None
        if runs and runs[-1][0] == subject:
            runs[-1][1].append(group)
        else:
            runs.append((subject, [group]))
    for subject, run in runs:
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
    label_indent, body_indent = indent + UNIT, indent + UNIT * 2
    rows = [f"{indent}switch ({subject})", f"{indent}{{"]
    cases = [[_inside_first_step(nested_return) for nested_return in group] for group in groups]
    switched = {inner for case in cases for inner, _ in _runs(_groups(case)) if inner}
    for group, returns in sorted(zip(groups, cases, strict=True), key=_case_size):
        rows.append(f"{label_indent}case {group[0].steps[0].facts[0].partition(' == ')[2]}:")
        rows += nested_rows(returns, body_indent, switched)
        rows += [f"{body_indent}break;"] if returns[-1].asks else []
    return [*rows, f"{label_indent}default:", f"{body_indent}break;", f"{indent}}}"]


def _case_size(case: tuple[_Group, _Group]) -> Sizes:
    """Returns the sort key of a case within its `switch`."""
    return sizes_of(case[0][0].steps[0].facts)


def _inside_first_step(nested_return: Nested) -> Nested:
    """Returns a return as seen from inside the block of its first step."""
    return replace(nested_return, steps=nested_return.steps[1:])
