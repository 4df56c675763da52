"""Adds a family for a new architecture: its primary template, and its links in the policy chain."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen import untrusted
from policygen.errors import InputError
from policygen.headers.specializations.chains import (
    MAX_POLICY,
    ChainPlace,
    find_place,
    link_arguments,
)
from policygen.headers.specializations.families import find_declarations
from policygen.headers.specializations.siblings import (
    Overload,
    comment_start,
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
from policygen.headers.syntax import Guards, find_members
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.records import Span
from policygen.model.tuning import AddedMember, Edit, Entry, Family, Member, Policy, TuningHeader
from policygen.rendering import fill

# Standalone comments: "// 2/4/8 showed no benefit" followed by a blank line
_REMARK = re.compile(rb"(?:[ \t]*\r?\n)+((?:[ \t]*//[^\n]*\n)+)(?=[ \t]*\r?\n)")


@dataclass(frozen=True, slots=True)
class NewFamily:
    """A new family, and the edits that make CUB read it."""

    name: str
    like: Family
    """The newest earlier family, which has the same parameters."""
    at: int
    """The end of the line behind which the declaration and its entries are inserted."""
    declaration: str
    """The primary template, preceded by a blank line."""
    links: tuple[Edit, ...]
    policies: tuple[str, ...]
    """The names of the added policies."""


def new_arch(
    header: TuningHeader,
    data: bytes,
    namespace: str,
    arch: str,
    keep: str | None,
    added: Mapping[str, AddedMember] | None = None,
) -> NewFamily:
    """Builds a family for `arch`; from the later architecture `keep` on, nothing changes.

    The family's policy reads the members in `added`, which no earlier family had.
    """
    if keep is not None and arch_number(keep) <= arch_number(arch):
        raise InputError(f"{keep} is not later than {arch}", "Name a later architecture to keep.")
    text = Text(header.name, data)
    place = find_place(header, text, namespace, arch)
    model = place.like
    name = f"{arch}{model.name.removeprefix(model.arch)}"
    declaration = _primary(text, place, name, arch)
    links, policies = _links(text, place, name, arch, keep, added or {})
    return NewFamily(
        name=name,
        like=model,
        at=_end_of_family(header, text, place),
        declaration=_with_newlines(text, f"\n\n{declaration}"),
        links=links,
        policies=policies,
    )


def _primary(text: Text, place: ChainPlace, name: str, arch: str) -> str:
    """Declares the template, or derives from the newest earlier family if that has a body."""
    model, primary = place.like, place.primary
    parts = next(find_declarations(text.code, *primary.span))
    if primary.body_span is None:
        declaration = copy(text, primary.span, [(parts.name_span, name)])
    else:
        if any(not parameter.name for parameter in model.parameters):
            raise InputError(
                f"{text.path}:{primary.line}: a parameter of {model.name} has no name",
                f"{name} cannot pass it on; give it a name.",
            )
        declaration = fill(
            "edit/primary.h.j2",
            {
                "head": copy(text, Span(primary.span.start, parts.parameters_span.end + 1)),
                "name": name,
                "base": model.name,
                "parameters": [parameter.name for parameter in model.parameters],
            },
        )
    return f"{_comment_above(text, model, primary, arch)}{declaration}".rstrip()


def _comment_above(text: Text, model: Family, primary: Entry, arch: str) -> str:
    """Returns `// sm100 default` above a primary template, for the new architecture."""
    comment_span = primary.comment_span
    comment = copy(text, comment_span).rstrip() if comment_span else ""
    renamed = re.sub(rf"\b{model.arch}\b", arch, comment)
    return f"{untrusted.comment(renamed)}\n" if renamed != comment and "\n" not in comment else ""


def _links(
    text: Text,
    place: ChainPlace,
    name: str,
    arch: str,
    keep: str | None,
    added: Mapping[str, AddedMember],
) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    """Returns the edits that add the new policies and link the last one, and their names."""
    previous, following = place.previous, place.following
    link = Link(arch, previous.name)
    policies = [link.name]
    texts = [reading_policy(text, place, link, name, added)]
    if keep is not None and (following is None or arch_number(following.arch) > arch_number(keep)):
        keeping_link = Link(keep, link.name)
        texts.append(keeping_policy(text, previous, keeping_link, since=link.name))
        policies.append(keeping_link.name)
    indentation = indent_of(text.data, previous.span.start)
    lines = "".join(f"\n\n{indentation}{policy_text}" for policy_text in texts)
    offset = line_end(text.data, previous.span.end)
    reason = f"{link.name} reads {name}, and falls back to {previous.name}"
    edits = [
        edit_at(text.data, Span(offset, offset), _with_newlines(text, lines), reason),
        edit_at(text.data, _next_name(text, place), policies[-1], f"{policies[-1]} comes next"),
    ]
    return tuple(edits), tuple(policies)


def _next_name(text: Text, place: ChainPlace) -> Span:
    """Finds the name of the previous policy, in the following policy or in `MaxPolicy`."""
    if place.following is not None:
        return link_arguments(text.code, place.following.span)[2]
    declared = MAX_POLICY.finditer(text.code, place.previous.span.end)
    newest = place.chain.max_policy
    match = next((match for match in declared if match[1].decode() == newest), None)
    if match is None:
        raise InputError(
            f"{text.path}: {place.chain.hub} of {place.chain.namespace} has no MaxPolicy",
            f"Expected: using MaxPolicy = {place.previous.name};",
        )
    return Span(*match.span(1))


def _end_of_family(header: TuningHeader, text: Text, place: ChainPlace) -> int:
    """Returns the end of the last line of a family, including its guards and remarks."""
    data = text.data
    end = max(entry.span.end for entry in place.like.entries)
    end = max([end, *(span.end for span in text.comments if span.start < end < span.end)])
    depth = 0
    for conditional in Guards(text).conditionals:
        if conditional.span.start < place.primary.span.end:
            continue
        if conditional.span.start > end and depth <= 0:
            break
        depth += conditional.kind.startswith("if") - (conditional.kind == "endif")
        end = max(end, conditional.span.end)
    end = max([end, *(span.end for span in header.format_off if span.start < end <= span.end)])
    end = line_end(data, end - 1)
    while remark := _REMARK.match(data, end):
        if any(remark.start() < span.start < remark.end() for span in header.format_off):
            break
        end = line_end(data, remark.end(1) - 2)
    return end


def _with_newlines(text: Text, lines: str) -> str:
    return lines.replace("\n", newline(text.data))


_ACCESS = re.compile(rb"\b(public|protected|private)\s*:(?!:)")
# "/// SM90" alone on the line above a policy
_ARCH_ABOVE = re.compile(rb"(?i)(//+[ \t]*sm_?)(\d+)[ \t]*\r?\n[ \t]*\Z")
# "// Use values from tuning if a specialization exists, otherwise pick the default"
_THE_DEFAULT = re.compile(rb"\bthe default\b")


@dataclass(frozen=True, slots=True)
class Link:
    """The position of a new policy in the chain."""

    arch: str
    previous: str

    @property
    def number(self) -> str:
        """The architecture as policies spell it: times ten."""
        return str(arch_number(self.arch) * 10)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return f"Policy{self.number}"


# New policies


def reading_policy(
    text: Text, place: ChainPlace, link: Link, family: str, added: Mapping[str, AddedMember]
) -> str:
    """Copies a policy so that it reads another family and falls back to the policy before it."""
    model, use = place.reader, place.use
    overload, is_own = overload_of(text, place.chain, model, use)
    reading = reading_changes(text, family, overload, added)
    above = _new_policy_above(text, model, link)
    renames = {model.name: link.name, use.family: family}
    if model.predecessor:
        renames[model.predecessor] = link.previous
    if use.fallback is None or use.selection is None:
        return above + _copy(text, model, link, renames)
    long_overload = find_overload(text.code, model.span, use.selection, "long")
    if is_own and long_overload is not None:
        renames[use.selection] = _renamed(use.selection, text, model, link)
        comment_words = renames | {_first_name(use.fallback): link.previous}
        fallback = _fallback(long_overload, use.fallback, link)
        return above + _copy(text, model, link, renames, [fallback, *reading], comment_words)
    renames[use.selection] = f"{use.selection}{arch_number(link.arch)}"
    head, brace, body = _copy(text, model, link, renames).partition("{")
    return f"{above}{head}{brace}\n{_hub_overloads(text, place, link, renames, reading)}{body}"


def keeping_policy(text: Text, kept_policy: Policy, link: Link, since: str) -> str:
    """Writes a policy equal to an older one: the same bases and public members."""
    code = text.code
    body = Span(
        code.index(b"{", kept_policy.span.start) + 1, code.rindex(b"}", 0, kept_policy.span.end)
    )
    head = Span(kept_policy.span.start, len(code[: body.start - 1].rstrip()))
    indentation = indent_of(text.data, kept_policy.span.start)
    members = list(_public_members(text, body))
    lines = fill(
        "edit/keeping_policy.h.j2",
        {
            "arch": link.arch.upper(),
            "since": since,
            "head": dedent(copy(text, head, _link_changes(text, kept_policy, link)), indentation),
            "previous": kept_policy.name,
            "values": [member for member in members if member.kind == "value"],
            "aliases": [member for member in members if member.kind == "alias"],
        },
    )
    return align(indent(lines, indentation)).strip()


def _copy(
    text: Text,
    model: Policy,
    link: Link,
    renames: Mapping[str, str],
    changes: Sequence[Change] = (),
    comment_words: Mapping[str, str] | None = None,
) -> str:
    """Copies a policy with words replaced in code and in comments; `changes` take precedence."""
    replacements = [*changes, *_link_changes(text, model, link)]
    word_changes = [
        *_word_changes(text.code, model.span, renames),
        *_comment_words(text, model.span, comment_words or {}),
    ]
    for change in word_changes:
        if not any(span.start <= change[0].start < span.end for span, _ in replacements):
            replacements.append(change)
    return copy(text, model.span, replacements)


def _link_changes(text: Text, model: Policy, link: Link) -> list[Change]:
    name_start = text.code.index(model.name.encode(), model.span.start)
    spans = [Span(name_start, name_start + len(model.name)), *link_arguments(text.code, model.span)]
    return list(zip(spans, (link.name, link.number, link.name, link.previous), strict=True))


def _word_changes(data: bytes, span: Span, renames: Mapping[str, str]) -> Iterator[Change]:
    if not renames:
        return
    pattern = rb"\b(?:" + b"|".join(re.escape(word.encode()) for word in renames) + rb")\b"
    for match in re.compile(pattern).finditer(data, *span):
        yield Span(*match.span()), renames[match[0].decode()]


def _comment_words(text: Text, span: Span, renames: Mapping[str, str]) -> Iterator[Change]:
    """Replaces words in the comments of a span."""
    for comment in text.comments:
        if span.start <= comment.start < span.end:
            yield from _word_changes(text.data, comment, renames)


def _new_policy_above(text: Text, model: Policy, link: Link) -> str:
    """Returns `// SM90` above a policy, for the new architecture."""
    match = _ARCH_ABOVE.search(
        text.data, line_start(text.data, model.span.start - 200), model.span.start
    )
    if match is None or match[2] != str(arch_number(model.arch)).encode():
        return ""
    return f"{match[1].decode()}{arch_number(link.arch)}\n{indent_of(text.data, model.span.start)}"


def _fallback(overload: Overload, fallback: str, link: Link) -> Change:
    member = fallback.rpartition("::")[2]
    return overload.returns, f" typename {link.previous}::{member}"


def _hub_overloads(
    text: Text, place: ChainPlace, link: Link, renames: Mapping[str, str], reading: Sequence[Change]
) -> str:
    """Turns the hub's selection into the policy's own, with another fallback."""
    model, use = place.reader, place.use
    assert use.fallback is not None
    first, _ = overload_of(text, place.chain, model, use)
    second, _ = overload_of(text, place.chain, model, use, "long")
    if first is None or second is None:
        raise InputError(
            f"{text.path}:{model.line}: cannot find {use.selection}, which {model.name} uses to"
            " select",
            f"Expected: overloads {use.selection}(int) and {use.selection}(long)",
        )
    comment_words = {_first_name(use.fallback): link.previous}
    start = comment_start(text, first.span)
    comment_span = Span(start, first.span.start)
    first_span = Span(start, first.span.end)
    changes = [
        *_comment_words(text, comment_span, comment_words),
        *(
            (Span(*match.span()), link.previous)
            for match in _THE_DEFAULT.finditer(text.data, *comment_span)
        ),
        *_word_changes(text.code, first.span, renames),
        *reading,
    ]
    before_arrow = Span(second.span.start, second.returns.start)
    names = _word_changes(text.code, before_arrow, renames)
    remarks = [
        (Span(line_start(text.data, comment.start), text.data.index(b"\n", comment.end) + 1), "")
        for comment in text.comments
        if second.span.start <= comment.start < second.span.end
    ]
    indentation = indent_of(text.data, second.span.start)
    fallback = _fallback(second, use.fallback, link)
    overloads = [
        copy(text, first_span, changes),
        indentation + copy(text, second.span, [*names, *remarks, fallback]),
    ]
    return wrap(indent("\n".join(overloads), "  ")) + "\n"


def _first_name(spelling: str) -> str:
    """Returns `DefaultPolicy` of `DefaultPolicy<LOAD_LDG>::ScanPolicyT`."""
    match = re.match(r"\w+", spelling)
    return match[0] if match else spelling


def _renamed(selection: str, text: Text, model: Policy, link: Link) -> str:
    """Renames a selection whose name ends in the architecture: `select_agent_policy100`."""
    number = link_arguments(text.code, model.span)[0]
    for suffix, replacement in (
        (text.code[slice(*number)].decode(), link.number),
        (str(arch_number(model.arch)), str(arch_number(link.arch))),
    ):
        if selection.endswith(suffix):
            return selection.removesuffix(suffix) + replacement
    return selection


def _public_members(text: Text, body: Span) -> Iterator[Member]:
    labels = list(_ACCESS.finditer(text.code, *body))
    for member in find_members(text, text.code, body):
        above = [label[1] for label in labels if label.start() < member.span.start]
        if not above or above[-1] == b"public":
            yield member
