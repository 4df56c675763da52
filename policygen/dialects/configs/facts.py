"""What a config asks of types, as facts: `is_floating_point<key_type>`, `sizeof(key_type) <= 8`."""

import re

from policygen.model.base import Span
from policygen.source.brackets import closing_angle, closing_bracket, trim
from policygen.source.text import squeeze

# "bool(rocprim::is_floating_point<key_type>::value)", or without bool
_TRUTH = re.compile(r"\bbool\(\s*([^()]*?)\s*\)")
_TRAIT = re.compile(r"(?:::)?\brocprim::(is_\w+)<([^<>]*)>::value")
# "std::is_same_v<value_type, rocprim::empty_type>"
_SAME = re.compile(r"(?:::)?\bstd::is_same_v<([^<>]*)>")
# "std::enable_if_t<", "typename std::enable_if<"
_ENABLED = re.compile(rb"(?:typename\s+)?(?:::)?std::enable_if(?:_t)?\s*<")
_TOKENS = re.compile(rb"&&|[(\[{]")


def conjuncts(code: bytes, span: Span) -> tuple[Span, ...]:
    """The parts of a condition between `&&`, however many parentheses are around them."""
    span = _bare(code, span)
    parts, start, at = [], span.start, span.start
    while match := _TOKENS.search(code, at, span.end):
        at = match.end()
        if match[0] == b"&&":
            parts.append(Span(start, match.start()))
            start = at
        else:
            close = closing_bracket(code, match.start())
            at = span.end if close is None else close + 1
    if not parts:
        return (span,)
    return tuple(one for part in [*parts, Span(start, span.end)] for one in conjuncts(code, part))


def facts(code: bytes, span: Span) -> tuple[str, ...]:
    """The same, each as people write it, and the same however a header spells it."""
    return tuple(_plain(squeeze(code[s.start : s.end])) for s in conjuncts(code, span))


def _plain(text: str) -> str:
    text = _TRAIT.sub(r"\1<\2>", _TRUTH.sub(r"\1", text))
    return _SAME.sub(r"std::is_same<\1>::value", text)


def enabling(code: bytes, span: Span) -> Span | None:
    """The condition of `std::enable_if_t<…>`, if that is what a span holds."""
    match = _ENABLED.match(code, span.start, span.end)
    if match is None:
        return None
    close = closing_angle(code, match.end() - 1)
    return None if close is None or close > span.end else trim(code, match.end(), close)


def _bare(code: bytes, span: Span) -> Span:
    span = trim(code, *span)
    while code[span.start : span.start + 1] == b"(":
        if closing_bracket(code, span.start) != span.end - 1:
            break
        span = trim(code, span.start + 1, span.end - 1)
    return span
