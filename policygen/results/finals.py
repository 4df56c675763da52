"""The last rung of searches: who was a finalist, and how each process found it."""

import math
import sqlite3
from collections.abc import Mapping, Sequence

from policygen.model.labels import BASE
from policygen.results.measured_noise import NoiseKey, key_of
from policygen.results.provenance import LAST, RUNGS, SESSIONS, VERSION, own_version

_ROWS = 1_000_000
_NEEDED = {
    "algorithm",
    "bench",
    "workload",
    "variant",
    "session",
    "rung",
    "process",
    "base",
    "center",
}
Finals = Mapping[NoiseKey, Mapping[tuple[int, str], Sequence[float]]]
"""By runtime workload, session and variant: the logarithm of base over variant in each process."""


def find_finals(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Finals:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {RUNGS, SESSIONS} <= names.keys():
        return {}
    if not {*names[RUNGS]} >= _NEEDED:
        return {}
    found: dict[NoiseKey, dict[tuple[int, str], list[float]]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, r.algorithm, r.bench, r.workload, r.variant, r.session,"  # noqa: S608
        f" r.base, r.center FROM {RUNGS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"
        f" WHERE r.rung = ? AND r.variant <> ? ORDER BY r.session, r.process LIMIT {_ROWS}",
        (LAST, BASE),
    )
    for *texts, variant, session, base, center in rows:
        key = key_of(texts)
        if key and isinstance(variant, str) and _is_time(base) and _is_time(center):
            found.setdefault(key, {}).setdefault((session, variant), []).append(
                math.log(base / center)
            )
    return found


def _is_time(value: object) -> bool:
    return isinstance(value, float) and 0 < value < math.inf
