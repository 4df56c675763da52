"""Finds what an entry inherits from, and the members that it has by it."""

from policygen.model.base import Span
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.lint.keys import normal, parameter_names, split_template


def all_members(header: TuningHeader, family: Family, entry: Entry) -> frozenset[str] | None:
    """Lists the members that an entry has, its own and those that it inherits.

    None where it inherits from something that is no tuning of the header: who knows what that has.
    """
    names: set[str] = set()
    seen: set[Span] = set()
    place: tuple[Family, Entry] | None = (family, entry)
    while place and place[1].span not in seen:
        family, entry = place
        seen.add(entry.span)
        names |= {member.name for member in entry.members}
        if not entry.inherits:
            break
        place = base_of(header, family, entry)
        if place is None:
            return None
    return frozenset(names)


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
