"""Where an entry belongs among those of its family, and which of them it takes after."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from policygen.model.entry_text import Slot
from policygen.model.tuning import Entry, Family

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
