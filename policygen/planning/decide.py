"""What to write for the workloads of one entry: one variant for all, or one for each type."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.variants import type_name
from policygen.errors import InputError
from policygen.headers.protocol import EntryWrite, TypeName, can_name
from policygen.headers.provenance import labelled
from policygen.model.edits import Content
from policygen.model.plans import Action, NextBest, Options, PlanDecision
from policygen.model.results import ScoredVariant
from policygen.model.workload import Point
from policygen.planning.measured import action, gpu_name, in_scores, numbers
from policygen.planning.places import PlacedResult
from policygen.results.choice import Can
from policygen.results.together import Together

ChooseTogether = Callable[[Sequence[PlacedResult]], Together]
# "int32", "uint8": what a selector calls them
_INTEGER = re.compile(r"u?int\d+")
INTEGERS = ("int", "long", "short", "signed char")


@dataclass(slots=True)
class Decided:
    """What becomes of some cases."""

    actions: list[Action] = field(default_factory=list)
    writes: list[EntryWrite] = field(default_factory=list)

    def add(self, other: "Decided") -> None:
        """What becomes of other cases, too."""
        self.actions += other.actions
        self.writes += other.writes


@dataclass(frozen=True, slots=True)
class SameValues:
    """Workloads that get the same: one variant, or what they have."""

    cases: tuple[PlacedResult, ...]
    variants: tuple[ScoredVariant, ...] = ()
    """In the order of the cases; none where no variant is better than base."""
    members: Mapping[str, str] | None = None
    """What the variants mean for an entry."""
    reasons: tuple[str, ...] = ()
    instead: Mapping[Point, NextBest] = field(default_factory=dict)
    """Those for which the best variant cannot be said."""


ChooseNext = Callable[[Sequence[PlacedResult], Can], Together]
"""The best variant for workloads of one entry among those that can be said, by the same rules."""


# The best variant that an entry can say, where it cannot say the best one of all.


def none_other(cases: Sequence[PlacedResult], can: Can) -> Together:
    """Where no results are at hand to look through."""
    del cases, can
    return Together((), "no other variant is known")


def decide(
    cases: Sequence[PlacedResult],
    options: Options,
    together: ChooseTogether,
    choose_next: ChooseNext = none_other,
) -> Decided:
    """The actions for all cases of one entry, and what to write for them.

    What is next best counts only where nothing can be written without it.
    """
    best = _decided(cases, options, _Choose(together))
    if isinstance(best, Decided):
        return best
    other = _decided(cases, options, _Choose(together, choose_next))
    if isinstance(other, str):
        return _conflict(cases, best)
    return other if options.next_best else _conflict(cases, best, other.actions)


@dataclass(frozen=True, slots=True)
class _Choose:
    """How variants are chosen for several workloads, and where an entry cannot say the best."""

    together: ChooseTogether
    next_best: ChooseNext = none_other


def _decided(cases: Sequence[PlacedResult], options: Options, choose: _Choose) -> Decided | str:
    """What becomes of them, or why nothing can be written."""
    try:
        return _by_options(cases, options, choose)
    except InputError as error:
        return error.in_line


def _by_options(cases: Sequence[PlacedResult], options: Options, choose: _Choose) -> Decided | str:
    split = options.collisions == "split"
    one = _part(cases, replace(choose, together=_not_asked) if split else choose)
    if isinstance(one, SameValues):
        return _written(one, options)
    if not split and not options.narrow:
        return one
    separate = _separate(cases, choose)
    if not isinstance(separate, str):
        return _by_type(*separate, options)
    last = _part(cases, choose) if split else one
    return _written(last, options) if isinstance(last, SameValues) else f"{separate}, and {last}"


def _not_asked(cases: Sequence[PlacedResult]) -> Together:
    return Together((), f"{len(cases)} workloads want different variants")


def _part(cases: Sequence[PlacedResult], choose: _Choose) -> SameValues | str:
    """What suits all of them, or why nothing does."""
    if not any(case.used for case in cases):
        return SameValues(tuple(cases), reasons=tuple(case.choice.reason for case in cases))
    chosen = tuple(variant for case in cases if (variant := case.measurement.chosen))
    reasons = tuple(case.choice.reason for case in cases)
    if len(chosen) < len(cases) or len({variant.variant for variant in chosen}) > 1:
        found = choose.together(cases)
        if not found.variants:
            return found.reason
        chosen, reasons = found.variants, (found.reason,) * len(cases)
    try:
        members = said(cases, [one.variant for one in chosen])
    except InputError as error:
        return _next_best(cases, chosen, choose, error.in_line)
    return SameValues(tuple(cases), chosen, members, reasons)


def _next_best(
    cases: Sequence[PlacedResult], best: Sequence[ScoredVariant], choose: _Choose, why: str
) -> SameValues | str:
    """What suits all of them besides the best, or why that cannot be said."""
    found = next_best(cases, best, choose.next_best)
    if found is None:
        return why
    members = said(cases, [one.variant for one in found.variants])
    instead = [in_place_of(*pair) for pair in zip(best, found.variants, strict=True)]
    reasons = tuple(written(one, why, found.reason) for one in instead)
    points = (case.measurement.point for case in cases)
    by_point = dict(zip(points, instead, strict=True))
    return SameValues(tuple(cases), found.variants, members, reasons, by_point)


def _written(part: SameValues, options: Options, *, pinned: bool = False) -> Decided:
    """A part in its entry, or in one that names its type; `pinned` where that must be written."""
    if part.members is None:
        return _kept(part, pinned=pinned)
    cases, members, spot = part.cases, dict(part.members), part.cases[0].spot
    same = all(c.has(members, v.variant) for c, v in zip(cases, part.variants, strict=True))
    if same and not pinned:
        return Decided(_actions(part, "keep", ["the values are these already"] * len(cases)))
    if reason := spot.too_broad:
        return _conflict(cases, reason)
    worst = min(range(len(cases)), key=lambda i: part.variants[i].score)
    content = spot.content(members, label(part.variants[worst], cases[worst], options))
    write = _write(part, content, part.variants[worst].variant)
    if same:
        keeps = f"the values are these already; an entry for {spot.named} keeps them"
        return Decided(_actions(part, "keep", [keeps] * len(cases), own=True), [write])
    decision: PlanDecision = "update" if spot.entry else "add"
    return Decided(_actions(part, decision, part.reasons, own=True), [write])


def _write(part: SameValues, content: Content, reason: str) -> EntryWrite:
    points = frozenset(case.measurement.point for case in part.cases)
    return EntryWrite(tuple(case.spot for case in part.cases), content, reason, points)


def _kept(part: SameValues, *, pinned: bool) -> Decided:
    """No variant is better than base: nothing to write where no broader entry takes them."""
    if not pinned:
        return Decided(_actions(part, "fallback", part.reasons))
    first = part.cases[0]
    keeps = f"an entry for {first.spot.named} keeps what it had"
    write = _write(part, first.spot.kept(first.measurement.name), keeps)
    reasons = [f"{reason}; {keeps}" for reason in part.reasons]
    return Decided(_actions(part, "fallback", reasons, own=True), [write])


def _separate(
    cases: Sequence[PlacedResult], choose: _Choose
) -> tuple[list[SameValues], TypeName] | str:
    """Parts by one of the types, so that each has one variant, or why there are none.

    The first part can stay general.
    """
    reason = "no type that an entry can name tells them apart"
    for place in cases[0].spot.types:
        by_type: dict[str, list[PlacedResult]] = {}
        for case in cases:
            by_type.setdefault(case.spot.types[place], []).append(case)
        names = sorted(by_type, key=_rank)
        if len(names) < 2 or not all(can_name(name) for name in names[1:]):
            continue
        found: list[SameValues] = []
        for name in names:
            part = _part(by_type[name], choose)
            if isinstance(part, str):
                reason = f"an entry for {type_name(name)} alone does not help ({part})"
                break
            found.append(part)
        else:
            return found, place
    return reason


def _by_type(parts: Sequence[SameValues], place: TypeName, options: Options) -> Decided:
    """An entry for each type; that of the first one stays general, for all that want the same."""
    general = parts[0]
    alike = [part for part in parts if part.members == general.members]
    if general.cases[0].spot.ahead and any(part.members is None for part in parts):
        # It takes all that it does not name: what shall keep its own is left to that.
        alike = [part for part in parts if part.members is None]
    outcome = Decided()
    outcome.add(_written(_joined(alike), options))
    written = bool(outcome.writes)
    for part in parts:
        if part in alike:
            continue
        named = tuple(case.naming(place) for case in part.cases)
        outcome.add(_written(replace(part, cases=named), options, pinned=written))
    return outcome


def _joined(parts: Sequence[SameValues]) -> SameValues:
    """One part of several that get the same."""
    return SameValues(
        tuple(case for part in parts for case in part.cases),
        tuple(variant for part in parts for variant in part.variants),
        parts[0].members,
        tuple(reason for part in parts for reason in part.reasons),
        {point: one for part in parts for point, one in part.instead.items()},
    )


def _rank(arg: str) -> tuple[int, int]:
    """What cannot be named first, then integers: CUB names `float`, and leaves the rest general."""
    name = type_name(arg)
    if name in INTEGERS:
        return 1, INTEGERS.index(name)
    if _INTEGER.fullmatch(name):
        return 1, 0
    return (2 if can_name(arg) else 0), 0


def _conflict(cases: Sequence[PlacedResult], reason: str, other: Sequence[Action] = ()) -> Decided:
    """Nothing is written; where there are several, the reason names who wants what.

    `other` is what would be written with the next best variants.
    """
    wants = ", ".join(
        f"{short(case, cases)} wants {case.choice.variant or 'base'}" for case in cases
    )
    text = reason
    if len(cases) > 1 and not cases[0].spot.alone:
        text = f"one entry decides {len(cases)} workloads, and {reason}; {wants}"
    would = {one.point: one for one in other if one.written}
    return Decided(
        [
            _rejected(case, text, would.get(case.measurement.point))
            if case.used
            else _action(case, "fallback", case.choice.reason)
            for case in cases
        ]
    )


def settled_without(case: PlacedResult, reason: str) -> Action:
    """A case that gets no entry, because another benchmark's result is better for its call."""
    return case.rejected(reason) if case.used else _action(case, "fallback", reason)


def _rejected(case: PlacedResult, reason: str, other: Action | None) -> Action:
    if other is None:
        return case.rejected(reason)
    if other.next_best is None:
        return case.rejected(then(reason, "--next-best takes it"))
    found = case.rejected(then(reason, proposed(other.next_best)))
    return found.model_copy(update={"next_best": other.next_best})


def _actions(
    part: SameValues, decision: PlanDecision, reasons: Sequence[str], *, own: bool = False
) -> list[Action]:
    """What becomes of each; `own` where it gets an entry for its type alone."""
    variants = part.variants or (None,) * len(part.cases)
    found = [
        _action(case, decision, reason, variant, part.members, own=own)
        for case, variant, reason in zip(part.cases, variants, reasons, strict=True)
    ]
    return [one.model_copy(update={"next_best": part.instead.get(one.point)}) for one in found]


def _action(
    case: PlacedResult,
    decision: PlanDecision,
    reason: str,
    variant: ScoredVariant | None = None,
    members: Mapping[str, str] | None = None,
    *,
    own: bool = False,
) -> Action:
    before = dict(case.spot.told.values)
    wanted = case.expected(members, variant.variant) if members and variant else {}
    return action(
        case.measurement,
        decision=decision,
        reason=reason,
        **in_scores(variant),
        target=(case.spot if own else case.spot.general).target,
        before=before,
        after=case.spot.afterwards(wanted),
    )


# Where values come from, as the comment of an entry says it.


def label(variant: ScoredVariant, case: PlacedResult, options: Options) -> str:
    """The variant with its scores, and what was measured where that is asked for."""
    text = labelled(variant.variant, numbers(variant))
    if options.provenance == "scores":
        return text
    scored = case.measurement.scored
    choice = case.measurement.choice
    told = choice.origin if choice.variant == variant.variant else None
    score = {"shrunken": "score without luck", "confirmed": "score confirmed", None: None}[told]
    tool, cccl = f"CUDA {scored.ctk}", f"CCCL {scored.cccl}"
    origin = (gpu_name(scored.gpu), tool, cccl, options.date, score)
    return f"{text}  ({', '.join(part for part in origin if part)})"


Members = Mapping[str, str]


def said(cases: Sequence[PlacedResult], labels: Sequence[str]) -> Members:
    """What variants mean for the one entry of some workloads; refused where it cannot say them."""
    found: list[Members] = []
    for case, label in zip(cases, labels, strict=True):
        try:
            found.append(case.members(label))
        except InputError as error:
            if case.spot.alone:
                raise
            where = f"{short(case, cases)}: " if len(cases) > 1 else ""
            raise InputError(f"{where}{label}: {error.message}", error.remedy) from error
    if any(other != found[0] for other in found):
        raise InputError("one variant means different values for each of them")
    return found[0]


def next_best(
    cases: Sequence[PlacedResult], best: Sequence[ScoredVariant], choose: ChooseNext
) -> Together | None:
    """What is best without all that the entry cannot say; none where the best has no meaning.

    A label that is none of its benchmark is no result, and says nothing for those beside it.
    """
    try:
        for case, one in zip(cases, best, strict=True):
            case.measurement.parameters(one.variant)
    except InputError:
        return None
    found = choose(cases, lambda label: can_say(cases, label))
    return found if found.variants else None


def can_say(cases: Sequence[PlacedResult], label: str) -> bool:
    """Whether the entry can say a variant, and says the same for all of the workloads."""
    try:
        said(cases, [label] * len(cases))
    except InputError:
        return False
    return True


def in_place_of(best: ScoredVariant, other: ScoredVariant) -> NextBest:
    """The one variant in place of the other."""
    return NextBest(
        variant=other.variant, scores=numbers(other), best=best.variant, best_score=best.score
    )


def written(one: NextBest, why: str, claim: str) -> str:
    """Why it is written; `claim` is what the rules say of it, where nothing better can be."""
    own = claim.removeprefix("best ")
    return then(why, f"next best that can be said, {_cost(one)}; {own}")


def proposed(one: NextBest) -> str:
    """That it can be written, and what it costs."""
    return f"next best that can be said: {one.variant}, {_cost(one)}; --next-best takes it"


def then(reason: str, more: str) -> str:
    """A reason, and more behind it."""
    return f"{reason.removesuffix('.')}; {more}"


def short(case: PlacedResult, among: Sequence[PlacedResult]) -> str:
    """A workload in words, without the benchmark where all are of one."""
    name = case.measurement.name
    alone = len({one.measurement.benchmark.name for one in among}) == 1
    return name.removeprefix(f"{case.measurement.benchmark.name} ") if alone else name


def _cost(one: NextBest) -> str:
    share = one.costs
    more = "more" if share < 0 else "less"
    return f"{one.scores[0]:.6f} instead of {one.best_score:.6f}, {abs(share):.1%} {more}"
