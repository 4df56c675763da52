"""What searches and measurements left in databases: results, how they were found, failures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from policygen.gpu.finalists import (
    LISTED,
    Finals,
    counts_of,
    curve_of,
    failed_of,
    findings_of,
    groups_in_logs,
    groups_of,
    listed,
    row_finals,
    rung_finals,
    tried_in_rows,
    tried_in_rungs,
)
from policygen.gpu.statistics import PointTimes, noises, score_noise
from policygen.model.arch import parse_arch
from policygen.model.results import RunKey, ScoredWorkload
from policygen.model.searches import (
    Ended,
    Origin,
    ReportedSession,
    ReportedWorkload,
    SearchRun,
    StepTime,
    TriedVariant,
)
from policygen.model.workload import BASE, is_label, spelled
from policygen.results.cases import Case, declared_points
from policygen.results.database import Database, open_all
from policygen.results.imported import imported_facts
from policygen.results.ranking import Warnings, open_cases
from policygen.results.rungs import Rungs, point_weights, rungs_of
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, Scores, score_case
from policygen.results.sessions import (
    Cells,
    OwnRecords,
    SessionRow,
    WorkloadSpot,
    failed_in_logs,
    number_of,
    read_own,
    spot_of,
    text_of,
)
from policygen.results.tables import DeclaredAxes


@dataclass(frozen=True, slots=True)
class _Sources:
    """All open inputs."""

    pattern: re.Pattern[str]
    values: Mapping[str, frozenset[str]]
    declared: DeclaredAxes
    databases: tuple[Database, ...]
    records: tuple[OwnRecords, ...]
    cases: tuple[Case, ...]
    decoder: Decoder

    def rungs(self, spot: WorkloadSpot) -> Rungs | None:
        """Returns the rungs that a search measured for a workload."""
        points = (point for record in self.records for point in record.rungs.get(spot, ()))
        selected = spelled(self.values, {axis for point in points for axis, _ in point.axes})
        return rungs_of(self.records, self.databases, spot, self.declared, selected)

    def searches(self, spot: WorkloadSpot) -> list[Cells]:
        """Returns the searches that sessions recorded for a workload."""
        return [row for record in self.records for row in record.searches.get(spot, ())]

    def is_selected(self, spot: WorkloadSpot) -> bool:
        """Returns whether -R and -a select a workload."""
        axes = dict(spot.axes)
        chosen = spelled(self.values, axes)
        fits = all(axes[name] in values for name, values in chosen.items() if name in axes)
        return fits and self.pattern.match(spot.algorithm) is not None


def report_workloads(
    paths: Sequence[Path],
    ranked: Sequence[ScoredWorkload],
    declared: DeclaredAxes,
    pattern: re.Pattern[str],
    values: Mapping[str, frozenset[str]],
    warnings: Warnings,
) -> tuple[tuple[ReportedWorkload, ...], tuple[ReportedSession, ...], int]:
    """Returns the selected workloads, the last sessions, and the number of earlier ones."""
    with (
        open_all(paths) as databases,
        # Warnings about rows were issued by the ranking.
        open_cases(paths, Warnings(), pattern, values) as cases,
        Decoder() as decoder,
    ):
        records = tuple(read_own(database, warnings.add) for database in databases)
        sources = _Sources(pattern, values, declared, databases, records, cases, decoder)
        scored = {_identity(workload): workload for workload in ranked}
        workloads = []
        for case in cases:
            spot, scores = _spot(case), score_case(case, declared)
            workloads.append(_workload(sources, spot, scores, scored.get((spot, case.files))))
        workloads += _without_cases(sources)
        return tuple(workloads), *_reported_sessions(databases, records)


def _without_cases(sources: _Sources) -> Iterator[ReportedWorkload]:
    """Yields workloads that were started but have no variant with all its rows yet."""
    with_cases = {_spot(case) for case in sources.cases}
    started: dict[WorkloadSpot, None] = {}
    for record in sources.records:
        started |= dict.fromkeys([*record.rungs, *record.searches, *record.failures])
    for spot in started:
        if spot not in with_cases and sources.is_selected(spot):
            yield _workload(sources, spot, None, None)


def _workload(
    sources: _Sources, spot: WorkloadSpot, scores: Scores | None, ranked: ScoredWorkload | None
) -> ReportedWorkload:
    rungs = sources.rungs(spot)
    searches = sources.searches(spot)
    variants = _variants(rungs, scores)
    measured = {variant.variant for variant in variants}
    failures = failed_of(
        [f for record in sources.records for f in record.failures.get(spot, ())], measured
    )
    groups, other_failures = groups_of(failures)
    if not groups and _origin(sources, spot) == "rows":
        logs = [failed_in_logs(database).get(spot.algorithm, {}) for database in sources.databases]
        groups, other_failures = groups_in_logs(logs)
    shown, unlisted = listed(variants)
    finals = _finals(sources, rungs, scores, ranked)
    memchecks = [row for record in sources.records for row in record.memchecks.get(spot, ())]
    points, declared, approximate = 0, None, False
    if rungs:
        points, declared, approximate = len(rungs.points), rungs.declared, rungs.approximate
    elif scores:
        points = sum(len(part.points) for part in scores.case.parts)
        declared, approximate = declared_points(scores.case, sources.declared), scores.approximate
    gpu, ctk, cccl = spot.key
    return ReportedWorkload(
        gpu=gpu,
        ctk=ctk,
        cccl=cccl,
        algorithm=spot.algorithm,
        workload=dict(scores.case.workload) if scores else dict(spot.axes),
        databases=scores.case.files if scores else _files(sources, spot),
        arch=_arch(sources, spot, ranked),
        origin=_origin(sources, spot),
        searches=tuple(map(_search, searches)),
        runtime_workloads=points,
        declared=declared,
        approximate=approximate,
        counts=counts_of(len(variants), _incomplete(rungs, scores, measured, failures), failures),
        base=_base(sources, spot, searches),
        best=finals.best,
        rung=finals.rung,
        finalists=finals.finalists,
        other_finalists=finals.others,
        control=finals.control,
        choice=ranked.choice if ranked else None,
        curve=curve_of(rungs, variants) if rungs else None,
        variants=shown,
        unlisted=unlisted,
        findings=findings_of(
            {variant: (row.kind, row.reason) for variant, row in failures.items()},
            {row.variant: row for row in memchecks},
        ),
        failures=groups,
        other_failures=other_failures,
        failed_variants=tuple(failures)[:LISTED],
        **_noise(sources, spot),
    )


def _variants(rungs: Rungs | None, scores: Scores | None) -> list[TriedVariant]:
    """Returns the variants of the rungs, and those that were measured without being on a rung."""
    variants = tried_in_rungs(rungs) if rungs else []
    known_labels = {variant.variant for variant in variants}
    rows = tried_in_rows(scores) if scores else []
    return variants + [variant for variant in rows if variant.variant not in known_labels]


def _incomplete(
    rungs: Rungs | None, scores: Scores | None, measured: set[str], failures: Mapping[str, object]
) -> int:
    """Counts variants that were measured, but not on all runtime workloads."""
    started = set(rungs.highest()) if rungs else set()
    started |= set(scores.case.variants) if scores else set()
    return len(started - measured - failures.keys() - {BASE})


def _finals(
    sources: _Sources, rungs: Rungs | None, scores: Scores | None, ranked: ScoredWorkload | None
) -> Finals:
    if rungs:
        return rung_finals(rungs, sources.databases)
    if scores is None or ranked is None:
        return Finals(None, ())
    reader = SampleReader(scores.case, sources.decoder, Warnings().add)
    return row_finals(scores, ranked.variants, ranked.choice, reader)


def _noise(sources: _Sources, spot: WorkloadSpot) -> dict[str, object]:
    """Returns the noise of base, if it was measured in fresh processes."""
    points = {point: None for record in sources.records for point in record.noise.get(spot, {})}
    if not points:
        return {}
    weights, _, _ = point_weights(spot, tuple(points), sources.databases, sources.declared)
    times = []
    for point, weight in zip(points, weights, strict=True):
        rows = [
            row for record in sources.records for row in record.noise.get(spot, {}).get(point, ())
        ]
        base, beside = [row.center for row in rows], [row.beside for row in rows]
        times.append(PointTimes(point.subbench, dict(point.axes), weight, base, beside))
    return {"noise": tuple(noises(times)), "score_noise": score_noise(times)}


def _base(sources: _Sources, spot: WorkloadSpot, searches: Sequence[Cells]) -> str | None:
    """Returns the label of base according to the last search or an import."""
    base = next((run.base for run in map(_search, reversed(searches)) if run.base), None)
    if base is None and _origin(sources, spot) == "import":
        key = spot.algorithm, spot.axes
        bases = (imported_facts(database).bases.get(key) for database in sources.databases)
        base = next(filter(None, bases), None)
    return base


def _search(cells: Cells) -> SearchRun:
    base, seed, ended = cells.get("base"), cells.get("seed"), cells.get("ended")
    return SearchRun(
        strategy=text_of(cells["strategy"]),
        seed=seed if isinstance(seed, int) else None,
        variants=text_of(cells.get("variants")),
        valid=text_of(cells.get("valid")),
        distinct=text_of(cells.get("distinct_")),
        base=base if isinstance(base, str) and is_label(base) and base != BASE else None,
        budget=number_of(cells.get("budget")),
        spent=number_of(cells.get("spent")) or 0.0,
        ended=next((value for value in get_args(Ended) if value == ended), None),
    )


def _origin(sources: _Sources, spot: WorkloadSpot) -> Origin:
    if any(spot in record.rungs or spot in record.searches for record in sources.records):
        return "search"
    rows = [
        row for record in sources.records for row in record.sessions.values() if row.key == spot.key
    ]
    if rows and all(row.is_import for row in rows):
        return "import"
    return "measure" if rows else "rows"


def _arch(sources: _Sources, spot: WorkloadSpot, ranked: ScoredWorkload | None) -> str | None:
    """Returns the architecture according to the ranking or a session of a database."""
    if ranked is not None and (arch := ranked.arch):
        return arch
    for record in sources.records:
        for row in record.sessions.values():
            if row.key == spot.key:
                with suppress(ValueError):
                    return parse_arch(str(row.cells.get("arch")))
    return None


def _files(sources: _Sources, spot: WorkloadSpot) -> tuple[str, ...]:
    return tuple(
        str(database.path)
        for database, record in zip(sources.databases, sources.records, strict=True)
        if spot in record.rungs or spot in record.searches or spot in record.failures
    )


def _spot(case: Case) -> WorkloadSpot:
    return spot_of(case.key, case.algorithm, case.workload)


def _identity(workload: ScoredWorkload) -> tuple[object, ...]:
    key = RunKey(gpu=workload.gpu, ctk=workload.ctk, cccl=workload.cccl)
    return spot_of(key, workload.algorithm, workload.workload), workload.databases


MOST = 40
"""Maximum number of sessions to report, the last ones."""
STEPS = 12
"""Maximum number of steps to report for each session."""


# Sessions: when, on what, and how long measurements ran.


def _reported_sessions(
    databases: Sequence[Database], records: Sequence[OwnRecords]
) -> tuple[tuple[ReportedSession, ...], int]:
    """Returns the last sessions in their order, and the number of omitted ones.

    Imports do not count.
    """
    sessions = [
        _session(database, row, record.times.get(number, ()))
        for database, record in zip(databases, records, strict=True)
        for number, row in record.sessions.items()
        if not row.is_import
    ]
    return tuple(sessions[-MOST:]), max(0, len(sessions) - MOST)


def _session(
    database: Database, row: SessionRow, times: Sequence[tuple[str, float]]
) -> ReportedSession:
    steps = _steps(times)
    rest = steps[STEPS:]
    count, seconds = sum(step.count for step in rest), sum(step.seconds for step in rest)
    others = StepTime(step="others", count=count, seconds=seconds) if rest else None
    texts = ("started", "policygen", "ctk", "cccl", "gpu", "card", "arch", "driver")
    counts, sums = ("seed", "sm_clock", "memory_clock"), ("repeated", "throttled", "restarts")
    ended = row.cells.get("ended")
    return ReportedSession(
        database=str(database.path),
        **{name: text_of(row.cells.get(name)) for name in (*texts, "nvcc", "method")},
        ended=None if ended is None else text_of(ended),
        seconds=_length(row),
        power_limit=number_of(row.cells.get("power_limit")),
        **{name: _count(row, name) for name in counts},
        **{name: _count(row, name) or 0 for name in sums},
        steps=tuple(steps[:STEPS]),
        other_steps=others,
    )


def _length(row: SessionRow) -> float | None:
    if row.started is None or row.ended is None or row.ended < row.started:
        return None
    return row.ended - row.started


def _steps(times: Sequence[tuple[str, float]]) -> list[StepTime]:
    """Sums times by step, longest first."""
    seconds_by_step: dict[str, list[float]] = {}
    for step, seconds in times:
        seconds_by_step.setdefault(step, []).append(seconds)
    steps = [
        StepTime(step=step, count=len(durations), seconds=sum(durations))
        for step, durations in seconds_by_step.items()
    ]
    return sorted(steps, key=lambda item: (-item.seconds, item.step))


def _count(row: SessionRow, name: str) -> int | None:
    value = row.cells.get(name)
    return value if isinstance(value, int) and abs(value) < 1 << 53 else None
