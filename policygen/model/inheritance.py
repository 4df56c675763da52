"""What an entry gets from the one that it inherits from."""

from policygen.model.base import Span
from policygen.model.tuning import Entry, Family, TuningHeader


def all_members(header: TuningHeader, family: Family, entry: Entry) -> frozenset[str] | None:
    """The names that an entry has, its own and those that it inherits.

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
    """The entry that another one inherits from: the closest that fits, else the primary."""
    assert entry.inherits
    # "sm80_tuning<T, 4>", "public detail::sm80_tuning<T, 4>"
    name, _, rest = entry.inherits.partition("<")
    name = name.rpartition("::")[2].strip().rpartition(" ")[2]
    args = [_plain(arg) for arg in _split(rest.rpartition(">")[0])]
    for other in header.families:
        if other.namespace != family.namespace or other.name != name:
            continue
        live = [e for e in other.entries if not e.disabled and e is not entry]
        fitting = [(free, e) for e in live if (free := _free(e, args)) is not None]
        if fitting:
            return other, min(fitting, key=lambda pair: pair[0])[1]
    return None


def parameter_names(entry: Entry) -> frozenset[str]:
    """What an entry's own template parameters are called: arguments that may be anything."""
    # "class KeyT", "typename T", "class... Ts"
    return frozenset(text.rsplit(" ", 1)[-1].strip(".&* ") for text in entry.template_parameters)


def _free(entry: Entry, args: list[str]) -> int | None:
    """How many arguments an entry leaves open, when it fits; the primary leaves all open."""
    if entry.kind == "primary":
        return len(args) + 1
    own = parameter_names(entry)
    free = 0
    for mine, asked in zip(entry.args, args, strict=False):
        if mine in own:
            free += 1
        elif _plain(mine) != asked:
            return None
    return free


def _plain(args: str) -> str:
    return "".join(args.split())


def _split(args: str) -> list[str]:
    """Arguments at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for char in args:
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
