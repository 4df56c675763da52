"""A workload before and after a change: its functions and its measurements."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from policygen.errors import PolicygenError
from policygen.gpu.compiling import (
    CompiledWorkload,
    MakesObjects,
    WorkloadToCompile,
    compile_workloads,
)
from policygen.gpu.control import Controller
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import (
    Keeps,
    RuntimeSpot,
    WorkloadTask,
    declared_axes,
    measure_workload,
    runtime_spots,
)
from policygen.gpu.statistics import (
    ComparedTimes,
    Judge,
    JudgedTimes,
    PointTimes,
    times_of,
    weighted,
)
from policygen.gpu.units import WorkloadRun, runner_text
from policygen.model.measured import SkippedPoint, VariantFailure
from policygen.model.selection import EntryPlace
from policygen.model.verdicts import (
    EntryPerformance,
    PerformanceNoise,
    PerformanceVerdict,
    RuntimePerformance,
    WorkloadPerformance,
)
from policygen.model.workload import BASE, Point, axis_name
from policygen.results.export import quantile_ratios
from policygen.steps import Progress

AFTER, COPY = "after_1", "before_1"
"""Labels beside `base`, the side before; databases require variant labels."""
WorkloadKey = tuple[str, frozenset[tuple[str, str]]]
"""A workload, independent of the order and decoration of its axes."""
Claims = Mapping[WorkloadKey, tuple[float, float]]
"""By workload: the score, and the smallest acceptable score."""
Runs = Sequence[tuple[WorkloadRun, WorkloadToCompile]]
"""A workload by sub-benchmark: how it runs, and both of its sides."""
NO_TIME = "the budget ended before it was measured"


@dataclass(slots=True)
class ChangedWorkload:
    """Measurement state of a workload."""

    point: Point
    parts: tuple[WorkloadTask, ...]
    """By sub-benchmark: the side before is the baseline, and the variants are the side after, and a
    copy of the side before in its own file, for the noise of equal code.
    """
    skipped: dict[str, str] = field(default_factory=dict)
    """Runtime workloads that are not measured, with reasons."""
    failed: Failure | None = None
    """Failure of the side after."""
    seconds: float = 0.0
    """Recent duration of one process per runtime workload."""

    @property
    def spots(self) -> list[RuntimeSpot]:
        """Runtime workloads that can be measured."""
        spots = (spot for part in self.parts for spot in part.points)
        return [spot for spot in spots if str(spot) not in self.skipped]

    def times(self, rows: MeasuringSession) -> list[PointTimes]:
        """Return the times in the database; empty until all runtime workloads are measured."""
        spots = [spot.spot for spot in self.spots]
        if any(AFTER not in rows.times(spot) for spot in spots):
            return []
        declared = {key: values for part in self.parts for key, values in part.declared.items()}
        return times_of(rows, spots, declared)


@dataclass(frozen=True, slots=True)
class JudgedWorkload:
    """Verdicts on the score and on each runtime workload."""

    score: JudgedTimes
    points: tuple[tuple[PointTimes, JudgedTimes], ...]
    """Runtime workloads, each with its times and verdict."""

    @property
    def clear(self) -> bool:
        """Whether more processes would not change the verdicts."""
        return self.score.clear and all(judged.clear for _, judged in self.points)


def judge_workload(judge: Judge, times: Sequence[PointTimes]) -> JudgedWorkload | None:
    """Judge a workload; None until each runtime workload has two processes."""
    compared = []
    for point_times in times:
        selves = point_times.ratios(COPY) if COPY in point_times.variants else ()
        compared.append(ComparedTimes(point_times.ratios(AFTER), selves, _step(point_times)))
    judged = [judge.judge(ratios) for ratios in compared]
    decided = [point for point in judged if point is not None]
    if not decided or len(decided) < len(judged):
        return None
    score = judge.judge(
        ComparedTimes(
            weighted(times, [ratios.ratios for ratios in compared]),
            weighted(times, [ratios.selves for ratios in compared]),
            sum(at.weight * ratios.step for at, ratios in zip(times, compared, strict=True)),
        )
    )
    assert score is not None
    return JudgedWorkload(score, tuple(zip(times, decided, strict=True)))


def unclear_spots(change: ChangedWorkload, judged: JudgedWorkload | None) -> list[RuntimeSpot]:
    """Return the runtime workloads that need more processes."""
    if judged is None:
        return change.spots
    unclear = [not verdict.clear for _, verdict in judged.points]
    # If each of them is clear but their mean is not, all of them contribute to it.
    measure_all = not any(unclear) and not judged.score.clear
    spots = zip(change.spots, unclear, strict=True)
    return [spot for spot, is_open in spots if is_open or measure_all]


def _step(times: PointTimes) -> float:
    """Return the smallest relative difference between two times: the clock resolution.

    Without rounding, this approaches zero as the number of times grows.
    """
    pairs = (pair for label in (AFTER, COPY) for pair in times.variants.get(label, ()))
    centers = sorted({seconds for pair in pairs for seconds in pair})
    steps = [later - earlier for earlier, later in pairwise(centers)]
    return min(steps) / centers[0] if steps else 0.0


def quantiles_of(rows: MeasuringSession, spot: RuntimeSpot) -> tuple[float, ...]:
    """Return the ratio before over after at each quantile, over the samples of all processes."""
    samples = rows.samples(spot.spot)
    if not {BASE, AFTER} <= samples.keys():
        return ()
    return quantile_ratios(samples[BASE], samples[AFTER])


LOOKS = (5, 8, 12, 20)
"""Numbers of processes after which to check which verdicts are clear."""


@dataclass(slots=True)
class ChangeMeasuring:
    """Measures changes within a time budget."""

    controller: Controller
    rows: MeasuringSession
    judge: Judge
    looks: Sequence[int]
    rounds: int
    seed: int
    budget: float | None = None
    """Seconds."""
    progress: Progress | None = None
    _has_measured: bool = field(init=False, default=False)

    def run(self, changes: Sequence[ChangedWorkload]) -> list[JudgedWorkload | None]:
        """Measure all changes, repeat those that are not clear, and return the verdicts."""
        started = time.monotonic()
        for processes in self.looks:
            for change in changes:
                if change.failed is None:
                    self._look(change, processes, started)
        return [self.judged(change) for change in changes]

    def judged(self, change: ChangedWorkload) -> JudgedWorkload | None:
        """Judge a workload by the measurements so far."""
        times = change.times(self.rows)
        return judge_workload(self.judge, times) if times else None

    def _look(self, change: ChangedWorkload, processes: int, started: float) -> None:
        spots = unclear_spots(change, self.judged(change))
        if not spots:
            return
        if self.budget is not None:
            remaining = self.budget - (time.monotonic() - started)
            if remaining <= change.seconds * len(spots):
                return
        for part in change.parts:
            part_spots = [spot for spot in part.points if spot in spots]
            if part_spots and change.failed is None:
                self._measure(change, part, part_spots, processes)

    def _measure(
        self, change: ChangedWorkload, part: WorkloadTask, spots: Sequence[RuntimeSpot], count: int
    ) -> None:
        started = time.monotonic()
        if self._has_measured:
            self.controller.restart()  # each look begins with a fresh process, as the first did
        self._has_measured = True
        findings = measure_workload(
            self.controller,
            self.rows,
            replace(part, points=tuple(spots)),
            rounds=self.rounds,
            seed=self.seed,
            processes=count,
            progress=self.progress,
        )
        change.skipped |= findings.skipped
        change.failed = findings.failed.get(AFTER)  # one of the copy concerns the side before
        change.seconds = (time.monotonic() - started) / len(spots)


# Numbers of processes


def looks_until(most: int) -> tuple[int, ...]:
    """Return the numbers of processes after which to check, up to `most`."""
    return (*(count for count in LOOKS if count < most), most)


# Preparing both sides of a change, and compiling them


def workload_key(benchmark: str, workload: Mapping[str, str]) -> WorkloadKey:
    """Returns the key of a workload of a plan, a database, or a tree: `T{ct}` becomes `T`."""
    return benchmark, frozenset((axis_name(axis), value) for axis, value in workload.items())


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """What to measure of a change, and what is known about the rest."""

    before: str
    after: str
    """Description of both sides."""
    runs: Mapping[Point, Runs]
    same: tuple[Point, ...]
    """Workloads with the same machine code."""
    refused: Mapping[Point, str]
    """Workloads that cannot be measured, with reasons."""
    claims: Claims
    remarks: tuple[str, ...] = ()
    entries: Mapping[Point, EntryPlace | None] | None = None
    """The entry that decides each workload after the change; None if unknown."""


def compile_changes(
    prepared: PreparedChange,
    keeps: Keeps,
    compiler: MakesObjects,
    folder: Path,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> tuple[list[ChangedWorkload], dict[Point, str], Path | None]:
    """Compiles both sides of each workload; one that fails to compile only excludes its workload.

    Returns the workloads that can be measured, the others with reasons, and the program that times
    calls, if there is one.
    """
    tasks = [(point, *run) for point, runs in prepared.runs.items() for run in runs]
    compiled = compile_workloads(
        [task for _, _, task in tasks], runner_text(), compiler, slots=slots, progress=progress
    )
    refused = dict(prepared.refused)
    changes: dict[Point, ChangedWorkload] = {}
    runner = None
    for (point, run, _), result in zip(tasks, compiled, strict=True):
        if isinstance(result, PolicygenError):
            refused[point] = result.in_line
            continue
        runner = result.runner
        change = changes.setdefault(point, ChangedWorkload(point, ()))
        if AFTER in result.failed:
            change.failed = Failure("compile", result.failed[AFTER])
        else:
            change.parts += (_part(run, result, keeps, folder),)
    for point, change in changes.items():
        if change.failed is None and not any(part.points for part in change.parts):
            refused.setdefault(point, "-a leaves none of its runtime workloads")
    measurable = [change for point, change in changes.items() if point not in refused]
    return measurable, refused, runner


def _part(run: WorkloadRun, compiled: CompiledWorkload, keeps: Keeps, folder: Path) -> WorkloadTask:
    before, after = compiled.functions
    library = Path(before.library)
    copy = folder / f"{library.stem}-again{library.suffix}"
    shutil.copyfile(library, copy)
    variants = (after, VariantFunction(COPY, str(copy), before.function))
    spots = runtime_spots(run, compiled.inputs, keeps)
    return WorkloadTask(before, variants, tuple(spots), declared_axes(run))


# What was measured, as a document


def whole_verdict(workloads: Sequence[WorkloadPerformance]) -> PerformanceVerdict:
    """Combines verdicts, in this order: slower, undecided, faster, equal."""
    verdicts = {workload.verdict for workload in workloads}
    verdicts |= {row.verdict for workload in workloads for row in workload.runtime}
    for verdict in ("slower", "undecided", "faster", "equal"):
        if verdict in verdicts:
            return verdict
    return "same-code"


def by_entry(measured: Sequence[WorkloadPerformance]) -> Iterator[EntryPerformance]:
    """Summarizes the workloads of each entry, those with the largest loss first."""
    workloads_by_entry: dict[EntryPlace | None, list[WorkloadPerformance]] = {}
    for workload in measured:
        if workload.ratio is not None:
            workloads_by_entry.setdefault(workload.entry, []).append(workload)
    entries = [_entry(entry, workloads) for entry, workloads in workloads_by_entry.items()]
    yield from sorted(entries, key=lambda entry: entry.worst_ratio)


def _entry(entry: EntryPlace | None, workloads: Sequence[WorkloadPerformance]) -> EntryPerformance:
    ratios = {workload.name: workload.ratio for workload in workloads if workload.ratio is not None}
    worst = min(ratios, key=lambda name: ratios[name])
    return EntryPerformance(
        entry=entry,
        verdict=whole_verdict(workloads),
        workloads=len(workloads),
        faster=sum(workload.verdict == "faster" for workload in workloads),
        slower=sum(whole_verdict([workload]) == "slower" for workload in workloads),
        ratio=fmean(ratios.values()),
        worst=worst,
        worst_ratio=ratios[worst],
    )


def workload_document(
    change: ChangedWorkload,
    judged: JudgedWorkload | None,
    arch: str,
    claims: Claims,
    entry: EntryPlace | None,
    rows: MeasuringSession | None,
) -> WorkloadPerformance:
    """Builds the document of a workload; not judged: there was no time, or nothing to measure."""
    skipped = tuple(
        SkippedPoint(point=spot.spot.runtime_axes, reason=change.skipped[str(spot)])
        for part in change.parts
        for spot in part.points
        if str(spot) in change.skipped
    )
    fields: dict[str, Any] = {"arch": arch, "entry": entry, "skipped": skipped}
    if change.failed is not None:
        failed = VariantFailure(kind=change.failed.kind, reason=change.failed.reason)
        return WorkloadPerformance.of(change.point, **fields, verdict="undecided", failed=failed)
    if judged is None:
        problem = NO_TIME if change.spots else "none of its runtime workloads can be measured"
        return WorkloadPerformance.of(change.point, **fields, verdict="undecided", problem=problem)
    score = judged.score
    key = workload_key(change.point[0], dict(change.point[1]))
    if key in claims:
        claimed, threshold = claims[key]
        fields |= {"claimed": claimed, "least": threshold, "holds": score.high >= threshold}
    return WorkloadPerformance.of(
        change.point,
        **fields,
        **score.fields,
        runtime=tuple(
            _runtime(times, verdict, () if rows is None else quantiles_of(rows, spot))
            for (times, verdict), spot in zip(judged.points, change.spots, strict=True)
        ),
    )


def _runtime(
    times: PointTimes, verdict: JudgedTimes, quantiles: tuple[float, ...]
) -> RuntimePerformance:
    before, after = zip(*times.variants[AFTER], strict=True)
    return RuntimePerformance(
        subbench=times.subbench,
        point=dict(times.point),
        weight=times.weight,
        before_seconds=median(before),
        after_seconds=median(after),
        **verdict.fields,
        processes=len(times.base),
        quantiles=quantiles,
    )


def noise_of(measured: Sequence[WorkloadPerformance]) -> PerformanceNoise | None:
    """Summarizes the noise over all runtime workloads."""
    rows = [row for workload in measured for row in workload.runtime]
    noises = [row.noise for row in rows if row.noise is not None]
    if not noises:
        return None
    return PerformanceNoise(
        least=min(noises),
        median=median(noises),
        most=max(noises),
        processes=max(row.processes for row in rows),
    )
