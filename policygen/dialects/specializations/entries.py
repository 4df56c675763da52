"""One declaration, live or commented out, as an entry of its family."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.dialects.specializations.declarations import (
    Declaration,
    find_declarations,
    list_parts,
)
from policygen.model.base import Span
from policygen.model.tuning import Entry, EntryKind, Label, Member, TemplateParameter
from policygen.source.comments import Line, Notes, comment_lines, read_notes
from policygen.source.file import SourceFile
from policygen.source.guards import Guard
from policygen.source.members import find_members, is_literal, is_numeric, member_values
from policygen.source.text import Text, squeeze

# "primitive_accum PrimitiveAccumulator = is_primitive_accum<AccumT>()", "class T", "size_t N"
_PARAMETER = re.compile(r"(?P<type>.*?)\s*\b(?P<name>\w+)?\s*(?:=\s*(?P<default>.*))?", re.DOTALL)
_TYPE_KEYS = {"class", "typename", "class...", "typename..."}
_COMMENT_MARK = re.compile(rb"(?m)^([ \t]*)//")
_STARRED = re.compile(rb"(?m)^([ \t]*)\*(?=[ \t\r\n])")
_OUTER_MARKS = re.compile(rb"/\*[*!]*|\*/")
_SAYS_STRUCT = re.compile(rb"\bstruct\s+sm\d{2,3}_\w+")


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry together with the declaration that it was read from."""

    declaration: Declaration
    entry: Entry


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
        if _SAYS_STRUCT.search(_uncomment(source.text.data[region.start : region.end])):
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
