"""`policygen verify-performance`: a change as it is merged, measured before and after."""

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
from policygen.gpu.comparison import SURE, Judge
from policygen.gpu.compiling import ObjectCompiler, runtime_of
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About
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
    """How much is measured, and where."""

    processes: int = MOST
    """At most; what is clear stops earlier."""
    rounds: int = ROUNDS
    """In each process."""
    seed: int = 1
    budget: float | None = None
    """Seconds of measuring."""
    gpu: int = 0
    slots: int | None = None
    """How many units are compiled at once; none: as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that somebody else measures on."""


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
    """Measures the workloads whose machine code a change made another, before and after it.

    `everything` looks at all workloads of the headers that changed, not only at those that get
    other values. With `header`, one that `emit` made, the tree with it is compared with itself.
    `nvbench` is a folder for what was measured, as NVBench writes it.
    """
    check_serves("verify-performance", session.cub)
    effort, begun = effort or PerformanceEffort(), time.monotonic()
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
        begun=begun,
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
    begun: float | None = None,
) -> VerifyPerformance:
    """Measures both sides of a change that is prepared; `begun` is when that began."""
    effort, begun = effort or PerformanceEffort(), begun or time.monotonic()
    toolchain = find_toolchain()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        made = compile_changes(
            change, where, compiler, folder, slots=effort.slots, progress=session.progress
        )
        told = _MeasuredChange(session, change, arch, tolerance, effort, toolchain, made)
        if made.runner is None or not made.changes:
            told.more = () if nvbench is None else (unwritten(nvbench),)
            return told.document([], database, begun)
        command = worker_command(effort.gpu, made.runner, runtime_of(toolchain))
        controller = stack.enter_context(
            controlling(command, patience=effort.patience, more=device_environment())
        )
        about = _about(session, toolchain, controller, made.changes, effort.seed)
        path = database or folder / "measured.db"
        rows = stack.enter_context(open_measurements(path, about))
        told.rows = rows
        measuring = _measuring(told, controller, rows)
        judged = measuring.run(made.changes)
        if nvbench is not None:
            told.more = write_nvbench(nvbench, made.changes, rows)
        told.gpu, told.driver = controller.facts.label, controller.facts.driver
        return told.document(judged, database, begun)


def _about(
    session: Session,
    toolchain: Toolchain,
    controller: Controller,
    changes: Sequence[ChangedWorkload],
    seed: int,
) -> About:
    """Both sides' objects are named, so that rows of another change are never taken for these."""
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
    told: "_MeasuredChange", controller: Controller, rows: MeasuringSession
) -> ChangeMeasuring:
    effort = told.effort
    looks = looks_until(effort.processes)
    count = sum(1 + len(change.spots) for change in told.made.changes)
    return ChangeMeasuring(
        controller,
        rows,
        Judge(count * len(looks), told.tolerance),
        looks,
        effort.rounds,
        effort.seed,
        effort.budget,
        told.session.progress,
    )


@dataclass(slots=True)
class _MeasuredChange:
    """What the document is made of."""

    session: Session
    change: PreparedChange
    arch: str
    tolerance: float | None
    effort: PerformanceEffort
    toolchain: Toolchain
    made: CompiledChanges
    gpu: str | None = None
    driver: str | None = None
    rows: MeasuringSession | None = None
    more: tuple[str, ...] = ()
    """Remarks."""

    def document(
        self, judged: Sequence[JudgedWorkload | None], database: Path | None, begun: float
    ) -> VerifyPerformance:
        """All workloads: those that were measured, those that could not be, and the same ones."""
        pairs = zip(self.made.changes, judged, strict=False)
        claims, entries = self.change.claims, self.change.entries
        measured = [
            _workload(change, one, self.arch, claims, (entries or {}).get(change.point), self.rows)
            for change, one in pairs
        ]
        refused = self.made.refused.items()
        rest = [_unmeasured(point, self.arch, "undecided", why) for point, why in refused]
        same = [_unmeasured(point, self.arch, "same-code") for point in self.change.same]
        workloads = (*measured, *rest, *same)
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
            remarks=(*self.change.remarks, *self.more),
            verdict=whole_verdict(workloads),
            workloads=workloads,
            entries=() if entries is None else tuple(by_entry(measured)),
            seconds=time.monotonic() - begun,
        )


def whole_verdict(workloads: Sequence[WorkloadPerformance]) -> PerformanceVerdict:
    """Slower where anything is; undecided where something is not known; else faster, or equal."""
    every = {one.verdict for one in workloads}
    every |= {row.verdict for one in workloads for row in one.runtime}
    for verdict in ("slower", "undecided", "faster", "equal"):
        if verdict in every:
            return verdict
    return "same-code"


def by_entry(measured: Sequence[WorkloadPerformance]) -> Iterator[EntryPerformance]:
    """What became of the workloads of each entry; who loses most comes first."""
    lots: dict[EntryPlace | None, list[WorkloadPerformance]] = {}
    for one in measured:
        if one.ratio is not None:
            lots.setdefault(one.entry, []).append(one)
    found = [_entry(entry, lot) for entry, lot in lots.items()]
    yield from sorted(found, key=lambda one: one.worst_ratio)


def _entry(entry: EntryPlace | None, lot: Sequence[WorkloadPerformance]) -> EntryPerformance:
    ratios = {one.name: one.ratio for one in lot if one.ratio is not None}
    worst = min(ratios, key=lambda name: ratios[name])
    return EntryPerformance(
        entry=entry,
        verdict=whole_verdict(lot),
        workloads=len(lot),
        faster=sum(one.verdict == "faster" for one in lot),
        slower=sum(whole_verdict([one]) == "slower" for one in lot),
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
    place: dict[str, Any] = {
        "benchmark": name,
        "workload": dict(axes),
        "arch": arch,
        "entry": entry,
    }
    place["skipped"] = tuple(
        SkippedPoint(point=runtime_axes(spot.spot), reason=change.skipped[str(spot)])
        for part in change.parts
        for spot in part.points
        if str(spot) in change.skipped
    )
    if change.failed is not None:
        failed = VariantFailure(kind=change.failed.kind, reason=change.failed.reason)
        return WorkloadPerformance(**place, verdict="undecided", failed=failed)
    if judged is None:
        why = NO_TIME if change.spots else "none of its runtime workloads can be measured"
        return WorkloadPerformance(**place, verdict="undecided", problem=why)
    score = judged.score
    key = workload_key(name, dict(axes))
    if key in claims:
        claimed, least = claims[key]
        place |= {"claimed": claimed, "least": least, "holds": score.high >= least}
    return WorkloadPerformance(
        **place,
        verdict=score.verdict,
        ratio=score.ratio,
        low=score.low,
        high=score.high,
        noise=score.noise,
        runtime=tuple(
            _runtime(one, () if rows is None else quantiles_of(rows, spot))
            for one, spot in zip(judged.points, change.spots, strict=True)
        ),
    )


def _runtime(one: JudgedPoint, quantiles: tuple[float, ...]) -> RuntimePerformance:
    judged = one.judged
    before, after = one.seconds
    return RuntimePerformance(
        subbench=one.times.subbench,
        point=dict(one.times.point),
        weight=one.times.weight,
        before_seconds=before,
        after_seconds=after,
        ratio=judged.ratio,
        low=judged.low,
        high=judged.high,
        noise=judged.noise,
        verdict=judged.verdict,
        processes=len(one.times.base),
        quantiles=quantiles,
    )


def _unmeasured(
    point: Point, arch: str, verdict: PerformanceVerdict, why: str | None = None
) -> WorkloadPerformance:
    name, axes = point
    return WorkloadPerformance(
        benchmark=name, workload=dict(axes), arch=arch, verdict=verdict, problem=why
    )


def noise_of(measured: Sequence[WorkloadPerformance]) -> PerformanceNoise | None:
    """What verdicts are measured by, over all runtime workloads."""
    rows = [row for one in measured for row in one.runtime]
    noises = [row.noise for row in rows if row.noise is not None]
    if not noises:
        return None
    return PerformanceNoise(
        least=min(noises),
        median=median(noises),
        most=max(noises),
        processes=max(row.processes for row in rows),
    )
