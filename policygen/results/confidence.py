"""How sure a score is, what got slower, and the verdict."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isclose

import numpy as np

from policygen.model.labels import BASE
from policygen.model.results import DataWarning, Interval, PointRatio, Rules, Verdict
from policygen.results.bootstrap import DRAWS, generator, interval, medians
from policygen.results.case import Case, Part
from policygen.results.decoder import Decoder
from policygen.results.load import Floats
from policygen.results.samples import BadSamplesError, Samples
from policygen.results.score import Scores

SAME = 1e-4
"""Samples are kept in single precision."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the samples of one variant say."""

    interval: Interval | None
    verdict: Verdict | None
    """None where no samples tell how sure the score is."""
    worst: PointRatio
    slower: int
    loss: float | None


@dataclass
class SampleReader:
    """Reads and decodes the samples that are asked for, and no others."""

    case: Case
    decoder: Decoder
    warn: Callable[[DataWarning], None]
    _base: dict[str, list[Samples | None]] = field(default_factory=dict)
    _base_medians: dict[str, list[Floats | None]] = field(default_factory=dict)

    def base(self, part: Part) -> list[Samples | None]:
        """Base's samples, decoded once for all variants."""
        if part.table.name not in self._base:
            self._base[part.table.name] = self.read(part, 0)
        return self._base[part.table.name]

    def base_medians(self, part: Part) -> list[Floats | None]:
        """Medians of resamples of base's samples, drawn once for all variants."""
        name = part.table.name
        if name not in self._base_medians:
            rng = generator(*_identity(self.case), name, BASE)
            found = [None if one is None else medians(one, rng) for one in self.base(part)]
            self._base_medians[name] = found
        return self._base_medians[name]

    def read(self, part: Part, variant: int) -> list[Samples | None]:
        """The samples of a variant by runtime workload; none where they cannot be used."""
        if "samples" not in part.table.columns:
            return [None] * len(part.points)
        blobs = [self._blob(part, variant, column) for column in range(len(part.points))]
        present = [column for column, blob in enumerate(blobs) if blob is not None]
        found: list[Samples | None] = [None] * len(blobs)
        decoded = self.decoder.decode([blobs[column] for column in present])
        for column, samples in zip(present, decoded, strict=True):
            if isinstance(samples, BadSamplesError):
                self._tell(part, variant, column, samples)
            elif not isclose(np.median(samples), part.centers[variant, column], rel_tol=SAME):
                # A damaged blob can decode, to something else.
                error = BadSamplesError("their median is not the center of the row")
                self._tell(part, variant, column, error)
            else:
                found[column] = samples
        return found

    def _blob(self, part: Part, variant: int, column: int) -> object:
        """None where there are no samples, as NVBench's --json keeps none."""
        rowid = int(part.rowids[variant, column])
        if rowid < 0:
            return None
        connection = self.case.databases[part.origins[variant, column]].connection
        sql = f"SELECT samples FROM {part.table.quoted} WHERE rowid = ?"  # noqa: S608  quoted
        row = connection.execute(sql, (rowid,)).fetchone()
        return None if row is None else row[0]

    def _tell(self, part: Part, variant: int, column: int, error: BadSamplesError) -> None:
        self.warn(
            DataWarning(
                database=str(self.case.databases[part.origins[variant, column]].path),
                table=part.table.name,
                message=f"samples cannot be used: {error}",
                row=int(part.rowids[variant, column]),
            )
        )


def judge(scores: Scores, variant: int, rules: Rules, reader: SampleReader) -> Confidence:
    """What a variant's samples say about it, compared with base's."""
    case = scores.case
    rng = generator(*_identity(case), case.variants[variant])
    total: Floats | None = np.zeros(DRAWS)
    points: list[PointRatio] = []
    for part, ratios, weights in zip(case.parts, scores.ratios, scores.weights, strict=True):
        base, own = reader.base_medians(part), reader.read(part, variant)
        for column, point in enumerate(part.points):
            found = None
            if (one := base[column]) is not None and (other := own[column]) is not None:
                draws = one / medians(other, rng)
                found = interval(draws, rules.confidence)
                total = None if total is None else total + weights[column] * draws
            else:
                total = None
            points.append(
                PointRatio(
                    subbench=part.table.subbench,
                    point=dict(zip(part.table.rt_axes, point, strict=True)),
                    weight=float(weights[column]),
                    ratio=float(ratios[variant, column]),
                    interval=found,
                )
            )
    whole = None if total is None else interval(total, rules.confidence)
    return _conclude(whole, points, rules)


def _identity(case: Case) -> tuple[str, ...]:
    key = case.key
    return case.algorithm, *case.workload.values(), key.gpu, key.ctk, key.cccl


def _conclude(whole: Interval | None, points: list[PointRatio], rules: Rules) -> Confidence:
    lost = [point for point in points if _high(point) < 1 - rules.point_noise]
    return Confidence(
        interval=whole,
        verdict=None if whole is None else _verdict(whole, rules, losses=bool(lost)),
        worst=min(points, key=lambda point: point.ratio),
        slower=len(lost),
        loss=max((1 - point.ratio for point in lost), default=None),
    )


def _verdict(whole: Interval, rules: Rules, *, losses: bool) -> Verdict:
    if losses and whole.low > 1:
        return "mixed"  # real losses in sum with real gains; the noise of the sum says little
    if whole.low > 1 + rules.noise:
        return "better"
    return "worse" if whole.high < 1 - rules.noise else "too close to call"


def _high(point: PointRatio) -> float:
    return point.interval.high if point.interval else point.ratio
