"""The functions of a header that return policies, and the structs that they return."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.model.base import Span
from policygen.source.brackets import closing_brace, closing_bracket, split_list, trim
from policygen.source.text import squeeze

# "struct policy_selector", "struct HistogramPolicy"; not "struct x : base", which is no aggregate
_STRUCT = re.compile(rb"\bstruct\s+(\w+)\s*\{")
# "constexpr auto get_sm90_tuning(…) const noexcept -> small_key_tuning_values {"
_FUNCTION = re.compile(rb"\bconstexpr\s+auto\s+(operator\s*\(\s*\)|\w+)\s*\(")
_RETURNS = re.compile(rb"\s*(?:const\b\s*)?(?:noexcept\b\s*)?->\s*([^{};]+?)\s*\{")
_OPTIONAL = re.compile(r"(?:::)?(?:\w+::)*optional<\s*([\w:]+)\s*>")
# "int threads_per_block = 7;", "LookbackDelayPolicy delay;", "unsigned int delay;"
_FIELD = re.compile(
    rb"(?!static\b|using\b|friend\b|return\b|typedef\b)((?:unsigned\s+)?[\w:]+)(?:\s+const)?\s+(\w+)"
    rb"\s*(?:=[^;]*|\{[^;]*\})?\Z"
)
_NAMESPACE = re.compile(rb"\bnamespace\s+([\w:]+)\s*\{")
_PARAMETER = re.compile(rb"(\w+)\s*(?:=.*)?\Z", re.DOTALL)
_STATEMENT = re.compile(rb"[;{}]")


@dataclass(frozen=True, slots=True)
class Struct:
    """An aggregate, or a struct with the functions of a selector."""

    name: str
    span: Span
    body: Span
    """Between its braces."""
    fields: tuple[str, ...]
    """Its members in order: what an aggregate's values are called."""
    types: tuple[str, ...] = ()
    """Their types, as they are written."""


@dataclass(frozen=True, slots=True)
class Function:
    """A `constexpr` function that returns an aggregate, or perhaps one."""

    name: str
    scope: str
    """The struct that it belongs to; empty for a free one."""
    returns: str
    """The aggregate, without `optional`."""
    optional: bool
    parameters: tuple[str, ...]
    span: Span
    body: Span

    @property
    def label(self) -> str:
        """`policy_selector::get_sm100_tuning`."""
        return f"{self.scope}::{self.name}" if self.scope else self.name


def find_structs(code: bytes) -> dict[str, Struct]:
    """All structs without bases, by name."""
    found = {}
    for match in _STRUCT.finditer(code):
        close = closing_brace(code, match.end() - 1)
        if close is None:
            continue
        body = Span(match.end(), close)
        name = match[1].decode()
        fields = tuple(_fields(code, body))
        found[name] = Struct(
            name,
            Span(match.start(), close + 1),
            body,
            tuple(field for field, _ in fields),
            tuple(of for _, of in fields),
        )
    return found


def _fields(code: bytes, body: Span) -> Iterator[tuple[str, str]]:
    start = at = body.start
    while match := _STATEMENT.search(code, at, body.end):
        at = match.end()
        if match[0] == b";":
            if field := _FIELD.match(code[start : match.start()].strip()):
                yield field[2].decode(), squeeze(field[1])
            start = at
        elif match[0] == b"{":
            before = code[start : match.start()].strip()
            close = closing_brace(code, match.start())
            at = body.end if close is None else close + 1
            if not before.endswith(b"="):  # a function, and no `{}` that a member begins with
                start = at


def find_namespaces(code: bytes) -> list[tuple[Span, str]]:
    """The namespaces of a header, outermost first; a macro opens `cub`."""
    opened = code.find(b"CUB_NAMESPACE_BEGIN")
    found = [(Span(opened, len(code)), "cub")] if opened >= 0 else []
    for match in _NAMESPACE.finditer(code):
        close = closing_brace(code, match.end() - 1)
        found.append((Span(match.start(), close or len(code)), match[1].decode()))
    return found


def find_functions(code: bytes, structs: Mapping[str, Struct]) -> Iterator[Function]:
    """The functions whose trailing return type is one of the structs, in order."""
    for match in _FUNCTION.finditer(code):
        opened = match.end() - 1
        closed = closing_bracket(code, opened)
        returns = _RETURNS.match(code, closed + 1) if closed else None
        if closed is None or returns is None:
            continue
        spelling = squeeze(returns[1])
        optional = _OPTIONAL.fullmatch(spelling)
        name = (optional[1] if optional else spelling).rpartition("::")[2]
        close = closing_brace(code, returns.end() - 1)
        if name not in structs or close is None:
            continue
        around = [s for s in structs.values() if s.body.start <= match.start() < s.body.end]
        scope = max(around, key=lambda s: s.span.start).name if around else ""
        parameters = [
            _PARAMETER.search(code[p.start : p.end]) for p in split_list(code, opened + 1, closed)
        ]
        yield Function(
            name="operator()" if b"operator" in match[1] else match[1].decode(),
            scope=scope,
            returns=name,
            optional=optional is not None,
            parameters=tuple(p[1].decode() for p in parameters if p),
            span=Span(match.start(), close + 1),
            body=Span(returns.end(), close),
        )


def arguments(code: bytes, value: Span) -> tuple[str, list[Span]] | None:
    """`Name{a, b}`, `{a, b}` or `name(a, b)`: the name and what it is given."""
    text = code[value.start : value.end]
    match = re.match(rb"([\w:]*)\s*([{(])", text)
    if match is None or text[-1:] != {b"{": b"}", b"(": b")"}[match[2]]:
        return None
    inner = trim(code, value.start + match.end(), value.end - 1)
    return squeeze(match[1]), split_list(code, inner.start, inner.end)
