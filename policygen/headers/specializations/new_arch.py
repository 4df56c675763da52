"""What a header needs so that an architecture gets a family of its own: template, links, top."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen import untrusted
from policygen.errors import InputError
from policygen.headers.specializations.chains import ChainPlace, find_place, policy_number
from policygen.headers.specializations.families import find_declarations
from policygen.headers.specializations.siblings import (
    Overload,
    find_overload,
    overload_of,
    reading_changes,
)
from policygen.headers.spelling import (
    Change,
    align,
    copy,
    dedent,
    edit_at,
    indent,
    indent_of,
    line_end,
    line_start,
    newline,
    wrap,
)
from policygen.headers.syntax import Guards, closing_angle, find_members, split_list
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.edits import AddedMember, Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member, Policy, TuningHeader
from policygen.rendering import fill

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


# The text of a policy that goes into a chain: one that reads a new family, and one that keeps.


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
    above = _new_policy_above(text, old, link)
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


def _new_policy_above(text: Text, old: Policy, link: Link) -> str:
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
