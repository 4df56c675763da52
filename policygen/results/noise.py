"""Noise between two runs of the same code, by runtime workload."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from pydantic import Field

from policygen.model.records import Record
from policygen.opening import load_toml
from policygen.rendering import folder
from policygen.results.cases import Case, Part
from policygen.results.database import Floats, Point
from policygen.results.own_tables import (
    NoiseKey,
    Spread,
    pool_spreads,
    spread_at,
    spread_of_scores,
    workload_text,
)
from policygen.results.samples import Samples

PRIOR_WEIGHT = 12
"""The prior counts as this many differences between runs; measured noise has its own number."""
ENOUGH = 3
"""Minimum number of rows that two runs share on a runtime workload for a noise estimate."""


class Prior(Record):
    """The noise of benchmarks on a GPU that is assumed before a database is read."""

    gpu: str = ""
    benchmark: str = ""
    jitter: float = Field(ge=0)
    """Seconds."""
    floor: float = Field(ge=0)
    """A share of the time."""
    correlation: float = Field(ge=0, le=1)
    origin: str

    def deviation(self, seconds: Floats) -> Floats:
        """Returns the relative standard deviation of a center of this duration."""
        return np.asarray(np.hypot(self.jitter / seconds, self.floor))

    def names(self, gpu: str, benchmark: str) -> bool:
        """Returns whether the prior applies to a GPU and a benchmark."""
        name = gpu.partition("(")[0]
        matches = not self.gpu or re.search(rf"\b{re.escape(self.gpu)}\b", name, re.IGNORECASE)
        return bool(matches) and f"{benchmark}.".startswith(self.benchmark)


class _NoiseFile(Record):
    """`schemas/noise.toml`."""

    noise: tuple[Prior, ...]


@cache
def priors() -> tuple[Prior, ...]:
    """Returns the priors, the most specific first."""
    return load_toml(folder("schemas") / "noise.toml", _NoiseFile).noise


def prior_of(gpu: str, benchmark: str) -> Prior:
    """Returns the prior for a benchmark on a GPU."""
    return next(prior for prior in priors() if prior.names(gpu, benchmark))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one case."""

    points: tuple[Floats, ...]
    """By part, the standard deviation of a runtime workload's ratio in one run."""
    score: float
    """The standard deviation of a score in one run."""
    origin: str


def noise_of(case: Case, weights: Sequence[Floats]) -> Noise:
    """Estimates noise from measurements of base against itself, else from the prior.

    If several runs have the same rows, their differences are included.
    """
    prior = prior_of(case.key.gpu, case.algorithm)
    deviations_by_part: list[Floats] = []
    rows = 0
    measured_spreads: list[Spread | None] = []
    for part in case.parts:
        keys = [point_key(case, part, point) for point in part.points]
        spreads = [
            pool_spreads(
                database.noise[key] for database in case.databases if key in database.noise
            )
            for key in keys
        ]
        measured_spreads += spreads
        expected = prior.deviation(np.nanmean(part.centers[:, 0], axis=0))
        weight = np.full(len(spreads), PRIOR_WEIGHT)
        for column, spread in enumerate(spreads):
            if spread:
                expected[column], weight[column] = spread.deviation, spread.freedom
        squares, counts = _differences(part)
        rows += int(counts.sum())
        # Combine prior and observation as the conjugate inverse gamma distribution does.
        variance = (weight * expected**2 + squares) / (weight + counts)
        deviations_by_part.append(np.sqrt(variance))
    if (paired_noise := _paired_noise(case, weights)) is not None:
        return paired_noise
    weighted = np.concatenate(weights) * np.concatenate(deviations_by_part)
    correlation = prior.correlation
    center = math.sqrt(
        (1 - correlation) * float((weighted**2).sum()) + correlation * float(weighted.sum()) ** 2
    )
    # Base has the same noise as a variant.
    points = tuple(math.sqrt(2) * deviations for deviations in deviations_by_part)
    return Noise(points, math.sqrt(2) * center, _origin(prior, measured_spreads, rows))


def _paired_noise(case: Case, weights: Sequence[Floats]) -> Noise | None:
    """Estimates noise from base and variants side by side, if all points were measured so."""
    keys = [[point_key(case, part, point) for point in part.points] for part in case.parts]
    flat_keys = [key for part in keys for key in part]
    databases = [
        database for database in case.databases if all(key in database.pairs for key in flat_keys)
    ]
    points = [
        [spread_at(database.pairs[key] for database in databases) for key in part] for part in keys
    ]
    by_run = [[database.pairs[key] for key in flat_keys] for database in databases]
    score = spread_of_scores(by_run, np.concatenate(weights))
    if score is None or any(spread is None for part in points for spread in part):
        return None
    return Noise(
        tuple(np.array([spread.deviation for spread in part if spread]) for part in points),
        score.deviation,
        f"measured: {score.processes} processes of base next to {score.variants}"
        f" {'variant' if score.variants == 1 else 'variants'}",
    )


def point_key(case: Case, part: Part, point: Point) -> NoiseKey:
    """Returns the key of a runtime workload in policygen's tables."""
    workload = {**case.workload, **part.table.by_axis(point)}
    key = case.key
    texts = (key.gpu, key.ctk, key.cccl, case.algorithm, part.table.subbench)
    return *texts, workload_text(workload)


def _origin(prior: Prior, spreads: Sequence[Spread | None], rows: int) -> str:
    counts = sorted({spread.processes for spread in spreads if spread})
    if not counts:
        return f"{rows:,} rows measured again, and {prior.origin}" if rows else prior.origin
    processes = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    remeasured = f", and {rows:,} rows measured again" if rows else ""
    without = spreads.count(None)
    rest = f"; {without} of {len(spreads)} runtime workloads: {prior.origin}" if without else ""
    return f"measured: {processes} processes of base{remeasured}{rest}"


def _differences(part: Part) -> tuple[Floats, Floats]:
    """Returns, by runtime workload, the squared differences between runs, and the rows used."""
    logs = np.log(part.centers)
    squares, counts = np.zeros(len(part.points)), np.zeros(len(part.points))
    for run in range(1, len(logs)):
        for earlier in range(run):
            log_differences = logs[run] - logs[earlier]
            shared = ~np.isnan(log_differences)
            is_usable = shared.sum(axis=0) >= ENOUGH
            counts += np.where(is_usable, shared.sum(axis=0), 0)
            squares += np.where(is_usable, np.nansum(log_differences**2, axis=0) / 2, 0)
    # Each run is compared with all others, but has only one error.
    return squares / max(1, len(logs) / 2), counts / max(1, len(logs) / 2)


SHARED = 0.5
"""Base is measured as often as a variant, so half of a difference's variance is base's."""
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_GRID = 4096
DRAWN = 40_000
"""The number of simulated searches: it gives the 5 % level to within 0.1 %."""
SEARCH = 0.5
"""The weight of a search, relative to one later run of its best variants."""
FINALISTS = 16
"""Number of finalists: in a noisy search of 500 variants, a 3 % gain is rarely within fewer."""
GAIN, POWER, MOST = 0.03, 0.8, 9
"""Returns the limit that the luckiest variant exceeds in this share of searches, in deviations."""
ROUNDS = 40
_EDGES = np.linspace(-9, 9, _GRID)
_CDF = np.array([_NORMAL.cdf(float(x)) for x in _EDGES])


# Luck: how far the best of many variants that are as fast as base gets, and what remains of a gain.
# All variants of a run are compared with the same base. Dunnett's distribution describes that: the
# largest of n equally noisy differences from one reference, which contributes half of their
# variance.


def largest(limit: Floats, variants: int) -> Floats:
    """Returns the share of searches in which no variant exceeds a limit, in deviations."""
    conditional_limits = (np.asarray(limit)[..., None] - SHARED**0.5 * _NODES) / (1 - SHARED) ** 0.5
    below = np.interp(conditional_limits, _EDGES, _CDF) ** variants
    return np.asarray((below * _WEIGHTS).sum(axis=-1) / _WEIGHTS.sum())


@cache
def threshold(variants: int, share: float) -> float:
    """Returns the limit that the luckiest variant exceeds in this share of searches.

    The limit is in deviations of a score.
    """
    low, high = -4.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        if largest(np.array(middle), variants) < 1 - share:
            low = middle
        else:
            high = middle
    return high


@cache
def confirmed_threshold(variants: int, finalists: int, runs: int, share: float) -> float:
    """Returns the limit for the luckiest of a search's finalists, which later runs remeasured.

    A finalist's score in the search and the mean of its later runs are combined.
    """
    joint_scores = combine_runs(*_simulated_searches(variants, finalists, runs), runs)
    return float(np.quantile(joint_scores[:, 1:].max(axis=1), 1 - share))


def power(variants: int, finalists: int, runs: int, gain: float, limit: float) -> float:
    """Returns how often the only variant with a gain is found above a limit; both in deviations."""
    search, later = _simulated_searches(variants - 1, min(finalists, variants - 1), runs)
    winner_scores, other_scores = search[:, 0] + gain, search[:, 1:]
    joint_scores = combine_runs(search, later, runs)
    is_found = (joint_scores[:, 0] + gain > limit) & (
        joint_scores[:, 0] + gain > joint_scores[:, 1:finalists].max(axis=1, initial=-np.inf)
    )
    if variants > finalists:
        is_found &= winner_scores > other_scores[:, -1]  # else it is not a finalist
    return float(is_found.mean())


@cache
def runs_to_find(variants: int, noise: float, share: float, least: float) -> int | None:
    """Returns how many later runs of the finalists find a gain of 3 % in four of five searches.

    `noise` and `least`, the smallest gain that counts, refer to scores.
    """
    finalist_count = min(FINALISTS, variants)
    for runs in range(1, MOST + 1):
        limit = max(confirmed_threshold(variants, finalist_count, runs, share), least / noise)
        if power(variants, finalist_count, runs, GAIN / noise, limit) >= POWER:
            return runs
    return None


def combine_runs(search: Floats, later: Floats, runs: int) -> Floats:
    """Combines the scores of a search and of later runs; the lucky search has less weight."""
    return np.asarray((SEARCH * search + runs * later) / (SEARCH + runs))


@lru_cache(8)
def _simulated_searches(variants: int, finalists: int, runs: int) -> tuple[Floats, Floats]:
    """Simulates searches and later runs of variants as fast as base: a random one, then finalists.

    The finalists are drawn one after the other: the largest of n numbers between 0 and 1 is the
    n-th root of a uniform one, and n - 1 numbers lie below it.
    """
    random = np.random.default_rng([variants, finalists, runs])
    roots = 1 / np.arange(variants, variants - finalists, -1)
    lucky = np.cumprod(random.random((DRAWN, finalists)) ** roots, axis=1)
    search_scores = np.column_stack([random.normal(size=DRAWN), np.interp(lucky, _CDF, _EDGES)])
    later_scores = random.normal(size=search_scores.shape) / runs**0.5
    base, later_base = random.normal(size=(2, DRAWN, 1)) * SHARED**0.5
    own_scale = (1 - SHARED) ** 0.5
    return base + own_scale * search_scores, later_base / runs**0.5 + own_scale * later_scores


def kept_share(gains: Floats, chosen: float, noise: float) -> float:
    """Returns the share of a gain that is not luck, given all variants' gains: empirical Bayes.

    Some variants are as fast as base, and the others spread around it as widely as the chosen one
    stands out. Their fraction is the one that explains the measurements best. Gains below base are
    ignored: slow variants say nothing about fast ones.
    """
    positive_gains = gains[gains > 0]
    spread = chosen**2
    if spread <= noise**2:
        return 0.0
    fraction = 0.5
    for _ in range(ROUNDS):
        fraction = float(
            (_real_gain_probability(positive_gains, fraction, spread, noise).sum() + 1)
            / (len(positive_gains) + 2)
        )
    share = float(_real_gain_probability(np.array([chosen]), fraction, spread, noise)[0])
    return share * (1 - noise**2 / spread)


def _real_gain_probability(gains: Floats, fraction: float, spread: float, noise: float) -> Floats:
    """Returns the probability that each gain belongs to a variant that differs from base."""
    wide = fraction / spread**0.5 * np.exp(-(gains**2) / (2 * spread))
    narrow = (1 - fraction) / noise * np.exp(-(gains**2) / (2 * noise**2))
    return np.asarray(wide / np.maximum(wide + narrow, 1e-300))


DRAWS = 1000
_POOL = 1 << 14
Positions = np.ndarray[Any, np.dtype[np.int64]]


# Bootstrap of medians: how certain one run is of its centers, from its samples. The median of a
# resample of n sorted samples is an order statistic: its position is drawn directly, instead of
# drawing and sorting n samples each time.


def generator(*identity: str) -> np.random.Generator:
    """Returns a random generator that depends on the identity alone."""
    digest = hashlib.sha256("\0".join(identity).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def medians(samples: Samples, rng: np.random.Generator) -> Floats:
    """Draws medians of resamples of sorted samples."""
    low, high = _positions(samples.size)
    picked = rng.integers(0, _POOL, DRAWS)
    return np.asarray((samples[low[picked]] + samples[high[picked]]) / 2, np.float64)


@cache
def _positions(count: int) -> tuple[Positions, Positions]:
    """Draws positions of the two middle order statistics of resamples of `count` samples."""
    rng = np.random.default_rng(count)
    upper_rank = count // 2 + 1
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k); numbers below it are uniform.
    upper = rng.beta(upper_rank, count + 1 - upper_rank, _POOL)
    lower = upper
    if count % 2 == 0:
        lower = upper * rng.random(_POOL) ** (1 / (upper_rank - 1))
    top = count - 1
    return (
        np.minimum((lower * count).astype(np.int64), top),
        np.minimum((upper * count).astype(np.int64), top),
    )
