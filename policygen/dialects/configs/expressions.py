"""The values of a config: `reduce_config<256, 8, block_reduce_algorithm::using_warp_reduce>`."""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import lru_cache

from policygen.dialects.specializations.declarations import find_declarations
from policygen.dialects.specializations.entries import template_parameters
from policygen.model.base import Span
from policygen.model.tuning import Member, TemplateParameter
from policygen.source.brackets import closing_angle, split_list
from policygen.source.members import literal
from policygen.source.text import Text, squeeze

# "rocprim::kernel_config<", "typename std::conditional<"
_APPLIED = re.compile(rb"(?:typename\s+)?(?:::)?((?:\w+\s*::\s*)*(\w+))\s*<")
_RECORD = re.compile(rb"\bstruct\s+(\w+)\s*")
# "template<unsigned int BlockSize> using merge_config = "
_ALIAS = re.compile(rb"\btemplate\s*<")
_NAMED = re.compile(rb"\s*using\s+(\w+_config)\s*=")
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
        alias = None if close is None else _NAMED.match(text.code, close + 1)
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
