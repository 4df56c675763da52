"""Finds the functions of a header that return policies, and the structs that they return."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.headers.spelling import UNIT, WIDTH
from policygen.headers.syntax import closing_bracket, flattened, split_list, statements, trim
from policygen.headers.text import Text, squeeze
from policygen.model.arch import capability_number
from policygen.model.records import Span
from policygen.opening import read_bytes

_OPTIONAL = re.compile(r"(?:::)?(?:\w+::)*optional<\s*([\w:]+)\s*>")
# "int threads_per_block = 7;", "LookbackDelayPolicy delay;", "unsigned int delay;"
_FIELD = re.compile(
    rb"((?:unsigned\s+)?[\w:]+)(?:\s+const)?\s+(\w+)\s*(?:\[\[[^\]]*\]\]\s*)?(?:=[^;]*|\{[^;]*\})?\Z"
)
# "int (x)": an alternative syntax for a field
_PARENTHESIZED_FIELD = re.compile(rb"[\w:]+\s*\(\s*\w+\s*\)\s*(?:=|\{|\Z)")
_NO_FIELD = re.compile(
    rb"(?:static|using|friend|return|typedef|static_assert|template|enum|struct|class|union)\b|\Z"
)
_NAMESPACE = re.compile(rb"\bnamespace\s+([\w:]+)\s*\{")
_PARAMETER = re.compile(rb"(\w+)\s*(?:=.*)?\Z", re.DOTALL)
# "using policy = MergePolicy;", "typedef MergePolicy policy;"
_ALIAS = re.compile(
    rb"\busing\s+(\w+)\s*=\s*((?:::)?(?:\w+::)*\w+)\s*;|\btypedef\s+((?:::)?(?:\w+::)*\w+)\s+(\w+)\s*;"
)
NAMED = re.compile(r"_?sm(\d{2,3})(?:_|$)")


# "cc >= ::cuda::compute_capability{10, 7}"
SINCE = re.compile(r"cc\s*>=?\s*((?:::)?(?:\w+::)*compute_capability)\{(\d+),\s*(\d+)\}")


_DEDUCED_TYPES = {b"auto", b"decltype( )", b"decltype()", b""}
_RETURNED = re.compile(rb"\breturn\s+(?:::)?(?:\w+::)*(\w+)\s*[{(]")


# Blocks at namespace or class scope: records and functions

Kind = Literal["scope", "record", "function", "value", "other"]
_SCOPES_OPENS = re.compile(rb"[({\[;}]")
_LABELS = re.compile(rb"\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+")
# "inline namespace v1", "extern 000", which was "C++"
_SCOPE = re.compile(rb"\bnamespace\b[^()=]*\Z|\bextern\s+0+\s*\Z")
_ENUM = re.compile(rb"\benum\b[^()=]*\Z")
# "struct alignas(8) policy final : base"; the contents of brackets are blanked
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
_NOT_FUNCTION_NAMES = frozenset(
    b"if for while switch catch alignas decltype noexcept requires __attribute__ __declspec"
    b" __align__ sizeof explicit".split()
)
_CONSTEXPR_OR_CONST = re.compile(rb"\bconst(?:expr|eval)\b")
# The tokens of a declaration other than its type: specifiers, attributes, macros
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
    """The span between the braces."""
    name: str = ""
    plain: bool = True
    """For a record: whether it has no bases and no template arguments."""
    bases: Span | None = None
    """For a record: the span behind its colon."""
    start: int = 0
    """The start of the declaration: a record's keyword, or a function's specifiers."""
    parameters: Span | None = None
    """For a function: the span between its parentheses."""
    result: bytes = b""
    """The type that a function returns, without specifiers."""

    @property
    def span(self) -> Span:
        """The whole declaration, without what precedes its start."""
        return Span(self.start, self.body.end + 1)


@dataclass(frozen=True, slots=True)
class Struct:
    """An aggregate, or a struct with a selector's functions."""

    name: str
    span: Span
    body: Span
    """The span between the braces."""
    typed_fields: tuple[tuple[str, str], ...]
    """The names of the members with their types as written, in order."""
    unread: int | None = None
    """The offset of something that may be a field but cannot be read."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the members."""
        return tuple(name for name, _ in self.typed_fields)


@dataclass(frozen=True, slots=True)
class Function:
    """A `constexpr` function that returns an aggregate, possibly as an `optional`."""

    name: str
    scope: str
    """The enclosing struct; empty for a free function."""
    returns: str
    """The name of the aggregate, without `optional`."""
    optional: bool
    parameters: tuple[str, ...]
    parameter_list: Span
    """The span between its parentheses."""
    span: Span
    body: Span
    helps: bool = False
    """Whether it only makes a part of another function's result, so its returns are not entries."""

    @property
    def label(self) -> str:
        """`policy_selector::get_sm100_tuning`."""
        return f"{self.scope}::{self.name}" if self.scope else self.name


class HeaderCode:
    """The structs and functions that a header's code declares."""

    def __init__(self, code: bytes) -> None:
        self.code = code

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks outside of functions, outermost first."""
        return list(find_blocks(self.code))

    @cached_property
    def structs(self) -> dict[str, Struct]:
        """All structs without bases, by name."""
        records = (block for block in self.blocks if block.kind == "record" and block.plain)
        return {block.name: _struct(self.code, block) for block in records}

    @cached_property
    def functions(self) -> list[Function]:
        """The functions that return one of the structs, in order, including helpers."""
        return list(_functions(self.code, self.blocks, self.structs))

    @property
    def deciding(self) -> list[Function]:
        """The functions whose returns are entries."""
        return [function for function in self.functions if not function.helps]

    @cached_property
    def _namespaces(self) -> list[tuple[Span, str]]:
        """The namespaces, outermost first; a macro opens `cub`."""
        macro_start = self.code.find(b"CUB_NAMESPACE_BEGIN")
        namespaces = [(Span(macro_start, len(self.code)), "cub")] if macro_start >= 0 else []
        for match in _NAMESPACE.finditer(self.code):
            close = closing_bracket(self.code, match.end() - 1)
            span = Span(match.start(), close or len(self.code))
            namespaces.append((span, match[1].decode()))
        return namespaces

    def namespace_at(self, offset: int) -> str:
        """Returns the namespaces around an offset, such as `cub::detail::scan`."""
        return "::".join(name for span, name in self._namespaces if span.start <= offset < span.end)

    def function_at(self, offset: int) -> Function | None:
        """Returns the deciding function around an offset."""
        around = (own for own in self.deciding if own.body.start <= offset < own.body.end)
        return next(around, None)


def _struct(code: bytes, block: Block) -> Struct:
    fields: list[tuple[str, str]] = []
    unread = None
    for statement in statements(code, block.body):
        text = code[slice(*statement)]
        if _NO_FIELD.match(text):
            continue
        if field := _FIELD.match(text):
            fields.append((field[2].decode(), squeeze(field[1])))
        elif b"<" not in text and not _declares_function(text):
            unread = statement.start if unread is None else unread
    return Struct(block.name, block.span, block.body, tuple(fields), unread)


def _declares_function(text: bytes) -> bool:
    """Matches `bool empty() const`, but not `int (x)` or `int x = f()`."""
    flat = flattened(text).partition(b"=")[0].partition(b"{")[0]
    return b"(" in flat and not _PARENTHESIZED_FIELD.match(text)


def _functions(
    code: bytes, blocks: Iterable[Block], structs: Mapping[str, Struct]
) -> Iterator[Function]:
    aliases = {
        (match[1] or match[4]).decode(): squeeze(match[2] or match[3])
        for match in _ALIAS.finditer(code)
    }
    parts = {kind for struct in structs.values() for _, kind in struct.typed_fields}
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
        start = block.start
        enclosing = [own for own in structs.values() if own.body.start <= start < own.body.end]
        assert block.parameters is not None, "it is a function"
        listed = split_list(code, *block.parameters)
        parameters = [_PARAMETER.search(code[slice(*span)]) for span in listed]
        scope = max(enclosing, key=lambda struct: struct.span.start).name if enclosing else ""
        yield Function(
            name=block.name,
            scope=scope,
            returns=name,
            optional=optional is not None,
            parameters=tuple(match[1].decode() for match in parameters if match),
            parameter_list=block.parameters,
            span=block.span,
            body=block.body,
            helps=not scope and _makes_part(block, name, parts),
        )


def _makes_part(block: Block, returns: str, parts: Collection[str]) -> bool:
    """Tells whether a free function with a deduced type only makes a part of another result.

    `tuned_vectorized_policy` of CUB 3.5 and 3.6 is one: its returns are not entries.
    """
    deduced = block.result in _DEDUCED_TYPES
    return deduced and returns in parts and not NAMED.search(block.name)


def result_of(code: bytes, block: Block) -> str:
    """Returns the result type of a function, as written or as deduced from its returns."""
    if block.result not in _DEDUCED_TYPES:
        return squeeze(block.result).rstrip("& ")
    returned = {match[1] for match in _RETURNED.finditer(code, *block.body)}
    return returned.pop().decode() if len(returned) == 1 else ""


def arch_of(function: Function, facts: Sequence[str]) -> str:
    """Returns the architecture of a return: the last one tested, or the function's.

    A return for any compute capability counts as one for the oldest architecture.
    """
    certain = (fact for fact in facts if "||" not in fact)
    matches = [match for fact in certain if (match := SINCE.match(fact))]
    if matches:
        return f"sm{capability_number(matches[-1][2], matches[-1][3])}"
    name_match = NAMED.search(function.name)
    return f"sm{name_match[1]}" if name_match else ladder()[0]


def find_blocks(code: bytes) -> Iterator[Block]:
    """Yields all blocks outside of functions, outermost first."""
    at = start = 0
    while match := _SCOPES_OPENS.search(code, at):
        at = match.end()
        if match[0] in b"([":
            close = closing_bracket(code, match.start())
            at = len(code) if close is None else close + 1
        elif match[0] != b"{":
            start = at
        else:
            close = closing_bracket(code, match.start())
            if close is None:
                return
            block = _block(code, start, match.start(), close)
            yield block
            if block.kind in {"scope", "record"}:
                start = at
            else:
                at = close + 1
                start = start if block.kind == "value" else at


def _block(code: bytes, start: int, opening: int, close: int) -> Block:
    if labels := _LABELS.match(code, start, opening):
        start = labels.end()
    head, body = trim(code, start, opening), Span(opening + 1, close)
    flat = flattened(code[slice(*head)])
    if _SCOPE.search(flat):
        return Block("scope", head, body)
    if b"=" in flat and b"operator" not in flat:
        return Block("value", head, body)
    if _ENUM.search(flat):
        return Block("other", head, body)
    for match in _FUNCTION.finditer(flat):
        if match["name"] not in _NOT_FUNCTION_NAMES:
            return _function(code, head, body, flat, match)
    if record := _RECORD.search(flat):
        plain = record["args"] is record["bases"] is None and b"::" not in record["name"]
        bases = Span(head.start + record.start("bases") + 1, head.end) if record["bases"] else None
        start = head.start + record.start()
        return Block("record", head, body, record["name"].decode(), plain, bases, start)
    return Block("other", head, body)


def _function(code: bytes, head: Span, body: Span, flat: bytes, match: re.Match[bytes]) -> Block:
    leading = flat[: match.start("name")]
    first_specifier = _CONSTEXPR_OR_CONST.search(leading)
    opening = head.start + match.start("opened")
    closing = closing_bracket(code, opening)
    assert closing is not None, "its brackets match"
    operator = match["name"].startswith(b"operator")
    return Block(
        kind="function",
        head=head,
        body=body,
        name=b"".join(match["name"].split()).decode() if operator else match["name"].decode(),
        start=head.start + (first_specifier.start() if first_specifier else 0),
        parameters=Span(opening + 1, closing),
        result=_SPECIFIERS.sub(b" ", match["result"] or leading).strip(),
    )


def arguments(code: bytes, value: Span) -> tuple[str, list[Span]] | None:
    """Parses `Name{a, b}`, `{a, b}` or `name(a, b)` into the name and the arguments."""
    text = code[slice(*value)]
    match = re.match(rb"([\w:]*)\s*([{(])", text)
    if match is None or text[-1:] != {b"{": b"}", b"(": b")"}[match[2]]:
        return None
    inner = trim(code, value.start + match.end(), value.end - 1)
    return squeeze(match[1]), split_list(code, inner.start, inner.end)


@dataclass(frozen=True, slots=True)
class Field:
    """A field, with nested fields if it is an aggregate."""

    name: str
    type: str
    fields: tuple["Field", ...] = ()


# Public aggregates that policy selectors return


def find_aggregates(headers: Mapping[str, bytes]) -> dict[str, Struct]:
    """Returns all structs of several headers, by name."""
    structs: dict[str, Struct] = {}
    for name, data in headers.items():
        structs |= HeaderCode(Text(name, data).code).structs
    return structs


def policy_structs(folder: Path) -> dict[str, Struct]:
    """Returns the structs of a folder of tuning headers, including headers without selectors."""
    return find_aggregates({path.name: read_bytes(path) for path in sorted(folder.glob("*.cuh"))})


def read_aggregate(structs: Mapping[str, Struct], name: str) -> tuple[Field, ...]:
    """Returns the fields of a policy, in order."""
    struct = structs.get(name)
    if struct is None or not struct.fields:
        raise InputError(
            f"the tree has no policy {name}", "Correct the selector in schemas/bindings."
        )
    return tuple(_fields(structs, struct))


def _fields(structs: Mapping[str, Struct], struct: Struct) -> Iterator[Field]:
    """Skips fields that are declared twice: a user's macro selects their values."""
    duplicates = {name for name in struct.fields if struct.fields.count(name) > 1}
    for name, type_name in struct.typed_fields:
        if name in duplicates:
            continue
        inner = structs.get(type_name)
        nested = tuple(_fields(structs, inner)) if inner and inner.fields else ()
        yield Field(name, type_name, nested)


def leaves(fields: tuple[Field, ...], parent: str = "") -> Iterator[tuple[str, str]]:
    """Yields the path and type of each value: `multi_tile.items_per_thread`, `int`."""
    for field in fields:
        path = f"{parent}{field.name}"
        if field.fields:
            yield from leaves(field.fields, f"{path}.")
        else:
            yield path, field.type


def returned(fields: Sequence[Field], values: Mapping[str, str], std: int, indent: int) -> str:
    """Writes `return {.threads_per_block = 512, …};` on as many lines as needed."""
    whole = Field("", "", tuple(fields))
    return "\n".join(_value_rows("return ", whole, values, std, indent, "", ";"))


def _value_rows(
    prefix: str,
    field: Field,
    values: Mapping[str, str],
    std: int,
    indent: int,
    parent: str,
    suffix: str,
) -> list[str]:
    """Writes a value on one line; an aggregate that is too long has each field on its own lines."""
    indentation, within = UNIT * indent, f"{parent}{field.name}." if field.name else ""
    line = f"{indentation}{prefix}{_inline(field, values, std, parent)}{suffix}"
    if len(line) <= WIDTH or not field.fields:
        return [line]
    rows = [f"{indentation}{prefix}{{"]
    for inner in field.fields:
        rows += _value_rows(_name(inner, std), inner, values, std, indent + 1, within, ",")
    return [*rows, f"{indentation}}}{suffix}"]


def _inline(field: Field, values: Mapping[str, str], std: int, parent: str) -> str:
    if field.name and not field.fields:
        return values[f"{parent}{field.name}"]
    within = f"{parent}{field.name}." if field.name else ""
    parts = (_name(inner, std) + _inline(inner, values, std, within) for inner in field.fields)
    return f"{{{', '.join(parts)}}}"


def _name(field: Field, std: int) -> str:
    """Returns the field's designator, or a comment before C++20."""
    return f".{field.name} = " if std >= 20 else f"/* {field.name} */ "


# Template arguments of policy selectors

# "typename AccumT", "__determinism_t Determinism = __determinism_t::__run_to_run"
_DECLARED = re.compile(r"(.*?)\s*\b(\w+)\s*(?:=\s*(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Argument:
    """A template argument of CUB's own selector, as a benchmark's workloads give it."""

    parameter: str
    """What CUB's header calls it."""
    kind: str
    """`typename`, or the type of the value as the header has it."""
    text: str
    """In terms of roles; CUB's default where the binding gives none."""

    @property
    def is_type(self) -> bool:
        """Whether it is a type rather than a value."""
        return self.kind in {"typename", "class"}


def template_arguments(code: bytes, header: str, selector: str) -> tuple[Argument, ...]:
    """Returns the arguments of `policy_selector_from_types<T*, OpT>`, if a header declares it."""
    name, _, given = selector.partition("<")
    name, listed = name.rpartition("::")[2], given.rpartition(">")[0].encode()
    texts = [listed[slice(*span)].decode() for span in split_list(listed, 0, len(listed))]
    heads = [block.head for block in find_blocks(code) if block.name == name and block.plain]
    declared = [
        span
        for head in heads[: len(texts)]
        for span in split_list(code, code.index(b"<", *head) + 1, code.rindex(b">", *head))
    ]
    arguments = []
    for number, span in enumerate(declared):
        match = _DECLARED.fullmatch(code[slice(*span)].decode())
        text = texts[number] if number < len(texts) else match and match[3]
        if match and text:
            arguments.append(Argument(match[2], match[1], " ".join(text.split())))
    if len(arguments) != len(declared) or (declared and len(texts) > len(declared)):
        raise InputError(
            f"{header}: {name} takes other template arguments than its binding gives",
            "Correct the selector in schemas/bindings.",
        )
    return tuple(arguments)


# "#  if _CCCL_CUDACC_BELOW(13, 4)"
_CONDITION = re.compile(rb"\s*#\s*(?:if|elif|ifdef|ifndef)\b(.*)", re.DOTALL)


def compiler_conditions(header: str, data: bytes) -> tuple[str, ...]:
    """Returns the preprocessor's conditions in functions: what these return depends on them."""
    text = Text(header, data)
    bodies = [block.body for block in find_blocks(text.code) if block.kind == "function"]
    return tuple(
        f"{header}:{text.line(span.start + 1)}: {squeeze(match[1])}"
        for span in text.directives
        if (match := _CONDITION.match(text.uncommented[slice(*span)].replace(b"\\\n", b" ")))
        and any(body.start < span.start < body.end for body in bodies)
    )
