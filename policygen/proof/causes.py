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
"""The reason for entries whose condition is never met and that are not returns, by dialect."""
_BOOLEAN_LITERALS = {"0": "false", "1": "true"}
"""The compiler prints booleans as numbers; headers use these literals."""


@dataclass(frozen=True, slots=True)
class KeysSeen:
    """The keys of a site's workloads, by family."""

    keys: dict[str, dict[tuple[int, tuple[str, ...]], str]]
    """Entry number and arguments → the first workload with that key."""
    shown: dict[str, set[tuple[str, ...]]]
    """Arguments of keys whose entry was selected."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """The line of each entry."""
    unmet: str = OF_RETURNS
    """The reason to give for a condition that no workload meets."""

    def look(self, row: Selected, read: Collection[str], workload: str) -> None:
        """Records a workload's keys in the families that its policy reads."""
        for family, key in row.keys.items():
            if family in read:
                self.note(family, key, row.number, workload)

    def note(self, family: str, key: FamilyKey, shown: int | None, workload: str) -> None:
        """Records a workload's key in a family, and the entry that the policy shows."""
        self.keys.setdefault(family, {}).setdefault((key.number, key.args), workload)
        if shown is not None and shown == key.number:
            self.shown.setdefault(family, set()).add(key.args)


def explain(
    header: TuningHeader, family: Family, entry: Entry, number: int, seen: KeysSeen
) -> Unreachable:
    """Returns the reason, with an example if a workload has the entry's key."""
    cause, reason, example = _cause(header, family, entry, number, seen)
    return Unreachable.of(family, entry, cause=cause, reason=reason, example=example)


def _cause(
    header: TuningHeader, family: Family, entry: Entry, number: int, seen: KeysSeen
) -> tuple[Cause, str, str | None]:
    if entry.kind == "branch":
        return "condition", seen.unmet, None
    keys = seen.keys.get(family.name, {})
    example = next(
        (text for (entry_number, _), text in keys.items() if entry_number == number), None
    )
    missing = _missing(header, family, entry)
    if missing:
        return (*_missing_cause(entry, missing), example)
    if example is not None:
        return "gate", _gate_reason(family, entry, seen), example
    return (*_unmatched_cause(family, entry, keys, seen.lines), None)


def _missing(header: TuningHeader, family: Family, entry: Entry) -> tuple[str, ...]:
    """Returns the members that the selection reads but the entry lacks."""
    reads: dict[str, None] = {}
    for chain in header.chains:
        for policy in chain.policies if chain.namespace == family.namespace else ():
            for use in policy.uses:
                if use.family == family.name:
                    reads |= dict.fromkeys(use.reads)
    members = all_members(header, family, entry)
    return () if members is None else tuple(name for name in reads if name not in members)


def _missing_cause(entry: Entry, missing: Sequence[str]) -> tuple[Cause, str]:
    names = ", ".join(missing)
    if entry.inherits:
        return "inherits without", (
            f"inherits from {entry.inherits}, which has no {names}; the selection needs it"
        )
    if not entry.members:
        return "empty", "has no members: whatever has this key gets the fallback"
    return "missing member", f"has no {names}; the selection needs it"


def _gate_reason(family: Family, entry: Entry, seen: KeysSeen) -> str:
    """Returns what the keys of selected entries have in common and this key lacks."""
    shown = [*seen.shown.get(family.name, set())]
    literals = _literals(entry, shown)
    lacking = _unseen_positions(literals, shown) if shown else []
    if lacking:
        family_lines = {specialization.line for specialization in family.specializations}
        keys = seen.keys.get(family.name, {})
        refused = [
            args
            for number, args in keys
            if args not in shown and seen.lines.get(number) in family_lines
        ]
        alone = [position for position in lacking if _decides(position, literals, shown)]
        # An argument value that some selected key has is not the reason for refusing others.
        distinguishing = [
            position
            for position in lacking
            if not {*_values(position, refused)} & {*_values(position, shown)}
        ]
        alone += distinguishing if len(distinguishing) == 1 else []
        conditions = [
            f"{family.parameters[position].label} is {_join_words(_values(position, shown))}"
            for position in alone[:1] or lacking
        ]
        return f"the policy asks the family only where {' and '.join(conditions)}"
    return "its key leads to it, and the policy does not take its values"


def _unmatched_cause(
    family: Family,
    entry: Entry,
    keys: dict[tuple[int, tuple[str, ...]], str],
    lines: Mapping[int, int],
) -> tuple[Cause, str]:
    """Explains why no key matches the entry: one fact if it suffices, else several."""
    numbers = {args: number for number, args in keys}
    tried = [*numbers]
    literals = _literals(entry, tried)
    for args in tried:
        if not _differing_positions(literals, args) and numbers[args] >= 0:
            line = lines.get(numbers[args])
            suffix = "" if line is None else f", that in line {line},"
            return "shadowed", f"another entry of the family{suffix} is taken for each of its keys"
    never = _unseen_positions(literals, tried)
    if never and (not tried or (len(never) == 1 and _decides(never[0], literals, tried))):
        name, values = family.parameters[never[0]].label, _values(never[0], tried)
        return "argument", f"{name} is never {literals[never[0]]}; it is {_join_words(values)}"
    nearest = min(tried, key=lambda args: len(_differing_positions(literals, args)), default=())
    differing = _differing_positions(literals, nearest) if nearest else []
    if len(differing) > 1:
        facts = [
            f"{family.parameters[position].label} {nearest[position]} for {literals[position]}"
            for position in differing
        ]
        several = f"several facts exclude it: the nearest workload has {_join_words(facts, 'and')}"
        return "argument" if never else "key", several
    return "key", _never_together(family, literals, tried)


def _never_together(
    family: Family, literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]
) -> str:
    """Finds two arguments that never occur together although either would decide."""
    for first, second in combinations(literals, 2):
        companions = sorted({args[second] for args in tried if args[first] == literals[first]})
        decides = any(_decides(position, literals, tried) for position in (first, second))
        if decides and literals[second] not in companions:
            name, with_name = (family.parameters[index].label for index in (first, second))
            never = f"{name} {literals[first]} never comes with {with_name} {literals[second]}"
            return f"{never}; it comes with {_join_words(companions)}"
    return "no workload gives its arguments together"


def _literals(entry: Entry, tried: Sequence[tuple[str, ...]]) -> dict[int, str]:
    """Returns the fixed arguments by position, as the compiler prints them."""
    own = parameter_names(entry)
    literals = {}
    for position, arg in enumerate(entry.args):
        if arg not in own:
            text = plain(arg)
            if text in _BOOLEAN_LITERALS and {*_values(position, tried)} & {
                *_BOOLEAN_LITERALS.values()
            }:
                text = _BOOLEAN_LITERALS[text]
            literals[position] = types().spellings.get(text, text)
    return literals


def _values(position: int, tried: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the values of an argument among the tried keys."""
    return sorted({args[position] for args in tried if position < len(args)})


def _unseen_positions(literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> list[int]:
    """Returns the positions of arguments that no key has."""
    return [
        position
        for position, literal in literals.items()
        if literal not in _values(position, tried)
    ]


def _differing_positions(literals: Mapping[int, str], args: Sequence[str]) -> list[int]:
    """Returns the positions of arguments that a key does not have."""
    return [position for position, literal in literals.items() if args[position] != literal]


def _decides(position: int, literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> bool:
    """Whether some key lacks only this argument, and would lead to the entry with it."""
    return any(_differing_positions(literals, args) == [position] for args in tried)


def _join_words(values: Sequence[str], last: str = "or") -> str:
    if len(values) < 2:
        return "".join(values) or "nothing"
    return f"{', '.join(values[:-1])} {last} {values[-1]}"


# Follows inheritance between entries.


def all_members(header: TuningHeader, family: Family, entry: Entry) -> frozenset[str] | None:
    """Returns the members that an entry has, including inherited ones.

    None if it inherits from something outside the header's tunings, whose members are unknown.
    """
    ancestors = [entry, *(base for _, base in bases_of(header, family, entry))]
    if ancestors[-1].inherits and base_of(header, family, ancestors[-1]) is None:
        return None
    return frozenset(member.name for ancestor in ancestors for member in ancestor.members)


def bases_of(header: TuningHeader, family: Family, entry: Entry) -> list[tuple[Family, Entry]]:
    """Lists what an entry inherits from, closest first."""
    bases: list[tuple[Family, Entry]] = []
    seen = {entry.span}
    base = base_of(header, family, entry) if entry.inherits else None
    while base and base[1].span not in seen:
        bases.append(base)
        seen.add(base[1].span)
        base = base_of(header, *base) if base[1].inherits else None
    return bases


def base_of(header: TuningHeader, family: Family, entry: Entry) -> tuple[Family, Entry] | None:
    """Finds the entry that another one inherits from: the best match, else the primary."""
    name, args = split_template((entry.inherits or "").removeprefix("public "))
    for candidate_family in header.families:
        if candidate_family.namespace != family.namespace or candidate_family.name != name:
            continue
        live = [
            candidate
            for candidate in candidate_family.entries
            if not candidate.disabled and candidate is not entry
        ]
        fitting = [
            (free, candidate)
            for candidate in live
            if (free := _open_arguments(candidate, args)) is not None
        ]
        if fitting:
            return candidate_family, min(fitting, key=lambda pair: pair[0])[1]
    return None


def _open_arguments(entry: Entry, args: tuple[str, ...]) -> int | None:
    """Counts the arguments that a matching entry leaves open; the primary leaves all open."""
    if entry.kind == "primary":
        return len(args) + 1
    own = parameter_names(entry)
    pairs = list(zip(entry.args, args, strict=False))
    if any(own_arg not in own and normal(own_arg) != normal(arg) for own_arg, arg in pairs):
        return None
    return sum(own_arg in own for own_arg, _ in pairs)
