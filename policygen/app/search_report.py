"""The report of a search: its result first, then how it came about, then what failed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import get_args

from policygen.app.inputs import Inputs, ResultFiles, nothing_matches, open_inputs
from policygen.gpu.finalists import (
    LISTED,
    MOST_ROWS,
    Finals,
    counts_of,
    curve_of,
    failed_of,
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
from policygen.model.results import Rules, RunKey, ScoredWorkload
from policygen.model.search_pages import (
    Origin,
    ReportedSession,
    ReportedWorkload,
    SearchReport,
    SearchRun,
    StepTime,
    TriedVariant,
)
from policygen.model.searches import Ended
from policygen.model.workload import BASE, is_label, spelled
from policygen.results.cases import Case, declared_points
from policygen.results.database import Database, open_all
from policygen.results.imported import imported_facts
from policygen.results.ranking import Warnings, open_cases, rank
from policygen.results.rungs import Rungs, Spans, point_weights, rungs_of, spans_of
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, Scores, score_case
from policygen.results.sessions import (
    OwnRecords,
    SearchRow,
    SessionRow,
    WorkloadSpot,
    failed_in_logs,
    number_of,
    read_own,
    spot_of,
    text_of,
)


def report_search(given: ResultFiles, rules: Rules | None = None) -> SearchReport:
    """Tells what searches, or measurements, found for each workload, and how they got there."""
    rules = rules or Rules()
    where = given.where
    with open_inputs(given) as files:
        ranked = rank(
            files.databases,
            pattern=where.pattern,
            axes=where.values,
            top=MOST_ROWS + 1,
            rules=rules,
            declared=files.declared,
        )
        warnings = Warnings()
        for warning in ranked.warnings:
            warnings.add(warning)
        with _open(files, given, warnings) as looked:
            scored = {_identity(one): one for one in ranked.workloads}
            workloads = [*_with_cases(looked, scored), *_without_cases(looked)]
            sessions, others = reported_sessions(looked.databases, looked.records)
    if not workloads and not warnings.all:
        raise nothing_matches(where, given.files)
    return SearchReport(
        databases=tuple(
            name for p in files.databases for name in files.made.get(str(p), (str(p),))
        ),
        rules=rules,
        sessions=sessions,
        other_sessions=others,
        workloads=tuple(_named(one, files) for one in workloads),
        warnings=warnings.all,
    )


@dataclass(frozen=True, slots=True)
class _Looked:
    """All that is open."""

    given: ResultFiles
    files: Inputs
    warnings: Warnings
    databases: tuple[Database, ...]
    records: tuple[OwnRecords, ...]
    spans: tuple[Spans, ...]
    cases: tuple[Case, ...]
    decoder: Decoder

    def rungs(self, spot: WorkloadSpot) -> Rungs | None:
        """What a search took of a workload."""
        points = {
            axis for one in self.records for p in one.rungs.get(spot, {}) for axis, _ in p.axes
        }
        asked = spelled(self.given.where.values, points)
        declared = self.files.declared
        return rungs_of(self.records, self.databases, spot, declared, asked, self.spans)

    def searches(self, spot: WorkloadSpot) -> list[SearchRow]:
        """What sessions say of it."""
        return [row for one in self.records for row in one.searches.get(spot, ())]

    def is_asked(self, spot: WorkloadSpot) -> bool:
        """Whether -R and -a leave it in."""
        where = self.given.where
        axes = dict(spot.axes)
        chosen = spelled(where.values, axes)
        fits = all(axes[name] in values for name, values in chosen.items() if name in axes)
        return fits and where.pattern.match(spot.algorithm) is not None


@contextmanager
def _open(files: Inputs, given: ResultFiles, warnings: Warnings) -> Iterator[_Looked]:
    # What rows have to be told of was told when they were ranked.
    with (
        open_all(files.databases) as databases,
        open_cases(files.databases, Warnings(), given.where.pattern, given.where.values) as cases,
        Decoder() as decoder,
    ):
        records = tuple(read_own(one, warnings.add) for one in databases)
        spans = tuple(map(spans_of, records))
        yield _Looked(given, files, warnings, databases, records, spans, cases, decoder)


def _with_cases(
    looked: _Looked, scored: Mapping[tuple[object, ...], ScoredWorkload]
) -> Iterator[ReportedWorkload]:
    for case in looked.cases:
        scores = score_case(case, looked.files.declared)
        yield _workload(looked, _spot(case), scores, scored.get(_case_identity(case)))


def _without_cases(looked: _Looked) -> Iterator[ReportedWorkload]:
    """Workloads that were begun, and of which no variant has all its rows yet."""
    known = {_spot(case) for case in looked.cases}
    begun: dict[WorkloadSpot, None] = {}
    for record in looked.records:
        begun |= dict.fromkeys([*record.rungs, *record.searches, *record.failures])
    for spot in begun:
        if spot not in known and looked.is_asked(spot):
            yield _workload(looked, spot, None, None)


def _workload(
    looked: _Looked, spot: WorkloadSpot, scores: Scores | None, ranked: ScoredWorkload | None
) -> ReportedWorkload:
    rungs = looked.rungs(spot)
    searches = looked.searches(spot)
    variants = _variants(rungs, scores)
    measured = {one.variant for one in variants}
    failures = failed_of(
        [f for one in looked.records for f in one.failures.get(spot, ())], measured
    )
    groups, other = groups_of(failures)
    if not groups:
        logs = [failed_in_logs(one).get(spot.algorithm, {}) for one in looked.databases]
        groups, other = groups_in_logs(logs) if _origin(looked, spot) == "rows" else ((), 0)
    shown, unlisted = listed(variants)
    finals = _finals(looked, rungs, scores, ranked)
    gpu, ctk, cccl = spot.key
    return ReportedWorkload(
        gpu=gpu,
        ctk=ctk,
        cccl=cccl,
        algorithm=spot.algorithm,
        workload=dict(scores.case.workload) if scores else dict(spot.axes),
        databases=scores.case.files if scores else _files(looked, spot),
        arch=_arch(looked, spot, ranked),
        origin=_origin(looked, spot),
        searches=tuple(map(_search, searches)),
        runtime_workloads=len(rungs.points) if rungs else _points(scores),
        declared=rungs.declared if rungs else _declared(looked, scores),
        approximate=rungs.approximate if rungs else bool(scores and scores.approximate),
        counts=counts_of(len(variants), _incomplete(rungs, scores, measured, failures), failures),
        base=_base(looked, spot, searches),
        best=finals.best,
        rung=finals.rung,
        finalists=finals.finalists,
        other_finalists=finals.others,
        control=finals.control,
        choice=ranked.choice if ranked else None,
        curve=curve_of(rungs, variants) if rungs else None,
        variants=shown,
        unlisted=unlisted,
        failures=groups,
        other_failures=other,
        failed_variants=tuple(failures)[:LISTED],
        **_noise(looked, spot),
    )


def _variants(rungs: Rungs | None, scores: Scores | None) -> list[TriedVariant]:
    """Those of rungs, and what was measured besides, which has no place among them."""
    found = tried_in_rungs(rungs) if rungs else []
    known = {one.variant for one in found}
    rows = tried_in_rows(scores) if scores else []
    return found + [one for one in rows if one.variant not in known]


def _incomplete(
    rungs: Rungs | None, scores: Scores | None, measured: set[str], failures: Mapping[str, object]
) -> int:
    """Variants that were measured, but not on all runtime workloads."""
    begun = set(rungs.highest()) if rungs else set()
    begun |= set(scores.case.variants) if scores else set()
    return len(begun - measured - failures.keys() - {BASE})


def _finals(
    looked: _Looked, rungs: Rungs | None, scores: Scores | None, ranked: ScoredWorkload | None
) -> Finals:
    if rungs:
        return rung_finals(rungs, looked.databases)
    if scores is None or ranked is None:
        return Finals(None, ())
    reader = SampleReader(scores.case, looked.decoder, Warnings().add)
    return row_finals(scores, ranked.variants, ranked.choice, reader)


def _noise(looked: _Looked, spot: WorkloadSpot) -> dict[str, object]:
    """How far base is from itself, where fresh processes of it were measured."""
    points = {point: None for one in looked.records for point in one.noise.get(spot, {})}
    if not points:
        return {}
    weights, _, _ = point_weights(spot, tuple(points), looked.databases, looked.files.declared)
    times = []
    for point, weight in zip(points, weights, strict=True):
        rows = [row for one in looked.records for row in one.noise.get(spot, {}).get(point, ())]
        times.append(
            PointTimes(
                subbench=point.subbench,
                point=dict(point.axes),
                weight=weight,
                base=[row.center for row in rows],
                beside=[row.beside for row in rows],
                variants={},
            )
        )
    return {"noise": tuple(noises(times)), "score_noise": score_noise(times)}


def _base(looked: _Looked, spot: WorkloadSpot, searches: Sequence[SearchRow]) -> str | None:
    """The label of base, as the last search says it, or an import."""
    found = next((one.base for one in map(_search, reversed(searches)) if one.base), None)
    if found is None and _origin(looked, spot) == "import":
        here = spot.algorithm, spot.axes
        bases = (imported_facts(one).bases.get(here) for one in looked.databases)
        found = next(filter(None, bases), None)
    return found


def _search(row: SearchRow) -> SearchRun:
    cells = row.cells
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
        ended=next((one for one in get_args(Ended) if one == ended), None),
    )


def _origin(looked: _Looked, spot: WorkloadSpot) -> Origin:
    if any(spot in one.rungs or spot in one.searches for one in looked.records):
        return "search"
    rows = [row for one in looked.records for row in one.sessions.values() if row.key == spot.key]
    if rows and all(row.is_import for row in rows):
        return "import"
    return "measure" if rows else "rows"


def _arch(looked: _Looked, spot: WorkloadSpot, ranked: ScoredWorkload | None) -> str | None:
    """As a database says it, of the GPU or of a session."""
    if ranked is not None and (arch := looked.given.told(ranked).arch):
        return arch
    for record in looked.records:
        for row in record.sessions.values():
            if row.key == spot.key:
                try:
                    return parse_arch(str(row.cells.get("arch")))
                except ValueError:
                    continue
    return None


def _files(looked: _Looked, spot: WorkloadSpot) -> tuple[str, ...]:
    return tuple(
        str(database.path)
        for database, one in zip(looked.databases, looked.records, strict=True)
        if spot in one.rungs or spot in one.searches or spot in one.failures
    )


def _points(scores: Scores | None) -> int:
    return sum(len(part.points) for part in scores.case.parts) if scores else 0


def _declared(looked: _Looked, scores: Scores | None) -> int | None:
    return declared_points(scores.case, looked.files.declared) if scores else None


def _spot(case: Case) -> WorkloadSpot:
    return spot_of(case.key, case.algorithm, case.workload)


def _case_identity(case: Case) -> tuple[object, ...]:
    return _spot(case), case.files


def _identity(one: ScoredWorkload) -> tuple[object, ...]:
    key = RunKey(gpu=one.gpu, ctk=one.ctk, cccl=one.cccl)
    return spot_of(key, one.algorithm, one.workload), one.databases


def _named(one: ReportedWorkload, files: Inputs) -> ReportedWorkload:
    """With the files that the user gave."""
    names = [name for path in one.databases for name in files.made.get(path, (path,))]
    return one.model_copy(update={"databases": tuple(names)})


MOST = 40
"""Sessions that are told, the last ones."""
STEPS = 12
"""Steps of a session that are told."""


# When, on what and how long was measured, as sessions wrote it of themselves.


def reported_sessions(
    databases: Sequence[Database], records: Sequence[OwnRecords]
) -> tuple[tuple[ReportedSession, ...], int]:
    """The last ones in their order, and how many there are besides; imports are none."""
    found = [
        _session(database, row, record.times.get(number, ()))
        for database, record in zip(databases, records, strict=True)
        for number, row in record.sessions.items()
        if not row.is_import
    ]
    return tuple(found[-MOST:]), max(0, len(found) - MOST)


def _session(
    database: Database, row: SessionRow, times: Sequence[tuple[str, float]]
) -> ReportedSession:
    steps = _steps(times)
    rest = steps[STEPS:]
    texts = (
        "started",
        "policygen",
        "ctk",
        "cccl",
        "gpu",
        "card",
        "arch",
        "driver",
        "nvcc",
        "method",
    )
    ended = row.cells.get("ended")
    return ReportedSession(
        database=str(database.path),
        **{name: text_of(row.cells.get(name)) for name in texts},
        ended=None if ended is None else text_of(ended),
        seconds=_length(row),
        seed=_count(row, "seed"),
        sm_clock=_count(row, "sm_clock"),
        memory_clock=_count(row, "memory_clock"),
        power_limit=number_of(row.cells.get("power_limit")),
        repeated=_count(row, "repeated") or 0,
        throttled=_count(row, "throttled") or 0,
        restarts=_count(row, "restarts") or 0,
        steps=tuple(steps[:STEPS]),
        other_steps=_together("others", rest) if rest else None,
    )


def _length(row: SessionRow) -> float | None:
    if row.started is None or row.ended is None or row.ended < row.started:
        return None
    return row.ended - row.started


def _steps(times: Sequence[tuple[str, float]]) -> list[StepTime]:
    """Those that took longest first."""
    lots: dict[str, list[float]] = {}
    for step, seconds in times:
        lots.setdefault(step, []).append(seconds)
    found = [StepTime(step=step, count=len(lot), seconds=sum(lot)) for step, lot in lots.items()]
    return sorted(found, key=lambda one: (-one.seconds, one.step))


def _together(name: str, steps: Sequence[StepTime]) -> StepTime:
    count, seconds = sum(one.count for one in steps), sum(one.seconds for one in steps)
    return StepTime(step=name, count=count, seconds=seconds)


def _count(row: SessionRow, name: str) -> int | None:
    found = row.cells.get(name)
    return found if isinstance(found, int) and abs(found) < 1 << 53 else None
