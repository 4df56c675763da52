"""Which variants a search tried, when, and what became of them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import get_args

from policygen.app.search_finalists import RUNGS
from policygen.model.labels import BASE, is_label
from policygen.model.measured import FailureKind
from policygen.model.search_report import (
    BestSoFar,
    FailureGroup,
    RungSpan,
    SearchCurve,
    TriedVariant,
    VariantCounts,
)
from policygen.results.rung_scores import Rungs, RungScore
from policygen.results.score import Scores
from policygen.results.searches import FailureRow

LISTED = 20_000
"""Variants that are listed, and failed ones."""
GROUPS = 20
"""Ways to fail that are told."""
NAMED = 5
"""Variants of each that are named."""
STEPS = 500
"""Rises of the best score that are told."""
WRONG = "wrong"


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
