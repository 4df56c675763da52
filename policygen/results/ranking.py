"""Ranks all variants of all workloads, with verdicts and a choice for each."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.results import (
    Choice,
    DataWarning,
    DbTop,
    Reasoning,
    Rules,
    RuntimeWorkload,
    ScoredVariant,
    ScoredWorkload,
)
from policygen.model.workload import BASE, spelled
from policygen.results.cases import Case, Part, build_cases, declared_points, missing_of_base
from policygen.results.choice import (
    Confirmed,
    IsWritable,
    choose,
    confirm,
    confirming,
    enough,
    finalists,
    refusal,
    runs_needed,
)
from policygen.results.database import Floats, Integers, Rows, open_all, read_rows
from policygen.results.imported import check_alike
from policygen.results.noise import point_key, threshold
from policygen.results.samples import Decoder, Samples
from policygen.results.score import SampleReader, Scores, deviation, half_width, judge, score_case
from policygen.results.sessions import never_ran, nothing_measured
from policygen.results.tables import DeclaredAxes

ANY = re.compile("")


@dataclass
class Warnings:
    """Collects warnings; equal ones are reported once, with their number."""

    _found: dict[tuple[str, str | None, str], DataWarning] = field(default_factory=dict)

    def add(self, warning: DataWarning) -> None:
        """Adds a warning, or raises the count of an equal one."""
        key = (warning.database, warning.table, warning.message)
        earlier = self._found.get(key)
        if earlier is not None:
            warning = earlier.model_copy(update={"count": earlier.count + warning.count})
        self._found[key] = warning

    @property
    def all(self) -> tuple[DataWarning, ...]:
        """All warnings, in order of appearance."""
        return tuple(self._found.values())


@contextmanager
def open_cases(
    paths: Sequence[Path],
    warnings: Warnings,
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[tuple[Case, ...]]:
    """Opens databases and yields their cases; they stay open, as samples are read on demand."""
    with open_all(paths) as databases:
        check_alike(databases)
        chosen = axes or {}
        tables: list[Rows] = []
        for database in databases:
            if not database.tables:
                warnings.add(nothing_measured(database))
            measured: dict[str, set[str]] = {}
            runs = (database, *database.merged)
            for run, table in ((owner, table) for owner in runs for table in owner.tables):
                if pattern.match(table.algorithm):
                    values_by_axis = spelled(chosen, table.axes)
                    tables.append(rows := read_rows(run, table, values_by_axis, warnings.add))
                    measured.setdefault(table.algorithm, set()).update(rows.variants)
            if not chosen:
                for warning in never_ran(database, measured, pattern):
                    warnings.add(warning)
        known_axes = {axis for rows in tables for axis in rows.table.axes}
        for axis in spelled(chosen, known_axes):
            if tables and axis not in known_axes:
                available = ", ".join(sorted(known_axes))
                raise InputError(f"-a {axis}: there is no such axis", f"Available: {available}")
        yield build_cases(tables, warnings.add)


def rank(
    paths: Sequence[Path],
    *,
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
    top: int | None = None,
    alpha: float = 1.0,
    samples: bool = True,
    rules: Rules | None = None,
    current: str | None = None,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
    explain: bool = False,
    can: IsWritable | None = None,
) -> DbTop:
    """Scores all workloads; decodes samples only for variants that are shown or may be chosen.

    Variants that `can` leaves out are not chosen, but still count in the correction for multiple
    comparisons.
    """
    rules = rules or Rules()
    warnings = Warnings()
    workloads: list[ScoredWorkload] = []
    with Decoder() as decoder:
        if samples or alpha < 1:
            decoder.start()
        with (
            open_cases(paths, warnings, pattern, axes) as cases,
            open_cases(confirm_with, warnings, pattern) as final_cases,
        ):
            check_alike(database for case in (*cases, *final_cases) for database in case.databases)
            for case in cases:
                reader = SampleReader(case, decoder, warnings.add)
                distinct_case = case if alpha >= 1 else distinct(case, reader, alpha)
                if distinct_case is None:
                    files = " + ".join(case.files)
                    message = f"{case.title}: no samples differ from base's (alpha {alpha:g})"
                    warnings.add(DataWarning(database=files, table=None, message=message))
                    continue
                scores = score_case(distinct_case, declared or {})
                judging_reader = (
                    SampleReader(distinct_case, decoder, warnings.add) if samples else None
                )
                confirming_case = confirming(case, final_cases)
                confirmed = None if confirming_case else last_rung(scores, rules)
                final_positions = (
                    finalists(scores, confirming_case, rules)
                    if confirming_case
                    else [at for at, name in enumerate(scores.names) if name in (confirmed or {})]
                )
                variants = leading(scores, top, rules, judging_reader, final_positions, can)
                choice = explanation = None
                if samples and not is_partial(distinct_case, axes):
                    if confirming_case:
                        confirmed = confirm(
                            scores, final_positions, confirming_case, rules, declared or {}
                        )
                    choice = choose(variants, scores, rules, declared or {}, confirmed, current)
                    explanation = reasoning(scores, confirming_case, rules) if explain else None
                if alpha < 1:
                    # Base never differs from itself.
                    variants = [variant for variant in variants if variant.variant != BASE]
                shown_variants, rest = variants[:top], variants[len(variants[:top]) :]
                # The chosen one is shown wherever it ranks.
                shown_variants += [v for v in rest if choice and v.variant == choice.variant]
                workload = _workload(scores, shown_variants, choice, declared or {})
                workloads.append(workload.model_copy(update={"reasoning": explanation}))
    return DbTop(rules=rules, alpha=alpha, workloads=tuple(workloads), warnings=warnings.all)


def is_partial(case: Case, axes: Mapping[str, frozenset[str]] | None) -> bool:
    """Returns whether runtime workloads were filtered out: nothing is chosen from partial data."""
    return any(
        axis in part.table.rt_axes
        for part in case.parts
        for axis in spelled(axes or {}, part.table.axes)
    )


def leading(
    scores: Scores,
    top: int | None,
    rules: Rules,
    reader: SampleReader | None,
    final: Sequence[int] = (),
    can: IsWritable | None = None,
) -> list[ScoredVariant]:
    """Returns the variants to show, and more until one is found that the rules allow."""
    positions = [at for at, name in enumerate(scores.names) if can is None or can(name)]
    count_scored = len(positions)
    if top is not None:
        shown = max(top, rules.candidates + 1, *(position + 1 for position in final))
        count_scored = min(count_scored, shown)
    if reader is not None:
        reader.prepare(int(scores.index[position]) for position in positions[:count_scored])
    scored = [
        scored_variant(scores, position, rules, reader) for position in positions[:count_scored]
    ]
    for position in positions[count_scored:] if reader else ():
        allowed = any(
            variant.variant != BASE and refusal(variant, scores, rules) is None
            for variant in scored
        )
        if allowed or scores.score[position] < rules.least_score:
            break
        # Samples of a variant that loses too much somewhere need not be read.
        loses_point = scores.minimum[position] < rules.worst_allowed
        scored.append(scored_variant(scores, position, rules, None if loses_point else reader))
    return scored


def scored_variant(
    scores: Scores, position: int, rules: Rules, reader: SampleReader | None
) -> ScoredVariant:
    """Returns a variant's numbers; with a reader, also their confidence."""
    index = int(scores.index[position])
    name = scores.case.variants[index]
    confidence: dict[str, Any] = {}
    if name != BASE and reader is not None:
        judged = judge(scores, index, rules, reader)
        names = ("interval", "verdict", "worst", "slower", "loss")
        confidence = {name: getattr(judged, name) for name in names}
    elif name != BASE:
        confidence["worst"] = min(scores.point_ratios(index), key=lambda point: point.ratio)
    return ScoredVariant(
        variant=name,
        score=float(scores.score[position]),
        min=float(scores.minimum[position]),
        mean=float(scores.mean[position]),
        max=float(scores.maximum[position]),
        **confidence,
    )


def _workload(
    scores: Scores, variants: list[ScoredVariant], choice: Choice | None, declared: DeclaredAxes
) -> ScoredWorkload:
    case = scores.case
    return ScoredWorkload(
        **case.measured,
        approximate=scores.approximate,
        runtime_workloads=len(case.points),
        complete=len(scores.index),
        incomplete=scores.incomplete,
        declared=declared_points(case, declared),
        missing=missing_of_base(case, declared),
        variants=tuple(variants),
        choice=choice,
    )


Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


# CCCL's `--alpha`: only runtime workloads whose samples differ from base's count.


def distinct(case: Case, reader: SampleReader, alpha: float) -> Case | None:
    """Keeps the runtime workloads on which any variant differs from base; None if there are none.

    A variant that does not differ from base on all of them is no longer complete.
    """
    variants = np.flatnonzero(case.complete)
    differs = [_differences(part, reader, alpha, variants) for part in case.parts]
    parts = tuple(
        _keep_flagged(part, flags)
        for part, flags in zip(case.parts, differs, strict=True)
        if flags.any()
    )
    return replace(case, parts=parts) if parts else None


def _differences(part: Part, reader: SampleReader, alpha: float, variants: Integers) -> Flags:
    flags: Flags = np.zeros((part.centers.shape[1], len(part.points)), np.bool_)
    for run in range(len(part.centers)):
        base = reader.base(part, run)
        for variant in variants[variants > 0]:
            for column, samples in enumerate(reader.read(part, variant, run)):
                reference = base[column]
                if samples is not None and reference is not None:
                    flags[variant, column] |= p_value(reference, samples) < alpha
    return flags


def _keep_flagged(part: Part, differs: Flags) -> Part:
    kept_columns = np.flatnonzero(differs.any(axis=0))
    centers: Floats = part.centers.copy()
    centers[:, 1:][:, ~differs[1:]] = np.nan
    points = tuple(part.points[column] for column in kept_columns)
    return replace(
        part,
        points=points,
        centers=centers[:, :, kept_columns],
        rowids=part.rowids[:, :, kept_columns],
    )


SMALL = 8


# The Mann-Whitney U test, with which CCCL's `--alpha` decides whether samples differ at all.
# Two-sided, by the normal approximation with correction for ties and continuity; exact for small
# sets without ties, where the approximation is poor.


def p_value(samples_a: Samples, samples_b: Samples) -> float:
    """Returns the probability of such a difference if both come from one distribution."""
    n, m = samples_a.size, samples_b.size
    pooled = np.concatenate([samples_a, samples_b])
    values, inverse, counts = np.unique(pooled, return_inverse=True, return_counts=True)
    # Equal values share the mean of their ranks.
    ranks = np.cumsum(counts) - (counts - 1) / 2
    u = float(ranks[inverse[:n]].sum()) - n * (n + 1) / 2
    u = max(u, n * m - u)
    if min(n, m) <= SMALL and values.size == n + m:
        # The probability that U is at least as large, over all orders of the samples
        ways = [_ways(n, m, value) for value in range(n * m + 1)]
        return min(1.0, 2 * sum(ways[round(u) :]) / sum(ways))
    ties = float((counts.astype(float) ** 3 - counts).sum())
    total = n + m
    deviation = math.sqrt(n * m / 12 * ((total + 1) - ties / (total * (total - 1))))
    if deviation == 0:
        return 1.0
    z = (u - n * m / 2 - 0.5) / deviation
    return min(1.0, math.erfc(z / math.sqrt(2)))


@cache
def _ways(n: int, m: int, u: int) -> int:
    if u < 0:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return _ways(n - 1, m, u - m) + _ways(n, m - 1, u)


LEAST = 2
"""Minimum number of last-rung processes for a finalist to count as remeasured."""


# The last rung of a search, by whose samples nothing was chosen.


def last_rung(scores: Scores, rules: Rules) -> Mapping[str, Confirmed] | None:
    """Returns each finalist's result, with a refusal if any; None if there was no last rung.

    The rows of finalists are those of the last rung. Other samples selected them, so the
    multiple-comparison threshold only needs to cover the few finalists.
    """
    processes_by_finalist = _finalists(scores.case)
    if not processes_by_finalist:
        return None
    positions = {
        name: position
        for position, name in enumerate(scores.names)
        if name in processes_by_finalist
    }
    luck = max(half_width(rules), threshold(max(1, len(positions)), 1 - rules.confidence))
    limit = max(rules.least_score, 1 + luck * deviation(scores, rules))
    confirmed = {}
    for name, position in positions.items():
        score, least = float(scores.score[position]), float(scores.minimum[position])
        reason = None
        if least < rules.worst_allowed:
            reason = f"not confirmed: a runtime workload at {least:.4f} in the last rung"
        elif score < limit:
            reason = f"not confirmed: {score:.6f} in the last rung, which is under {limit:.4f}"
        confirmed[name] = Confirmed(score, processes_by_finalist[name], reason)
    return confirmed


def _finalists(case: Case) -> dict[str, int]:
    """Counts, by variant, the processes in which it ran on every runtime workload."""
    counts_by_point: list[Counter[str]] = []
    for part in case.parts:
        for point in part.points:
            key = point_key(case, part, point)
            counts_by_point.append(Counter())
            for database in case.databases:
                for (_, variant), logs in database.finals.get(key, {}).items():
                    counts_by_point[-1][variant] += len(logs)
    # The intersection of counters has the lowest counts.
    lowest = reduce(and_, counts_by_point)
    return {name: count for name, count in lowest.items() if count >= LEAST}


def reasoning(scores: Scores, confirming_case: Case | None, rules: Rules) -> Reasoning:
    """Returns weights and noise by runtime workload, and what would decide for the best variant."""
    best = next(iter(finalists(scores, scores.case, rules)), None)
    return Reasoning(
        runtime=tuple(
            RuntimeWorkload(
                **part.place(column),
                weight=float(weights[column]),
                base=float(np.nanmean(part.centers[:, 0, column])),
                noise=float(noise[column]),
            )
            for part, weights, noise in zip(
                scores.case.parts, scores.weights, scores.noise.points, strict=True
            )
            for column in range(len(part.points))
        ),
        confirming=confirming_case.files if confirming_case else (),
        enough=None if best is None else enough(scores, float(scores.score[best]), rules),
        runs=runs_needed(scores.tried, deviation(scores, rules), rules),
    )
