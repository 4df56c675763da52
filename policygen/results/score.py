"""Scores each variant: its speedup over base, weighted over all runtime workloads."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import hypot, isclose, sqrt
from statistics import NormalDist

import numpy as np

from policygen.model.results import DataWarning, Interval, PointRatio, Rules, Verdict
from policygen.model.workload import BASE
from policygen.results.cases import Case, Part, weights
from policygen.results.database import Floats, Integers
from policygen.results.noise import DRAWS, Noise, generator, medians, noise_of, threshold
from policygen.results.samples import BadSamplesError, Decoder, Samples, middle
from policygen.results.tables import DeclaredAxes


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the complete variants of a case, the best first."""

    case: Case
    index: Integers
    """Index into the case's variants."""
    score: Floats
    minimum: Floats
    mean: Floats
    maximum: Floats
    ratios: tuple[Floats, ...]
    """By part, all variants of the case by runtime workload; above 1 is faster."""
    weights: tuple[Floats, ...]
    approximate: bool
    incomplete: int
    noise: Noise
    repeats: Integers
    """By variant of the case, the lowest number of runs over its runtime workloads."""

    @property
    def names(self) -> list[str]:
        """The names of the complete variants."""
        return [self.case.variants[index] for index in self.index]

    @property
    def tried(self) -> int:
        """The number of complete variants, excluding base."""
        return max(0, len(self.index) - 1)

    def point_ratios(self, variant: int) -> tuple[PointRatio, ...]:
        """Returns a variant's ratio in each runtime workload."""
        return tuple(
            PointRatio(
                **part.place(column),
                weight=float(weights[column]),
                ratio=float(ratios[variant, column]),
            )
            for part, ratios, weights in zip(
                self.case.parts, self.ratios, self.weights, strict=True
            )
            for column in range(len(part.points))
        )


def score_case(case: Case, declared: DeclaredAxes) -> Scores:
    """Scores variants that were measured on all of base's runtime workloads."""
    by_part, approximate = weights(case, declared)
    ratios = tuple(part.ratios for part in case.parts)
    complete = np.all([~np.isnan(part).any(axis=1) for part in ratios], axis=0)
    index = np.flatnonzero(complete)
    complete_ratios = [part[index] for part in ratios]
    total = sum(
        (part @ weight for part, weight in zip(complete_ratios, by_part, strict=True)), np.zeros(1)
    )
    score = np.broadcast_to(total, index.shape)
    order = sorted(
        range(len(index)), key=lambda position: (-score[position], case.variants[index[position]])
    )
    return Scores(
        case=case,
        index=index[order],
        score=score[order],
        minimum=np.min([part.min(axis=1) for part in complete_ratios], axis=0)[order],
        mean=np.mean([part.mean(axis=1) for part in complete_ratios], axis=0)[order],
        maximum=np.max([part.max(axis=1) for part in complete_ratios], axis=0)[order],
        ratios=ratios,
        weights=by_part,
        approximate=approximate,
        incomplete=int((~complete).sum()),
        noise=noise_of(case, by_part),
        repeats=np.min([part.repeats.min(axis=1) for part in case.parts], axis=0),
    )


Decoded = Mapping[int, Samples | BadSamplesError]
"""By runtime workload."""
SAME = 1e-4
"""Relative tolerance: samples are kept in single precision."""
LEAST = 5
"""With fewer samples the certainty of a median is unknown."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the samples of one variant show."""

    interval: Interval | None
    verdict: Verdict | None
    """None if no samples show how certain the score is."""
    worst: PointRatio
    slower: int
    loss: float | None
    loses: bool
    """Whether a runtime workload loses more than allowed, beyond noise."""


@dataclass
class SampleReader:
    """Reads and decodes samples on demand."""

    case: Case
    decoder: Decoder
    warn: Callable[[DataWarning], None]
    _base: dict[tuple[str, int], list[Samples | None]] = field(default_factory=dict)
    _base_medians: dict[tuple[str, int], list[Floats | None]] = field(default_factory=dict)
    _decoded: dict[tuple[str, int, int], Decoded] = field(default_factory=dict)

    def prepare(self, variants: Iterable[int]) -> None:
        """Decodes the samples of base and of some variants in one batch, which is faster."""
        runs = range(len(self.case.databases))
        indices = {0, *variants}
        keys = [
            (part, variant, run) for part in self.case.parts for variant in indices for run in runs
        ]
        blobs = [self._blobs(*key) for key in keys]
        decoded = iter(
            self.decoder.decode([blob for blobs_of_key in blobs for blob in blobs_of_key.values()])
        )
        for (part, variant, run), blobs_of_key in zip(keys, blobs, strict=True):
            answers = {column: next(decoded) for column in blobs_of_key}
            self._decoded[part.table.name, variant, run] = answers

    def base(self, part: Part, run: int) -> list[Samples | None]:
        """Returns base's samples, decoded once for all variants."""
        key = part.table.name, run
        if key not in self._base:
            self._base[key] = self.read(part, 0, run)
        return self._base[key]

    def base_medians(self, part: Part, run: int) -> list[Floats | None]:
        """Returns medians of resamples of base's samples, drawn once for all variants."""
        key = part.table.name, run
        if key not in self._base_medians:
            run_identity = (str(run),) if run else ()
            rng = generator(*_identity(self.case), part.table.name, BASE, *run_identity)
            resampled = [_medians(samples, rng) for samples in self.base(part, run)]
            self._base_medians[key] = resampled
        return self._base_medians[key]

    def read(self, part: Part, variant: int, run: int) -> list[Samples | None]:
        """Returns a variant's samples by runtime workload; None if missing or invalid."""
        decoded = self._decoded.pop((part.table.name, variant, run), None)
        if decoded is None:
            blobs = self._blobs(part, variant, run)
            decoded = dict(zip(blobs, self.decoder.decode([*blobs.values()]), strict=True))
        result: list[Samples | None] = [None] * len(part.points)
        for column, samples in decoded.items():
            if isinstance(samples, BadSamplesError):
                self._warn_about(part, variant, run, column, samples)
            elif not isclose(middle(samples), part.centers[run, variant, column], rel_tol=SAME):
                # A damaged blob may still decode, to something else.
                error = BadSamplesError("their median differs from the row's center")
                self._warn_about(part, variant, run, column, error)
            else:
                result[column] = samples
        return result

    def _blobs(self, part: Part, variant: int, run: int) -> dict[int, object]:
        """Returns blobs by runtime workload, where there are samples; NVBench's --json has none."""
        database, name = self.case.databases[run], (part.table.algorithm, part.table.subbench)
        tables = (t for t in database.tables if (t.algorithm, t.subbench) == name)
        table = next((table for table in tables if "samples" in table.columns), None)
        if table is None:
            return {}
        sql = f"SELECT samples FROM {table.quoted} WHERE rowid = ?"  # noqa: S608  quoted
        blobs: dict[int, object] = {}
        for column in np.flatnonzero(~np.isnan(part.centers[run, variant])).tolist():
            row = database.connection.execute(
                sql, (int(part.rowids[run, variant, column]),)
            ).fetchone()
            if row is not None and row[0] is not None:
                blobs[column] = row[0]
        return blobs

    def _warn_about(
        self, part: Part, variant: int, run: int, column: int, error: BadSamplesError
    ) -> None:
        message, row = f"samples cannot be used: {error}", int(part.rowids[run, variant, column])
        self.warn(self.case.databases[run].warning(part.table.name, message, row=row))


# The certainty of a score, slowdowns, and the verdict.


def judge(
    scores: Scores, variant: int, rules: Rules, reader: SampleReader, *, named: bool = False
) -> Confidence:
    """Judges a variant by its samples and by the noise between runs.

    A variant that was `named` beforehand needs no correction for multiple comparisons.
    """
    case = scores.case
    rng = generator(*_identity(case), case.variants[variant])
    score_draws: Floats | None = np.zeros(DRAWS)
    points: list[PointRatio] = []
    for part, ratios, part_weights, noise in zip(
        case.parts, scores.ratios, scores.weights, scores.noise.points, strict=True
    ):
        repeats = part.repeats[variant]
        for column, draws in enumerate(_draws(part, variant, reader, rng)):
            ratio, weight = float(ratios[variant, column]), float(part_weights[column])
            interval = None
            if draws is None:
                score_draws = None
            else:
                score_draws = None if score_draws is None else score_draws + weight * draws
                spread = _deviation(float(noise[column]) * ratio, draws, int(repeats[column]))
                interval = _interval(ratio, spread, rules)
            points.append(
                PointRatio(**part.place(column), weight=weight, ratio=ratio, interval=interval)
            )
    score = sum(point.weight * point.ratio for point in points)
    slower_points = [point for point in points if _upper_bound(point) < 1 - rules.point_noise]
    score_interval, verdict = None, None
    too_much = min(1 - rules.point_noise, rules.worst_allowed)
    losses = any(_upper_bound(point) < too_much for point in points)
    if score_draws is not None:
        spread = _deviation(deviation(scores, rules), score_draws, int(scores.repeats[variant]))
        score_interval = _interval(score, spread, rules)
        threshold_width = half_width(rules) if named else luck(scores, rules)
        verdict = _verdict(score, threshold_width * spread, losses=losses)
    return Confidence(
        interval=score_interval,
        verdict=verdict,
        worst=min(points, key=lambda point: point.ratio),
        slower=len(slower_points),
        loss=max((1 - point.ratio for point in slower_points), default=None),
        loses=losses,
    )


def deviation(scores: Scores, rules: Rules) -> float:
    """Returns the standard deviation of a score in one run: stated, else estimated."""
    return scores.noise.score if rules.noise is None else rules.noise


def luck(scores: Scores, rules: Rules) -> float:
    """Returns the luck threshold in deviations of a score; at least the half width."""
    return max(half_width(rules), threshold(max(1, scores.tried), 1 - rules.confidence))


def half_width(rules: Rules) -> float:
    """Returns the half width of an interval, in deviations."""
    return NormalDist().inv_cdf((1 + rules.confidence) / 2)


def _draws(
    part: Part, variant: int, reader: SampleReader, rng: np.random.Generator
) -> list[Floats | None]:
    """Resamples ratios by runtime workload, averaged over the runs; None without samples."""
    runs = [run for run in range(len(part.centers)) if not np.isnan(part.centers[run, 0]).all()]
    ratios_by_point: list[list[Floats]] = [[] for _ in part.points]
    for run in runs:
        base, variant_samples = reader.base_medians(part, run), reader.read(part, variant, run)
        for column, samples in enumerate(variant_samples):
            base_draws, variant_draws = base[column], _medians(samples, rng)
            if base_draws is not None and variant_draws is not None:
                ratios_by_point[column].append(base_draws / variant_draws)
    return [sum(draws[1:], draws[0]) / len(draws) if draws else None for draws in ratios_by_point]


def _medians(samples: Samples | None, rng: np.random.Generator) -> Floats | None:
    """Returns medians of resamples; None for too few samples."""
    return None if samples is None or samples.size < LEAST else medians(samples, rng)


def _interval(value: float, spread: float, rules: Rules) -> Interval:
    reach = half_width(rules) * spread
    return Interval(low=value - reach, high=value + reach)


def _deviation(noise: float, draws: Floats, runs: int) -> float:
    """Returns the deviation of a mean over runs: noise between runs, uncertainty within."""
    return hypot(noise / sqrt(max(1, runs)), float(draws.std()))


def _identity(case: Case) -> tuple[str, ...]:
    key = case.key
    return case.algorithm, *case.workload.values(), key.gpu, key.ctk, key.cccl


def _verdict(score: float, lucky: float, *, losses: bool) -> Verdict:
    """Returns the verdict; a gain must exceed what luck explains among all variants tried."""
    if score - lucky > 1:
        return "mixed" if losses else "better"  # real losses, and real gains in sum
    return "worse" if score + lucky < 1 else "too close to call"


def _upper_bound(point: PointRatio) -> float:
    return point.interval.high if point.interval else point.ratio
