"""The statements of a function that decide what it returns: `if`, `switch`, blocks, `return`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from policygen.headers.syntax import closing_brace, closing_bracket, flattened, trim
from policygen.headers.text import squeeze
from policygen.model.records import Span

# What a statement can begin with; anything else goes to its `;`.
_WORD = re.compile(rb"\s*(?:(if|switch|for|while|do|else|return|case|default|break)\b|([{;}]))")
_SPACE = re.compile(rb"\s*")
# "[[likely]] return …;"
_ATTRIBUTES = re.compile(rb"(?:\s*\[\[[^\[\]]*\]\])+\s*")
_RETURN = re.compile(rb"\breturn\b")
# "const auto make = [&](int items) -> policy {"
_LAMBDA = re.compile(rb"[=(,]\s*\[[^\[\]]*\][^{};]*\{")
# "TUNED(256, 7)", "TUNED;": what a macro expands to is not known
_CALL = re.compile(rb"[A-Z_][A-Z0-9_]*\s*(?:\(|\Z)")
_CHECKS = re.compile(rb"(?:_CCCL|CUB|THRUST)_\w*ASSERT\w*\b")
_CONSTEXPR = re.compile(rb"\s*constexpr\b")
DEEPEST = 60
"""Statements within each other."""
_OPENS, _CLOSES = b"([{", b")]}"
_MARKS = re.compile(rb"[()\[\]{};:]")


@dataclass(slots=True, eq=False)
class Clause:
    """An `if`, an `else` or the `case` labels of a `switch`, with the statements that it guards."""

    kind: Literal["if", "else", "case"]
    text: str
    """What must hold."""
    start: int
    """Of an `if` behind an `else`: where that begins."""
    scope: Span
    """The block in which it stands, between its braces."""
    end: int = 0


Clauses = tuple[Clause, ...]
"""Within each other, outermost first."""


def conditions_of(clauses: Clauses) -> tuple[str, ...]:
    """What must hold inside of all of them."""
    return tuple(clause.text for clause in clauses)


@dataclass(frozen=True, slots=True)
class Return:
    """One `return`, and what must hold for it to be reached."""

    span: Span
    """With its `;`."""
    value: Span
    clauses: Clauses
    statement: int
    """Where it begins with the `if` or `else` that it belongs to, when no block is between."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must hold, outermost first."""
        return conditions_of(self.clauses)


@dataclass(frozen=True, slots=True)
class Break:
    """A `break;`: where a `switch` is left without a return."""

    span: Span
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class StatementScope:
    """A block, and what holds inside."""

    span: Span
    conditions: tuple[str, ...]


@dataclass(slots=True)
class Body:
    """The statements of a function's body."""

    returns: list[Return] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    scopes: list[StatementScope] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)


class UnreadableError(ValueError):
    """A statement that is not understood, and where."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def read_body(code: bytes, body: Span) -> Body:
    """What a function's body returns; `body` lies between its braces."""
    reader = _StatementReader(code, body)
    at = body.start
    while (at := reader.space(at)) < body.end:
        at = reader.statement(at, ())
    return reader.found


class _StatementReader:
    def __init__(self, code: bytes, body: Span) -> None:
        self.code = code
        self.found = Body(scopes=[StatementScope(body, ())])
        self.blocks = [body]
        self.depth = 0

    def space(self, at: int) -> int:
        """The next place with something on it."""
        match = _SPACE.match(self.code, at)
        assert match is not None, "it may be empty"
        return match.end()

    def statement(self, at: int, inside: Clauses, first: int | None = None) -> int:
        """Reads one statement; the place behind it."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(at)
        at = self._statement(self.space(at), inside, first)
        self.depth -= 1
        return at

    def _statement(self, at: int, inside: Clauses, first: int | None) -> int:
        first = at if first is None else first
        if attributes := _ATTRIBUTES.match(self.code, at):
            at = attributes.end()
        match = _WORD.match(self.code, at)
        word = (match[1] or match[2]) if match else b""
        if match is None or word in {b"do", b"else"}:
            return self.other(at)
        if word == b"{":
            return self.block(at, inside)
        if word == b"if":
            return self.if_(match.end(), inside, first)
        if word == b"switch":
            return self.switch(match.end(), inside)
        if word in {b"for", b"while"}:
            return self.statement(self.parentheses(match.end(), loop=True).end + 1, inside)
        end = self.end(at)
        if word == b"return":
            value = trim(self.code, match.end(), end)
            if _RETURN.search(self.code, *value):
                raise UnreadableError(at)
            self.found.returns.append(Return(Span(at, end + 1), value, inside, first))
        elif word == b"break":
            self.found.breaks.append(Break(Span(at, end + 1), inside))
        return end + 1

    def other(self, at: int) -> int:
        """A statement that decides nothing: a constant, or a function that helps others."""
        end = self.end(at)
        hidden = at
        while found := _RETURN.search(self.code, hidden, end):
            helper = _LAMBDA.search(self.code, hidden, found.start())
            close = closing_brace(self.code, helper.end() - 1) if helper else None
            if close is None or close < found.start():
                raise UnreadableError(found.start())
            hidden = close
        if _CALL.match(self.code, at, end) and not _CHECKS.match(self.code, at):
            raise UnreadableError(at)
        return end + 1

    def block(self, at: int, inside: Clauses) -> int:
        close = closing_brace(self.code, at)
        if close is None:
            raise UnreadableError(at)
        self.found.scopes.append(StatementScope(Span(at, close + 1), conditions_of(inside)))
        self.blocks.append(Span(at + 1, close))
        at = self.space(at + 1)
        while at < close:
            at = self.space(self.statement(at, inside))
        self.blocks.pop()
        return close + 1

    def if_(self, at: int, inside: Clauses, first: int) -> int:
        if constexpr := _CONSTEXPR.match(self.code, at):
            at = constexpr.end()
        condition = self.parentheses(at)
        text = squeeze(self.code[condition.start : condition.end])
        then = self.clause("if", text, first)
        at = then.end = self.statement(condition.end + 1, (*inside, then), first)
        match = _WORD.match(self.code, at)
        if match is None or match[1] != b"else":
            return at
        other = self.clause("else", f"!({text})", match.start(1))
        at = other.end = self.statement(match.end(), (*inside, other), match.start(1))
        return at

    def clause(self, kind: Literal["if", "else", "case"], text: str, start: int) -> Clause:
        """What begins at a place; where it ends is told later."""
        found = Clause(kind, text, start, self.blocks[-1])
        self.found.clauses.append(found)
        return found

    def switch(self, at: int, inside: Clauses) -> int:
        subject = self.parentheses(at)
        name = squeeze(self.code[subject.start : subject.end])
        at = self.space(subject.end + 1)
        close = closing_brace(self.code, at) if self.code[at : at + 1] == b"{" else None
        if close is None:
            raise UnreadableError(at)
        self.blocks.append(Span(at + 1, close))
        now = inside
        start = at = self.space(at + 1)
        labelled = False
        while at < close:
            match = _WORD.match(self.code, at)
            if match and match[1] in {b"case", b"default"}:
                colon = self.colon(match.end())
                label = squeeze(self.code[match.end() : colon])
                text = f"{name} == {label}" if label else f"{name}: default"
                if labelled:
                    now[-1].text += f" || {text}"
                else:
                    self.close_case(now, inside, start, at)
                    now, start = (*inside, self.clause("case", text, at)), at
                labelled = True
                at = self.space(colon + 1)
                continue
            labelled = False
            at = self.space(self.statement(at, now))
        self.close_case(now, inside, start, close)
        self.blocks.pop()
        return close + 1

    def close_case(self, now: Clauses, inside: Clauses, start: int, end: int) -> None:
        """What stood behind labels ends."""
        self.found.scopes.append(StatementScope(Span(start, end), conditions_of(now)))
        if now is not inside:
            now[-1].end = end

    def parentheses(self, at: int, *, loop: bool = False) -> Span:
        """What stands between the parentheses at a place."""
        at = self.space(at)
        if self.code[at : at + 1] != b"(":
            raise UnreadableError(at)
        close = closing_bracket(self.code, at)
        if close is None or (not loop and self.code.find(b";", at, close) >= 0):
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


Kind = Literal["scope", "record", "function", "value", "other"]
_SCOPES_OPENS = re.compile(rb"[({\[;}]")
_LABELS = re.compile(rb"\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+")
# "inline namespace v1", "extern 000", which was "C++"
_SCOPE = re.compile(rb"\bnamespace\b[^()=]*\Z|\bextern\s+0+\s*\Z")
_ENUM = re.compile(rb"\benum\b[^()=]*\Z")
# "struct alignas(8) policy final : base"; what is in brackets is blank
_RECORD = re.compile(
    rb"\b(?:struct|class)\b(?:\s*\[\[?\s*\]?\]|\s*\b\w+\s*\(\s*\)|\s+[A-Z_][A-Z0-9_]*(?=\s+\w))*"
    rb"\s*\b(?P<name>(?:\w+\s*::\s*)*\w+)\s*(?P<args><[^{};]*>)?\s*(?:\bfinal\b\s*)?(?P<bases>:(?!:)[^{};]*)?\Z"
)
# "constexpr auto operator()(   ) const & noexcept(   ) -> policy"
_FUNCTION = re.compile(
    rb"(?P<name>\boperator\s*(?:\(\s*\)|[^\s\w(]+|\b[^()]+?)|~?\b\w+)\s*(?P<opened>\()\s*\)"
    rb"(?:\s*(?:\b(?:const|volatile|override|final|try)\b|&&?|\[\[?\s*\]?\]"
    rb"|\bnoexcept\b(?:\s*\(\s*\))?|\b[A-Z_][A-Z0-9_]*\b(?:\s*\(\s*\))?))*"
    rb"\s*(?:->\s*(?P<result>[^{};]+?))?(?:\brequires\b[^{};]*)?\s*(?:(?<!:):(?!:)[^{};]*)?\Z"
)
_NO_NAME = {b"if", b"for", b"while", b"switch", b"catch", b"alignas", b"decltype", b"noexcept"}
_NO_NAME |= {b"requires", b"__attribute__", b"__declspec", b"__align__", b"sizeof", b"explicit"}
_FIRST = re.compile(rb"\bconst(?:expr|eval)\b")
# What a declaration begins with beside its type: specifiers, attributes, macros.
_SPECIFIERS = re.compile(
    rb"\b(?:constexpr|consteval|constinit|inline|static|friend|virtual|extern|typename|explicit"
    rb"|const|volatile)\b(?:\s*\(\s*\))?|\[\[?\s*\]?\]|\b(?:__attribute__|alignas|__declspec)\s*\(\s*\)"
    rb"|\b[A-Z_][A-Z0-9_]+\b(?:\s*\(\s*\))?|\b__[a-z]+__\b"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A declaration with braces."""

    kind: Kind
    head: Span
    body: Span
    """Between its braces."""
    name: str = ""
    plain: bool = True
    """Of a record: it has no bases and no template arguments."""
    start: int = 0
    """Where the declaration begins: of a record its keyword, of a function its specifiers."""
    parameters: Span | None = None
    """Of a function, between its parentheses."""
    result: bytes = b""
    """The type that a function returns, without what stands around it."""


# What braces open at namespace or class scope: each record and function, however spelled.


def find_blocks(code: bytes) -> Iterator[Block]:
    """All that are not inside of a function, outermost first."""
    at = begin = 0
    while match := _SCOPES_OPENS.search(code, at):
        at = match.end()
        if match[0] in b"([":
            close = closing_bracket(code, match.start())
            at = len(code) if close is None else close + 1
        elif match[0] != b"{":
            begin = at
        else:
            close = closing_brace(code, match.start())
            if close is None:
                return
            block = _block(code, begin, match.start(), close)
            yield block
            if block.kind in {"scope", "record"}:
                begin = at
            else:
                at = close + 1
                begin = begin if block.kind == "value" else at


def _block(code: bytes, begin: int, opened: int, close: int) -> Block:
    if labels := _LABELS.match(code, begin, opened):
        begin = labels.end()
    head, body = trim(code, begin, opened), Span(opened + 1, close)
    flat = flattened(code[head.start : head.end])
    if _SCOPE.search(flat):
        return Block("scope", head, body)
    if b"=" in flat and b"operator" not in flat:
        return Block("value", head, body)
    if _ENUM.search(flat):
        return Block("other", head, body)
    for match in _FUNCTION.finditer(flat):
        if match["name"] not in _NO_NAME:
            return _function(code, head, body, flat, match)
    if record := _RECORD.search(flat):
        plain = record["args"] is record["bases"] is None and b"::" not in record["name"]
        at = head.start + record.start()
        return Block("record", head, body, record["name"].decode(), plain, at)
    return Block("other", head, body)


def _function(code: bytes, head: Span, body: Span, flat: bytes, match: re.Match[bytes]) -> Block:
    leading = flat[: match.start("name")]
    first = _FIRST.search(leading)
    opened = head.start + match.start("opened")
    closed = closing_bracket(code, opened)
    assert closed is not None, "its brackets match"
    operator = match["name"].startswith(b"operator")
    return Block(
        kind="function",
        head=head,
        body=body,
        name=b"".join(match["name"].split()).decode() if operator else match["name"].decode(),
        start=head.start + (first.start() if first else 0),
        parameters=Span(opened + 1, closed),
        result=_SPECIFIERS.sub(b" ", match["result"] or leading).strip(),
    )
