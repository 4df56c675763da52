"""A block of its own for an architecture, in front of that of an earlier one.

    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})

The bound keeps later architectures from it; where they shall have it, there is none.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from policygen.headers.selectors.additions import (
    UNIT,
    Addition,
    Returned,
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
from policygen.headers.selectors.nearest import Bodies, KnownReturn, asked, own_condition
from policygen.headers.selectors.statements import Body, Clause, Clauses
from policygen.headers.spelling import indent_of
from policygen.headers.text import Text
from policygen.model.arch import arch_number

# "cc >= ::cuda::compute_capability{10, 0}"
_SINCE = re.compile(r"cc >=? ((?:::)?(?:\w+::)*compute_capability)\{(\d+), ?(\d+)\}")
# "{480,16}", of what clang-format leaves alone
_SQUEEZED = re.compile(r",(?=\S)")
# "*sm107_tuning"
_GIVEN = re.compile(r"(?<![\w)/])\*\w+")
_WORD = re.compile(r"(?<![\w:])[a-z_]\w*\b(?!\s*[({:])")


@dataclass(frozen=True, slots=True)
class Step:
    """What is asked for at one level of the model."""

    kind: str
    """`case`, or `if`."""
    facts: tuple[str, ...]

    @property
    def subject(self) -> str | None:
        """What a `switch` is of, where this can be one of its cases."""
        match = EQUAL.fullmatch(self.facts[0]) if len(self.facts) == 1 else None
        return match[1] if match and self.kind == "case" else None


@dataclass(frozen=True, slots=True)
class ArchBlock:
    """A return that is to stand in a block for its architecture alone."""

    beside: KnownReturn
    """The return that it is like."""
    block: Clause
    """The block of an architecture in front of which the new one goes."""
    steps: tuple[Step, ...]
    """The levels at which that asks for them."""
    conditions: tuple[str, ...]
    around: tuple[str, str]
    """What the caller makes of the value: `make_policy(` and `)`."""
    since: str
    below: str | None
    behind: bool = False
    """Whether it goes behind the block, which is that of a later architecture."""


def in_front(
    text: Text,
    known: Sequence[KnownReturn],
    bodies: Bodies,
    truth: Truth,
    below: str | None,
    decides: KnownReturn | None,
) -> ArchBlock | None:
    """Where the block goes, and what a return for the workload asks for in it.

    All that the return asks for that decides it now holds, also where that is not known.
    """
    flags = {fact for one in known for fact in one.entry.args}
    found = [
        (cost, front)
        for one in known
        for way in _ways(text, one, bodies)
        for cost, front in _front(text, one, way, truth, flags, below, decides)
    ]
    best = min(found, key=lambda pair: pair[0], default=None)
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class _Way:
    """From the block of an architecture to a return."""

    function: Function
    body: Body
    block: Clause
    inner: Clauses
    around: tuple[str, str]


def _ways(text: Text, one: KnownReturn, bodies: Bodies) -> Iterator[_Way]:
    """Directly, or by a call from the function that knows the architecture."""
    place = _capability(one.clauses)
    if place is not None:
        block, inner = one.clauses[place], one.clauses[place + 1 :]
        yield _Way(one.function, one.body, block, inner, ("", ""))
        return
    call = re.compile(rf"\b{one.function.name}\([^()]*\)")
    for function, body in bodies:
        for each in body.returns:
            place = _capability(each.clauses)
            if place is None:
                continue
            value = text.uncommented[each.value.start : each.value.end].decode()
            tests = [c for c in each.clauses[place + 1 :] if call.search(c.text)]
            other = [c for c in each.clauses[place + 1 :] if c not in tests]
            written = text.data[each.value.start : each.value.end].decode(errors="replace")
            around = _made(text, one, call, (value, written), tested=bool(tests))
            if around is not None:
                inner = (*other, *one.clauses)
                yield _Way(function, body, each.clauses[place], inner, around)


def _made(
    text: Text, one: KnownReturn, call: re.Pattern[str], made: tuple[str, str], *, tested: bool
) -> tuple[str, str] | None:
    """What a caller makes of what it is returned: without its comments, and with them."""
    body = one.entry.body_span
    assert body is not None, "it has values"
    named = one.function.returns if text.data[body.start : body.start + 1] == b"{" else ""
    # "make_policy(*sm107_tuning, /*large keys=*/true)": what was asked for is made something of
    value, written = made
    match = _GIVEN.search(value) if tested else call.search(value)
    if match is None:
        return None
    whole = written if len(written) == len(value) else value
    return whole[: match.start()] + named, whole[match.end() :]


def _capability(clauses: Clauses) -> int | None:
    """Which clause asks for an architecture."""
    return next((i for i, clause in enumerate(clauses) if since_of(clause)), None)


def since_of(clause: Clause) -> re.Match[str] | None:
    """The architecture that a clause is for."""
    facts = facts_of((clause,)) if clause.kind == "if" else ()
    return next((match for fact in facts if (match := _SINCE.fullmatch(fact))), None)


def besides_arch(block: Clause) -> list[str]:
    """What a block for an architecture asks for besides that."""
    return [fact for fact in facts_of((block,)) if not fact.startswith("cc ")]


def _front(
    text: Text,
    one: KnownReturn,
    way: _Way,
    truth: Truth,
    flags: set[str],
    below: str | None,
    decides: KnownReturn | None,
) -> Iterator[tuple[tuple[int, ...], ArchBlock]]:
    mine = [*besides_arch(way.block), *facts_of(way.inner)]
    wanted = asked(one, mine, truth, flags, as_it_is=one is decides)
    if wanted is None:
        return
    number = arch_number(truth.arch)
    behind = _number(way.block) > number
    block = _first(way, number) or (way.block if behind else None)
    if block is None:
        return
    conditions, other = wanted
    needed = {word for fact in conditions for word in _WORD.findall(fact)} | _locals(text, one)
    if not all(_is_seen(text, way, word, block, truth) for word in needed):
        return
    asks = tuple(simplest(conditions))
    steps = steps_of(
        way.inner, lambda fact: fact if one is decides else own_condition(fact, truth, flags)
    )
    cost = other, -arch_number(one.family.arch), len(asks)
    last = behind and block is way.block
    yield cost, ArchBlock(one, block, steps, asks, way.around, truth.arch, below, last)


def _locals(text: Text, one: KnownReturn) -> set[str]:
    """What a function computes or is told, as far as its return has it."""
    span = one.entry.body_span
    assert span is not None, "it has values"
    words = set(_WORD.findall(text.uncommented[span.start : span.end].decode(errors="replace")))
    computed = {w for w in words if defined(text.code, one.function.body, w) is not None}
    return computed | (words & set(one.function.parameters))


def _first(way: _Way, number: int) -> Clause | None:
    """The first block that is for no later architecture."""
    for clause in way.body.clauses:
        if since_of(clause) and clause.scope == way.block.scope and _number(clause) <= number:
            return clause
    return None


def _number(block: Clause) -> int:
    """The architecture that a block is for: 107."""
    since = since_of(block)
    assert since is not None, "it is a block for an architecture"
    return int(f"{since[2]}{since[3]}")


def _is_seen(text: Text, way: _Way, word: str, block: Clause, truth: Truth) -> bool:
    """Whether a name means the same in front of a block."""
    if word in {"not", "and", "or", "true", "false"} or word in truth.traits:
        return True
    if word in way.function.parameters:
        return True
    at = defined(text.code, way.function.body, word)
    if at is None or at > block.start:
        return False
    around = [s.span for s in way.body.scopes if s.span.start <= at < s.span.end]
    inner = max(around, key=lambda span: span.start)
    return inner.start <= block.start < inner.end


def add_in_front(text: Text, blocks: Sequence[tuple[ArchBlock, Returned]]) -> Addition:
    """One block with all returns that go there."""
    first = blocks[0][0]
    indent = indent_of(text.data, first.block.start)
    rows = block_rows([_nested(text, *pair) for pair in blocks], indent + UNIT)
    held = bounds(first.block, first.since, first.below)
    gap = [""] if spaced(text, first.block) else []
    lines = [*condition_lines(held, indent), f"{indent}{{", *rows, f"{indent}}}"]
    if first.behind:
        return insert(text, below_line(text, first.block.end), [*gap, *lines])
    lines += gap
    return insert(text, above(text, first.block.start), lines)


@dataclass(frozen=True, slots=True)
class Nested:
    """A return with what it asks for."""

    steps: tuple[Step, ...]
    more: tuple[str, ...]
    """What the model asks for nowhere on the way to its return."""
    rows: Callable[[str], list[str]]
    """Its lines, with an indent."""

    @property
    def asks(self) -> tuple[str, ...]:
        """All that it asks for."""
        return (*(fact for step in self.steps for fact in step.facts), *self.more)


def _nested(text: Text, front: ArchBlock, new: Returned) -> Nested:
    def rows(indent: str) -> list[str]:
        found = statement(text, front.beside.entry, new, indent, front.around)
        alone = front.beside.entry.format_off
        return [_SQUEEZED.sub(", ", row) for row in found] if alone else found

    return nested(front.steps, front.conditions, rows)


def bounds(block: Clause, since: str, below: str | None) -> list[str]:
    """What a block for an architecture asks for, spelled as in another."""
    spelled = since_of(block)
    assert spelled is not None, "it is a block for an architecture"
    held = [f"cc >= {capability_of(spelled[1], since)}"]
    return [*held, f"cc < {capability_of(spelled[1], below)}"] if below else held


def capability_of(name: str, arch: str) -> str:
    """`::cuda::compute_capability{10, 0}`."""
    number = arch_number(arch)
    return f"{name}{{{number // 10}, {number % 10}}}"


# Returns of a new function or block within each other as those are that they are made after.
#
#     switch (key_size)
#     {
#       case 4:
#         switch (value_size)
#
# A return that shares no condition with another one has a plain `if` for itself.


def steps_of(clauses: Clauses, own: Callable[[str], str | None]) -> tuple[Step, ...]:
    """The levels of a model, with the conditions of a new return in place of its own."""
    return tuple(
        Step(clause.kind, tuple(fact for one in facts_of((clause,)) if (fact := own(one))))
        for clause in clauses
    )


def nested(steps: Sequence[Step], asks: Sequence[str], rows: Callable[[str], list[str]]) -> Nested:
    """The conditions of a return, each at the first level of its model that has it."""
    left = list(asks)
    found: list[Step] = []
    for step in steps:
        mine = [fact for fact in dict.fromkeys(map(plain, step.facts)) if fact in left]
        left = [fact for fact in left if fact not in mine]
        if mine:
            found.append(replace(step, facts=tuple(mine)))
    return Nested(tuple(found), tuple(left), rows)


def leaving(ones: Sequence[Nested], indent: str) -> tuple[list[str], list[Nested]]:
    """What all returns ask for, and their model left a function for before: so does the new one."""
    shared = [fact for fact in _shared(ones) if len(opposites([fact])) == 1]
    if not shared:
        return [], list(ones)
    left = " || ".join(opposites([fact])[0] for fact in shared)
    rows = guarded((left,), [f"{indent}{UNIT}return {{}};"], indent)
    return [*rows, ""], _without(ones, shared)


def _shared(ones: Sequence[Nested]) -> list[str]:
    """What several returns all ask for, beside what their models do."""
    found = ones[0].more if len(ones) > 1 else ()
    return [fact for fact in found if all(fact in one.more for one in ones)]


def _without(ones: Sequence[Nested], shared: Sequence[str]) -> list[Nested]:
    kept = [tuple(fact for fact in one.more if fact not in shared) for one in ones]
    return [replace(one, more=more) for one, more in zip(ones, kept, strict=True)]


def block_rows(ones: Sequence[Nested], indent: str) -> list[str]:
    """The lines of returns in a block, within an `if` for what all of them ask for."""
    if shared := _shared(ones):
        first = Step("if", tuple(shared))
        ones = [replace(one, steps=(first, *one.steps)) for one in _without(ones, shared)]
    return nested_rows(ones, indent)


def nested_rows(ones: Sequence[Nested], indent: str, switched: Collection[str] = ()) -> list[str]:
    """The lines of returns that stand in one block; some values have a `switch` for one case."""
    rows: list[str] = []
    for subject, groups in _runs(_groups(ones), switched):
        if subject is None:
            for group in groups:
                rows += _if(group, indent)
        else:
            rows += _switch(subject, groups, indent)
    return rows


_Group = list[Nested]


def _groups(ones: Sequence[Nested]) -> list[_Group]:
    """Returns with the same first step, as far as that changes nothing for those between."""
    found: list[_Group] = []
    for one in ones:
        for place in range(len(found) - 1, -1, -1):
            if one.steps and found[place][0].steps[:1] == one.steps[:1]:
                found[place].append(one)
                break
            if not all(_apart(one, other) for other in found[place]):
                found.append([one])
                break
        else:
            found.append([one])
    return found


def _apart(one: Nested, other: Nested) -> bool:
    """Whether no workload is for both."""
    return any(excluded(fact, other.asks) for fact in one.asks)


def _runs(
    groups: Sequence[_Group], switched: Collection[str] = ()
) -> Iterator[tuple[str | None, list[_Group]]]:
    """Groups that are cases of one `switch`, and those that are not."""
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


def _if(group: _Group, indent: str) -> list[str]:
    """One `if` for all that the returns of a group share; none where they ask for nothing."""
    if len(group) == 1:
        (one,) = group
        return guarded(one.asks, one.rows(indent + UNIT), indent) if one.asks else one.rows(indent)
    facts: list[str] = []
    while (step := group[0].steps[:1]) and all(one.steps[:1] == step for one in group):
        facts += step[0].facts
        group = [_within(one) for one in group]
    return guarded(facts, nested_rows(group, indent + UNIT), indent)


def _switch(subject: str, groups: Sequence[_Group], indent: str) -> list[str]:
    """`switch (…)`; what has no case, or returns nothing in its own, goes on behind it."""
    label, inside = indent + UNIT, indent + UNIT * 2
    rows = [f"{indent}switch ({subject})", f"{indent}{{"]
    cases = [[_within(one) for one in group] for group in groups]
    switched = {inner for case in cases for inner, _ in _runs(_groups(case)) if inner}
    for group, within in sorted(zip(groups, cases, strict=True), key=_size):
        rows.append(f"{label}case {group[0].steps[0].facts[0].partition(' == ')[2]}:")
        rows += nested_rows(within, inside, switched)
        rows += [f"{inside}break;"] if within[-1].asks else []
    return [*rows, f"{label}default:", f"{inside}break;", f"{indent}}}"]


def _size(case: tuple[_Group, _Group]) -> Sizes:
    """The number of a case, by which those of a `switch` are sorted."""
    return sizes_of(case[0][0].steps[0].facts)


def _within(one: Nested) -> Nested:
    """A return in the block of its first step."""
    return replace(one, steps=one.steps[1:])
