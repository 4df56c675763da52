"""How far two runs of the same code are from each other, by runtime workload."""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from pydantic import Field

from policygen.model.records import Record
from policygen.rendering import folder
from policygen.results.cases import Case, Part
from policygen.results.database import Floats, Point
from policygen.results.own_tables import NoiseKey, Spread, noise_key, spread_at, spread_of_scores
from policygen.results.own_tables import together as own_tables_together
from policygen.results.samples import Samples
from policygen.settings import load_toml

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
    return own_tables_together(d.noise[key] for d in case.databases if key in d.noise)


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


SHARED = 0.5
"""Base is measured as often as a variant."""
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_GRID = 4096
DRAWN = 40_000
"""Searches: so many that 5 % of them are 5 % but for 0.1."""
SEARCH = 0.5
"""What a search counts beside one later run of its best ones."""
FINALISTS = 16
"""Of the best ones: in a noisy search of 500, what is 3 % faster is hardly among fewer."""
GAIN, POWER, MOST = 0.03, 0.8, 9
"""Later runs are to find such a gain that often; more than so many are not asked for."""
ROUNDS = 40
_EDGES = np.linspace(-9, 9, _GRID)
_CDF = np.array([_NORMAL.cdf(float(x)) for x in _EDGES])


# Luck: how far the best of many variants gets that are all as fast as base, and what is left.
#
# All variants of a run are compared with the same base. Dunnett's distribution has that: the
# largest
# of n equally noisy differences from one reference. Half of their variance is the reference's.


def largest(limit: Floats, variants: int) -> Floats:
    """The share of searches where no variant gets above a limit, in deviations of a score."""
    own = (np.asarray(limit)[..., None] - SHARED**0.5 * _NODES) / (1 - SHARED) ** 0.5
    below = np.interp(own, _EDGES, _CDF) ** variants
    return np.asarray((below * _WEIGHTS).sum(axis=-1) / _WEIGHTS.sum())


@cache
def threshold(variants: int, share: float) -> float:
    """What the luckiest of so many variants exceeds in that share of searches, in deviations."""
    return _root(lambda limit: float(largest(np.array(limit), variants)), 1 - share)


@cache
def confirmed_threshold(variants: int, finalists: int, runs: int, share: float) -> float:
    """The same of the luckiest of a search's best ones, which later runs measured again.

    What the search says of a finalist and the mean of the later runs are taken together.
    """
    return float(
        np.quantile(
            together(*_searches(variants, finalists, runs), runs)[:, 1:].max(axis=1), 1 - share
        )
    )


def power(variants: int, finalists: int, runs: int, gain: float, limit: float) -> float:
    """How often the only variant that gains is found above a limit; both in deviations."""
    search, later = _searches(variants - 1, min(finalists, variants - 1), runs)
    own, others = search[:, 0] + gain, search[:, 1:]
    both = together(search, later, runs)
    found = (both[:, 0] + gain > limit) & (
        both[:, 0] + gain > both[:, 1:finalists].max(axis=1, initial=-np.inf)
    )
    if variants > finalists:
        found &= own > others[:, -1]  # else it is no finalist
    return float(found.mean())


@cache
def runs_to_find(variants: int, noise: float, share: float, least: float) -> int | None:
    """As many later runs of the best ones as find a gain of 3 % in four of five searches.

    `noise` and `least`, what has to be gained, are those of scores.
    """
    kept = min(FINALISTS, variants)
    for runs in range(1, MOST + 1):
        limit = max(confirmed_threshold(variants, kept, runs, share), least / noise)
        if power(variants, kept, runs, GAIN / noise, limit) >= POWER:
            return runs
    return None


def together(search: Floats, later: Floats, runs: int) -> Floats:
    """What a search and so many later runs say; a search was lucky, but it was measured."""
    return np.asarray((SEARCH * search + runs * later) / (SEARCH + runs))


@lru_cache(8)
def _searches(variants: int, finalists: int, runs: int) -> tuple[Floats, Floats]:
    """What searches and later runs say of variants as fast as base: of any one, then of the best.

    The best ones are drawn one after the other: the largest of n numbers between 0 and 1 is the
    n-th root of one, and below it are n - 1.
    """
    random = np.random.default_rng([variants, finalists, runs])
    roots = 1 / np.arange(variants, variants - finalists, -1)
    lucky = np.cumprod(random.random((DRAWN, finalists)) ** roots, axis=1)
    own = np.column_stack([random.normal(size=DRAWN), np.interp(lucky, _CDF, _EDGES)])
    again = random.normal(size=own.shape) / runs**0.5
    base, base_again = random.normal(size=(2, DRAWN, 1)) * SHARED**0.5
    alone = (1 - SHARED) ** 0.5
    return base + alone * own, base_again / runs**0.5 + alone * again


def _root(share_below: Callable[[float], float], wanted: float) -> float:
    low, high = -4.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        if share_below(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def kept_share(gains: Floats, chosen: float, noise: float) -> float:
    """How much of a gain is none of luck, by what all variants gained: empirical Bayes.

    Of the variants, some are as fast as base, and the others are spread around it as widely as the
    chosen one stands out. How many these are is what explains best what was measured. Gains under
    base are left out: what is slower says nothing of what is faster.
    """
    seen = gains[gains > 0]
    spread = chosen**2
    if spread <= noise**2:
        return 0.0
    some = 0.5
    for _ in range(ROUNDS):
        some = float((_belongs(seen, some, spread, noise).sum() + 1) / (len(seen) + 2))
    share = float(_belongs(np.array([chosen]), some, spread, noise)[0])
    return share * (1 - noise**2 / spread)


def _belongs(gains: Floats, some: float, spread: float, noise: float) -> Floats:
    """How likely each gain is of a variant that differs from base."""
    wide = some / spread**0.5 * np.exp(-(gains**2) / (2 * spread))
    narrow = (1 - some) / noise * np.exp(-(gains**2) / (2 * noise**2))
    return np.asarray(wide / np.maximum(wide + narrow, 1e-300))


DRAWS = 1000
_POOL = 1 << 14
Positions = np.ndarray[Any, np.dtype[np.int64]]


# Bootstrap of medians: how sure one run is of its centers, from its samples.
#
# The median of a resample of n sorted samples is an order statistic: its position is drawn
# directly,
# instead of drawing and sorting n samples each time.


def generator(*identity: str) -> np.random.Generator:
    """Random numbers that depend on what is looked at, and on nothing else."""
    digest = hashlib.sha256("\0".join(identity).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def medians(samples: Samples, rng: np.random.Generator) -> Floats:
    """Medians of resamples of sorted samples."""
    low, high = _positions(samples.size)
    picked = rng.integers(0, _POOL, DRAWS)
    return np.asarray((samples[low[picked]] + samples[high[picked]]) / 2, np.float64)


@cache
def _positions(count: int) -> tuple[Positions, Positions]:
    """Positions of the two middle order statistics of resamples of `count` samples."""
    rng = np.random.default_rng(count)
    upper_rank = count // 2 + 1
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k); what lies below it is uniform.
    upper = rng.beta(upper_rank, count + 1 - upper_rank, _POOL)
    lower = upper
    if count % 2 == 0:
        lower = upper * rng.random(_POOL) ** (1 / (upper_rank - 1))
    top = count - 1
    return (
        np.minimum((lower * count).astype(np.int64), top),
        np.minimum((upper * count).astype(np.int64), top),
    )
