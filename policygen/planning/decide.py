"""What to write for the workloads of one entry: one variant for all, or one for each type."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.keys import fits, type_name
from policygen.dialects.selectors.nearest import ANY_OTHER
from policygen.errors import InputError
from policygen.model.entry_text import Content
from policygen.model.plan import Action, Options, PlanDecision
from policygen.model.results import ScoredVariant
from policygen.model.tuning import Entry
from policygen.planning.cases import Case, Spot
from policygen.planning.content import kept_content, kept_return, label, values_content
from policygen.planning.keys import (
    EntryKey,
    can_name,
    too_general,
)
from policygen.planning.measured import action, in_line, numbers
from policygen.results.together import Together

ChooseTogether = Callable[[Sequence[Case]], Together]
# "int32", "uint8": what a selector calls them
_INTEGER = re.compile(r"u?int\d+")
INTEGERS = ("int", "long", "short", "signed char")


@dataclass(frozen=True, slots=True)
class Write:
    """One entry to write, and the workloads that it is for."""

    spots: tuple[Spot, ...]
    content: Content
    entry: Entry | None
    """The one whose values change; none for one that is added."""
    key: EntryKey | None
    reason: str

    def takes(self, case: Case) -> bool:
        """Whether it decides a workload, or may, where that has no entry of its own."""
        if (new := self.spots[0].to.new) and case.header == self.spots[0].header:
            return new.takes(case.told)
        if case.to.place != self.spots[0].to.place:
            return False
        if self.key is None:
            return case.entry is self.entry
        return fits(case.to.family.parameters, self.key.slots, case.args)


@dataclass(slots=True)
class Outcome:
    """What becomes of some cases."""

    actions: list[Action] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """What becomes of other cases, too."""
        self.actions += other.actions
        self.writes += other.writes


@dataclass(frozen=True, slots=True)
class Part:
    """Workloads that get the same: one variant, or what they have."""

    cases: tuple[Case, ...]
    variants: tuple[ScoredVariant, ...] = ()
    """In the order of the cases; none where no variant is better than base."""
    members: Mapping[str, str] | None = None
    """What the variants mean for an entry."""
    reasons: tuple[str, ...] = ()


def decide(cases: Sequence[Case], options: Options, together: ChooseTogether) -> Outcome:
    """The actions for all cases of one entry, and what to write for them."""
    try:
        return _decided(cases, options, together)
    except InputError as error:
        return _conflict(cases, in_line(error))


def _decided(cases: Sequence[Case], options: Options, together: ChooseTogether) -> Outcome:
    one = _part(cases, together if options.collisions == "best-worst" else _not_asked)
    if isinstance(one, Part):
        return _written(one, options)
    reason: str = one
    if options.collisions == "split" or options.narrow:
        separate = _separate(cases, together)
        if not isinstance(separate, str):
            return _by_type(*separate, options)
        last = one if options.collisions == "best-worst" else _part(cases, together)
        if isinstance(last, Part):
            return _written(last, options)
        reason = f"{separate}, and {last}"
    return _conflict(cases, reason)


def _not_asked(cases: Sequence[Case]) -> Together:
    return Together((), f"{len(cases)} workloads want different variants")


def _part(cases: Sequence[Case], together: ChooseTogether) -> Part | str:
    """What suits all of them, or why nothing does."""
    if not any(case.choice.decision == "use" for case in cases):
        return Part(tuple(cases), reasons=tuple(case.choice.reason for case in cases))
    chosen = tuple(variant for case in cases if (variant := case.measurement.chosen))
    reasons = tuple(case.choice.reason for case in cases)
    if len(chosen) < len(cases) or len({variant.variant for variant in chosen}) > 1:
        found = together(cases)
        if not found.variants:
            return found.reason
        chosen, reasons = found.variants, (found.reason,) * len(cases)
    members = []
    for case, variant in zip(cases, chosen, strict=True):
        try:
            members.append(case.members(variant.variant))
        except InputError as error:
            where = f"{_short(case, cases)}: " if len(cases) > 1 else ""
            return f"{where}{variant.variant}: {in_line(error)}"
    if any(other != members[0] for other in members):
        return "one variant means different values for each of them"
    return Part(tuple(cases), chosen, members[0], reasons)


def _written(
    part: Part, options: Options, named: EntryKey | None = None, *, pinned: bool = False
) -> Outcome:
    """A part in its entry, or in one that names its type; `pinned` where that must be written."""
    if part.members is None:
        return _kept(part, named if pinned else None)
    cases, members = part.cases, dict(part.members)
    same = all(c.has(members, v.variant) for c, v in zip(cases, part.variants, strict=True))
    if same and not pinned:
        return Outcome(_actions(part, "keep", ["the values are these already"] * len(cases)))
    entry = None if named else cases[0].entry
    key = None if entry else named or cases[0].key
    general = too_general(cases[0].to.family, key) if key and not cases[0].to.new else None
    if parameter := general:
        return _conflict(
            cases, f"an entry for {parameter} no would take every other type of this size, too"
        )
    worst = min(range(len(cases)), key=lambda i: part.variants[i].score)
    text = label(part.variants[worst], cases[worst], options)
    content = values_content(cases[0], members, text)
    write = Write(cases, content, entry, key, part.variants[worst].variant)
    if same:
        keeps = f"the values are these already; an entry for {_type_of(part, named)} keeps them"
        return Outcome(_actions(part, "keep", [keeps] * len(cases), named), [write])
    return Outcome(_actions(part, "update" if entry else "add", part.reasons, named), [write])


def _kept(part: Part, named: EntryKey | None) -> Outcome:
    """No variant is better than base: nothing to write where no broader entry takes them."""
    if named is None:
        return Outcome(_actions(part, "fallback", part.reasons))
    keeps = f"an entry for {_type_of(part, named)} keeps what it had"
    first = part.cases[0]
    content = kept_return(first) if first.to.new else kept_content(first)
    write = Write(part.cases, content, None, named, keeps)
    reasons = [f"{reason}; {keeps}" for reason in part.reasons]
    return Outcome(_actions(part, "fallback", reasons, named), [write])


def _separate(
    cases: Sequence[Case], together: ChooseTogether
) -> tuple[list[Part], int | str] | str:
    """Parts by one of the types, so that each has one variant, or why there are none.

    The first part can stay general.
    """
    reason = "they cannot be told apart by a type"
    for place in cases[0].types:
        by_type: dict[str, list[Case]] = {}
        for case in cases:
            by_type.setdefault(case.types[place], []).append(case)
        names = sorted(by_type, key=_rank)
        if len(names) < 2 or not all(_can_name(name) for name in names[1:]):
            continue
        found: list[Part] = []
        for name in names:
            part = _part(by_type[name], together)
            if isinstance(part, str):
                reason = f"an entry for {type_name(name)} alone does not help ({part})"
                break
            found.append(part)
        else:
            return found, place
    return reason


def _by_type(parts: Sequence[Part], place: int | str, options: Options) -> Outcome:
    """An entry for each type; that of the first one stays general, for all that want the same."""
    general = parts[0]
    alike = [part for part in parts if part.members == general.members]
    if general.cases[0].to.new and any(part.members is None for part in parts):
        # A new return takes all that it does not name: what shall keep its own is left to that.
        alike = [part for part in parts if part.members is None]
    outcome = Outcome()
    outcome.add(_written(_joined(alike), options))
    written = bool(outcome.writes)
    for part in parts:
        if part in alike:
            continue
        named = [case.naming(place) for case in part.cases]
        one = replace(part, cases=tuple(case for case, _ in named))
        outcome.add(_written(one, options, named[0][1], pinned=written))
    return outcome


def _joined(parts: Sequence[Part]) -> Part:
    return Part(
        tuple(case for part in parts for case in part.cases),
        tuple(variant for part in parts for variant in part.variants),
        parts[0].members,
        tuple(reason for part in parts for reason in part.reasons),
    )


def _type_of(part: Part, named: EntryKey | None) -> str:
    """The type that an entry names, besides what its key names anyway."""
    if new := part.cases[0].to.new:
        return new.facts[-1]
    general = part.cases[0].key.slots
    slots = named.slots if named else general
    return ", ".join(s for s, g in zip(slots, general, strict=True) if s and s != g)


def _rank(arg: str) -> tuple[int, int]:
    """What cannot be named first, then integers: CUB names `float`, and leaves the rest general."""
    name = type_name(arg)
    if name in INTEGERS:
        return 1, INTEGERS.index(name)
    if _INTEGER.fullmatch(name):
        return 1, 0
    return (2 if _can_name(arg) else 0), 0


def _can_name(arg: str) -> bool:
    return arg != ANY_OTHER and can_name(arg)


def _conflict(cases: Sequence[Case], reason: str) -> Outcome:
    """Nothing is written; where there are several, the reason names who wants what."""
    wanted = ", ".join(f"{_short(case, cases)} {case.choice.variant or 'base'}" for case in cases)
    text = f"{reason}: {wanted}" if len(cases) > 1 else reason
    return Outcome(
        [
            case.rejected(text)
            if case.choice.decision == "use"
            else _action(case, "fallback", case.choice.reason)
            for case in cases
        ]
    )


def _short(case: Case, among: Sequence[Case]) -> str:
    """A workload in words, without the benchmark where all are of one."""
    name = case.measurement.name
    alone = len({one.measurement.benchmark.name for one in among}) == 1
    return name.removeprefix(f"{case.measurement.benchmark.name} ") if alone else name


def _actions(
    part: Part, decision: PlanDecision, reasons: Sequence[str], named: EntryKey | None = None
) -> list[Action]:
    variants = part.variants or (None,) * len(part.cases)
    return [
        _action(case, decision, reason, variant, part.members, named)
        for case, variant, reason in zip(part.cases, variants, reasons, strict=True)
    ]


def _action(
    case: Case,
    decision: PlanDecision,
    reason: str,
    variant: ScoredVariant | None = None,
    members: Mapping[str, str] | None = None,
    named: EntryKey | None = None,
) -> Action:
    before = dict(case.told.values)
    wanted = case.expected(members, variant.variant) if members and variant else {}
    after = {**before, **wanted}
    return action(
        case.measurement,
        decision=decision,
        reason=reason,
        variant=variant.variant if variant else None,
        scores=numbers(variant) if variant else None,
        target=case.target(named),
        before=before,
        after=after,
    )
