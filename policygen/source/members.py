"""The members of an entry: `static constexpr` values and `using` aliases."""

import re
from collections.abc import Iterator

from policygen.model.base import Span
from policygen.model.tuning import Member, Value
from policygen.source.brackets import trim
from policygen.source.text import Text, squeeze

# "static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT"
_VALUE = re.compile(
    rb"(?=[^=]*\b(?:constexpr|const)\b)(?:(?:static|constexpr|const|inline)\b\s*)+"
    rb"(?P<type>[A-Za-z_:][^={}]*?[\s>*&]|)(?P<name>\w+)\s*(?:=(?P<value>[\s\S]+)|\{(?P<braced>[\s\S]*)\})\Z"
)
# "using delay_constructor = fixed_delay_constructor_t<368, 725>"
_ALIAS = re.compile(rb"using\s+(?P<name>\w+)\s*=(?P<value>[\s\S]+)\Z")
# A function has a parenthesis before any `=`; what else begins so should have been a member.
_MEANT_AS_MEMBER = re.compile(
    rb"(?:static\s+constexpr|constexpr\s+static)\s[^(]*(?:=|\Z)|using\s+(?!namespace\b)\w+\s*(?:=|\Z)"
)
_TOKENS = re.compile(rb"[(){}\[\];]")
_INTEGER = re.compile(r"[+-]?\s*(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*")
_NUMERIC_TYPE = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|auto|(?:\w*::)*(?:u?int\d+_t|size_t))\s*)+"
)


def find_members(text: Text, code: bytes, body: Span) -> Iterator[Member]:
    """The members of a body, in order; functions and nested types are passed over."""
    for statement in _statements(code, body):
        source = code[statement.start : statement.end]
        if (match := _VALUE.match(source)) or (match := _ALIAS.match(source)):
            yield _member(text.data, code, statement, match)
        elif _MEANT_AS_MEMBER.match(source):
            raise text.error(
                statement.start,
                "cannot read this member",
                remedy="Expected: static constexpr TYPE NAME = VALUE; or: using NAME = TYPE;",
            )


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
    if _INTEGER.fullmatch(spelling):
        number = int(re.sub(r"[uUlLzZ' ]", "", _decimal(spelling)), 0)
        return bool(number) if kind == "bool" else number
    if is_numeric(kind):
        return None
    return spelling


def is_numeric(kind: str) -> bool:
    """Whether a member of this type has a number for its value, and no enumerator's name."""
    return _NUMERIC_TYPE.fullmatch(kind) is not None


def _decimal(spelling: str) -> str:
    # C++ octal `017` is no Python literal.
    return re.sub(r"^([+-]?\s*)0(?=[0-7])", r"\g<1>0o", spelling)


def _statements(code: bytes, body: Span) -> Iterator[Span]:
    """What stands before each `;` of a body, and not inside brackets."""
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
            yield trim(code, at, match.start())
            at = match.end()


_CONTINUES = re.compile(rb"\s*[;,.)]")


def _continues(code: bytes, at: int, end: int) -> bool:
    """After `int x{1}` comes a `;`, after a function's body the next statement."""
    return _CONTINUES.match(code, at, end) is not None
