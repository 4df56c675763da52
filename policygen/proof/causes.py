"""Explains why an entry is never selected."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from policygen.bindings.load import types
from policygen.model.audits import Cause, Unreachable
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import Dialect
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.answers import plain
from policygen.proof.lint_subject import normal, parameter_names, split_template

OF_RETURNS = (
    "no policy shows its values: no workload has what it asks for, a return before it takes them,"
    " or what it returns is not used"
)
UNMET: Mapping[Dialect, str] = {
    "configs": "no types that were tried get its values: none have all that it asks for, or another"
    " entry takes them",
}
"""Why a condition is never met that is no return's, as far as it is known."""
_TRUTH = {"0": "false", "1": "true"}
"""How headers spell what the compiler prints as the other."""


@dataclass(frozen=True, slots=True)
class KeysSeen:
    """The keys of a site's workloads, by family."""

    keys: dict[str, dict[tuple[int, tuple[str, ...]], str]]
    """Entry and arguments → the first workload that led there."""
    shown: dict[str, set[tuple[str, ...]]]
    """Arguments of keys whose entry was selected."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """Where each entry stands."""
    unmet: str = OF_RETURNS
    """What is said of a condition that no workload meets."""

    def look(self, row: Selected, read: Collection[str], workload: str) -> None:
        """Notes the keys of a workload in the families that its policy reads."""
        for family, key in row.keys.items():
            if family in read:
                self.note(family, key, row.number, workload)

    def note(self, family: str, key: FamilyKey, shown: int | None, workload: str) -> None:
        """Notes a workload's key in a family, and the entry that shows in the policy."""
        self.keys.setdefault(family, {}).setdefault((key.number, key.args), workload)
        if shown is not None and shown == key.number:
            self.shown.setdefault(family, set()).add(key.args)


def explain(
    header: TuningHeader, family: Family, entry: Entry, number: int, seen: KeysSeen
) -> Unreachable:
    """Gives the reason, with an example where a workload has the entry's key."""
    cause, reason, example = _cause(header, family, entry, number, seen)
    return Unreachable.of(family, entry, cause=cause, reason=reason, example=example)


def _cause(
    header: TuningHeader, family: Family, entry: Entry, number: int, seen: KeysSeen
) -> tuple[Cause, str, str | None]:
    if entry.kind == "branch":
        return "condition", seen.unmet, None
    keys = seen.keys.get(family.name, {})
    example = next((text for (found, _), text in keys.items() if found == number), None)
    missing = _missing(header, family, entry)
    if missing:
        return (*_lacking(entry, missing), example)
    if example is not None:
        return "gate", _gate(family, entry, seen), example
    return (*_unmatched(family, entry, keys, seen.lines), None)


def _missing(header: TuningHeader, family: Family, entry: Entry) -> tuple[str, ...]:
    """Members that the selection names and the entry has not."""
    reads: dict[str, None] = {}
    for chain in header.chains:
        for policy in chain.policies if chain.namespace == family.namespace else ():
            for use in policy.uses:
                if use.family == family.name:
                    reads |= dict.fromkeys(use.reads)
    has = all_members(header, family, entry)
    return () if has is None else tuple(name for name in reads if name not in has)


def _lacking(entry: Entry, missing: Sequence[str]) -> tuple[Cause, str]:
    names = ", ".join(missing)
    if entry.inherits:
        return "inherits without", (
            f"inherits from {entry.inherits}, which has no {names}; the selection needs it"
        )
    if not entry.members:
        return "empty", "has no members: whatever has this key gets the fallback"
    return "missing member", f"has no {names}; the selection needs it"


def _gate(family: Family, entry: Entry, seen: KeysSeen) -> str:
    """What the keys whose entries are selected have in common, and this one lacks."""
    shown = [*seen.shown.get(family.name, set())]
    wanted = _literals(entry, shown)
    lacking = _never(wanted, shown) if shown else []
    if lacking:
        own = {one.line for one in family.specializations}
        keys = seen.keys.get(family.name, {})
        refused = [a for n, a in keys if a not in shown and seen.lines.get(n) in own]
        alone = [place for place in lacking if _decides(place, wanted, shown)]
        # What is taken with a value is not refused for it.
        told_apart = [p for p in lacking if not {*_values(p, refused)} & {*_values(p, shown)}]
        alone += told_apart if len(told_apart) == 1 else []
        told = [
            f"{family.parameters[place].label} is {_either(_values(place, shown))}"
            for place in alone[:1] or lacking
        ]
        return f"the policy asks the family only where {' and '.join(told)}"
    return "its key leads to it, and the policy does not take its values"


def _unmatched(
    family: Family,
    entry: Entry,
    keys: dict[tuple[int, tuple[str, ...]], str],
    lines: Mapping[int, int],
) -> tuple[Cause, str]:
    """What keeps every key from the entry: one fact where that one alone does it, else several."""
    numbers = {args: number for number, args in keys}
    tried = [*numbers]
    wanted = _literals(entry, tried)
    for args in tried:
        if not _differing(wanted, args) and numbers[args] >= 0:
            line = lines.get(numbers[args])
            where = "" if line is None else f", that in line {line},"
            return "shadowed", f"another entry of the family{where} is taken for each of its keys"
    never = _never(wanted, tried)
    if never and (not tried or (len(never) == 1 and _decides(never[0], wanted, tried))):
        name, values = family.parameters[never[0]].label, _values(never[0], tried)
        return "argument", f"{name} is never {wanted[never[0]]}; it is {_either(values)}"
    nearest = min(tried, key=lambda args: len(_differing(wanted, args)), default=())
    differing = _differing(wanted, nearest) if nearest else []
    if len(differing) > 1:
        told = [f"{family.parameters[p].label} {nearest[p]} for {wanted[p]}" for p in differing]
        several = f"several facts exclude it: the nearest workload has {_either(told, 'and')}"
        return "argument" if never else "key", several
    return "key", _apart(family, wanted, tried)


def _apart(family: Family, wanted: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> str:
    """Two arguments that never come together, where either decides."""
    for left, right in combinations(wanted, 2):
        beside = sorted({args[right] for args in tried if args[left] == wanted[left]})
        decides = any(_decides(place, wanted, tried) for place in (left, right))
        if decides and wanted[right] not in beside:
            name, with_name = (family.parameters[i].label for i in (left, right))
            never = f"{name} {wanted[left]} never comes with {with_name} {wanted[right]}"
            return f"{never}; it comes with {_either(beside)}"
    return "no workload gives its arguments together"


def _literals(entry: Entry, tried: Sequence[tuple[str, ...]]) -> dict[int, str]:
    """The arguments that are fixed, by position, as the compiler prints them."""
    own = parameter_names(entry)
    found = {}
    for position, arg in enumerate(entry.args):
        if arg not in own:
            text = plain(arg)
            if text in _TRUTH and {*_values(position, tried)} & {*_TRUTH.values()}:
                text = _TRUTH[text]
            found[position] = types().spellings.get(text, text)
    return found


def _values(position: int, tried: Sequence[tuple[str, ...]]) -> list[str]:
    """What an argument is, in keys that were tried."""
    return sorted({args[position] for args in tried if position < len(args)})


def _never(wanted: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> list[int]:
    """The arguments that no key has."""
    return [place for place, literal in wanted.items() if literal not in _values(place, tried)]


def _differing(wanted: Mapping[int, str], args: Sequence[str]) -> list[int]:
    """The arguments that a key does not have."""
    return [place for place, literal in wanted.items() if args[place] != literal]


def _decides(place: int, wanted: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> bool:
    """Whether some key lacks one argument alone: with that one, it would lead to the entry."""
    return any(_differing(wanted, args) == [place] for args in tried)


def _either(values: Sequence[str], last: str = "or") -> str:
    if len(values) < 2:
        return "".join(values) or "nothing"
    return f"{', '.join(values[:-1])} {last} {values[-1]}"


# Finds what an entry inherits from, and the members that it has by it.


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
