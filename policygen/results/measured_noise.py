"""Noise that was measured: base against itself in fresh processes, as a database has it."""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policygen.model.results import RunKey
from policygen.results.provenance import NOISE, SESSIONS, VERSION, own_version, workload_text

LEAST = 4
"""Processes, from which on they tell of noise."""
MOST = 1.0
"""A standard deviation over this is no noise of a measurement."""
_ROWS = 1_000_000
NoiseKey = tuple[str, str, str, str, str, str]
"""GPU, toolkit, CCCL, algorithm, sub-benchmark and the workload as text."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far processes of the same code are from each other."""

    deviation: float
    """The standard deviation of the logarithm of a center, another process seen from these."""
    processes: int

    @property
    def freedom(self) -> int:
        """As many differences between processes as they make."""
        return self.processes - 1


MeasuredNoise = Mapping[NoiseKey, Spread]


def spread_of(centers: Sequence[float]) -> Spread | None:
    """From the centers of some processes; none where they are too few, or all the same.

    Few processes know their own spread badly: another one is further off, by Student's
    distribution. Processes that do not differ at all tell of the clock's steps.
    """
    freedom = len(centers) - 1
    if len(centers) < LEAST:
        return None
    seen = float(np.std(np.log(centers), ddof=1))
    found = seen * math.sqrt(freedom / (freedom - 2))
    return Spread(found, len(centers)) if 0 < found <= MOST else None


def together(spreads: Iterable[Spread]) -> Spread | None:
    """What several databases say of one runtime workload."""
    known = list(spreads)
    if not known:
        return None
    freedom = sum(one.freedom for one in known)
    variance = sum(one.freedom * one.deviation**2 for one in known) / freedom
    return Spread(math.sqrt(variance), sum(one.processes for one in known))


def noise_key(key: RunKey, algorithm: str, subbench: str, workload: Mapping[str, str]) -> NoiseKey:
    """Names a runtime workload that was measured under a key."""
    return key.gpu, key.ctk, key.cccl, algorithm, subbench, workload_text(workload)


def find_noise(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> MeasuredNoise:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {NOISE, SESSIONS} <= names.keys():
        return {}
    centers: dict[NoiseKey, list[float]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, n.algorithm, n.bench, n.workload, n.center"  # noqa: S608
        f" FROM {NOISE} AS n JOIN {SESSIONS} AS s ON s.id = n.session LIMIT {_ROWS}"
    )
    for *texts, center in rows:
        if (key := key_of(texts)) and isinstance(center, float) and 0 < center < math.inf:
            centers.setdefault(key, []).append(center)
    found = ((key, spread_of(values)) for key, values in centers.items())
    return {key: spread for key, spread in found if spread is not None}


def key_of(cells: Sequence[object]) -> NoiseKey | None:
    """The key that cells of a row name, spelled as we do, whoever wrote it."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) != 6:
        return None
    gpu, ctk, cccl, algorithm, subbench, workload = texts
    axes = workload_of(workload)
    return None if axes is None else (gpu, ctk, cccl, algorithm, subbench, workload_text(axes))


def workload_of(cell: object) -> dict[str, str] | None:
    """The axes and values that a cell has as text; none where it has something else."""
    if not isinstance(cell, str):
        return None
    try:
        axes = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if not isinstance(axes, dict) or not all(isinstance(value, str) for value in axes.values()):
        return None
    return axes
