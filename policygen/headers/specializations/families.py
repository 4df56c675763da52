"""Families of struct templates and policy chains of a header."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.headers import parsers
from policygen.headers.comments import Line, Notes, SourceFile, comment_lines, read_notes
from policygen.headers.parsers import check_families, look
from policygen.headers.specializations.chains import find_chains
from policygen.headers.syntax import (
    Guard,
    closing_angle,
    closing_brace,
    find_members,
    is_literal,
    is_numeric,
    member_values,
    split_list,
    trim,
)
from policygen.headers.text import Text, squeeze
from policygen.model.records import Span
from policygen.model.tuning import (
    Entry,
    EntryKind,
    Family,
    Label,
    Member,
    PolicyChain,
    TemplateParameter,
)

# "struct sm90_tuning", "struct smXX_tuning", "struct sm_90"; not "struct small_buffer_policy"
_SAYS_STRUCT = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)")
# The same in a comment, but as code and not as prose.
_SAYS_DECLARATION = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)\s*[<{;:]")
_WORTH_PARSING = re.compile(rb"struct\s+sm(?![a-z])|[Cc]hained_?[Pp]olicy\b|class\s+sm\d")
_ARCH = re.compile(r"sm(\d+)_")


def read_families(
    source: SourceFile, header: str, neighbours: parsers.Neighbours
) -> tuple[tuple[Family, ...], tuple[PolicyChain, ...]]:
    """The entries of a header by family, and the chains whose policies read them."""
    text = source.text
    live, disabled = read_entries(source)
    facts = parsers.parse(text, neighbours, _uncomputed(live))
    _cross_check(text, live, facts)
    found = [
        FoundEntry(f.declaration, with_constants(f.entry, text.data, facts.constants)) for f in live
    ]
    families = _families(text, header, facts, found + disabled)
    if not families:
        _check_nothing_is_meant(text, facts)
    return families, find_chains(text, header, facts)


def holds_tunings(data: bytes) -> bool:
    """Whether there can be a family or a policy chain in a header."""
    return _WORTH_PARSING.search(data) is not None


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


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry together with the declaration that it was read from."""

    declaration: Declaration
    entry: Entry


def _uncomputed(live: list[FoundEntry]) -> list[Span]:
    """The entries with a number that its text does not spell out."""
    return [
        found.entry.span
        for found in live
        if any(m.value is None and is_numeric(m.type) for m in found.entry.members)
    ]


def _cross_check(text: Text, live: list[FoundEntry], facts: parsers.Facts) -> None:
    """Two readers that know nothing of each other must see the same templates.

    An entry that clang loses, because it cannot know a name in it, is kept. One that only clang
    sees must not pass silently.
    """
    names = {found.declaration.name_span.start for found in live}
    check_families(text, look(text.data), names | facts.aggregates)
    spans = [Span(at, at + len(name)) for at, name in facts.templates.items()]
    for span in sorted([*spans, *find_names(text.code)]):
        if span.start not in names and span.start not in facts.aggregates:
            name = text.data[span.start : span.end].decode()
            raise text.error(span.start, f"{name}: cannot read this declaration", width=len(name))
    for directive in text.directives:
        for span in find_names(text.uncommented, directive.start, directive.end):
            raise text.error(
                span.start,
                "a macro declares a tuning: cannot read what it expands to",
                width=span.end - span.start,
                remedy="Write the entries out: a result must be able to change one of them.",
            )
    if facts.unclosed is not None:
        raise text.error(len(text.data), facts.unclosed)


def _check_nothing_is_meant(text: Text, facts: parsers.Facts) -> None:
    """Silence must not read as empty: what is called `smNN_…` is a tuning, or carries values."""
    for match in (*_SAYS_STRUCT.finditer(text.code), *_SAYS_DECLARATION.finditer(text.data)):
        if match.start(1) not in facts.aggregates:
            raise text.error(
                match.start(),
                "no tuning family recognised, although the header says 'struct sm'",
                width=match.end(1) - match.start(),
                remedy="A family is a class template called smNN_…, such as sm90_tuning.",
            )


def _families(
    text: Text, header: str, facts: parsers.Facts, found: list[FoundEntry]
) -> tuple[Family, ...]:
    """Entries by namespace and name, in the order in which the header declares them."""
    groups: dict[tuple[str, str], list[FoundEntry]] = {}
    for item in sorted(found, key=lambda f: f.entry.span.start):
        key = (facts.namespace(item.declaration.name_span.start), item.declaration.name)
        groups.setdefault(key, []).append(item)
    return tuple(
        _family(text, header, namespace, name, items) for (namespace, name), items in groups.items()
    )


def _family(text: Text, header: str, namespace: str, name: str, items: list[FoundEntry]) -> Family:
    primary = next((i for i in items if i.entry.kind == "primary" and not i.entry.disabled), None)
    parameters = (
        template_parameters(text.data, text.code, primary.declaration.parameters_span)
        if primary
        else ()
    )
    arch = _ARCH.match(name)
    assert arch is not None
    return Family(
        name=name,
        arch=f"sm{arch[1]}",
        header=header,
        namespace=namespace,
        parameters=parameters,
        entries=tuple(item.entry for item in items),
    )


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


# Finds the declarations of `smNN_*` templates in code, with the span of each of their parts.


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


# "primitive_accum PrimitiveAccumulator = is_primitive_accum<AccumT>()", "class T", "size_t N"
_PARAMETER = re.compile(r"(?P<type>.*?)\s*\b(?P<name>\w+)?\s*(?:=\s*(?P<default>.*))?", re.DOTALL)
_TYPE_KEYS = {"class", "typename", "class...", "typename..."}
_COMMENT_MARK = re.compile(rb"(?m)^([ \t]*)//")
_STARRED = re.compile(rb"(?m)^([ \t]*)\*(?=[ \t\r\n])")
_OUTER_MARKS = re.compile(rb"/\*[*!]*|\*/")
_ENTRIES_SAYS_STRUCT = re.compile(rb"\bstruct\s+sm\d{2,3}_\w+")


# One declaration, live or commented out, as an entry of its family.


def read_entries(source: SourceFile) -> tuple[list[FoundEntry], list[FoundEntry]]:
    """The declarations that a compiler sees, and those inside comments."""
    disabled = list(_disabled_entries(source))
    code = source.text.code
    live: list[FoundEntry] = []
    floor = 0
    for declaration in find_declarations(code):
        span = declaration.span
        lines, above = _notes_around(source, span, max(floor, _last_end(disabled, span.start)))
        views = (code, source.text.uncommented)
        live.append(_entry(source, views, declaration, lines, above=above, disabled=False))
        floor = span.end
    return live, disabled


def _last_end(found: list[FoundEntry], offset: int) -> int:
    return max((f.entry.span.end for f in found if f.entry.span.end <= offset), default=0)


def _disabled_entries(source: SourceFile) -> Iterator[FoundEntry]:
    for group in source.comments.groups():
        region = Span(group[0].start, group[-1].end)
        if b"struct" not in source.text.data[region.start : region.end]:
            continue
        if _ENTRIES_SAYS_STRUCT.search(_uncomment(source.text.data[region.start : region.end])):
            yield from _in_comment(source, region)


def _in_comment(source: SourceFile, region: Span) -> Iterator[FoundEntry]:
    """Entries of one commented region, each with the text before it, which says why."""
    data = source.text.data
    inner = Text(source.text.path, _uncomment(data[region.start : region.end]))
    code = b" " * region.start + inner.code
    floor = 0
    for declaration in find_declarations(code, region.start):
        span = declaration.span
        above = _comments_above(source, data.rfind(b"\n", 0, span.start) + 1, floor)
        comments = [*above, *source.comments.inside(span)]
        lines = [line for comment in comments for line in comment_lines(data, comment)]
        mine = [
            n for n in lines if n.span.end <= span.start or (n.nested and n.span.start < span.end)
        ]
        views = (code, b" " * region.start + inner.uncommented)
        yield _entry(source, views, declaration, mine, above=None, disabled=True)
        floor = span.end


def _uncomment(comment: bytes) -> bytes:
    """The code that was commented out, at the same offsets; comments inside it stay comments."""
    lines = _COMMENT_MARK.sub(lambda m: m[1] + b"  ", comment)
    if comment.startswith(b"/*"):
        lines = _STARRED.sub(rb"\1 ", lines)
    return _OUTER_MARKS.sub(lambda m: b" " * len(m[0]), lines)


def _comments_above(source: SourceFile, offset: int, floor: int) -> list[Span]:
    """The comments directly above a place, or above the `#if` line that is directly above it."""
    guard = source.guards.at(offset).span
    if found := source.comments.above(offset, floor):
        return found
    if guard is None or source.text.data[guard.end : offset].strip(b" \t\r") != b"\n":
        return []
    return source.comments.above(guard.start, floor)


def _notes_around(source: SourceFile, span: Span, floor: int) -> tuple[list[Line], Span | None]:
    above = source.comments.above(span.start, floor)
    comments = [
        *_comments_above(source, span.start, floor),
        *source.comments.inside(span),
        *source.comments.trailing(span.end),
    ]
    lines = [line for comment in comments for line in comment_lines(source.text.data, comment)]
    return lines, Span(above[0].start, above[-1].end) if above else None


def _entry(
    source: SourceFile,
    views: tuple[bytes, bytes],
    declaration: Declaration,
    lines: list[Line],
    *,
    above: Span | None,
    disabled: bool,
) -> FoundEntry:
    data, (code, spelled) = source.text.data, views
    members = (
        tuple(find_members(source.text, code, declaration.body_span))
        if declaration.body_span
        else ()
    )
    guard = source.guards.at(declaration.span.start)
    _check_conditions(source, guard, members)
    notes = _read_notes(lines, declaration, members, disabled=disabled)
    label = next((found for found in notes.labels if not found.rejected), None)
    arg_spans = tuple(list_parts(code, declaration.args_span)) if declaration.args_span else ()
    entry = Entry(
        kind=_kind(code, declaration),
        args=tuple(squeeze(spelled[s.start : s.end]) for s in arg_spans),
        values=member_values(members),
        inherits=_spelling(spelled, declaration.inherits_span),
        guard=guard.spelling,
        disabled=disabled or guard.never,
        variant=None if label is None else label.variant,
        scores=None if label is None or not label.scores else label.scores,
        line=source.text.line(declaration.name_span.start),
        remarks=notes.remarks,
        labels=notes.labels,
        members=members,
        template_parameters=tuple(
            squeeze(code[s.start : s.end]) for s in list_parts(code, declaration.parameters_span)
        ),
        layout="block" if b"\n" in data[declaration.span.start : declaration.span.end] else "line",
        format_off=source.format_is_off(declaration.span.start),
        span=declaration.span,
        args_span=declaration.args_span,
        arg_spans=arg_spans,
        inherits_span=declaration.inherits_span,
        body_span=declaration.body_span,
        comment_span=above,
        guard_span=guard.span,
    )
    return FoundEntry(declaration, entry)


def _check_conditions(source: SourceFile, guard: Guard, members: tuple[Member, ...]) -> None:
    """An entry has one set of values: `#if` around a member would give it two."""
    for member in members:
        if source.guards.at(member.span.start).conditions != guard.conditions:
            raise source.text.error(
                member.span.start,
                f"{member.name} depends on an #if inside its entry",
                remedy="Put the #if around whole entries.",
            )


def _read_notes(
    lines: list[Line], declaration: Declaration, members: tuple[Member, ...], *, disabled: bool
) -> Notes:
    """A label inside a body that only inherits belongs to values that are commented out."""
    body = declaration.body_span
    lives = disabled or bool(members) or declaration.inherits_span is None
    labels: tuple[Label, ...] = ()
    remarks: tuple[str, ...] = ()
    inside = [line for line in lines if body and body.start <= line.span.start < body.end]
    outside = [line for line in lines if line not in inside]
    if disabled:
        # Inside a comment every mark of a comment within the code is a second one.
        inside = [Line(line.text, line.span, nested=False) for line in inside]
    for part, counts in ((outside, True), (inside, lives)):
        notes = read_notes(part, lives=counts)
        labels += notes.labels
        remarks += notes.remarks
    return Notes(labels, remarks)


def _kind(code: bytes, declaration: Declaration) -> EntryKind:
    if declaration.args_span is None:
        return "primary"
    span = declaration.parameters_span
    return "partial" if code[span.start : span.end].strip() else "explicit"


def _spelling(code: bytes, span: Span | None) -> str | None:
    return None if span is None else squeeze(code[span.start : span.end])


def with_constants(entry: Entry, data: bytes, constants: Mapping[int, int]) -> Entry:
    """The entry with the numbers that clang computed for members such as `1 << 2`."""
    members = tuple(_with_constant(m, data, constants) for m in entry.members)
    if members == entry.members:
        return entry
    return entry.model_copy(update={"members": members, "values": member_values(members)})


def _with_constant(member: Member, data: bytes, constants: Mapping[int, int]) -> Member:
    if member.value is not None or not is_numeric(member.type) or is_literal(member.spelling):
        return member  # of a number that is too wide, clang would keep the lowest bits
    at = data.rfind(member.name.encode(), member.span.start, member.value_span.start)
    number = constants.get(at)
    if number is None:
        return member
    return member.model_copy(update={"value": bool(number) if member.type == "bool" else number})


def template_parameters(data: bytes, code: bytes, span: Span) -> tuple[TemplateParameter, ...]:
    """The parameters of a primary template, with kinds and defaults."""
    return tuple(
        _parameter(code, part, squeeze(data[part.start : part.end]))
        for part in list_parts(code, span)
    )


def _parameter(code: bytes, span: Span, spelling: str) -> TemplateParameter:
    match = _PARAMETER.fullmatch(squeeze(code[span.start : span.end]))
    kind, name, default = match.group("type", "name", "default") if match else (spelling, "", None)
    if not kind:
        kind, name = name or "", ""
    if name in _TYPE_KEYS:
        kind, name = name or "", ""
    return TemplateParameter(
        kind="template"
        if kind.startswith("template")
        else "type"
        if kind in _TYPE_KEYS
        else "value",
        type=kind,
        name=name or "",
        default=default,
        spelling=spelling,
        span=span,
    )
