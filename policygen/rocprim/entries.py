"""What entries of configs have in common, in whichever form they are spelled."""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policygen.bindings.words import of_table
from policygen.headers.comments import SourceFile, comment_lines
from policygen.headers.specializations.families import (
    find_declarations,
    list_parts,
    template_parameters,
)
from policygen.headers.syntax import (
    closing_angle,
    closing_bracket,
    literal,
    member_values,
    split_list,
    trim,
)
from policygen.headers.text import Text, squeeze
from policygen.model.arch import UNKNOWN, parse_arch
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member, TemplateParameter

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


# "static_cast<unsigned int>(target_arch::gfx942)", "target_arch::unknown"
_NAMED = re.compile(r"\btarget_arch::(\w+)")
# "ROCPRIM_ARCH_90a", "803"
_NUMBERED = re.compile(r"(?:ROCPRIM_ARCH_)?([0-9]{3,4}|[0-9]{2}[a-f])")


# Which architecture the text of a config means: `target_arch::gfx942`, `ROCPRIM_ARCH_90a`.


def arch_of(text: str) -> str | None:
    """The architecture that an argument names; none where it is a parameter's."""
    if named := _NAMED.search(text):
        return UNKNOWN if named[1] == UNKNOWN else known_arch(named[1])
    numbered = _NUMBERED.fullmatch(text.strip())
    if numbered is None:
        return None
    own = of_table(int(numbered[1])) if numbered[1].isdigit() else None
    return own or known_arch(f"gfx{numbered[1]}")


def known_arch(text: str) -> str | None:
    """An architecture as it is spelled; none where it is none."""
    try:
        return parse_arch(text)
    except ValueError:
        return None


# "bool(rocprim::is_floating_point<key_type>::value)", or without bool
_TRUTH = re.compile(r"\bbool\(\s*([^()]*?)\s*\)")
_TRAIT = re.compile(r"(?:::)?\brocprim::(is_\w+)<([^<>]*)>::value")
# "std::is_same_v<value_type, rocprim::empty_type>"
_SAME = re.compile(r"(?:::)?\bstd::is_same_v<([^<>]*)>")
# "std::enable_if_t<", "typename std::enable_if<"
_ENABLED = re.compile(rb"(?:typename\s+)?(?:::)?std::enable_if(?:_t)?\s*<")
_TOKENS = re.compile(rb"&&|[(\[{]")


# What a config asks of types, as facts: `is_floating_point<key_type>`, `sizeof(key_type) <= 8`.


def conjuncts(code: bytes, span: Span) -> tuple[Span, ...]:
    """The parts of a condition between `&&`, however many parentheses are around them."""
    span = _bare(code, span)
    parts, start, at = [], span.start, span.start
    while match := _TOKENS.search(code, at, span.end):
        at = match.end()
        if match[0] == b"&&":
            parts.append(Span(start, match.start()))
            start = at
        else:
            close = closing_bracket(code, match.start())
            at = span.end if close is None else close + 1
    if not parts:
        return (span,)
    return tuple(one for part in [*parts, Span(start, span.end)] for one in conjuncts(code, part))


def facts(code: bytes, span: Span) -> tuple[str, ...]:
    """The same, each as people write it, and the same however a header spells it."""
    return tuple(_plain(squeeze(code[s.start : s.end])) for s in conjuncts(code, span))


def _plain(text: str) -> str:
    text = _TRAIT.sub(r"\1<\2>", _TRUTH.sub(r"\1", text))
    return _SAME.sub(r"std::is_same<\1>::value", text)


def enabling(code: bytes, span: Span) -> Span | None:
    """The condition of `std::enable_if_t<…>`, if that is what a span holds."""
    match = _ENABLED.match(code, span.start, span.end)
    if match is None:
        return None
    close = closing_angle(code, match.end() - 1)
    return None if close is None or close > span.end else trim(code, match.end(), close)


def _bare(code: bytes, span: Span) -> Span:
    span = trim(code, *span)
    while code[span.start : span.start + 1] == b"(":
        if closing_bracket(code, span.start) != span.end - 1:
            break
        span = trim(code, span.start + 1, span.end - 1)
    return span


# "rocprim::kernel_config<", "typename std::conditional<"
_APPLIED = re.compile(rb"(?:typename\s+)?(?:::)?((?:\w+\s*::\s*)*(\w+))\s*<")
_RECORD = re.compile(rb"\bstruct\s+(\w+)\s*")
# "template<unsigned int BlockSize> using merge_config = "
_ALIAS = re.compile(rb"\btemplate\s*<")
_EXPRESSIONS_NAMED = re.compile(rb"\s*using\s+(\w+_config)\s*=")
# "::rocprim::block_reduce_algorithm::using_warp_reduce", "block_load_method::block_load_direct"
_ENUMERATOR = re.compile(r"(?:::)?(?:[A-Za-z_]\w*::)+([A-Za-z_]\w*)")
_ENDS = {b"", b"::type", b"()", b"{}"}
"""What may follow the arguments."""
_CONFIG = "config"
_CHOSEN = {b"std::conditional": ("enabled", _CONFIG, "otherwise")}
"""The parameters of what is no template of rocPRIM's."""
Templates = MutableMapping[str, tuple[TemplateParameter, ...]]
"""The parameters of config templates, by name."""


@dataclass(frozen=True, slots=True)
class AppliedTemplate:
    """A template with its arguments."""

    name: str
    """Without what qualifies it."""
    qualified: bytes
    args: tuple[Span, ...]


# The values of a config: `reduce_config<256, 8, block_reduce_algorithm::using_warp_reduce>`.


def config_templates(headers: Iterable[bytes]) -> Templates:
    """The parameters of all class templates that some headers declare."""
    return ChainMap(*map(_templates, headers))


@lru_cache(maxsize=128)  # all headers of a tree have the same ones beside them
def _templates(data: bytes) -> dict[str, tuple[TemplateParameter, ...]]:
    text = Text("", data)
    found: dict[str, tuple[TemplateParameter, ...]] = {}
    for one in find_declarations(text.code, names=_RECORD):
        if one.args_span is None:
            read = template_parameters(text.data, text.code, one.parameters_span)
            found.setdefault(one.name, read)
    for match in _ALIAS.finditer(text.code):
        close = closing_angle(text.code, match.end() - 1)
        alias = None if close is None else _EXPRESSIONS_NAMED.match(text.code, close + 1)
        if close is not None and alias is not None:
            read = template_parameters(text.data, text.code, Span(match.end(), close))
            found.setdefault(alias[1].decode(), read)
    return found


def applied(code: bytes, span: Span) -> AppliedTemplate | None:
    """What a span holds as a template with its arguments; none where it holds something else."""
    match = _APPLIED.match(code, span.start, span.end)
    if match is None:
        return None
    close = closing_angle(code, match.end() - 1)
    if close is None or close >= span.end or code[close + 1 : span.end].strip() not in _ENDS:
        return None
    args = split_list(code, match.end(), close)
    return AppliedTemplate(match[2].decode(), b"".join(match[1].split()), tuple(args))


def config_members(text: Text, span: Span, templates: Templates) -> tuple[Member, ...]:
    """The arguments of a config as values, those of configs in it, too, each by its parameter."""
    return tuple(_members(text, span, templates, ""))


def _members(text: Text, span: Span, templates: Templates, prefix: str) -> Iterator[Member]:
    found = applied(text.code, span)
    if found is None:
        return
    for position, arg in enumerate(found.args):
        name, kind = _parameter(found, templates, position)
        inner = applied(text.code, arg)
        if inner is not None and (inner.name in templates or inner.qualified in _CHOSEN):
            # What is chosen takes the place of the choice.
            within = prefix if name == _CONFIG else f"{prefix}{name}."
            yield from _members(text, arg, templates, within)
        else:
            yield value_member(text, arg, f"{prefix}{name}", kind)


def value_member(text: Text, span: Span, name: str, kind: str) -> Member:
    """One value: a number, an enumerator without what qualifies it, or what is spelled."""
    spelling = squeeze(text.data[span.start : span.end])
    enumerator = _ENUMERATOR.fullmatch(spelling)
    return Member(
        name=name,
        kind="value",
        type=kind,
        spelling=spelling,
        value=enumerator[1] if enumerator else literal(kind, spelling),
        span=span,
        value_span=span,
    )


def _parameter(found: AppliedTemplate, templates: Templates, position: int) -> tuple[str, str]:
    """What an argument is called, and what it is; by its place where nobody declares it."""
    if names := _CHOSEN.get(found.qualified):
        return names[position] if position < len(names) else str(position), "class"
    known = templates.get(found.name, ())
    if position < len(known):
        return known[position].label, known[position].type
    return str(position), "auto"
