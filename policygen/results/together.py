"""Chooses one variant for several workloads that share an entry: the best in its worst case."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from policygen.errors import InputError
from policygen.model.results import Measured, PointRatio, Rules, ScoredVariant
from policygen.model.workload import BASE, axes, axis_name, parse_label
from policygen.results.cases import Case, in_words, missing_of_base
from policygen.results.choice import (
    Confirmed,
    IsWritable,
    confirm,
    confirming,
    disagreements,
    held_back,
    refusal,
    shrunken,
)
from policygen.results.noise import FINALISTS
from policygen.results.ranking import Warnings, last_rung, open_cases, rank, scored_variant
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, Scores, deviation, half_width, score_case
from policygen.results.tables import DeclaredAxes

Parameters = frozenset[tuple[str, int]]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Together:
    """The variant that serves all workloads; no variant if there is none, with the reason."""

    variants: tuple[ScoredVariant, ...]
    """In the order of the workloads."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Subject:
    """One of the workloads, with its measurements."""

    measured: Measured
    scores: Scores
    reader: SampleReader
    final: Case | None
    """Its confirming run, if there is one."""
    remeasured: Mapping[str, Confirmed]
    """Without such a run, what the last rung of its search says of the finalists."""
    positions: Mapping[Parameters, int]

    def label(self, parameters: Parameters) -> str:
        return self.scores.case.variants[int(self.scores.index[self.positions[parameters]])]

    def score(self, parameters: Parameters) -> float:
        return float(self.scores.score[self.positions[parameters]])

    def least(self, parameters: Parameters) -> float:
        """Returns its ratio on the worst runtime workload."""
        return float(self.scores.minimum[self.positions[parameters]])


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
    declared = declared or {}
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only(workloads)) as cases,
        open_cases(confirm_with, warnings, only(workloads)) as final_cases,
    ):
        decoder.start()
        cases_to_join = [find_case(cases, measured) for measured in workloads]
        missing = [name for case in cases_to_join for name in missing_of_base(case, declared)]
        if missing:
            return Together((), in_words(tuple(dict.fromkeys(missing))))
        subjects = []
        for measured, case in zip(workloads, cases_to_join, strict=True):
            scores = score_case(case, declared)
            reader = SampleReader(case, decoder, warnings.add)
            final = confirming(case, final_cases)
            remeasured = {} if final else last_rung(scores, rules) or {}
            subjects.append(_Subject(measured, scores, reader, final, remeasured, places(scores)))
        common = set.intersection(*(set(subject.positions) for subject in subjects))
        if not common:
            return Together((), "no variant was measured for all of them")
        candidates = _candidates(subjects, common, rules)
        if not candidates:
            return Together((), f"no variant suits all of them: {_harm(subjects, common)}")
        is_confirmed = any(subject.final for subject in subjects)
        if is_confirmed:
            # Each workload that has a confirming run must have been remeasured with it.
            finals = [(subject, subject.final) for subject in subjects if subject.final]
            candidates = [
                key
                for key in candidates
                if all(subject.label(key) in final.variants for subject, final in finals)
            ][:FINALISTS]
        for key in candidates:
            scores_of_key = [subject.score(key) for subject in subjects]
            if max(scores_of_key) < rules.least_score and not is_confirmed:
                continue  # samples would not help
            if can is not None and not can(subjects[0].label(key)):
                continue
            judged = [_judged(item, key, rules, declared, len(candidates)) for item in subjects]
            variants, allowed, slower = zip(*judged, strict=True)
            if any(allowed) and not any(slower):
                worst = min(scores_of_key)
                reason = f"its lowest score over {len(workloads)} workloads is {worst:.6f}"
                return Together(variants, reason)
    return Together((), "the rules reject every variant that was measured for all of them")


def _harm(subjects: Sequence[_Subject], common: Set[Parameters]) -> str:
    """Describes how the best variant for one workload harms the workload that suffers most."""
    keys = sorted(common, key=sorted)
    best, key = max(
        ((subject, key) for subject in subjects for key in keys),
        key=lambda pair: pair[0].score(pair[1]),
    )
    others = [subject for subject in subjects if subject is not best] or [best]
    worst = min(others, key=lambda subject: (subject.score(key), subject.least(key)))
    effect = f"{worst.score(key):.6f} for {_name(worst, subjects)}"
    if worst.score(key) >= 1:
        effect += f", {worst.least(key):.6f} on one of its runtime workloads"
    return (
        f"{best.label(key)} scores {best.score(key):.6f} for {_name(best, subjects)} and {effect}"
    )


def _name(subject: _Subject, among: Sequence[_Subject]) -> str:
    """Returns a workload in words, with the benchmark if there are several."""
    measured = subject.measured
    words = axes({axis_name(axis): value for axis, value in measured.workload.items()})
    several = len({item.measured.algorithm for item in among}) > 1
    return " ".join([measured.algorithm, *words] if several else words)


def _judged(
    subject: _Subject, key: Parameters, rules: Rules, declared: DeclaredAxes, among: int
) -> tuple[ScoredVariant, bool, bool]:
    """Applies the rules to a variant for one of the workloads.

    Returns it with the score to report, whether it is allowed, and whether it is certainly slower.
    """
    scores, position = subject.scores, subject.positions[key]
    variant = scored_variant(scores, position, rules, subject.reader)
    disagree = bool(disagreements(scores, [variant]))
    if (in_last_rung := subject.remeasured.get(variant.variant)) is not None:
        return variant, in_last_rung.refusal is None and not disagree, False
    if subject.final is None:
        sure = rules.accept_unconfirmed or variant.score >= rules.holds
        allowed = sure and not disagree and refusal(variant, scores, rules) is None
        shrunken_score = shrunken(variant.score, scores, rules)
        return variant.model_copy(update={"score": shrunken_score}), allowed, False
    confirmed = confirm(scores, [position], subject.final, rules, declared, among)
    if (result := confirmed.get(variant.variant)) is None:
        return variant, False, False
    allowed = result.refusal is None and not disagree
    confirmed_variant = variant.model_copy(update={"score": result.score})
    return confirmed_variant, allowed, _is_slower(result.score, scores, rules)


def _is_slower(score: float, scores: Scores, rules: Rules) -> bool:
    """Returns whether a score is below 1 by more than the noise."""
    return score < 1 - half_width(rules) * deviation(scores, rules)


def _candidates(
    subjects: Sequence[_Subject], common: Set[Parameters], rules: Rules
) -> list[Parameters]:
    """Returns the variants that slow down no workload, the best first."""
    candidates = [
        key
        for key in common
        if min(subject.least(key) for subject in subjects) >= rules.worst_allowed
        and not any(_is_slower(subject.score(key), subject.scores, rules) for subject in subjects)
    ]
    return sorted(
        candidates, key=lambda key: (-min(subject.score(key) for subject in subjects), sorted(key))
    )


def places(scores: Scores) -> Mapping[Parameters, int]:
    """Maps the parameters of complete variants to positions: benchmarks order them differently."""
    return {
        frozenset(values.items()): position
        for position, label in enumerate(scores.names)
        if label != BASE and (values := parse_label(label))
    }


def only(workloads: Sequence[Measured]) -> re.Pattern[str]:
    """Returns a pattern for the algorithms needed: a database may hold a hundred others."""
    names = dict.fromkeys(re.escape(workload.algorithm) for workload in workloads)
    return re.compile(f"(?:{'|'.join(names)})$")


def find_case(cases: Sequence[Case], workload: Measured) -> Case:
    """Returns the case of a ranked workload."""
    return _find(((Measured(**case.measured), case) for case in cases), workload)


def _find(items: Iterable[tuple[Measured, Item]], ranked: Measured) -> Item:
    fields = ("algorithm", "workload", "gpu", "ctk", "cccl", "databases")
    for measured, item in items:
        if all(getattr(measured, name) == getattr(ranked, name) for name in fields):
            return item
    raise InputError(
        f"{ranked.database}: {ranked.algorithm} changed while being read",
        "Run again when no program writes to the database.",
    )


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
    (measured,) = workloads
    ranking = rank(
        paths,
        pattern=only(workloads),
        axes={axis: frozenset({value}) for axis, value in measured.workload.items()},
        top=rules.candidates + 1,
        rules=rules,
        declared=declared,
        confirm_with=confirm_with,
        can=can,
    )
    workload = held_back(_find(((scored, scored) for scored in ranking.workloads), measured), rules)
    choice = workload.choice
    assert choice is not None, "samples were examined"
    chosen = tuple(
        variant.model_copy(update={"score": choice.score})
        for variant in workload.variants
        if variant.variant == choice.variant
    )
    return Together(chosen, choice.reason)


Evidenced = tuple[ScoredVariant, tuple[PointRatio, ...]]
"""The score of a variant, and its ratio in each runtime workload."""


def evidence(
    paths: Sequence[Path],
    requested: Sequence[tuple[Measured, str]],
    rules: Rules,
    declared: DeclaredAxes | None = None,
) -> list[Evidenced | None]:
    """Returns the scores for each workload and label; None if not all its points were measured."""
    if not requested:
        return []
    warnings = Warnings()  # already reported by the ranking
    proofs: list[Evidenced | None] = []
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only([workload for workload, _ in requested])) as cases,
    ):
        decoder.start()
        for measured, label in requested:
            scores = score_case(find_case(cases, measured), declared or {})
            parameters = parse_label(label)
            position = places(scores).get(frozenset((parameters or {}).items()))
            if position is None:
                proofs.append(None)
                continue
            reader = SampleReader(scores.case, decoder, warnings.add)
            scored = scored_variant(scores, position, rules, reader)
            proofs.append((scored, scores.point_ratios(int(scores.index[position]))))
    return proofs


def variants_of(paths: Sequence[Path], workloads: Sequence[Measured]) -> list[tuple[str, ...]]:
    """Returns the labels of all variants that were measured for some workloads."""
    with open_cases(paths, Warnings(), only(workloads)) as cases:
        label_lists = [find_case(cases, workload).variants for workload in workloads]
    return [tuple(label for label in labels if label != BASE) for labels in label_lists]
