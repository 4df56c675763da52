"""The score of each variant: its speedup over base, weighted over all runtime workloads."""

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
    """Into the case's variants."""
    score: Floats
    minimum: Floats
    mean: Floats
    maximum: Floats
    ratios: tuple[Floats, ...]
    """By part: all variants of the case by runtime workload, over 1 is faster."""
    weights: tuple[Floats, ...]
    approximate: bool
    incomplete: int
    noise: Noise
    repeats: Integers
    """By variant of the case: in how many runs it was measured, where it was measured least."""

    @property
    def tried(self) -> int:
        """Variants that were measured whole, base not counted."""
        return max(0, len(self.index) - 1)

    @property
    def gains(self) -> Floats:
        """What each of those gains."""
        return np.asarray(self.score[self.index != 0] - 1)


def score_case(case: Case, declared: DeclaredAxes) -> Scores:
    """Only variants that were measured on all of base's runtime workloads count."""
    by_part, approximate = weights(case, declared)
    ratios = tuple(part.ratios for part in case.parts)
    complete = np.all([~np.isnan(part).any(axis=1) for part in ratios], axis=0)
    index = np.flatnonzero(complete)
    chosen = [part[index] for part in ratios]
    total = sum((part @ weight for part, weight in zip(chosen, by_part, strict=True)), np.zeros(1))
    score = np.broadcast_to(total, index.shape)
    order = sorted(range(len(index)), key=lambda i: (-score[i], case.variants[index[i]]))
    return Scores(
        case=case,
        index=index[order],
        score=score[order],
        minimum=np.min([part.min(axis=1) for part in chosen], axis=0)[order],
        mean=np.mean([part.mean(axis=1) for part in chosen], axis=0)[order],
        maximum=np.max([part.max(axis=1) for part in chosen], axis=0)[order],
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
"""Samples are kept in single precision."""
LEAST = 5
"""Of fewer samples nobody knows how sure their median is."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the samples of one variant say."""

    interval: Interval | None
    verdict: Verdict | None
    """None where no samples tell how sure the score is."""
    worst: PointRatio
    slower: int
    loss: float | None
    loses: bool
    """Whether a runtime workload loses more than is allowed, beyond noise."""


@dataclass
class SampleReader:
    """Reads and decodes the samples that are asked for, and no others."""

    case: Case
    decoder: Decoder
    warn: Callable[[DataWarning], None]
    _base: dict[tuple[str, int], list[Samples | None]] = field(default_factory=dict)
    _base_medians: dict[tuple[str, int], list[Floats | None]] = field(default_factory=dict)
    _decoded: dict[tuple[str, int, int], Decoded] = field(default_factory=dict)

    def prepare(self, variants: Iterable[int]) -> None:
        """Decodes the samples of base and of some variants together, which takes less time."""
        runs = range(len(self.case.databases))
        wanted = {0, *variants}
        keys = [(part, one, run) for part in self.case.parts for one in wanted for run in runs]
        blobs = [self._blobs(*key) for key in keys]
        decoded = iter(self.decoder.decode([blob for found in blobs for blob in found.values()]))
        for (part, one, run), found in zip(keys, blobs, strict=True):
            answers = {column: next(decoded) for column in found}
            self._decoded[part.table.name, one, run] = answers

    def base(self, part: Part, run: int) -> list[Samples | None]:
        """Base's samples, decoded once for all variants."""
        key = part.table.name, run
        if key not in self._base:
            self._base[key] = self.read(part, 0, run)
        return self._base[key]

    def base_medians(self, part: Part, run: int) -> list[Floats | None]:
        """Medians of resamples of base's samples, drawn once for all variants."""
        key = part.table.name, run
        if key not in self._base_medians:
            more = (str(run),) if run else ()
            rng = generator(*_identity(self.case), part.table.name, BASE, *more)
            found = [_medians(one, rng) for one in self.base(part, run)]
            self._base_medians[key] = found
        return self._base_medians[key]

    def read(self, part: Part, variant: int, run: int) -> list[Samples | None]:
        """The samples of a variant by runtime workload; none where they cannot be used."""
        known = self._decoded.pop((part.table.name, variant, run), None)
        if known is None:
            blobs = self._blobs(part, variant, run)
            known = dict(zip(blobs, self.decoder.decode([*blobs.values()]), strict=True))
        found: list[Samples | None] = [None] * len(part.points)
        for column, samples in known.items():
            if isinstance(samples, BadSamplesError):
                self._tell(part, variant, run, column, samples)
            elif not isclose(middle(samples), part.centers[run, variant, column], rel_tol=SAME):
                # A damaged blob can decode, to something else.
                error = BadSamplesError("their median is not the center of the row")
                self._tell(part, variant, run, column, error)
            else:
                found[column] = samples
        return found

    def _blobs(self, part: Part, variant: int, run: int) -> dict[int, object]:
        """By runtime workload, of those that have samples."""
        if "samples" not in part.table.columns:
            return {}
        blobs = {c: self._blob(part, variant, run, c) for c in range(len(part.points))}
        return {column: blob for column, blob in blobs.items() if blob is not None}

    def _blob(self, part: Part, variant: int, run: int, column: int) -> object:
        """None where there are no samples, as NVBench's --json keeps none."""
        rowid = int(part.rowids[run, variant, column])
        if rowid < 0 or np.isnan(part.centers[run, variant, column]):
            return None
        connection = self.case.databases[run].connection
        sql = f"SELECT samples FROM {part.table.quoted} WHERE rowid = ?"  # noqa: S608  quoted
        row = connection.execute(sql, (rowid,)).fetchone()
        return None if row is None else row[0]

    def _tell(
        self, part: Part, variant: int, run: int, column: int, error: BadSamplesError
    ) -> None:
        self.warn(
            DataWarning(
                database=str(self.case.databases[run].path),
                table=part.table.name,
                message=f"samples cannot be used: {error}",
                row=int(part.rowids[run, variant, column]),
            )
        )


# How sure a score is, what got slower, and the verdict.


def judge(
    scores: Scores, variant: int, rules: Rules, reader: SampleReader, *, named: bool = False
) -> Confidence:
    """What is known of a variant: its samples, and how far runs are from each other.

    One that was `named` before anybody looked is not the luckiest of all that were tried.
    """
    case = scores.case
    rng = generator(*_identity(case), case.variants[variant])
    within: Floats | None = np.zeros(DRAWS)
    points: list[PointRatio] = []
    for index, part in enumerate(case.parts):
        draws = _draws(part, variant, reader, rng)
        repeats = part.repeats_of(variant)
        for column, point in enumerate(part.points):
            ratio, drawn = float(scores.ratios[index][variant, column]), draws[column]
            weight = float(scores.weights[index][column])
            found = None
            if drawn is None:
                within = None
            else:
                within = None if within is None else within + weight * drawn
                own = float(scores.noise.points[index][column]) * ratio
                found = _around(ratio, own, float(drawn.std()), int(repeats[column]), rules)
            points.append(
                PointRatio(
                    subbench=part.table.subbench,
                    point=dict(zip(part.table.rt_axes, point, strict=True)),
                    weight=weight,
                    ratio=ratio,
                    interval=found,
                )
            )
    score = sum(point.weight * point.ratio for point in points)
    lost = [point for point in points if _high(point) < 1 - rules.point_noise]
    whole, verdict = None, None
    too_much = min(1 - rules.point_noise, rules.worst_allowed)
    losses = any(_high(point) < too_much for point in points)
    if within is not None:
        noise, runs = deviation(scores, rules), int(scores.repeats[variant])
        whole = _around(score, noise, float(within.std()), runs, rules)
        sure = _deviation(noise, float(within.std()), runs)
        lucky = half_width(rules) if named else luck(scores, rules)
        verdict = _verdict(score, lucky * sure, losses=losses)
    return Confidence(
        interval=whole,
        verdict=verdict,
        worst=min(points, key=lambda point: point.ratio),
        slower=len(lost),
        loss=max((1 - point.ratio for point in lost), default=None),
        loses=losses,
    )


def deviation(scores: Scores, rules: Rules) -> float:
    """The standard deviation of a score in one run: as stated, else as known."""
    return scores.noise.score if rules.noise is None else rules.noise


def luck(scores: Scores, rules: Rules) -> float:
    """What luck explains, in deviations of a score; never less than the interval's half width."""
    return max(half_width(rules), threshold(max(1, scores.tried), 1 - rules.confidence))


def half_width(rules: Rules) -> float:
    """Of an interval, in deviations."""
    return NormalDist().inv_cdf((1 + rules.confidence) / 2)


def _draws(
    part: Part, variant: int, reader: SampleReader, rng: np.random.Generator
) -> list[Floats | None]:
    """Resampled ratios by runtime workload, the mean over the runs; none without samples."""
    runs = [run for run in range(len(part.centers)) if not np.isnan(part.centers[run, 0]).all()]
    found: list[list[Floats]] = [[] for _ in part.points]
    for run in runs:
        base, own = reader.base_medians(part, run), reader.read(part, variant, run)
        for column, samples in enumerate(own):
            one, other = base[column], _medians(samples, rng)
            if one is not None and other is not None:
                found[column].append(one / other)
    return [sum(each[1:], each[0]) / len(each) if each else None for each in found]


def _medians(samples: Samples | None, rng: np.random.Generator) -> Floats | None:
    """Medians of resamples; a few samples do not tell how sure their median is."""
    return None if samples is None or samples.size < LEAST else medians(samples, rng)


def _around(value: float, noise: float, within: float, runs: int, rules: Rules) -> Interval:
    """Where a value lies, as far as noise goes."""
    reach = half_width(rules) * _deviation(noise, within, runs)
    return Interval(low=value - reach, high=value + reach)


def _deviation(noise: float, within: float, runs: int) -> float:
    """Of a mean over runs: what differs between them, and what one run does not know itself."""
    return hypot(noise / sqrt(max(1, runs)), within)


def _identity(case: Case) -> tuple[str, ...]:
    key = case.key
    return case.algorithm, *case.workload.values(), key.gpu, key.ctk, key.cccl


def _verdict(score: float, lucky: float, *, losses: bool) -> Verdict:
    """Better is what luck does not explain, with as many variants as were tried."""
    if score - lucky > 1:
        return "mixed" if losses else "better"  # real losses in sum with real gains
    return "worse" if score + lucky < 1 else "too close to call"


def _high(point: PointRatio) -> float:
    return point.interval.high if point.interval else point.ratio
