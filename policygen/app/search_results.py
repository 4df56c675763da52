"""What a search found of a workload, as its document tells it."""

from collections.abc import Iterator

from policygen.measure.database import MeasuringSession
from policygen.measure.statistics import judged, noises, score_noise
from policygen.measure.times import runtime_axes, times_of
from policygen.model.measured import SkippedPoint
from policygen.model.search import (
    Ended,
    Finalist,
    SearchedVariants,
    SearchedWorkload,
    SearchFailure,
)
from policygen.results.provenance import LAST
from policygen.search.rung_rows import RungRows
from policygen.search.rung_scores import rung_times
from policygen.search.workload import WorkloadSearch


def searched_workload(
    one: WorkloadSearch, rungs: RungRows, rows: MeasuringSession, ended: Ended | None
) -> SearchedWorkload:
    """Its finalists with intervals, how they were found, and what failed."""
    finalists = tuple(_finalists(one, rungs))
    spots = [point.spot for point in one.target.points] if one.target else []
    times = times_of(rows, spots, one.declared) if spots else []
    benchmark, workload = one.point
    won = [found for found in finalists if found.verdict == "faster"]
    return SearchedWorkload(
        benchmark=benchmark,
        workload=dict(workload),
        strategy=one.name,
        counts=SearchedVariants(
            variants=one.counts.variants,
            valid=one.counts.valid,
            distinct=one.counts.distinct,
            tried=len(one.tried),
            measured=len(one.scores),
            failed=len(one.failed),
            wrong=one.count({"wrong"}),
        ),
        base=one.base,
        best=won[0].variant if won else None,
        finalists=finalists,
        failures=tuple(_failures(one)),
        noise=tuple(noises(times)) if finalists else (),
        score_noise=score_noise(times) if finalists else None,
        skipped=tuple(
            SkippedPoint(point=runtime_axes(spot), reason=why)
            for spot, why in (one.target.skipped if one.target else ())
        ),
        ended=ended,
        seconds=one.seconds,
        problem=one.problem,
    )


def _finalists(one: WorkloadSearch, rungs: RungRows) -> Iterator[Finalist]:
    """The best first."""
    if one.target is None:
        return
    points = [(point.weighed, rungs.of(point.spot)) for point in one.target.points]
    times = rung_times(points, LAST)
    labels = [label for label in (times[0].variants if times else ()) if label not in one.failed]
    for found in sorted(judged(times, labels), key=lambda each: -(each.score or 0.0)):
        assert found.score is not None
        yield Finalist(
            variant=found.variant,
            screened=one.scores.get(found.variant, found.score),
            sharper=one.sharper.get(found.variant),
            score=found.score,
            interval=found.interval,
            verdict=found.verdict,
            runtime=found.runtime,
        )


def _failures(one: WorkloadSearch) -> Iterator[SearchFailure]:
    """By kind; those that are base's own policy are none."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for label, (kind, reason) in one.failed.items():
        kinds.setdefault(kind, []).append((label, reason))
    for kind, found in kinds.items():
        label, reason = found[0]
        yield SearchFailure.model_validate(
            {"kind": kind, "count": len(found), "variant": label, "reason": reason}
        )
