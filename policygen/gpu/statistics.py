"""From times of processes to ratios, scores and intervals: a process is one observation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import fmean, median, stdev, variance

from policygen.gpu.control import Controller
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import RuntimeSpot
from policygen.model.measured import MeasuredVariant, MeasuredVerdict, PointNoise, RuntimeRatio
from policygen.model.results import Interval
from policygen.model.workload import BASE
from policygen.results.cases import importance
from policygen.results.own_tables import Spread, own_weight, spread_of
from policygen.results.tables import DeclaredAxes
from policygen.steps import HowFar, Progress


@dataclass(frozen=True, slots=True)
class PointTimes:
    """What was measured on a runtime workload; a number for each process."""

    subbench: str
    point: Mapping[str, str]
    weight: float
    base: Sequence[float]
    """Seconds."""
    beside: Sequence[float]
    """Base over base: each second sample of a process against the others."""
    variants: Mapping[str, Sequence[tuple[float, float]]]
    """By label the seconds of base, and its own, in the same process."""

    def ratios(self, label: str) -> list[float]:
        """Base's time over a variant's."""
        return [base / own for base, own in self.variants[label]]


def judged(points: Sequence[PointTimes], labels: Sequence[str]) -> list[MeasuredVariant]:
    """Gives each variant that was measured on all runtime workloads its score."""
    everywhere = [one for one in labels if all(one in point.variants for point in points)]
    scores = {label: _weighted(points, _ratios(points, label)) for label in everywhere}
    of_scores = _spread(scores.values())
    of_points = [_spread(one.ratios(label) for label in everywhere) for one in points]
    return [_judged(label, points, scores[label], of_scores, of_points) for label in everywhere]


def noises(points: Sequence[PointTimes]) -> list[PointNoise]:
    """Tells how far base is from itself, from process to process and within one."""
    # Half of the samples know a time worse than all of them.
    return [
        PointNoise(
            subbench=one.subbench,
            point=dict(one.point),
            seconds=median(one.base),
            between=_relative(one.base),
            beside=_deviation_from_one(one.beside) / sqrt(2),
        )
        for one in points
    ]


def score_noise(points: Sequence[PointTimes]) -> float | None:
    """Gives the deviation of the score of base against itself from process to process."""
    scores = _weighted(points, [one.beside for one in points])
    return _deviation_from_one(scores) / sqrt(2) if len(scores) > 1 else None


def _judged(
    label: str,
    points: Sequence[PointTimes],
    scores: Sequence[float],
    of_scores: float,
    of_points: Sequence[float],
) -> MeasuredVariant:
    interval = _interval(scores, of_scores)
    return MeasuredVariant(
        variant=label,
        score=fmean(scores),
        interval=interval,
        verdict=None if interval is None else _verdict(interval),
        runtime=tuple(
            RuntimeRatio(
                subbench=one.subbench,
                point=dict(one.point),
                weight=one.weight,
                seconds=median(seconds for _, seconds in one.variants[label]),
                base_seconds=median(seconds for seconds, _ in one.variants[label]),
                ratio=fmean(own),
                interval=_interval(own, spread),
            )
            for one, own, spread in zip(points, _ratios(points, label), of_points, strict=True)
        ),
    )


def _weighted(points: Sequence[PointTimes], ratios: Sequence[Sequence[float]]) -> list[float]:
    """Scores by process; one that was ended early has not been on all runtime workloads."""
    return [
        sum(one.weight * ratio for one, ratio in zip(points, each, strict=True))
        for each in zip(*ratios, strict=False)
    ]


def _ratios(points: Sequence[PointTimes], label: str) -> list[list[float]]:
    return [one.ratios(label) for one in points]


def _spread(lots: Iterable[Sequence[float]]) -> float:
    """The standard deviation from process to process, of all variants together."""
    shares = [variance(one) / fmean(one) ** 2 for one in lots if len(one) > 1]
    return sqrt(fmean(shares)) if shares else 0.0


def _interval(observed: Sequence[float], spread: float) -> Interval | None:
    """Where the mean lies; never surer than the variants are together."""
    count = len(observed)
    if count < 2:
        return None
    middle = fmean(observed)
    wide = max(stdev(observed), spread * middle)
    half = student(count - 1) * wide / sqrt(count)
    return Interval(low=middle - half, high=middle + half)


def _verdict(interval: Interval) -> MeasuredVerdict:
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "equal"


def _relative(values: Sequence[float]) -> float | None:
    return stdev(values) / fmean(values) if len(values) > 1 else None


def _deviation_from_one(ratios: Sequence[float]) -> float:
    """The ratio of a thing to itself is 1: that much is known."""
    return sqrt(fmean((ratio - 1) ** 2 for ratio in ratios)) if ratios else 0.0


CONFIDENCE = 0.95
_FAR, _HALVINGS = 1e6, 200


# Quantiles of Student's distribution, which few processes need: by its distribution, exactly.


@cache
def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors to both sides hold a mean with this confidence."""
    low, high = 0.0, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The chance that a value lies within `t` standard errors (Abramowitz and Stegun, 26.7.3)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    total, term = 0.0, math.cos(angle) if odd else 1.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    found = math.sin(angle) * total
    return (angle + found) * 2 / math.pi if odd else found


# What a database has of runtime workloads, as statistics take it.


def times_of(
    rows: MeasuringSession, spots: Sequence[RowSpot], declared: DeclaredAxes
) -> list[PointTimes]:
    """Reads what was measured now or before; the weights are those of these runtime workloads."""
    return [
        _point_times(rows, spot, weight)
        for spot, weight in zip(spots, spot_weights(spots, declared), strict=True)
    ]


def spot_weights(spots: Sequence[RowSpot], declared: DeclaredAxes) -> list[float]:
    """How much each runtime workload counts among these."""
    weights = [_weight(spot, declared) for spot in spots]
    total = sum(weights)
    return [weight / total for weight in weights]


def runtime_axes(spot: RowSpot) -> dict[str, str]:
    """What tells a runtime workload from the others of its workload."""
    return {axis: value for axis, value in spot.workload.items() if "{ct}" not in axis}


def _point_times(rows: MeasuringSession, spot: RowSpot, weight: float) -> PointTimes:
    times = rows.times(spot)
    return PointTimes(
        subbench=spot.subbench,
        point=runtime_axes(spot),
        weight=weight,
        base=rows.noise_centers(spot) or [center for _, center in times[BASE]],
        beside=rows.beside(spot),
        variants={label: _pairs(times[BASE], own) for label, own in times.items() if label != BASE},
    )


def _pairs(
    base: Sequence[tuple[int, float]], own: Sequence[tuple[int, float]]
) -> list[tuple[float, float]]:
    """Base and a variant in the same process: the first of a session with its first, and so on."""
    found = []
    for number in dict.fromkeys(session for session, _ in own):
        sides = [[c for session, c in side if session == number] for side in (base, own)]
        found += list(zip(*sides, strict=False))
    return found


def _weight(spot: RowSpot, declared: DeclaredAxes) -> float:
    found = 1.0
    for (name, subbench, axis), values in declared.items():
        if (name, subbench) != (spot.algorithm, spot.subbench):
            continue
        value = spot.workload[axis]
        if (own := own_weight(values, value)) is not None:
            found *= own
        elif "{io}" in axis:
            found *= importance(values.index(value), len(values))
    return found


PROCESSES = 5
"""Fresh processes of base, from whose differences the noise is known."""
PHASE = "measure noise"


# A/A: base against itself in fresh processes, which says how far equal code is from itself.


def measure_noise(
    controller: Controller,
    session: MeasuringSession,
    base: VariantFunction,
    points: Sequence[RuntimeSpot],
    *,
    rounds: int,
    seed: int,
    processes: int = PROCESSES,
    declared: DeclaredAxes | None = None,
    progress: Progress | None = None,
) -> Mapping[str, Spread | None]:
    """The spread by runtime workload: base runs as often as a variant, in each process on all.

    What the database has counts: only processes that it lacks are started.
    """
    for point in points:
        session.prepare(point.spot, declared or {})
    lacking = {id(one): processes - len(session.noise_centers(one.spot)) for one in points}
    count = max([0, *lacking.values()])
    for number in range(count):
        if progress:
            progress(HowFar(PHASE, number, count))
        controller.restart()
        for point in points:
            if lacking[id(point)] > number:
                _measure(controller, session, base, point, number, rounds, seed)
    if progress:
        progress(HowFar(PHASE, count, count))
    return {str(one): spread_of(session.noise_centers(one.spot)) for one in points}


def _measure(
    controller: Controller,
    session: MeasuringSession,
    base: VariantFunction,
    point: RuntimeSpot,
    process: int,
    rounds: int,
    seed: int,
) -> None:
    if controller.open(point.case, base) is not None:
        return
    # Alone, base runs twice in a round.
    found = controller.rounds([], math.ceil(rounds / 2), seed + process)
    session.noise(point.spot, controller.restarts, found.samples[base.variant])
    session.note(found.repeated, found.throttled, controller.restarts)
