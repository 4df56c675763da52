"""Scores of tuning databases in plain Python, row by row; shares nothing with policygen.

It is slow and says what the design says, in the same order.
"""

import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

LEAST, MOST = 0.6, 0.999
LABEL = re.compile(r"base|[a-z]\w*_-?\d+(\.[a-z]\w*_-?\d+)*")
FIXED = {"gpu", "ctk", "cccl", "cub", "variant", "elapsed", "center", "bw", "samples"}

Workload = tuple[tuple[str, str], ...]
Key = tuple[str, Workload, str, str, str]
"""Algorithm, compile-time workload, gpu, ctk, cccl."""
Four = tuple[float, float, float, float]
"""Score, min, mean, max."""
Declared = Mapping[tuple[str, str, str], Sequence[str]]
"""(algorithm, sub-benchmark, axis) to its values in order."""
Point = tuple[str, ...]


@dataclass
class Measured:
    """One sub-benchmark of one workload under one key; rows in the order of their rowids."""

    axes: tuple[str, ...]
    centers: dict[str, dict[Point, float]] = field(default_factory=dict)

    @property
    def base(self) -> dict[Point, float]:
        return self.centers.get("base", {})


@dataclass(frozen=True)
class Case:
    """What belongs together: the scores, and whether weights came from the values present."""

    scores: dict[str, Four]
    approximate: bool
    runtime_workloads: int
    incomplete: int


def scores(path: Path, declared: Declared | None = None) -> dict[Key, dict[str, Four]]:
    """Score, min, mean and max of all complete variants, base among them."""
    return {key: case.scores for key, case in cases(path, declared).items()}


def cases(path: Path, declared: Declared | None = None) -> dict[Key, Case]:
    """All workloads that have a base."""
    found: dict[Key, dict[str, Measured]] = {}
    with closing(sqlite3.connect(path)) as connection:
        benches = connection.execute("SELECT algorithm, bench FROM subbenches").fetchall()
        for algorithm, bench in benches:
            _read(connection, algorithm, bench, found)
    return {
        key: _case(key[0], {bench: one for bench, one in parts.items() if one.base}, declared or {})
        for key, parts in found.items()
        if any(one.base for one in parts.values())
    }


def _read(
    connection: sqlite3.Connection,
    algorithm: str,
    bench: str,
    found: dict[Key, dict[str, Measured]],
) -> None:
    connection.row_factory = sqlite3.Row
    name = f"{algorithm}.{bench}".replace('"', '""')
    for row in connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid'):
        columns = row.keys()
        axes = tuple(column for column in columns if column not in FIXED)
        runtime = tuple(axis for axis in axes if "{ct}" not in axis)
        version = row["cccl"] if "cccl" in columns else row["cub"]
        workload = tuple((axis, row[axis]) for axis in axes if "{ct}" in axis)
        key = (algorithm, workload, row["gpu"], row["ctk"], version)
        if _usable(row["center"]) and LABEL.fullmatch(row["variant"]):
            one = found.setdefault(key, {}).setdefault(bench, Measured(runtime))
            point = tuple(row[axis] for axis in runtime)
            one.centers.setdefault(row["variant"], {})[point] = row["center"]


def _usable(center: Any) -> bool:
    return isinstance(center, float | int) and math.isfinite(center) and center > 0


def _case(algorithm: str, parts: dict[str, Measured], declared: Declared) -> Case:
    weights: dict[tuple[str, Point], float] = {}
    approximate = False
    for bench, one in parts.items():
        for point in one.base:
            weight = 1.0
            for position, axis in enumerate(one.axes):
                if "{io}" in axis:
                    present = [other[position] for other in one.base]
                    values = _known(present, declared.get((algorithm, bench, axis)))
                    approximate = approximate or values is None
                    values = _ordered(present) if values is None else values
                    weight *= _importance(values.index(point[position]), len(values))
            weights[bench, point] = weight
    total = math.fsum(weights.values())
    weights = {place: weight / total for place, weight in weights.items()}
    variants = {variant for one in parts.values() for variant in one.centers}
    complete = {
        variant: _four(parts, weights, variant)
        for variant in variants
        if all(
            point in one.centers.get(variant, {}) for one in parts.values() for point in one.base
        )
    }
    return Case(complete, approximate, len(weights), len(variants) - len(complete))


def _known(present: Sequence[str], values: Sequence[str] | None) -> list[str] | None:
    """The declared values, when what was measured is among them."""
    if values is None or any(value not in values for value in present):
        return None
    return list(values)


def _ordered(present: Sequence[str]) -> list[str]:
    """Each value once: numbers by size, anything else as it appears."""
    values = list(dict.fromkeys(present))
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def _importance(index: int, count: int) -> float:
    first, last = -math.log(1 - LEAST), -math.log(1 - MOST)
    return 1 - math.exp(-(first + index * (last - first) / count))


def _four(
    parts: dict[str, Measured], weights: dict[tuple[str, Point], float], variant: str
) -> Four:
    ratios = {
        bench: {point: base / one.centers[variant][point] for point, base in one.base.items()}
        for bench, one in parts.items()
    }
    every = [ratio for by_point in ratios.values() for ratio in by_point.values()]
    score = math.fsum(
        weights[bench, point] * ratio
        for bench, by_point in ratios.items()
        for point, ratio in by_point.items()
    )
    mean = fmean(fmean(by_point.values()) for by_point in ratios.values())
    return score, min(every), mean, max(every)
