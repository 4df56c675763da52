"""Decides what to write for the workloads of one entry: one variant for all, or one per type."""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from policygen.bindings.variants import type_name
from policygen.errors import InputError
from policygen.headers.comments import labelled
from policygen.headers.protocol import EntryWrite, TypeName, can_name
from policygen.model.plans import Action, Instead, Joint, Named, NextBest, Options, PlanDecision
from policygen.model.results import ScoredVariant, ScoredWorkload
from policygen.model.tuning import Content
from policygen.model.workload import Point
from policygen.planning.measured import action, gpu_name, in_scores, numbers
from policygen.planning.places import Decided, PlacedResult
from policygen.results.choice import IsWritable
from policygen.results.together import Together

ChooseTogether = Callable[[Sequence[PlacedResult]], Together]
# "int32", "uint8": names that a selector uses
_INTEGER = re.compile(r"u?int\d+")
INTEGERS = ("int", "long", "short", "signed char")


@dataclass(frozen=True, slots=True)
class SameValues:
    """Workloads that get the same values: one variant, or what they have."""

    cases: tuple[PlacedResult, ...]
    variants: tuple[ScoredVariant, ...] = ()
    """In the order of the cases; empty if no variant is better than base."""
    members: Mapping[str, str] | None = None
    """The members of an entry for these variants."""
    reasons: tuple[str, ...] = ()
    instead: Mapping[Point, NextBest] = field(default_factory=dict)
    """The replacements for best variants that an entry cannot express."""
    named: tuple[TypeName, ...] = ()
    """The types that tell them from the others of the entry."""


ChooseNext = Callable[[Sequence[PlacedResult], IsWritable], Together]
"""Chooses the best variant, by the same rules, among those that an entry can express."""


# The best variant that an entry can express, if it cannot express the overall best.


def none_other(cases: Sequence[PlacedResult], can: IsWritable) -> Together:
    """Finds no alternative, for callers that have no results to search."""
    del cases, can
    return Together((), "no other variant is known")


def decide(
    cases: Sequence[PlacedResult],
    options: Options,
    together: ChooseTogether,
    choose_next: ChooseNext = none_other,
) -> Decided:
    """Decides the actions for all cases of one entry, and what to write for them.

    The next best variant is used only if nothing can be written without it. If nothing suits all,
    some get an entry and the others keep what they have, where a type tells them apart.
    """
    best = _try_deciding(cases, options, together, none_other)
    if isinstance(best, Decided):
        return best
    fallback = _try_deciding(cases, options, together, choose_next)
    if isinstance(fallback, str):
        with contextlib.suppress(InputError):
            some = _split_by_type(cases, together, none_other, some_keep_base=True)
            if not isinstance(some, str):
                return _decide_by_type(some, options)
        return _conflict(cases, best)
    return fallback if options.next_best else _conflict(cases, best, fallback.actions)


def _try_deciding(
    cases: Sequence[PlacedResult],
    options: Options,
    together: ChooseTogether,
    choose_next: ChooseNext,
) -> Decided | str:
    """Returns the decision, or the reason why nothing can be written."""
    split = options.collisions == "split"
    different = Together((), f"{len(cases)} workloads want different variants")
    try:
        combined = _variant_for_all(
            cases, (lambda _: different) if split else together, choose_next
        )
        if isinstance(combined, SameValues):
            return _decide_part(combined, options)
        if len(cases) == 1 or cases[0].spot.alone:
            return combined
        separate = _split_by_type(cases, together, choose_next)
        if isinstance(separate, str):
            # A type alone does not help; two of them may, where both can be named.
            with contextlib.suppress(InputError):
                separate = _split_by_type(cases, together, choose_next, depth=2)
        if not isinstance(separate, str):
            return _decide_by_type(separate, options)
        final = _variant_for_all(cases, together, choose_next) if split else combined
        if isinstance(final, SameValues):
            return _decide_part(final, options)
    except InputError as error:
        return error.in_line
    return f"{separate}, and {final}"


def _variant_for_all(
    cases: Sequence[PlacedResult], together: ChooseTogether, choose_next: ChooseNext
) -> SameValues | str:
    """Returns the values that suit all cases, or the reason why none do."""
    if not any(case.used for case in cases):
        return SameValues(tuple(cases), reasons=tuple(case.choice.reason for case in cases))
    chosen = tuple(variant for case in cases if (variant := case.measurement.chosen))
    reasons = tuple(case.choice.reason for case in cases)
    if len(chosen) < len(cases) or len({variant.variant for variant in chosen}) > 1:
        joint = together(cases)
        if not joint.variants:
            return joint.reason
        chosen, reasons = joint.variants, (joint.reason,) * len(cases)
    try:
        members = entry_members(cases, [scored.variant for scored in chosen])
    except InputError as error:
        return _next_best(cases, chosen, choose_next, error.in_line)
    return SameValues(tuple(cases), chosen, members, reasons)


def _next_best(
    cases: Sequence[PlacedResult],
    best: Sequence[ScoredVariant],
    choose_next: ChooseNext,
    reason: str,
) -> SameValues | str:
    """Returns the next best values that suit all cases, or why the best cannot be expressed."""
    joint = next_best(cases, best, choose_next)
    if joint is None:
        return reason
    members = entry_members(cases, [scored.variant for scored in joint.variants])
    replacements = [in_place_of(*pair) for pair in zip(best, joint.variants, strict=True)]
    reasons = tuple(written(replacement, reason, joint.reason) for replacement in replacements)
    points = (case.measurement.point for case in cases)
    by_point = dict(zip(points, replacements, strict=True))
    return SameValues(tuple(cases), joint.variants, members, reasons, by_point)


def _decide_part(part: SameValues, options: Options, *, pinned: bool = False) -> Decided:
    """Writes a part into its entry.

    If `pinned`, the entry is written even if the values are unchanged: a broader entry would take
    the workloads otherwise.
    """
    if part.members is None:
        return _keep_base(part, pinned=pinned)
    cases, members, spot = part.cases, dict(part.members), part.cases[0].spot
    unchanged = all(
        case.has(members, variant.variant)
        for case, variant in zip(cases, part.variants, strict=True)
    )
    if unchanged and not pinned:
        return Decided(_actions(part, "keep", ["it has these values already"] * len(cases)))
    if reason := spot.too_broad:
        return _conflict(cases, reason)
    lowest = min(range(len(cases)), key=lambda index: part.variants[index].score)
    content = spot.content(members, label(part.variants[lowest], cases[lowest], options))
    write = _entry_write(part, content, part.variants[lowest].variant)
    if unchanged:
        keeps = f"it has these values already; an entry for {spot.named} has them"
        return Decided(_actions(part, "keep", [keeps] * len(cases), own=True), [write])
    decision: PlanDecision = "update" if spot.entry else "add"
    return Decided(_actions(part, decision, part.reasons, own=True), [write])


def _entry_write(part: SameValues, content: Content, reason: str) -> EntryWrite:
    points = frozenset(case.measurement.point for case in part.cases)
    return EntryWrite(tuple(case.spot for case in part.cases), content, reason, points)


def _keep_base(part: SameValues, *, pinned: bool) -> Decided:
    """Keeps base: writes an entry only if a broader one would take the workloads."""
    reasons, writes = list(part.reasons), []
    if pinned:
        first = part.cases[0]
        reason_kept = f"an entry for {first.spot.named} has its current values"
        writes = [_entry_write(part, first.spot.kept(first.measurement.name), reason_kept)]
        reasons = [f"{reason}; {reason_kept}" for reason in reasons]
    return Decided(
        [
            case.rejected(reason) if case.used else _action(case, "fallback", reason, own=pinned)
            for case, reason in zip(part.cases, reasons, strict=True)
        ],
        writes,
    )


def _split_by_type(
    cases: Sequence[PlacedResult],
    together: ChooseTogether,
    choose_next: ChooseNext,
    depth: int = 1,
    named: tuple[TypeName, ...] = (),
    *,
    some_keep_base: bool = False,
) -> list[SameValues] | str:
    """Splits the cases by at most `depth` of their types so that each part has one variant.

    The first part can stay general. With `some_keep_base`, parts that no variant suits keep what
    they have if another part gets an entry. Returns the reason if no type allows it.
    """
    reason = "nothing that an entry can name distinguishes them"
    types = [case.naming(*named).spot.types for case in cases]
    for type_position in types[0]:
        by_type: dict[str, list[PlacedResult]] = {}
        for case, types_of_case in zip(cases, types, strict=True):
            by_type.setdefault(types_of_case[type_position], []).append(case)
        names = sorted(by_type, key=_rank)
        may_stay_general = 1 if depth == 1 and not named else 0
        if len(names) < 2 or not all(can_name(name) for name in names[may_stay_general:]):
            continue
        parts: list[SameValues] = []
        names_of_part = (*named, type_position)
        for name in names:
            group = by_type[name]
            part = _variant_for_all(group, together, choose_next)
            deeper = part if isinstance(part, str) else [replace(part, named=names_of_part)]
            if isinstance(part, str) and depth > 1:
                deeper = _split_by_type(group, together, choose_next, depth - 1, names_of_part)
            if isinstance(deeper, str):
                member = f"{type_position} " if isinstance(type_position, str) else ""
                reason = f"an entry only for {member}{type_name(name)} does not help ({part})"
                if not some_keep_base:
                    break
                kept = tuple(reason if case.used else case.choice.reason for case in group)
                deeper = [SameValues(tuple(group), reasons=kept, named=names_of_part)]
            parts += deeper
        else:
            if not some_keep_base or any(part.members for part in parts):
                return parts
    return reason


def _decide_by_type(parts: Sequence[SameValues], options: Options) -> Decided:
    """Writes an entry per part; the first stays general and serves all parts with equal values."""
    general = parts[0]
    general_parts = [part for part in parts if part.members == general.members]
    if general.cases[0].spot.ahead and any(part.members is None for part in parts):
        # The general entry takes all that it does not name, so leave it the parts that keep base.
        general_parts = [part for part in parts if part.members is None]
    outcome = Decided()
    outcome.add(_decide_part(_merge_parts(general_parts), options))
    general_written = bool(outcome.writes)
    for part in parts:
        if part in general_parts:
            continue
        named_cases = tuple(case.naming(*part.named) for case in part.cases)
        outcome.add(_decide_part(replace(part, cases=named_cases), options, pinned=general_written))
    return outcome


def _merge_parts(parts: Sequence[SameValues]) -> SameValues:
    """Merges parts that get the same values."""
    return SameValues(
        tuple(case for part in parts for case in part.cases),
        tuple(variant for part in parts for variant in part.variants),
        parts[0].members,
        tuple(reason for part in parts for reason in part.reasons),
        {point: alternative for part in parts for point, alternative in part.instead.items()},
    )


def _rank(arg: str) -> tuple[int, int]:
    """Sort key: types that cannot be named, then integers, then the rest.

    CUB names `float` and leaves the integers general.
    """
    name = type_name(arg)
    if name in INTEGERS:
        return 1, INTEGERS.index(name)
    if _INTEGER.fullmatch(name):
        return 1, 0
    return (2 if can_name(arg) else 0), 0


def _conflict(
    cases: Sequence[PlacedResult], reason: str, alternatives: Sequence[Action] = ()
) -> Decided:
    """Writes nothing; for several workloads, the reason names the variant that each wants.

    `alternatives` are the actions that the next best variants would give.
    """
    wanted_variants = ", ".join(
        f"{short(case, cases)} wants {case.choice.variant or 'base'}" for case in cases
    )
    text = reason
    if len(cases) > 1 and not cases[0].spot.alone:
        text = f"one entry decides {len(cases)} workloads, and {reason}; {wanted_variants}"
    alternative_by_point = {
        alternative.point: alternative for alternative in alternatives if alternative.written
    }
    return Decided(
        [
            _rejected(case, text, alternative_by_point.get(case.measurement.point))
            if case.used
            else _action(case, "fallback", case.choice.reason)
            for case in cases
        ]
    )


def settled_without(case: PlacedResult, reason: str) -> Action:
    """Leaves a case without an entry because another benchmark's result is better for its call."""
    return case.rejected(reason) if case.used else _action(case, "fallback", reason)


def _rejected(case: PlacedResult, reason: str, alternative: Action | None) -> Action:
    if alternative is None:
        return case.rejected(reason)
    if alternative.next_best is None:
        return case.rejected(append_reason(reason, "--next-best accepts it"))
    rejection = case.rejected(append_reason(reason, proposed(alternative.next_best)))
    return rejection.model_copy(update={"next_best": alternative.next_best})


def _actions(
    part: SameValues, decision: PlanDecision, reasons: Sequence[str], *, own: bool = False
) -> list[Action]:
    """Returns an action per case; `own` if the entry names the case's type."""
    variants = part.variants or (None,) * len(part.cases)
    actions = []
    for case, variant, reason in zip(part.cases, variants, reasons, strict=True):
        planned = _action(case, decision, reason, variant, part.members, own=own)
        actions.append(planned.model_copy(update={"next_best": part.instead.get(planned.point)}))
    return actions


def _action(
    case: PlacedResult,
    decision: PlanDecision,
    reason: str,
    variant: ScoredVariant | None = None,
    members: Mapping[str, str] | None = None,
    *,
    own: bool = False,
) -> Action:
    expected = case.expected(members, variant.variant) if members and variant else {}
    return action(
        case.measurement,
        decision=decision,
        reason=reason,
        **in_scores(variant),
        target=(case.spot if own else case.spot.general).target,
        before=case.spot.selected.values,
        after=case.spot.afterwards(expected),
    )


# Provenance, for the comment of an entry.


def label(variant: ScoredVariant, case: PlacedResult, options: Options) -> str:
    """Returns the variant with its scores and, if requested, where they were measured."""
    text = labelled(variant.variant, numbers(variant))
    if options.provenance == "scores":
        return text
    scored = case.measurement.scored
    choice = case.measurement.choice
    score_origin = choice.origin if choice.variant == variant.variant else None
    score = {"shrunken": "bias-corrected score", "confirmed": "score confirmed", None: None}[
        score_origin
    ]
    tool, cccl = f"CUDA {scored.ctk}", f"CCCL {scored.cccl}"
    origin = (gpu_name(scored.gpu), tool, cccl, options.date, score)
    return f"{text}  ({', '.join(part for part in origin if part)})"


Members = Mapping[str, str]


def entry_members(cases: Sequence[PlacedResult], labels: Sequence[str]) -> Members:
    """Returns the members of the one entry that the variants give.

    Raises InputError if the entry cannot express them, or if they differ.
    """
    members_by_case: list[Members] = []
    for case, label in zip(cases, labels, strict=True):
        try:
            members_by_case.append(case.members(label))
        except InputError as error:
            if case.spot.alone:
                raise
            prefix = f"{short(case, cases)}: " if len(cases) > 1 else ""
            raise InputError(f"{prefix}{label}: {error.message}", error.remedy) from error
    if any(members != members_by_case[0] for members in members_by_case):
        raise InputError("the variant means different values for each of them")
    return members_by_case[0]


def next_best(
    cases: Sequence[PlacedResult], best: Sequence[ScoredVariant], choose: ChooseNext
) -> Together | None:
    """Returns the best variants among those that the entry can express; None if there are none.

    Nor is there a fallback for a label that is not a variant of its benchmark, and so is not a
    result.
    """
    try:
        for case, scored in zip(cases, best, strict=True):
            case.measurement.parameters(scored.variant)
    except InputError:
        return None

    def can_say(label: str) -> bool:
        """Whether the entry can express a variant, with the same members for all workloads."""
        try:
            entry_members(cases, [label] * len(cases))
        except InputError:
            return False
        return True

    joint = choose(cases, can_say)
    return joint if joint.variants else None


def in_place_of(best: ScoredVariant, chosen: ScoredVariant) -> NextBest:
    """Records the chosen variant as a replacement for the best."""
    return NextBest(
        variant=chosen.variant, scores=numbers(chosen), best=best.variant, best_score=best.score
    )


def written(alternative: NextBest, reason: str, claim: str) -> str:
    """Says why the alternative is written; `claim` is the rules' reason for choosing it."""
    claim_text = claim.removeprefix("best ")
    return append_reason(
        reason, f"next best that the entry can express, {_cost(alternative)}; {claim_text}"
    )


def proposed(alternative: NextBest) -> str:
    """Says that an alternative could be written, and what it costs."""
    return (
        f"next best that the entry can express: {alternative.variant}, {_cost(alternative)};"
        " --next-best accepts it"
    )


def append_reason(reason: str, addition: str) -> str:
    """Appends to a reason."""
    return f"{reason.removesuffix('.')}; {addition}"


def short(case: PlacedResult, among: Sequence[PlacedResult]) -> str:
    """Names a workload, without its benchmark if all are of the same one."""
    name = case.measurement.name
    alone = len({another.measurement.benchmark.name for another in among}) == 1
    return name.removeprefix(f"{case.measurement.benchmark.name} ") if alone else name


def _cost(alternative: NextBest) -> str:
    share = alternative.costs
    comparison = "more" if share < 0 else "less"
    return (
        f"{alternative.scores[0]:.6f} instead of {alternative.best_score:.6f},"
        f" {abs(share):.1%} {comparison}"
    )


# Choices that are remembered, so that a plan can be remade without databases

Points = tuple[Point, ...]
AnyJoint = TypeVar("AnyJoint", bound=Joint)


class Memory:
    """Chooses variants for several workloads, and remembers the choices."""

    def __init__(self, choose: ChooseTogether, choose_next: ChooseNext) -> None:
        self._choose, self._choose_next = choose, choose_next
        self._choices: dict[Points, Together] = {}
        self._next_choices: dict[Points, Together] = {}

    def __call__(self, cases: Sequence[PlacedResult]) -> Together:
        """Returns the same choice whenever the same workloads are given."""
        points = _points(cases)
        if points not in self._choices:
            self._choices[points] = self._choose(cases)
        return self._choices[points]

    def next_best(self, cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        """Returns the next best choice; chooses again if a remembered one cannot be expressed."""
        points = _points(cases)
        choice = self._next_choices.get(points)
        if choice is None or not all(can(variant.variant) for variant in choice.variants):
            choice = self._next_choices[points] = self._choose_next(cases, can)
        return choice

    @property
    def joint(self) -> tuple[Joint, ...]:
        """The choices, in the order in which they were made."""
        return tuple(_joint(Joint, *item) for item in self._choices.items())

    @property
    def instead(self) -> tuple[Instead, ...]:
        """The next best choices, where there are any."""
        return tuple(
            _joint(Instead, *item) for item in self._next_choices.items() if item[1].variants
        )


def remembered_next(instead: Iterable[Instead]) -> ChooseNext:
    """Repeats a plan's next best choices, unless an entry can no longer express them."""
    instead_by_points = {
        tuple(named.point for named in record.workloads): record for record in instead
    }

    def choose(cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        record = instead_by_points.get(_points(cases))
        if record is None or len(record.variants) != len(cases):
            return Together((), "the plan knows no other variant")
        if not all(can(variant.variant) for variant in record.variants):
            return Together((), "the plan's other variant cannot be expressed")
        return Together(record.variants, record.reason)

    return choose


def remembered(joint: Iterable[Joint]) -> ChooseTogether:
    """Repeats a plan's choices."""
    joint_by_points = {tuple(named.point for named in record.workloads): record for record in joint}

    def choose(cases: Sequence[PlacedResult]) -> Together:
        record = joint_by_points.get(_points(cases))
        if record is None or len(record.variants) not in {0, len(cases)}:
            raise InputError("the plan does not name the variant that serves all of them")
        return Together(record.variants, record.reason)

    return choose


def chosen_alone(scored: ScoredWorkload) -> ScoredWorkload:
    """Returns a workload's results with only the chosen variant."""
    choice, chosen = scored.choice, scored.chosen
    return scored.model_copy(
        update={
            "choice": choice.model_copy(update={"rejected": ()}) if choice else None,
            "reasoning": None,
            "variants": (_scores(chosen),) if chosen else (),
        }
    )


def _joint(kind: type[AnyJoint], points: Points, choice: Together) -> AnyJoint:
    return kind(
        workloads=tuple(map(Named.of, points)),
        variants=tuple(map(_scores, choice.variants)),
        reason=choice.reason,
    )


def _scores(variant: ScoredVariant) -> ScoredVariant:
    names = ("variant", "score", "min", "mean", "max")
    return ScoredVariant(**{name: getattr(variant, name) for name in names})


def _points(cases: Sequence[PlacedResult]) -> Points:
    return tuple(case.measurement.point for case in cases)
