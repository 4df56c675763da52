"""What an entry inherits, and what would be there without it."""

from collections.abc import Mapping

from policygen.model.tuning import Entry, Family, Value
from policygen.proof.lint.keys import (
    mentions,
    normal,
    overlap,
    parameter_names,
    split_template,
)
from policygen.proof.lint.subject import Subject

Values = dict[str, Value]


def inherited(subject: Subject) -> Values | None:
    """The values that an entry's base gives; none where the source alone does not tell."""
    return _base_values(subject.entry, {}, subject)


def forwarded(subject: Subject) -> Values:
    """Values that an entry hands to its base: `sm90_tuning_vals<float, 128, 24, 688, 1140>`."""
    base = _base(subject.entry, {}, subject)
    return {} if base is None else _given(*base)


def without(subject: Subject) -> Values | None:
    """What the primary template gives where an entry does; none where another one may match."""
    family, entry = subject.family, subject.entry
    others = (e for e in family.specializations if e is not entry)
    primary = next((e for e in family.entries if e.kind == "primary"), None)
    if primary is None or any(overlap(entry, other) for other in others):
        return None
    return _values(primary, _bind(family, entry.args), subject, (entry,))


def _values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...]
) -> Values | None:
    """All values of an entry whose template parameters are known."""
    base = _base_values(entry, args, subject, below) if entry.inherits else {}
    return None if base is None else base | _own(entry, args)


def _base_values(
    entry: Entry, args: Mapping[str, str], subject: Subject, below: tuple[Entry, ...] = ()
) -> Values | None:
    """The values of a base; none for one that comes to inherit itself."""
    base = _base(entry, args, subject)
    if base is None or any(base[0] is known for known in (entry, *below)):
        return None
    return _values(*base, subject, (entry, *below))


def _own(entry: Entry, args: Mapping[str, str]) -> Values:
    """The values of an entry, and those that its arguments are."""
    return entry.values | _given(entry, args)


def _given(entry: Entry, args: Mapping[str, str]) -> Values:
    return {
        member.name: int(arg)
        for member in entry.members
        if member.value is None and (arg := args.get(member.spelling, "")).isdecimal()
    }


def _base(
    entry: Entry, args: Mapping[str, str], subject: Subject
) -> tuple[Entry, Mapping[str, str]] | None:
    """The one entry that a base is, with its arguments; none where several may be it."""
    name, given = split_template(entry.inherits or "")
    given = tuple(args.get(arg, arg) for arg in given)
    family = _family(name, subject)
    if family is None:
        return None
    open_names = () if args else parameter_names(entry)
    matching: list[Entry] = []
    for candidate in family.specializations:
        fits = _fits(candidate, given, open_names)
        if fits is None:
            return None
        matching += [candidate] if fits else []
    if not matching:
        primary = next((e for e in family.entries if e.kind == "primary"), None)
        return None if primary is None else (primary, _bind(family, given))
    return (matching[0], {}) if len(matching) == 1 else None


def _family(name: str, subject: Subject) -> Family | None:
    place = (subject.family.header, subject.family.namespace, name)
    found = [f for f in subject.families if (f.header, f.namespace, f.name) == place]
    return found[0] if len(found) == 1 else None


def _fits(candidate: Entry, given: tuple[str, ...], open_names: tuple[str, ...]) -> bool | None:
    """Whether a specialization is for the given arguments; none where they do not tell."""
    if len(candidate.args) != len(given):
        return None
    names = parameter_names(candidate)
    certain = True
    for own, arg in zip(candidate.args, given, strict=True):
        if own in names or normal(own) == normal(arg):
            continue
        if not (mentions(own, names) or mentions(arg, open_names)):
            return False
        certain = False
    return True if certain else None


def _bind(family: Family, args: tuple[str, ...]) -> Mapping[str, str]:
    """The parameters of a primary template with what is given for them."""
    return {p.name: arg for p, arg in zip(family.parameters, args, strict=False) if p.name}
