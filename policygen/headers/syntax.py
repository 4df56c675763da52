"""Handles C++ syntax: brackets, lists, preprocessor guards and members of a struct."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import merge
from typing import Any

from policygen.headers.expressions import evaluate
from policygen.headers.text import Text, squeeze
from policygen.model.records import Span
from policygen.model.tuning import Member, Value

DEEPEST = 200
"""The deepest nesting of brackets; clang's own limit is 256."""
_BRACKETS = re.compile(rb"[(){}\[\]]")
_INNER = re.compile(rb"[(\[]")
_TEMPLATE = re.compile(rb"\btemplate\s*<")
_OPENING = {b")": b"(", b"}": b"{", b"]": b"["}
_OPENS = frozenset(_OPENING.values())
_CLOSING = {b"<": b">", b"(": b")", b"{": b"}", b"[": b"]"}
_LISTS = re.compile(rb"[(){}]")
# Tokens inside `template <…>`: shifts, arrows and comparisons with `=` close nothing
_TEMPLATE_TOKENS = re.compile(rb"<<=?|->|<=>?|>>?=|[<>(){}\[\],;]")
_LIST_TOKENS = re.compile(rb"[(){}\[\],]")
_PLAIN = re.compile(r"!?[\w:]*(\([^()]*\))?")


@dataclass(frozen=True, slots=True)
class Guard:
    """The conditions around an offset, innermost last, and the line of the innermost."""

    conditions: tuple[str, ...]
    span: Span | None

    @property
    def spelling(self) -> str | None:
        """All conditions as one expression."""
        if len(self.conditions) < 2:
            return self.conditions[0] if self.conditions else None
        return " && ".join(
            condition if _PLAIN.fullmatch(condition) else f"({condition})"
            for condition in self.conditions
        )

    @property
    def never(self) -> bool:
        """Whether no compiler ever sees the code inside."""
        return any(_is_false(condition) for condition in self.conditions)


class Guards:
    """The conditions of a file, by offset."""

    def __init__(self, text: Text) -> None:
        conditionals = (_conditional(text, span) for span in text.directives)
        self.conditionals = [conditional for conditional in conditionals if conditional]
        self.groups: list[Span] = []
        """The outermost conditions, each from its `#if` to its `#endif`, without include guards."""
        self._starts: list[int] = [0]
        self._guards: list[Guard] = [Guard((), None)]
        self._walk(text)

    def at(self, offset: int) -> Guard:
        """Returns the conditions around an offset."""
        return self._guards[bisect_right(self._starts, offset) - 1]

    def _walk(self, text: Text) -> None:
        stack: list[tuple[str, list[str], Span]] = []
        opened = 0
        for directive in self.conditionals:
            if directive.kind.startswith("if"):
                if len(stack) == DEEPEST_GUARD:
                    words = f"#if nested more than {DEEPEST_GUARD} deep"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [], directive.span))
            elif not stack:
                raise text.error(directive.span.start, f"#{directive.kind} without #if")
            elif directive.kind == "endif":
                stack.pop()
            else:
                condition, earlier, span = stack.pop()
                if len(earlier) == DEEPEST_GUARD:
                    words = f"more than {DEEPEST_GUARD} branches of one #if"
                    raise text.error(directive.span.start, words)
                stack.append((directive.condition, [*earlier, condition], span))
            before, after = self._guards[-1], _guard(text, stack)
            if not before.conditions:
                opened = directive.span.start
            elif not after.conditions:
                self.groups.append(Span(opened, directive.span.start))
            self._starts.append(directive.span.end)
            self._guards.append(after)
        if stack:
            raise text.error(stack[-1][2].start, "#if without #endif")


def check_brackets(text: Text, guards: Guards) -> None:
    """Raises an error at an unmatched bracket; each branch of `#if … #else` counts separately."""
    brackets = ((match.start(), match.group().decode()) for match in _BRACKETS.finditer(text.code))
    directives = ((directive.span.start, directive.kind) for directive in guards.conditionals)
    stack: list[tuple[int, str]] = []
    saved: list[list[tuple[int, str]]] = []
    for offset, mark in merge(brackets, directives):
        if mark in "({[":
            stack.append((offset, mark))
            if len(stack) > DEEPEST:
                raise text.error(offset, f"brackets nested more than {DEEPEST} deep")
        elif mark in ")}]":
            _check_pair(text, stack.pop() if stack else None, offset, mark)
        elif mark.startswith("if"):
            saved.append([*stack])
        elif mark == "endif":
            saved.pop()
        else:
            stack = [*saved[-1]]
    if stack:
        offset, bracket = stack[-1]
        raise text.error(offset, f"{bracket!r} is never closed")


def _check_pair(text: Text, opening: tuple[int, str] | None, offset: int, closing: str) -> None:
    if opening is None:
        raise text.error(offset, f"{closing!r} has no opening bracket")
    start, bracket = opening
    if bracket.encode() != _OPENING[closing.encode()]:
        line = text.line(start)
        raise text.error(offset, f"{closing!r} does not close the {bracket!r} of line {line}")


def closing_bracket(code: bytes, opening: int) -> int | None:
    """Returns the offset of the bracket that matches the one at `opening`, except for angles."""
    depth = 0
    for match in _BRACKETS.finditer(code, opening):
        depth += -1 if match.group() in _OPENING else 1
        if depth == 0:
            return match.start()
    return None


def opening_bracket(code: bytes, start: int, offset: int) -> int | None:
    """Returns the offset of the brace or parenthesis around an offset, not before `start`."""
    depth = 0
    for match in reversed(list(_LISTS.finditer(code, start, offset))):
        if match.group() in _OPENING:
            depth += 1
        elif not depth:
            return match.start()
        else:
            depth -= 1
    return None


def closing_angle(code: bytes, opening: int) -> int | None:
    """Returns the offset of the `>` that matches the `<` at `opening`, if it is a template list.

    Inside other brackets, `<` and `>` are operators or irrelevant pairs.
    """
    open_brackets: list[bytes] = []
    for match in _TEMPLATE_TOKENS.finditer(code, opening):
        token = match.group()
        if token in _OPENS or (token == b"<" and (not open_brackets or open_brackets[-1] == b"<")):
            open_brackets.append(token)
        elif token == b">":
            if open_brackets[-1] == b"<":
                open_brackets.pop()
        elif token in {b")", b"}", b"]"}:
            if open_brackets.pop() != _OPENING[token]:
                return None
        elif token == b";" and b"{" not in open_brackets:
            return None
        if not open_brackets:
            return match.start()
    return None


def split_list(code: bytes, start: int, end: int, *, angles: bool = True) -> list[Span]:
    """Splits a list at its commas, except those in brackets, and trims the parts."""
    parts: list[Span] = []
    open_brackets: list[bytes] = []
    part_start = start
    has_comma = code.find(b",", start, end) >= 0
    tokens = _TEMPLATE_TOKENS if angles else _LIST_TOKENS
    for match in tokens.finditer(code, start, end) if has_comma else ():
        token = match.group()
        if token in _OPENS or (token == b"<" and (not open_brackets or open_brackets[-1] == b"<")):
            open_brackets.append(token)
        elif open_brackets and token == _CLOSING[open_brackets[-1]]:
            open_brackets.pop()
        elif token == b"," and not open_brackets:
            parts.append(trim(code, part_start, match.start()))
            part_start = match.end()
    last = trim(code, part_start, end)
    return [*parts, last] if parts or last.start < last.end else parts


def trim(code: bytes, start: int, end: int) -> Span:
    """Returns the span without leading and trailing white space."""
    part = code[start:end].lstrip()
    start = end - len(part)
    return Span(start, start + len(part.rstrip()))


def flattened(head: bytes) -> bytes:
    """Blanks the contents of brackets and of template parameter lists."""
    flat = bytearray(head)
    template: re.Match[bytes] | None
    end = 0
    while opened := _INNER.search(head, end):
        close = closing_bracket(head, opened.start())
        end = len(head) if close is None else close + 1
        inner = slice(opened.end(), end - 1)
        flat[inner] = b" " * len(flat[inner])
    end = 0
    while template := _TEMPLATE.search(bytes(flat), end):
        close = closing_angle(head, template.end() - 1)
        end = template.end() if close is None else close + 1
        flat[template.start() : end] = b" " * (end - template.start())
    return bytes(flat)


# "#  elif defined(X)"
_CONDITIONAL = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
DEEPEST_GUARD = 100
"""The maximum nesting depth of `#if`, and number of branches."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """A directive that opens, continues or closes a condition."""

    kind: str
    condition: str
    span: Span


# Preprocessor conditions


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
        conditions += [f"!({earlier_condition})" for earlier_condition in earlier]
        if condition:
            conditions.append(condition)
    return Guard(tuple(conditions), stack[-1][2] if conditions else None)


def _is_include_guard(text: Text, condition: str, span: Span) -> bool:
    """Recognizes `#ifndef X_H` and `#define X_H` at the start of a header."""
    macro = re.fullmatch(r"!\s*defined\s*\(?\s*(\w+)\s*\)?", condition)
    if macro is None or text.code[: span.start].strip():
        return False
    after = text.uncommented[span.end : span.end + 400]
    return re.match(rb"\s*#\s*define\s+" + macro[1].encode() + rb"\b", after) is not None


def _is_false(condition: str) -> bool:
    """Tells whether a condition never holds, such as `0`, `(0) && X` and the `#else` of `#if 1`."""
    if condition in {"!(1)", "!(true)"}:
        return True
    parts = [] if re.search(r"[|?]|!\s*\(", condition) else condition.split("&&")
    return any(part.strip(" ()") in {"0", "false"} for part in parts)


# "static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT"
_VALUE = re.compile(
    rb"(?=[^=]*\b(?:constexpr|const)\b)(?:(?:static|constexpr|const|inline)\b\s*)+"
    rb"(?P<type>[A-Za-z_:][^={}]*?[\s>*&]|)(?P<name>\w+)\s*(?:=(?P<value>[\s\S]+)|\{(?P<braced>[\s\S]*)\})\Z"
)
# "using delay_constructor = fixed_delay_constructor_t<368, 725>"
_ALIAS = re.compile(rb"using\s+(?P<name>\w+)\s*=(?P<value>[\s\S]+)\Z")
# "public:", "[[maybe_unused]]", "alignas(8)" before a member
_BEFORE = re.compile(
    rb"(?:(?:(?:public|protected|private)\s*:(?!:)|\[\[[^\]]*\]\]|\bmutable\b"
    rb"|\b(?:alignas|__attribute__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))\s*)+"
)
# "MACRO(x) static constexpr int items = 7", which is a value; not "operator==(…)", "f() = default"
_ASSIGNS = re.compile(
    rb"(?!.*\boperator\b)[^={]*[^=!<>]=(?!=)\s*+(?!default\b|delete\b|0\s*\Z)", re.DOTALL
)
_MAY_ASSIGN = re.compile(rb"(?:struct|class|union|friend|template|static_assert|using)\b|\Z")
# Statements without values; a function has a parenthesis before any `=`
_NO_MEMBER = re.compile(
    rb"(?:struct|class|union|friend|template|static_assert)\b|using\s+namespace\b"
    rb"|using\s+[^=]*::|(?!enum\b|typedef\b)[^=({]*\(|\Z"
)
_ENDED = re.compile(rb"\s*;")
_TOKENS = re.compile(rb"[(){}\[\];]")
_INTEGER = re.compile(r"[+-]?\s*(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*")
_MAX_BITS = 128
_NUMERIC_TYPE = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|auto|(?:\w*::)*(?:u?int\d+_t|size_t))\s*)+"
)


# Members of an entry: `static constexpr` values and `using` aliases


def find_members(text: Text, code: bytes, body: Span) -> Iterator[Member]:
    """Yields the members of a body, in order; functions and nested types are skipped."""
    names: set[str] = set()
    for statement in statements(code, body):
        source = code[slice(*statement)]
        match = _VALUE.match(source) or _ALIAS.match(source)
        if match is None and _NO_MEMBER.match(source) and not _is_value(source):
            continue
        semicolon = _ENDED.match(code, statement.end, body.end)
        member = match and semicolon and _member(text.data, code, statement, match)
        if member is None or len(split_list(code, *member.value_span)) > 1:
            raise text.error(
                statement.start,
                "cannot read this member",
                remedy="Expected: static constexpr TYPE NAME = VALUE; or: using NAME = TYPE;",
            )
        if member.name in names:
            raise text.error(statement.start, f"{member.name} appears twice as a member")
        names.add(member.name)
        yield member


def _is_value(statement: bytes) -> bool:
    """Tells whether a statement with parentheses before its `=` is a value nevertheless."""
    return not _MAY_ASSIGN.match(statement) and bool(_ASSIGNS.match(flattened(statement)))


def _member(data: bytes, code: bytes, statement: Span, match: re.Match[bytes]) -> Member:
    group = "value" if match["value"] is not None else "braced"
    value = trim(code, *(statement.start + offset for offset in match.span(group)))
    spelling = squeeze(data, value)
    alias = match.re is _ALIAS
    type_name = "using" if alias else squeeze(match["type"])
    return Member(
        name=match["name"].decode(),
        kind="alias" if alias else "value",
        type=type_name,
        spelling=spelling,
        value=spelling if alias else _constant(type_name, spelling),
        span=Span(statement.start, statement.end + 1),
        value_span=value,
    )


def _constant(kind: str, spelling: str) -> Value | None:
    """Evaluates a literal, or an expression of literals such as `1 << 2`."""
    value = literal(kind, spelling)
    if value is not None or is_literal(spelling):
        return value
    number = evaluate(spelling, {"true": 1, "false": 0}.get)
    return bool(number) if kind == "bool" and number is not None else number


def literal(kind: str, spelling: str) -> Value | None:
    """Evaluates a constant that needs no compiler: a number, a Boolean or an enumerator's name."""
    if spelling in {"true", "false"}:
        return spelling == "true"
    if is_literal(spelling):
        try:
            # C++ octal `017` is not a Python literal.
            python = re.sub(r"^([+-]?\s*)0(?=[0-7])", r"\g<1>0o", spelling)
            number = int(re.sub(r"[uUlLzZ' ]", "", python), 0)
        except ValueError:  # 089, or thousands of digits
            return None
        if number.bit_length() > _MAX_BITS:
            return None
        return bool(number) if kind == "bool" else number
    return None if _NUMERIC_TYPE.fullmatch(kind) else spelling


def is_literal(spelling: str) -> bool:
    """Tells whether a spelling is an integer literal."""
    return _INTEGER.fullmatch(spelling) is not None


def statements(code: bytes, body: Span) -> Iterator[Span]:
    """Yields the text before each top-level `;` of a body, and statements without a `;`."""
    statement_start, depth = body.start, 0
    for match in _TOKENS.finditer(code, body.start, body.end):
        token = match.group()
        if token in b"({[":
            depth += 1
        elif token in b")}]":
            depth -= 1
            if token == b"}" and depth == 0 and not _CONTINUES.match(code, match.end(), body.end):
                statement_start = match.end()
        elif depth == 0:
            yield _statement(code, statement_start, match.start())
            statement_start = match.end()
    yield _statement(code, statement_start, body.end)


def _statement(code: bytes, start: int, end: int) -> Span:
    """Strips access specifiers and attributes in front of a statement."""
    span = trim(code, start, end)
    prefix = _BEFORE.match(code, span.start, span.end)
    return Span(prefix.end(), span.end) if prefix else span


# A `;` follows `int x{1}`, but not a function body.
_CONTINUES = re.compile(rb"\s*[;,.)]")


def member_values(members: tuple[Member, ...]) -> dict[str, Value]:
    """Returns values by name; those that are not constant as spelled."""
    return {
        member.name: member.spelling if member.value is None else member.value for member in members
    }


# "CUB_NAMESPACE_BEGIN", "_CCCL_HOST_DEVICE_API": tokens outside of the grammar; not "CUB_MAX("
_MACROS = re.compile(rb"\b_?(?:CUB|CCCL|THRUST)_[A-Z0-9_]+\b(?![ \t]*\()")
# "sm90_tuning<int>", "detail::scan::sm90_tuning"
_FAMILY_NAME = re.compile(rb"(?:(?:\w+\s*)?::\s*)*(sm\d{2,3}_\w+)")
_QUERY = """
(template_declaration (struct_specifier name: (_) @name))
(template_declaration (class_specifier name: (_) @name))
(template_declaration (union_specifier name: (_) @name))
"return" @return
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """The contents of a header; offsets into the file."""

    families: tuple[Span, ...]
    """The names of family templates."""
    returns: tuple[int, ...]


# The count of families and returns by tree-sitter, which refuses those that were not read
#
# It has its own lexer and grammar, needs no known names, and continues after errors.


@lru_cache(maxsize=1)
def parse_with_tree_sitter(data: bytes) -> Counted:
    """Parses a header with tree-sitter; cached, as both checks need it."""
    from tree_sitter import Parser, QueryCursor

    language, query = _query()
    tree = Parser(language).parse(_MACROS.sub(lambda match: b" " * len(match[0]), data))
    captures = QueryCursor(query).captures(tree.root_node)
    names = [(node.start_byte, node.end_byte) for node in captures.get("name", [])]
    families = [match for span in names if (match := _FAMILY_NAME.match(data, *span))]
    returns = [node.start_byte for node in captures.get("return", [])]
    spans = sorted(Span(*match.span(1)) for match in families)
    return Counted(tuple(spans), tuple(sorted(returns)))


def check_families(text: Text, families: Iterable[Span], names: Collection[int]) -> None:
    """Raises an error at a family that was not read; `names` are the offsets of those that were."""
    for span in families:
        if span.start not in names:
            name = text.data[slice(*span)].decode()
            raise text.error(span.start, f"{name}: cannot read this declaration", width=len(name))


def check_returns(text: Text, seen: Counted, bodies: Iterable[Span]) -> None:
    """Raises an error at a return outside of all known function bodies."""
    spans = iter(sorted(bodies))
    body = next(spans, None)
    for offset in seen.returns:
        while body is not None and body.end <= offset:
            body = next(spans, None)
        if body is None or offset < body.start:
            raise text.error(
                offset,
                "a return outside of any readable function",
                width=len("return"),
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


@cache
def _query() -> tuple[Any, Any]:
    import tree_sitter
    import tree_sitter_cpp

    language = tree_sitter.Language(tree_sitter_cpp.language())
    return language, tree_sitter.Query(language, _QUERY)
