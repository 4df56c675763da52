"""The best variants of a workload as they were measured at last, by rungs or by rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import get_args

import numpy as np

from policygen.gpu.statistics import PointTimes, judged
from policygen.model.measured import FailureKind, MeasuredVariant, RuntimeRatio
from policygen.model.results import Choice, ScoredVariant
from policygen.model.search_pages import (
    BestSoFar,
    FailureGroup,
    PointQuantiles,
    ReportedFinalist,
    RungSpan,
    SearchCurve,
    TriedVariant,
    VariantCounts,
)
from policygen.model.searches import RungName
from policygen.model.workload import BASE, is_label
from policygen.results.cases import Part
from policygen.results.database import Database
from policygen.results.export import quantile_ratios
from policygen.results.own_tables import LAST
from policygen.results.rungs import Rungs, RungScore, read_samples
from policygen.results.samples import Samples
from policygen.results.score import SampleReader, Scores
from policygen.results.sessions import FailureRow, PointSpot

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


LISTED = 20_000
"""Variants that are listed, and failed ones."""
GROUPS = 20
"""Ways to fail that are told."""
NAMED = 5
"""Variants of each that are named."""
STEPS = 500
"""Rises of the best score that are told."""
WRONG = "wrong"


# Which variants a search tried, when, and what became of them.


def tried_in_rungs(rungs: Rungs) -> list[TriedVariant]:
    """By the order in which they were measured on all runtime workloads for the first time."""
    first: dict[str, list[RungScore]] = {}
    for rung in RUNGS:
        for label, runs in rungs.scores(rung).items():
            if label != BASE:
                first.setdefault(label, runs)
    begun = rungs.clock.before

    def when(label: str) -> tuple[float, tuple[int, int]]:
        run = min(first[label], key=lambda one: one.row)
        return begun.get(run.run[:2], 0.0), run.row

    highest = rungs.highest()
    return [
        TriedVariant(
            variant=label,
            score=fmean(run.score for run in first[label]),
            rung=RUNGS[highest[label]],
            evaluation=place,
            seconds=min(first[label], key=lambda one: one.row).seconds,
        )
        for place, label in enumerate(sorted(first, key=when), 1)
    ]


def tried_in_rows(scores: Scores) -> list[TriedVariant]:
    """The best one first: rows of results tell no order."""
    names = scores.case.variants
    return [
        TriedVariant(variant=names[int(index)], score=float(score))
        for index, score in zip(scores.index, scores.score, strict=True)
        if names[int(index)] != BASE
    ]


def listed(variants: Sequence[TriedVariant]) -> tuple[tuple[TriedVariant, ...], int]:
    """As many as are listed, the best ones, in their order; and how many are not."""
    if len(variants) <= LISTED:
        return tuple(variants), 0
    best = {one.variant for one in sorted(variants, key=lambda one: -one.score)[:LISTED]}
    return tuple(one for one in variants if one.variant in best), len(variants) - len(best)


def curve_of(rungs: Rungs, variants: Sequence[TriedVariant]) -> SearchCurve | None:
    """How the best score rose; none where nothing was measured whole."""
    ordered = [one for one in variants if one.evaluation is not None]
    if not ordered:
        return None
    best: list[BestSoFar] = []
    for one in ordered:
        assert one.evaluation is not None
        if not best or one.score > best[-1].score:
            best.append(
                BestSoFar(
                    evaluation=one.evaluation,
                    seconds=one.seconds,
                    variant=one.variant,
                    score=one.score,
                )
            )
    spans = _spans(rungs)
    ends = [span.end for span in spans]
    return SearchCurve(
        evaluations=len(ordered),
        seconds=max(ends, default=None),
        best=tuple(best[-STEPS:]),
        spans=spans,
    )


def counts_of(measured: int, incomplete: int, failures: Mapping[str, FailureRow]) -> VariantCounts:
    """How many variants became what."""
    wrong = sum(row.kind == WRONG for row in failures.values())
    return VariantCounts(
        tried=measured + incomplete + len(failures),
        measured=measured,
        incomplete=incomplete,
        failed=len(failures) - wrong,
        wrong=wrong,
    )


def failed_of(rows: Sequence[FailureRow], measured: set[str]) -> dict[str, FailureRow]:
    """The last failure of each variant that has no score; being wrong outweighs all else."""
    found: dict[str, FailureRow] = {}
    for row in rows:
        if row.variant in measured or row.variant == BASE:
            continue
        if row.variant not in found or found[row.variant].kind != WRONG:
            found[row.variant] = row
    return found


def groups_of(failures: Mapping[str, FailureRow]) -> tuple[tuple[FailureGroup, ...], int]:
    """Those that failed in one way together, wrong ones first; and how many ways are not told."""
    lots: dict[tuple[str, str], list[str]] = {}
    for variant, row in failures.items():
        lots.setdefault((row.kind, row.reason), []).append(variant)
    order = sorted(lots, key=lambda one: (one[0] != WRONG, -len(lots[one]), one))
    kinds = get_args(FailureKind)
    groups = tuple(
        FailureGroup(
            kind=kind if kind in kinds else "error",
            reason=reason,
            count=len(lots[kind, reason]),
            variants=tuple(lots[kind, reason][:NAMED]),
        )
        for kind, reason in order[:GROUPS]
    )
    return groups, len(order) - len(groups)


def groups_in_logs(
    failed: Sequence[Mapping[tuple[str, str], Sequence[str]]],
) -> tuple[tuple[FailureGroup, ...], int]:
    """The same of CCCL's logs, which name no workload and no reason."""
    lots: dict[tuple[str, str], dict[str, None]] = {}
    for one in failed:
        for key, variants in one.items():
            lots.setdefault(key, {}).update(dict.fromkeys(variants))
    order = sorted(lots, key=lambda key: (-len(lots[key]), key))
    groups = tuple(
        FailureGroup(
            kind="build" if log == "build" else "run",
            reason=f"code {code[:20]}",
            count=len(lots[log, code]),
            variants=tuple(name for name in lots[log, code] if is_label(name))[:NAMED],
        )
        for log, code in order[:GROUPS]
    )
    return groups, len(order) - len(groups)


def _spans(rungs: Rungs) -> tuple[RungSpan, ...]:
    """When each session took samples of each rung."""
    found: dict[tuple[int, tuple[int, int]], list[float]] = {}
    for rung, variants in rungs.rows.items():
        for runs in variants.values():
            for run, points in runs.items():
                side = run[:2]
                times = (rungs.clock.seconds(side, row.at) for row in points.values())
                found.setdefault((rung, side), []).extend(at for at in times if at is not None)
    return tuple(
        RungSpan(rung=RUNGS[rung], start=min(times), end=max(times))
        for (rung, _), times in sorted(
            found.items(), key=lambda one: (one[0][0], min(one[1], default=0.0))
        )
        if times
    )
