"""The functions of a header that return policies, and the structs that they return."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.headers.selectors.statements import Block, find_blocks
from policygen.headers.syntax import closing_brace, flattened, split_list, trim
from policygen.headers.text import Text, read_bytes, squeeze
from policygen.model.records import Span

_OPTIONAL = re.compile(r"(?:::)?(?:\w+::)*optional<\s*([\w:]+)\s*>")
# "int threads_per_block = 7;", "LookbackDelayPolicy delay;", "unsigned int delay;"
_FIELD = re.compile(
    rb"((?:unsigned\s+)?[\w:]+)(?:\s+const)?\s+(\w+)\s*(?:\[\[[^\]]*\]\]\s*)?(?:=[^;]*|\{[^;]*\})?\Z"
)
# "int (x)": another way to write a field
_IN_PARENTHESES = re.compile(rb"[\w:]+\s*\(\s*\w+\s*\)\s*(?:=|\{|\Z)")
_NO_FIELD = re.compile(
    rb"(?:static|using|friend|return|typedef|static_assert|template|enum|struct|class|union)\b|\Z"
)
# "public:", "[[maybe_unused]]", "alignas(8)" before a field
_BEFORE = re.compile(
    rb"(?:(?:(?:public|protected|private)\s*:(?!:)|\[\[[^\]]*\]\]|alignas\s*\([^()]*\)|mutable\b)\s*)+"
)
_NAMESPACE = re.compile(rb"\bnamespace\s+([\w:]+)\s*\{")
_PARAMETER = re.compile(rb"(\w+)\s*(?:=.*)?\Z", re.DOTALL)
_STATEMENT = re.compile(rb"[;{}]")
# "using policy = MergePolicy;", "typedef MergePolicy policy;"
_ALIAS = re.compile(
    rb"\busing\s+(\w+)\s*=\s*((?:::)?(?:\w+::)*\w+)\s*;|\btypedef\s+((?:::)?(?:\w+::)*\w+)\s+(\w+)\s*;"
)
NAMED = re.compile(r"_?sm(\d{2,3})(?:_|$)")
_DEDUCED = {b"auto", b"decltype( )", b"decltype()", b""}
_RETURNED = re.compile(rb"\breturn\s+(?:::)?(?:\w+::)*(\w+)\s*[{(]")


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
    unread: int | None = None
    """Where something stands that may be a field, and is not understood."""


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
    helps: bool = False
    """It makes a part of what another one returns: its own returns are no entries."""

    @property
    def label(self) -> str:
        """`policy_selector::get_sm100_tuning`."""
        return f"{self.scope}::{self.name}" if self.scope else self.name


def find_structs(code: bytes) -> dict[str, Struct]:
    """All structs without bases, by name."""
    return structs_of(code, list(find_blocks(code)))


def structs_of(code: bytes, blocks: Iterable[Block]) -> dict[str, Struct]:
    """The same, of what braces open."""
    return {b.name: _struct(code, b) for b in blocks if b.kind == "record" and b.plain}


def _struct(code: bytes, block: Block) -> Struct:
    fields: list[tuple[str, str]] = []
    unread = None
    for statement in _statements(code, block.body):
        text = code[statement.start : statement.end]
        if _NO_FIELD.match(text):
            continue
        if field := _FIELD.match(text):
            fields.append((field[2].decode(), squeeze(field[1])))
        elif b"<" not in text and not _declares_function(text):
            unread = statement.start if unread is None else unread
    return Struct(
        name=block.name,
        span=Span(block.start, block.body.end + 1),
        body=block.body,
        fields=tuple(name for name, _ in fields),
        types=tuple(of for _, of in fields),
        unread=unread,
    )


def _declares_function(text: bytes) -> bool:
    """`bool empty() const`; not `int (x)`, nor `int x = f()`."""
    flat = flattened(text).partition(b"=")[0].partition(b"{")[0]
    return b"(" in flat and not _IN_PARENTHESES.match(text)


def _statements(code: bytes, body: Span) -> Iterator[Span]:
    """What stands before each `;` of a body, without what has braces of its own."""
    start = at = body.start
    while match := _STATEMENT.search(code, at, body.end):
        at = match.end()
        if match[0] == b";":
            statement = trim(code, start, match.start())
            before = _BEFORE.match(code, *statement)
            yield Span(before.end(), statement.end) if before else statement
            start = at
        elif match[0] == b"{":
            before_it = code[start : match.start()].strip()
            close = closing_brace(code, match.start())
            at = body.end if close is None else close + 1
            # A function, and no `{}` that a member begins with.
            if not before_it.endswith(b"=") and code[at : at + 1] != b";":
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
    """The functions that return one of the structs and have entries, in order."""
    found = functions_of(code, list(find_blocks(code)), structs)
    return (function for function in found if not function.helps)


def functions_of(
    code: bytes, blocks: Iterable[Block], structs: Mapping[str, Struct]
) -> Iterator[Function]:
    """The same with those that help others, of what braces open."""
    aliases = {(m[1] or m[4]).decode(): squeeze(m[2] or m[3]) for m in _ALIAS.finditer(code)}
    parts = {of for struct in structs.values() for of in struct.types}
    for block in blocks:
        if block.kind != "function":
            continue
        result = result_of(code, block)
        optional = _OPTIONAL.fullmatch(result)
        name = (optional[1] if optional else result).rpartition("::")[2]
        if name not in structs and name in aliases:
            name = aliases[name].rpartition("::")[2]
        if name not in structs:
            continue
        at = block.start
        around = [s for s in structs.values() if s.body.start <= at < s.body.end]
        assert block.parameters is not None, "it is a function"
        parameters = [
            _PARAMETER.search(code[p.start : p.end]) for p in split_list(code, *block.parameters)
        ]
        scope = max(around, key=lambda s: s.span.start).name if around else ""
        yield Function(
            name=block.name,
            scope=scope,
            returns=name,
            optional=optional is not None,
            parameters=tuple(p[1].decode() for p in parameters if p),
            span=Span(at, block.body.end + 1),
            body=block.body,
            helps=not scope and _helps(block, name, parts),
        )


def _helps(block: Block, returns: str, parts: Collection[str]) -> bool:
    """Whether a free function of a deduced type only makes a part of what another one returns.

    `tuned_vectorized_policy` of CUB 3.5 and 3.6 is one: what it returns is no entry.
    """
    deduced = block.result in _DEDUCED
    return deduced and returns in parts and not NAMED.search(block.name)


def result_of(code: bytes, block: Block) -> str:
    """The type that a function returns, as it is written or as its returns say."""
    if block.result not in _DEDUCED:
        return squeeze(block.result).rstrip("& ")
    returned = {m[1] for m in _RETURNED.finditer(code, *block.body)}
    return returned.pop().decode() if len(returned) == 1 else ""


def arguments(code: bytes, value: Span) -> tuple[str, list[Span]] | None:
    """`Name{a, b}`, `{a, b}` or `name(a, b)`: the name and what it is given."""
    text = code[value.start : value.end]
    match = re.match(rb"([\w:]*)\s*([{(])", text)
    if match is None or text[-1:] != {b"{": b"}", b"(": b")"}[match[2]]:
        return None
    inner = trim(code, value.start + match.end(), value.end - 1)
    return squeeze(match[1]), split_list(code, inner.start, inner.end)


@dataclass(frozen=True, slots=True)
class Field:
    """One field, with its own where it is an aggregate itself."""

    name: str
    type: str
    fields: tuple["Field", ...] = ()


# The public aggregates that policy selectors return: their fields, as headers declare them.


def find_aggregates(headers: Mapping[str, bytes]) -> dict[str, Struct]:
    """All structs of some headers by name."""
    found: dict[str, Struct] = {}
    for name, data in headers.items():
        found |= find_structs(Text(name, data).code)
    return found


def policy_structs(folder: Path) -> dict[str, Struct]:
    """What a folder of tuning headers declares, those without selectors included."""
    return find_aggregates({path.name: read_bytes(path) for path in sorted(folder.glob("*.cuh"))})


def read_aggregate(structs: Mapping[str, Struct], name: str) -> tuple[Field, ...]:
    """The fields of a policy, in order."""
    struct = structs.get(name)
    if struct is None or not struct.fields:
        raise InputError(
            f"the tree has no policy {name}", "Correct the selector in schemas/bindings."
        )
    return tuple(_fields(structs, struct))


def _fields(structs: Mapping[str, Struct], struct: Struct) -> Iterator[Field]:
    """What is declared twice has its value from a macro of the user's: it is left to that."""
    chosen = {name for name in struct.fields if struct.fields.count(name) > 1}
    for name, of in zip(struct.fields, struct.types, strict=True):
        if name in chosen:
            continue
        inner = structs.get(of)
        nested = tuple(_fields(structs, inner)) if inner and inner.fields else ()
        yield Field(name, of, nested)


def leaves(fields: tuple[Field, ...], within: str = "") -> Iterator[tuple[str, str]]:
    """Each value's path and type: `multi_tile.items_per_thread`, `int`."""
    for field in fields:
        path = f"{within}{field.name}"
        if field.fields:
            yield from leaves(field.fields, f"{path}.")
        else:
            yield path, field.type
