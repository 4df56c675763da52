"""Brackets of C++ code: whether they match, where one closes, where a list splits."""

import re

from policygen.model.base import Span
from policygen.source.guards import Guards
from policygen.source.text import Text

DEEPEST = 200
"""Brackets within each other; clang's own limit is 256."""
_BRACKETS = re.compile(rb"[(){}\[\]]")
_INNER = re.compile(rb"[(\[]")
_TEMPLATE = re.compile(rb"\btemplate\s*<")
_CLOSES = {b")": b"(", b"}": b"{", b"]": b"["}
_CLOSER = {b"<": b">", b"(": b")", b"{": b"}", b"[": b"]"}
_BRACES = re.compile(rb"[{}]")
_LISTS = re.compile(rb"[(){}]")
# What counts inside `template <…>`: shifts, arrows and comparisons with `=` close nothing.
_TEMPLATE_TOKENS = re.compile(rb"<<=?|->|<=>?|>>?=|[<>(){}\[\],;]")


def check_brackets(text: Text, guards: Guards) -> None:
    """Raises at the bracket that has no partner; of `#if … #else`, each branch counts alone."""
    stack: list[int] = []
    saved: list[list[int]] = []
    conditionals = iter(guards.conditionals)
    conditional = next(conditionals, None)
    for match in _BRACKETS.finditer(text.code):
        at = match.start()
        while conditional is not None and conditional.span.start < at:
            stack = _at_conditional(conditional.kind, stack, saved)
            conditional = next(conditionals, None)
        _push_or_pop(text, match.group(), at, stack)
    if stack:
        raise text.error(stack[-1], f"{_char(text, stack[-1])!r} is never closed")


def _at_conditional(kind: str, stack: list[int], saved: list[list[int]]) -> list[int]:
    if kind.startswith("if"):
        saved.append(list(stack))
    elif kind == "endif":
        saved.pop()
    else:
        return list(saved[-1])
    return stack


def _push_or_pop(text: Text, bracket: bytes, at: int, stack: list[int]) -> None:
    if bracket not in _CLOSES:
        stack.append(at)
        if len(stack) > DEEPEST:
            raise text.error(at, f"more than {DEEPEST} brackets within each other")
        return
    if not stack:
        raise text.error(at, f"{bracket.decode()!r} closes nothing")
    opened = stack.pop()
    if _char(text, opened).encode() != _CLOSES[bracket]:
        line = text.line(opened)
        raise text.error(
            at, f"{bracket.decode()!r} does not close the {_char(text, opened)!r} of line {line}"
        )


def _char(text: Text, at: int) -> str:
    return text.code[at : at + 1].decode()


def closing_brace(code: bytes, opened: int) -> int | None:
    """The offset of the `}` that belongs to the `{` at `opened`."""
    depth = 0
    for match in _BRACES.finditer(code, opened):
        depth += 1 if match.group() == b"{" else -1
        if depth == 0:
            return match.start()
    return None


def closing_bracket(code: bytes, opened: int) -> int | None:
    """The offset of the bracket that belongs to the one at `opened`, of any kind but angles."""
    depth = 0
    for match in _BRACKETS.finditer(code, opened):
        depth += -1 if match.group() in _CLOSES else 1
        if depth == 0:
            return match.start()
    return None


def opening_bracket(code: bytes, start: int, at: int) -> int | None:
    """The offset of the brace or parenthesis around a place, not before `start`."""
    depth = 0
    for match in reversed(list(_LISTS.finditer(code, start, at))):
        if match.group() in _CLOSES:
            depth += 1
        elif not depth:
            return match.start()
        else:
            depth -= 1
    return None


def closing_angle(code: bytes, opened: int) -> int | None:
    """The offset of the `>` that belongs to the `<` at `opened`, if that is a template list.

    Inside other brackets `<` and `>` are operators, or pair up without meaning for the list.
    """
    pairs: list[bytes] = []
    for match in _TEMPLATE_TOKENS.finditer(code, opened):
        token = match.group()
        if token in _CLOSES.values() or (token == b"<" and (not pairs or pairs[-1] == b"<")):
            pairs.append(token)
        elif token == b">":
            if pairs[-1] == b"<":
                pairs.pop()
        elif token in {b")", b"}", b"]"}:
            if pairs.pop() != _CLOSES[token]:
                return None
        elif token == b";" and b"{" not in pairs:
            return None
        if not pairs:
            return match.start()
    return None


def split_list(code: bytes, start: int, end: int) -> list[Span]:
    """The parts between the commas of a template list, without white space around them."""
    parts: list[Span] = []
    pairs: list[bytes] = []
    at = start
    for match in _TEMPLATE_TOKENS.finditer(code, start, end):
        token = match.group()
        if token in _CLOSES.values() or (token == b"<" and (not pairs or pairs[-1] == b"<")):
            pairs.append(token)
        elif pairs and token == _CLOSER[pairs[-1]]:
            pairs.pop()
        elif token == b"," and not pairs:
            parts.append(trim(code, at, match.start()))
            at = match.end()
    last = trim(code, at, end)
    return [*parts, last] if parts or last.start < last.end else parts


def trim(code: bytes, start: int, end: int) -> Span:
    """The span without the white space at its ends."""
    part = code[start:end].lstrip()
    start = end - len(part)
    return Span(start, start + len(part.rstrip()))


def flattened(head: bytes) -> bytes:
    """The same bytes with nothing but space in brackets and in lists of template parameters."""
    made = bytearray(head)
    listed: re.Match[bytes] | None
    at = 0
    while opened := _INNER.search(head, at):
        close = closing_bracket(head, opened.start())
        at = len(head) if close is None else close + 1
        inner = slice(opened.end(), at - 1)
        made[inner] = b" " * len(made[inner])
    at = 0
    while listed := _TEMPLATE.search(bytes(made), at):
        close = closing_angle(head, listed.end() - 1)
        at = listed.end() if close is None else close + 1
        made[listed.start() : at] = b" " * (at - listed.start())
    return bytes(made)
