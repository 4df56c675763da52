"""Explains why an entry is never selected."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.bindings.load import types
from policygen.model.reach import Cause, Unreachable
from policygen.model.selection import FamilyKey, Selected
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.answers import plain
from policygen.proof.inheritance import all_members
from policygen.proof.lint.keys import parameter_names

OF_RETURNS = (
    "no policy shows its values: no workload has what it asks for, a return before it takes them,"
    " or what it returns is not used"
)


@dataclass(frozen=True, slots=True)
class KeysSeen:
    """The keys of a site's workloads, by family."""

    keys: dict[str, dict[tuple[int, tuple[str, ...]], str]]
    """Entry and arguments → the first workload that led there."""
    shown: dict[str, set[tuple[str, ...]]]
    """Arguments of keys whose entry was selected."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """Where each entry stands."""

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
        return "condition", OF_RETURNS, None
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
    shown = seen.shown.get(family.name, set())
    for position, literal in _literals(entry):
        values = sorted({args[position] for args in shown if position < len(args)})
        if shown and literal not in values:
            name = family.parameters[position].label
            return f"the policy asks the family only where {name} is {_either(values)}"
    return "its key leads to it, and the policy does not take its values"


def _unmatched(
    family: Family,
    entry: Entry,
    keys: dict[tuple[int, tuple[str, ...]], str],
    lines: Mapping[int, int],
) -> tuple[Cause, str]:
    literals = list(_literals(entry))
    tried = {args: number for number, args in keys}
    for position, literal in literals:
        values = sorted({args[position] for args in tried})
        if literal not in values:
            name = family.parameters[position].label
            return "argument", f"{name} is never {literal}; it is {_either(values)}"
    for args, number in tried.items():
        if all(args[position] == literal for position, literal in literals) and number >= 0:
            where = f", that in line {lines[number]}," if number in lines else ""
            return "shadowed", f"another entry of the family{where} is taken for each of its keys"
    for index, (left, one) in enumerate(literals):
        for right, other in literals[index + 1 :]:
            if not any(args[left] == one and args[right] == other for args in tried):
                name, with_name = (family.parameters[i].label for i in (left, right))
                together = _either(sorted({args[right] for args in tried if args[left] == one}))
                never = f"{name} {one} never comes with {with_name} {other}"
                return "key", f"{never}; it comes with {together}"
    return "key", "no workload gives its arguments together"


def _literals(entry: Entry) -> Iterator[tuple[int, str]]:
    """The arguments that are fixed, as the compiler prints them."""
    own = parameter_names(entry)
    spellings = types().spellings
    for position, arg in enumerate(entry.args):
        if arg not in own:
            text = plain(arg)
            yield position, spellings.get(text, text)


def _either(values: Sequence[str]) -> str:
    if len(values) < 2:
        return "".join(values) or "nothing"
    return f"{', '.join(values[:-1])} or {values[-1]}"
