"""Beside which return one for another workload would stand, and what it would ask for.

The nearest is the return that asks for what the workload has, but for a size, a type or a flag in
its innermost conditions: with the workload's own in their place it stands in the same block.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.protocol import ANY_OTHER
from policygen.headers.selectors.branches import (
    EQUAL,
    FLAG,
    UNEQUAL,
    Truth,
    arch_of,
    conjuncts,
    excluded,
    facts_of,
    locals_of,
    opposites,
    simplest,
)
from policygen.headers.selectors.functions import Function, Struct, find_functions, find_structs
from policygen.headers.selectors.statements import (
    Body,
    Clause,
    Clauses,
    Return,
    conditions_of,
    read_body,
)
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.selection import Selected
from policygen.model.tuning import Entry, Family, TuningHeader, spell

_CAPABILITY = re.compile(r"\bcc\b")
Bodies = list[tuple[Function, Body]]


@dataclass(frozen=True, slots=True)
class KnownReturn:
    """A return of a header, and how it is reached."""

    family: Family
    entry: Entry
    function: Function
    body: Body
    clauses: Clauses
    start: int
    """Where the `return` begins."""


@dataclass(frozen=True, slots=True)
class BeforeReturn:
    """A return for one type, before the one for all others of the same size."""

    beside: KnownReturn
    condition: str


@dataclass(frozen=True, slots=True)
class BesideReturn:
    """A return that is not there yet, and the one that it stands beside."""

    beside: KnownReturn
    clause: Clause
    """Of the one beside: it stands in the same block."""
    around: tuple[str, ...]
    """What holds in that block."""
    conditions: tuple[str, ...]
    """What it asks for itself."""
    instead: Span | None = None
    """The same condition where it is commented out."""


def read_bodies(text: Text) -> Bodies:
    """The functions of a header that return policies, with their statements."""
    code = text.code
    found = find_functions(code, find_structs(code))
    return [(function, read_body(code, function.body)) for function in found]


def known_returns(bodies: Bodies, families: Sequence[Family]) -> Iterator[KnownReturn]:
    """The live returns with values, in the order of the header."""
    entries = {
        entry.body_span.start: (family, entry)
        for family in families
        for entry in family.entries
        if entry.body_span and entry.members and not entry.disabled
    }
    for function, body in bodies:
        for one in body.returns:
            if found := entries.get(one.value.start):
                yield KnownReturn(*found, function, body, one.clauses, one.span.start)


def nearest(known: Sequence[KnownReturn], truth: Truth) -> BesideReturn | None:
    """The best of some returns to stand beside; none where all ask for something else."""
    flags = {fact for one in known for fact in one.entry.args}
    found = [near for one in known if (near := _near(one, truth, flags))]
    if not found:
        return None
    found.sort(key=lambda near: _cost(near, truth))
    best = found[0]
    if gone_before(best, truth):
        others = (n for n in found if not gone_before(n, truth) and not _is_there(n))
        best = next(others, best)
    wanted = {*best.around, *best.conditions}
    out = (e for e in best.beside.family.entries if e.disabled and set(e.args) == wanted)
    instead = next((entry.span for entry in out), None)
    return replace(best, conditions=tuple(simplest(best.conditions)), instead=instead)


def _near(one: KnownReturn, truth: Truth, flags: set[str]) -> BesideReturn | None:
    facts = [facts_of((clause,)) for clause in one.clauses]
    wrong = [level for level, own in enumerate(facts) if any(truth.holds(f) is False for f in own)]
    if not wrong:
        return None
    level = wrong[0]
    own = [own_condition(fact, truth, flags) for told in facts[level:] for fact in told]
    conditions = tuple(fact for fact in own if fact)
    if None in own or any(map(_CAPABILITY.match, conditions)):
        return None
    if _has_case(one.body, one.clauses[level], conditions):
        return None
    around = tuple(fact for told in facts[:level] for fact in told)
    return BesideReturn(one, one.clauses[level], around, conditions)


def _is_there(near: BesideReturn) -> bool:
    """Whether an `if` beside asks for the same: what it holds is not for the workload."""
    mine = {*simplest(near.conditions)}
    beside = (c for c in near.beside.body.clauses if c.scope == near.clause.scope)
    return any({*simplest(facts_of((clause,)))} == mine for clause in beside)


def _has_case(body: Body, clause: Clause, conditions: Sequence[str]) -> bool:
    """Whether a `switch` has the `case` that would be added."""
    cases = [c for c in body.clauses if c.scope == clause.scope and c.kind == "case"]
    return clause.kind == "case" and any(
        condition in case.text.split(" || ") for condition in conditions for case in cases
    )


def asked(
    one: KnownReturn, facts: Sequence[str], truth: Truth, flags: set[str], *, as_it_is: bool = False
) -> tuple[list[str], int] | None:
    """What a return like another asks for, and how much of it is other; none without an answer."""
    own = [fact if as_it_is else own_condition(fact, truth, flags) for fact in facts]
    conditions = [fact for fact in own if fact]
    if not conditions or None in own:
        return None
    passed = passed_by(one, conditions, truth)
    if passed is None:
        return None
    return conditions + passed, sum(a != b for a, b in zip(facts, conditions, strict=True))


def own_condition(fact: str, truth: Truth, flags: set[str]) -> str | None:
    """A condition as it is, or with what the workload has; none where nothing can be said."""
    held = truth.holds(fact)
    if held is None:
        return None
    return fact if held else _with_own(fact, truth, flags)


def _with_own(fact: str, truth: Truth, flags: set[str]) -> str | None:
    equals = list(EQUAL.finditer(fact))
    if equals and len({match[1] for match in equals}) == 1 and "!=" not in fact:
        name, space = equals[0][1], equals[0][2]
        value = truth.traits.get(name)
        if value is None or value == ANY_OTHER:
            return None
        return f"{name} == {space if isinstance(value, str) else ''}{spell(value)}"
    if flag := FLAG.fullmatch(fact):
        turned = flag[2] if flag[1] else f"not {flag[2]}"
        asked = {turned, turned.replace("not ", "!")} & flags
        return min(asked, default=None)
    return None


def _cost(near: BesideReturn, truth: Truth) -> tuple[int, ...]:
    """Few conditions that are others than beside, of these no flags; then many of the same."""
    open_ones = sum(truth.holds(fact) is None for fact in near.around)
    theirs = facts_of(near.beside.clauses)[len(near.around) :]
    both = enumerate(zip(theirs, near.conditions, strict=True))
    other = [(place, a, b) for place, (a, b) in both if a != b]
    apart = [abs(_number(a) - _number(b)) for _, a, b in other]
    facts = [*near.around, *near.conditions]
    named = sum((match := EQUAL.search(fact)) is not None and "::" in match[2] for fact in facts)
    same = len(facts) - len(other) - named
    flags = sum(EQUAL.search(a) is None for _, a, _ in other)
    deep = len(near.around)
    return open_ones, len(other), flags, -same, named, -other[0][0], -deep, *apart


def _number(fact: str) -> int:
    digits = re.search(r"== (\d+)$", fact)
    return int(digits[1]) if digits else 0


@dataclass(frozen=True, slots=True)
class EmptyCase:
    """Where a workload leaves its `case` without a return."""

    beside: KnownReturn
    span: Span
    """The `break;` or the empty return."""
    around: tuple[str, ...]


def empty_case(known: Sequence[KnownReturn], truth: Truth, arch: str) -> EmptyCase | None:
    """The statement with which a `case` for a workload gives up, and a return to be like."""
    for function, body in {id(one.body): (one.function, one.body) for one in known}.values():
        ends = [(b.span, b.clauses) for b in body.breaks]
        ends += [(r.span, r.clauses) for r in body.returns if _is_empty(r)]
        for span, clauses in ends:
            facts = facts_of(clauses)
            inside = any(c.kind == "case" and EQUAL.search(c.text) for c in clauses)
            if not inside or not all(truth.holds(fact) for fact in facts):
                continue
            if arch_of(function, conditions_of(clauses)) != arch:
                continue
            theirs = [one for one in known if one.body is body]
            beside = max(theirs, key=lambda one: _shared(one.clauses, clauses))
            return EmptyCase(beside, span, tuple(facts))
    return None


def _is_empty(one: Return) -> bool:
    return one.value.end - one.value.start <= len("{ }")


def _shared(one: Clauses, other: Clauses) -> int:
    return sum(a is b for a, b in zip(one, other, strict=False))


def gone_before(near: BesideReturn, truth: Truth) -> Return | None:
    """A return that a workload meets before it gets to the block of its nearest."""
    return next(
        (
            one
            for one in near.beside.body.returns
            if one.span.end <= near.clause.start
            and all(truth.holds(fact) for fact in facts_of(one.clauses))
        ),
        None,
    )


def passed_by(one: KnownReturn, asked: Sequence[str], truth: Truth) -> list[str] | None:
    """What must not hold, so that no return before this one is taken in its place.

    None where a return before it is for the workload, and nothing tells it from others.
    """
    block = [clause for clause in one.clauses if _CAPABILITY.search(clause.text)]
    ends = [(each.span, each.clauses) for each in one.body.returns]
    ends += [(each.span, each.clauses) for each in one.body.breaks]
    assert one.entry.span is not None
    found: list[str] = []
    for span, clauses in ends:
        facts = facts_of(clauses)
        here = [clause for clause in clauses if _CAPABILITY.search(clause.text)]
        if span.start >= one.entry.span.start or here != block:
            continue
        more = [f for f in facts if f not in asked and not _CAPABILITY.search(f)]
        if not more or any(excluded(fact, asked) for fact in more):
            continue
        if all(truth.holds(fact) is False for fact in more):
            found += opposites(more)
        elif all(truth.holds(fact) for fact in more):
            exact = [_exactly(fact, truth) for fact in more]
            if None in exact:
                return None
            found += [fact for fact in exact if fact]
    return list(dict.fromkeys(found))


def _exactly(fact: str, truth: Truth) -> str | None:
    """`operation_t != op_kind_t::plus` as `operation_t == op_kind_t::min`; a flag as it is."""
    if match := UNEQUAL.fullmatch(fact):
        value = truth.traits.get(match[1])
        return None if value in {None, ANY_OTHER} else f"{match[1]} == {match[2]}{value}"
    return fact if FLAG.fullmatch(fact) or EQUAL.fullmatch(fact) else None


_HEADER_RETURNS_CAPABILITY = re.compile(r"\bcc\b")
# "get_sm90_tuning("
_CALLED = re.compile(rb"(\w+)\s*\(")


@dataclass(frozen=True, slots=True)
class HeaderReturns:
    """What the functions of a header do."""

    text: Text
    structs: Mapping[str, Struct]
    bodies: Bodies
    constants: Mapping[str, str]
    returns: tuple[KnownReturn, ...]
    enumerations: Mapping[str, str]
    """Members of the policy selector that name a type, and the enumeration of the names."""
    calls: Mapping[str, Sequence[Sequence[str]]]
    """Function → what is asked for where it is called, each time."""
    deciding: frozenset[str]
    """Functions that give every workload values."""

    def asks(self, one: KnownReturn, truth: Truth, told: Selected) -> bool:
        """Whether the function of a return is asked for a workload, as far as that is known."""
        if told.entry is None and one.function.label in self.deciding:
            return False  # its values are given, and not taken
        calls = self.calls.get(one.function.name, [()])
        return any(all(truth.holds(fact) is not False for fact in facts) for facts in calls)


# What the functions of a header return, and for which workloads they are asked.


def read_returns(text: Text, header: TuningHeader) -> HeaderReturns:
    """Reads a header; refused where it is not UTF-8."""
    _check_utf8(text)
    structs, bodies = find_structs(text.code), read_bodies(text)
    found = tuple(known_returns(bodies, header.selectors))
    selector = structs.get(words().selectors.name)
    pairs = zip(selector.fields, selector.types, strict=True) if selector else ()
    return HeaderReturns(
        text,
        structs,
        bodies,
        locals_of(text.code, (function.body for function, _ in bodies)),
        found,
        {name: kind for name, kind in pairs if kind == words().selectors.types},
        _asked_around(text, bodies),
        _always_decide(text, bodies, found),
    )


def _asked_around(text: Text, bodies: Bodies) -> dict[str, list[tuple[str, ...]]]:
    """By function what else than the architecture is asked for where it is called."""
    names = "|".join(
        re.escape(function.name) for function, _ in bodies if function.name.isidentifier()
    )
    calls = re.compile(rf"\b({names})\s*\(".encode())
    found: dict[str, list[tuple[str, ...]]] = {}
    for function, body in bodies:
        for match in calls.finditer(text.code, function.body.start, function.body.end):
            scopes = [s for s in body.scopes if s.span.start <= match.start() < s.span.end]
            inner = max(scopes, key=lambda scope: scope.span.start)
            facts = [
                f for f in conjuncts(inner.conditions) if not _HEADER_RETURNS_CAPABILITY.search(f)
            ]
            found.setdefault(match[1].decode(), []).append(tuple(facts))
    return found


def _always_decide(text: Text, bodies: Bodies, known: Sequence[KnownReturn]) -> frozenset[str]:
    """The functions that give every workload values of a return.

    A workload that the compiler gives none of them does not get what such a function says.
    """
    valued = {one.start for one in known}
    found: set[str] = set()
    for function, body in bodies:  # what they call comes before them
        left = [each for each in body.returns if each.span.start not in valued]
        calls = [_CALLED.match(text.code, *each.value) for each in left]
        if not function.optional and all(call and call[1].decode() in found for call in calls):
            found.add(function.label)
    return frozenset(found)


def _check_utf8(text: Text) -> None:
    """A plan is JSON: what is made after a line must be text."""
    try:
        text.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{text.path}:{text.line(error.start)} is not UTF-8", "Save the header as UTF-8."
        ) from error
