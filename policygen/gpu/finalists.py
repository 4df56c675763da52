"""The best variants of a workload and their final measurements, from rungs or from result rows."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any, get_args

import numpy as np

from policygen.gpu.statistics import PointTimes, judged, rung_times
from policygen.gpu.tools import SANITIZER_TOOL, memcheck_of
from policygen.model.measured import FailureKind, MeasuredVariant, RuntimeRatio
from policygen.model.results import Choice, ScoredVariant
from policygen.model.searches import (
    BestSoFar,
    FailureGroup,
    Memcheck,
    PointQuantiles,
    ReportedFinalist,
    RungName,
    RungSpan,
    SearchCurve,
    TriedVariant,
    VariantCounts,
)
from policygen.model.workload import BASE, is_label
from policygen.results.cases import Part
from policygen.results.database import Database
from policygen.results.export import quantile_ratios
from policygen.results.own_tables import LAST, SCREENING, SHARPER
from policygen.results.rungs import Rungs, RungScore, read_samples
from policygen.results.samples import Samples
from policygen.results.score import SampleReader, Scores
from policygen.results.sessions import FailureRow, PointSpot

MOST = 24
"""Maximum number of reported finalists."""
COMPARED = 5
"""Number of finalists whose quantiles are compared with the baseline."""
MOST_ROWS = 8
"""Maximum number of finalists if there are no rungs."""
RUNGS: Mapping[int, RungName] = {SCREENING: "screening", SHARPER: "sharper", LAST: "last"}


@dataclass(frozen=True, slots=True)
class Finals:
    """Finalists of a workload, and the best variant."""

    rung: RungName | None
    finalists: tuple[ReportedFinalist, ...]
    others: int = 0
    control: ReportedFinalist | None = None
    best: str | None = None


def rung_finals(rungs: Rungs, databases: Sequence[Database]) -> Finals:
    """Return the finalists of the last rung that the search reached."""
    means = {rung: rungs.means(rung) for rung in RUNGS}
    rung = max((rung for rung in RUNGS if means[rung]), default=None)
    if rung is None:
        return Finals(None, ())
    scores, mean_scores = rungs.scores(rung), means[rung]
    order = sorted(mean_scores, key=lambda label: (-mean_scores[label], label))
    # The noise is estimated from all repeated variants; the first rung has thousands of variants.
    candidates = order if rung == LAST else order[:MOST]
    points = rung_times(rungs, rung)
    judged_by_variant = {variant.variant: variant for variant in judged(points, candidates)}
    screened, sharper = means[SCREENING], means[SHARPER]
    ranks = {
        label: place
        for place, label in enumerate(sorted(screened, key=lambda name: -screened[name]), 1)
    }
    finalists = [
        _finalist(
            judged_by_variant[label],
            len(scores[label]),
            runtime=judged_by_variant[label].runtime,
            screened=screened.get(label) if rung > SCREENING else None,
            rank=ranks.get(label),
            sharper=sharper.get(label) if rung > SHARPER else None,
            quantiles=_rung_quantiles(rungs, rung, label, databases) if index < COMPARED else (),
        )
        for index, label in enumerate(order[:MOST])
    ]
    faster = [finalist.variant for finalist in finalists if finalist.verdict == "faster"]
    best = faster[0] if faster and rung == LAST else None
    control, others = _control(rungs, rung, scores, points), len(order) - len(finalists)
    return Finals(RUNGS[rung], with_close(finalists), others, control, best)


def row_finals(
    scores: Scores,
    shown: Sequence[ScoredVariant],
    choice: Choice | None,
    reader: SampleReader,
) -> Finals:
    """Return the best variants of result rows, with intervals from their samples and the noise."""
    index_by_variant = {scores.case.variants[int(index)]: int(index) for index in scores.index}
    variants = [variant for variant in shown if variant.variant != BASE][:MOST_ROWS]
    finalists = [
        _finalist(
            variant,
            None,
            runtime=tuple(_runtime(scores, index_by_variant[variant.variant])),
            quantiles=_row_quantiles(scores, index_by_variant[variant.variant], reader)
            if rank < COMPARED
            else (),
        )
        for rank, variant in enumerate(variants)
    ]
    best = choice.variant if choice and choice.decision == "use" else None
    return Finals(None, with_close(finalists), scores.tried - len(finalists), None, best)


def with_close(finalists: Sequence[ReportedFinalist]) -> tuple[ReportedFinalist, ...]:
    """Mark finalists that cannot be distinguished from the first."""
    first = finalists[0].interval if finalists else None
    later = (finalist.interval for finalist in finalists[1:])
    close = (bool(first and interval and interval.high >= first.low) for interval in later)
    return tuple(
        finalist.model_copy(update={"close": is_close})
        for finalist, is_close in zip(finalists, chain([False], close), strict=False)
    )


def _finalist(
    variant: MeasuredVariant | ScoredVariant, processes: int | None, **details: Any
) -> ReportedFinalist:
    judged_as = {"score": variant.score, "interval": variant.interval, "verdict": variant.verdict}
    details |= {"processes": processes, **judged_as}
    return ReportedFinalist(variant=variant.variant, **details)


def _control(
    rungs: Rungs, rung: int, scores: Mapping[str, Sequence[RungScore]], points: list[PointTimes]
) -> ReportedFinalist | None:
    """Return the baseline measured as a variant; None if it was only compared with itself."""
    if BASE not in scores:
        return None
    rows = [row for run in rungs.rows[rung][BASE].values() for row in run.values()]
    if all(row.center == row.base for row in rows):
        return None
    (variant,) = judged(points, [BASE])
    return _finalist(variant, len(scores[BASE]), runtime=variant.runtime)


def _rung_quantiles(
    rungs: Rungs, rung: int, label: str, databases: Sequence[Database]
) -> tuple[PointQuantiles, ...]:
    """Return quantile ratios over all processes; baseline and variant share each process."""
    quantiles = []
    rows = rungs.rows[rung]
    for point in rungs.points:
        samples = []
        for name in (BASE, label):
            runs = rows.get(name, {})
            sample_ids = [(run[0], runs[run][point].rowid) for run in runs if point in runs[run]]
            samples.append(read_samples(databases, sample_ids))
        quantiles += _quantiles(point, samples[0], samples[1])
    return tuple(quantiles)


def _quantiles(point: PointSpot, base: Samples, variant: Samples) -> list[PointQuantiles]:
    ratios = quantile_ratios(base, variant)
    if not ratios:
        return []
    return [PointQuantiles(subbench=point.subbench, point=dict(point.axes), ratios=ratios)]


def _row_quantiles(
    scores: Scores, variant: int, reader: SampleReader
) -> tuple[PointQuantiles, ...]:
    """Return quantile ratios of the first run with samples of both."""
    quantiles = []
    for part in scores.case.parts:
        runs = range(len(part.centers))
        base_runs = [reader.base(part, run) for run in runs]
        variant_runs = [reader.read(part, variant, run) for run in runs]
        for column, point in enumerate(_spots(part)):
            for base_run, variant_run in zip(base_runs, variant_runs, strict=True):
                base_samples, variant_samples = base_run[column], variant_run[column]
                if base_samples is not None and variant_samples is not None:
                    quantiles += _quantiles(point, base_samples, variant_samples)
                    break
    return tuple(quantiles)


def _spots(part: Part) -> list[PointSpot]:
    subbench, axes = part.table.subbench, part.table.rt_axes
    return [PointSpot(subbench, tuple(zip(axes, point, strict=True))) for point in part.points]


def _runtime(scores: Scores, variant: int) -> list[RuntimeRatio]:
    """Return the ratio per runtime workload; times are means over the runs that have both."""
    ratios = []
    for index, part in enumerate(scores.case.parts):
        base, times = part.centers[:, 0], part.centers[:, variant]
        has_both = ~np.isnan(base) & ~np.isnan(times)
        for column, point in enumerate(_spots(part)):
            runs = has_both[:, column]
            ratios.append(
                RuntimeRatio(
                    subbench=point.subbench,
                    point=dict(point.axes),
                    weight=float(scores.weights[index][column]),
                    seconds=float(times[runs, column].mean()),
                    base_seconds=float(base[runs, column].mean()),
                    ratio=float(scores.ratios[index][variant, column]),
                )
            )
    return ratios


LISTED = 20_000
"""Maximum number of listed variants, also of failed ones."""
GROUPS = 20
"""Maximum number of reported failure groups."""
NAMED = 5
"""Maximum number of variants named per group."""
LISTED_IN_FINDING = 100
"""Maximum number of variants named per finding."""
STEPS = 500
"""Maximum number of reported improvements of the best score."""
WRONG = "wrong"


# Tried and failed variants


def tried_in_rungs(rungs: Rungs) -> list[TriedVariant]:
    """Return variants in the order of their first complete measurement."""
    first_runs: dict[str, list[RungScore]] = {}
    for rung in RUNGS:
        for label, runs in rungs.scores(rung).items():
            if label != BASE:
                first_runs.setdefault(label, runs)
    first = {label: min(runs, key=lambda run: run.row) for label, runs in first_runs.items()}
    starts, highest = rungs.clock.before, rungs.highest()
    in_order = sorted(first, key=lambda k: (starts.get(first[k].run[:2], 0.0), first[k].row))
    return [
        TriedVariant(
            variant=label,
            score=fmean(run.score for run in first_runs[label]),
            rung=RUNGS[highest[label]],
            evaluation=evaluation,
            seconds=first[label].seconds,
        )
        for evaluation, label in enumerate(in_order, 1)
    ]


def tried_in_rows(scores: Scores) -> list[TriedVariant]:
    """Return variants with the best first; result rows have no order."""
    names = scores.case.variants
    return [
        TriedVariant(variant=names[int(index)], score=float(score))
        for index, score in zip(scores.index, scores.score, strict=True)
        if names[int(index)] != BASE
    ]


def listed(variants: Sequence[TriedVariant]) -> tuple[tuple[TriedVariant, ...], int]:
    """Return the best variants up to the limit in their original order, and the number left out."""
    by_score = sorted(variants, key=lambda variant: -variant.score)
    best = {variant.variant for variant in by_score[:LISTED]}
    shown = tuple(variant for variant in variants if variant.variant in best)
    return shown, len(variants) - len(shown)


def curve_of(rungs: Rungs, variants: Sequence[TriedVariant]) -> SearchCurve | None:
    """Return the best score over time; None if no variant was measured completely."""
    ordered = [variant for variant in variants if variant.evaluation is not None]
    if not ordered:
        return None
    best: list[BestSoFar] = []
    for variant in ordered:
        if not best or variant.score > best[-1].score:
            best.append(BestSoFar(**variant.model_dump(include={*BestSoFar.model_fields})))
    spans = _spans(rungs)
    return SearchCurve(
        evaluations=len(ordered),
        seconds=max((span.end for span in spans), default=None),
        best=tuple(best[-STEPS:]),
        spans=spans,
    )


def counts_of(measured: int, incomplete: int, failures: Mapping[str, FailureRow]) -> VariantCounts:
    """Count variants by outcome."""
    wrong = sum(row.kind == WRONG for row in failures.values())
    return VariantCounts(
        tried=measured + incomplete + len(failures),
        measured=measured,
        incomplete=incomplete,
        failed=len(failures) - wrong,
        wrong=wrong,
    )


def failed_of(rows: Sequence[FailureRow], measured: set[str]) -> dict[str, FailureRow]:
    """Return the last failure of each variant without a score; wrong results take precedence."""
    failures: dict[str, FailureRow] = {}
    for row in rows:
        if row.variant in measured or row.variant == BASE:
            continue
        if row.variant not in failures or failures[row.variant].kind != WRONG:
            failures[row.variant] = row
    return failures


def groups_of(failures: Mapping[str, FailureRow]) -> tuple[tuple[FailureGroup, ...], int]:
    """Group variants by failure, wrong results first; also return how many groups are omitted."""
    kinds = get_args(FailureKind)
    variants_by_failure: dict[tuple[str, str], dict[str, None]] = {}
    for variant, row in failures.items():
        variants_by_failure.setdefault((row.kind, row.reason), {})[variant] = None
    return _grouped(
        variants_by_failure, lambda key: (key[0] if key[0] in kinds else "error", key[1])
    )


# Reasons of CUDA errors that come from the code of a variant, not from its resources.
_FAULT = re.compile(r"illegal|misaligned|launch failure|program counter|compute-sanitizer")
_NUMBER = re.compile(r"\d+")


def findings_of(
    failures: Mapping[str, tuple[str, str]], memchecks: Mapping[str, Memcheck]
) -> tuple[FailureGroup, ...]:
    """Group the variants that compute other results than base, or fail on the GPU.

    `failures` are kinds and reasons. Reasons that differ in numbers alone are the same.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for variant, (kind, reason) in failures.items():
        if kind in {WRONG, "crash", "hang"} or (kind == "error" and _FAULT.search(reason)):
            groups.setdefault((kind, _NUMBER.sub("", reason)), []).append(variant)
    return tuple(
        FailureGroup.model_validate(
            {
                "kind": kind,
                "reason": failures[variants[0]][1],
                "count": len(variants),
                "variants": tuple(filter(is_label, variants))[:LISTED_IN_FINDING],
                "memcheck": _memcheck_of(variants, failures, memchecks),
            }
        )
        for (kind, _), variants in sorted(
            groups.items(), key=lambda item: (item[0][0] != WRONG, -len(item[1]), item[0])
        )
    )


def _memcheck_of(
    variants: Sequence[str],
    failures: Mapping[str, tuple[str, str]],
    memchecks: Mapping[str, Memcheck],
) -> Memcheck | None:
    """Return what memcheck says of one of them; a finalist may have failed because of it."""
    for variant in variants:
        if variant in memchecks:
            return memchecks[variant]
        if failures[variant][1].startswith(f"{SANITIZER_TOOL}: "):
            return memcheck_of(variant, {variant: failures[variant][1]})
    return None


def groups_in_logs(
    failed: Sequence[Mapping[tuple[str, str], Sequence[str]]],
) -> tuple[tuple[FailureGroup, ...], int]:
    """Group failures from CCCL's logs, which name neither workload nor reason."""
    variants_by_failure: dict[tuple[str, str], dict[str, None]] = {}
    for failures in failed:
        for key, variants in failures.items():
            variants_by_failure.setdefault(key, {}).update(dict.fromkeys(variants))
    return _grouped(
        variants_by_failure,
        lambda key: ("build" if key[0] == "build" else "run", f"code {key[1][:20]}"),
    )


def _grouped(
    variants_by_failure: Mapping[tuple[str, str], Collection[str]],
    shown: Callable[[tuple[str, str]], tuple[Any, str]],
) -> tuple[tuple[FailureGroup, ...], int]:
    """Return the largest groups with the kind and reason that are `shown`, and how many remain."""
    order = sorted(
        variants_by_failure, key=lambda key: (key[0] != WRONG, -len(variants_by_failure[key]), key)
    )
    groups = tuple(
        FailureGroup(
            kind=kind,
            reason=reason,
            count=len(variants_by_failure[key]),
            variants=tuple(filter(is_label, variants_by_failure[key]))[:NAMED],
        )
        for key, (kind, reason) in ((key, shown(key)) for key in order[:GROUPS])
    )
    return groups, len(order) - len(groups)


def _spans(rungs: Rungs) -> tuple[RungSpan, ...]:
    """Return when each session sampled each rung."""
    times_by_rung: dict[tuple[int, tuple[int, int]], list[float]] = {}
    for rung, variants in rungs.rows.items():
        for runs in variants.values():
            for run, points in runs.items():
                session = run[:2]
                times = (rungs.clock.seconds(session, row.at) for row in points.values())
                times_by_rung.setdefault((rung, session), []).extend(
                    seconds for seconds in times if seconds is not None
                )
    return tuple(
        RungSpan(rung=RUNGS[rung], start=min(times), end=max(times))
        for (rung, _), times in sorted(
            times_by_rung.items(), key=lambda entry: (entry[0][0], min(entry[1], default=0.0))
        )
        if times
    )
