"""The ranking of all variants of all workloads, with verdicts and a choice for each."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from policygen.errors import InputError
from policygen.model.results import (
    Choice,
    DataWarning,
    DbTop,
    PointRatio,
    Reasoning,
    Rules,
    RuntimeWorkload,
    ScoredVariant,
    ScoredWorkload,
)
from policygen.model.workload import BASE, spelled
from policygen.results.cases import (
    Case,
    Part,
    build_cases,
    declared_points,
    in_words,
    missing_of_base,
)
from policygen.results.choice import (
    Basis,
    Can,
    Confirmed,
    choose,
    confirm,
    confirming,
    disagreements,
    enough,
    finalists,
    refusal,
    runs_needed,
)
from policygen.results.database import Floats, Integers, Rows, open_all, read_rows
from policygen.results.imported import check_alike
from policygen.results.noise import threshold
from policygen.results.own_tables import noise_key
from policygen.results.samples import Decoder, Samples
from policygen.results.score import SampleReader, Scores, deviation, half_width, judge, score_case
from policygen.results.sessions import never_ran, nothing_measured
from policygen.results.tables import DeclaredAxes

ANY = re.compile("")


@dataclass
class Warnings:
    """Warnings of the same kind are told once, with their number."""

    _found: dict[tuple[str, str | None, str], DataWarning] = field(default_factory=dict)

    def add(self, warning: DataWarning) -> None:
        """Adds one, or raises the count of its like."""
        key = (warning.database, warning.table, warning.message)
        before = self._found.get(key)
        if before is not None:
            warning = before.model_copy(update={"count": before.count + warning.count})
        self._found[key] = warning

    @property
    def all(self) -> tuple[DataWarning, ...]:
        """All of them, in the order in which they appeared."""
        return tuple(self._found.values())


@contextmanager
def open_cases(
    paths: Sequence[Path],
    warnings: Warnings,
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[tuple[Case, ...]]:
    """The cases of some databases; they stay open, as samples are read when asked for."""
    with open_all(paths) as databases:
        check_alike(databases)
        chosen = axes or {}
        tables: list[Rows] = []
        for database in databases:
            if not database.tables:
                warnings.add(nothing_measured(database))
            measured: dict[str, set[str]] = {}
            for table in database.tables:
                if pattern.match(table.algorithm):
                    asked = spelled(chosen, table.axes)
                    tables.append(rows := read_rows(database, table, asked, warnings.add))
                    measured.setdefault(table.algorithm, set()).update(rows.variants)
            if not chosen:
                for warning in never_ran(database, measured, pattern):
                    warnings.add(warning)
        _check_axes(tables, chosen)
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
    can: Can | None = None,
) -> DbTop:
    """Scores of all workloads; samples are decoded for those that are shown or may be chosen.

    What `can` leaves out is not chosen, and counts for what luck makes of so many.
    """
    rules = rules or Rules()
    warnings = Warnings()
    workloads: list[ScoredWorkload] = []
    with Decoder() as decoder:
        if samples or alpha < 1:
            decoder.start()
        with (
            open_cases(paths, warnings, pattern, axes) as cases,
            open_cases(confirm_with, warnings, pattern) as finals,
        ):
            check_alike(one for case in (*cases, *finals) for one in case.databases)
            for case in cases:
                reader = SampleReader(case, decoder, warnings.add)
                kept = case if alpha >= 1 else distinct(case, reader, alpha)
                if kept is None:
                    warnings.add(_no_difference(case, alpha))
                    continue
                scores = score_case(kept, declared or {})
                judged = SampleReader(kept, decoder, warnings.add) if samples else None
                again = confirming(case, finals)
                last = None if again else last_rung(scores, rules)
                final = finalists(scores, again, rules) if again else _places(scores, last)
                variants = leading(scores, top, rules, judged, final, can)
                choice = told = None
                if samples and not is_partial(kept, axes):
                    found = confirm(scores, final, again, rules, declared or {}) if again else last
                    basis = basis_of(scores, variants, found, declared or {})
                    choice = choose(variants, basis, rules, current)
                    told = reasoning(scores, again, rules) if explain else None
                if alpha < 1:
                    # Base never differs from itself.
                    variants = [variant for variant in variants if variant.variant != BASE]
                shown = _shown(variants, top, choice)
                made = _workload(scores, shown, choice, declared or {})
                workloads.append(made.model_copy(update={"reasoning": told}))
    return DbTop(rules=rules, alpha=alpha, workloads=tuple(workloads), warnings=warnings.all)


def _places(scores: Scores, last: Mapping[str, Confirmed] | None) -> list[int]:
    """Where those of a last rung stand."""
    names = [scores.case.variants[int(index)] for index in scores.index]
    return [at for at, name in enumerate(names) if name in (last or {})]


def is_partial(case: Case, axes: Mapping[str, frozenset[str]] | None) -> bool:
    """Whether runtime workloads were left out: nothing is chosen by a part of what is known."""
    return any(
        axis in part.table.rt_axes
        for part in case.parts
        for axis in spelled(axes or {}, part.table.axes)
    )


def basis_of(
    scores: Scores,
    variants: Sequence[ScoredVariant],
    confirmed: Mapping[str, Confirmed] | None,
    declared: DeclaredAxes,
) -> Basis:
    """What a choice among variants rests on."""
    missing = missing_of_base(scores.case, declared)
    return Basis(
        scores,
        confirmed,
        in_words(missing) if missing else None,
        disagreements(scores, variants),
        declared_points(scores.case, declared),
    )


def _shown(
    variants: list[ScoredVariant], top: int | None, choice: Choice | None
) -> list[ScoredVariant]:
    """The best ones, and the one that is chosen wherever it stands."""
    shown = variants[:top]
    chosen = choice.variant if choice else None
    return shown + [v for v in variants[len(shown) :] if v.variant == chosen]


def _no_difference(case: Case, alpha: float) -> DataWarning:
    where = ", ".join(f"{name}={value}" for name, value in case.workload.items())
    message = f"{case.algorithm}[{where}]: no samples differ from base's (alpha {alpha:g})"
    return DataWarning(database=" + ".join(case.files), table=None, message=message)


def _check_axes(tables: Sequence[Rows], chosen: Mapping[str, frozenset[str]]) -> None:
    known = {axis for rows in tables for axis in rows.table.axes}
    for axis in spelled(chosen, known):
        if tables and axis not in known:
            raise InputError(
                f"-a {axis}: there is no such axis", f"There are: {', '.join(sorted(known))}"
            )


def leading(
    scores: Scores,
    top: int | None,
    rules: Rules,
    reader: SampleReader | None,
    final: Sequence[int] = (),
    can: Can | None = None,
) -> list[ScoredVariant]:
    """Those that are shown, and as many more as it takes to find one that the rules allow."""
    names = [scores.case.variants[int(index)] for index in scores.index]
    places = [at for at, name in enumerate(names) if can is None or can(name)]
    count = len(places)
    shown = count if top is None else max(top, rules.candidates + 1, *(at + 1 for at in final))
    wanted = min(count, shown)
    if reader is not None:
        reader.prepare(int(scores.index[position]) for position in places[:wanted])
    found = [scored_variant(scores, position, rules, reader) for position in places[:wanted]]
    for position in places[wanted:] if reader else ():
        allowed = any(v.variant != BASE and refusal(v, scores, rules) is None for v in found)
        if allowed or scores.score[position] < rules.least_score:
            break
        # Samples of one that loses too much somewhere need not be looked at.
        lost = scores.minimum[position] < rules.worst_allowed
        found.append(scored_variant(scores, position, rules, None if lost else reader))
    return found


def scored_variant(
    scores: Scores, position: int, rules: Rules, reader: SampleReader | None
) -> ScoredVariant:
    """One variant in numbers; with a reader, how sure they are."""
    index = int(scores.index[position])
    name = scores.case.variants[index]
    plain = ScoredVariant(
        variant=name,
        score=float(scores.score[position]),
        min=float(scores.minimum[position]),
        mean=float(scores.mean[position]),
        max=float(scores.maximum[position]),
        worst=None if name == BASE else _worst(scores, index),
    )
    if reader is None or name == BASE:
        return plain
    found = judge(scores, index, rules, reader)
    return plain.model_copy(
        update={
            "interval": found.interval,
            "verdict": found.verdict,
            "worst": found.worst,
            "slower": found.slower,
            "loss": found.loss,
        }
    )


def _worst(scores: Scores, variant: int) -> PointRatio:
    part = min(range(len(scores.ratios)), key=lambda i: float(scores.ratios[i][variant].min()))
    column = int(scores.ratios[part][variant].argmin())
    table = scores.case.parts[part].table
    return PointRatio(
        subbench=table.subbench,
        point=dict(zip(table.rt_axes, scores.case.parts[part].points[column], strict=True)),
        weight=float(scores.weights[part][column]),
        ratio=float(scores.ratios[part][variant, column]),
    )


def _workload(
    scores: Scores, variants: list[ScoredVariant], choice: Choice | None, declared: DeclaredAxes
) -> ScoredWorkload:
    case = scores.case
    return ScoredWorkload(
        **case.measured,
        approximate=scores.approximate,
        runtime_workloads=sum(len(part.points) for part in case.parts),
        complete=len(scores.index),
        incomplete=scores.incomplete,
        declared=declared_points(case, declared),
        missing=missing_of_base(case, declared),
        variants=tuple(variants),
        choice=choice,
    )


Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


# CCCL's `--alpha`: only runtime workloads where samples differ from base's count.


def distinct(case: Case, reader: SampleReader, alpha: float) -> Case | None:
    """A variant stays when it differs from base wherever any variant does; none when none does."""
    complete = np.all([(part.repeats > 0).all(axis=1) for part in case.parts], axis=0)
    differs = [_differences(part, reader, alpha, np.flatnonzero(complete)) for part in case.parts]
    parts = tuple(
        _only(part, flags) for part, flags in zip(case.parts, differs, strict=True) if flags.any()
    )
    if not parts:
        return None
    return replace(case, parts=parts)


def _differences(part: Part, reader: SampleReader, alpha: float, variants: Integers) -> Flags:
    found: Flags = np.zeros((part.centers.shape[1], len(part.points)), np.bool_)
    for run in range(len(part.centers)):
        base = reader.base(part, run)
        for variant in variants[variants > 0]:
            for column, samples in enumerate(reader.read(part, variant, run)):
                reference = base[column]
                if samples is not None and reference is not None:
                    found[variant, column] |= p_value(reference, samples) < alpha
    return found


def _only(part: Part, differs: Flags) -> Part:
    kept = np.flatnonzero(differs.any(axis=0))
    centers: Floats = part.centers.copy()
    centers[:, 1:][:, ~differs[1:]] = np.nan
    points = tuple(part.points[column] for column in kept)
    return replace(part, points=points, centers=centers[:, :, kept], rowids=part.rowids[:, :, kept])


SMALL = 8


# The Mann-Whitney U test that CCCL's `--alpha` uses to tell whether samples differ at all.
#
# Two-sided, by the normal approximation with correction for ties and continuity; exact for small
# sets without ties, as the approximation is poor there.


def p_value(one: Samples, other: Samples) -> float:
    """How likely samples differ as much as these, if they come from the same distribution."""
    n, m = one.size, other.size
    both = np.concatenate([one, other])
    values, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    # The rank of equal values is the mean of the ranks that they take.
    ranks = np.cumsum(counts) - (counts - 1) / 2
    u = float(ranks[inverse[:n]].sum()) - n * (n + 1) / 2
    u = max(u, n * m - u)
    if min(n, m) <= SMALL and values.size == n + m:
        return min(1.0, 2 * _exact_tail(round(u), n, m))
    ties = float((counts.astype(float) ** 3 - counts).sum())
    total = n + m
    deviation = math.sqrt(n * m / 12 * ((total + 1) - ties / (total * (total - 1))))
    if deviation == 0:
        return 1.0
    z = (u - n * m / 2 - 0.5) / deviation
    return min(1.0, math.erfc(z / math.sqrt(2)))


def _exact_tail(u: int, n: int, m: int) -> float:
    """How often U is at least `u`, over all ways to mix the samples."""
    ways = [_ways(n, m, value) for value in range(n * m + 1)]
    return sum(ways[u:]) / sum(ways)


@cache
def _ways(n: int, m: int, u: int) -> int:
    if u < 0:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return _ways(n - 1, m, u - m) + _ways(n, m - 1, u)


LEAST = 2
"""Processes of the last rung, from which on a finalist counts as measured again."""


# What the last rung of a search says of its finalists: nothing was chosen by its samples.


def last_rung(scores: Scores, rules: Rules) -> Mapping[str, Confirmed] | None:
    """By finalist what it is worth, and why it is not taken; none where there was no last rung.

    The rows of finalists are those of the last rung. They were selected by other samples, so that
    only what luck makes of so few is left to be beaten.
    """
    known = _finalists(scores.case)
    if not known:
        return None
    names = [scores.case.variants[int(index)] for index in scores.index]
    places = {name: at for at, name in enumerate(names) if name in known}
    luck = max(half_width(rules), threshold(max(1, len(places)), 1 - rules.confidence))
    limit = max(rules.least_score, 1 + luck * deviation(scores, rules))
    return {
        name: Confirmed(float(scores.score[at]), known[name], _refusal(scores, at, limit, rules))
        for name, at in places.items()
    }


def _refusal(scores: Scores, place: int, limit: float, rules: Rules) -> str | None:
    score, least = float(scores.score[place]), float(scores.minimum[place])
    if least < rules.worst_allowed:
        return f"not confirmed: a runtime workload at {least:.4f} in the last rung"
    if score < limit:
        return f"not confirmed: {score:.6f} in the last rung, which is under {limit:.4f}"
    return None


def _finalists(case: Case) -> dict[str, int]:
    """Variant → the processes in which it was on every runtime workload."""
    counts: dict[str, int] | None = None
    for part in case.parts:
        for point in part.points:
            axes = {**case.workload, **dict(zip(part.table.rt_axes, point, strict=True))}
            key = noise_key(case.key, case.algorithm, part.table.subbench, axes)
            here: dict[str, int] = {}
            for one in case.databases:
                for (_, variant), logs in one.finals.get(key, {}).items():
                    here[variant] = here.get(variant, 0) + len(logs)
            counts = (
                here
                if counts is None
                else {name: min(n, here[name]) for name, n in counts.items() if name in here}
            )
    return {name: n for name, n in (counts or {}).items() if n >= LEAST}


# What a choice was made from, in numbers.


def reasoning(scores: Scores, again: Case | None, rules: Rules) -> Reasoning:
    """Weights and noise by runtime workload, and what would decide for the best variant."""
    best = next(iter(finalists(scores, scores.case, rules)), None)
    return Reasoning(
        runtime=tuple(_runtime(scores)),
        confirming=again.files if again else (),
        enough=None if best is None else enough(scores, float(scores.score[best]), rules),
        runs=runs_needed(scores.tried, deviation(scores, rules), rules),
    )


def _runtime(scores: Scores) -> list[RuntimeWorkload]:
    return [
        RuntimeWorkload(
            subbench=part.table.subbench,
            point=dict(zip(part.table.rt_axes, point, strict=True)),
            weight=float(weights[column]),
            base=float(np.nanmean(part.centers[:, 0, column])),
            noise=float(noise[column]),
        )
        for part, weights, noise in zip(
            scores.case.parts, scores.weights, scores.noise.points, strict=True
        )
        for column, point in enumerate(part.points)
    ]
