"""How much each runtime workload counts: large inputs more than small ones."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from policygen.results.case import Case
from policygen.results.declared import DeclaredAxes
from policygen.results.known_axes import axes_of
from policygen.results.load import Floats
from policygen.results.weighed import are_same, own_weight

LEAST, MOST = 0.6, 0.999
"""The importance of the first value of an `{io}` axis, and what the last one approaches."""


def importance(index: int, count: int) -> float:
    """The weight of value `index` of an `{io}` axis with `count` values."""
    begin, end = -math.log(1 - LEAST), -math.log(1 - MOST)
    return 1 - math.exp(-(begin + index * (end - begin) / count))


def weights(case: Case, declared: DeclaredAxes) -> tuple[tuple[Floats, ...], bool]:
    """Weights by part, normalised over all of them; and whether they are approximate."""
    known = known_axes(case, declared)
    benchmark = axes_of(case.key.cccl)
    raw: list[Floats] = []
    approximate = False
    for part in case.parts:
        values = np.ones(len(part.points))
        for position, axis in enumerate(part.table.rt_axes):
            present = [point[position] for point in part.points]
            key = (case.algorithm, part.table.subbench, axis)
            given = [own_weight(known.get(key), value) for value in present]
            if None not in given:
                values = values * np.array(given, np.float64)
                continue
            if "{io}" not in axis:
                continue
            own, unsure = _importances(present, known.get(key), benchmark.get(key, ()))
            approximate |= unsure
            values = values * own
        raw.append(values)
    total = sum(float(values.sum()) for values in raw)
    return tuple(values / total for values in raw), approximate


def result_weights(
    points: Sequence[tuple[str, str, Mapping[str, str]]],
) -> tuple[list[float], bool]:
    """Weights of runtime workloads, by benchmark, sub-benchmark and axes, of an unknown CCCL.

    They are normalised; and whether they are approximate.
    """
    benchmark, found, approximate = axes_of(""), [1.0] * len(points), False
    lots: dict[tuple[str, str, str], list[int]] = {}
    for index, (name, subbench, axes) in enumerate(points):
        for axis in axes:
            if "{io}" in axis:
                lots.setdefault((name, subbench, axis), []).append(index)
    for key, indices in lots.items():
        present = [points[index][2][key[2]] for index in indices]
        own, unsure = _importances(present, None, benchmark.get(key, ()))
        approximate |= unsure
        for index, weight in zip(indices, own, strict=True):
            found[index] *= weight
    total = sum(found)
    return [weight / total for weight in found], approximate


def _importances(
    present: Sequence[str], declared: Sequence[str] | None, benchmark: Sequence[str]
) -> tuple[list[float], bool]:
    """By what is declared, else by the benchmark where all of it is there; and whether unsure."""
    # A search of a part of the benchmark's values may declare that part: CCCL ranks by it.
    if declared is None and set(benchmark) == set(present):
        declared = benchmark
    order = _order(present, declared)
    unsure = declared is None or not set(present) <= set(declared)
    return [importance(order[value], len(order)) for value in present], unsure


def known_axes(case: Case, declared: DeclaredAxes) -> DeclaredAxes:
    """What databases declare, else sources; where databases differ, neither."""
    known = dict(declared)
    first: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for database in case.databases:
        for axis, values in database.declared.items():
            known[axis] = first.setdefault(axis, values)
            if not are_same(first[axis], values):
                known[axis] = ()
    return known


def _order(present: Sequence[str], declared: Sequence[str] | None) -> Mapping[str, int]:
    """The position of each value: as declared, else in numeric order of what is there."""
    if declared is not None and set(present) <= set(declared):
        return {value: index for index, value in enumerate(declared)}
    values = list(dict.fromkeys(present))
    with suppress(ValueError):  # names keep the order in which they were measured
        values.sort(key=float)
    return {value: index for index, value in enumerate(values)}
