"""Chooses one variant for several workloads that share an entry: the best in its worst case."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.model.results import Measured, Rules, ScoredVariant, ScoredWorkload
from policygen.model.workload import BASE, axes, axis_name, parse_label
from policygen.results.cases import Case, in_words, missing_of_base
from policygen.results.choice import (
    IsWritable,
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
    """The variant that serves all workloads; no variant if there is none, with the reason."""

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
    workloads: Sequence[Measured],
    rules: Rules,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
    can: IsWritable | None = None,
) -> Together:
    """Chooses, among the variants measured for all workloads, the one with the best worst score.

    The rules must allow it for at least one workload, and no other workload may get slower.
    Variants that `can` leaves out still count as candidates in the correction for multiple
    comparisons.
    """
    warnings = Warnings()  # the ranking reported them
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only(workloads)) as cases,
        open_cases(confirm_with, warnings, only(workloads)) as final_cases,
    ):
        decoder.start()
        cases_to_join = [find_case(cases, measured) for measured in workloads]
        missing_base = [
            missing for case in cases_to_join for missing in missing_of_base(case, declared or {})
        ]
        if missing_base:
            return Together((), in_words(tuple(dict.fromkeys(missing_base))))
        scores = [score_case(case, declared or {}) for case in cases_to_join]
        readers = [SampleReader(case, decoder, warnings.add) for case in cases_to_join]
        positions_by_scores = [places(case_scores) for case_scores in scores]
        common = set(positions_by_scores[0]).intersection(*positions_by_scores[1:])
        if not common:
            return Together((), "no variant was measured for all of them")
        candidates = _candidates(scores, positions_by_scores, common, rules)
        if not candidates:
            return Together(
                (), f"{NONE_FOR_ALL}: {_harm(workloads, scores, positions_by_scores, common)}"
            )
        final_by_case = [confirming(case, final_cases) for case in cases_to_join]
        if any(final_by_case):
            candidates = [
                candidate for candidate in candidates if _is_final(candidate, scores, final_by_case)
            ][:FINALISTS]
        for candidate in candidates:
            if candidate.best < rules.least_score and not any(final_by_case):
                continue  # samples would not help
            if can is not None and not can(_label(scores[0], candidate.positions[0])):
                continue
            scored = [
                scored_variant(case_scores, position, rules, reader)
                for case_scores, position, reader in zip(
                    scores, candidate.positions, readers, strict=True
                )
            ]
            judged = [
                _judged(
                    variant, position, case_scores, case, rules, declared or {}, len(candidates)
                )
                for variant, position, case_scores, case in zip(
                    scored, candidate.positions, scores, final_by_case, strict=True
                )
            ]
            if any(judgment.allowed for judgment in judged) and not any(
                judgment.lost for judgment in judged
            ):
                reason = (
                    f"its lowest score over {len(workloads)} workloads is {candidate.worst:.6f}"
                )
                return Together(tuple(judgment.variant for judgment in judged), reason)
    return Together((), "the rules allow no variant that was measured for all of them")


def _harm(
    workloads: Sequence[Measured],
    scores: Sequence[Scores],
    positions: Sequence[Mapping[Parameters, int]],
    common: Set[Parameters],
) -> str:
    """Describes how the best variant for one workload harms the workload that suffers most."""
    pairs = [
        (float(scores[index].score[positions[index][key]]), index, sorted(key))
        for key in common
        for index in range(len(scores))
    ]
    gain, best, parameters = max(pairs, key=lambda pair: (pair[0], -pair[1]))
    key = frozenset(parameters)
    losses = [
        float(case_scores.score[position[key]])
        for case_scores, position in zip(scores, positions, strict=True)
    ]
    least = [
        float(case_scores.minimum[position[key]])
        for case_scores, position in zip(scores, positions, strict=True)
    ]
    other_indices = [index for index in range(len(scores)) if index != best]
    worst = min(other_indices or [best], key=lambda index: (losses[index], least[index]))
    names = _names(workloads)
    effect = f"{losses[worst]:.6f} for {names[worst]}"
    if losses[worst] >= 1:
        effect += f", {least[worst]:.6f} on one of its runtime workloads"
    return (
        f"{_label(scores[best], positions[best][key])} scores {gain:.6f}"
        f" for {names[best]} and {effect}"
    )


def _names(workloads: Sequence[Measured]) -> list[str]:
    """Returns the workloads in words, with the benchmark if there are several."""
    several = len({workload.algorithm for workload in workloads}) > 1
    names = []
    for workload in workloads:
        words = axes({axis_name(axis): value for axis, value in workload.workload.items()})
        names.append(" ".join([workload.algorithm, *words] if several else words))
    return names


def _label(scores: Scores, position: int) -> str:
    return scores.case.variants[int(scores.index[position])]


@dataclass(frozen=True, slots=True)
class _Judged:
    variant: ScoredVariant
    """With the score to report."""
    allowed: bool
    lost: bool
    """Whether a run shows that it is slower."""


def _judged(
    variant: ScoredVariant,
    position: int,
    scores: Scores,
    final_case: Case | None,
    rules: Rules,
    declared: DeclaredAxes,
    among: int,
) -> _Judged:
    """Applies the rules to a variant for one of the workloads."""
    disagree = bool(disagreements(scores, [variant]))
    if final_case is None:
        sure = rules.accept_unconfirmed or variant.score >= rules.holds
        allowed = sure and not disagree and refusal(variant, scores, rules) is None
        shrunken_score = shrunken(variant.score, scores, rules)
        return _Judged(variant.model_copy(update={"score": shrunken_score}), allowed, lost=False)
    confirmed = confirm(scores, [position], final_case, rules, declared, among).get(variant.variant)
    if confirmed is None:
        return _Judged(variant, allowed=False, lost=False)
    confirmed_variant = variant.model_copy(update={"score": confirmed.score})
    allowed = confirmed.refusal is None and not disagree
    return _Judged(confirmed_variant, allowed, lost=_is_slower(confirmed.score, scores, rules))


def _is_final(
    candidate: _Candidate, scores: Sequence[Scores], final_cases: Sequence[Case | None]
) -> bool:
    """Returns whether the candidate was remeasured for each workload that has a final run."""
    return all(
        case is None or case_scores.case.variants[int(case_scores.index[position])] in case.variants
        for position, case_scores, case in zip(
            candidate.positions, scores, final_cases, strict=True
        )
    )


def _is_slower(score: float, scores: Scores, rules: Rules) -> bool:
    """Returns whether a score is below 1 by more than the noise."""
    return score < 1 - half_width(rules) * deviation(scores, rules)


def only(workloads: Sequence[Measured]) -> re.Pattern[str]:
    """Returns a pattern for the algorithms needed: a database may hold a hundred others."""
    names = dict.fromkeys(re.escape(workload.algorithm) for workload in workloads)
    return re.compile(f"(?:{'|'.join(names)})$")


def find_case(cases: Sequence[Case], workload: Measured) -> Case:
    """Returns the case of a ranked workload."""
    for case in cases:
        if (
            case.algorithm == workload.algorithm
            and dict(case.workload) == workload.workload
            and (case.key.gpu, case.key.ctk, case.key.cccl)
            == (workload.gpu, workload.ctk, workload.cccl)
            and case.files == workload.databases
        ):
            return case
    raise InputError(
        f"{workload.database}: {workload.algorithm} does not have what was ranked a moment ago",
        "Plan when nothing writes to the database.",
    )


def _candidates(
    scores: Sequence[Scores],
    positions_by_scores: Sequence[Mapping[Parameters, int]],
    common: Set[Parameters],
    rules: Rules,
) -> list[_Candidate]:
    """Returns the variants that slow down no workload, the best first."""
    candidates = []
    for parameters in common:
        positions = tuple(positions_of[parameters] for positions_of in positions_by_scores)
        pairs = list(zip(scores, positions, strict=True))
        own_scores = [float(case_scores.score[position]) for case_scores, position in pairs]
        least = min(float(case_scores.minimum[position]) for case_scores, position in pairs)
        slow = any(
            _is_slower(score, case_scores, rules)
            for score, (case_scores, _) in zip(own_scores, pairs, strict=True)
        )
        if not slow and least >= rules.worst_allowed:
            candidates.append(
                (sorted(parameters), _Candidate(positions, min(own_scores), max(own_scores)))
            )
    candidates.sort(key=lambda pair: (-pair[1].worst, pair[0]))
    return [candidate for _, candidate in candidates]


def places(scores: Scores) -> Mapping[Parameters, int]:
    """Maps the parameters of complete variants to positions: benchmarks order them differently."""
    positions = {}
    for position, index in enumerate(scores.index):
        label = scores.case.variants[int(index)]
        values = None if label == BASE else parse_label(label)
        if values:
            positions[frozenset(values.items())] = position
    return positions


# Choosing again where the best variant cannot be expressed in the source.


def choose_next(
    paths: Sequence[Path],
    workloads: Sequence[Measured],
    can: IsWritable,
    rules: Rules,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
) -> Together:
    """Chooses again among the variants that `can` allows, for workloads that share an entry.

    It is called only after the rules chose a variant, so it adds no chance findings.
    """
    if len(workloads) > 1:
        return choose_together(paths, workloads, rules, declared, confirm_with, can)
    (workload,) = workloads
    ranking = rank(
        paths,
        pattern=only(workloads),
        axes={axis: frozenset({value}) for axis, value in workload.workload.items()},
        top=rules.candidates + 1,
        rules=rules,
        declared=declared,
        confirm_with=confirm_with,
        can=can,
    )
    return _chosen(held_back(_same(ranking.workloads, workload), rules))


def _chosen(workload: ScoredWorkload) -> Together:
    choice = workload.choice
    assert choice is not None, "samples were looked at"
    chosen = next(
        (variant for variant in workload.variants if variant.variant == choice.variant), None
    )
    if chosen is None:
        return Together((), choice.reason)
    return Together((chosen.model_copy(update={"score": choice.score}),), choice.reason)


def _same(workloads: Sequence[ScoredWorkload], measured: Measured) -> ScoredWorkload:
    """Returns the workload that was ranked."""
    for workload in workloads:
        if _identity(workload) == _identity(measured):
            return workload
    raise InputError(
        f"{measured.database}: {measured.algorithm} does not have what was ranked a moment ago",
        "Plan when nothing writes to the database.",
    )


def _identity(workload: Measured) -> tuple[object, ...]:
    return (
        workload.algorithm,
        workload.workload,
        workload.gpu,
        workload.ctk,
        workload.cccl,
        workload.databases,
    )
