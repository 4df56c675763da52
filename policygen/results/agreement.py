"""Two runs, or two GPUs: what they have in common, whether they choose alike, whose wins travel."""

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
from policygen.results.ranking import basis_of, is_partial, leading
from policygen.results.samples import Decoder
from policygen.results.score import Confidence, SampleReader, Scores, deviation, judge, score_case
from policygen.results.tables import DeclaredAxes

WORST: tuple[Says, ...] = ("contradicts", "not measured", "not confirmed", "holds")
"""What counts where two winners differ, the first that is said."""
KEYS: tuple[Literal["gpu", "ctk", "cccl"], ...] = ("gpu", "ctk", "cccl")
NOT_BOTH = "was measured on both sides"
NOT_WHOLE = "the other side has not measured it on all runtime workloads"
Axes = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Terms:
    """How sides are compared."""

    rules: Rules
    decoder: Decoder
    warn: Warn
    declared_a: DeclaredAxes
    declared_b: DeclaredAxes
    axes: Axes


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a pair: what it has, and what it has in common with the other one."""

    scores: Scores
    reader: SampleReader
    choice: Choice | None
    declared: DeclaredAxes
    index: Integers
    """Into its variants, by common variant, base first."""
    common: Floats
    """Its scores of the common variants but base."""

    @property
    def winner(self) -> int | None:
        """What it chooses, into its variants; else the best one."""
        case = self.scores.case
        if self.choice is not None and self.choice.variant is not None:
            return case.variants.index(self.choice.variant)
        return next((int(i) for i in self.scores.index if case.variants[int(i)] != BASE), None)

    def place(self, variant: int | None) -> int | None:
        """Where a variant stands among the common ones, base not counted."""
        found = np.flatnonzero(self.index[1:] == variant)
        return int(found[0]) if found.size else None


def compare_cases(
    ones: Sequence[Case], others: Sequence[Case], how: Terms
) -> tuple[ComparedWorkload, ...]:
    """The workloads that both sides have; those without a common variant are told."""
    found = []
    for one, other in pairs(ones, others):
        pair = pair_of(score_case(one, how.declared_a), score_case(other, how.declared_b))
        if not pair.columns_a.size or len(pair.index_a) < 2:
            what = "variant" if pair.columns_a.size else "runtime workload"
            how.warn(_nothing_common(one, other, what))
        else:
            found.append(_compared(pair, how))
    return tuple(found)


def lone(cases: Sequence[Case], compared: Sequence[ComparedWorkload]) -> tuple[LoneWorkload, ...]:
    """The workloads of one side that nothing was compared with."""
    known = {(one.algorithm, frozenset(one.workload.items())) for one in compared}
    found: dict[tuple[str, frozenset[tuple[str, str]]], LoneWorkload] = {}
    for case in cases:
        key = subject(case)
        if key not in known:
            found[key] = LoneWorkload(algorithm=case.algorithm, workload=dict(case.workload))
    return tuple(found.values())


def _nothing_common(one: Case, other: Case, what: str) -> DataWarning:
    where = ", ".join(f"{name}={value}" for name, value in one.workload.items())
    files = " + ".join((*one.files, *other.files))
    message = f"{one.algorithm}[{where}]: no {what} {NOT_BOTH}"
    return DataWarning(database=files, table=None, message=message)


@dataclass(frozen=True, slots=True)
class Common:
    """What two sides have in common of one workload; base is the first variant."""

    a: Scores
    b: Scores
    index_a: Integers
    """Into A's variants, by common variant."""
    index_b: Integers
    columns_a: Integers
    """Into A's runtime workloads, one sub-benchmark after the other."""
    columns_b: Integers

    @property
    def names(self) -> list[str]:
        """The variants, as A calls them."""
        return [self.a.case.variants[index] for index in self.index_a]

    @property
    def weights(self) -> Floats:
        """A's, of what both have."""
        own = np.concatenate(self.a.weights)[self.columns_a]
        return np.asarray(own / own.sum())

    @property
    def ratios(self) -> tuple[Floats, Floats]:
        """Variants by runtime workloads, of both sides."""
        return (
            np.concatenate(self.a.ratios, axis=1)[np.ix_(self.index_a, self.columns_a)],
            np.concatenate(self.b.ratios, axis=1)[np.ix_(self.index_b, self.columns_b)],
        )

    @property
    def is_copy(self) -> bool:
        """Whether all centers that both have are the same to the bit."""
        one = _centers(self.a.case)[:, self.index_a][:, :, self.columns_a]
        other = _centers(self.b.case)[:, self.index_b][:, :, self.columns_b]
        return any(_same(own, their) for own in one for their in other)


def _compared(pair: Common, how: Terms) -> ComparedWorkload:
    case, other = pair.a.case, pair.b.case
    differs = tuple(name for name in KEYS if getattr(case.key, name) != getattr(other.key, name))
    copied = pair.is_copy
    weights = pair.weights
    score_a, score_b = (ratios[1:] @ weights for ratios in pair.ratios)
    a = _side(pair.a, pair.index_a, score_a, how.declared_a, how)
    b = _side(pair.b, pair.index_b, score_b, how.declared_b, how)
    again = not differs and not copied
    wins = _winner(a, b, how.rules, again=again), _winner(b, a, how.rules, again=again)
    names = pair.names[1:]
    order = sorted(range(len(names)), key=lambda i: (-score_a[i], names[i]))
    return ComparedWorkload(
        algorithm=case.algorithm,
        workload=dict(case.workload),
        a=_told(a, wins[0], len(pair.columns_a)),
        b=_told(b, wins[1], len(pair.columns_b)),
        differs=differs,
        copy_of_rows=copied,
        agreement=_agreement(a, b, wins),
        order=order_of(score_a, score_b),
        difference=score_difference(pair, how.rules, same=again),
        points=point_differences(pair),
        scores=tuple(
            PairedScore(variant=names[i], a=float(score_a[i]), b=float(score_b[i])) for i in order
        ),
    )


def _side(
    scores: Scores, index: Integers, common: Floats, declared: DeclaredAxes, how: Terms
) -> _Side:
    """One side, with what it chooses by itself."""
    reader = SampleReader(scores.case, how.decoder, how.warn)
    choice = None
    if not is_partial(scores.case, how.axes):
        variants = leading(scores, how.rules.candidates + 1, how.rules, reader)
        choice = choose(variants, basis_of(scores, variants, None, declared), how.rules, None)
    return _Side(scores, reader, choice, declared, index, common)


def _told(side: _Side, winner: Winner | None, points: int) -> ComparedSide:
    case = side.scores.case
    return ComparedSide(
        **dict(case.key),
        databases=case.files,
        variants=side.scores.tried,
        only=len(set(side.scores.index.tolist()) - set(side.index.tolist())),
        runtime_only=sum(len(part.points) for part in case.parts) - points,
        approximate=side.scores.approximate,
        choice=side.choice,
        winner=winner,
    )


def _winner(own: _Side, other: _Side, rules: Rules, *, again: bool) -> Winner | None:
    """A side's winner, and what the other side says of it."""
    variant = own.winner
    if variant is None:
        return None
    place = own.place(variant)
    chosen = own.choice is not None and own.choice.decision == "use"
    told: dict[str, Any] = {}
    if place is None:
        score = float(own.scores.score[own.scores.index == variant][0])
        says, reason = "not measured", NOT_WHOLE
    else:
        score, there = float(own.common[place]), float(other.common[place])
        found = _judged(other, place, rules)
        told = {
            "rank": _rank(own.common, place),
            "other_score": there,
            "other_rank": _rank(other.common, place),
            "costs": 1 - there / float(other.common.max()),
            "verdict": None if found is None else found.verdict,
        }
        later = _confirmed(own, other, variant, rules) if again and chosen else None
        says, reason = _says(found, there, later, rules)
    return Winner(
        variant=own.scores.case.variants[variant],
        chosen=chosen,
        score=score,
        says=says if chosen else None,
        reason=reason if chosen else "",
        **{"rank": None, **told},
    )


def _rank(scores: Floats, place: int) -> int:
    """Of equal ones the first place."""
    return 1 + int((scores > scores[place]).sum())


def _judged(side: _Side, place: int, rules: Rules) -> Confidence | None:
    """What a side says of a variant that another one names; none where it has not all of it."""
    variant = int(side.index[place + 1])
    if variant not in side.scores.index:
        return None
    return judge(side.scores, variant, rules, side.reader, named=True)


def _confirmed(own: _Side, other: _Side, variant: int, rules: Rules) -> Confirmed | None:
    """What `db choose --confirm` would say of it, with the other side as the later run."""
    again, label = other.scores.case, own.scores.case.variants[variant]
    found = confirm(own.scores, finalists(own.scores, again, rules), again, rules, other.declared)
    return found.get(label)


def _says(
    found: Confidence | None, score: float, later: Confirmed | None, rules: Rules
) -> tuple[Says, str]:
    """What a side says of the other one's choice, and why."""
    if found is None:
        return "not measured", NOT_WHOLE
    if against := _against(found, score, rules):
        return against
    if later is None:
        told = f"{score:.6f} is too close to base to call"
        return ("holds", "") if found.verdict == "better" else ("not confirmed", told)
    refusal = later.refusal or ""
    return ("not confirmed" if refusal else "holds"), refusal.removeprefix("not confirmed: ")


def _against(found: Confidence, score: float, rules: Rules) -> tuple[Says, str] | None:
    """What is against a choice, whatever was found before."""
    if found.verdict is None and not rules.without_samples:
        return "not confirmed", "no samples tell how sure its score is"
    if found.loses:
        return "contradicts", f"a runtime workload at {found.worst.ratio:.4f}, less than is allowed"
    if found.verdict == "worse":
        return "contradicts", f"{score:.6f} is slower than base, beyond noise"
    return None


def _agreement(
    a: _Side, b: _Side, winners: tuple[Winner | None, Winner | None]
) -> Agreement | None:
    if a.choice is None or b.choice is None:
        return None
    chosen = [one for one in winners if one is not None and one.chosen]
    if not chosen:
        return "both keep base"
    place = a.place(a.winner)
    # Each may call it otherwise: it is the same place among the common ones.
    if len(chosen) == 2 and place is not None and place == b.place(b.winner):
        return "same variant"
    said = {one.says for one in chosen}
    return next(says for says in WORST if says in said)


Where = tuple[str, frozenset[tuple[str, str]]]
"""A sub-benchmark, and its axes with their values."""
Parameters = frozenset[tuple[str, int]]
Key = TypeVar("Key")


# The same variants on the same runtime workloads, measured twice.


def pairs(ones: Sequence[Case], others: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """The cases of both sides that are about the same workload.

    What was measured on the same GPU with the same versions belongs together; of what is left,
    each is compared with each.
    """
    for one in ones:
        for other in others:
            if subject(one) != subject(other):
                continue
            alone = not (_has(others, one) or _has(ones, other))
            if one.key == other.key or alone:
                yield one, other


def subject(case: Case) -> tuple[str, frozenset[tuple[str, str]]]:
    """What a case is about, wherever it was measured."""
    return case.algorithm, frozenset(case.workload.items())


def pair_of(a: Scores, b: Scores) -> Common:
    """What both have measured whole, of what both have."""
    rows = _common(_by_parameters(a.case), _by_parameters(b.case))
    columns = _common(_by_point(a.case), _by_point(b.case))
    found = Common(a, b, rows[0], rows[1], columns[0], columns[1])
    one, other = found.ratios
    whole = ~(np.isnan(one) | np.isnan(other)).any(axis=1)
    return Common(a, b, rows[0][whole], rows[1][whole], columns[0], columns[1])


def score_difference(pair: Common, rules: Rules, *, same: bool) -> ScoreDifference:
    """How far the scores are from each other; base, which has none, is left out."""
    one, other = (ratios[1:] @ pair.weights for ratios in pair.ratios)
    between = np.log(other / one)
    shift = float(between.mean())
    spread = _spread(between)
    far = int(np.abs(between - shift).argmax())
    scale = _share(pair, 1.0, 1.0)
    return ScoreDifference(
        shift=shift,
        spread=spread,
        expected=_share(pair, deviation(pair.a, rules), deviation(pair.b, rules)),
        noise=spread / scale if same and spread is not None else None,
        largest=float(between[far] - shift),
        variant=pair.names[far + 1],
    )


def point_differences(pair: Common) -> tuple[PointDifference, ...]:
    """The same for each runtime workload."""
    one, other = pair.ratios
    between = np.log(other[1:] / one[1:])
    bases = _bases(pair.a.case)[pair.columns_a], _bases(pair.b.case)[pair.columns_b]
    noise_a = np.concatenate(pair.a.noise.points)[pair.columns_a]
    noise_b = np.concatenate(pair.b.noise.points)[pair.columns_b]
    points = [
        (part.table.subbench, dict(zip(part.table.rt_axes, point, strict=True)))
        for part in pair.a.case.parts
        for point in part.points
    ]
    weights = pair.weights
    return tuple(
        PointDifference(
            subbench=points[column][0],
            point=points[column][1],
            weight=float(weights[at]),
            base_a=float(bases[0][at]),
            base_b=float(bases[1][at]),
            shift=float(between[:, at].mean()),
            spread=_spread(between[:, at]),
            expected=_share(pair, float(noise_a[at]), float(noise_b[at])),
        )
        for at, column in enumerate(pair.columns_a)
    )


def _has(cases: Sequence[Case], like: Case) -> bool:
    """Whether one of them is about the same, and was measured on the same."""
    return any(subject(case) == subject(like) and case.key == like.key for case in cases)


def _by_parameters(case: Case) -> dict[Parameters | str, int]:
    """The variants by their parameters: versions of a benchmark may order them otherwise."""
    found: dict[Parameters | str, int] = {BASE: 0}
    for index, name in enumerate(case.variants[1:], start=1):
        found.setdefault(frozenset((parse_label(name) or {}).items()), index)
    return found


def _by_point(case: Case) -> dict[Where, int]:
    where = [
        (part.table.subbench, frozenset(zip(part.table.rt_axes, point, strict=True)))
        for part in case.parts
        for point in part.points
    ]
    return {one: index for index, one in enumerate(where)}


def _common(one: Mapping[Key, int], other: Mapping[Key, int]) -> tuple[Integers, Integers]:
    both = [(index, other[key]) for key, index in one.items() if key in other]
    found = np.array(both, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _spread(between: Floats) -> float | None:
    """Around their mean: what all variants have in common is none of a variant's noise."""
    return float(between.std(ddof=1)) if len(between) >= LEAST else None


def _share(pair: Common, one: float, other: float) -> float:
    """The standard deviation of a difference around the mean, but for base's half of the noise.

    Base and variant are equally noisy, and what base adds is the same for all variants: the
    variances of both sides together are halved. A mean over runs has less.
    """
    runs_a, runs_b = len(pair.a.case.databases), len(pair.b.case.databases)
    return math.sqrt((one**2 / runs_a + other**2 / runs_b) / 2)


def _centers(case: Case) -> Floats:
    return np.concatenate([part.centers for part in case.parts], axis=2)


def _bases(case: Case) -> Floats:
    """Base's time on each runtime workload, the mean of the runs."""
    centers = _centers(case)[:, 0]
    known = ~np.isnan(centers)
    return np.asarray(np.where(known, centers, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _same(own: Floats, their: Floats) -> bool:
    shared = ~np.isnan(own) & ~np.isnan(their)
    return bool(shared[0].any()) and bool(np.all(own[shared] == their[shared]))


LEAST = 3
"""Of fewer variants no order is told."""
MOST = 10
"""As many are the best ones at most; of few variants a third."""


# Whether two lists of scores have the same order.


def ranks(values: Floats) -> Floats:
    """The place of each value, 1 for the largest; equal ones share the mean of their places."""
    _, inverse, counts = np.unique(-values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray(((2 * last - counts + 1) / 2)[inverse])


def spearman(one: Floats, other: Floats) -> float | None:
    """The correlation of ranks; none where there are too few, or all are alike."""
    if len(one) < LEAST:
        return None
    x, y = (places - places.mean() for places in (ranks(one), ranks(other)))
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / scale if scale else None


def best(values: Floats, count: int) -> Integers:
    """The indices of the largest ones; of equal ones the first."""
    return np.argsort(-values, kind="stable")[:count]


def order_of(one: Floats, other: Floats) -> RankOrder:
    """How alike two orders of the same variants are."""
    count = max(1, min(MOST, len(one) // LEAST))
    first, second = best(one, count), best(other, count)
    return RankOrder(
        spearman=spearman(one, other),
        best=count,
        in_both=len(np.intersect1d(first, second)),
        by_chance=count**2 / len(one),
        best_of_a=spearman(one[first], other[first]),
        best_of_b=spearman(one[second], other[second]),
    )
