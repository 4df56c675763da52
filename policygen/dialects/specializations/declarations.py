"""Finds the declarations of `smNN_*` templates in code, with the span of each of their parts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policygen.model.base import Span
from policygen.source.brackets import closing_angle, closing_brace, split_list, trim

# "struct sm90_tuning", "struct alignas(8) sm100_small_key_tuning", "class CUB_VISIBLE sm80_tuning"
_NAME = re.compile(
    rb"(?:struct(?<=\bstruct)|class(?<=\bclass))\s+"
    rb"(?:\[\[[^\]]*\]\]\s*|(?!sm\d)[A-Za-z_]\w*+(?:\s*+\([^()]*\)\s*+|\s++))*(sm(\d{2,3})_\w+)\s*"
)
_TEMPLATE = re.compile(rb"\btemplate\s*<")
# Between `template <…>` and `struct` there may be attributes, a macro or a constraint.
_BETWEEN = re.compile(
    rb"\s*+(?:[A-Z_][A-Z_0-9]*+(?:\s*+\([^()]*+\))?\s*+)*(?:requires\b.*)?", re.DOTALL
)
# What only a declaration can be; not "friend struct sm90_x<T>"
_DECLARES = re.compile(
    rb"(?:struct(?<=\bstruct)|class(?<=\bclass))\b[^;{}<>=:,]*?\b(sm\d{2,3}_\w+)\s*(?:[<{]|:(?!:))"
)
_ONLY_NAMES = re.compile(rb"\bfriend\s*\Z")
_STATEMENT_END = (b";", b"{", b"}")
_HEAD_END = re.compile(rb"[{;]")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One `template <…> struct smNN_name<…> : bases { body };`; offsets into the file."""

    name: str
    name_span: Span
    span: Span
    parameters_span: Span
    args_span: Span | None
    inherits_span: Span | None
    body_span: Span | None


def find_declarations(
    code: bytes, start: int = 0, end: int | None = None, *, names: re.Pattern[bytes] = _NAME
) -> Iterator[Declaration]:
    """All declarations of `smNN_*` class templates in a stretch of code, in order.

    Others are found with a pattern of theirs, whose first group is the name.
    """
    at = start
    limit = len(code) if end is None else end
    while match := names.search(code, at, limit):
        declaration = _read(code, match, at, limit)
        if declaration is not None:
            yield declaration
        at = match.end() if declaration is None else max(match.end(), declaration.span.end)


def _read(code: bytes, name: re.Match[bytes], floor: int, limit: int) -> Declaration | None:
    head = _template_head(code, name.start(), floor)
    if head is None:
        return None
    begin, parameters = head
    at, args = name.end(), None
    if code[at : at + 1] == b"<":
        close = closing_angle(code, at)
        if close is None or close >= limit:
            return None
        args, at = Span(at + 1, close), close + 1
    finish = _tail(code, at, limit)
    if finish is None:
        return None
    inherits, body, stop = finish
    return Declaration(
        name=name[1].decode(),
        name_span=Span(*name.span(1)),
        span=Span(begin, stop),
        parameters_span=parameters,
        args_span=args,
        inherits_span=inherits,
        body_span=body,
    )


def _template_head(code: bytes, struct: int, floor: int) -> tuple[int, Span] | None:
    """Where the `template <…>` before a `struct` begins, and what stands between its brackets."""
    begin = max(floor, *(code.rfind(stop, floor, struct) + 1 for stop in _STATEMENT_END))
    for match in _TEMPLATE.finditer(code, begin, struct):
        close = closing_angle(code, match.end() - 1)
        if close is not None and close < struct and _only_attributes(code, close + 1, struct):
            return match.start(), Span(match.end(), close)
    return None


def _only_attributes(code: bytes, start: int, end: int) -> bool:
    return _BETWEEN.fullmatch(code, start, end) is not None


def _tail(code: bytes, at: int, limit: int) -> tuple[Span | None, Span | None, int] | None:
    """The bases, the body and the end of a declaration whose name and arguments end at `at`."""
    head = _HEAD_END.search(code, at, limit)
    if head is None:
        return None
    inherits = None
    between = trim(code, at, head.start())
    if code[between.start : between.start + 1] == b":":
        inherits = trim(code, between.start + 1, between.end)
    elif code[between.start : between.end] not in {b"", b"final"}:
        return None
    if head.group() == b";":
        return inherits, None, head.end()
    close = closing_brace(code, head.start())
    if close is None or close >= limit:
        return None
    semicolon = re.compile(rb"\s*;").match(code, close + 1, limit)
    stop = close + 1 if semicolon is None else semicolon.end()
    return inherits, Span(head.end(), close), stop


def find_names(code: bytes, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Where the name of a declaration stands, as a second reader that asks for less."""
    for match in _DECLARES.finditer(code, start, len(code) if end is None else end):
        if not _ONLY_NAMES.search(code, max(0, match.start() - 80), match.start()):
            yield Span(*match.span(1))


def list_parts(code: bytes, span: Span) -> list[Span]:
    """The parameters or arguments between `<` and `>`."""
    return split_list(code, span.start, span.end)
