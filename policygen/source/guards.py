"""Preprocessor conditions: which `#if` stands around a place, and whether they are closed."""

import re
from bisect import bisect_right
from dataclasses import dataclass

from policygen.model.base import Span
from policygen.source.text import Text, squeeze

# "#  elif defined(X)"
_CONDITIONAL = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")

DEEPEST = 100
"""Conditions that hold at one place; each tells all of them."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """One directive that opens, continues or closes a condition."""

    kind: str
    condition: str
    span: Span


@dataclass(frozen=True, slots=True)
class Guard:
    """The conditions around a place, innermost last, and the line of the innermost."""

    conditions: tuple[str, ...]
    span: Span | None

    @property
    def spelling(self) -> str | None:
        """All conditions as one expression."""
        if len(self.conditions) < 2:
            return self.conditions[0] if self.conditions else None
        return " && ".join(c if _is_plain(c) else f"({c})" for c in self.conditions)

    @property
    def never(self) -> bool:
        """Whether no compiler ever sees what is inside."""
        return any(_is_false(condition) for condition in self.conditions)


class Guards:
    """The conditions of one file, by offset."""

    def __init__(self, text: Text) -> None:
        self.conditionals = [c for s in text.directives if (c := _conditional(text, s))]
        self._starts: list[int] = [0]
        self._guards: list[Guard] = [Guard((), None)]
        self._walk(text)

    def at(self, offset: int) -> Guard:
        """The conditions around an offset."""
        return self._guards[bisect_right(self._starts, offset) - 1]

    def _walk(self, text: Text) -> None:
        stack: list[tuple[str, list[str], Span]] = []
        for directive in self.conditionals:
            if directive.kind.startswith("if"):
                if len(stack) == DEEPEST:
                    words = f"more than {DEEPEST} #if within each other"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [], directive.span))
            elif not stack:
                raise text.error(directive.span.start, f"#{directive.kind} without #if")
            elif directive.kind == "endif":
                stack.pop()
            else:
                before, earlier, span = stack.pop()
                if len(earlier) == DEEPEST:
                    words = f"more than {DEEPEST} branches of one #if"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [*earlier, before], span))
            self._starts.append(directive.span.end)
            self._guards.append(_guard(text, stack))
        if stack:
            raise text.error(stack[-1][2].start, "#if without #endif")


def _conditional(text: Text, span: Span) -> Conditional | None:
    match = _CONDITIONAL.match(text.uncommented, span.start, span.end)
    if match is None:
        return None
    kind = match.group(1).decode()
    condition = squeeze(text.uncommented[match.end() : span.end].replace(b"\\", b" "))
    if kind.endswith("ndef"):
        condition = f"!defined({condition})"
    elif kind.endswith("def"):
        condition = f"defined({condition})"
    return Conditional(kind, condition, span)


def _guard(text: Text, stack: list[tuple[str, list[str], Span]]) -> Guard:
    conditions: list[str] = []
    for condition, earlier, span in stack:
        if not earlier and _is_include_guard(text, condition, span):
            continue
        conditions += [f"!({before})" for before in earlier]
        if condition:
            conditions.append(condition)
    return Guard(tuple(conditions), stack[-1][2] if conditions else None)


def _is_include_guard(text: Text, condition: str, span: Span) -> bool:
    """`#ifndef X_H` and `#define X_H` as the first words of a header say nothing about entries."""
    macro = re.fullmatch(r"!\s*defined\s*\(?\s*(\w+)\s*\)?", condition)
    if macro is None or text.code[: span.start].strip():
        return False
    after = text.uncommented[span.end : span.end + 400]
    return re.match(rb"\s*#\s*define\s+" + macro[1].encode() + rb"\b", after) is not None


def _is_false(condition: str) -> bool:
    """Whether a condition holds nowhere, as `0`, `(0) && X` and the `#else` of `#if 1`."""
    if condition in {"!(1)", "!(true)"}:
        return True
    parts = [] if re.search(r"[|?]|!\s*\(", condition) else condition.split("&&")
    return any(part.strip(" ()") in {"0", "false"} for part in parts)


def _is_plain(condition: str) -> bool:
    return re.fullmatch(r"!?[\w:]*(\([^()]*\))?", condition) is not None
