"""Reads a header's families of struct templates, and its policy chains."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from policygen.headers.comments import Line, Notes, SourceFile, comment_lines, joined, read_notes
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.specializations.chains import find_chains
from policygen.headers.syntax import (
    Guard,
    check_families,
    closing_angle,
    closing_bracket,
    find_members,
    member_values,
    parse_with_tree_sitter,
    split_list,
    trim,
)
from policygen.headers.text import Text, squeeze
from policygen.model.records import Span
from policygen.model.tuning import Entry, EntryKind, Family, Member, PolicyChain, TemplateParameter

# "struct sm90_tuning", "struct smXX_tuning", "struct sm_90"; not "struct small_buffer_policy"
_STRUCT = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)")
# The same in a comment, but as code rather than prose
_COMMENTED_DECLARATION = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)\s*[<{;:]")
_QUICK_FILTER = re.compile(rb"struct\s+sm(?![a-z])|[Cc]hained_?[Pp]olicy\b|class\s+sm\d")
_ARCH = re.compile(r"sm(\d+)_")


def read_families(
    source: SourceFile, header: str
) -> tuple[tuple[Family, ...], tuple[PolicyChain, ...]]:
    """Returns the entries by family, and the chains whose policies read them."""
    text = source.text
    declared = HeaderCode(text.code)
    live, disabled = read_entries(source)
    aggregates = _aggregates(declared)
    _check_all_is_read(text, live, aggregates)
    families = _families(text, declared, header, live + disabled)
    if not families:
        _check_no_families(text, aggregates)
    return families, find_chains(text, declared, header)


def holds_tunings(data: bytes) -> bool:
    """Tells whether a header may hold a family or a policy chain."""
    return _QUICK_FILTER.search(data) is not None


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


DeclaredEntry = tuple[Declaration, Entry]
"""An entry and the declaration that it was read from."""


def _aggregates(declared: HeaderCode) -> set[int]:
    """Returns the offset of the name of each `smNN_*` struct with fields that is not a template."""
    return {
        declared.code.rindex(name.encode(), struct.span.start, struct.body.start)
        for name, struct in declared.structs.items()
        if struct.fields and _ARCH.match(name)
    }


def _check_all_is_read(text: Text, live: list[DeclaredEntry], aggregates: set[int]) -> None:
    """Raises an error at a template that only tree-sitter or a more lenient pattern sees."""
    names = {declaration.name_span.start for declaration, _ in live} | aggregates
    check_families(text, parse_with_tree_sitter(text.data).families, names)
    check_families(text, find_names(text.code), names)
    for directive in text.directives:
        for span in find_names(text.uncommented, directive.start, directive.end):
            raise text.error(
                span.start,
                "a macro declares a tuning; policygen does not expand it",
                width=span.end - span.start,
                remedy="Write the entries out, so that results can change them one by one.",
            )
    if text.code.count(b"CUB_NAMESPACE_BEGIN") > text.code.count(b"CUB_NAMESPACE_END"):
        raise text.error(len(text.data), "expected '}'")


def _check_no_families(text: Text, aggregates: set[int]) -> None:
    """Raises an error if a header without families names an `smNN_…` that is not a plain struct."""
    for match in (*_STRUCT.finditer(text.code), *_COMMENTED_DECLARATION.finditer(text.data)):
        if match.start(1) not in aggregates:
            raise text.error(
                match.start(),
                "no tuning family recognized, although the header contains 'struct sm'",
                width=match.end(1) - match.start(),
                remedy="A family is a class template named smNN_…, for example sm90_tuning.",
            )


def _families(
    text: Text, declared: HeaderCode, header: str, entries: list[DeclaredEntry]
) -> tuple[Family, ...]:
    """Groups entries by namespace and name, in header order."""
    groups: dict[tuple[str, str], list[DeclaredEntry]] = {}
    for declaration, entry in sorted(entries, key=lambda pair: pair[1].span.start):
        key = (declared.namespace_at(declaration.name_span.start), declaration.name)
        groups.setdefault(key, []).append((declaration, entry))
    return tuple(
        Family(
            name=name,
            arch=name.partition("_")[0],
            header=header,
            namespace=namespace,
            parameters=_parameters(text, members),
            entries=tuple(entry for _, entry in members),
        )
        for (namespace, name), members in groups.items()
    )


def _parameters(text: Text, entries: list[DeclaredEntry]) -> tuple[TemplateParameter, ...]:
    """Returns the parameters of a family's primary template, if it is there."""
    primary = next((own for own, e in entries if e.kind == "primary" and not e.disabled), None)
    return template_parameters(text, primary.parameters_span) if primary else ()


# "struct sm90_tuning", "struct alignas(8) sm100_small_key_tuning", "class CUB_VISIBLE sm80_tuning"
_NAME = re.compile(
    rb"(?:struct(?<=\bstruct)|class(?<=\bclass))\s+"
    rb"(?:\[\[[^\]]*\]\]\s*|(?!sm\d)[A-Za-z_]\w*+(?:\s*+\([^()]*\)\s*+|\s++))*(sm(\d{2,3})_\w+)\s*"
)
_TEMPLATE = re.compile(rb"\btemplate\s*<")
# Attributes, a macro or a constraint may stand between `template <…>` and `struct`.
_BETWEEN = re.compile(
    rb"\s*+(?:[A-Z_][A-Z_0-9]*+(?:\s*+\([^()]*+\))?\s*+)*(?:requires\b.*)?", re.DOTALL
)
# Matches only declarations; not "friend struct sm90_x<T>"
_DECLARES = re.compile(
    rb"(?:struct(?<=\bstruct)|class(?<=\bclass))\b[^;{}<>=:,]*?\b(sm\d{2,3}_\w+)\s*(?:[<{]|:(?!:))"
)
_ONLY_NAMES = re.compile(rb"\bfriend\s*\Z")
_STATEMENT_END = (b";", b"{", b"}")
_HEAD_END = re.compile(rb"[{;]")


# Declarations of `smNN_*` templates, with the spans of their parts


def find_declarations(
    code: bytes, start: int = 0, end: int | None = None, *, names: re.Pattern[bytes] = _NAME
) -> Iterator[Declaration]:
    """Yields the declarations of `smNN_*` class templates in a range of code, in order.

    Other names can be found by a pattern whose first group is the name.
    """
    offset = start
    limit = len(code) if end is None else end
    while match := names.search(code, offset, limit):
        declaration = _read(code, match, offset, limit)
        if declaration is not None:
            yield declaration
        offset = match.end() if declaration is None else max(match.end(), declaration.span.end)


def _read(code: bytes, name: re.Match[bytes], floor: int, limit: int) -> Declaration | None:
    head = template_head(code, name.start(), floor)
    if head is None:
        return None
    start, parameters = head
    head_end, args = name.end(), None
    if code[head_end : head_end + 1] == b"<":
        close = closing_angle(code, head_end)
        if close is None or close >= limit:
            return None
        args, head_end = Span(head_end + 1, close), close + 1
    tail = _tail(code, head_end, limit)
    if tail is None:
        return None
    inherits, body, end = tail
    return Declaration(
        name=name[1].decode(),
        name_span=Span(*name.span(1)),
        span=Span(start, end),
        parameters_span=parameters,
        args_span=args,
        inherits_span=inherits,
        body_span=body,
    )


def template_head(code: bytes, struct: int, floor: int) -> tuple[int, Span] | None:
    """Returns the start of the `template <…>` before a `struct`, and its parameter list."""
    earliest = max(floor, *(code.rfind(stop, floor, struct) + 1 for stop in _STATEMENT_END))
    for match in _TEMPLATE.finditer(code, earliest, struct):
        close = closing_angle(code, match.end() - 1)
        if close is not None and close < struct and _BETWEEN.fullmatch(code, close + 1, struct):
            return match.start(), Span(match.end(), close)
    return None


def _tail(code: bytes, start: int, limit: int) -> tuple[Span | None, Span | None, int] | None:
    """Returns bases, body and end of a declaration whose name and arguments end at `start`."""
    head = _HEAD_END.search(code, start, limit)
    if head is None:
        return None
    inherits = None
    between = trim(code, start, head.start())
    if code[between.start : between.start + 1] == b":":
        inherits = trim(code, between.start + 1, between.end)
    elif code[slice(*between)] not in {b"", b"final"}:
        return None
    if head.group() == b";":
        return inherits, None, head.end()
    close = closing_bracket(code, head.start())
    if close is None or close >= limit:
        return None
    semicolon = re.compile(rb"\s*;").match(code, close + 1, limit)
    end = close + 1 if semicolon is None else semicolon.end()
    return inherits, Span(head.end(), close), end


def find_names(code: bytes, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yields the names of declarations, by a second and more lenient pattern."""
    for match in _DECLARES.finditer(code, start, len(code) if end is None else end):
        if not _ONLY_NAMES.search(code, max(0, match.start() - 80), match.start()):
            yield Span(*match.span(1))


# "primitive_accum PrimitiveAccumulator = is_primitive_accum<AccumT>()", "class T", "size_t N"
_PARAMETER = re.compile(r"(?P<type>.*?)\s*\b(?P<name>\w+)?\s*(?:=\s*(?P<default>.*))?", re.DOTALL)
_TYPE_KEYS = {"class", "typename", "class...", "typename..."}
_COMMENT_MARK = re.compile(rb"(?m)^([ \t]*)//")
_STARRED = re.compile(rb"(?m)^([ \t]*)\*(?=[ \t\r\n])")
_OUTER_MARKS = re.compile(rb"/\*[*!]*|\*/")
_COMMENTED_STRUCT = re.compile(rb"\bstruct\s+sm\d{2,3}_\w+")


# Entries, live and commented out


def read_entries(source: SourceFile) -> tuple[list[DeclaredEntry], list[DeclaredEntry]]:
    """Returns the declarations that a compiler sees, and those in comments."""
    disabled = list(_disabled_entries(source))
    code = source.text.code
    live: list[DeclaredEntry] = []
    floor = 0
    for declaration in find_declarations(code):
        span = declaration.span
        ends = (entry.span.end for _, entry in disabled if entry.span.end <= span.start)
        lines, above = _notes_around(source, span, max([floor, *ends]))
        views = (code, source.text.uncommented)
        live.append(_entry(source, views, declaration, lines, above=above, disabled=False))
        floor = span.end
    return live, disabled


def _disabled_entries(source: SourceFile) -> Iterator[DeclaredEntry]:
    for group in source.comments.groups():
        region = Span(group[0].start, group[-1].end)
        if b"struct" not in source.text.data[slice(*region)]:
            continue
        if _COMMENTED_STRUCT.search(_code_of_comment(source.text.data[slice(*region)])):
            yield from _in_comment(source, region)


def _in_comment(source: SourceFile, region: Span) -> Iterator[DeclaredEntry]:
    """Yields the entries of a commented region, each with the preceding text that explains it."""
    data = source.text.data
    commented = Text(source.text.path, _code_of_comment(data[slice(*region)]))
    code = b" " * region.start + commented.code
    floor = 0
    for declaration in find_declarations(code, region.start):
        span = declaration.span
        above = _comments_above(source, data.rfind(b"\n", 0, span.start) + 1, floor)
        comments = [*above, *source.comments.inside(span)]
        lines = [line for comment in comments for line in comment_lines(data, comment)]
        entry_lines = [
            line
            for line in lines
            if line.span.end <= span.start or (line.nested and line.span.start < span.end)
        ]
        views = (code, b" " * region.start + commented.uncommented)
        yield _entry(source, views, declaration, entry_lines, above=None, disabled=True)
        floor = span.end


def _code_of_comment(comment: bytes) -> bytes:
    """Blanks the comment marks, at equal offsets; comments inside the comment stay comments."""
    lines = _COMMENT_MARK.sub(lambda match: match[1] + b"  ", comment)
    if comment.startswith(b"/*"):
        lines = _STARRED.sub(rb"\1 ", lines)
    return _OUTER_MARKS.sub(lambda match: b" " * len(match[0]), lines)


def _comments_above(source: SourceFile, offset: int, floor: int) -> list[Span]:
    """Returns the comments directly above an offset, or above the `#if` directly above it."""
    guard = source.guards.at(offset).span
    if comments := source.comments.above(offset, floor):
        return comments
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
    return lines, joined(above)


def _entry(
    source: SourceFile,
    views: tuple[bytes, bytes],
    declaration: Declaration,
    lines: list[Line],
    *,
    above: Span | None,
    disabled: bool,
) -> DeclaredEntry:
    data, (code, uncommented) = source.text.data, views
    body = declaration.body_span
    members = tuple(find_members(source.text, code, body)) if body else ()
    guard = source.guards.at(declaration.span.start)
    _check_conditions(source, guard, members)
    notes = _read_notes(lines, declaration, members, disabled=disabled)
    arg_spans = tuple(split_list(code, *declaration.args_span)) if declaration.args_span else ()
    bases = declaration.inherits_span
    parameter_spans = split_list(code, *declaration.parameters_span)
    entry = Entry(
        kind=_kind(code, declaration),
        args=tuple(squeeze(uncommented, span) for span in arg_spans),
        values=member_values(members),
        inherits=bases and squeeze(uncommented, bases),
        guard=guard.spelling,
        disabled=disabled or guard.never,
        variant=notes.variant,
        scores=notes.scores,
        line=source.text.line(declaration.name_span.start),
        remarks=notes.remarks,
        labels=notes.labels,
        members=members,
        template_parameters=tuple(squeeze(code, span) for span in parameter_spans),
        layout="block" if b"\n" in data[slice(*declaration.span)] else "line",
        format_off=source.format_is_off(declaration.span.start),
        span=declaration.span,
        args_span=declaration.args_span,
        arg_spans=arg_spans,
        inherits_span=bases,
        body_span=body,
        comment_span=above,
        guard_span=guard.span,
    )
    return declaration, entry


def _check_conditions(source: SourceFile, guard: Guard, members: tuple[Member, ...]) -> None:
    """Rejects `#if` around a member: an entry must have one set of values."""
    for member in members:
        if source.guards.at(member.span.start).conditions != guard.conditions:
            raise source.text.error(
                member.span.start,
                f"{member.name} depends on an #if inside its entry",
                remedy="Put the #if around complete entries.",
            )


def _read_notes(
    lines: list[Line], declaration: Declaration, members: tuple[Member, ...], *, disabled: bool
) -> Notes:
    """Reads the notes; a label in a body that only inherits belongs to commented-out values."""
    body = declaration.body_span
    lives = disabled or bool(members) or declaration.inherits_span is None
    inside = [line for line in lines if body and body.start <= line.span.start < body.end]
    outside = [line for line in lines if line not in inside]
    if disabled:
        # Inside a comment, every comment mark in the code is a second one.
        inside = [Line(line.text, line.span, nested=False) for line in inside]
    around, within = read_notes(outside, lives=True), read_notes(inside, lives=lives)
    return Notes(around.labels + within.labels, around.remarks + within.remarks)


def _kind(code: bytes, declaration: Declaration) -> EntryKind:
    if declaration.args_span is None:
        return "primary"
    span = declaration.parameters_span
    return "partial" if code[slice(*span)].strip() else "explicit"


def template_parameters(text: Text, span: Span) -> tuple[TemplateParameter, ...]:
    """Returns the parameters of a primary template, with kinds and defaults."""
    parts = split_list(text.code, *span)
    return tuple(_parameter(text.code, part, squeeze(text.data, part)) for part in parts)


def _parameter(code: bytes, span: Span, spelling: str) -> TemplateParameter:
    match = _PARAMETER.fullmatch(squeeze(code, span))
    type_name, name, default = (
        match.group("type", "name", "default") if match else (spelling, "", None)
    )
    if not type_name or name in _TYPE_KEYS:
        type_name, name = name or "", ""
    kind: Literal["type", "value"] = "type" if type_name in _TYPE_KEYS else "value"
    return TemplateParameter(
        kind="template" if type_name.startswith("template") else kind,
        type=type_name,
        name=name or "",
        default=default,
        spelling=spelling,
        span=span,
    )
