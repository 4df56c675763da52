"""The statements of a function that decide what it returns: `if`, `switch`, blocks, `return`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policygen.model.base import Span
from policygen.source.brackets import closing_brace, closing_bracket, trim
from policygen.source.text import squeeze

# What a statement can begin with; anything else goes to its `;`.
_WORD = re.compile(rb"\s*(?:(if|switch|for|while|do|else|return|case|default|break)\b|([{;}]))")
_SPACE = re.compile(rb"\s*")
_CONSTEXPR = re.compile(rb"\s*constexpr\b")
DEEPEST = 60
"""Statements within each other."""
_OPENS, _CLOSES = b"([{", b")]}"
_MARKS = re.compile(rb"[()\[\]{};:]")


@dataclass(frozen=True, slots=True)
class Return:
    """One `return`, and what must hold for it to be reached, outermost first."""

    span: Span
    """With its `;`."""
    value: Span
    conditions: tuple[str, ...]
    statement: int
    """Where it begins with the `if` or `else` that it belongs to, when no block is between."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A block, and what holds inside."""

    span: Span
    conditions: tuple[str, ...]


@dataclass(slots=True)
class Body:
    """The statements of a function's body."""

    returns: list[Return]
    scopes: list[Scope]


class UnreadableError(ValueError):
    """A statement that is not understood, and where."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def read_body(code: bytes, body: Span) -> Body:
    """What a function's body returns; `body` lies between its braces."""
    reader = _Reader(code)
    reader.scopes.append(Scope(body, ()))
    at = body.start
    while (at := reader.space(at)) < body.end:
        at = reader.statement(at, ())
    return Body(reader.returns, reader.scopes)


class _Reader:
    def __init__(self, code: bytes) -> None:
        self.code = code
        self.returns: list[Return] = []
        self.scopes: list[Scope] = []
        self.depth = 0

    def space(self, at: int) -> int:
        """The next place with something on it."""
        match = _SPACE.match(self.code, at)
        assert match is not None, "it may be empty"
        return match.end()

    def statement(self, at: int, conditions: tuple[str, ...], first: int | None = None) -> int:
        """Reads one statement; the place behind it."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(at)
        at = self._statement(self.space(at), conditions, first)
        self.depth -= 1
        return at

    def _statement(self, at: int, conditions: tuple[str, ...], first: int | None) -> int:
        first = at if first is None else first
        match = _WORD.match(self.code, at)
        word = (match[1] or match[2]) if match else b""
        if match is None or word in {b"do", b"else"}:
            return self.end(at) + 1
        if word == b"{":
            return self.block(at, conditions)
        if word == b"if":
            return self.if_(match.end(), conditions, first)
        if word == b"switch":
            return self.switch(match.end(), conditions)
        if word in {b"for", b"while"}:
            return self.statement(self.parentheses(match.end()).end + 1, conditions)
        end = self.end(at)
        if word == b"return":
            value = trim(self.code, match.end(), end)
            self.returns.append(Return(Span(at, end + 1), value, conditions, first))
        return end + 1

    def block(self, at: int, conditions: tuple[str, ...]) -> int:
        close = closing_brace(self.code, at)
        if close is None:
            raise UnreadableError(at)
        self.scopes.append(Scope(Span(at, close + 1), conditions))
        at = self.space(at + 1)
        while at < close:
            at = self.space(self.statement(at, conditions))
        return close + 1

    def if_(self, at: int, conditions: tuple[str, ...], first: int) -> int:
        if constexpr := _CONSTEXPR.match(self.code, at):
            at = constexpr.end()
        condition = self.parentheses(at)
        text = squeeze(self.code[condition.start : condition.end])
        at = self.statement(condition.end + 1, (*conditions, text), first)
        match = _WORD.match(self.code, at)
        if match is None or match[1] != b"else":
            return at
        return self.statement(match.end(), (*conditions, f"!({text})"), match.start(1))

    def switch(self, at: int, conditions: tuple[str, ...]) -> int:
        subject = self.parentheses(at)
        name = squeeze(self.code[subject.start : subject.end])
        at = self.space(subject.end + 1)
        close = closing_brace(self.code, at) if self.code[at : at + 1] == b"{" else None
        if close is None:
            raise UnreadableError(at)
        open_cases: list[str] = []
        inside: tuple[str, ...] = conditions
        start = at = self.space(at + 1)
        labelled = False
        while at < close:
            match = _WORD.match(self.code, at)
            if match and match[1] in {b"case", b"default"}:
                colon = self.colon(match.end())
                text = squeeze(self.code[match.end() : colon])
                if not labelled:
                    self.scopes.append(Scope(Span(start, at), inside))
                    open_cases, start = [], at
                open_cases.append(f"{name} == {text}" if text else f"{name}: default")
                inside = (*conditions, " || ".join(open_cases))
                labelled = True
                at = self.space(colon + 1)
                continue
            labelled = False
            at = self.space(self.statement(at, inside))
        self.scopes.append(Scope(Span(start, close), inside))
        return close + 1

    def parentheses(self, at: int) -> Span:
        """What stands between the parentheses at a place."""
        at = self.space(at)
        if self.code[at : at + 1] != b"(":
            raise UnreadableError(at)
        close = closing_bracket(self.code, at)
        if close is None:
            raise UnreadableError(at)
        return Span(at + 1, close)

    def end(self, at: int) -> int:
        """The `;` that ends a statement, or the `}` of a block that it is."""
        for match in self.outside(at):
            if match[0] == b";":
                return match.start()
        raise UnreadableError(at)

    def colon(self, at: int) -> int:
        """The `:` behind a label; `::` is none."""
        for match in self.outside(at):
            place = match.start()
            if match[0] == b":" and b":" not in (
                self.code[place + 1 : place + 2] + self.code[place - 1 : place]
            ):
                return place
        raise UnreadableError(at)

    def outside(self, at: int) -> Iterator[re.Match[bytes]]:
        """Marks that stand in no bracket."""
        depth = 0
        for match in _MARKS.finditer(self.code, at):
            if match[0] in _OPENS:
                depth += 1
            elif match[0] in _CLOSES:
                if depth == 0:
                    return
                depth -= 1
            elif depth == 0:
                yield match
