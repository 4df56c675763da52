"""Whether a condition of a policy selector holds for one workload on one architecture."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policygen.model.arch import arch_number
from policygen.model.base import Span
from policygen.model.tuning import Value
from policygen.source.benchmarks.expression import evaluate
from policygen.source.text import squeeze

# "::cuda::compute_capability{10, 7}"
_CAPABILITY = re.compile(r"(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
# "const bool has_flags = flag_size_bytes != 0;", "constexpr auto x = a ? b : c;"
_LOCAL = re.compile(rb"\bconst(?:expr)?\s+[\w:]+\s+(\w+)\s*=\s*([^;{}]+);")
_CHOICE = re.compile(r"([^?]+)\?([^:?]+(?:::[^:?]+)*):(?!:)(.+)")
_WORDS = {"not": "!", "and": "&&", "or": "||"}
_WORD = re.compile(r"\b(?:not|and|or)\b")
_DEEPEST = 8
"""Constants that are made from others."""


def locals_of(code: bytes, bodies: Iterable[Span]) -> dict[str, str]:
    """The constants that functions compute, where a name means one thing in all of them."""
    found: dict[str, set[str]] = {}
    for body in bodies:
        for match in _LOCAL.finditer(code, body.start, body.end):
            found.setdefault(match[1].decode(), set()).add(squeeze(match[2]))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def defined(code: bytes, body: Span, name: str) -> int | None:
    """Where a function computes a constant."""
    found = (m for m in _LOCAL.finditer(code, body.start, body.end) if m[1].decode() == name)
    return next((match.start() for match in found), None)


@dataclass(slots=True)
class Truth:
    """What is known of a workload on an architecture."""

    traits: Mapping[str, Value]
    arch: str
    constants: Mapping[str, str]
    """What functions compute from the traits."""
    _enumerators: dict[str, int] = field(default_factory=dict)

    def holds(self, condition: str) -> bool | None:
        """Whether a condition holds; none where that is not known."""
        found = self._value(condition, 0)
        return None if found is None else bool(found)

    def _value(self, text: str, depth: int) -> int | None:
        if depth > _DEEPEST:
            return None
        text = _WORD.sub(lambda match: _WORDS[match[0]], text)
        text = _CAPABILITY.sub(lambda match: f"{match[1]}{match[2]}", text)
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
        """A number of its own for each: they are only compared."""
        return self._enumerators.setdefault(name, len(self._enumerators))
