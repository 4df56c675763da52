"""Finds the place of a new entry in its family, and the entry that it is modeled on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from policygen.bindings.load import site_of
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.headers.spelling import (
    WIDTH,
    Change,
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
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.model.tuning import (
    AddedMember,
    Entry,
    Family,
    FamilyUse,
    Member,
    Policy,
    PolicyChain,
    Slot,
    TuningHeader,
)
from policygen.rendering import fill

# "offset_size::_4", "16", "key_size::_2"
_TRAILING = re.compile(r"(\d+)$")
Key = tuple[Slot, ...]
Rank = tuple[int, int]
Ranks = tuple[Rank, ...]
"""Of one key; a column of them is what distinguishes the entries of a group."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The existing entry beside which a new one goes."""

    entry: Entry
    before: bool
    """Whether the new entry goes before the existing one."""
    apart: "Apart | None" = None
    """Set if the new entry belongs to none of the existing sections."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Sections that differ by a size, and a new size that none of them has."""

    sizes: Mapping[int, int]
    """Section index → the size in its keys."""
    size: int


@dataclass(frozen=True, slots=True)
class _RankedEntry:
    """An entry, the ranks of its key, and the section that it is in."""

    entry: Entry
    ranks: Ranks
    section: int | None


def neighbour(
    family: Family, key: Key, sections: Sequence[Sequence[Entry]] = ()
) -> Neighbour | None:
    """Finds the live entry closest to a key, following the order of keys in the family.

    Entries below one heading stay together.
    """
    section_by_span = {own.span: index for index, part in enumerate(sections) for own in part}
    # Entries that leave an argument to its default say nothing about the order of full keys.
    entries = [entry for entry in family.specializations if len(entry.args) == len(key)]
    if not entries:
        return None
    spellings = dict.fromkeys(pair for entry in entries for pair in enumerate(entry.args))
    first_seen = {pair: index for index, pair in enumerate(spellings)}
    ranks = [_ranks(family, entry.slots, first_seen) for entry in entries]
    found_in = [section_by_span.get(entry.span) for entry in entries]
    group = list(map(_RankedEntry, entries, ranks, found_in))
    closest = _closest(group, _ranks(family, key, first_seen))
    if closest.before:
        return closest
    return replace(closest, entry=_last_twin(family, entries, closest.entry))


def _last_twin(family: Family, entries: Sequence[Entry], entry: Entry) -> Entry:
    """Returns the last of the entries directly behind this one that inherit from it."""
    for following in entries[entries.index(entry) + 1 :]:
        base = f"{family.name}<{', '.join(entry.args)}>"
        if "".join((following.inherits or "").split()) != "".join(base.split()):
            break
        entry = following
    return entry


def _ranks(family: Family, key: Key, first_seen: Mapping[tuple[int, str], int]) -> Ranks:
    """Returns the ordered values of a key that distinguish a section from the next.

    Types come last: `float` goes beside any type of its size.
    """

    def rank(position: int) -> Rank:
        slot = key[position]
        if slot is None:
            return (0, 0)
        if number := _TRAILING.search(slot):
            return (1, int(number[1]))
        return (2, first_seen.get((position, slot), len(first_seen)))

    kinds = [parameter.kind for parameter in family.parameters] or ["value"] * len(key)
    values = [position for position, kind in enumerate(kinds) if kind == "value"]
    types = [position for position, kind in enumerate(kinds) if kind != "value"]
    # Keys without values are keys-only, and keys with a named type are exceptions: each has
    # sections of its own, which may be ordered differently.
    return (
        *((0, int(key[position] != "0")) for position in values),
        *((0, int(key[position] is not None)) for position in types),
        *map(rank, values),
        *map(rank, types),
    )


def _closest(group: Sequence[_RankedEntry], ranks: Ranks) -> Neighbour:
    columns = list(range(len(ranks)))
    while True:
        separating = [column for column in columns if _separates_sections(group, column)]
        differing = [column for column in columns if group[0].ranks[column] != ranks[column]]
        order = [*_dividing(group, separating), *_dividing(group, columns), *differing]
        if not order:
            return Neighbour(group[-1].entry, before=False)
        column, rank = order[0], ranks[order[0]]
        matching = [ranked for ranked in group if ranked.ranks[column] == rank]
        if not matching:
            apart = _section_sizes(group, column, rank) if column in separating else None
            below = [ranked for ranked in group if ranked.ranks[column] < rank]
            beside = below[-1] if below else group[0]
            return Neighbour(beside.entry, before=not below, apart=apart)
        group = matching
        columns.remove(column)


def _dividing(group: Sequence[_RankedEntry], columns: Sequence[int]) -> list[int]:
    """Returns the columns that change along the entries; never back and least often first."""
    changes: list[tuple[int, int, int]] = []
    for column in columns:
        runs = [value for value, _ in groupby(ranked.ranks[column] for ranked in group)]
        if len(runs) > 1:
            changes.append((len(runs) - len(set(runs)), len(runs), column))
    return [column for _, _, column in sorted(changes)]


def _separates_sections(group: Sequence[_RankedEntry], column: int) -> bool:
    """Checks that a column is constant within each section but differs between sections."""
    ranks_by_section: dict[int | None, set[Rank]] = {}
    for ranked in group:
        ranks_by_section.setdefault(ranked.section, set()).add(ranked.ranks[column])
    return len(ranks_by_section) > 1 and all(len(ranks) == 1 for ranks in ranks_by_section.values())


def _section_sizes(group: Sequence[_RankedEntry], column: int, rank: Rank) -> Apart | None:
    """Returns the size of each section if all sections differ by it."""
    ranks = {ranked.section: ranked.ranks[column] for ranked in group}
    numbers = ((index, size) for index, (kind, size) in ranks.items() if kind == 1)
    sizes = {index: size for index, size in numbers if index is not None}
    if len(set(ranks.values())) < len(ranks) or len(sizes) < len(ranks) or rank[0] != 1:
        return None
    return Apart(sizes, rank[1])


Headers = Mapping[str, TuningHeader]


# Families beside policy selectors, for the dispatchers of older versions


def older(cub: Cub) -> Cub:
    """Returns the tree as its older dispatchers see it."""
    return cub.model_copy(update={"dialect": "specializations"})


def beside(benchmark: str, cub: Cub, headers: Headers) -> Site | None:
    """Returns the site of the families that decide a benchmark for older dispatchers, if any."""
    version = cub.bindings
    try:
        algorithm, site = site_of(benchmark_of(benchmark, version), version, "specializations")
    except InputError:
        return None
    families = algorithm.families_at(site, headers.values())
    return site if any(family.specializations for _, family in families) else None


def is_read(site: Site | None, headers: Headers) -> bool:
    """Tells whether policies still read the families; otherwise their values cannot be queried."""
    if site is None:
        return False
    return any(chain.namespace == site.scope for chain in headers[site.header].chains)


@dataclass(frozen=True, slots=True)
class _Row:
    """A member on a line of its own."""

    line: int
    left: str
    """The text before the `=`, from the start of the line, without trailing white space."""
    gap: Span
    """The white space before the `=`."""
    old: str
    new: str


# Changes of members, with realigned `=` signs


def member_changes(text: Text, entry: Entry, values: Mapping[str, str]) -> list[Change]:
    """Returns the changes that give members new values, if they differ."""
    new = {
        member.name: like(member.spelling, values[member.name])
        for member in entry.members
        if member.name in values and not same(member, values[member.name])
    }
    changes = [(m.value_span, new[m.name]) for m in entry.members if m.name in new]
    for rows in _groups([_row(text, m, new.get(m.name, m.spelling)) for m in entry.members]):
        changes += _realigned(rows)
    return changes


def _row(text: Text, member: Member, new_spelling: str) -> _Row | None:
    data, start = text.data, line_start(text.data, member.span.start)
    equals = text.code.rfind(b"=", member.span.start, member.value_span.start)
    is_first = not data[start : member.span.start].strip()
    if equals < 0 or not is_first or member.span.end != line_end(data, start):
        return None
    left = data[start:equals].decode().rstrip()
    gap = Span(start + len(left), equals)
    return _Row(text.line(start), left, gap, member.spelling, new_spelling)


def _groups(rows: Sequence[_Row | None]) -> Iterator[list[_Row]]:
    """Groups rows on consecutive lines, which clang-format aligns."""
    lines_by_index = enumerate(rows)
    for _, run in groupby(lines_by_index, lambda pair: pair[1] and pair[1].line - pair[0]):
        if group := [row for _, row in run if row]:
            yield group


def _realigned(rows: Sequence[_Row]) -> Iterator[Change]:
    """Adjusts the white space before each `=` if the rows were aligned as by clang-format."""
    before = widths([(row.left, row.old) for row in rows])
    after = widths([(row.left, row.new) for row in rows])
    current = [len(row.left) + row.gap.end - row.gap.start - 1 for row in rows]
    for row, old_width, new_width in zip(rows, before, after, strict=True):
        if before == current and old_width != new_width:
            yield row.gap, " " * (new_width - len(row.left) + 1)


_TEMPLATE = re.compile(rb"\btemplate\s*<")
# "template <typename Tuning>\n    static auto select_agent_policy(int)"
_HEAD = re.compile(rb"template\s*<\s*(?:typename|class)\s+(\w+)\s*>\s*(.*?)\bauto\b", re.DOTALL)
_COMMENT_LINES = re.compile(rb"(?:^[ \t]*//[^\n]*\n)+[ \t]*\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Overload:
    """`template <typename Tuning> static auto select_agent_policy(long) -> …;`."""

    span: Span
    returns: Span
    """The text between the arrow and the semicolon."""


# Overloads that read a member which a family's entries lacked, with a fallback


def find_overload(code: bytes, scope: Span, name: str, parameter: str) -> Overload | None:
    """Finds the last overload of a selection function in a scope."""
    declares = rb"\b%b\s*\(\s*%b\s*\)\s*->" % (name.encode(), parameter.encode())
    matches = list(re.compile(declares).finditer(code, *scope))
    heads = list(_TEMPLATE.finditer(code, scope.start, matches[-1].start())) if matches else []
    if not heads:
        return None
    semicolon = code.index(b";", matches[-1].end())
    return Overload(Span(heads[-1].start(), semicolon + 1), Span(matches[-1].end(), semicolon))


def overload_of(
    text: Text, chain: PolicyChain, policy: Policy, use: FamilyUse, parameter: str = "int"
) -> tuple[Overload | None, bool]:
    """Finds a policy's selection overload, and whether the policy itself declares it."""
    if use.selection is None:
        return None, False
    if own_overload := find_overload(text.code, policy.span, use.selection, parameter):
        return own_overload, True
    # Search only the hub's part before the policy: other policies may declare the same name.
    code = blank(text.code, [other.span for other in chain.policies])
    return find_overload(code, Span(0, policy.span.start), use.selection, parameter), False


def reading_changes(
    text: Text, family: str, overload: Overload | None, added: Mapping[str, AddedMember]
) -> list[Change]:
    """Makes a policy's selection overload read members that it does not read yet."""
    if not added:
        return []
    if overload is None:
        names = ", ".join(added)
        raise InputError(
            f"{text.path}: entries of {family} cannot have {names}: their readers are not a pair"
            " of overloads"
        )
    head = _HEAD.match(text.code, overload.span.start)
    assert head is not None, "it is a template that returns"
    tuning, specifiers = head[1].decode(), head[2].decode()
    indentation = indent_of(text.data, overload.span.start)
    changes: list[Change] = []
    declared = ""
    for name, member in added.items():
        if re.compile(rb"\bselect_%b\b" % name.encode()).search(text.code, *overload.returns):
            continue
        call = f"decltype(select_{name}<{tuning}>(0))"
        call = call if member.type == "using" else f"{call}::value"
        changes.append((_default_argument(text, family, overload, name, member), call))
        declared += _declaration(name, member, tuning, specifiers, len(indentation))
    if declared:
        offset = comment_start(text, overload.span)
        lines = indent(f"{declared}\n", indentation)
        changes.append((Span(offset, offset), lines))
    return changes


def _default_argument(
    text: Text, family: str, overload: Overload, name: str, member: AddedMember
) -> Span:
    """Finds the argument that holds the default of all entries."""
    code = text.code
    opening = code.find(b"<", *overload.returns)
    closing = closing_angle(code, opening) if opening >= 0 else None
    spans = split_list(code, opening + 1, closing) if closing else []
    matching = spelled_as(code, spans, member.default)
    if len(matching) != 1:
        raise InputError(
            f"{text.path}:{text.line(overload.span.start)}: entries of {family} cannot have"
            f" {name}: {member.default} is not an argument of their readers"
        )
    return matching[0]


def _declaration(
    name: str, member: AddedMember, tuning: str, specifiers: str, indentation: int
) -> str:
    context: dict[str, object] = {
        "member": name,
        "words": name.replace("_", " "),
        "type": member.type,
        "default": member.default,
        "tuning": tuning,
        "before": specifiers,
    }
    rows = fill("edit/added_member.h.j2", {**context, "wrapped": [False, False]}).splitlines()
    wrapped = [indentation + len(row) > WIDTH for row in rows if "select_" in row]
    return fill("edit/added_member.h.j2", {**context, "wrapped": wrapped})


def comment_start(text: Text, declaration: Span) -> int:
    """Returns the start of the comment above a declaration."""
    start = line_start(text.data, declaration.start)
    comment_lines = _COMMENT_LINES.search(text.data, 0, start)
    return comment_lines.start() if comment_lines else start


def policies_that_read(
    chains: Sequence[PolicyChain], namespace: str, family: str
) -> Iterator[tuple[PolicyChain, Policy, FamilyUse]]:
    """Finds the policies that read a family, and their uses of it."""
    for chain in chains:
        for policy in chain.policies if chain.namespace == namespace else ():
            yield from ((chain, policy, use) for use in policy.uses if use.family == family)
