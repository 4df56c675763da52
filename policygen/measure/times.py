"""What a database has of runtime workloads, as statistics take it."""

from collections.abc import Sequence

from policygen.measure.database import MeasuringSession
from policygen.measure.statistics import PointTimes
from policygen.measure.tables import RowSpot
from policygen.model.labels import BASE
from policygen.results.declared import DeclaredAxes
from policygen.results.weighed import own_weight
from policygen.results.weights import importance


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
