"""Configs as functions: `reduce_config_picker<Target, key_type>()`, one for each target."""

import re
from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policygen.dialects.configs.arguments import arch_of
from policygen.dialects.configs.expressions import applied, value_member
from policygen.dialects.configs.facts import facts
from policygen.dialects.selectors.functions import find_structs
from policygen.dialects.specializations.declarations import list_parts
from policygen.dialects.specializations.entries import template_parameters
from policygen.model.arch import UNKNOWN
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family, Member
from policygen.source.brackets import (
    closing_angle,
    closing_brace,
    closing_bracket,
    split_list,
    trim,
)
from policygen.source.comments import comment_lines
from policygen.source.file import SourceFile
from policygen.source.members import member_values
from policygen.source.text import Text, squeeze

# "template<class Target, class key_type> constexpr auto reduce_config_picker() -> …{"
_PICKER = re.compile(rb"\btemplate\s*<")
_HEAD = re.compile(
    rb"\s*(?:(?:inline|constexpr|static)\s+)*auto\s+(\w+_config_picker)\s*\(\s*\)\s*->"
)
_TARGET = re.compile(rb"\bcomp_target\s*<")
_CASE = re.compile(rb"\bif\s+constexpr\s*\(|\breturn\b")
# "{ return", behind a condition
_OWN = re.compile(rb"\s*(\{)?\s*return\b")
_CLOSED = re.compile(rb"\s*\}")
_NAMED = re.compile(rb"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*\{")
GENERIC = "generic"

Fields = MutableMapping[str, tuple[tuple[str, str], ...]]
"""The fields of structs, with their types."""


@dataclass(frozen=True, slots=True)
class Picker:
    """One picker: for which target, with which parameters, and its body."""

    name: str
    span: Span
    name_span: Span
    parameters: Span
    arch: str
    gpu: str
    body: Span


def read_pickers(source: SourceFile, header: str, headers: Sequence[bytes]) -> tuple[Family, ...]:
    """The pickers of a header; those of one architecture tell GPUs apart by a fact.

    `headers` have the structs that they return.
    """
    groups: dict[tuple[str, str], list[Picker]] = {}
    for picker in find_pickers(source.text):
        groups.setdefault((picker.name, picker.arch), []).append(picker)
    fields: Fields = ChainMap(*map(_fields, headers)) if groups else {}
    return tuple(
        Family(
            name=name,
            arch=arch,
            header=header,
            namespace="rocprim::detail",
            parameters=template_parameters(source.text.data, source.text.code, lot[0].parameters)[
                1:
            ],
            entries=tuple(entry for one in lot for entry in _entries(source, one, fields)),
        )
        for (name, arch), lot in groups.items()
    )


@lru_cache(maxsize=128)  # all headers of a tree have the same ones beside them
def _fields(data: bytes) -> Fields:
    return {
        name: tuple(zip(struct.fields, struct.types, strict=True))
        for name, struct in find_structs(Text("", data).code).items()
    }


def find_pickers(text: Text) -> Iterator[Picker]:
    """All pickers of a file, in order."""
    code = text.code
    for match in _PICKER.finditer(code):
        close = closing_angle(code, match.end() - 1)
        head = None if close is None else _HEAD.match(code, close + 1)
        if close is None or head is None:
            continue
        opened = code.find(b"{", head.end())
        if b";" in code[head.end() : opened if opened >= 0 else len(code)]:
            continue  # declared, and defined elsewhere
        closed = closing_brace(code, opened) if opened >= 0 else None
        target = _TARGET.search(code, head.end(), opened) if closed is not None else None
        end = None if target is None else closing_angle(code, target.end() - 1)
        if closed is None or target is None or end is None:
            raise text.error(
                head.start(1),
                f"{head[1].decode()}: cannot tell for which target this is",
                width=len(head[1]),
                remedy="Expected: std::is_same_v<Target, comp_target<GEN, ARCH, GPU, REP>>",
            )
        args = [squeeze(code[s.start : s.end]) for s in split_list(code, target.end(), end)]
        arch = arch_of(args[1]) if len(args) > 1 else None
        if arch is None:
            raise text.error(target.start(), "cannot tell which architecture this target is")
        gpu = args[2].rpartition("::")[2] if len(args) > 2 else GENERIC
        yield Picker(
            head[1].decode(),
            Span(match.start(), closed + 1),
            Span(*head.span(1)),
            Span(match.end(), close),
            arch,
            gpu,
            Span(opened + 1, closed),
        )


def _entries(source: SourceFile, one: Picker, fields: Fields) -> Iterator[Entry]:
    """Each return of a picker, with what it asks for."""
    text = source.text
    code, at, floor = text.code, one.body.start, one.body.start
    while match := _CASE.search(code, at, one.body.end):
        asked: tuple[str, ...] = ()
        begin = match.start()
        opened = None
        returned = match
        if match[0] != b"return":
            close = closing_bracket(code, match.end() - 1)
            inner = None if close is None else _OWN.match(code, close + 1, one.body.end)
            if close is None or inner is None:
                raise text.error(begin, "a condition without a return of its own")
            asked, opened, returned = facts(code, Span(match.end(), close)), inner[1], inner
        end = code.find(b";", returned.end(), one.body.end)
        stop = one.body.end if end < 0 else end
        value = trim(code, returned.end(), stop)
        at = stop + 1
        if opened:
            brace = _CLOSED.match(code, at, one.body.end)
            if brace is None:
                raise text.error(begin, "a condition without a return of its own")
            at = brace.end()
        yield _entry(source, one, asked, Span(begin, at), value, fields, floor)
        floor = at


def _entry(
    source: SourceFile,
    one: Picker,
    asked: tuple[str, ...],
    span: Span,
    value: Span,
    fields: Fields,
    floor: int,
) -> Entry:
    text = source.text
    members = tuple(_values(text, value, fields))
    above = source.comments.above(span.start, floor)
    lines = [line.text for comment in above for line in comment_lines(text.data, comment)]
    guard = source.guards.at(span.start)
    target = () if one.gpu == GENERIC or one.arch == UNKNOWN else (f"gpu {one.gpu}",)
    return Entry(
        kind="branch" if asked else "primary",
        args=(*target, *asked),
        values=member_values(members),
        inherits=squeeze(text.data[value.start : value.end]),
        guard=guard.spelling,
        disabled=guard.never,
        variant=None,
        scores=None,
        line=text.line(span.start),
        remarks=tuple(line for line in lines if line),
        members=members,
        template_parameters=tuple(
            squeeze(text.code[s.start : s.end]) for s in list_parts(text.code, one.parameters)
        ),
        span=span,
        inherits_span=value,
        comment_span=Span(above[0].start, above[-1].end) if above else None,
        guard_span=guard.span,
    )


def _values(text: Text, span: Span, fields: Fields) -> Iterator[Member]:
    """`reduce_config_params{{256, 8}, using_warp_reduce}`; none of what calls another one."""
    named = _NAMED.match(text.code, *span)
    if named is None or applied(text.code, span) is not None:
        return
    yield from _braced(text, Span(named.end() - 1, span.end), named[1].decode(), fields, "")


def _braced(text: Text, span: Span, of: str, fields: Fields, prefix: str) -> Iterator[Member]:
    close = closing_brace(text.code, span.start)
    if close is None:
        return
    known = fields.get(of, ())
    for position, part in enumerate(split_list(text.code, span.start + 1, close)):
        name, kind = known[position] if position < len(known) else (str(position), "auto")
        inner = _NAMED.match(text.code, *part)
        if text.code[part.start : part.start + 1] == b"{":
            yield from _braced(text, part, kind.rpartition("::")[2], fields, f"{prefix}{name}.")
        elif inner:
            at = Span(inner.end() - 1, part.end)
            yield from _braced(text, at, inner[1].decode(), fields, f"{prefix}{name}.")
        else:
            yield value_member(text, part, f"{prefix}{name}", kind)
