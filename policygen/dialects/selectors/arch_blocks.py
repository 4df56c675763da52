"""A block of its own for an architecture, in front of that of an earlier one.

    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})

The bound keeps later architectures from it; where they shall have it, there is none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.dialects.selectors.additions import (
    UNIT,
    Addition,
    Returned,
    above,
    below_line,
    condition_lines,
    insert,
    spaced,
    statement,
)
from policygen.dialects.selectors.branches import facts_of
from policygen.dialects.selectors.conditions import simplest
from policygen.dialects.selectors.functions import Function
from policygen.dialects.selectors.nearest import Bodies, KnownReturn, asked, own_condition
from policygen.dialects.selectors.nesting import Nested, Step, block_rows, nested, steps_of
from policygen.dialects.selectors.statements import Body, Clause, Clauses
from policygen.dialects.selectors.truth import Truth, defined
from policygen.model.arch import arch_number
from policygen.source.spelling import indent_of
from policygen.source.text import Text

# "cc >= ::cuda::compute_capability{10, 0}"
_SINCE = re.compile(r"cc >=? ((?:::)?(?:\w+::)*compute_capability)\{(\d+), ?(\d+)\}")
# "{480,16}", of what clang-format leaves alone
_SQUEEZED = re.compile(r",(?=\S)")
# "*sm107_tuning"
_GIVEN = re.compile(r"(?<![\w)/])\*\w+")
_WORD = re.compile(r"(?<![\w:])[a-z_]\w*\b(?!\s*[({:])")


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
