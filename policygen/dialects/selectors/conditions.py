"""Conditions of policy selectors: opposites, what excludes what, and what is said twice."""

import re
from collections.abc import Iterable, Sequence

from policygen.dialects.selectors.branches import conjuncts
from policygen.model.tuning import conjunction

# "key_size == 4", "accum_t == type_t::float32"
EQUAL = re.compile(r"(\w+) == ((?:\w+::)*)(\w+)")
UNEQUAL = re.compile(r"(\w+) != ((?:\w+::)*)(\w+)")
FLAG = re.compile(r"(not\s+|!\s*)?(\w+)")
_NOT = re.compile(r"!\((.*)\)")


def opposites(facts: Sequence[str]) -> list[str]:
    """What holds where not all of some facts do."""
    if len(facts) > 1:
        return [f"!({conjunction(tuple(facts))})"]
    (fact,) = facts
    either = alternatives(fact)
    if len(either) > 1:
        return [text for one in either for text in opposites([one])]
    if match := EQUAL.fullmatch(fact):
        return [f"{match[1]} != {match[2]}{match[3]}"]
    if match := UNEQUAL.fullmatch(fact):
        return [f"{match[1]} == {match[2]}{match[3]}"]
    if flag := FLAG.fullmatch(fact):
        return [flag[2] if flag[1] else f"!{flag[2]}"]
    return [f"!({fact})"]


def alternatives(fact: str) -> list[str]:
    """`(a == x || a == y)` as two."""
    inner = fact[1:-1] if fact.startswith("(") and fact.endswith(")") else fact
    return [part.strip() for part in inner.split("||")] if "&&" not in inner else [fact]


def excluded(fact: str, held: Iterable[str]) -> bool:
    """Whether a fact cannot hold where others do."""
    known = list(held)
    return all(any(_contradict(one, other) for other in known) for one in alternatives(fact))


def _contradict(one: str, other: str) -> bool:
    if mine := EQUAL.fullmatch(one):
        values = [m for part in alternatives(other) if (m := EQUAL.fullmatch(part))]
        if values and len(values) == len(alternatives(other)):
            same = all(value[1] == mine[1] for value in values)
            return same and all(value[3] != mine[3] for value in values)
        unlike = UNEQUAL.fullmatch(other)
        return bool(unlike and unlike[1] == mine[1] and unlike[3] == mine[3])
    if UNEQUAL.fullmatch(one):
        return bool(EQUAL.fullmatch(other)) and _contradict(other, one)
    mine, theirs = FLAG.fullmatch(one), FLAG.fullmatch(other)
    return bool(mine and theirs and mine[2] == theirs[2] and bool(mine[1]) != bool(theirs[1]))


def simplest(facts: Sequence[str]) -> list[str]:
    """The same without what is said twice, or follows from the others."""
    found: list[str] = []
    for fact in dict.fromkeys(plain(fact) for fact in facts):
        others = [other for other in map(plain, facts) if other != fact]
        inner = _NOT.fullmatch(fact)
        if inner and any(excluded(part, others) for part in conjuncts((inner[1],))):
            continue
        if (unlike := UNEQUAL.fullmatch(fact)) and excluded(
            f"{unlike[1]} == {unlike[2]}{unlike[3]}", others
        ):
            continue
        found.append(fact)
    return found


def plain(fact: str) -> str:
    """`!(is_even)`, of an `else`, as `!is_even`; `not x` beside `!x` is one of them."""
    inner = _NOT.fullmatch(fact)
    return f"!{inner[1]}" if inner and inner[1].isidentifier() else fact
