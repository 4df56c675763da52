"""The text of a policy that goes into a chain: one that reads a new family, and one that keeps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.specializations.added_members import (
    Overload,
    find_overload,
    overload_of,
    reading_changes,
)
from policygen.dialects.specializations.chain_place import ChainPlace
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.base import Span
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import Member, Policy
from policygen.rendering import fill
from policygen.source.brackets import closing_angle, split_list
from policygen.source.copying import Change, align, copy, dedent, indent, wrap
from policygen.source.members import find_members
from policygen.source.spelling import indent_of, line_start
from policygen.source.text import Text

_CHAINED = re.compile(rb"\b(?:ChainedPolicy|chained_policy)\s*<")
_ACCESS = re.compile(rb"\b(public|protected|private)\s*:(?!:)")
# "/// SM90" alone on the line above a policy
_ARCH_ABOVE = re.compile(rb"(?i)(//+[ \t]*sm_?)(\d+)[ \t]*\r?\n[ \t]*\Z")
_COMMENT_LINES = re.compile(rb"(?:^[ \t]*//[^\n]*\n)+[ \t]*\Z", re.MULTILINE)
# "// Use values from tuning if a specialization exists, otherwise pick the default"
_THE_DEFAULT = re.compile(rb"\bthe default\b")


@dataclass(frozen=True, slots=True)
class Link:
    """A new policy's place in the chain."""

    arch: str
    previous: str

    @property
    def number(self) -> str:
        """Its architecture as policies count: in tens."""
        return str(arch_number(self.arch) * 10)

    @property
    def name(self) -> str:
        """What CUB calls its policy."""
        return f"Policy{self.number}"


def link_arguments(code: bytes, policy: Policy) -> list[Span]:
    """The three arguments of `ChainedPolicy<900, Policy900, Policy860>`."""
    chained = _CHAINED.search(code, *policy.span)
    close = closing_angle(code, chained.end() - 1) if chained else None
    assert chained is not None
    assert close is not None, "the chain has been read"
    return split_list(code, chained.end(), close)


def reading_policy(
    text: Text, place: ChainPlace, link: Link, family: str, added: Mapping[str, AddedMember]
) -> str:
    """A copy of a policy that reads another family, and falls back to the policy before it."""
    old, use = place.reader, place.use
    selects, own = overload_of(text, place.chain, old, use) or (None, False)
    reads = reading_changes(text, family, selects, added)
    above = _above(text, old, link)
    words = {old.name: link.name, use.family: family}
    if old.predecessor:
        words[old.predecessor] = link.previous
    if use.fallback is None or use.selection is None:
        return above + _copy(text, old, link, words)
    falls_back = find_overload(text.code, old.span, use.selection, "long")
    if own and falls_back is not None:
        words[use.selection] = _renamed(use.selection, text, old, link)
        said = words | {_first_name(use.fallback): link.previous}
        fallback = _fallback(falls_back, use.fallback, link)
        return above + _copy(text, old, link, words, [fallback, *reads], said)
    words[use.selection] = f"{use.selection}{arch_number(link.arch)}"
    head, brace, body = _copy(text, old, link, words).partition("{")
    return f"{above}{head}{brace}\n{_hub_overloads(text, place, link, words, reads)}{body}"


def keeping_policy(text: Text, old: Policy, link: Link, since: str) -> str:
    """A policy that gives what an older one gives: its bases again, and its public members."""
    code = text.code
    body = Span(code.index(b"{", old.span.start) + 1, code.rindex(b"}", 0, old.span.end))
    head = Span(old.span.start, len(code[: body.start - 1].rstrip()))
    by = indent_of(text.data, old.span.start)
    members = list(_public_members(text, body))
    lines = fill(
        "edit/keeping_policy.h.j2",
        {
            "arch": link.arch.upper(),
            "since": since,
            "head": dedent(copy(text, head, _link_changes(text, old, link)), by),
            "previous": old.name,
            "values": [member for member in members if member.kind == "value"],
            "aliases": [member for member in members if member.kind == "alias"],
        },
    )
    return align(indent(lines, by)).strip()


def _copy(
    text: Text,
    old: Policy,
    link: Link,
    words: Mapping[str, str],
    changes: Sequence[Change] = (),
    said: Mapping[str, str] | None = None,
) -> str:
    """A policy with other words, in its comments those that are `said`; changes come first."""
    fixed = [*changes, *_link_changes(text, old, link)]
    found = [*_words(text.code, old.span, words), *_said(text, old.span, said or {})]
    free = [c for c in found if not any(f.start <= c[0].start < f.end for f, _ in fixed)]
    return copy(text, old.span, [*fixed, *free])


def _link_changes(text: Text, old: Policy, link: Link) -> list[Change]:
    name = text.code.index(old.name.encode(), old.span.start)
    places = [Span(name, name + len(old.name)), *link_arguments(text.code, old)]
    return list(zip(places, (link.name, link.number, link.name, link.previous), strict=True))


def _words(data: bytes, span: Span, words: Mapping[str, str]) -> Iterator[Change]:
    if not words:
        return
    pattern = rb"\b(?:" + b"|".join(re.escape(w.encode()) for w in words) + rb")\b"
    for match in re.compile(pattern).finditer(data, *span):
        yield Span(*match.span()), words[match[0].decode()]


def _said(text: Text, span: Span, words: Mapping[str, str]) -> Iterator[Change]:
    """The same words in the comments of a stretch."""
    for comment in text.comments:
        if span.start <= comment.start < span.end:
            yield from _words(text.data, comment, words)


def _above(text: Text, old: Policy, link: Link) -> str:
    """`// SM90` above a policy, as the new one has it."""
    match = _ARCH_ABOVE.search(
        text.data, line_start(text.data, old.span.start - 200), old.span.start
    )
    if match is None or match[2] != str(arch_number(old.arch)).encode():
        return ""
    return f"{match[1].decode()}{arch_number(link.arch)}\n{indent_of(text.data, old.span.start)}"


def _fallback(overload: Overload, fallback: str, link: Link) -> Change:
    member = fallback.rpartition("::")[2]
    return overload.returns, f" typename {link.previous}::{member}"


def _hub_overloads(
    text: Text, place: ChainPlace, link: Link, words: Mapping[str, str], reads: Sequence[Change]
) -> str:
    """The selection of the hub as one of the policy's own: that of the hub falls back elsewhere."""
    old, use = place.reader, place.use
    assert use.fallback is not None
    first, _ = overload_of(text, place.chain, old, use) or (None, False)
    second, _ = overload_of(text, place.chain, old, use, "long") or (None, False)
    if first is None or second is None:
        raise InputError(
            f"{text.path}:{old.line}: cannot find {use.selection}, which {old.name} selects with",
            f"Expected: overloads {use.selection}(int) and {use.selection}(long)",
        )
    said = {_first_name(use.fallback): link.previous}
    above = _COMMENT_LINES.search(text.data, 0, first.span.start)
    start = above.start() if above else line_start(text.data, first.span.start)
    remark = Span(start, first.span.start)
    whole = Span(start, first.span.end)
    changes = [
        *_said(text, remark, said),
        *((Span(*m.span()), link.previous) for m in _THE_DEFAULT.finditer(text.data, *remark)),
        *_words(text.code, first.span, words),
        *reads,
    ]
    names = [c for c in _words(text.code, second.span, words) if c[0].start < second.returns.start]
    remarks = [
        (Span(line_start(text.data, c.start), text.data.index(b"\n", c.end) + 1), "")
        for c in text.comments
        if second.span.start <= c.start < second.span.end
    ]
    by = indent_of(text.data, second.span.start)
    fallback = _fallback(second, use.fallback, link)
    overloads = [
        copy(text, whole, changes),
        by + copy(text, second.span, [*names, *remarks, fallback]),
    ]
    return wrap(indent("\n".join(overloads), "  ")) + "\n"


def _first_name(spelling: str) -> str:
    """`DefaultPolicy` of `DefaultPolicy<LOAD_LDG>::ScanPolicyT`."""
    match = re.match(r"\w+", spelling)
    return match[0] if match else spelling


def _renamed(selection: str, text: Text, old: Policy, link: Link) -> str:
    """A selection's name, where it carries the architecture: `select_agent_policy100`."""
    number = link_arguments(text.code, old)[0]
    for carried, new in (
        (text.code[number.start : number.end].decode(), link.number),
        (str(arch_number(old.arch)), str(arch_number(link.arch))),
    ):
        if selection.endswith(carried):
            return selection.removesuffix(carried) + new
    return selection


def _public_members(text: Text, body: Span) -> Iterator[Member]:
    labels = list(_ACCESS.finditer(text.code, *body))
    for member in find_members(text, text.code, body):
        last = next((m[1] for m in reversed(labels) if m.start() < member.span.start), b"public")
        if last == b"public":
            yield member
