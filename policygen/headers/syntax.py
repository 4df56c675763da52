"""Brackets of C++ code: whether they match, where one closes, where a list splits."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from policygen.headers.text import Text, squeeze
from policygen.model.records import Span
from policygen.model.tuning import Member, Value

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
                if len(stack) == DEEPEST_GUARD:
                    words = f"more than {DEEPEST_GUARD} #if within each other"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [], directive.span))
            elif not stack:
                raise text.error(directive.span.start, f"#{directive.kind} without #if")
            elif directive.kind == "endif":
                stack.pop()
            else:
                before, earlier, span = stack.pop()
                if len(earlier) == DEEPEST_GUARD:
                    words = f"more than {DEEPEST_GUARD} branches of one #if"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [*earlier, before], span))
            self._starts.append(directive.span.end)
            self._guards.append(_guard(text, stack))
        if stack:
            raise text.error(stack[-1][2].start, "#if without #endif")


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


# "#  elif defined(X)"
_CONDITIONAL = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
DEEPEST_GUARD = 100
"""Conditions that hold at one place; each tells all of them."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """One directive that opens, continues or closes a condition."""

    kind: str
    condition: str
    span: Span


# Preprocessor conditions: which `#if` stands around a place, and whether they are closed.


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


# "static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT"
_VALUE = re.compile(
    rb"(?=[^=]*\b(?:constexpr|const)\b)(?:(?:static|constexpr|const|inline)\b\s*)+"
    rb"(?P<type>[A-Za-z_:][^={}]*?[\s>*&]|)(?P<name>\w+)\s*(?:=(?P<value>[\s\S]+)|\{(?P<braced>[\s\S]*)\})\Z"
)
# "using delay_constructor = fixed_delay_constructor_t<368, 725>"
_ALIAS = re.compile(rb"using\s+(?P<name>\w+)\s*=(?P<value>[\s\S]+)\Z")
_BEFORE = re.compile(
    rb"(?:(?:(?:public|protected|private)\s*:(?!:)|\[\[[^\]]*\]\]"
    rb"|\b(?:alignas|__attribute__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))\s*)+"
)
# "MACRO(x) static constexpr int items = 7", which is a value; not "operator==(…)", "f() = default"
_ASSIGNS = re.compile(
    rb"(?!.*\boperator\b)[^={]*[^=!<>]=(?!=)\s*+(?!default\b|delete\b|0\s*\Z)", re.DOTALL
)
_MAY_ASSIGN = re.compile(rb"(?:struct|class|union|friend|template|static_assert|using)\b|\Z")
# What carries no value of the tuning: a function has a parenthesis before any `=`.
_NO_MEMBER = re.compile(
    rb"(?:struct|class|union|friend|template|static_assert)\b|using\s+namespace\b"
    rb"|using\s+[^=]*::|(?!enum\b|typedef\b)[^=({]*\(|\Z"
)
_ENDED = re.compile(rb"\s*;")
_TOKENS = re.compile(rb"[(){}\[\];]")
_INTEGER = re.compile(r"[+-]?\s*(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*")
_WIDEST = 128
_NUMERIC_TYPE = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|auto|(?:\w*::)*(?:u?int\d+_t|size_t))\s*)+"
)


# The members of an entry: `static constexpr` values and `using` aliases.


def find_members(text: Text, code: bytes, body: Span) -> Iterator[Member]:
    """The members of a body, in order; functions and nested types are passed over."""
    names: set[str] = set()
    for statement in _statements(code, body):
        source = code[statement.start : statement.end]
        match = _VALUE.match(source) or _ALIAS.match(source)
        if match is None and _NO_MEMBER.match(source) and not _is_value(source):
            continue
        ends = _ENDED.match(code, statement.end, body.end)
        member = match and ends and _member(text.data, code, statement, match)
        if member is None or len(split_list(code, *member.value_span)) > 1:
            raise text.error(
                statement.start,
                "cannot read this member",
                remedy="Expected: static constexpr TYPE NAME = VALUE; or: using NAME = TYPE;",
            )
        if member.name in names:
            raise text.error(statement.start, f"{member.name} is a member twice")
        names.add(member.name)
        yield member


def _is_value(statement: bytes) -> bool:
    """Whether a statement with parentheses before its `=` gives a value all the same."""
    return not _MAY_ASSIGN.match(statement) and bool(_ASSIGNS.match(flattened(statement)))


def _member(data: bytes, code: bytes, statement: Span, match: re.Match[bytes]) -> Member:
    group = "value" if match["value"] is not None else "braced"
    value = trim(code, *(statement.start + at for at in match.span(group)))
    spelling = squeeze(data[value.start : value.end])
    alias = match.re is _ALIAS
    kind = "using" if alias else squeeze(match["type"])
    return Member(
        name=match["name"].decode(),
        kind="alias" if alias else "value",
        type=kind,
        spelling=spelling,
        value=spelling if alias else literal(kind, spelling),
        span=Span(statement.start, statement.end + 1),
        value_span=value,
    )


def literal(kind: str, spelling: str) -> Value | None:
    """The constant that needs no compiler: a number, a truth value, an enumerator's name."""
    if spelling in {"true", "false"}:
        return spelling == "true"
    if is_literal(spelling):
        try:
            number = int(re.sub(r"[uUlLzZ' ]", "", _decimal(spelling)), 0)
        except ValueError:  # 089, or thousands of digits
            return None
        if number.bit_length() > _WIDEST:
            return None
        return bool(number) if kind == "bool" else number
    if is_numeric(kind):
        return None
    return spelling


def is_literal(spelling: str) -> bool:
    """Whether this is an integer that is written out."""
    return _INTEGER.fullmatch(spelling) is not None


def is_numeric(kind: str) -> bool:
    """Whether a member of this type has a number for its value, and no enumerator's name."""
    return _NUMERIC_TYPE.fullmatch(kind) is not None


def _decimal(spelling: str) -> str:
    # C++ octal `017` is no Python literal.
    return re.sub(r"^([+-]?\s*)0(?=[0-7])", r"\g<1>0o", spelling)


def _statements(code: bytes, body: Span) -> Iterator[Span]:
    """What stands before each `;` of a body, and not inside brackets; and what has no `;`."""
    at, depth = body.start, 0
    for match in _TOKENS.finditer(code, body.start, body.end):
        token = match.group()
        if token in b"({[":
            depth += 1
        elif token in b")}]":
            depth -= 1
            if token == b"}" and depth == 0 and not _continues(code, match.end(), body.end):
                at = match.end()
        elif depth == 0:
            yield _statement(code, at, match.start())
            at = match.end()
    yield _statement(code, at, body.end)


def _statement(code: bytes, start: int, end: int) -> Span:
    """A statement without `public:` and attributes before it."""
    span = trim(code, start, end)
    before = _BEFORE.match(code, span.start, span.end)
    return Span(before.end(), span.end) if before else span


_CONTINUES = re.compile(rb"\s*[;,.)]")


def _continues(code: bytes, at: int, end: int) -> bool:
    """After `int x{1}` comes a `;`, after a function's body the next statement."""
    return _CONTINUES.match(code, at, end) is not None


def member_values(members: tuple[Member, ...]) -> dict[str, Value]:
    """Values by name; what is no constant is given as it is spelled."""
    return {m.name: m.spelling if m.value is None else m.value for m in members}
