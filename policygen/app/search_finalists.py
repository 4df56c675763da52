"""The best variants of a workload as they were measured at last, by rungs or by rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from policygen.measure.statistics import PointTimes, judged
from policygen.model.labels import BASE
from policygen.model.measured import MeasuredVariant, RuntimeRatio
from policygen.model.results import Choice, ScoredVariant
from policygen.model.search import RungName
from policygen.model.search_report import PointQuantiles, ReportedFinalist
from policygen.results.case import Part
from policygen.results.confidence import SampleReader
from policygen.results.database import Database
from policygen.results.provenance import LAST
from policygen.results.quantiles import quantile_ratios
from policygen.results.rung_scores import Rungs, RungScore, read_samples
from policygen.results.samples import Samples
from policygen.results.score import Scores
from policygen.results.searches import PointSpot

MOST = 24
"""Finalists that are told."""
COMPARED = 5
"""Those whose quantiles are set beside base's."""
MOST_ROWS = 8
"""The same where there are no rungs."""
RUNGS: Mapping[int, RungName] = {1: "screening", 2: "sharper", 3: "last"}


@dataclass(frozen=True, slots=True)
class Finals:
    """What is known of the best."""

    rung: RungName | None
    finalists: tuple[ReportedFinalist, ...]
    others: int = 0
    control: ReportedFinalist | None = None
    best: str | None = None


def rung_finals(rungs: Rungs, databases: Sequence[Database]) -> Finals:
    """Those of the last rung; of an earlier one where the search did not come so far."""
    scores = {rung: rungs.scores(rung) for rung in RUNGS}
    rung = max((one for one in RUNGS if scores[one].keys() - {BASE}), default=None)
    if rung is None:
        return Finals(None, ())
    means = {label: fmean(run.score for run in runs) for label, runs in scores[rung].items()}
    order = sorted(means.keys() - {BASE}, key=lambda label: (-means[label], label))
    # The spread of all that were measured again counts; of the first rung there are thousands.
    counted = order if rung == LAST else order[:MOST]
    points = _times(rungs, rung, scores[rung])
    found = {one.variant: one for one in judged(points, counted)}
    screened = _means(scores[1])
    sharper = _means(scores[2])
    places = {
        label: place
        for place, label in enumerate(sorted(screened, key=lambda name: -screened[name]), 1)
    }
    told = [
        _finalist(found[label], scores[rung][label]).model_copy(
            update={
                "screened": screened.get(label) if rung > 1 else None,
                "rank": places.get(label),
                "sharper": sharper.get(label) if rung > 2 else None,
                "quantiles": _rung_quantiles(rungs, rung, label, databases)
                if place < COMPARED
                else (),
            }
        )
        for place, label in enumerate(order[:MOST])
    ]
    faster = [one.variant for one in told if one.verdict == "faster"]
    return Finals(
        RUNGS[rung],
        with_close(told),
        len(order) - len(told),
        _control(rungs, rung, scores[rung], points),
        faster[0] if faster and rung == LAST else None,
    )


def row_finals(
    scores: Scores,
    shown: Sequence[ScoredVariant],
    choice: Choice | None,
    reader: SampleReader,
) -> Finals:
    """The best of rows of results, with the intervals that their samples and the noise make."""
    places = {scores.case.variants[int(index)]: int(index) for index in scores.index}
    own = [one for one in shown if one.variant != BASE][:MOST_ROWS]
    told = [
        ReportedFinalist(
            variant=one.variant,
            score=one.score,
            interval=one.interval,
            verdict=one.verdict,
            processes=None,
            runtime=tuple(_runtime(scores, places[one.variant])),
            quantiles=_row_quantiles(scores, places[one.variant], reader)
            if place < COMPARED
            else (),
        )
        for place, one in enumerate(own)
    ]
    best = choice.variant if choice and choice.decision == "use" else None
    return Finals(None, with_close(told), scores.tried - len(told), None, best)


def with_close(told: Sequence[ReportedFinalist]) -> tuple[ReportedFinalist, ...]:
    """Mark those that are not told apart from the first one."""
    first = told[0].interval if told else None
    return tuple(
        one.model_copy(
            update={
                "close": place > 0
                and first is not None
                and one.interval is not None
                and one.interval.high >= first.low
            }
        )
        for place, one in enumerate(told)
    )


def _means(scores: Mapping[str, Sequence[RungScore]]) -> dict[str, float]:
    return {
        label: fmean(run.score for run in runs) for label, runs in scores.items() if label != BASE
    }


def _times(rungs: Rungs, rung: int, scores: Mapping[str, Sequence[RungScore]]) -> list[PointTimes]:
    """As measuring has them: a pair of times for each process that was whole."""
    rows = rungs.rows[rung]
    return [
        PointTimes(
            subbench=point.subbench,
            point=dict(point.axes),
            weight=weight,
            base=(),
            beside=(),
            variants={
                label: [
                    (rows[label][run.run][point].base, rows[label][run.run][point].center)
                    for run in runs
                ]
                for label, runs in scores.items()
            },
        )
        for point, weight in zip(rungs.points, rungs.weights, strict=True)
    ]


def _finalist(one: MeasuredVariant, runs: Sequence[RungScore]) -> ReportedFinalist:
    assert one.score is not None
    return ReportedFinalist(
        variant=one.variant,
        score=one.score,
        interval=one.interval,
        verdict=one.verdict,
        processes=len(runs),
        runtime=one.runtime,
    )


def _control(
    rungs: Rungs, rung: int, scores: Mapping[str, Sequence[RungScore]], points: list[PointTimes]
) -> ReportedFinalist | None:
    """Base as a variant; where it stands beside itself alone it says nothing."""
    if BASE not in scores:
        return None
    rows = [row for run in rungs.rows[rung][BASE].values() for row in run.values()]
    if all(row.center == row.base for row in rows):
        return None
    (one,) = judged(points, [BASE])
    return _finalist(one, scores[BASE])


def _rung_quantiles(
    rungs: Rungs, rung: int, label: str, databases: Sequence[Database]
) -> tuple[PointQuantiles, ...]:
    """Of all processes together; base and variant were measured in the same."""
    found = []
    rows = rungs.rows[rung]
    for point in rungs.points:
        samples = []
        for name in (BASE, label):
            lots = rows.get(name, {})
            places = [(run[0], lots[run][point].rowid) for run in lots if point in lots[run]]
            samples.append(read_samples(databases, places))
        found += _quantiles(point, samples[0], samples[1])
    return tuple(found)


def _quantiles(point: PointSpot, base: Samples, own: Samples) -> list[PointQuantiles]:
    ratios = quantile_ratios(base, own)
    if not ratios:
        return []
    return [PointQuantiles(subbench=point.subbench, point=dict(point.axes), ratios=ratios)]


def _row_quantiles(
    scores: Scores, variant: int, reader: SampleReader
) -> tuple[PointQuantiles, ...]:
    """Of the first run that has samples of both."""
    found = []
    for part in scores.case.parts:
        runs = range(len(part.centers))
        base = [reader.base(part, run) for run in runs]
        own = [reader.read(part, variant, run) for run in runs]
        for column, point in enumerate(_spots(part)):
            for one, other in zip(base, own, strict=True):
                mine, theirs = one[column], other[column]
                if mine is not None and theirs is not None:
                    found += _quantiles(point, mine, theirs)
                    break
    return tuple(found)


def _spots(part: Part) -> list[PointSpot]:
    axes = part.table.rt_axes
    return [
        PointSpot(part.table.subbench, tuple(zip(axes, point, strict=True)))
        for point in part.points
    ]


def _runtime(scores: Scores, variant: int) -> list[RuntimeRatio]:
    """Times are means over the runs that have both."""
    found = []
    for index, part in enumerate(scores.case.parts):
        base, own = part.centers[:, 0], part.centers[:, variant]
        both = ~np.isnan(base) & ~np.isnan(own)
        for column, point in enumerate(_spots(part)):
            runs = both[:, column]
            found.append(
                RuntimeRatio(
                    subbench=point.subbench,
                    point=dict(point.axes),
                    weight=float(scores.weights[index][column]),
                    seconds=float(own[runs, column].mean()),
                    base_seconds=float(base[runs, column].mean()),
                    ratio=float(scores.ratios[index][variant, column]),
                )
            )
    return found
