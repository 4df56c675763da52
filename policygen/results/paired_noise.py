"""Noise of ratios: base and variants side by side in fresh processes, as a database has them.

What drifts from process to process drifts for both: their ratio is surer than either time.
"""

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policygen.model.labels import BASE
from policygen.results.measured_noise import MOST, NoiseKey, key_of
from policygen.results.provenance import ROWS, SESSIONS, VERSION, own_version

LEAST = 6
"""Differences between processes, from which on they tell of noise."""
_ROWS = 1_000_000
Side = tuple[int, str]
"""A session, and a variant of it."""
Pairs = Mapping[NoiseKey, Mapping[Side, Sequence[float]]]
"""By runtime workload and side the logarithm of base over variant in each process."""


@dataclass(frozen=True, slots=True)
class PairedSpread:
    """How far the ratio that a database has may be from the truth."""

    deviation: float
    processes: int
    variants: int


def find_pairs(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Pairs:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {ROWS, SESSIONS} <= names.keys():
        return {}
    times: dict[NoiseKey, dict[Side, list[float]]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, r.algorithm, r.bench, r.workload, r.variant, r.session,"  # noqa: S608
        f" r.center FROM {ROWS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"
        f" ORDER BY r.rowid LIMIT {_ROWS}"
    )
    for *texts, variant, session, center in rows:
        key = key_of(texts)
        fine = isinstance(center, float) and 0 < center < math.inf and isinstance(variant, str)
        if key and fine:
            times.setdefault(key, {}).setdefault((session, variant), []).append(center)
    return {key: _logs(sides) for key, sides in times.items()}


def _logs(sides: Mapping[Side, Sequence[float]]) -> dict[Side, Sequence[float]]:
    """The first of a session beside its first, and so on: so they were taken."""
    return {
        (session, variant): [
            math.log(base / time)
            for base, time in zip(sides.get((session, BASE), ()), own, strict=False)
        ]
        for (session, variant), own in sides.items()
        if variant != BASE
    }


def spread_at(lots: Iterable[Mapping[Side, Sequence[float]]]) -> PairedSpread | None:
    """What several databases say of the ratio of a runtime workload; none where they say little."""
    return _spread([logs for lot in lots for logs in lot.values()])


def spread_of_scores(
    runs: Iterable[Sequence[Mapping[Side, Sequence[float]]]], weights: npt.NDArray[np.float64]
) -> PairedSpread | None:
    """The same of a score: by database the sides of all runtime workloads, and their weights."""
    scores = []
    for lots in runs:
        for side in set.intersection(*(set(lot) for lot in lots)):
            by_process = zip(*(lot[side] for lot in lots), strict=False)
            scores.append([math.log(float(weights @ np.exp(each))) for each in by_process])
    return _spread(scores)


def _spread(observed: Iterable[Sequence[float]]) -> PairedSpread | None:
    """Pooled over variants; base, which all share, makes half of their differences the same."""
    known = [np.asarray(one) for one in observed if len(one) > 1]
    freedom = sum(len(one) - 1 for one in known) / 2
    if freedom < LEAST / 2:
        return None
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in known)
    # Few differences know their spread badly: Student's distribution is wider.
    variance = squares / (2 * freedom) * (freedom / (freedom - 2))
    processes = min(len(one) for one in known)
    found = math.sqrt(variance / processes)
    return PairedSpread(found, processes, len(known)) if 0 < found <= MOST else None
