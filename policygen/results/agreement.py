"""Compares two runs or GPUs: what they share, whether their choices agree, which wins transfer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from policygen.model.databases import (
    Agreement,
    ComparedSide,
    ComparedWorkload,
    LoneWorkload,
    PairedScore,
    PointDifference,
    RankOrder,
    Says,
    ScoreDifference,
    Winner,
)
from policygen.model.results import Choice, DataWarning, Rules
from policygen.model.workload import BASE, parse_label
from policygen.results.cases import Case, Warn
from policygen.results.choice import Confirmed, choose, confirm, finalists
from policygen.results.database import Floats, Integers
from policygen.results.ranking import is_partial, leading
from policygen.results.samples import Decoder
from policygen.results.score import Confidence, SampleReader, Scores, deviation, judge, score_case
from policygen.results.tables import DeclaredAxes

WORST: tuple[Says, ...] = ("contradicts", "not measured", "not confirmed", "holds")
"""Verdicts from worst to best: if two winners differ, the worst one counts."""
KEYS: tuple[Literal["gpu", "ctk", "cccl"], ...] = ("gpu", "ctk", "cccl")
NOT_BOTH = "was measured on both sides"
NOT_WHOLE = "the other side has not measured it on all runtime workloads"
Axes = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a comparison."""

    rules: Rules
    decoder: Decoder
    warn: Warn
    declared_a: DeclaredAxes
    declared_b: DeclaredAxes
    axes: Axes


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a pair, and its part of the variants and runtime workloads that both have."""

    scores: Scores
    reader: SampleReader
    choice: Choice | None
    declared: DeclaredAxes
    index: Integers
    """Index into its variants, by common variant, base first."""
    columns: Integers
    """Index into its runtime workloads, one sub-benchmark after the other."""
    ratios: Floats
    """Speedups of the common variants by common runtime workload."""
    common: Floats
    """Its scores of the common variants except base, with A's weights."""

    @property
    def winner(self) -> int | None:
        """The index of the variant it chooses, else of the best one."""
        case = self.scores.case
        if self.choice is not None and self.choice.variant is not None:
            return case.variants.index(self.choice.variant)
        return next((int(i) for i in self.scores.index if case.variants[int(i)] != BASE), None)

    def place(self, variant: int | None) -> int | None:
        """Returns a variant's position among the common ones, excluding base."""
        positions = np.flatnonzero(self.index[1:] == variant)
        return int(positions[0]) if positions.size else None

    @property
    def centers(self) -> Floats:
        """Runs by common variants by common runtime workloads."""
        centers = np.concatenate([part.centers for part in self.scores.case.parts], axis=2)
        return np.asarray(centers[:, self.index][:, :, self.columns])

    @property
    def bases(self) -> Floats:
        """Base's time on each common runtime workload, averaged over the runs."""
        centers = self.centers[:, 0]
        measured = ~np.isnan(centers)
        return np.asarray(
            np.where(measured, centers, 0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
        )


def compare_cases(
    cases_a: Sequence[Case], cases_b: Sequence[Case], terms: Terms
) -> tuple[ComparedWorkload, ...]:
    """Compares the workloads that both sides have; warns about those without a common variant."""
    compared = (
        _compared(score_case(case_a, terms.declared_a), score_case(case_b, terms.declared_b), terms)
        for case_a, case_b in pairs(cases_a, cases_b)
    )
    return tuple(workload for workload in compared if workload is not None)


def lone(cases: Sequence[Case], compared: Sequence[ComparedWorkload]) -> tuple[LoneWorkload, ...]:
    """Returns the workloads of one side that were compared with nothing."""
    compared_subjects = {
        (workload.algorithm, frozenset(workload.workload.items())) for workload in compared
    }
    lone_by_subject = {
        case.subject: LoneWorkload(algorithm=case.algorithm, workload=dict(case.workload))
        for case in cases
        if case.subject not in compared_subjects
    }
    return tuple(lone_by_subject.values())


def _sides(scores_a: Scores, scores_b: Scores, terms: Terms) -> tuple[_Side, _Side, Floats] | None:
    """Returns what the sides have in common, with A's weights; None, with a warning, if nothing."""
    case_a, case_b = scores_a.case, scores_b.case
    index_a, index_b = _common(_by_parameters(case_a), _by_parameters(case_b))
    columns_a, columns_b = _common(_by_point(case_a), _by_point(case_b))
    ratios_a = np.concatenate(scores_a.ratios, axis=1)[np.ix_(index_a, columns_a)]
    ratios_b = np.concatenate(scores_b.ratios, axis=1)[np.ix_(index_b, columns_b)]
    # Only variants that both sides measured on all common runtime workloads
    complete = ~(np.isnan(ratios_a) | np.isnan(ratios_b)).any(axis=1)
    if not columns_a.size or complete.sum() < 2:
        missing = "variant" if columns_a.size else "runtime workload"
        files = " + ".join((*case_a.files, *case_b.files))
        message = f"{case_a.title}: no {missing} {NOT_BOTH}"
        terms.warn(DataWarning(database=files, table=None, message=message))
        return None
    weights = np.concatenate(scores_a.weights)[columns_a]
    weights = weights / weights.sum()

    def side(
        scores: Scores, declared: DeclaredAxes, index: Integers, columns: Integers, ratios: Floats
    ) -> _Side:
        """Builds one side, with the choice it makes by itself."""
        reader = SampleReader(scores.case, terms.decoder, terms.warn)
        choice = None
        if not is_partial(scores.case, terms.axes):
            variants = leading(scores, terms.rules.candidates + 1, terms.rules, reader)
            choice = choose(variants, scores, terms.rules, declared)
        index, ratios = index[complete], ratios[complete]
        return _Side(scores, reader, choice, declared, index, columns, ratios, ratios[1:] @ weights)

    a = side(scores_a, terms.declared_a, index_a, columns_a, ratios_a)
    b = side(scores_b, terms.declared_b, index_b, columns_b, ratios_b)
    return a, b, weights


def _compared(scores_a: Scores, scores_b: Scores, terms: Terms) -> ComparedWorkload | None:
    if (sides := _sides(scores_a, scores_b, terms)) is None:
        return None
    a, b, weights = sides
    case_a, case_b = scores_a.case, scores_b.case
    differs = tuple(name for name in KEYS if getattr(case_a.key, name) != getattr(case_b.key, name))
    copied = any(_same(run_a, run_b) for run_a in a.centers for run_b in b.centers)
    comparable = not differs and not copied
    winners = (
        _winner(a, b, terms.rules, comparable=comparable),
        _winner(b, a, terms.rules, comparable=comparable),
    )
    names = [case_a.variants[index] for index in a.index[1:]]
    order = sorted(range(len(names)), key=lambda index: (-a.common[index], names[index]))
    return ComparedWorkload(
        algorithm=case_a.algorithm,
        workload=dict(case_a.workload),
        a=_compared_side(a, winners[0]),
        b=_compared_side(b, winners[1]),
        differs=differs,
        copy_of_rows=copied,
        agreement=_agreement(a, b, winners),
        order=order_of(a.common, b.common),
        difference=_score_difference(a, b, names, terms.rules, same=comparable),
        points=_point_differences(a, b, weights),
        scores=tuple(
            PairedScore(variant=names[index], a=float(a.common[index]), b=float(b.common[index]))
            for index in order
        ),
    )


def _compared_side(side: _Side, winner: Winner | None) -> ComparedSide:
    case = side.scores.case
    return ComparedSide(
        **dict(case.key),
        databases=case.files,
        variants=side.scores.tried,
        only=len(set(side.scores.index.tolist()) - set(side.index.tolist())),
        runtime_only=len(case.points) - len(side.columns),
        approximate=side.scores.approximate,
        choice=side.choice,
        winner=winner,
    )


def _winner(side: _Side, other_side: _Side, rules: Rules, *, comparable: bool) -> Winner | None:
    """Returns a side's winner, and the other side's verdict on it."""
    variant = side.winner
    if variant is None:
        return None
    place = side.place(variant)
    chosen = side.choice is not None and side.choice.decision == "use"
    comparison: dict[str, Any] = {}
    if place is None:
        score = float(side.scores.score[side.scores.index == variant][0])
        verdict, explanation = "not measured", NOT_WHOLE
    else:
        score, other_score = float(side.common[place]), float(other_side.common[place])
        # The other side may not have measured it completely.
        scores, index = other_side.scores, int(other_side.index[place + 1])
        is_judged = index in scores.index
        reader = other_side.reader
        confidence = judge(scores, index, rules, reader, named=True) if is_judged else None
        comparison = {
            "rank": _rank(side.common, place),
            "other_score": other_score,
            "other_rank": _rank(other_side.common, place),
            "costs": 1 - other_score / float(other_side.common.max()),
            "verdict": None if confidence is None else confidence.verdict,
        }
        confirmed = _confirmed(side, other_side, variant, rules) if comparable and chosen else None
        verdict, explanation = _verdict(confidence, other_score, confirmed, rules)
    return Winner(
        variant=side.scores.case.variants[variant],
        chosen=chosen,
        score=score,
        says=verdict if chosen else None,
        reason=explanation if chosen else "",
        **{"rank": None, **comparison},
    )


def _rank(scores: Floats, place: int) -> int:
    """Returns the 1-based rank; equal scores share the first place."""
    return 1 + int((scores > scores[place]).sum())


def _confirmed(side: _Side, other_side: _Side, variant: int, rules: Rules) -> Confirmed | None:
    """Returns what `db choose --confirm` would report, with the other side as the later run."""
    other_case, label = other_side.scores.case, side.scores.case.variants[variant]
    positions = finalists(side.scores, other_case, rules)
    confirmed = confirm(side.scores, positions, other_case, rules, other_side.declared)
    return confirmed.get(label)


def _verdict(
    confidence: Confidence | None, score: float, confirmed: Confirmed | None, rules: Rules
) -> tuple[Says, str]:
    """Returns one side's verdict on the other side's choice, and the reason."""
    if confidence is None:
        return "not measured", NOT_WHOLE
    if confidence.verdict is None and not rules.without_samples:
        return "not confirmed", "without samples, its uncertainty is unknown"
    if confidence.loses:
        worst = f"a runtime workload at {confidence.worst.ratio:.4f}, less than is allowed"
        return "contradicts", worst
    if confidence.verdict == "worse":
        return "contradicts", f"{score:.6f} is slower than base, beyond noise"
    if confirmed is None:
        explanation = f"{score:.6f} is too close to base to call"
        return ("holds", "") if confidence.verdict == "better" else ("not confirmed", explanation)
    refusal = confirmed.refusal or ""
    return ("not confirmed" if refusal else "holds"), refusal.removeprefix("not confirmed: ")


def _agreement(
    a: _Side, b: _Side, winners: tuple[Winner | None, Winner | None]
) -> Agreement | None:
    if a.choice is None or b.choice is None:
        return None
    chosen = [winner for winner in winners if winner is not None and winner.chosen]
    if not chosen:
        return "both keep base"
    place = a.place(a.winner)
    # The sides may name it differently: the position among the common variants identifies it.
    if len(chosen) == 2 and place is not None and place == b.place(b.winner):
        return "same variant"
    verdicts = {winner.says for winner in chosen}
    return next(verdict for verdict in WORST if verdict in verdicts)


Where = tuple[str, frozenset[tuple[str, str]]]
"""A sub-benchmark, and its axes with their values."""
Parameters = frozenset[tuple[str, int]]
Key = TypeVar("Key")


# The same variants on the same runtime workloads, measured twice.


def pairs(cases_a: Sequence[Case], cases_b: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Yields the pairs of cases of both sides that are about the same workload.

    Cases with the same GPU and versions are paired first; each remaining case is paired with all
    others.
    """
    matched = set.intersection(
        *({(case.subject, case.key) for case in cases} for cases in (cases_a, cases_b))
    )
    for case_a in cases_a:
        for case_b in cases_b:
            of_pair = {(case.subject, case.key) for case in (case_a, case_b)}
            if case_a.subject == case_b.subject and (len(of_pair) == 1 or not of_pair & matched):
                yield case_a, case_b


def _score_difference(
    a: _Side, b: _Side, names: Sequence[str], rules: Rules, *, same: bool
) -> ScoreDifference:
    """Summarizes how far the scores differ, excluding base."""
    log_ratios = np.log(b.common / a.common)
    shift = float(log_ratios.mean())
    spread = _spread(log_ratios)
    farthest = int(np.abs(log_ratios - shift).argmax())
    return ScoreDifference(
        shift=shift,
        spread=spread,
        expected=_share(a, b, deviation(a.scores, rules), deviation(b.scores, rules)),
        noise=spread / _share(a, b, 1.0, 1.0) if same and spread is not None else None,
        largest=float(log_ratios[farthest] - shift),
        variant=names[farthest],
    )


def _point_differences(a: _Side, b: _Side, weights: Floats) -> tuple[PointDifference, ...]:
    log_ratios = np.log(b.ratios[1:] / a.ratios[1:])
    bases_a, bases_b = a.bases, b.bases
    noise_a, noise_b = (np.concatenate(side.scores.noise.points)[side.columns] for side in (a, b))
    points = [(part.table, point) for part in a.scores.case.parts for point in part.points]
    return tuple(
        PointDifference(
            subbench=table.subbench,
            point=table.by_axis(point),
            weight=float(weights[position]),
            base_a=float(bases_a[position]),
            base_b=float(bases_b[position]),
            shift=float(log_ratios[:, position].mean()),
            spread=_spread(log_ratios[:, position]),
            expected=_share(a, b, float(noise_a[position]), float(noise_b[position])),
        )
        for position, (table, point) in enumerate(points[column] for column in a.columns)
    )


def _by_parameters(case: Case) -> dict[Parameters | str, int]:
    """Indexes variants by parameters: versions of a benchmark may order these differently."""
    index_by_parameters: dict[Parameters | str, int] = {BASE: 0}
    for index, name in enumerate(case.variants[1:], start=1):
        index_by_parameters.setdefault(frozenset((parse_label(name) or {}).items()), index)
    return index_by_parameters


def _by_point(case: Case) -> dict[Where, int]:
    points = [
        (part.table.subbench, frozenset(zip(part.table.rt_axes, point, strict=True)))
        for part in case.parts
        for point in part.points
    ]
    return {point: index for index, point in enumerate(points)}


def _common(index_a: Mapping[Key, int], index_b: Mapping[Key, int]) -> tuple[Integers, Integers]:
    index_pairs = [(index, index_b[key]) for key, index in index_a.items() if key in index_b]
    positions = np.array(index_pairs, np.int64).reshape(-1, 2)
    return positions[:, 0], positions[:, 1]


def _spread(log_ratios: Floats) -> float | None:
    """Returns the standard deviation around the mean, which removes the shift common to all."""
    return float(log_ratios.std(ddof=1)) if len(log_ratios) >= LEAST else None


def _share(a: _Side, b: _Side, deviation_a: float, deviation_b: float) -> float:
    """Returns the deviation of a difference around its mean, without base's half of the noise.

    Base and variant are equally noisy, and base's noise is the same for all variants: the variances
    of both sides are added and halved. A mean over several runs has less noise.
    """
    runs_a, runs_b = len(a.scores.case.databases), len(b.scores.case.databases)
    return math.sqrt((deviation_a**2 / runs_a + deviation_b**2 / runs_b) / 2)


def _same(run_a: Floats, run_b: Floats) -> bool:
    shared = ~np.isnan(run_a) & ~np.isnan(run_b)
    return bool(shared[0].any()) and bool(np.all(run_a[shared] == run_b[shared]))


LEAST = 3
"""Minimum number of variants for which an order is reported."""
MOST = 10
"""Maximum size of the best group; with few variants it is a third of them."""


# Comparing the order of two lists of scores.


def ranks(values: Floats) -> Floats:
    """Ranks values, 1 for the largest; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(-values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray(((2 * last - counts + 1) / 2)[inverse])


def spearman(values_a: Floats, values_b: Floats) -> float | None:
    """Returns the rank correlation; None if there are too few values or all are equal."""
    if len(values_a) < LEAST:
        return None
    x, y = (places - places.mean() for places in (ranks(values_a), ranks(values_b)))
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / scale if scale else None


def best(values: Floats, count: int) -> Integers:
    """Returns the indices of the largest values; among equal ones, the first come first."""
    return np.argsort(-values, kind="stable")[:count]


def order_of(scores_a: Floats, scores_b: Floats) -> RankOrder:
    """Measures how similar two orders of the same variants are."""
    count = max(1, min(MOST, len(scores_a) // LEAST))
    best_a, best_b = best(scores_a, count), best(scores_b, count)
    return RankOrder(
        spearman=spearman(scores_a, scores_b),
        best=count,
        in_both=len(np.intersect1d(best_a, best_b)),
        by_chance=count**2 / len(scores_a),
        best_of_a=spearman(scores_a[best_a], scores_b[best_a]),
        best_of_b=spearman(scores_a[best_b], scores_b[best_b]),
    )
