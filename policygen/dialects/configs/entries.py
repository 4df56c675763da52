"""What entries of configs have in common, in whichever form they are spelled."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policygen.dialects.specializations.declarations import list_parts
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family, Member
from policygen.source.comments import comment_lines
from policygen.source.file import SourceFile
from policygen.source.members import member_values
from policygen.source.text import squeeze

# "merge_config_900", "adjacent_difference_config_fallback"; not "default_reduce_config_base"
_BY_HAND = re.compile(r"(?!default_)\w+?_config_(?!base|picker)\w+")
_SCOPE = re.compile(rb"\bnamespace\s+([A-Za-z_]\w*)\s*\{")


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A config: for what it is, and where it stands."""

    facts: tuple[str, ...]
    span: Span
    value: Span
    """The config itself."""
    parameters: Span
    """Those of its template."""
    top: int
    """Where that begins which comments are above, and which is guarded."""
    named: int
    """Where it is called what it is: the line that is told."""
    floor: int = 0
    """Where comments above it can begin."""
    args: Span | None = None
    body: Span | None = None


def config_entry(source: SourceFile, found: FoundConfig, members: tuple[Member, ...]) -> Entry:
    """A config as an entry, with the comments above it and what guards it."""
    text = source.text
    above = source.comments.above(found.top, found.floor)
    lines = [line.text for span in above for line in comment_lines(text.data, span)]
    guard = source.guards.at(found.top)
    return Entry(
        kind="branch" if found.facts else "primary",
        args=found.facts,
        values=member_values(members),
        inherits=squeeze(text.data[found.value.start : found.value.end]),
        guard=guard.spelling,
        disabled=guard.never,
        variant=None,
        scores=None,
        line=text.line(found.named),
        remarks=tuple(line for line in lines if line),
        members=members,
        template_parameters=_spelled(text.code, list_parts(text.code, found.parameters)),
        span=found.span,
        args_span=found.args,
        arg_spans=tuple(list_parts(text.code, found.args) if found.args else ()),
        inherits_span=found.value,
        body_span=found.body,
        comment_span=Span(above[0].start, above[-1].end) if above else None,
        guard_span=guard.span,
    )


def by_hand(family: Family) -> bool:
    """Whether a family is a config that a table by hand gives to architectures."""
    return _BY_HAND.fullmatch(family.name) is not None


def _spelled(code: bytes, spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(squeeze(code[span.start : span.end]) for span in spans)


def namespace_at(code: bytes, offset: int) -> str:
    """The namespaces around an offset; the outermost is opened by a macro."""
    found = ["rocprim"]
    for match in _SCOPE.finditer(code, 0, offset):
        depth = code.count(b"{", match.end(), offset) - code.count(b"}", match.end(), offset)
        if depth >= 0:
            found.append(match[1].decode())
    return "::".join(dict.fromkeys(found))
