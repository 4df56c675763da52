"""How much each runtime workload counts: large inputs more than small ones."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from policygen.results.case import Case
from policygen.results.declared import DeclaredAxes
from policygen.results.known_axes import axes_of
from policygen.results.load import Floats

LEAST, MOST = 0.6, 0.999
"""The importance of the first value of an `{io}` axis, and what the last one approaches."""


def importance(index: int, count: int) -> float:
    """The weight of value `index` of an `{io}` axis with `count` values."""
    begin, end = -math.log(1 - LEAST), -math.log(1 - MOST)
    return 1 - math.exp(-(begin + index * (end - begin) / count))


def weights(case: Case, declared: DeclaredAxes) -> tuple[tuple[Floats, ...], bool]:
    """Weights by part, normalised over all of them; and whether they are approximate."""
    known = known_axes(case, declared)
    # A search of a part of the benchmark's values may declare that part: CCCL ranks by it.
    benchmark = axes_of(case.key.cccl)
    raw: list[Floats] = []
    approximate = False
    for part in case.parts:
        values = np.ones(len(part.points))
        for position, axis in enumerate(part.table.rt_axes):
            if "{io}" not in axis:
                continue
            present = [point[position] for point in part.points]
            key = (case.algorithm, part.table.subbench, axis)
            values_of = known.get(key)
            if values_of is None and set(benchmark.get(key, ())) == set(present):
                values_of = benchmark[key]
            order = _order(present, values_of)
            approximate |= values_of is None or not set(present) <= set(values_of)
            values = values * [importance(order[value], len(order)) for value in present]
        raw.append(values)
    total = sum(float(values.sum()) for values in raw)
    return tuple(values / total for values in raw), approximate


def known_axes(case: Case, declared: DeclaredAxes) -> DeclaredAxes:
    """What databases declare, else sources; where databases differ, neither."""
    known = dict(declared)
    first: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for database in case.databases:
        for axis, values in database.declared.items():
            known[axis] = first.setdefault(axis, values)
            if first[axis] != values:
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
