"""One variant for several workloads that share an entry: the best in its worst case."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.model.results import Measured, Rules, ScoredVariant, ScoredWorkload
from policygen.model.workload import BASE, axes, axis_name, parse_label
from policygen.results.cases import Case, in_words, missing_of_base
from policygen.results.choice import (
    Can,
    confirm,
    confirming,
    disagreements,
    held_back,
    refusal,
    shrunken,
)
from policygen.results.noise import FINALISTS
from policygen.results.ranking import Warnings, open_cases, rank, scored_variant
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, Scores, deviation, half_width, score_case
from policygen.results.tables import DeclaredAxes

Parameters = frozenset[tuple[str, int]]
NONE_FOR_ALL = "no variant suits all of them"


@dataclass(frozen=True, slots=True)
class Together:
    """What serves all of them; no variant where none does, and why."""

    variants: tuple[ScoredVariant, ...]
    """In the order of the workloads."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    positions: tuple[int, ...]
    worst: float
    best: float


def choose_together(
    paths: Sequence[Path],
    wanted: Sequence[Measured],
    rules: Rules,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
    can: Can | None = None,
) -> Together:
    """Of the variants measured for each workload, the one whose lowest score is highest.

    The rules must allow it for at least one of them, and no other one may get slower. What `can`
    leaves out counts for what luck makes of so many.
    """
    warnings = Warnings()  # the ranking told them
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only(wanted)) as cases,
        open_cases(confirm_with, warnings, only(wanted)) as finals,
    ):
        decoder.start()
        own = [find_case(cases, workload) for workload in wanted]
        lost = [one for case in own for one in missing_of_base(case, declared or {})]
        if lost:
            return Together((), in_words(tuple(dict.fromkeys(lost))))
        scores = [score_case(case, declared or {}) for case in own]
        readers = [SampleReader(case, decoder, warnings.add) for case in own]
        known = [places(one) for one in scores]
        common = set(known[0]).intersection(*known[1:])
        if not common:
            return Together((), "no variant was measured for all of them")
        candidates = _candidates(scores, known, common, rules)
        if not candidates:
            return Together((), f"{NONE_FOR_ALL}: {_harm(wanted, scores, known, common)}")
        again = [confirming(case, finals) for case in own]
        if any(again):
            candidates = [one for one in candidates if _is_final(one, scores, again)][:FINALISTS]
        for candidate in candidates:
            if candidate.best < rules.least_score and not any(again):
                continue  # samples would not help
            if can is not None and not can(_label(scores[0], candidate.positions[0])):
                continue
            found = [
                scored_variant(one, position, rules, reader)
                for one, position, reader in zip(scores, candidate.positions, readers, strict=True)
            ]
            judged = [
                _judged(variant, position, one, case, rules, declared or {}, len(candidates))
                for variant, position, one, case in zip(
                    found, candidate.positions, scores, again, strict=True
                )
            ]
            if any(one.allowed for one in judged) and not any(one.lost for one in judged):
                reason = f"its lowest score over {len(wanted)} workloads is {candidate.worst:.6f}"
                return Together(tuple(one.variant for one in judged), reason)
    return Together((), "the rules allow no variant that was measured for all of them")


def _harm(
    wanted: Sequence[Measured],
    scores: Sequence[Scores],
    known: Sequence[Mapping[Parameters, int]],
    common: Set[Parameters],
) -> str:
    """What the best variant for one of them does to the one that suffers most by it."""
    pairs = [
        (float(scores[at].score[known[at][one]]), at, sorted(one))
        for one in common
        for at in range(len(scores))
    ]
    gain, best, parameters = max(pairs, key=lambda pair: (pair[0], -pair[1]))
    one = frozenset(parameters)
    losses = [float(s.score[k[one]]) for s, k in zip(scores, known, strict=True)]
    least = [float(s.minimum[k[one]]) for s, k in zip(scores, known, strict=True)]
    others = [at for at in range(len(scores)) if at != best]
    worst = min(others or [best], key=lambda at: (losses[at], least[at]))
    names = _names(wanted)
    told = f"{losses[worst]:.6f} for {names[worst]}"
    if losses[worst] >= 1:
        told += f", {least[worst]:.6f} on one of its runtime workloads"
    return (
        f"{_label(scores[best], known[best][one])} scores {gain:.6f} for {names[best]} and {told}"
    )


def _names(wanted: Sequence[Measured]) -> list[str]:
    """The workloads in words, with the benchmark where there are several."""
    several = len({one.algorithm for one in wanted}) > 1
    names = []
    for one in wanted:
        words = axes({axis_name(axis): value for axis, value in one.workload.items()})
        names.append(" ".join([one.algorithm, *words] if several else words))
    return names


def _label(scores: Scores, position: int) -> str:
    return scores.case.variants[int(scores.index[position])]


@dataclass(frozen=True, slots=True)
class _Judged:
    variant: ScoredVariant
    """With the score to tell."""
    allowed: bool
    lost: bool
    """Whether a run says that it is slower."""


def _judged(
    variant: ScoredVariant,
    position: int,
    scores: Scores,
    again: Case | None,
    rules: Rules,
    declared: DeclaredAxes,
    among: int,
) -> _Judged:
    """What the rules say of a variant for one of the workloads."""
    disagree = bool(disagreements(scores, [variant]))
    if again is None:
        sure = rules.accept_unconfirmed or variant.score >= rules.holds
        allowed = sure and not disagree and refusal(variant, scores, rules) is None
        told = shrunken(variant.score, scores, rules)
        return _Judged(variant.model_copy(update={"score": told}), allowed, lost=False)
    found = confirm(scores, [position], again, rules, declared, among).get(variant.variant)
    if found is None:
        return _Judged(variant, allowed=False, lost=False)
    told_again = variant.model_copy(update={"score": found.score})
    allowed = found.refusal is None and not disagree
    return _Judged(told_again, allowed, lost=_is_slower(found.score, scores, rules))


def _is_final(
    candidate: _Candidate, scores: Sequence[Scores], again: Sequence[Case | None]
) -> bool:
    """Whether it was measured again wherever something was."""
    return all(
        case is None or one.case.variants[int(one.index[position])] in case.variants
        for position, one, case in zip(candidate.positions, scores, again, strict=True)
    )


def _is_slower(score: float, scores: Scores, rules: Rules) -> bool:
    """Whether a score is under 1 beyond noise."""
    return score < 1 - half_width(rules) * deviation(scores, rules)


def only(wanted: Sequence[Measured]) -> re.Pattern[str]:
    """The algorithms that are needed: a database may hold a hundred others."""
    names = dict.fromkeys(re.escape(one.algorithm) for one in wanted)
    return re.compile(f"(?:{'|'.join(names)})$")


def find_case(cases: Sequence[Case], wanted: Measured) -> Case:
    """The case that was ranked."""
    for case in cases:
        if (
            case.algorithm == wanted.algorithm
            and dict(case.workload) == wanted.workload
            and (case.key.gpu, case.key.ctk, case.key.cccl) == (wanted.gpu, wanted.ctk, wanted.cccl)
            and case.files == wanted.databases
        ):
            return case
    raise InputError(
        f"{wanted.database}: {wanted.algorithm} does not have what was ranked a moment ago",
        "Plan when nothing writes to the database.",
    )


def _candidates(
    scores: Sequence[Scores],
    known: Sequence[Mapping[Parameters, int]],
    common: Set[Parameters],
    rules: Rules,
) -> list[_Candidate]:
    """Variants that no workload loses with, the best first."""
    found = []
    for parameters in common:
        positions = tuple(place[parameters] for place in known)
        pairs = list(zip(scores, positions, strict=True))
        own = [float(one.score[at]) for one, at in pairs]
        least = min(float(one.minimum[at]) for one, at in pairs)
        slow = any(_is_slower(o, one, rules) for o, (one, _) in zip(own, pairs, strict=True))
        if not slow and least >= rules.worst_allowed:
            found.append((sorted(parameters), _Candidate(positions, min(own), max(own))))
    found.sort(key=lambda pair: (-pair[1].worst, pair[0]))
    return [candidate for _, candidate in found]


def places(scores: Scores) -> Mapping[Parameters, int]:
    """Each complete variant's place, by its parameters: benchmarks may order them otherwise."""
    found = {}
    for position, index in enumerate(scores.index):
        label = scores.case.variants[int(index)]
        values = None if label == BASE else parse_label(label)
        if values:
            found[frozenset(values.items())] = position
    return found


# What the rules choose of the variants that can be said, where the best one cannot.


def choose_next(
    paths: Sequence[Path],
    wanted: Sequence[Measured],
    can: Can,
    rules: Rules,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
) -> Together:
    """The choice for one workload, or for those that share an entry, without what cannot be said.

    It is asked for where the rules chose something already: luck does not find more by that.
    """
    if len(wanted) > 1:
        return choose_together(paths, wanted, rules, declared, confirm_with, can)
    (one,) = wanted
    found = rank(
        paths,
        pattern=only(wanted),
        axes={axis: frozenset({value}) for axis, value in one.workload.items()},
        top=rules.candidates + 1,
        rules=rules,
        declared=declared,
        confirm_with=confirm_with,
        can=can,
    )
    return _chosen(held_back(_same(found.workloads, one), rules))


def _chosen(one: ScoredWorkload) -> Together:
    choice = one.choice
    assert choice is not None, "samples were looked at"
    chosen = next((v for v in one.variants if v.variant == choice.variant), None)
    if chosen is None:
        return Together((), choice.reason)
    return Together((chosen.model_copy(update={"score": choice.score}),), choice.reason)


def _same(workloads: Sequence[ScoredWorkload], wanted: Measured) -> ScoredWorkload:
    """The one that was ranked."""
    for one in workloads:
        if _identity(one) == _identity(wanted):
            return one
    raise InputError(
        f"{wanted.database}: {wanted.algorithm} does not have what was ranked a moment ago",
        "Plan when nothing writes to the database.",
    )


def _identity(one: Measured) -> tuple[object, ...]:
    return one.algorithm, one.workload, one.gpu, one.ctk, one.cccl, one.databases
