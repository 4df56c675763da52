"""Where an entry belongs among those of its family, and which of them it takes after."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Known:
    """An entry and its key."""

    entry: Entry
    key: Key


def neighbour(family: Family, key: Key) -> Neighbour | None:
    """The closest of the live entries, in the order in which the family has its keys."""
    # An entry that leaves an argument to its default is no measure of where a whole key goes.
    entries = [entry for entry in family.specializations if len(entry.args) == len(key)]
    if not entries:
        return None
    closest = _closest(family, [_Known(entry, entry.slots) for entry in entries], key)
    if closest.before:
        return closest
    return Neighbour(_last_twin(family, entries, closest.entry), before=False)


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
        trait = _dividing(group, traits) or _strange(group, traits, key)
        if trait is None:
            return Neighbour(group[-1].entry, before=False)
        wanted = trait(key)
        same = [one for one in group if trait(one.key) == wanted]
        if not same:
            return _beside(group, trait, wanted)
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
