"""Makes a policy read a member that the entries of a family did not have, with a fallback."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import FamilyUse, Policy, PolicyChain
from policygen.rendering import fill
from policygen.source.brackets import closing_angle, split_list
from policygen.source.copying import Change, indent
from policygen.source.spelling import WIDTH, indent_of, line_start, spelled_as
from policygen.source.text import Text, blank

_TEMPLATE = re.compile(rb"\btemplate\s*<")
# "template <typename Tuning>\n    static auto select_agent_policy(int)"
_HEAD = re.compile(rb"template\s*<\s*(?:typename|class)\s+(\w+)\s*>\s*(.*?)\bauto\b", re.DOTALL)
_COMMENT_LINES = re.compile(rb"(?:^[ \t]*//[^\n]*\n)+[ \t]*\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Overload:
    """`template <typename Tuning> static auto select_agent_policy(long) -> …;`."""

    span: Span
    returns: Span
    """What stands between the arrow and the semicolon."""


def find_overload(code: bytes, scope: Span, name: str, parameter: str) -> Overload | None:
    """Finds the last overload of a selection in a scope."""
    declares = rb"\b%b\s*\(\s*%b\s*\)\s*->" % (name.encode(), parameter.encode())
    found = list(re.compile(declares).finditer(code, *scope))
    heads = list(_TEMPLATE.finditer(code, scope.start, found[-1].start())) if found else []
    if not heads:
        return None
    semicolon = code.index(b";", found[-1].end())
    return Overload(Span(heads[-1].start(), semicolon + 1), Span(found[-1].end(), semicolon))


def overload_of(
    text: Text, chain: PolicyChain, policy: Policy, use: FamilyUse, parameter: str = "int"
) -> tuple[Overload, bool] | None:
    """Finds what a policy selects with, and whether it is its own; else it is the hub's."""
    if use.selection is None:
        return None
    if own := find_overload(text.code, policy.span, use.selection, parameter):
        return own, True
    # The hub's own part before the policy: other policies may have a selection of the same name.
    code = blank(text.code, [other.span for other in chain.policies])
    found = find_overload(code, Span(0, policy.span.start), use.selection, parameter)
    return (found, False) if found else None


def reading_changes(
    text: Text, family: str, overload: Overload | None, added: Mapping[str, AddedMember]
) -> list[Change]:
    """Makes what a policy selects with read members, where it does not yet."""
    if not added:
        return []
    if overload is None:
        names = ", ".join(added)
        raise InputError(
            f"{text.path}: entries of {family} cannot have {names}: what reads them is no pair of"
            " overloads"
        )
    head = _HEAD.match(text.code, overload.span.start)
    assert head is not None, "it is a template that returns"
    tuning, before = head[1].decode(), head[2].decode()
    by = indent_of(text.data, overload.span.start)
    changes: list[Change] = []
    declared = ""
    for name, member in added.items():
        if re.compile(rb"\bselect_%b\b" % name.encode()).search(text.code, *overload.returns):
            continue
        call = f"decltype(select_{name}<{tuning}>(0))"
        call = call if member.type == "using" else f"{call}::value"
        changes.append((_argument(text, family, overload, name, member), call))
        declared += _declared(name, member, tuning, before, len(by))
    if declared:
        at = _above(text, overload)
        lines = indent(f"{declared}\n", by)
        changes.append((Span(at, at), lines))
    return changes


def _argument(text: Text, family: str, overload: Overload, name: str, member: AddedMember) -> Span:
    """Finds the argument that gives all entries the same."""
    code = text.code
    opens = code.find(b"<", *overload.returns)
    close = closing_angle(code, opens) if opens >= 0 else None
    spans = split_list(code, opens + 1, close) if close else []
    found = spelled_as(code, spans, member.default)
    if len(found) != 1:
        raise InputError(
            f"{text.path}:{text.line(overload.span.start)}: entries of {family} cannot have {name}:"
            f" {member.default} is not one of the arguments of what reads them"
        )
    return found[0]


def _declared(name: str, member: AddedMember, tuning: str, before: str, by: int) -> str:
    context: dict[str, object] = {
        "member": name,
        "words": name.replace("_", " "),
        "type": member.type,
        "default": member.default,
        "tuning": tuning,
        "before": before,
    }
    rows = fill("edit/added_member.h.j2", {**context, "wrapped": [False, False]}).splitlines()
    long = [by + len(row) > WIDTH for row in rows if "select_" in row]
    return fill("edit/added_member.h.j2", {**context, "wrapped": long})


def _above(text: Text, overload: Overload) -> int:
    """Finds where the comment above what is declared begins."""
    start = line_start(text.data, overload.span.start)
    above = _COMMENT_LINES.search(text.data, 0, start)
    return above.start() if above else start


def policies_that_read(
    chains: Sequence[PolicyChain], namespace: str, family: str
) -> Iterator[tuple[PolicyChain, Policy, FamilyUse]]:
    """Finds the policies that read a family, and where."""
    for chain in chains:
        if chain.namespace == namespace:
            for policy in chain.policies:
                for use in policy.uses:
                    if use.family == family:
                        yield chain, policy, use
