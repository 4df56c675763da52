"""What a header needs so that an architecture gets a family of its own: template, links, top."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from policygen import untrusted
from policygen.dialects.specializations.chain_place import ChainPlace, find_place, policy_number
from policygen.dialects.specializations.declarations import find_declarations
from policygen.dialects.specializations.new_policy import (
    Link,
    keeping_policy,
    link_arguments,
    reading_policy,
)
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rendering import fill
from policygen.source.copying import copy
from policygen.source.guards import Guards
from policygen.source.spelling import indent_of, line_end, newline
from policygen.source.splice import edit_at
from policygen.source.text import Text

# Comments that stand alone: "// 2/4/8 showed no benefit", and below it a blank line
_REMARK = re.compile(rb"(?:[ \t]*\r?\n)+((?:[ \t]*//[^\n]*\n)+)(?=[ \t]*\r?\n)")


@dataclass(frozen=True, slots=True)
class NewFamily:
    """A family that a header does not have, and what makes CUB read it."""

    name: str
    like: Family
    """The newest earlier family, whose parameters it has."""
    at: int
    """The end of the line behind which its declaration, and then its entries, are inserted."""
    declaration: str
    """The primary template, with the blank line before it."""
    links: tuple[Edit, ...]
    policies: tuple[str, ...]
    """The names of the policies that are added."""


def new_arch(
    header: TuningHeader,
    data: bytes,
    namespace: str,
    arch: str,
    keep: str | None,
    added: Mapping[str, AddedMember] | None = None,
) -> NewFamily:
    """A family for `arch`; from the later architecture `keep` on everything stays as it was.

    Members that are `added` are read by its policy, and no family had them before.
    """
    if keep is not None and arch_number(keep) <= arch_number(arch):
        raise InputError(f"{keep} is not later than {arch}", "Name a later architecture to keep.")
    text = Text(header.name, data)
    place = find_place(header, text, namespace, arch)
    like = place.like
    name = f"{arch}{like.name.removeprefix(like.arch)}"
    declaration = _primary(text, place, name, arch)
    links, policies = _links(text, place, name, arch, keep, added or {})
    return NewFamily(
        name=name,
        like=like,
        at=_behind(header, text, place),
        declaration=_ended(text, f"\n\n{declaration}"),
        links=links,
        policies=policies,
    )


def _primary(text: Text, place: ChainPlace, name: str, arch: str) -> str:
    """Declared only where CUB falls back by policy; else what the newest earlier family gives."""
    like, primary = place.like, place.primary
    found = next(find_declarations(text.code, *primary.span))
    if primary.body_span is None:
        declared = copy(text, primary.span, [(found.name_span, name)])
    else:
        if any(not parameter.name for parameter in like.parameters):
            raise InputError(
                f"{text.path}:{primary.line}: a parameter of {like.name} has no name",
                f"{name} cannot pass it on; give it one.",
            )
        declared = fill(
            "edit/primary.h.j2",
            {
                "head": copy(text, Span(primary.span.start, found.parameters_span.end + 1)),
                "name": name,
                "base": like.name,
                "parameters": [parameter.name for parameter in like.parameters],
            },
        )
    return f"{_above(text, like, primary, arch)}{declared}".rstrip()


def _above(text: Text, like: Family, primary: Entry, arch: str) -> str:
    """`// sm100 default` above a primary template, as the new one has it."""
    above = primary.comment_span
    comment = copy(text, above).rstrip() if above else ""
    renamed = re.sub(rf"\b{like.arch}\b", arch, comment)
    return f"{untrusted.comment(renamed)}\n" if renamed != comment and "\n" not in comment else ""


def _links(
    text: Text,
    place: ChainPlace,
    name: str,
    arch: str,
    keep: str | None,
    added: Mapping[str, AddedMember],
) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    """The new policies behind the one before them, and what names the last of the two."""
    previous, following = place.previous, place.following
    new = Link(arch, previous.name)
    policies = [new.name]
    texts = [reading_policy(text, place, new, name, added)]
    if keep is not None and (following is None or policy_number(following) > arch_number(keep)):
        link = Link(keep, new.name)
        texts.append(keeping_policy(text, previous, link, since=new.name))
        policies.append(link.name)
    by = indent_of(text.data, previous.span.start)
    shown = "".join(f"\n\n{by}{each}" for each in texts)
    at = line_end(text.data, previous.span.end)
    what = f"{new.name} reads {name}, and falls back to {previous.name}"
    edits = [
        edit_at(text.data, Span(at, at), _ended(text, shown), what),
        edit_at(text.data, _next_name(text, place), policies[-1], f"{policies[-1]} comes next"),
    ]
    return tuple(edits), tuple(policies)


def _next_name(text: Text, place: ChainPlace) -> Span:
    """What names the policy before: the policy that follows, or `using MaxPolicy = …;`."""
    if place.following is not None:
        return link_arguments(text.code, place.following)[2]
    top = (place.chain.max_policy or "").encode()
    using = re.compile(rb"\busing\s+(?:MaxPolicy|max_policy)\s*=\s*(" + top + rb")\s*;")
    found = using.search(text.code, place.previous.span.end) if top else None
    if found is None:
        raise InputError(
            f"{text.path}: {place.chain.hub} of {place.chain.namespace} has no MaxPolicy",
            f"Expected: using MaxPolicy = {place.previous.name};",
        )
    return Span(*found.span(1))


def _behind(header: TuningHeader, text: Text, place: ChainPlace) -> int:
    """The end of the last line that belongs to a family: its entries, guards and remarks."""
    data = text.data
    end = max(entry.span.end for entry in place.like.entries)
    end = max([end, *(s.end for s in text.comments if s.start < end < s.end)])
    depth = 0
    for conditional in Guards(text).conditionals:
        if conditional.span.start < place.primary.span.end:
            continue
        if conditional.span.start > end and depth <= 0:
            break
        depth += conditional.kind.startswith("if") - (conditional.kind == "endif")
        end = max(end, conditional.span.end)
    end = max([end, *(s.end for s in header.format_off if s.start < end <= s.end)])
    end = line_end(data, end - 1)
    while remark := _REMARK.match(data, end):
        if any(remark.start() < s.start < remark.end() for s in header.format_off):
            break
        end = line_end(data, remark.end(1) - 2)
    return end


def _ended(text: Text, lines: str) -> str:
    return lines.replace("\n", newline(text.data))
