"""Guarded returns as entries: what must hold, and which values are returned."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.archs import ladder
from policygen.dialects.selectors.functions import (
    NAMED,
    Function,
    Struct,
    arguments,
    find_namespaces,
    functions_of,
    result_of,
    structs_of,
)
from policygen.dialects.selectors.scopes import Block, find_blocks
from policygen.dialects.selectors.statements import (
    Body,
    Clauses,
    Return,
    UnreadableError,
    conditions_of,
    read_body,
)
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family, Member, Value
from policygen.source.benchmarks.expression import evaluate
from policygen.source.comments import Comments, Line, comment_lines, read_notes
from policygen.source.count import check_returns, look
from policygen.source.file import SourceFile
from policygen.source.members import literal, member_values
from policygen.source.text import Text, squeeze

# "cc >= ::cuda::compute_capability{10, 7}"
_SINCE = re.compile(r"cc\s*>=?\s*(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
# "if (key_size == 16) // same as previous tuning"
COMMENTED = re.compile(r"(?:else\s+)?if\s*\((.*?)\)\s*(?:return\b\s*(.*?);)?\s*(//.*)?$")
# "int", "unsigned long", "bool": no policy, whatever decides it
_SCALAR = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|void|double|float|size_t|::|std|cuda)\s*)+"
)
_SELECTS = re.compile(rb"\bcompute_capability\b")


def holds_selectors(data: bytes) -> bool:
    """Whether there can be a policy selector in a header."""
    return _SELECTS.search(data) is not None


@dataclass(frozen=True, slots=True)
class _Branches:
    source: SourceFile
    structs: Mapping[str, Struct]
    functions: Mapping[str, Function]

    @property
    def text(self) -> Text:
        return self.source.text


def read_selectors(source: SourceFile, header: str) -> tuple[Family, ...]:
    """The returns of each function that decides something, by architecture."""
    code = source.text.code
    blocks = list(find_blocks(code))
    structs = structs_of(code, blocks)
    functions = list(functions_of(code, blocks, structs))
    bodies = [block.body for block in blocks if block.kind == "function"]
    check_returns(source.text, look(source.text.data), bodies)
    _check_results(source.text, blocks, functions)
    namespaces = find_namespaces(code)
    known = _Branches(source, structs, {f.name: f for f in functions})
    families: list[Family] = []
    for function in functions:
        if function.helps:
            continue
        try:
            body = read_body(code, function.body)
        except UnreadableError as error:
            raise source.text.error(
                error.offset, f"{function.label}: cannot read this statement"
            ) from error
        entries = list(_entries(known, function, body))
        if not any(entry.args for _, entry in entries):
            continue  # it decides nothing
        if (unread := structs[function.returns].unread) is not None:
            raise source.text.error(unread, f"{function.returns}: cannot read this field")
        at = function.span.start
        space = "::".join(name for span, name in namespaces if span.start <= at < span.end)
        families += [
            Family(
                name=function.label,
                arch=arch,
                header=header,
                namespace=space,
                parameters=(),
                entries=tuple(entry for own, entry in entries if own == arch),
            )
            for arch in dict.fromkeys(arch for arch, _ in entries)
        ]
    return tuple(families)


def _check_results(
    text: Text,
    blocks: Sequence[Block],
    functions: Sequence[Function],
) -> None:
    """Raises at a function that asks for the architecture, and returns what is not known here."""
    read = {function.body for function in functions}
    for block in blocks:
        if block.kind != "function" or block.body in read or block.parameters is None:
            continue
        result = result_of(text.code, block)
        asks = _SELECTS.search(text.code, *block.parameters) or NAMED.search(block.name)
        if asks and not _SCALAR.fullmatch(result):
            named = f"{result}, which is no struct of this header"
            returned = named if result else "what it deduces"
            raise text.error(
                block.start,
                f"{block.name}: cannot read the policies of a function that returns {returned}",
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


def _entries(known: _Branches, function: Function, body: Body) -> Iterator[tuple[str, Entry]]:
    found = [
        (arch_of(function, one.conditions), _entry(known, function, one)) for one in body.returns
    ]
    found += _disabled(known, function, body)
    yield from sorted(found, key=lambda pair: pair[1].span.start)


def arch_of(function: Function, conditions: tuple[str, ...]) -> str:
    """The architecture that a return is for: the last that is asked for, or the function's.

    What holds for any compute capability counts as of the oldest.
    """
    facts = [text for text in conjuncts(conditions) if "||" not in text]
    since = [match for text in facts if (match := _SINCE.match(text))]
    if since:
        return f"sm{since[-1][1]}{since[-1][2]}"
    named = NAMED.search(function.name)
    return f"sm{named[1]}" if named else ladder()[0]


def _entry(known: _Branches, function: Function, one: Return) -> Entry:
    text, comments = known.text, known.source.comments
    members, inherits = _members(known, function, one.value)
    lines = list(_lines(text, comments, one))
    notes = read_notes(lines, lives=True)
    label = next((found for found in notes.labels if not found.rejected), None)
    above = comments.above(one.statement)
    guard = known.source.guards.at(one.span.start)
    return Entry(
        kind="branch",
        args=tuple(conjuncts(one.conditions)),
        values=member_values(members),
        inherits=inherits,
        guard=guard.spelling,
        disabled=guard.never,
        variant=label.variant if label else None,
        scores=label.scores or None if label else None,
        line=text.line(one.span.start),
        remarks=notes.remarks,
        labels=notes.labels,
        members=members,
        layout="block" if b"\n" in text.data[one.statement : one.span.end] else "line",
        format_off=known.source.format_is_off(one.span.start),
        span=Span(one.statement, one.span.end),
        inherits_span=one.value if inherits else None,
        body_span=one.value,
        comment_span=Span(above[0].start, above[-1].end) if above else None,
        guard_span=guard.span,
    )


def _lines(text: Text, comments: Comments, one: Return) -> Iterator[Line]:
    """What stands above the return, or above an `if` on the same line, and behind it."""
    around = [*comments.above(one.statement), *comments.inside(Span(one.statement, one.span.end))]
    for comment in [*around, *comments.trailing(one.span.end)]:
        for line in comment_lines(text.data, comment):
            if not COMMENTED.match(line.text):
                yield line


def facts_of(clauses: Clauses) -> list[str]:
    """What must hold inside of clauses, one fact each."""
    return list(conjuncts(conditions_of(clauses)))


def conjuncts(conditions: tuple[str, ...]) -> Iterator[str]:
    """What must hold, one fact each."""
    for text in conditions:
        depth, start = 0, 0
        for match in re.finditer(r"[({\[]|[)}\]]|&&|\|\|", text):
            if match[0] == "||" and depth == 0:
                start = -1
                break
            if match[0] == "&&" and depth == 0:
                yield text[start : match.start()].strip()
                start = match.end()
            elif match[0] in "({[":
                depth += 1
            elif match[0] in ")}]":
                depth -= 1
        yield text if start < 0 else text[start:].strip()


def _members(
    known: _Branches, function: Function, value: Span
) -> tuple[tuple[Member, ...], str | None]:
    """The values by name; what another function decides is inherited from it."""
    code = known.text.code
    given = arguments(code, value)
    spelling = squeeze(known.text.uncommented[value.start : value.end])
    if given is None:
        return (), None if spelling.endswith("nullopt") else spelling
    name, parts = given
    short = name.rpartition("::")[2]
    if short in known.functions and short not in known.structs:
        names = known.functions[short].parameters
    else:
        struct = known.structs.get(short or function.returns)
        names = struct.fields if struct else ()
    if not parts:
        return (), None
    members = tuple(_flat(known, names, parts))
    # `make_policy(*found, true)`: what is found has the numbers.
    if len(parts) > len(names) or not any(type(m.value) is int for m in members):
        return (), spelling
    return members, name if short in known.functions else None


def _flat(known: _Branches, names: tuple[str, ...], parts: list[Span]) -> Iterator[Member]:
    """The values of an aggregate, and of those within it: `lookback.items_per_thread`."""
    for name, part in zip(names, parts, strict=False):
        given = arguments(known.text.code, part)
        struct = known.structs.get(given[0].rpartition("::")[2]) if given and given[0] else None
        if given is None or struct is None or len(given[1]) > len(struct.fields):
            yield _member(known.text, name, part)
        else:
            inner = tuple(f"{name}.{field}" for field in struct.fields)
            yield from _flat(known, inner, given[1])


def _member(text: Text, name: str, part: Span) -> Member:
    spelling = squeeze(text.uncommented[part.start : part.end])
    return Member(
        name=name,
        kind="value",
        type="",
        spelling=spelling,
        value=_value(spelling),
        span=part,
        value_span=part,
    )


def _value(spelling: str) -> Value | None:
    """`104 - 1` as 103, `1 << 2` as 4, an enumerator by its name; a formula has no value."""
    number = evaluate(spelling, lambda _: None)
    if number is not None:
        return number
    found = literal("", spelling)
    return found if isinstance(found, bool) or re.fullmatch(r"[A-Z][A-Z0-9_]*", spelling) else None


def _disabled(known: _Branches, function: Function, body: Body) -> Iterator[tuple[str, Entry]]:
    """Conditions that are commented out: `// if (key_size == 16) // same as previous tuning`."""
    text = known.text
    remarks: list[str] = []
    last = None
    for comment in known.source.comments.inside(function.body):
        for line in comment_lines(text.data, comment):
            match = COMMENTED.match(line.text)
            number = text.line(line.span.start)
            if last != number - 1:
                remarks = []
            last = number
            if match is None:
                if line.text:
                    remarks.append(line.text)
                continue
            around = [s for s in body.scopes if s.span.start <= line.span.start < s.span.end]
            inner = max(around, key=lambda s: s.span.start)
            conditions = (*inner.conditions, match[1].strip())
            behind = (match[3] or "").lstrip("/ ").strip()
            yield (
                arch_of(function, conditions),
                Entry(
                    kind="branch",
                    args=tuple(conjuncts(conditions)),
                    values=_spelled(known, function, match[2]),
                    inherits=None,
                    guard=None,
                    disabled=True,
                    variant=None,
                    scores=None,
                    line=number,
                    remarks=tuple(word for word in (*remarks, behind) if word),
                    span=line.span,
                ),
            )
            remarks = []


def _spelled(known: _Branches, function: Function, value: str | None) -> dict[str, Value]:
    """The values of a return that is commented out, as far as they are constants."""
    data = (value or "").encode()
    given = arguments(data, Span(0, len(data))) if data else None
    if given is None:
        return {}
    struct = known.structs.get(given[0].rpartition("::")[2] or function.returns)
    parts = [data[part.start : part.end].decode() for part in given[1]]
    pairs = zip(struct.fields if struct else (), parts, strict=False)
    return {name: text if (found := _value(text)) is None else found for name, text in pairs}
