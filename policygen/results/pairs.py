"""The same variants on the same runtime workloads, measured twice."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from policygen.model.db_compare import PointDifference, ScoreDifference
from policygen.model.labels import BASE, parse_label
from policygen.model.results import Rules
from policygen.results.case import Case
from policygen.results.confidence import deviation
from policygen.results.load import Floats, Integers
from policygen.results.ranks import LEAST
from policygen.results.score import Scores

Where = tuple[str, frozenset[tuple[str, str]]]
"""A sub-benchmark, and its axes with their values."""
Parameters = frozenset[tuple[str, int]]
Key = TypeVar("Key")


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
