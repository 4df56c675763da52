"""Finds what an entry inherits from, and the members that it has by it."""

from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.lint.keys import normal, parameter_names, split_template


def all_members(header: TuningHeader, family: Family, entry: Entry) -> frozenset[str] | None:
    """Lists the members that an entry has, its own and those that it inherits.

    None where it inherits from something that is no tuning of the header: who knows what that has.
    """
    found = [entry, *(base for _, base in bases_of(header, family, entry))]
    if found[-1].inherits and base_of(header, family, found[-1]) is None:
        return None
    return frozenset(member.name for one in found for member in one.members)


def bases_of(header: TuningHeader, family: Family, entry: Entry) -> list[tuple[Family, Entry]]:
    """Lists what an entry inherits from, the closest first."""
    found: list[tuple[Family, Entry]] = []
    seen = {entry.span}
    place = base_of(header, family, entry) if entry.inherits else None
    while place and place[1].span not in seen:
        found.append(place)
        seen.add(place[1].span)
        place = base_of(header, *place) if place[1].inherits else None
    return found


def base_of(header: TuningHeader, family: Family, entry: Entry) -> tuple[Family, Entry] | None:
    """Finds the entry that another one inherits from: the closest that fits, else the primary."""
    name, args = split_template((entry.inherits or "").removeprefix("public "))
    for other in header.families:
        if other.namespace != family.namespace or other.name != name:
            continue
        live = [e for e in other.entries if not e.disabled and e is not entry]
        fitting = [(free, e) for e in live if (free := _free(e, args)) is not None]
        if fitting:
            return other, min(fitting, key=lambda pair: pair[0])[1]
    return None


def _free(entry: Entry, args: tuple[str, ...]) -> int | None:
    """Counts the arguments that an entry leaves open, when it fits; the primary leaves all open."""
    if entry.kind == "primary":
        return len(args) + 1
    own = parameter_names(entry)
    pairs = list(zip(entry.args, args, strict=False))
    if any(mine not in own and normal(mine) != normal(asked) for mine, asked in pairs):
        return None
    return sum(mine in own for mine, _ in pairs)
