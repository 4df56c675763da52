"""Parses the statements of a function that decide what it returns: `if`, `switch`, `return`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from policygen.headers.selectors.conditions import conjuncts
from policygen.headers.syntax import closing_bracket, trim
from policygen.headers.text import squeeze
from policygen.model.records import Span

# The start of a statement; any other statement extends to its `;`
_WORD = re.compile(rb"\s*(?:(if|switch|for|while|do|else|return|case|default|break)\b|([{;}]))")
_SPACE = re.compile(rb"\s*")
# "[[likely]] return …;"
_ATTRIBUTES = re.compile(rb"(?:\s*\[\[[^\[\]]*\]\])+\s*")
_RETURN = re.compile(rb"\breturn\b")
# "const auto make = [&](int items) -> policy {"
_LAMBDA = re.compile(rb"[=(,]\s*\[[^\[\]]*\][^{};]*\{")
# "TUNED(256, 7)", "TUNED;": the expansion of a macro is unknown
_CALL = re.compile(rb"[A-Z_][A-Z0-9_]*\s*(?:\(|\Z)")
_CHECKS = re.compile(rb"(?:_CCCL|CUB|THRUST)_\w*ASSERT\w*\b")
_CONSTEXPR = re.compile(rb"\s*constexpr\b")
DEEPEST = 60
"""The deepest nesting of statements."""
_OPENS, _CLOSES = b"([{", b")]}"
_MARKS = re.compile(rb"[()\[\]{};:]")


@dataclass(slots=True, eq=False)
class Clause:
    """An `if`, an `else` or the `case` labels of a `switch`, with the statements that it guards."""

    kind: Literal["if", "else", "case"]
    text: str
    """The condition."""
    start: int
    """The offset of the clause; for an `if` behind an `else`, that of the `else`."""
    scope: Span
    """The block that contains the clause, between its braces."""
    end: int = 0

    @property
    def facts(self) -> tuple[str, ...]:
        """The condition's facts, which must all hold."""
        return tuple(conjuncts(self.text))


Clauses = tuple[Clause, ...]
"""Nested clauses, outermost first."""


def facts_of(clauses: Clauses) -> tuple[str, ...]:
    """Returns the facts that hold inside nested clauses."""
    return tuple(fact for clause in clauses for fact in clause.facts)


@dataclass(frozen=True, slots=True)
class Return:
    """A `return` and the conditions on the way to it."""

    span: Span
    """The statement, including its `;`."""
    value: Span
    clauses: Clauses
    statement: int
    """The start of the `if` or `else` that it belongs to, unless a block is between."""


@dataclass(frozen=True, slots=True)
class StatementScope:
    """A block and the facts that hold inside it."""

    span: Span
    facts: tuple[str, ...]


@dataclass(slots=True)
class Body:
    """The statements of a function's body."""

    returns: list[Return] = field(default_factory=list)
    breaks: list[tuple[Span, Clauses]] = field(default_factory=list)
    """Each `break;`, which leaves a `switch` without a return."""
    scopes: list[StatementScope] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)

    @property
    def exits(self) -> list[tuple[Span, Clauses]]:
        """The returns, then the breaks."""
        return [(returned.span, returned.clauses) for returned in self.returns] + self.breaks

    def scope_at(self, offset: int) -> StatementScope:
        """Returns the innermost block around an offset."""
        around = [scope for scope in self.scopes if scope.span.start <= offset < scope.span.end]
        return max(around, key=lambda scope: scope.span.start)

    def siblings(self, clause: Clause) -> list[Clause]:
        """Returns the clauses of a clause's block, including itself."""
        return [sibling for sibling in self.clauses if sibling.scope == clause.scope]

    def cases(self, clause: Clause) -> list[Clause]:
        """Returns the cases of a clause's `switch`."""
        return [sibling for sibling in self.siblings(clause) if sibling.kind == "case"]


class UnreadableError(ValueError):
    """A statement that cannot be parsed, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def read_body(code: bytes, body: Span) -> Body:
    """Parses a function's body; `body` is the span between its braces."""
    reader = _StatementReader(code, body)
    at = body.start
    while (at := reader.space(at)) < body.end:
        at = reader.statement(at, ())
    return reader.result


class _StatementReader:
    def __init__(self, code: bytes, body: Span) -> None:
        self.code = code
        self.result = Body(scopes=[StatementScope(body, ())])
        self.blocks = [body]
        self.depth = 0

    def space(self, at: int) -> int:
        """Returns the offset of the next text that is not white space."""
        match = _SPACE.match(self.code, at)
        assert match is not None, "it may be empty"
        return match.end()

    def statement(self, at: int, clauses: Clauses, start: int | None = None) -> int:
        """Reads a statement and returns the offset behind it."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(at)
        at = self._statement(self.space(at), clauses, start)
        self.depth -= 1
        return at

    def _statement(self, at: int, clauses: Clauses, start: int | None) -> int:
        start = at if start is None else start
        if attributes := _ATTRIBUTES.match(self.code, at):
            at = attributes.end()
        match = _WORD.match(self.code, at)
        word = (match[1] or match[2]) if match else b""
        if match is None or word in {b"do", b"else"}:
            return self.other(at)
        if word == b"{":
            return self.block(at, clauses)
        if word == b"if":
            return self.if_(match.end(), clauses, start)
        if word == b"switch":
            return self.switch(match.end(), clauses)
        if word in {b"for", b"while"}:
            return self.statement(self.parentheses(match.end(), loop=True).end + 1, clauses)
        end = self.end(at)
        if word == b"return":
            value = trim(self.code, match.end(), end)
            if _RETURN.search(self.code, *value):
                raise UnreadableError(at)
            self.result.returns.append(Return(Span(at, end + 1), value, clauses, start))
        elif word == b"break":
            self.result.breaks.append((Span(at, end + 1), clauses))
        return end + 1

    def other(self, at: int) -> int:
        """Reads a statement that decides nothing: a constant, or a local lambda."""
        end = self.end(at)
        search_start = at
        while return_match := _RETURN.search(self.code, search_start, end):
            lambda_match = _LAMBDA.search(self.code, search_start, return_match.start())
            close = closing_bracket(self.code, lambda_match.end() - 1) if lambda_match else None
            if close is None or close < return_match.start():
                raise UnreadableError(return_match.start())
            search_start = close
        if _CALL.match(self.code, at, end) and not _CHECKS.match(self.code, at):
            raise UnreadableError(at)
        return end + 1

    def block(self, at: int, clauses: Clauses) -> int:
        close = closing_bracket(self.code, at)
        if close is None:
            raise UnreadableError(at)
        self.result.scopes.append(StatementScope(Span(at, close + 1), facts_of(clauses)))
        self.blocks.append(Span(at + 1, close))
        at = self.space(at + 1)
        while at < close:
            at = self.space(self.statement(at, clauses))
        self.blocks.pop()
        return close + 1

    def if_(self, at: int, clauses: Clauses, start: int) -> int:
        if constexpr := _CONSTEXPR.match(self.code, at):
            at = constexpr.end()
        condition = self.parentheses(at)
        text = squeeze(self.code, condition)
        then_clause = self.clause("if", text, start)
        at = then_clause.end = self.statement(condition.end + 1, (*clauses, then_clause), start)
        match = _WORD.match(self.code, at)
        if match is None or match[1] != b"else":
            return at
        else_clause = self.clause("else", f"!({text})", match.start(1))
        at = else_clause.end = self.statement(match.end(), (*clauses, else_clause), match.start(1))
        return at

    def clause(self, kind: Literal["if", "else", "case"], text: str, start: int) -> Clause:
        """Opens a clause; its end is set later."""
        clause = Clause(kind, text, start, self.blocks[-1])
        self.result.clauses.append(clause)
        return clause

    def switch(self, at: int, clauses: Clauses) -> int:
        subject = self.parentheses(at)
        name = squeeze(self.code, subject)
        at = self.space(subject.end + 1)
        close = closing_bracket(self.code, at) if self.code[at : at + 1] == b"{" else None
        if close is None:
            raise UnreadableError(at)
        self.blocks.append(Span(at + 1, close))
        case_clauses = clauses
        start = at = self.space(at + 1)
        after_label = False
        while at < close:
            match = _WORD.match(self.code, at)
            if match and match[1] in {b"case", b"default"}:
                colon = self.colon(match.end())
                label = squeeze(self.code[match.end() : colon])
                text = f"{name} == {label}" if label else f"{name}: default"
                if after_label:
                    case_clauses[-1].text += f" || {text}"
                else:
                    self.close_case(case_clauses, clauses, start, at)
                    case_clauses, start = (*clauses, self.clause("case", text, at)), at
                after_label = True
                at = self.space(colon + 1)
                continue
            after_label = False
            at = self.space(self.statement(at, case_clauses))
        self.close_case(case_clauses, clauses, start, close)
        self.blocks.pop()
        return close + 1

    def close_case(self, case_clauses: Clauses, clauses: Clauses, start: int, end: int) -> None:
        """Closes the statements behind the current labels."""
        self.result.scopes.append(StatementScope(Span(start, end), facts_of(case_clauses)))
        if case_clauses is not clauses:
            case_clauses[-1].end = end

    def parentheses(self, at: int, *, loop: bool = False) -> Span:
        """Returns the span between the parentheses at an offset."""
        at = self.space(at)
        if self.code[at : at + 1] != b"(":
            raise UnreadableError(at)
        close = closing_bracket(self.code, at)
        if close is None or (not loop and self.code.find(b";", at, close) >= 0):
            raise UnreadableError(at)
        return Span(at + 1, close)

    def end(self, at: int) -> int:
        """Returns the `;` that ends a statement, or the `}` of a block."""
        for match in self.outside(at):
            if match[0] == b";":
                return match.start()
        raise UnreadableError(at)

    def colon(self, at: int) -> int:
        """Returns the `:` behind a label, ignoring `::`."""
        for match in self.outside(at):
            colon = match.start()
            if match[0] == b":" and b":" not in (
                self.code[colon + 1 : colon + 2] + self.code[colon - 1 : colon]
            ):
                return colon
        raise UnreadableError(at)

    def outside(self, at: int) -> Iterator[re.Match[bytes]]:
        """Yields marks outside of brackets."""
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
