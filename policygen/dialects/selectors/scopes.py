"""What braces open at namespace or class scope: each record and function, however spelled."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from policygen.model.base import Span
from policygen.source.brackets import closing_brace, closing_bracket, flattened, trim

Kind = Literal["scope", "record", "function", "value", "other"]

_OPENS = re.compile(rb"[({\[;}]")
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


def find_blocks(code: bytes) -> Iterator[Block]:
    """All that are not inside of a function, outermost first."""
    at = begin = 0
    while match := _OPENS.search(code, at):
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
