"""How far two runs of the same code are from each other, by runtime workload."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from pydantic import Field

from policygen.config import load_toml
from policygen.model.base import Record
from policygen.resources import folder
from policygen.results.case import Case, Part
from policygen.results.load import Floats, Point
from policygen.results.measured_noise import NoiseKey, Spread, noise_key, together
from policygen.results.paired_noise import spread_at, spread_of_scores

PRIOR_WEIGHT = 12
"""As many differences between runs as the prior counts for; measured noise has its own number."""
ENOUGH = 3
"""Rows that two runs have in common on a runtime workload, from which on they tell of noise."""


class Prior(Record):
    """What is known of the noise of benchmarks on a GPU before a database is looked at."""

    gpu: str = ""
    benchmark: str = ""
    jitter: float = Field(ge=0)
    """Seconds."""
    floor: float = Field(ge=0)
    """A share of the time."""
    correlation: float = Field(ge=0, le=1)
    origin: str

    def deviation(self, seconds: Floats) -> Floats:
        """The relative standard deviation of a center that takes so long."""
        return np.asarray(np.hypot(self.jitter / seconds, self.floor))

    def names(self, gpu: str, benchmark: str) -> bool:
        """Whether it is about these."""
        name = gpu.partition("(")[0]
        known = not self.gpu or re.search(rf"\b{re.escape(self.gpu)}\b", name, re.IGNORECASE)
        return bool(known) and f"{benchmark}.".startswith(self.benchmark)


class _NoiseFile(Record):
    """`schemas/noise.toml`."""

    noise: tuple[Prior, ...]


@cache
def priors() -> tuple[Prior, ...]:
    """What is known, the most special first."""
    return load_toml(folder("schemas") / "noise.toml", _NoiseFile).noise


def prior_of(gpu: str, benchmark: str) -> Prior:
    """What is known of a benchmark on a GPU."""
    return next(one for one in priors() if one.names(gpu, benchmark))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one case."""

    points: tuple[Floats, ...]
    """By part: the standard deviation of a runtime workload's ratio in one run."""
    score: float
    """The standard deviation of a score in one run."""
    origin: str

    def known_to_be(self, score: float | None, origin: str) -> "Noise":
        """The same with a score's deviation that somebody states."""
        return self if score is None else Noise(self.points, score, origin)


def noise_of(case: Case, weights: Sequence[Floats]) -> Noise:
    """From what was measured of base against itself, else from the prior.

    Where several runs have the same rows, their differences join in.
    """
    prior = prior_of(case.key.gpu, case.algorithm)
    own: list[Floats] = []
    rows = 0
    known: list[Spread | None] = []
    for part in case.parts:
        spreads = [_measured(case, part, point) for point in part.points]
        known += spreads
        expected = prior.deviation(np.nanmean(part.centers[:, 0], axis=0))
        expected = np.array(
            [s.deviation if s else e for s, e in zip(spreads, expected, strict=True)]
        )
        weight = np.array([s.freedom if s else PRIOR_WEIGHT for s in spreads])
        squares, counts = _differences(part)
        rows += int(counts.sum())
        # The inverse gamma distribution's way to join what is known with what is seen.
        variance = (weight * expected**2 + squares) / (weight + counts)
        own.append(np.sqrt(variance))
    if (beside := _beside(case, weights)) is not None:
        return beside
    weighted = np.concatenate([w * d for w, d in zip(weights, own, strict=True)])
    c = prior.correlation
    center = math.sqrt((1 - c) * float((weighted**2).sum()) + c * float(weighted.sum()) ** 2)
    # Base has the same noise as a variant.
    points = tuple(np.asarray(math.sqrt(2) * one) for one in own)
    return Noise(points, math.sqrt(2) * center, _origin(prior, known, rows))


def _measured(case: Case, part: Part, point: Point) -> Spread | None:
    key = _key(case, part, point)
    return together(d.noise[key] for d in case.databases if key in d.noise)


def _beside(case: Case, weights: Sequence[Floats]) -> Noise | None:
    """From base and variants side by side, where all runtime workloads were measured so."""
    keys = [[_key(case, part, point) for point in part.points] for part in case.parts]
    flat = [key for part in keys for key in part]
    databases = [one for one in case.databases if all(key in one.pairs for key in flat)]
    points = [[spread_at(one.pairs[key] for one in databases) for key in part] for part in keys]
    by_run = [[one.pairs[key] for key in flat] for one in databases]
    score = spread_of_scores(by_run, np.concatenate(weights))
    if score is None or any(one is None for part in points for one in part):
        return None
    return Noise(
        tuple(np.array([one.deviation for one in part if one]) for part in points),
        score.deviation,
        f"measured: {score.processes} processes of base beside {score.variants}"
        f" {'variant' if score.variants == 1 else 'variants'}",
    )


def _key(case: Case, part: Part, point: Point) -> NoiseKey:
    workload = {**case.workload, **dict(zip(part.table.rt_axes, point, strict=True))}
    return noise_key(case.key, case.algorithm, part.table.subbench, workload)


def _origin(prior: Prior, spreads: Sequence[Spread | None], rows: int) -> str:
    """What the width comes from, in words."""
    counts = sorted({one.processes for one in spreads if one})
    if not counts:
        return f"{rows:,} rows measured again, and {prior.origin}" if rows else prior.origin
    processes = " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))
    again = f", and {rows:,} rows measured again" if rows else ""
    without = spreads.count(None)
    others = f"; {without} of {len(spreads)} runtime workloads: {prior.origin}" if without else ""
    return f"measured: {processes} processes of base{again}{others}"


def _differences(part: Part) -> tuple[Floats, Floats]:
    """By runtime workload: what the runs say of a center's variance, and from how many rows."""
    logs = np.log(part.centers)
    squares, counts = np.zeros(len(part.points)), np.zeros(len(part.points))
    for run in range(1, len(logs)):
        for earlier in range(run):
            between = logs[run] - logs[earlier]
            shared = ~np.isnan(between)
            use = shared.sum(axis=0) >= ENOUGH
            counts += np.where(use, shared.sum(axis=0), 0)
            squares += np.where(use, np.nansum(between**2, axis=0) / 2, 0)
    # A run is compared with each other one, and has but one error.
    return squares / max(1, len(logs) / 2), counts / max(1, len(logs) / 2)
