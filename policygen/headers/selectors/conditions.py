"""Evaluates and simplifies the conditions of returns, for one workload and architecture."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.headers.expressions import evaluate
from policygen.headers.text import squeeze
from policygen.model.arch import arch_number, capability_number
from policygen.model.records import Span
from policygen.model.tuning import Value, conjunction

_LOGIC = re.compile(r"[({\[]|[)}\]]|&&|\|\|")


def conjuncts(condition: str) -> Iterator[str]:
    """Splits a condition into facts that must all hold."""
    depth, start = 0, 0
    for match in _LOGIC.finditer(condition):
        if match[0] == "||" and depth == 0:
            start = -1
            break
        if match[0] == "&&" and depth == 0:
            yield condition[start : match.start()].strip()
            start = match.end()
        elif match[0] in "({[":
            depth += 1
        elif match[0] in ")}]":
            depth -= 1
    yield condition if start < 0 else condition[start:].strip()


# "::cuda::compute_capability{10, 7}"
_CAPABILITY = re.compile(r"(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
# "const bool has_flags = flag_size_bytes != 0;", "constexpr auto x = a ? b : c;"
_LOCAL = re.compile(rb"\bconst(?:expr)?\s+[\w:]+\s+(\w+)\s*=\s*([^;{}]+);")
_CHOICE = re.compile(r"([^?]+)\?([^:?]+(?:::[^:?]+)*):(?!:)(.+)")
_WORDS = {"not": "!", "and": "&&", "or": "||"}
_WORD = re.compile(r"\b(?:not|and|or)\b")
_DEEPEST = 8
"""The deepest nesting of constants made from other constants."""


# Evaluation of conditions for one workload and architecture


def locals_of(code: bytes, bodies: Iterable[Span]) -> dict[str, str]:
    """Collects function-local constants whose name has one meaning in all functions."""
    values: dict[str, set[str]] = {}
    for body in bodies:
        for match in _LOCAL.finditer(code, body.start, body.end):
            values.setdefault(match[1].decode(), set()).add(squeeze(match[2]))
    return {name: texts.pop() for name, texts in values.items() if len(texts) == 1}


def defined(code: bytes, body: Span, name: str) -> int | None:
    """Returns the offset at which a function defines a constant."""
    matches = _LOCAL.finditer(code, body.start, body.end)
    return next((match.start() for match in matches if match[1].decode() == name), None)


@dataclass(slots=True)
class Truth:
    """The known facts of a workload on an architecture."""

    traits: Mapping[str, Value]
    arch: str
    constants: Mapping[str, str]
    """Constants that functions compute from the traits."""
    _enumerators: dict[str, int] = field(default_factory=dict)

    def holds(self, condition: str) -> bool | None:
        """Evaluates a condition; None if it depends on something unknown."""
        value = self._value(condition, 0)
        return None if value is None else bool(value)

    def _value(self, text: str, depth: int) -> int | None:
        if depth > _DEEPEST:
            return None
        text = _WORD.sub(lambda match: _WORDS[match[0]], text)
        text = _CAPABILITY.sub(lambda match: str(capability_number(match[1], match[2])), text)
        if match := _CHOICE.fullmatch(text):
            chosen = self._value(match[1], depth)
            return None if chosen is None else self._value(match[2 if chosen else 3], depth)
        return evaluate(text, lambda name: self._named(name, depth + 1))

    def _named(self, name: str, depth: int) -> int | None:
        if name == "cc":
            return arch_number(self.arch)
        if name in self.traits:
            value = self.traits[name]
            return self._enumerator(value) if isinstance(value, str) else int(value)
        if name in self.constants:
            return self._value(self.constants[name], depth)
        return self._enumerator(name.rpartition("::")[2]) if "::" in name else None

    def _enumerator(self, name: str) -> int:
        """Returns a unique number per enumerator; enumerators are only compared."""
        return self._enumerators.setdefault(name, len(self._enumerators))


# "key_size == 4", "accum_t == type_t::float32"
EQUAL = re.compile(r"(\w+) == ((?:\w+::)*)(\w+)")
UNEQUAL = re.compile(r"(\w+) != ((?:\w+::)*)(\w+)")
FLAG = re.compile(r"(not\s+|!\s*)?(\w+)")
_NOT = re.compile(r"!\((.*)\)")


# "if (key_size == 16) // same as previous tuning"
COMMENTED = re.compile(r"(?:else\s+)?if\s*\((.*?)\)\s*(?:return\b\s*(.*?);)?\s*(//.*)?$")


# Simplification of conditions


def opposites(facts: Sequence[str]) -> list[str]:
    """Returns the condition that holds when not all of the facts do."""
    if len(facts) > 1:
        return [f"!({conjunction(tuple(facts))})"]
    (fact,) = facts
    either = alternatives(fact)
    if len(either) > 1:
        return [text for alternative in either for text in opposites([alternative])]
    if match := EQUAL.fullmatch(fact):
        return [f"{match[1]} != {match[2]}{match[3]}"]
    if match := UNEQUAL.fullmatch(fact):
        return [f"{match[1]} == {match[2]}{match[3]}"]
    if flag := FLAG.fullmatch(fact):
        return [flag[2] if flag[1] else f"!{flag[2]}"]
    return [f"!({fact})"]


def alternatives(fact: str) -> list[str]:
    """Splits `(a == x || a == y)` into two."""
    inner = fact[1:-1] if fact.startswith("(") and fact.endswith(")") else fact
    return [part.strip() for part in inner.split("||")] if "&&" not in inner else [fact]


def excluded(fact: str, held: Sequence[str]) -> bool:
    """Checks whether a fact contradicts one of the facts that hold."""
    return all(
        any(_contradict(alternative, other) for other in held) for alternative in alternatives(fact)
    )


def _contradict(first: str, second: str) -> bool:
    if own_match := EQUAL.fullmatch(first):
        values = [match for part in alternatives(second) if (match := EQUAL.fullmatch(part))]
        if values and len(values) == len(alternatives(second)):
            same_name = all(value[1] == own_match[1] for value in values)
            return same_name and all(value[3] != own_match[3] for value in values)
        inequality = UNEQUAL.fullmatch(second)
        return bool(inequality and inequality[1] == own_match[1] and inequality[3] == own_match[3])
    if UNEQUAL.fullmatch(first):
        return bool(EQUAL.fullmatch(second)) and _contradict(second, first)
    own_match, other_match = FLAG.fullmatch(first), FLAG.fullmatch(second)
    return bool(
        own_match
        and other_match
        and own_match[2] == other_match[2]
        and bool(own_match[1]) != bool(other_match[1])
    )


def simplest(facts: Sequence[str]) -> list[str]:
    """Drops duplicate facts and facts that follow from others."""
    remaining: list[str] = []
    for fact in dict.fromkeys(plain(fact) for fact in facts):
        others = [candidate for candidate in map(plain, facts) if candidate != fact]
        inner = _NOT.fullmatch(fact)
        if inner and any(excluded(part, others) for part in conjuncts(inner[1])):
            continue
        if (inequality := UNEQUAL.fullmatch(fact)) and excluded(
            f"{inequality[1]} == {inequality[2]}{inequality[3]}", others
        ):
            continue
        remaining.append(fact)
    return remaining


def plain(fact: str) -> str:
    """Normalizes `!(is_even)`, as an `else` yields it, to `!is_even`."""
    inner = _NOT.fullmatch(fact)
    return f"!{inner[1]}" if inner and inner[1].isidentifier() else fact
