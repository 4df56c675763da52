"""Common parts of config entries, in any form."""

import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from functools import lru_cache

from policygen.bindings.words import of_table
from policygen.headers.comments import SourceFile, comment_lines, joined
from policygen.headers.selectors.conditions import conjuncts
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.specializations.families import find_declarations, template_parameters
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


def config_entry(
    source: SourceFile,
    members: tuple[Member, ...],
    *,
    facts: tuple[str, ...],
    span: Span,
    value: Span,
    parameters: Span,
    top: int,
    named: int,
    floor: int = 0,
    args: Span | None = None,
    body: Span | None = None,
) -> Entry:
    """Makes an entry of a config, with the comments above it and its guard.

    `value` is the config itself and `parameters` are those of its template. Its declaration starts
    at `top`, below its comments, which are above `floor`; the line of `named` is reported.
    """
    text = source.text
    comment_spans = source.comments.above(top, floor)
    lines = [line.text for span in comment_spans for line in comment_lines(text.data, span)]
    guard = source.guards.at(top)
    return Entry(
        kind="branch" if facts else "primary",
        args=facts,
        values=member_values(members),
        inherits=squeeze(text.data, value),
        guard=guard.spelling,
        disabled=guard.never,
        variant=None,
        scores=None,
        line=text.line(named),
        remarks=tuple(line for line in lines if line),
        members=members,
        template_parameters=tuple(
            squeeze(text.code, part) for part in split_list(text.code, *parameters)
        ),
        span=span,
        args_span=args,
        arg_spans=tuple(split_list(text.code, *args) if args else ()),
        inherits_span=value,
        body_span=body,
        comment_span=joined(comment_spans),
        guard_span=guard.span,
    )


def by_hand(family: Family) -> bool:
    """Returns whether a family is a config that a handwritten table gives to architectures."""
    return _BY_HAND.fullmatch(family.name) is not None


def namespace_at(code: bytes, offset: int) -> str:
    """Returns the namespaces around an offset; a macro opens the outermost."""
    scopes = HeaderCode(code).namespace_at(offset).split("::")
    return "::".join(dict.fromkeys(filter(None, ["rocprim", *scopes])))


# "static_cast<unsigned int>(target_arch::gfx942)", "target_arch::unknown"
_ARCH_NAME = re.compile(r"\btarget_arch::(\w+)")
# "ROCPRIM_ARCH_90a", "803"
_ARCH_NUMBER = re.compile(r"(?:ROCPRIM_ARCH_)?([0-9]{3,4}|[0-9]{2}[a-f])")


# Architectures in a config's text: `target_arch::gfx942`, `ROCPRIM_ARCH_90a`.


def arch_of(text: str) -> str | None:
    """Returns the architecture that an argument names; None if it is a parameter."""
    if name_match := _ARCH_NAME.search(text):
        return UNKNOWN if name_match[1] == UNKNOWN else known_arch(name_match[1])
    number_match = _ARCH_NUMBER.fullmatch(text.strip())
    if number_match is None:
        return None
    table_arch = of_table(int(number_match[1])) if number_match[1].isdigit() else None
    return table_arch or known_arch(f"gfx{number_match[1]}")


def known_arch(text: str) -> str | None:
    """Parses an architecture; None if it is invalid."""
    try:
        return parse_arch(text)
    except ValueError:
        return None


# "bool(rocprim::is_floating_point<key_type>::value)", or without bool
_TRUTH = re.compile(r"\bbool\(\s*([^()]*?)\s*\)")
_TRAIT = re.compile(r"(?:::)?\brocprim::(is_\w+)<([^<>]*)>::value")
# "std::is_same_v<value_type, rocprim::empty_type>"
_IS_SAME = re.compile(r"(?:::)?\bstd::is_same_v<([^<>]*)>")
# "std::enable_if_t<", "typename std::enable_if<"
_ENABLED = re.compile(rb"(?:typename\s+)?(?:::)?std::enable_if(?:_t)?\s*<")


# The conditions of a config as facts: `is_floating_point<key_type>`, `sizeof(key_type) <= 8`.


def facts(condition: str) -> tuple[str, ...]:
    """Splits a condition at `&&`, through any parentheses, into facts of a normalized spelling."""
    code = condition.encode()
    if code.startswith(b"(") and closing_bracket(code, 0) == len(code) - 1:
        return facts(condition[1:-1].strip())
    first, *others = conjuncts(condition)
    if not others or condition in others:
        text = _TRAIT.sub(r"\1<\2>", _TRUTH.sub(r"\1", condition))
        return (_IS_SAME.sub(r"std::is_same<\1>::value", text),)
    return tuple(fact for part in (first, *others) for fact in facts(part))


def enabling(code: bytes, span: Span) -> Span | None:
    """Returns the condition if the span is `std::enable_if_t<…>`."""
    match = _ENABLED.match(code, span.start, span.end)
    if match is None:
        return None
    close = closing_angle(code, match.end() - 1)
    return None if close is None or close > span.end else trim(code, match.end(), close)


# "rocprim::kernel_config<", "typename std::conditional<"
_APPLIED = re.compile(rb"(?:typename\s+)?(?:::)?((?:\w+\s*::\s*)*(\w+))\s*<")
_RECORD = re.compile(rb"\bstruct\s+(\w+)\s*")
# "template<unsigned int BlockSize> using merge_config = "
_ALIAS = re.compile(rb"\btemplate\s*<")
_CONFIG_ALIAS = re.compile(rb"\s*using\s+(\w+_config)\s*=")
# "::rocprim::block_reduce_algorithm::using_warp_reduce", "block_load_method::block_load_direct"
_ENUMERATOR = re.compile(r"(?:::)?(?:[A-Za-z_]\w*::)+([A-Za-z_]\w*)")
_SUFFIXES = {b"", b"::type", b"()", b"{}"}
"""Suffixes that may follow the arguments."""
_CONFIG = "config"
_CONDITIONALS = {b"std::conditional": ("enabled", _CONFIG, "otherwise")}
"""The parameters of templates outside rocPRIM."""
Templates = MutableMapping[str, tuple[TemplateParameter, ...]]
"""The parameters of config templates, by name."""


@dataclass(frozen=True, slots=True)
class AppliedTemplate:
    """A template with its arguments."""

    name: str
    """Without qualifiers."""
    qualified: bytes
    args: tuple[Span, ...]


# The values of a config: `reduce_config<256, 8, block_reduce_algorithm::using_warp_reduce>`.


@lru_cache(maxsize=128)  # all headers of a tree share the same companions
def config_templates(data: bytes) -> Templates:
    """Returns the parameters of all class templates that a header declares."""
    text = Text("", data)
    templates: dict[str, tuple[TemplateParameter, ...]] = {}
    for declaration in find_declarations(text.code, names=_RECORD):
        if declaration.args_span is None:
            parameters = template_parameters(text, declaration.parameters_span)
            templates.setdefault(declaration.name, parameters)
    for match in _ALIAS.finditer(text.code):
        close = closing_angle(text.code, match.end() - 1)
        alias = None if close is None else _CONFIG_ALIAS.match(text.code, close + 1)
        if close is not None and alias is not None:
            parameters = template_parameters(text, Span(match.end(), close))
            templates.setdefault(alias[1].decode(), parameters)
    return templates


def applied(code: bytes, span: Span) -> AppliedTemplate | None:
    """Parses a span as a template with its arguments, or returns None."""
    match = _APPLIED.match(code, span.start, span.end)
    if match is None:
        return None
    close = closing_angle(code, match.end() - 1)
    if close is None or close >= span.end or code[close + 1 : span.end].strip() not in _SUFFIXES:
        return None
    args = split_list(code, match.end(), close)
    return AppliedTemplate(match[2].decode(), b"".join(match[1].split()), tuple(args))


def config_members(
    text: Text, span: Span, templates: Templates, prefix: str = ""
) -> Iterator[Member]:
    """Yields the arguments of a config by parameter, including those of nested configs."""
    template = applied(text.code, span)
    if template is None:
        return
    for position, arg in enumerate(template.args):
        name, kind = _parameter(template, templates, position)
        inner = applied(text.code, arg)
        if inner is not None and (inner.name in templates or inner.qualified in _CONDITIONALS):
            # The chosen config takes the place of the conditional.
            inner_prefix = prefix if name == _CONFIG else f"{prefix}{name}."
            yield from config_members(text, arg, templates, inner_prefix)
        else:
            yield value_member(text, arg, f"{prefix}{name}", kind)


def value_member(text: Text, span: Span, name: str, kind: str) -> Member:
    """Returns a value: a number, an enumerator without qualifiers, or the spelling."""
    spelling = squeeze(text.data, span)
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


def _parameter(template: AppliedTemplate, templates: Templates, position: int) -> tuple[str, str]:
    """Returns an argument's name and kind; its position if it is not declared."""
    if names := _CONDITIONALS.get(template.qualified):
        return names[position] if position < len(names) else str(position), "class"
    parameters = templates.get(template.name, ())
    if position < len(parameters):
        return parameters[position].label, parameters[position].type
    return str(position), "auto"
