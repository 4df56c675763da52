"""The members of an entry: `static constexpr` values and `using` aliases."""

import re
from collections.abc import Iterator

from policygen.model.base import Span
from policygen.model.tuning import Member, Value
from policygen.source.brackets import flattened, split_list, trim
from policygen.source.text import Text, squeeze

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
