"""Where an entry belongs among those of its family, and which of them it takes after."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.headers.protocol import site_of
from policygen.headers.spelling import (
    WIDTH,
    Change,
    edit_at,
    indent,
    indent_of,
    like,
    line_end,
    line_start,
    same,
    spelled_as,
    widths,
)
from policygen.headers.syntax import closing_angle, split_list
from policygen.headers.text import Text, blank
from policygen.model.bindings import Site
from policygen.model.edits import AddedMember, Edit, Slot
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.model.tuning import (
    Entry,
    Family,
    FamilyUse,
    Member,
    Policy,
    PolicyChain,
    TuningHeader,
)
from policygen.rendering import fill

# "offset_size::_4", "16", "key_size::_2"
_TRAILING = re.compile(r"(\d+)$")
Key = tuple[Slot, ...]
Rank = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The entry beside which a new one stands."""

    entry: Entry
    before: bool
    """Whether the new one stands before it."""
    apart: "Apart | None" = None
    """Why it belongs into none of the sections that there are."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What tells sections apart, and a new entry from all of them."""

    sizes: Mapping[int, int]
    """Section → the number in its keys."""
    size: int


@dataclass(frozen=True, slots=True)
class _Known:
    """An entry and its key."""

    entry: Entry
    key: Key
    section: int | None


def neighbour(
    family: Family, key: Key, sections: Sequence[Sequence[Entry]] = ()
) -> Neighbour | None:
    """The closest of the live entries, in the order in which the family has its keys.

    What stands below a heading stays together.
    """
    number = {entry.span: i for i, section in enumerate(sections) for entry in section}
    # An entry that leaves an argument to its default is no measure of where a whole key goes.
    entries = [entry for entry in family.specializations if len(entry.args) == len(key)]
    if not entries:
        return None
    known = [_Known(entry, entry.slots, number.get(entry.span)) for entry in entries]
    closest = _closest(family, known, key)
    if closest.before:
        return closest
    return replace(closest, entry=_last_twin(family, entries, closest.entry))


def _last_twin(family: Family, entries: Sequence[Entry], entry: Entry) -> Entry:
    """The last of those directly behind an entry that inherit from it: they stay together."""
    for following in entries[entries.index(entry) + 1 :]:
        base = f"{family.name}<{', '.join(entry.args)}>"
        if _bare(following.inherits or "") != _bare(base):
            break
        entry = following
    return entry


def _bare(text: str) -> str:
    return "".join(text.split())


def _closest(family: Family, group: Sequence[_Known], key: Key) -> Neighbour:
    traits = _traits(family, len(key), _first_seen(group))
    while True:
        telling = [trait for trait in traits if _tells(group, trait)]
        trait = _dividing(group, telling) or _dividing(group, traits)
        trait = trait or _strange(group, traits, key)
        if trait is None:
            return Neighbour(group[-1].entry, before=False)
        wanted = trait(key)
        same = [one for one in group if trait(one.key) == wanted]
        if not same:
            beside = _beside(group, trait, wanted)
            return replace(beside, apart=_apart(group, trait, wanted) if trait in telling else None)
        group = same
        traits = [other for other in traits if other is not trait]


_Trait = Callable[[Key], Rank]
"""What can tell the keys of a section from those of the next, as something with an order."""


def _traits(family: Family, count: int, first: dict[tuple[int, str], int]) -> list[_Trait]:
    """Those of each argument; types come last: `float` stands beside any type of its size."""

    def rank(position: int) -> _Trait:
        return lambda key: _rank(position, key[position], first)

    def named(position: int) -> _Trait:
        return lambda key: (0, int(key[position] is not None))

    def counted(position: int) -> _Trait:
        return lambda key: (0, int(key[position] != "0"))

    kinds = [parameter.kind for parameter in family.parameters] or ["value"] * count
    values = [i for i, kind in enumerate(kinds) if kind == "value"]
    types = [i for i, kind in enumerate(kinds) if kind != "value"]
    # Without values a key is one of keys alone, and with a type by name an exception: both have
    # sections of their own, in which the order may be another.
    sections = [*(counted(i) for i in values), *(named(i) for i in types)]
    return [*sections, *(rank(i) for i in values), *(rank(i) for i in types)]


def _dividing(group: Sequence[_Known], traits: Sequence[_Trait]) -> _Trait | None:
    """What changes least often along the entries, and does not change back."""
    found: list[tuple[int, int, int]] = []
    for index, trait in enumerate(traits):
        runs = [value for value, _ in groupby(trait(one.key) for one in group)]
        if len(runs) > 1:
            found.append((len(runs) - len(set(runs)), len(runs), index))
    return traits[min(found)[2]] if found else None


def _tells(group: Sequence[_Known], trait: _Trait) -> bool:
    """Whether a trait is the same for all entries of each section, and not for all sections."""
    found: dict[int | None, set[Rank]] = {}
    for one in group:
        found.setdefault(one.section, set()).add(trait(one.key))
    return len(found) > 1 and all(len(ranks) == 1 for ranks in found.values())


def _apart(group: Sequence[_Known], trait: _Trait, wanted: Rank) -> Apart | None:
    """The sizes of sections of which each has another."""
    ranks = {one.section: trait(one.key) for one in group}
    sizes = {
        index: size for index, (kind, size) in ranks.items() if index is not None and kind == 1
    }
    if len(set(ranks.values())) < len(ranks) or len(sizes) < len(ranks) or wanted[0] != 1:
        return None
    return Apart(sizes, wanted[1])


def _strange(group: Sequence[_Known], traits: Sequence[_Trait], key: Key) -> _Trait | None:
    """What all entries of a group have in common and the key has not."""
    return next((trait for trait in traits if trait(group[0].key) != trait(key)), None)


def _beside(group: Sequence[_Known], trait: _Trait, wanted: Rank) -> Neighbour:
    below = [one for one in group if trait(one.key) < wanted]
    if below:
        return Neighbour(below[-1].entry, before=False)
    return Neighbour(group[0].entry, before=True)


def _first_seen(known: Sequence[_Known]) -> dict[tuple[int, str], int]:
    """The order in which a position's spellings appear."""
    found: dict[tuple[int, str], int] = {}
    for one in known:
        for position, arg in enumerate(one.entry.args):
            found.setdefault((position, arg), len(found))
    return found


def _rank(position: int, slot: Slot, first: dict[tuple[int, str], int]) -> Rank:
    if slot is None:
        return (0, 0)
    if number := _TRAILING.search(slot):
        return (1, int(number[1]))
    return (2, first.get((position, slot), len(first)))


Headers = Mapping[str, TuningHeader]


# Families that stand beside policy selectors, for the dispatchers of older versions.


def older(cub: Cub) -> Cub:
    """The tree as its older dispatchers see it."""
    return cub.model_copy(update={"dialect": "specializations"})


def beside(benchmark: str, cub: Cub, headers: Headers) -> Site | None:
    """Where families decide a benchmark for older dispatchers, as far as there are any."""
    version = cub.bindings
    try:
        algorithm, site = site_of(benchmark_of(benchmark, version), version, "specializations")
    except InputError:
        return None
    known = algorithm.families_at(site, headers.values())
    return site if any(family.specializations for _, family in known) else None


def is_read(site: Site | None, headers: Headers) -> bool:
    """Whether policies still read the families: else nobody can tell what they do."""
    if site is None:
        return False
    return any(chain.namespace == site.scope for chain in headers[site.header].chains)


@dataclass(frozen=True, slots=True)
class _Row:
    """A member that has a line for itself."""

    line: int
    left: str
    """What stands before the `=`, from the line's beginning, without white space behind it."""
    gap: Span
    """The white space before the `=`."""
    old: str
    new: str


# Other values for the members of an entry, with the `=` of those beside them where they belong.


def member_edits(text: Text, entry: Entry, values: Mapping[str, str], reason: str) -> list[Edit]:
    """The edits that give members their values; none for those that have them."""
    new = {
        member.name: like(member.spelling, values[member.name])
        for member in entry.members
        if member.name in values and not same(member, values[member.name])
    }
    edits = [
        edit_at(text.data, member.value_span, new[member.name], reason)
        for member in entry.members
        if member.name in new
    ]
    for rows in _groups([_row(text, m, new.get(m.name, m.spelling)) for m in entry.members]):
        edits += _realigned(text, rows, reason)
    return edits


def _row(text: Text, member: Member, new: str) -> _Row | None:
    data, start = text.data, line_start(text.data, member.span.start)
    equals = text.code.rfind(b"=", member.span.start, member.value_span.start)
    alone = not data[start : member.span.start].strip() and member.span.end == line_end(data, start)
    if equals < 0 or not alone:
        return None
    left = data[start:equals].decode().rstrip()
    gap = Span(start + len(left), equals)
    return _Row(text.line(start), left, gap, member.spelling, new)


def _groups(rows: Sequence[_Row | None]) -> Iterator[list[_Row]]:
    """Rows on lines that follow each other: clang-format aligns them."""
    group: list[_Row] = []
    for row in rows:
        if group and (row is None or row.line != group[-1].line + 1):
            yield group
            group = []
        if row is not None:
            group.append(row)
    if group:
        yield group


def _realigned(text: Text, rows: Sequence[_Row], reason: str) -> Iterator[Edit]:
    """Other white space before the `=`, where it was as clang-format leaves it."""
    before = widths([(row.left, row.old) for row in rows])
    after = widths([(row.left, row.new) for row in rows])
    there = [len(row.left) + row.gap.end - row.gap.start - 1 for row in rows]
    for row, old, new in zip(rows, before, after, strict=True):
        if before == there and old != new:
            yield edit_at(text.data, row.gap, " " * (new - len(row.left) + 1), reason)


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


# Makes a policy read a member that the entries of a family did not have, with a fallback.


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
