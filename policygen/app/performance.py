"""`policygen verify-performance`: measures a change before and after it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from policygen.app.filters import EVERYTHING, Filter
from policygen.app.measure import ROUNDS, compile_time_part
from policygen.app.measured_workloads import check_compiles, work_folder
from policygen.app.performance_trees import (
    Claims,
    CompiledChanges,
    PreparedChange,
    compile_changes,
    prepare_header,
    prepare_trees,
    workload_key,
)
from policygen.app.session import Session, check_serves
from policygen.cache import digest
from policygen.gpu.changes import (
    LOOKS,
    ChangedWorkload,
    ChangeMeasuring,
    JudgedPoint,
    JudgedWorkload,
    looks_until,
    quantiles_of,
)
from policygen.gpu.compiling import ObjectCompiler, runtime_of
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.judgments import SURE, Judge
from policygen.gpu.machine import device_environment, find_gpu
from policygen.gpu.measured_rows import MeasuringSession, open_measurements
from policygen.gpu.nvbench_files import check_nvbench, unwritten, write_nvbench
from policygen.gpu.statistics import runtime_axes
from policygen.model.measured import SkippedPoint, VariantFailure
from policygen.model.selection import EntryPlace
from policygen.model.verdicts import (
    EntryPerformance,
    PerformanceNoise,
    PerformanceVerdict,
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)
from policygen.model.workload import Point
from policygen.proof.compile import Listings
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.trees.layout import tree_content

MOST = LOOKS[-1]
NO_TIME = "the budget ended before it was measured"


@dataclass(frozen=True, slots=True)
class PerformanceEffort:
    """How much to measure, and where."""

    processes: int = MOST
    """Maximum number of processes; workloads with a clear verdict stop earlier."""
    rounds: int = ROUNDS
    """Rounds in each process."""
    seed: int = 1
    budget: float | None = None
    """Measuring time in seconds."""
    gpu: int = 0
    slots: int | None = None
    """Units compiled at once; if unset, as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that another process is measuring on."""


def verify_performance(
    session: Session,
    where: Filter = EVERYTHING,
    *,
    base: str | None = None,
    header: Path | None = None,
    everything: bool = False,
    tolerance: float | None = None,
    database: Path | None = None,
    effort: PerformanceEffort | None = None,
    nvbench: Path | None = None,
) -> VerifyPerformance:
    """Measures workloads whose machine code a change modified, before and after it.

    `everything` examines all workloads of the changed headers, not only those that get different
    values. With `header`, a header made by `emit`, the tree is compared with and without it.
    `nvbench` is a folder for the measurements in NVBench's format.
    """
    check_serves("verify-performance", session.cub)
    effort, started = effort or PerformanceEffort(), time.monotonic()
    if nvbench is not None:
        check_nvbench(nvbench)
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    part = compile_time_part(where)
    if header is not None:
        change = prepare_header(session, header, part, gpu.arch, toolchain)
    else:
        change = prepare_trees(
            session, base, part, gpu.arch, toolchain, everything=everything, jobs=effort.slots
        )
    return measure_change(
        session,
        change,
        where,
        gpu.arch,
        tolerance=tolerance,
        database=database,
        effort=effort,
        nvbench=nvbench,
        started=started,
    )


def measure_change(
    session: Session,
    change: PreparedChange,
    where: Filter,
    arch: str,
    *,
    tolerance: float | None = None,
    database: Path | None = None,
    effort: PerformanceEffort | None = None,
    nvbench: Path | None = None,
    started: float | None = None,
) -> VerifyPerformance:
    """Measures both sides of a prepared change. `begun` is when the preparation started."""
    effort, started = effort or PerformanceEffort(), started or time.monotonic()
    toolchain = find_toolchain()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        compiled = compile_changes(
            change, where, compiler, folder, slots=effort.slots, progress=session.progress
        )
        measured = _MeasuredChange(session, change, arch, tolerance, effort, toolchain, compiled)
        if compiled.runner is None or not compiled.changes:
            measured.extra_remarks = () if nvbench is None else (unwritten(nvbench),)
            return measured.document([], database, started)
        command = worker_command(effort.gpu, compiled.runner, runtime_of(toolchain))
        controller = stack.enter_context(
            controlling(command, patience=effort.patience, more=device_environment())
        )
        about = _about(session, toolchain, controller, compiled.changes, effort.seed)
        path = database or folder / "measured.db"
        rows = stack.enter_context(open_measurements(path, about))
        measured.rows = rows
        measuring = _measuring(measured, controller, rows)
        judged = measuring.run(compiled.changes)
        if nvbench is not None:
            measured.extra_remarks = write_nvbench(nvbench, compiled.changes, rows)
        measured.gpu, measured.driver = controller.facts.label, controller.facts.driver
        return measured.document(judged, database, started)


def _about(
    session: Session,
    toolchain: Toolchain,
    controller: Controller,
    changes: Sequence[ChangedWorkload],
    seed: int,
) -> About:
    """Describes the measurement.

    Includes a digest of both sides' objects, so that rows of another change are never reused.
    """
    objects = (
        Path(library).name
        for change in changes
        for part in change.parts
        for library in (part.before.library, part.after.library)
    )
    version = toolchain.version
    cccl = f"v{session.cub.version} change {digest('change', *objects)[:12]}"
    return About(version, cccl, controller.facts, version, "events", seed)


def _measuring(
    measured: "_MeasuredChange", controller: Controller, rows: MeasuringSession
) -> ChangeMeasuring:
    effort = measured.effort
    looks = looks_until(effort.processes)
    count = sum(1 + len(change.spots) for change in measured.compiled.changes)
    return ChangeMeasuring(
        controller,
        rows,
        Judge(count * len(looks), measured.tolerance),
        looks,
        effort.rounds,
        effort.seed,
        effort.budget,
        measured.session.progress,
    )


@dataclass(slots=True)
class _MeasuredChange:
    """Everything that the result document is made of."""

    session: Session
    change: PreparedChange
    arch: str
    tolerance: float | None
    effort: PerformanceEffort
    toolchain: Toolchain
    compiled: CompiledChanges
    gpu: str | None = None
    driver: str | None = None
    rows: MeasuringSession | None = None
    extra_remarks: tuple[str, ...] = ()
    """Additional remarks."""

    def document(
        self, judged: Sequence[JudgedWorkload | None], database: Path | None, started: float
    ) -> VerifyPerformance:
        """Builds the document of measured, unmeasurable, and unchanged workloads."""
        pairs = zip(self.compiled.changes, judged, strict=False)
        claims, entries = self.change.claims, self.change.entries
        measured = [
            _workload(
                change,
                judged_workload,
                self.arch,
                claims,
                (entries or {}).get(change.point),
                self.rows,
            )
            for change, judged_workload in pairs
        ]
        refused = self.compiled.refused.items()
        rest = [_unmeasured(point, self.arch, "undecided", reason) for point, reason in refused]
        unchanged = [_unmeasured(point, self.arch, "same-code") for point in self.change.same]
        workloads = (*measured, *rest, *unchanged)
        cub = self.session.cub
        return VerifyPerformance(
            cub=cub,
            content=tree_content(cub),
            before=self.change.before,
            after=self.change.after,
            arch=self.arch,
            gpu=self.gpu,
            driver=self.driver,
            toolchain=f"nvcc {self.toolchain.version}",
            tolerance=self.tolerance,
            confidence=SURE,
            noise=noise_of(measured),
            seed=self.effort.seed,
            budget=self.effort.budget,
            database=None if database is None else str(database),
            remarks=(*self.change.remarks, *self.extra_remarks),
            verdict=whole_verdict(workloads),
            workloads=workloads,
            entries=() if entries is None else tuple(by_entry(measured)),
            seconds=time.monotonic() - started,
        )


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


def _workload(
    change: ChangedWorkload,
    judged: JudgedWorkload | None,
    arch: str,
    claims: Claims,
    entry: EntryPlace | None,
    rows: MeasuringSession | None,
) -> WorkloadPerformance:
    name, axes = change.point
    fields: dict[str, Any] = {
        "benchmark": name,
        "workload": dict(axes),
        "arch": arch,
        "entry": entry,
    }
    fields["skipped"] = tuple(
        SkippedPoint(point=runtime_axes(spot.spot), reason=change.skipped[str(spot)])
        for part in change.parts
        for spot in part.points
        if str(spot) in change.skipped
    )
    if change.failed is not None:
        failed = VariantFailure(kind=change.failed.kind, reason=change.failed.reason)
        return WorkloadPerformance(**fields, verdict="undecided", failed=failed)
    if judged is None:
        problem = NO_TIME if change.spots else "none of its runtime workloads can be measured"
        return WorkloadPerformance(**fields, verdict="undecided", problem=problem)
    score = judged.score
    key = workload_key(name, dict(axes))
    if key in claims:
        claimed, threshold = claims[key]
        fields |= {"claimed": claimed, "least": threshold, "holds": score.high >= threshold}
    return WorkloadPerformance(
        **fields,
        verdict=score.verdict,
        ratio=score.ratio,
        low=score.low,
        high=score.high,
        noise=score.noise,
        runtime=tuple(
            _runtime(judged_point, () if rows is None else quantiles_of(rows, spot))
            for judged_point, spot in zip(judged.points, change.spots, strict=True)
        ),
    )


def _runtime(judged_point: JudgedPoint, quantiles: tuple[float, ...]) -> RuntimePerformance:
    judged = judged_point.judged
    before, after = judged_point.seconds
    return RuntimePerformance(
        subbench=judged_point.times.subbench,
        point=dict(judged_point.times.point),
        weight=judged_point.times.weight,
        before_seconds=before,
        after_seconds=after,
        ratio=judged.ratio,
        low=judged.low,
        high=judged.high,
        noise=judged.noise,
        verdict=judged.verdict,
        processes=len(judged_point.times.base),
        quantiles=quantiles,
    )


def _unmeasured(
    point: Point, arch: str, verdict: PerformanceVerdict, problem: str | None = None
) -> WorkloadPerformance:
    name, axes = point
    return WorkloadPerformance(
        benchmark=name, workload=dict(axes), arch=arch, verdict=verdict, problem=problem
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
